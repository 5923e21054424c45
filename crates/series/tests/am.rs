//! What the real `git am` makes of a series is what its author had.
#![allow(missing_docs)]

mod support;

use std::fs;

use klab_series::{Options, Series, Source, read_bytes};
use support::{Repo, mbox, read, subjects, topic};

/// The messages from `base` on, without committer and date.
fn messages(repo: &Repo, range: &str) -> String {
    repo.git(&["log", "--reverse", "--format=%an <%ae>%n%B", range])
}

/// Applied on the base, a series gives the tree and the messages of the topic.
#[track_caller]
fn same_as_topic(repo: &Repo, series: &Series) {
    let made = repo.am(series, "v6.1");
    assert_eq!(made, repo.git(&["rev-parse", "topic^{tree}"]));
    assert_eq!(messages(repo, "v6.1..HEAD"), messages(repo, "v6.1..topic"));
}

#[test]
fn a_range_gives_the_tree_of_its_topic() {
    let repo = topic();
    let series = repo.range("v6.1..topic").expect("a series");
    assert_eq!(series.patches.len(), 6);
    assert!(series.am_options().contains(&"--keep-cr"));
    same_as_topic(&repo, &series);
    // Each step to the whole is the tree of its commit.
    for count in 0..=6 {
        let mut part = series.clone();
        part.patches.truncate(count);
        assert_eq!(part.mbox(), series.mbox_of_first(count));
        if count > 0 {
            let made = repo.am(&part, "v6.1");
            assert_eq!(
                made,
                repo.git(&["rev-parse", &format!("topic~{}^{{tree}}", 6 - count)])
            );
        }
    }
}

#[test]
fn files_of_format_patch_give_the_tree_of_their_topic() {
    let repo = topic();
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().to_str().expect("UTF-8");
    for options in [
        &["--cover-letter", "-v2"][..],
        &["--numbered", "--attach"],
        &["--thread", "--rfc", "--subject-prefix=PATCH net-next"],
        &["--keep-subject", "--no-numbered", "--full-index"],
        &["--no-renames"],
    ] {
        let mut arguments = vec!["format-patch", "--quiet", "--binary", "-o", output];
        arguments.extend(options);
        arguments.push("v6.1..topic");
        repo.git(&arguments);
        let source = Source::Path(folder.path().to_owned());
        let series = klab_series::read(&source, &Options::default()).expect("a series");
        assert_eq!(series.patches.len(), 6, "{options:?}");
        assert_eq!(series.cover.is_some(), options[0] == "--cover-letter");
        same_as_topic(&repo, &series);
        for file in fs::read_dir(folder.path()).expect("a folder") {
            fs::remove_file(file.expect("a file").path()).expect("removed");
        }
    }
}

#[test]
fn a_mailbox_gives_the_tree_of_its_topic_also_when_its_mails_are_shuffled() {
    let repo = topic();
    let stdout = [
        "format-patch",
        "--stdout",
        "--binary",
        "--thread=deep",
        "-v3",
    ];
    let bytes = repo.bytes(&[&stdout[..], &["v6.1..topic"]].concat());
    let series = read(&bytes).expect("a series");
    assert_eq!(series.revision, 3);
    same_as_topic(&repo, &series);
    // As lore sends it: other separators, escapes, newest first.
    let mails: Vec<&[u8]> = series
        .patches
        .iter()
        .rev()
        .map(|patch| patch.raw.as_slice())
        .collect();
    let shuffled = read(&klab_series::write_mbox(mails)).expect("a series");
    assert_eq!(subjects(&shuffled), subjects(&series));
    same_as_topic(&repo, &shuffled);
}

/// The diff of a mail of git, and the mail with the text encoded as mail programs do.
fn encoded(mail: &[u8], encoding: &str) -> Vec<u8> {
    let end = mail
        .windows(2)
        .position(|end| end == b"\n\n")
        .expect("a header");
    let (header, text) = (&mail[..end], &mail[end + 2..]);
    let kept = String::from_utf8_lossy(header);
    let kept = kept
        .lines()
        .filter(|line| !line.starts_with("Content-Transfer-Encoding:"));
    let mut out = kept
        .map(|line| format!("{line}\n"))
        .collect::<String>()
        .into_bytes();
    if !String::from_utf8_lossy(&out).contains("Content-Type:") {
        out.extend(b"MIME-Version: 1.0\nContent-Type: text/plain; charset=UTF-8\n");
    }
    out.extend(format!("Content-Transfer-Encoding: {encoding}\n\n").bytes());
    match encoding {
        "base64" => out.extend(base64(text).bytes()),
        "quoted-printable" => out.extend(quoted_printable(text).bytes()),
        _ => out.extend(text),
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for (index, three) in bytes.chunks(3).enumerate() {
        let mut word = [0; 4];
        word[1..=three.len()].copy_from_slice(three);
        let word = u32::from_be_bytes(word);
        for digit in 0..4 {
            let shown = digit <= three.len();
            let value = (word >> (18 - 6 * digit)) & 63;
            out.push(if shown {
                char::from(DIGITS[value as usize])
            } else {
                '='
            });
        }
        if index % 19 == 18 {
            out.push('\n');
        }
    }
    out + "\n"
}

fn quoted_printable(bytes: &[u8]) -> String {
    let mut out = String::new();
    let mut width = 0;
    for (index, byte) in bytes.iter().enumerate() {
        let last = bytes.get(index + 1) == Some(&b'\n');
        let shown = match byte {
            b'\n' => {
                out.push('\n');
                width = 0;
                continue;
            }
            b' ' | b'\t' if last => format!("={byte:02X}"),
            b' ' | b'\t' | b'!'..=b'<' | b'>'..=b'~' => char::from(*byte).to_string(),
            byte => format!("={byte:02X}"),
        };
        if width + shown.len() > 72 {
            out.push_str("=\n");
            width = 0;
        }
        width += shown.len();
        out.push_str(&shown);
    }
    out
}

#[test]
fn encodings_give_the_tree_of_the_topic() {
    let repo = topic();
    let range = repo.range("v6.1..topic").expect("a series");
    for encoding in ["base64", "quoted-printable", "8bit"] {
        let mails: Vec<Vec<u8>> = range
            .patches
            .iter()
            .map(|patch| encoded(&patch.raw, encoding))
            .collect();
        let bytes = klab_series::write_mbox(mails.iter().map(Vec::as_slice));
        let series = read_bytes(encoding, &bytes, &Options::default()).expect("a series");
        same_as_topic(&repo, &series);
    }
}

#[test]
fn mails_saved_with_crlf_give_the_tree_of_the_topic() {
    let repo = Repo::new();
    repo.commit_lines("a.c", 99, "base");
    repo.git(&["tag", "v6.1"]);
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    repo.commit_lines("a.c", 3, "a: three");
    repo.write("new.bin", [0, 13, 10, 7].repeat(50));
    repo.commit("binary");
    let bytes = repo.bytes(&["format-patch", "--stdout", "--binary", "v6.1..topic"]);
    let text = String::from_utf8(bytes).expect("text");
    let series = read(text.replace('\n', "\r\n").as_bytes()).expect("a series");
    assert!(series.am_options().contains(&"--no-keep-cr"));
    assert!(series.patches[1].files[0].binary);
    same_as_topic(&repo, &series);
    // Encoded by a server that turned all line ends into CRLF first.
    let mails: Vec<Vec<u8>> = series
        .patches
        .iter()
        .map(|patch| String::from_utf8(patch.raw.clone()).expect("text"))
        .map(|mail| {
            let (header, text) = mail.split_once("\r\n\r\n").expect("a header");
            let mail = format!("{}\n\n{text}", header.replace("\r\n", "\n"));
            encoded(mail.as_bytes(), "base64")
        })
        .collect();
    let series = read(&klab_series::write_mbox(mails.iter().map(Vec::as_slice))).expect("a series");
    assert!(series.am_options().contains(&"--quoted-cr=strip"));
    assert!(support::warnings(&series)[0].contains("--quoted-cr=strip"));
    same_as_topic(&repo, &series);
}

#[test]
fn a_flowed_mail_is_read_as_git_reads_it() {
    let repo = Repo::new();
    repo.commit_lines("a.c", 99, "base");
    repo.git(&["tag", "v6.1"]);
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    repo.commit_lines("a.c", 3, "a: three");
    let bytes = repo.bytes(&["format-patch", "--stdout", "v6.1..topic"]);
    let text = String::from_utf8(bytes).expect("text");
    let (header, body) = text.split_once("\n\n").expect("a header");
    let header = format!("{header}\nContent-Type: text/plain; format=flowed\n\n");
    let stuffed: String = body
        .lines()
        .map(|line| {
            if line.starts_with(' ') {
                format!(" {line}\n")
            } else {
                format!("{line}\n")
            }
        })
        .collect();
    let series = read(format!("{header}{stuffed}").as_bytes()).expect("a series");
    assert!(support::warnings(&series)[0].contains("is format=flowed"));
    same_as_topic(&repo, &series);
    // Sent by a program that says flowed and does not stuff: git takes the blanks off.
    let error = read(format!("{header}{body}").as_bytes())
        .expect_err("damaged")
        .to_string();
    assert!(
        error.contains("format=flowed, which damages blanks: hunk of a.c"),
        "{error}"
    );
}

#[test]
fn what_is_written_can_be_read_again() {
    let repo = topic();
    let series = repo.range("v6.1..topic").expect("a series");
    let again = read(&series.mbox()).expect("a series");
    let raw = |series: &Series| -> Vec<Vec<u8>> {
        series
            .patches
            .iter()
            .map(|patch| patch.raw.clone())
            .collect()
    };
    assert_eq!(raw(&again), raw(&series));
    assert_eq!(mbox(&[]), b"");
}

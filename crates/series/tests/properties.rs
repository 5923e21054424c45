//! Whatever comes in, nothing panics; and what was understood does not depend on chance.
#![allow(missing_docs)]

mod support;

use klab_series::{Options, Summary, Warning, defuse, read_bytes, write_mbox};
use proptest::prelude::*;
use support::{Letter, diff, mbox, read, subjects};

/// Lines that mean something to the reader, in any order.
fn line() -> impl Strategy<Value = String> {
    let known = prop::sample::select(vec![
        "From mboxrd@z Thu Jan  1 00:00:00 1970",
        "From a@b Fri Sep 22 13:01:02 2023",
        ">From here",
        "From: A <a@b>",
        "Subject: [PATCH v2 1/2] mm: a",
        "Subject: [PATCH 0/2] mm",
        "Subject: Re: [PATCH] mm",
        "Subject: =?utf-8?b?W1BBVENIXSB4?=",
        "Message-ID: <a@b>",
        "References: <a@b> <c@d>",
        "Content-Type: text/plain; charset=utf-16; format=flowed; delsp=yes",
        "Content-Type: multipart/mixed; boundary=x",
        "Content-Transfer-Encoding: base64",
        "Content-Transfer-Encoding: quoted-printable",
        "--x",
        "--x--",
        "",
        "---",
        "-- ",
        "diff --git a/x b/x",
        "diff --git \"a/\\303\" \"b/x\"",
        "index 1234567..89abcde 100644",
        "new file mode 120000",
        "rename from x",
        "rename to y",
        "--- a/x",
        "+++ b/x",
        "@@ -1,2 +1,2 @@",
        "@@ -0,0 +1 @@",
        " a",
        "-b",
        "+c",
        "\\ No newline at end of file",
        "GIT binary patch",
        "literal 4",
        "LcmZ?wWMTjS0001U",
        "base-commit: 0123456789abcdef0123456789abcdef01234567",
        "Reviewed-by: R <r@x>",
    ]);
    prop_oneof![4 => known.prop_map(str::to_owned), 1 => "\\PC{0,20}", 1 => "[ -~]{0,20}"]
}

/// Reads whatever it is, and shows what came of it.
fn exercise(bytes: &[u8]) {
    for revision in [None, Some(1)] {
        match read_bytes("input", bytes, &Options { revision }) {
            Ok(series) => {
                assert!(!series.patches.is_empty());
                let summary = serde_json::to_string(&Summary::new(&series, None)).expect("JSON");
                assert!(!summary.contains('\u{1b}'), "{summary}");
                let _ = (series.mbox(), series.to_model(), series.am_options());
            }
            Err(error) => assert!(is_calm(&error.to_string()), "{error}"),
        }
    }
}

/// Nothing in the text acts on a terminal; the line breaks are those of lists.
fn is_calm(text: &str) -> bool {
    text.lines()
        .all(|line| defuse(line) == line || line.chars().count() > 400)
}

fn is_about_the_place(warning: &&Warning) -> bool {
    matches!(
        warning,
        Warning::Twice { .. } | Warning::Untagged { .. } | Warning::Beside { .. }
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        exercise(&bytes);
    }

    #[test]
    fn any_lines_are_read_or_refused(
        lines in prop::collection::vec(line(), 0..40),
        end in prop::sample::select(vec!["\n", "\r\n"]),
    ) {
        exercise(lines.join(end).as_bytes());
    }

    #[test]
    fn a_damaged_thread_is_read_or_refused(
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = mbox(&thread(3, 1));
        let index = at.index(bytes.len());
        bytes[index] = byte;
        exercise(&bytes);
        bytes.truncate(cut.index(bytes.len()));
        exercise(&bytes);
    }

    #[test]
    fn mailboxes_give_back_every_mail(
        texts in prop::collection::vec(prop::collection::vec(line(), 0..12), 1..5),
        crlf in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        let total = texts.len();
        // Each is a whole patch behind any text, so that all of them come back.
        let mails: Vec<Vec<u8>> = texts
            .iter()
            .enumerate()
            .map(|(n, lines)| {
                let is_text = |line: &&String| !line.starts_with("diff ") && !line.starts_with("---")
                    && !line.starts_with("@@") && !line.starts_with("+++");
                let text: String = lines.iter().filter(is_text).map(|line| format!("{line}\n")).collect();
                let subject = format!("[PATCH {}/{total}] mm: {n}", n + 1);
                let mail = Letter::new(&format!("m{n}"), &subject, &format!("{text}{}", diff("x"))).mail();
                mail.replace('\n', end).into_bytes()
            })
            .collect();
        let mbox = write_mbox(mails.iter().map(Vec::as_slice));
        let series = read(&mbox).expect("a series");
        let raw: Vec<Vec<u8>> = series.patches.into_iter().map(|patch| patch.raw).collect();
        prop_assert_eq!(raw, mails);
    }

    #[test]
    fn the_order_of_mails_changes_nothing(
        (letters, mut order) in (1_u32..6, 1_u32..3).prop_flat_map(|(n, v)| {
            let letters = [thread(n, v), thread(2, 3), replies(2, 3)].concat();
            (Just(letters.clone()), Just(letters).prop_shuffle())
        }),
        again in any::<prop::sample::Index>(),
    ) {
        let expected = read(&mbox(&letters)).expect("a series");
        // One of them is delivered twice.
        order.push(order[again.index(order.len())].clone());
        let other = read(&mbox(&order)).expect("a series");
        prop_assert_eq!(subjects(&other), subjects(&expected));
        prop_assert_eq!(other.mbox(), expected.mbox());
        let trailers = |series: &klab_series::Series| -> Vec<Vec<String>> {
            let names = |patch: &klab_series::Patch| {
                let mut names: Vec<String> = patch.trailers.iter().map(|t| format!("{} {}", t.name, t.value)).collect();
                names.sort();
                names
            };
            series.patches.iter().map(names).collect()
        };
        prop_assert_eq!(trailers(&other), trailers(&expected));
        prop_assert!(other.warnings.iter().filter(is_about_the_place).count() <= 1);
    }

    #[test]
    fn what_is_shown_is_calm(text in any::<String>()) {
        let shown = defuse(&text);
        let acts = ['\n', '\r', '\t', '\u{7}', '\u{1b}', '\u{9b}', '\u{200f}', '\u{202e}'];
        prop_assert!(!shown.contains(acts), "{}", shown);
    }
}

/// A cover letter and `n` patches of revision `v`.
fn thread(n: u32, v: u32) -> Vec<Letter> {
    let cover = format!("c{v}");
    let mut letters = vec![Letter::new(
        &cover,
        &format!("[PATCH v{v} 0/{n}] mm: faster"),
        "It is.\n",
    )];
    for number in 1..=n {
        let subject = format!("[PATCH v{v} {number}/{n}] mm: {number}");
        let letter = Letter::new(
            &format!("p{v}-{number}"),
            &subject,
            &diff(&format!("f{number}")),
        );
        letters.push(letter.answers(&[&cover]));
    }
    letters
}

fn replies(n: u32, v: u32) -> Vec<Letter> {
    let reply = |number: u32| {
        let parent = format!("p{v}-{number}");
        Letter::new(
            &format!("r{v}-{number}"),
            "Re: x",
            &format!("Acked-by: R{number} <r@x>\n"),
        )
        .answers(&[&format!("c{v}"), &parent])
    };
    (1..=n).map(reply).collect()
}

//! One source, many mails: which of them are the series.
#![allow(missing_docs)]

mod support;

use klab_series::Series;
use support::{Letter, diff, mbox, read, revision, subjects, told, warnings};

fn patch(id: &str, subject: &str, path: &str) -> Letter {
    Letter::new(
        id,
        subject,
        &format!("Why.\n\nSigned-off-by: A <a@example.org>\n{}", diff(path)),
    )
}

/// A cover letter and two patches of revision `v`, as `git send-email` threads them.
fn thread(v: u32) -> Vec<Letter> {
    let tag = if v == 1 {
        String::new()
    } else {
        format!(" v{v}")
    };
    let cover = format!("c{v}");
    vec![
        Letter::new(&cover, &format!("[PATCH{tag} 0/2] mm: faster"), "It is.\n"),
        patch(
            &format!("a{v}"),
            &format!("[PATCH{tag} 1/2] mm: a"),
            &format!("a{v}"),
        )
        .answers(&[&cover]),
        patch(
            &format!("b{v}"),
            &format!("[PATCH{tag} 2/2] mm: b"),
            &format!("b{v}"),
        )
        .answers(&[&cover]),
    ]
}

fn reply(id: &str, parents: &[&str], text: &str) -> Letter {
    Letter::new(id, "Re: [PATCH 1/2] mm: a", text).answers(parents)
}

fn refused(letters: &[Letter]) -> String {
    told(&read(&mbox(letters)).expect_err("refused"))
}

#[test]
fn a_thread_is_ordered_by_its_numbers() {
    let mut letters = thread(1);
    letters.push(reply("r1", &["c1", "a1"], "Why?\n"));
    let series = read(&mbox(&letters)).expect("a series");
    assert_eq!(subjects(&series), ["1 mm: a", "2 mm: b"]);
    assert_eq!(
        (series.subject.as_str(), series.revision),
        ("mm: faster", 1)
    );
    assert_eq!(
        series.date.expect("a date").to_string(),
        "2023-09-22T11:01:02Z"
    );
    assert_eq!(warnings(&series), [""; 0]);
    // Every order of the four mails.
    for order in 0..24 {
        let mut left = letters.clone();
        let mut turn = order;
        let mut shuffled = Vec::new();
        while !left.is_empty() {
            shuffled.push(left.remove(turn % left.len()));
            turn /= left.len().max(1) + 1;
        }
        let other = read(&mbox(&shuffled)).expect("a series");
        assert_eq!(subjects(&other), subjects(&series));
        assert_eq!(other.mbox(), series.mbox());
    }
}

#[test]
fn the_newest_revision_is_taken_or_the_one_asked_for() {
    let letters = [thread(2), thread(1), thread(3)].concat();
    let bytes = mbox(&letters);
    let newest = read(&bytes).expect("a series");
    assert_eq!(
        (newest.revision, newest.other_revisions.as_slice()),
        (3, &[1, 2][..])
    );
    assert_eq!(
        warnings(&newest),
        ["other revisions in this thread: v1, v2"]
    );
    for v in 1..=3 {
        let series = revision(&bytes, v).expect("a series");
        assert_eq!(series.revision, v);
        assert_eq!(series.patches[0].files[0].path.as_str(), format!("a{v}"));
    }
    let error = told(&revision(&bytes, 4).expect_err("no v4"));
    insta::assert_snapshot!(error);
}

#[test]
fn a_newest_revision_with_gaps_names_the_whole_one() {
    let mut letters = [thread(1), thread(2)].concat();
    letters.remove(4);
    insta::assert_snapshot!(refused(&letters), @"thread.mbox: 1/2 is missing: get the whole thread with `b4 mbox` or `b4 am`; v1 is whole: choose it with --revision 1");
    assert_eq!(revision(&mbox(&letters), 1).expect("a series").revision, 1);
}

#[test]
fn a_missing_patch_is_refused() {
    let eight = |missing: &[u32]| -> Vec<Letter> {
        let numbers = (1..=8).filter(|n| !missing.contains(n));
        numbers
            .map(|n| {
                patch(
                    &format!("p{n}"),
                    &format!("[PATCH {n}/8] mm: {n}"),
                    &format!("p{n}"),
                )
            })
            .collect()
    };
    assert!(read(&mbox(&eight(&[]))).is_ok());
    insta::assert_snapshot!(refused(&eight(&[3])), @"thread.mbox: 3/8 is missing: get the whole thread with `b4 mbox` or `b4 am`");
    insta::assert_snapshot!(refused(&eight(&[1, 8])), @"thread.mbox: 1/8, 8/8 are missing: get the whole thread with `b4 mbox` or `b4 am`");
    insta::assert_snapshot!(refused(&thread(1)[..1]), @"thread.mbox: 1/2, 2/2 are missing: get the whole thread with `b4 mbox` or `b4 am`");
    let one = patch("p", "[PATCH 007/900] mm: 7", "p");
    insta::assert_snapshot!(refused(&[one]), @"thread.mbox: 1/900, 2/900, 3/900, 4/900, 5/900, 6/900, 8/900, 9/900, 891 more are missing: get the whole thread with `b4 mbox` or `b4 am`");
}

#[test]
fn patches_that_are_there_twice() {
    let mut letters = thread(1);
    letters.push(letters[1].clone());
    letters.push(patch("a9", "[PATCH RESEND 1/2] mm: a", "a1"));
    let series = read(&mbox(&letters)).expect("a series");
    assert_eq!(subjects(&series), ["1 mm: a", "2 mm: b"]);
    insta::assert_snapshot!(warnings(&series).join("\n"));
    // Not the same, and nothing tells which one is meant.
    letters.push(patch("a8", "[PATCH 1/2] mm: a", "other").answers(&["c1"]));
    insta::assert_snapshot!(refused(&letters));
}

#[test]
fn several_series_of_one_revision_are_listed() {
    let other: Vec<Letter> = [
        Letter::new("o0", "[PATCH 0/3] net: slower", "It is.\n"),
        patch("o1", "[PATCH 1/3] net: a", "n1"),
        patch("o3", "[PATCH 3/3] net: c \u{1b}[2J", "n3"),
    ]
    .into();
    insta::assert_snapshot!(refused(&[thread(1), other.clone()].concat()), @r"
    thread.mbox: several series of one revision; keep the mails of one, or get it with `b4 am`. There is:
      v1, 2 of 2 patches: mm: faster
      v1, 2 of 3 patches: net: slower
    ");
    // The same numbers in another thread.
    let same: Vec<Letter> = thread(1)
        .into_iter()
        .map(|mut letter| {
            letter.id += "other";
            letter.subject = letter.subject.replace("mm", "net");
            letter.text = letter.text.replace("a1", "n1").replace("b1", "n2");
            letter
                .parents
                .iter_mut()
                .for_each(|id| *id = "<c1other@x>".to_owned());
            letter
        })
        .collect();
    insta::assert_snapshot!(refused(&[thread(1), same].concat()), @r"
    thread.mbox: several series of one revision; keep the mails of one, or get it with `b4 am`. There is:
      v1, 2 of 2 patches: mm: faster
      v1, 2 of 2 patches: net: faster
    ");
    let single = patch("s", "[PATCH] fs: single", "s");
    insta::assert_snapshot!(refused(&[thread(1), vec![single]].concat()), @r"
    thread.mbox: several series of one revision; keep the mails of one, or get it with `b4 am`. There is:
      v1, 1 patch: fs: single
      v1, 2 of 2 patches: mm: faster
    ");
}

#[test]
fn what_is_left_out_is_told() {
    let mut letters = thread(1);
    letters.push(patch("s", "[PATCH] mm: better so?", "s").answers(&["c1", "a1"]));
    letters.push(patch("t", "Another idea", "t"));
    letters.push(Letter::new("u", "Something else", "Hello.\n"));
    let series = read(&mbox(&letters)).expect("a series");
    insta::assert_snapshot!(warnings(&series).join("\n"));
}

#[test]
fn trailers_of_replies_go_to_what_they_answer() {
    let mut letters = [thread(1), thread(2)].concat();
    // v2 was sent as an answer to v1, so its mails name both.
    for letter in &mut letters[3..] {
        letter.parents.insert(0, "<c1@x>".to_owned());
    }
    let given = |name: &str| format!("> Why.\n{name}: R <r@x>\n-- \nSigned-off-by: no <n@x>\n");
    letters.push(reply("r1", &["c1", "c2", "a2"], &given("Reviewed-by")));
    letters.push(reply("r2", &["c1", "c2", "a2", "r1"], &given("Tested-by")));
    letters.push(reply("r3", &["c1", "c2"], &given("Acked-by")));
    letters.push(reply("r4", &["c1", "a1"], &given("Acked-by")));
    letters.push(reply("r5", &["c1", "c2", "b2"], &given("Reviewed-by")));
    letters.push(reply("r6", &["c1", "c2", "b2"], &given("Reviewed-by")));
    letters.push(reply("r7", &["elsewhere"], &given("Reviewed-by")));
    let series = read(&mbox(&letters)).expect("a series");
    let told = |series: &Series, patch: usize| -> Vec<String> {
        let line = |t: &klab_series::Trailer| format!("{} {:?}", t.name, t.reply);
        series.patches[patch].trailers.iter().map(line).collect()
    };
    let first = [
        "Signed-off-by None",
        "Reviewed-by Some(\"r1@x\")",
        "Tested-by Some(\"r2@x\")",
    ];
    assert_eq!(told(&series, 0), first);
    assert_eq!(
        told(&series, 1),
        ["Signed-off-by None", "Reviewed-by Some(\"r5@x\")"]
    );
    let cover = series.cover.expect("a cover letter").trailers;
    assert_eq!(cover.len(), 1);
    let old = revision(&mbox(&letters), 1).expect("a series");
    assert_eq!(
        told(&old, 0),
        ["Signed-off-by None", "Acked-by Some(\"r4@x\")"]
    );
}

#[test]
fn bases_and_prerequisites_are_read_where_git_and_b4_write_them() {
    let (base, id) = (
        "0123456789abcdef0123456789abcdef01234567",
        "89abcdef0123456789abcdef0123456789abcdef",
    );
    let mut letters = thread(1);
    letters[0].text =
        format!("It is.\n---\nbase-commit: {base}\nchange-id: 20230922-faster-0123\n");
    let end = format!(
        "\nbase-commit: {base}\nprerequisite-patch-id: {id}\nprerequisite-message-id: <x@y>\n-- \n"
    );
    letters[1].text = letters[1].text.replace("-- \n", &end);
    let series = read(&mbox(&letters)).expect("a series");
    let dependencies = &series.dependencies;
    assert_eq!(dependencies.base_commits, [base]);
    assert_eq!(
        (dependencies.patch_ids.len(), dependencies.others.len()),
        (1, 1)
    );
    assert_eq!(
        dependencies.change_id.as_deref(),
        Some("20230922-faster-0123")
    );
    assert_eq!(
        warnings(&series),
        ["2 prerequisite patches must be applied before this series"]
    );
    letters[0].text = letters[0].text.replace(base, id);
    let series = read(&mbox(&letters)).expect("a series");
    let expected = format!("two base commits are named, {id} and {base}: the first one is taken");
    assert_eq!(warnings(&series)[0], expected);
}

#[test]
fn prefixes_of_all_kinds() {
    for (prefix, revision, tags, rfc) in [
        ("[PATCH V2 N/2]", 2, &[][..], false),
        ("[PATCHN/2]", 1, &[], false),
        ("[PATCH v6,N/2]", 6, &[], false),
        ("[RFC PATCH vN1 N/2]", 1, &["vN1"], true),
        ("[RESEND PATCH v2 N/2]", 2, &[], false),
        ("[PATCH -next v3 N/2]", 3, &["-next"], false),
        ("[PATCH net-next N/2]", 1, &["net-next"], false),
        ("[linux-mm] [PATCH N/2]", 1, &["linux-mm"], false),
    ] {
        let subject = |n: &str| format!("{} mm: {n}", prefix.replace("N/2", &format!("{n}/2")));
        let letters = [
            patch("b", &subject("2"), "b"),
            patch("a", &subject("1"), "a"),
        ];
        let series = read(&mbox(&letters)).expect(prefix);
        assert_eq!(subjects(&series), ["1 mm: 1", "2 mm: 2"], "{prefix}");
        assert_eq!((series.revision, series.rfc), (revision, rfc), "{prefix}");
        assert_eq!(series.tags, tags, "{prefix}");
    }
}

#[test]
fn a_single_patch_needs_no_prefix_and_several_need_numbers() {
    let single = patch("s", "mm: single", "s");
    assert_eq!(
        subjects(&read(single.mail().as_bytes()).expect("a series")),
        ["1 mm: single"]
    );
    let two = [
        patch("a", "[PATCH v2] mm: a", "a"),
        patch("b", "[PATCH v2] mm: b", "b"),
    ];
    insta::assert_snapshot!(refused(&two), @"2 patches of one revision without numbers, the second in thread.mbox: mail 2 (line 25, <b@x>): number them with `git format-patch -n`");
    let model = read(single.mail().as_bytes()).expect("a series").to_model();
    assert_eq!(model.patches[0].message_id.as_deref(), Some("s@x"));
}

#[test]
fn the_author_is_named_in_the_text_when_another_one_sends() {
    let mut letter = patch("s", "[PATCH] mm: x", "s");
    letter.text = format!("From: Jürgen <j@example.org>\n\n{}", letter.text);
    letter.header = "Content-Type: text/plain; charset=utf-8\n".to_owned();
    let series = read(letter.mail().as_bytes()).expect("a series");
    assert_eq!(series.author.shown(), "Jürgen <j@example.org>");
    assert_eq!(
        series.patches[0].message,
        "Why.\n\nSigned-off-by: A <a@example.org>"
    );
}

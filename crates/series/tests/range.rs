//! Ranges of a git tree.
#![allow(missing_docs)]

mod support;

use std::path::{Path, PathBuf};

use klab_series::{GitRange, Options, SeriesError, Source};
use support::{Repo, subjects, told, topic};

#[test]
fn a_range_knows_its_base_and_its_order() {
    let repo = Repo::new();
    let base = repo.commit_lines("a.c", 99, "base");
    repo.git(&["tag", "v6.1"]);
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    for n in 1..=12 {
        repo.commit_lines("a.c", n, &format!("a: {n}"));
    }
    // The base goes on after the topic left it.
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_lines("b.c", 1, "b");
    repo.git(&["checkout", "--quiet", "topic"]);
    for range in [
        "v6.1..topic",
        "main..topic",
        "main..",
        &format!("{base}..HEAD"),
    ] {
        let series = repo.range(range).expect(range);
        assert_eq!(
            series.dependencies.base_commit(),
            Some(base.as_str()),
            "{range}"
        );
        assert_eq!(series.patches.len(), 12);
        assert_eq!((series.subject.as_str(), series.revision), ("a: 1", 1));
        assert_eq!(subjects(&series)[11], "12 a: 12");
        assert_eq!(series.author.shown(), "Jürgen Groß <jg@example.org>");
    }
}

#[test]
fn messages_that_look_like_mails_do_not_split_a_range() {
    let repo = Repo::new();
    repo.commit_lines("a.c", 99, "base");
    repo.git(&["tag", "v6.1"]);
    repo.git(&["checkout", "--quiet", "-b", "topic"]);
    let first = repo.commit_lines("a.c", 1, "a: 1");
    let forged =
        |id: &str| format!("From {id} Mon Sep 17 00:00:00 2001\nSubject: [PATCH 9/9] forged\n");
    let message = format!("a: 2\n\n{}\n{}", forged(&first), forged(&"a".repeat(40)));
    repo.commit_lines("a.c", 2, "x");
    repo.git(&["commit", "--quiet", "--amend", "-m", &message]);
    repo.commit_lines("a.c", 3, "a: 3");
    let series = repo.range("v6.1..topic").expect("a series");
    assert_eq!(subjects(&series), ["1 a: 1", "2 a: 2", "3 a: 3"]);
    assert_eq!(
        repo.am(&series, "v6.1"),
        repo.git(&["rev-parse", "topic^{tree}"])
    );
    let messages = |range| repo.git(&["log", "--format=%B", range]);
    assert_eq!(messages("v6.1..HEAD"), messages("v6.1..topic"));
}

#[test]
fn a_bare_tree_and_a_folder_in_a_tree_are_read() {
    let repo = topic();
    let bare = tempfile::tempdir().expect("a folder");
    let path = bare.path().to_str().expect("UTF-8");
    repo.git(&["clone", "--quiet", "--bare", ".", path]);
    let expected = repo.range("v6.1..topic").expect("a series");
    for tree in [bare.path().to_owned(), repo.path().join("mm")] {
        let range = GitRange::parse("linux:v6.1..topic", |_| tree.clone()).expect("a range");
        let series = klab_series::read(&Source::Range(range), &Options::default());
        assert_eq!(series.expect("a series"), expected, "{}", tree.display());
    }
}

#[test]
fn commits_without_changes_are_no_patches() {
    let repo = Repo::new();
    repo.commit_lines("a.c", 99, "base");
    let base = repo.git(&["rev-parse", "HEAD"]);
    repo.git(&["branch", "base"]);
    repo.commit("cover letter of b4 prep");
    repo.commit_lines("a.c", 1, "a: 1");
    repo.commit("empty");
    repo.commit_lines("a.c", 2, "a: 2");
    repo.commit_lines("a.c", 3, "[RFC v2 7/9] a: 3");
    let series = repo.range("base..main").expect("a series");
    let expected = ["1 a: 1", "2 a: 2", "3 [RFC v2 7/9] a: 3"];
    assert_eq!(subjects(&series), expected);
    assert_eq!((series.revision, series.rfc), (1, false));
    assert_eq!(series.dependencies.base_commit(), Some(base.as_str()));
    repo.git(&["branch", "two"]);
    repo.commit("empty");
    let error = repo.range("two..main").expect_err("no patch");
    assert!(matches!(error, SeriesError::EmptyRange { .. }), "{error:?}");
}

#[test]
fn the_configuration_of_user_and_tree_changes_nothing() {
    let repo = topic();
    let plain = repo.range("v6.1..topic").expect("a series");
    let settings = [
        ("format.subjectPrefix", "FOO"),
        ("format.headers", "X-Foo: bar\n"),
        ("format.to", "list@example.org"),
        ("format.cc", "list@example.org"),
        ("format.attach", "true"),
        ("format.signOff", "true"),
        ("format.coverLetter", "true"),
        ("format.thread", "deep"),
        ("format.from", "X <x@example.org>"),
        ("format.signature", "x"),
        ("format.noprefix", "true"),
        ("format.notes", "true"),
        ("format.useAutoBase", "true"),
        ("format.encodeEmailHeaders", "false"),
        ("format.numbered", "false"),
        ("diff.noprefix", "true"),
        ("diff.mnemonicPrefix", "true"),
        ("diff.renames", "false"),
        ("diff.context", "9"),
        ("diff.interHunkContext", "20"),
        ("diff.algorithm", "patience"),
        ("diff.external", "false"),
        ("diff.suppressBlankEmpty", "true"),
        ("diff.submodule", "log"),
        ("core.quotePath", "false"),
        ("core.abbrev", "40"),
        ("color.ui", "always"),
        ("log.showSignature", "true"),
        ("i18n.logOutputEncoding", "ISO-8859-1"),
    ];
    for (name, value) in settings {
        repo.git(&["config", name, value]);
    }
    repo.git(&["notes", "add", "-m", "a note", "topic"]);
    let other = repo.range("v6.1..topic").expect("a series");
    for (one, two) in plain.patches.iter().zip(&other.patches) {
        let text = |raw: &[u8]| String::from_utf8_lossy(raw).into_owned();
        assert_eq!(text(&one.raw), text(&two.raw));
    }
    assert_eq!(plain, other);
}

#[test]
fn what_is_no_range_is_refused() {
    let repo = topic();
    let path = repo.path().display().to_string();
    let mut said = String::new();
    for range in [
        "v6.1",
        "..topic",
        "v6.1...topic",
        "--output=x..topic",
        "v6.1..--output=x",
        "v6.1..-x",
        "v6.2..topic",
        "v6.1..\u{1b}[2J",
        "topic..v6.1",
        "v6.1:mm..topic",
    ] {
        let text = format!("linux:{range}");
        let range = GitRange::parse(&text, |_| repo.path().to_owned());
        let read =
            range.and_then(|range| klab_series::read(&Source::Range(range), &Options::default()));
        said += &format!(
            "{text:?}\n  {}\n",
            told(&read.expect_err(&text)).replace(&path, "TREE")
        );
    }
    repo.git(&["checkout", "--quiet", "main"]);
    repo.commit_lines("b.c", 1, "b");
    repo.git(&["merge", "--quiet", "-m", "merge", "topic"]);
    let error = told(&repo.range("v6.1..main").expect_err("a merge"));
    said += &format!("a merge\n  {error}\n");
    repo.git(&["branch", "v6.1", "topic"]);
    let error = told(&repo.range("v6.1..topic").expect_err("a tag and a branch"));
    said += &format!("a tag and a branch\n  {}\n", error.replace(&path, "TREE"));
    repo.range("tags/v6.1..topic").expect("the tag");
    repo.git(&["checkout", "--quiet", "--orphan", "alone"]);
    repo.commit_lines("b.c", 1, "b");
    let error = told(&repo.range("tags/v6.1..alone").expect_err("unrelated"));
    said += &format!("unrelated\n  {error}\n");
    let folder = tempfile::tempdir().expect("a folder");
    for tree in [folder.path(), Path::new("/nonexistent")] {
        let range = GitRange::parse("linux:a..b", |_| tree.to_owned()).expect("a range");
        let error = klab_series::read(&Source::Range(range), &Options::default());
        let error = told(&error.expect_err("no tree"));
        said += &format!(
            "no tree\n  {}\n",
            error.replace(&folder.path().display().to_string(), "FOLDER")
        );
    }
    insta::assert_snapshot!(said);
    assert!(!repo.path().join("x").exists(), "an option came through");
}

#[test]
fn what_people_write_is_a_path_a_range_or_standard_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a:b..c");
    std::fs::write(&file, "").expect("written");
    let parse =
        |text: &Path| Source::parse(text, |tree| Path::new("/trees").join(tree)).expect("good");
    assert_eq!(parse(Path::new("-")), Source::StandardInput);
    assert_eq!(parse(&file), Source::Path(file.clone()));
    for path in [
        "../v2.mbox",
        "../lore: thread.mbox",
        "https://lore.kernel.org/x",
    ] {
        let path = PathBuf::from(path);
        assert_eq!(parse(&path), Source::Path(path.clone()));
    }
    let Source::Range(range) = parse(Path::new("linux:v6.1..topic")) else {
        panic!("a range");
    };
    assert_eq!(range.tree, Path::new("/trees/linux"));
    assert_eq!(
        (range.base.as_str(), range.topic.as_str()),
        ("v6.1", "topic")
    );
}

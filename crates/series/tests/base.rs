//! The base of a series in a tree: named, or guessed.
#![allow(missing_docs)]

mod support;

use klab_series::{Base, BaseFinding, Series, SeriesError, find_base};
use support::{Repo, read, told};

/// Three releases and a maintainer's branch; each changes `a.c`, `b.c` only once.
fn releases() -> Repo {
    let repo = Repo::new();
    repo.commit_lines("b.c", 99, "b");
    for n in 1..=3 {
        repo.commit_lines("a.c", n, &format!("release {n}"));
        repo.git(&["tag", "-a", "-m", "x", &format!("v6.{n}")]);
        repo.commit_lines("c.c", n, &format!("after release {n}"));
    }
    repo
}

/// What format-patch makes of a topic that begins at `base` and changes `files`.
fn series(repo: &Repo, base: &str, files: &[&str], options: &[&str]) -> Series {
    repo.git(&["checkout", "--quiet", "--force", "-B", "topic", base]);
    for (n, file) in files.iter().enumerate() {
        repo.commit_lines(file, 10 + n, &format!("topic: {file}"));
    }
    let range = format!("{base}..topic");
    let bytes = repo.bytes(&[&["format-patch", "--stdout"], options, &[&range]].concat());
    repo.git(&["checkout", "--quiet", "main"]);
    repo.git(&["branch", "--quiet", "-D", "topic"]);
    read(&bytes).expect("a series")
}

fn find(repo: &Repo, series: &Series) -> BaseFinding {
    find_base(series, repo.path()).expect("a finding")
}

#[track_caller]
fn guessed(finding: &BaseFinding) -> (&str, usize, usize) {
    match &finding.base {
        Some(Base::Guessed {
            reference,
            matched,
            total,
            ..
        }) => (reference, *matched, *total),
        other => panic!("expected a guess: {other:?}"),
    }
}

fn warned(finding: &BaseFinding) -> Vec<String> {
    finding.warnings.iter().map(ToString::to_string).collect()
}

#[test]
fn a_named_base_is_taken() {
    let repo = releases();
    let commit = repo.git(&["rev-parse", "v6.2^{commit}"]);
    let series = series(&repo, "v6.2", &["a.c"], &["--base=v6.2"]);
    let finding = find(&repo, &series);
    assert_eq!(
        finding.base,
        Some(Base::Named {
            commit: commit.clone()
        })
    );
    assert_eq!(warned(&finding), [""; 0]);
    assert_eq!(finding.base.expect("a base").commit(), commit);
}

#[test]
fn a_named_base_that_does_not_fit_is_warned_of() {
    let repo = releases();
    let mut series = series(&repo, "v6.2", &["a.c", "b.c"], &[]);
    let wrong = repo.git(&["rev-parse", "v6.1^{commit}"]);
    series.dependencies.base_commits = vec![wrong.clone()];
    let expected = format!(
        "{wrong} has 1 of 2 files as the series expects them: it may not apply; name the base \
         with `--base` or `git format-patch --base`"
    );
    assert_eq!(warned(&find(&repo, &series)), [expected]);
}

#[test]
fn a_base_is_guessed_from_the_blobs() {
    let repo = releases();
    for n in 1..=2 {
        let series = series(
            &repo,
            &format!("v6.{n}"),
            &["a.c", "b.c", "a.c", "new.c", "new.c"],
            &[],
        );
        let finding = find(&repo, &series);
        // a.c is found once, new.c is made by the series.
        assert_eq!(guessed(&finding), (format!("v6.{n}").as_str(), 2, 2));
        let commit = repo.git(&["rev-parse", &format!("v6.{n}^{{commit}}")]);
        assert_eq!(finding.base.as_ref().expect("a base").commit(), commit);
        assert_eq!(warned(&finding), [""; 0]);
    }
}

#[test]
fn of_several_that_fit_the_newest_one_that_the_author_knew_is_taken() {
    let repo = releases();
    let series = series(&repo, "v6.2", &["b.c"], &[]);
    // b.c never changed: v6.1, v6.2, v6.3 and main fit; the topic was made after them all.
    assert_eq!(guessed(&find(&repo, &series)).0, "main");
    let mut earlier = series.clone();
    let sent = repo
        .git(&["log", "-1", "--format=%ct", "v6.2"])
        .parse::<i64>()
        .expect("a time");
    earlier.date = klab_model::Timestamp::from_second(sent + 1).ok();
    assert_eq!(guessed(&find(&repo, &earlier)).0, "v6.2");
    let mut oldest = series;
    oldest.date = klab_model::Timestamp::from_second(1).ok();
    assert_eq!(guessed(&find(&repo, &oldest)).0, "v6.1");
}

#[test]
fn a_guess_that_is_not_sure_is_warned_of() {
    let repo = releases();
    // The commit between two releases is on no tag and no branch.
    let series = series(&repo, "v6.3~1", &["a.c", "b.c", "c.c"], &[]);
    let finding = find(&repo, &series);
    let (reference, matched, total) = guessed(&finding);
    assert_eq!((matched, total), (2, 3));
    assert!(warned(&finding)[0].contains(&format!("{reference} has 2 of 3 files")));
}

#[test]
fn renames_are_looked_for_under_their_old_name() {
    let repo = releases();
    repo.git(&["checkout", "--quiet", "-b", "moved", "v6.2"]);
    repo.git(&["mv", "a.c", "moved a.c"]);
    repo.commit_lines("moved a.c", 7, "moved");
    repo.commit_lines("moved a.c", 8, "moved again");
    let bytes = repo.bytes(&[
        "format-patch",
        "--stdout",
        "--find-renames=1%",
        "v6.2..moved",
    ]);
    repo.git(&["checkout", "--quiet", "main"]);
    repo.git(&["branch", "--quiet", "-D", "moved"]);
    let series = read(&bytes).expect("a series");
    assert_eq!(guessed(&find(&repo, &series)), ("v6.2", 1, 1));
}

#[test]
fn a_base_that_is_not_there_is_told_and_guessed() {
    let repo = releases();
    let mut series = series(&repo, "v6.1", &["a.c"], &[]);
    let absent = "0123456789abcdef0123456789abcdef01234567";
    series.dependencies.base_commits = vec![absent.to_owned()];
    let finding = find(&repo, &series);
    assert_eq!(guessed(&finding).0, "v6.1");
    let expected = format!("base commit {absent} is not in the tree: fetch it");
    assert_eq!(warned(&finding), [expected]);
}

#[test]
fn a_series_for_another_tree_is_refused() {
    let (repo, other) = (releases(), Repo::new());
    other.commit_lines("else.c", 1, "else");
    let series = series(&repo, "v6.3", &["a.c", "b.c"], &[]);
    let error = find_base(&series, other.path()).expect_err("another tree");
    assert!(
        matches!(error, SeriesError::NoBase { references: 1, .. }),
        "{error:?}"
    );
    let error = told(&error).replace(&other.path().display().to_string(), "TREE");
    insta::assert_snapshot!(error);
    // The blobs are somewhere in the tree, but in no tag and no branch.
    let old = releases();
    let series = self::series(&old, "v6.1", &["a.c"], &[]);
    old.git(&["tag", "-d", "v6.1", "v6.2"]);
    let error = find_base(&series, old.path()).expect_err("no reference has it");
    assert!(
        matches!(error, SeriesError::NoBase { references: 2, .. }),
        "{error:?}"
    );
}

#[test]
fn without_files_that_were_there_nothing_is_guessed() {
    let repo = releases();
    let series = series(&repo, "v6.3", &["new.c"], &[]);
    let finding = find(&repo, &series);
    assert_eq!(finding.base, None);
    assert!(warned(&finding)[0].starts_with("the series names no base commit"));
}

#[test]
fn tags_of_other_things_and_unborn_branches_are_no_bases() {
    let repo = releases();
    let series = series(&repo, "v6.1", &["a.c"], &[]);
    repo.git(&["tag", "tree", "v6.1^{tree}"]);
    repo.git(&["tag", "blob", "v6.1:a.c"]);
    assert_eq!(guessed(&find(&repo, &series)).0, "v6.1");
    let unborn = Repo::new();
    let error = find_base(&series, unborn.path()).expect_err("nothing there");
    assert!(
        matches!(error, SeriesError::NoBase { references: 0, .. }),
        "{error:?}"
    );
}

use super::*;

const HEAD: &str =
    "diff --git a/mm/x.c b/mm/x.c\nindex 1234567..89abcde 100644\n--- a/mm/x.c\n+++ b/mm/x.c\n";

fn read(text: &str) -> Result<Diff, At> {
    parse(text)
}

fn files(text: &str) -> Vec<FileChange> {
    read(text)
        .unwrap_or_else(|at| panic!("{text}\n{at:?}"))
        .files
}

/// The line (from 0) and what is wrong there.
fn refused(text: &str) -> (usize, String) {
    let at = read(text).expect_err(text);
    (at.line, at.problem.to_string())
}

#[test]
fn a_hunk_is_counted() {
    let text =
        format!("Why.\n---\n{HEAD}@@ -1,3 +1,4 @@ int f(void)\n a\n-b\n+c\n+d\n\n-- \n2.47\n");
    let diff = read(&text).expect("whole");
    assert_eq!(diff.line, 2);
    assert!(text[..diff.span.start].ends_with("---\n"));
    assert_eq!(&text[diff.span.end..], "-- \n2.47\n");
    let file = &diff.files[0];
    assert_eq!((file.insertions, file.deletions), (2, 1));
    assert_eq!(file.old_blob.as_ref().map(BlobId::as_str), Some("1234567"));
    assert_eq!(
        (file.old_mode, file.kind),
        (Some(Mode::Regular), ChangeKind::Modified)
    );
}

#[test]
fn kinds_of_changes() {
    let text = "diff --git a/new b/new\nnew file mode 100755\nindex 0000000..89abcde\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n\
         diff --git a/empty b/empty\nnew file mode 100644\nindex 0000000..e69de29\n\
         diff --git a/gone b/gone\ndeleted file mode 100644\nindex 89abcde..0000000\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\
         diff --git a/mode b/mode\nold mode 100644\nnew mode 100755\n\
         diff --git a/old b/moved\nsimilarity index 90%\nrename from old\nrename to moved\nindex 1234567..89abcde 100644\n--- a/old\n+++ b/moved\n@@ -1 +1 @@\n-x\n+y\n\
         diff --git a/old b/copy\nsimilarity index 100%\ncopy from old\ncopy to copy\n\
         diff --git a/bin b/bin\nindex 1234567..89abcde 100644\nGIT binary patch\nliteral 4\nLcmZ?wWMTjS0001U\n\nliteral 0\nHcmV?d00001\n\n\
         diff --git a/link b/link\nnew file mode 120000\nindex 0000000..89abcde\n--- /dev/null\n+++ b/link\n@@ -0,0 +1 @@\n+mode\n\\ No newline at end of file\n";
    let told: Vec<String> = files(text)
        .iter()
        .map(|file| {
            let old = file.old_path.as_ref().map_or("", PatchPath::as_str);
            let link = file.link_target.as_deref().unwrap_or_default();
            format!(
                "{:?} {old} {} {:?} +{} -{} {} {link}",
                file.kind, file.path, file.new_mode, file.insertions, file.deletions, file.binary
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            "Added  new Some(Executable) +1 -0 false ",
            "Added  empty Some(Regular) +0 -0 false ",
            "Deleted  gone None +0 -1 false ",
            "Modified  mode Some(Executable) +0 -0 false ",
            "Renamed old moved Some(Regular) +1 -1 false ",
            "Copied old copy None +0 -0 false ",
            "Modified  bin Some(Regular) +0 -0 true ",
            "Added  link Some(Symlink) +1 -0 false mode",
        ]
    );
}

#[test]
fn diffs_that_git_did_not_write() {
    let text = "--- linux.orig/mm/x.c\t2023-01-01\n+++ linux/mm/x.c\t2023-01-02\n@@ -1 +1 @@\n-a\n+b\n\
                --- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+x\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n";
    let told: Vec<String> = files(text)
        .iter()
        .map(|file| format!("{:?} {}", file.kind, file.path))
        .collect();
    assert_eq!(told, ["Modified mm/x.c", "Added new", "Deleted gone"]);
}

#[test]
fn damaged_hunks() {
    let with = |hunk: &str| refused(&format!("{HEAD}{hunk}"));
    for (hunk, line, problem) in [
        (
            "@@ -1,2 +1,2 @@\n a\n-b\n",
            6,
            "ends early, 0 old and 1 new lines",
        ),
        (
            "@@ -1,9 +1,9 @@\n a\n-b\n+c",
            7,
            "ends early, 7 old and 7 new lines are missing",
        ),
        ("@@ -1 +1 @@\n-a\n+b\n+c\n", 7, "more lines than its header"),
        (
            "@@ -1 +1 @@\n-a\n-b\n",
            6,
            "more lines than its header \"@@ -1 +1 @@\"",
        ),
        ("@@ -1 +1 @@\nwrapped\n", 5, "found \"wrapped\""),
        ("@@ -1 +1 @@\n\u{a0}a\n", 5, "no-break spaces"),
        ("@@ -x +1 @@\n", 4, "expected a hunk header"),
        ("@@ -1 +99999999999 @@\n", 4, "expected a hunk header"),
    ] {
        let (at, told) = with(hunk);
        assert!(told.contains(problem), "{hunk}: {told}");
        assert_eq!(at, line, "{hunk}: {told}");
    }
    let (at, told) = refused("diff --git a/x b/x\nindex 1..2\nx\n@@ -1 +1 @@\n-a\n+b\n");
    assert!(told.contains("without the file"), "{told}");
    assert_eq!(at, 3);
}

#[test]
fn damaged_binary_patches() {
    let with = |body: &str| {
        refused(&format!(
            "diff --git a/b b/b\nindex 1234567..89abcde\n{body}"
        ))
    };
    for (body, problem) in [
        ("GIT binary patch\n", "has no content"),
        ("GIT binary patch\nliteral 4\n\n", "has no content"),
        (
            "GIT binary patch\nliteral 4\nLcmZ?wWMTjS0001U",
            "is cut short",
        ),
        (
            "GIT binary patch\nliteral 4\nLcmZ?wWMTjS000\n\n",
            "not git's base85",
        ),
        (
            "GIT binary patch\nliteral 4\n?cmZ?wWMTjS0001U\n\n",
            "not git's base85",
        ),
        (
            "Binary files a/b and b/b differ\n",
            "make it with `git format-patch --binary`",
        ),
    ] {
        let (_, told) = with(body);
        assert!(told.contains(problem), "{body}: {told}");
    }
}

#[test]
fn paths_that_lead_elsewhere() {
    let hunk = "@@ -1 +1 @@\n-a\n+b\n";
    for (text, problem) in [
        (
            "diff --git a/../../etc/x b/../../etc/x\n".to_owned(),
            "holds \"..\"",
        ),
        (
            "diff --git a/x b/x\nrename from x\nrename to ../y\n".to_owned(),
            "holds \"..\"",
        ),
        (
            "diff --git a/.git/hooks/x b/.git/hooks/x\n".to_owned(),
            "inside of .git",
        ),
        (
            "diff --git \"a/\\033[2J\" \"b/\\033[2J\"\n".to_owned(),
            "control characters",
        ),
        (
            "diff --git \"a/\\374\" \"b/\\374\"\n".to_owned(),
            "not UTF-8",
        ),
        (
            format!("--- /etc/passwd\n+++ /etc/passwd\n{hunk}"),
            "is absolute",
        ),
        (
            format!("diff --git a/x b/x\n--- a/x\n+++ b/y\n{hunk}"),
            "expected \"x\" as before",
        ),
        (
            format!("diff --git a/x b/x\n--- /etc/x\n+++ b/x\n{hunk}"),
            "is absolute",
        ),
        (
            "diff --git mm/x.c mm/x.c\n".to_owned(),
            "git format-patch --default-prefix",
        ),
        (
            "diff --git a/x b/y\n".to_owned(),
            "cannot read the two paths",
        ),
        (
            "diff --git a/x b/x\nnew file mode 104755\n".to_owned(),
            "file mode \"104755\"",
        ),
    ] {
        let (_, told) = refused(&text);
        assert!(told.contains(problem), "{text}: {told}");
    }
}

#[test]
fn text_after_a_hunk_is_noticed() {
    let text = format!("{HEAD}@@ -1 +1 @@\n-a\n+b\n________\nlist footer\n");
    assert_eq!(read(&text).expect("whole").trailing, ["________"]);
    assert_eq!(read("no diff here\n").expect("text"), Diff::default());
}

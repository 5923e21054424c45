//! No text in the repository depends on one machine or one network.

use std::process::Command;

use klab_testkit::{repository, skip};

/// Texts that must not stand in the repository. Written in two parts, so that this file
/// does not hold them itself.
const FORBIDDEN: [(&str, &str, &str); 8] = [
    ("/wo", "rk/", "a path of one machine"),
    ("/ro", "ot/", "a path of one machine"),
    ("/tm", "p/t-", "a path of one machine"),
    ("deb.debian", ".org", "a package host"),
    ("index.crates", ".io", "a package host"),
    ("static.crates", ".io", "a package host"),
    ("pypi", ".org", "a package host"),
    ("registry.npmjs", ".org", "a package host"),
];

/// What is wrong with a line, if anything.
fn objection(line: &str) -> Option<String> {
    FORBIDDEN.iter().find_map(|(start, end, what)| {
        let text = format!("{start}{end}");
        let wrong = line.match_indices(&text).any(|(at, _)| {
            // `a/work/b` is a relative path, and `/root/$name` is below an early user space's
            // mount point of the root file system.
            let inner = line[..at].ends_with(|c: char| c.is_alphanumeric() || "-_.}".contains(c));
            !(start.starts_with('/') && (inner || line[at + text.len()..].starts_with('$')))
        });
        wrong.then(|| format!("{what}: {text}"))
    })
}

#[test]
fn no_file_names_a_path_of_one_machine_or_a_package_host() {
    let listed = Command::new("git")
        .args(["ls-files", "-z"])
        .current_dir(repository())
        .output();
    let listed = match listed {
        Ok(output) if output.status.success() => output.stdout,
        _ => {
            return skip(
                "no_file_names_a_path_of_one_machine_or_a_package_host",
                "not a git work tree",
            );
        }
    };
    let listed = String::from_utf8(listed).expect("file names are UTF-8");
    let mut wrong = Vec::new();
    for name in listed.split('\0').filter(|name| !name.is_empty()) {
        // Binary test data and files that are removed but not yet committed are no text.
        let Ok(text) = std::fs::read_to_string(repository().join(name)) else {
            continue;
        };
        for (number, line) in text.lines().enumerate() {
            if let Some(what) = objection(line) {
                wrong.push(format!("{name}:{}: {what}", number + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn paths_and_hosts_are_recognised() {
    for (start, end, _) in FORBIDDEN {
        assert!(objection(&format!("see \"{start}{end}x\"")).is_some());
    }
    assert_eq!(objection("a/work/b /workshop /root/$dir"), None);
}

//! Bad plan files and exactly what is said about them.
//!
//! `tests/data/bad/*.yaml` are the files, `*.txt` beside them the diagnostics: one line
//! each, then as a terminal shows them. To accept a change of wording run the test with
//! `KLAB_ACCEPT=1` and read the difference.

use std::fs;
use std::path::{Path, PathBuf};

use klab_config::parse_plan_bytes;

fn bad_files() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/bad");
    let entries = fs::read_dir(folder).expect("the folder of bad files");
    let mut files: Vec<PathBuf> = entries
        .map(|entry| entry.expect("a readable folder").path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml"))
        .collect();
    files.sort();
    files
}

#[test]
fn bad_files_are_told_what_is_wrong() {
    let accept = std::env::var_os("KLAB_ACCEPT").is_some();
    let mut wrong = Vec::new();
    let files = bad_files();
    assert!(files.len() > 20);
    for path in files {
        let name = path
            .file_name()
            .expect("a file")
            .to_string_lossy()
            .into_owned();
        let bytes = fs::read(&path).expect("a readable file");
        let Err(diagnostics) = parse_plan_bytes(&name, &bytes) else {
            wrong.push(format!("{name} was accepted"));
            continue;
        };
        let found = format!("{diagnostics}\n\n{}", diagnostics.render());
        let golden = path.with_extension("txt");
        if accept {
            fs::write(&golden, found).expect("a writable folder");
        } else if fs::read_to_string(&golden).ok().as_ref() != Some(&found) {
            wrong.push(format!("{name}:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n\n"));
}

//! The folder of results of one configuration: kept between variants, and never trusted after a
//! build that was cut off.
//!
//! A compiler that is killed leaves half an object file, which is newer than its source and thus
//! fine for `make`. Therefore a mark lies in the folder while `make` runs. Whoever finds one
//! removes every file that is newer than the mark; what was whole before stays.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::{BuildError, Commit, TotalFrom, Watcher, files};

/// The mark of a build that is not over.
const MARK: &str = ".klab-building";
/// What is remembered of the last build.
const STATE: &str = ".klab-state.json";

/// Steps per symbol that is switched on, for the first build of a configuration: measured with
/// `virtual-x86_64.config` on Linux 6.1. Other configurations may need twice or half of that.
const STEPS_PER_SYMBOL: f64 = 2.6;
/// Steps of a build in which something changed, besides the objects themselves: archives of the
/// folders above, the linking of vmlinux in its stages, and the image. Measured as above.
const STEPS_OF_LINKING: u64 = 32;

/// What is remembered of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
struct State {
    /// The tree of files that was built last, as git names it.
    tree: Option<String>,
    /// Steps of the last build from nothing.
    full_steps: Option<u64>,
}

/// A folder that `make` writes into.
#[derive(Debug)]
pub(crate) struct BuildFolder {
    path: PathBuf,
    state: State,
}

/// How many steps a build is expected to take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) total: u64,
    pub(crate) from: TotalFrom,
}

impl BuildFolder {
    /// Opens the folder, removing what a build that was cut off may have left half-written.
    pub(crate) fn open(path: PathBuf, watcher: &mut Watcher<'_>) -> Result<Self, BuildError> {
        files::make_folder(&path)?;
        let state = files::read_if_there(&path.join(STATE))?;
        let mut folder = Self {
            state: state
                .and_then(|json| serde_json::from_slice(&json).ok())
                .unwrap_or_default(),
            path,
        };
        let mark = folder.path.join(MARK);
        if let Ok(since) = fs::metadata(&mark).and_then(|meta| meta.modified()) {
            let removed = remove_newer(&folder.path, since)?;
            watcher.note(format!(
                "the last build was cut off: {removed} file(s) that it may have left half-written \
                 are made again"
            ));
            folder.state.tree = None;
            folder.save()?;
            files::remove(&mark)?;
        }
        Ok(folder)
    }

    /// Puts the configuration in place; its time stays if it is the same.
    pub(crate) fn set_config(&self, text: &str) -> Result<(), BuildError> {
        let path = self.path.join(".config");
        if files::read_if_there(&path)?.as_deref() == Some(text.as_bytes()) {
            return Ok(());
        }
        files::write_atomic(&path, text.as_bytes())
    }

    /// The tree of files that was built here last.
    pub(crate) fn last_tree(&self) -> Option<&str> {
        self.state.tree.as_deref()
    }

    /// How much there is to do, given the paths that changed since the last build.
    pub(crate) fn estimate(
        &self,
        changed: Option<&[String]>,
        symbols_on: usize,
    ) -> Result<Estimate, BuildError> {
        if let Some(changed) = changed {
            let objects = dependents(&self.path, changed)?;
            let linking = if objects > 0 { STEPS_OF_LINKING } else { 0 };
            return Ok(Estimate {
                total: objects + linking,
                from: TotalFrom::Dependencies,
            });
        }
        if let Some(total) = self.state.full_steps {
            return Ok(Estimate {
                total,
                from: TotalFrom::EarlierBuild,
            });
        }
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an estimate of some thousands"
        )]
        let total = (symbols_on as f64 * STEPS_PER_SYMBOL) as u64;
        Ok(Estimate {
            total,
            from: TotalFrom::Configuration,
        })
    }

    /// `make` begins.
    pub(crate) fn begin(&mut self) -> Result<(), BuildError> {
        let mark = self.path.join(MARK);
        File::create(&mark)
            .and_then(|file| file.sync_all())
            .map_err(BuildError::io("write", mark))
    }

    /// `make` has ended by itself, well or not: every file is whole.
    pub(crate) fn end(&mut self, built: Option<(&Commit, u64)>) -> Result<(), BuildError> {
        if let Some((commit, steps)) = built {
            if self.state.tree.is_none() {
                self.state.full_steps = Some(steps);
            }
            self.state.tree = Some(commit.tree.to_string());
        }
        self.save()?;
        // What `make` takes for done must be on the disk before the mark is gone.
        File::open(&self.path)
            .and_then(|folder| Ok(rustix::fs::syncfs(&folder)?))
            .map_err(BuildError::io("sync", &self.path))?;
        files::remove(&self.path.join(MARK))
    }

    fn save(&self) -> Result<(), BuildError> {
        let json = serde_json::to_vec(&self.state).unwrap_or_default();
        files::write_atomic(&self.path.join(STATE), &json)
    }
}

/// Removes the folders below `folder` whose last build ended longer than `unused` ago.
pub(crate) fn prune(folder: &Path, unused: Duration) -> Result<usize, BuildError> {
    let mut removed = 0;
    if !folder.is_dir() {
        return Ok(0);
    }
    let read = BuildError::io("read the folder", folder);
    let entries = fs::read_dir(folder).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    for entry in entries.map_err(read)? {
        let state = fs::metadata(entry.path().join(STATE));
        let time = state.and_then(|meta| meta.modified());
        let age = time.map(|time| time.elapsed().unwrap_or_default());
        // One without a state was never built in to the end.
        if age.map_or(true, |age| age >= unused) {
            files::remove(&entry.path())?;
            removed += 1;
        }
    }
    Ok(removed)
}

/// Removes every file that is not older than `since`, the mark and the state left out.
fn remove_newer(folder: &Path, since: SystemTime) -> Result<usize, BuildError> {
    let mut newer = Vec::new();
    files::walk(folder, &mut |entry| {
        let name = entry.file_name();
        if name != MARK && name != STATE && entry.metadata()?.modified()? >= since {
            newer.push(entry.path());
        }
        Ok(())
    })?;
    for path in &newer {
        files::remove(path)?;
    }
    Ok(newer.len())
}

/// How many objects were made from one of these files: the build leaves a `.NAME.o.cmd` beside
/// each object, with every file that it was made from on a line of its own.
fn dependents(folder: &Path, changed: &[String]) -> Result<u64, BuildError> {
    let mut count = 0;
    files::walk(folder, &mut |entry| {
        if entry.file_name().to_string_lossy().ends_with(".o.cmd") {
            let text = match fs::read(entry.path()) {
                Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
                Err(error) => return Err(error),
            };
            if text.lines().any(|line| names_one(line, changed)) {
                count += 1;
            }
        }
        Ok(())
    })?;
    Ok(count)
}

fn names_one(line: &str, changed: &[String]) -> bool {
    let line = line.trim_end_matches('\\').trim();
    let path = match line.split_once(" := ") {
        Some((name, path)) if name.starts_with("source_") => path,
        _ => line,
    };
    changed.iter().any(|changed| {
        path.strip_suffix(changed.as_str())
            .is_some_and(|before| before.is_empty() || before.ends_with('/'))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cancel, ObjectId};

    fn open(path: &Path) -> BuildFolder {
        let cancel = Cancel::new().expect("token");
        BuildFolder::open(path.to_owned(), &mut Watcher::new(&cancel, &mut |_| {})).expect("opens")
    }

    fn commit(digit: &str) -> Commit {
        let id = ObjectId::parse(&digit.repeat(40)).expect("an id");
        Commit {
            tree: id.clone(),
            id,
        }
    }

    #[test]
    fn what_a_cut_off_build_wrote_is_removed_and_what_was_whole_stays() {
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("b");
        let mut folder = open(&path);
        fs::create_dir(path.join("mm")).expect("folder");
        fs::write(path.join("mm/old.o"), "whole").expect("file");
        folder.begin().expect("begins");
        folder.end(Some((&commit("a"), 7))).expect("ends");
        std::thread::sleep(std::time::Duration::from_millis(30));
        folder.begin().expect("begins");
        std::thread::sleep(std::time::Duration::from_millis(30));
        fs::write(path.join("mm/new.o"), "ha").expect("file");
        let again = open(&path);
        assert!(path.join("mm/old.o").exists() && !path.join("mm/new.o").exists());
        assert_eq!(again.last_tree(), None);
        let estimate = again.estimate(None, 10).expect("estimate");
        assert_eq!(
            (estimate.total, estimate.from),
            (7, TotalFrom::EarlierBuild)
        );
        // Once is enough.
        fs::write(path.join("mm/new.o"), "whole").expect("file");
        open(&path);
        assert!(path.join("mm/new.o").exists());
    }

    #[test]
    fn the_estimate_is_as_good_as_what_is_known() {
        let dir = tempfile::tempdir().expect("folder");
        let path = dir.path().join("b");
        let mut folder = open(&path);
        let first = folder.estimate(None, 100).expect("estimate");
        assert_eq!(first.from, TotalFrom::Configuration);
        fs::create_dir(path.join("mm")).expect("folder");
        let cmd = "savedcmd_mm/a.o := gcc -c -o mm/a.o /src/mm/a.c\n\nsource_mm/a.o := \
                   /src/mm/a.c\n\ndeps_mm/a.o := \\\n  /src/include/linux/mm.h \\\n";
        fs::write(path.join("mm/.a.o.cmd"), cmd).expect("file");
        folder.begin().expect("begins");
        folder.end(Some((&commit("a"), 200))).expect("ends");
        for (changed, objects) in [
            ("mm/a.c", 1),
            ("include/linux/mm.h", 1),
            ("linux/xmm.h", 0),
            ("m.h", 0),
            ("README", 0),
        ] {
            let found = folder
                .estimate(Some(&[changed.to_owned()]), 100)
                .expect("estimate");
            let total = objects + if objects > 0 { STEPS_OF_LINKING } else { 0 };
            assert_eq!(
                (found.total, found.from),
                (total, TotalFrom::Dependencies),
                "{changed}"
            );
        }
    }

    #[test]
    fn the_same_configuration_keeps_its_time() {
        let dir = tempfile::tempdir().expect("folder");
        let folder = open(&dir.path().join("b"));
        let time = || {
            let meta = fs::metadata(folder.path.join(".config")).expect("file");
            meta.modified().expect("time")
        };
        folder.set_config("CONFIG_A=y\n").expect("writes");
        let first = time();
        std::thread::sleep(std::time::Duration::from_millis(30));
        folder.set_config("CONFIG_A=y\n").expect("writes");
        assert_eq!(time(), first);
        folder.set_config("CONFIG_A=m\n").expect("writes");
        assert!(time() > first);
    }
}

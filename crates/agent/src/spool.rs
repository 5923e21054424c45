//! The spool: files of trials that wait to be stored by the controller.

use std::fs::File;
use std::path::{Path, PathBuf};

use klab_model::{ArtifactKind, ArtifactName, Digest, TrialIndex};
use serde::{Deserialize, Serialize};

/// A file in the spool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SpoolFile {
    /// The trial it belongs to; `None` for files of the run.
    pub trial: Option<TrialIndex>,
    /// Its name as an artifact.
    pub name: ArtifactName,
    /// What it is for.
    pub kind: ArtifactKind,
    /// Digest of its bytes.
    pub digest: Digest,
    /// Size in bytes.
    pub size: u64,
}

/// The folder of spooled files of the attempt at hand.
#[derive(Debug, Clone)]
pub struct Spool {
    folder: PathBuf,
}

impl Spool {
    /// The spool below the agent's state folder.
    ///
    /// # Errors
    /// If the folder cannot be made.
    pub fn open(state: &Path) -> std::io::Result<Self> {
        let folder = state.join("spool");
        std::fs::create_dir_all(&folder)?;
        Ok(Self { folder })
    }

    /// Moves a finished file in; it is on disk when this returns.
    ///
    /// # Errors
    /// If the file cannot be read, moved or synced.
    pub fn take(
        &self,
        from: &Path,
        trial: Option<TrialIndex>,
        name: ArtifactName,
        kind: ArtifactKind,
    ) -> std::io::Result<SpoolFile> {
        let (digest, size) = Digest::of_reader(File::open(from)?)?;
        let file = SpoolFile {
            trial,
            name,
            kind,
            digest,
            size,
        };
        let to = self.path(&file);
        File::open(from)?.sync_all()?;
        // Spool and trial folder share a file system, so this is one atomic step.
        std::fs::rename(from, &to)?;
        crate::journal::sync_folder(&self.folder)?;
        Ok(file)
    }

    /// Where the bytes of `file` are.
    pub fn path(&self, file: &SpoolFile) -> PathBuf {
        let trial = file
            .trial
            .map_or_else(|| "run".to_owned(), |trial| format!("t{trial}"));
        self.folder.join(format!("{trial}.{}", file.name))
    }

    /// Forgets a file that the controller has stored.
    ///
    /// # Errors
    /// If it cannot be removed; that it is gone already is no error.
    pub fn remove(&self, file: &SpoolFile) -> std::io::Result<()> {
        match std::fs::remove_file(self.path(file)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Empties the spool: the attempt is closed.
    ///
    /// # Errors
    /// If it cannot be emptied.
    pub fn clear(&self) -> std::io::Result<()> {
        for entry in std::fs::read_dir(&self.folder)? {
            std::fs::remove_file(entry?.path())?;
        }
        Ok(())
    }
}

//! `klab artifacts`.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

use klab_model::{ArtifactId, ArtifactName, Digest, Digester};
use klab_proto::v1;
use klab_report::Table;

use crate::args::{ArtifactCommand, Global};
use crate::client::{Client, every_page, of_job};
use crate::exit::{CliError, ExitCode};
use crate::{json, output};

pub(crate) async fn run(global: &Global, command: ArtifactCommand) -> Result<ExitCode, CliError> {
    let client = Client::connect(global).await?;
    match command {
        ArtifactCommand::List { job } => {
            let id = client.job_id(&job).await?;
            list(global, &all(&client, &id).await?)?;
        }
        ArtifactCommand::Get {
            what,
            output: folder,
        } => {
            let paths = get(&client, &what, &folder).await?;
            print_paths(global, &paths)?;
        }
    }
    Ok(ExitCode::Done)
}

/// Gets what `text` names, an artifact or a job.
async fn get(client: &Client, text: &str, folder: &Path) -> Result<Vec<PathBuf>, CliError> {
    if text.parse::<ArtifactId>().is_err() {
        return fetch_all(client, &client.job_id(text).await?, folder).await;
    }
    if let Some(artifact) = one(client, text).await? {
        return Ok(vec![fetch(client, &artifact, folder).await?]);
    }
    // Jobs have ids of the same shape.
    match all(client, text).await {
        Err(error) if error.code == ExitCode::Usage => Err(CliError::usage(format!(
            "there is no job and no artifact {text:?}; `klab jobs` and `klab artifacts list JOB` \
             list them"
        ))),
        artifacts => fetch_these(client, &artifacts?, folder).await,
    }
}

fn print_paths(global: &Global, paths: &[PathBuf]) -> Result<(), CliError> {
    if paths.is_empty() && !global.quiet {
        output::say("there are no artifacts yet");
    }
    let mut paths = paths.iter().map(|path| path.display().to_string());
    if global.json {
        output::json(&paths.collect())
    } else {
        paths.try_for_each(output::line)
    }
}

/// The artifact with this id, if there is one.
async fn one(client: &Client, id: &str) -> Result<Option<v1::Artifact>, CliError> {
    let request = v1::GetArtifactRequest { id: id.to_owned() };
    match client.artifacts().get_artifact(request).await {
        Ok(response) => Ok(response.into_inner().artifact),
        Err(status) if status.code() == tonic::Code::NotFound => Ok(None),
        Err(status) => Err(status.into()),
    }
}

/// Every artifact of a job.
pub(crate) async fn all(client: &Client, job: &str) -> Result<Vec<v1::Artifact>, CliError> {
    every_page(async |page_token| {
        let request = v1::ListArtifactsRequest {
            job: job.to_owned(),
            page_size: 500,
            page_token,
        };
        let answer = client.artifacts().list_artifacts(request).await;
        let page = answer.map_err(of_job(job))?.into_inner();
        Ok((page.artifacts, page.next_page_token))
    })
    .await
}

fn list(global: &Global, artifacts: &[v1::Artifact]) -> Result<(), CliError> {
    if global.json {
        return output::json(&artifacts.iter().map(json::artifact).collect());
    }
    let mut table = Table::new([
        "ARTIFACT", "RUN", "ATTEMPT", "TRIAL", "NAME", "KIND", "BYTES",
    ]);
    for artifact in artifacts {
        table.row([
            artifact.id.clone(),
            artifact.run.clone(),
            artifact.attempt.to_string(),
            artifact
                .trial
                .map_or_else(|| "-".into(), |trial| (trial + 1).to_string()),
            artifact.name.clone(),
            artifact.kind.clone(),
            artifact.size.to_string(),
        ]);
    }
    output::line(table.to_string())
}

/// Gets every artifact of a job into folders by run, attempt and trial.
pub(crate) async fn fetch_all(
    client: &Client,
    job: &str,
    folder: &Path,
) -> Result<Vec<PathBuf>, CliError> {
    fetch_these(client, &all(client, job).await?, folder).await
}

async fn fetch_these(
    client: &Client,
    artifacts: &[v1::Artifact],
    folder: &Path,
) -> Result<Vec<PathBuf>, CliError> {
    let mut paths = Vec::new();
    for artifact in artifacts {
        paths.push(fetch(client, artifact, folder).await?);
    }
    Ok(paths)
}

/// Where an artifact goes. The controller's names are checked: a path must not leave `folder`.
fn place(artifact: &v1::Artifact, folder: &Path) -> Result<PathBuf, CliError> {
    let bad = |what: &str| CliError::infrastructure(format!("the controller sent a bad {what}"));
    let name = ArtifactName::parse(&artifact.name).map_err(|_| bad("artifact name"))?;
    let run: klab_model::RunId = artifact.run.parse().map_err(|_| bad("run id"))?;
    let mut path = folder
        .join(run.to_string())
        .join(format!("attempt-{}", artifact.attempt));
    if let Some(trial) = artifact.trial {
        path.push(format!("trial-{}", trial + 1));
    }
    Ok(path.join(name.as_str()))
}

/// Gets one artifact. A part from an earlier try is continued; the digest decides.
async fn fetch(
    client: &Client,
    artifact: &v1::Artifact,
    folder: &Path,
) -> Result<PathBuf, CliError> {
    let path = place(artifact, folder)?;
    let wanted = Digest::from_bytes(&artifact.digest).map_err(CliError::infrastructure)?;
    if digested(&path).is_ok_and(|(digester, _)| digester.finish() == wanted) {
        return Ok(path);
    }
    loop {
        let mut part = Part::open(&path, artifact.size)?;
        let continued = part.size > 0;
        part.receive(client, artifact).await?;
        if part.digester.finish() == wanted {
            part.keep(&path)?;
            return Ok(path);
        }
        std::fs::remove_file(&part.path).map_err(CliError::file("remove", &part.path))?;
        if !continued {
            return Err(CliError::infrastructure(format!(
                "artifact {} arrived damaged (digest differs); get it again",
                artifact.name
            )));
        }
        // What an earlier try left behind was bad: now from the start.
    }
}

/// The digest of a file so far, and its size in bytes. Traces may be larger than memory, so
/// it is read in pieces.
fn digested(path: &Path) -> std::io::Result<(Digester, u64)> {
    let mut digester = Digester::new();
    let size = std::io::copy(&mut File::open(path)?, &mut digester)?;
    Ok((digester, size))
}

/// What has arrived of an artifact.
struct Part {
    path: PathBuf,
    file: File,
    digester: Digester,
    size: u64,
}

impl Part {
    /// The part beside `path` that an earlier try left behind, or an empty one.
    fn open(path: &Path, whole: u64) -> Result<Self, CliError> {
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(CliError::file("make the folder", parent))?;
        }
        // No artifact has a name that starts with a dot.
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let path = path.with_file_name(format!(".{name}.part"));
        let write = CliError::file("write", &path);
        let mut options = File::options();
        let file = options.create(true).append(true).open(&path);
        let file = file.map_err(&write)?;
        let (mut digester, mut size) = digested(&path).map_err(&write)?;
        if size > whole {
            file.set_len(0).map_err(&write)?;
            (digester, size) = (Digester::new(), 0);
        }
        drop(write);
        Ok(Self {
            path,
            file,
            digester,
            size,
        })
    }

    /// Gets what is missing.
    async fn receive(&mut self, client: &Client, artifact: &v1::Artifact) -> Result<(), CliError> {
        if self.size < artifact.size {
            let request = v1::ReadArtifactRequest {
                id: artifact.id.clone(),
                offset: self.size,
            };
            let answer = client.artifacts().read_artifact(request).await?;
            let mut stream = answer.into_inner();
            while let Some(chunk) = stream.message().await?
                && self.size <= artifact.size
            {
                self.digester.update(&chunk.data);
                let written = self.file.write_all(&chunk.data);
                written.map_err(CliError::file("write", &self.path))?;
                self.size += chunk.data.len() as u64;
            }
        }
        let synced = self.file.sync_all();
        synced.map_err(CliError::file("write", &self.path))
    }

    fn keep(&self, path: &Path) -> Result<(), CliError> {
        std::fs::rename(&self.path, path).map_err(CliError::file("write", path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_from_outside_cannot_leave_the_folder() {
        let mut artifact = v1::Artifact {
            run: "01890a5d-ac96-774b-bcce-b302099a8057".into(),
            attempt: 1,
            trial: Some(0),
            name: "trace.txt".into(),
            ..v1::Artifact::default()
        };
        let path = place(&artifact, Path::new("out")).expect("legal");
        let expected = "out/01890a5d-ac96-774b-bcce-b302099a8057/attempt-1/trial-1/trace.txt";
        assert_eq!(path, Path::new(expected));
        artifact.name = "../../etc/passwd".into();
        assert!(place(&artifact, Path::new("out")).is_err());
    }

    #[test]
    fn a_part_is_continued_unless_it_is_longer_than_the_whole() {
        let folder = tempfile::tempdir().expect("folder");
        let path = folder.path().join("run/trace.txt");
        let mut part = Part::open(&path, 3).expect("a new one");
        assert_eq!(part.size, 0);
        // Longer than the buffer with which it is read again.
        let bytes = vec![7; 100_000];
        part.file.write_all(&bytes).expect("written");
        let part = Part::open(&path, 100_000).expect("it is there");
        assert_eq!(
            (part.size, part.digester.finish()),
            (100_000, Digest::of(&bytes))
        );
        let part = Part::open(&path, 99_999).expect("it is there");
        assert_eq!((part.size, part.digester.finish()), (0, Digest::of(b"")));
    }
}

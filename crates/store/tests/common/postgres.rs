//! A PostgreSQL server of the test's own, from the installed package.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, geteuid, kill_process};
use sqlx::{AnyConnection, AssertSqlSafe, Connection};
use tempfile::TempDir;

/// A running server; it ends with the value.
pub(crate) struct Server {
    child: Child,
    folder: TempDir,
    databases: u32,
}

impl Server {
    /// Starts a server; `None` where PostgreSQL is not installed.
    pub(crate) async fn start() -> Option<Server> {
        let (version, programs) = programs()?;
        let folder = tempfile::tempdir().expect("a temporary folder");
        let data = folder.path().join("data");
        if geteuid().is_root() {
            run(Command::new("chown").arg("postgres").arg(folder.path()));
        }
        let mut initdb = as_postgres(&programs.join("initdb"));
        initdb.args(["-A", "trust", "-U", "klab", "-E", "UTF8", "--no-sync"]);
        initdb.args(["--locale", "C.UTF-8"]);
        if version >= 15 {
            // A locale that sorts unlike bytes, so that an order left to the server shows.
            initdb.args(["--locale-provider", "icu", "--icu-locale", "en"]);
        }
        run(initdb.arg("-D").arg(&data));
        let mut postgres = as_postgres(&programs.join("postgres"));
        postgres.arg("-D").arg(&data).arg("-k").arg(folder.path());
        postgres.args(["-c", "listen_addresses=", "-c", "fsync=off"]);
        let child = postgres
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let mut server = Server {
            child,
            folder,
            databases: 0,
        };
        server.wait_until_ready().await;
        Some(server)
    }

    fn url(&self, database: &str) -> String {
        format!(
            "postgres://klab@localhost/{database}?host={}",
            self.folder.path().display()
        )
    }

    async fn wait_until_ready(&mut self) {
        sqlx::any::install_default_drivers();
        for _ in 0..600 {
            if AnyConnection::connect(&self.url("postgres")).await.is_ok() {
                return;
            }
            let ended = self.child.try_wait().expect("the server can be asked");
            assert!(ended.is_none(), "the server ended early: {ended:?}");
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("the server did not answer within a minute");
    }

    /// The URL of a new empty database.
    pub(crate) async fn database(&mut self) -> String {
        self.databases += 1;
        let name = format!("lab{}", self.databases);
        let mut connection = AnyConnection::connect(&self.url("postgres"))
            .await
            .expect("the server answers");
        sqlx::raw_sql(AssertSqlSafe(format!("CREATE DATABASE {name}")))
            .execute(&mut connection)
            .await
            .expect("a new database");
        self.url(&name)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SIGINT is PostgreSQL's fast shutdown.
        let pid = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw);
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::INT);
        }
        let _ = self.child.wait();
    }
}

/// The version and folder of the newest server that is installed.
fn programs() -> Option<(u32, PathBuf)> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").ok()?;
    versions
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let version = folder.file_name()?.to_str()?.parse().ok()?;
            Some((version, folder.join("bin")))
        })
        .filter(|(_, bin)| bin.join("initdb").exists() && bin.join("postgres").exists())
        .max()
}

/// The server refuses to run as root. `setpriv` becomes the program, so its process id is
/// the program's.
fn as_postgres(program: &Path) -> Command {
    if geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args([
            "--reuid",
            "postgres",
            "--regid",
            "postgres",
            "--clear-groups",
        ]);
        command.arg(program).current_dir("/");
        command
    } else {
        Command::new(program)
    }
}

fn run(command: &mut Command) {
    let output = command.output().expect("the program starts");
    assert!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

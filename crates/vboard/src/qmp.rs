//! QEMU's machine protocol, as much of it as a power switch needs.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Error as IoError, Result as IoResult, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// File name of the monitor's socket in a board's folder.
pub(crate) const SOCKET: &str = "qmp.sock";

/// How long QEMU may take to answer.
const ANSWER: Duration = Duration::from_secs(20);

/// Sends one command without arguments to the board in `dir` and waits for its answer.
pub(crate) fn execute(dir: &Path, command: &str) -> IoResult<()> {
    let mut lines = connect(dir)?;
    answer(&mut lines, "QMP")?;
    for command in ["qmp_capabilities", command] {
        let line = serde_json::json!({ "execute": command }).to_string();
        lines.get_mut().write_all(line.as_bytes())?;
        answer(&mut lines, "return")?;
    }
    Ok(())
}

/// Connects through the folder's descriptor: socket addresses are limited to 107 bytes, paths of
/// boards are not.
fn connect(dir: &Path) -> IoResult<BufReader<UnixStream>> {
    let folder = File::open(dir)?;
    let stream = UnixStream::connect(format!("/proc/self/fd/{}/{SOCKET}", folder.as_raw_fd()))?;
    stream.set_read_timeout(Some(ANSWER))?;
    stream.set_write_timeout(Some(ANSWER))?;
    Ok(BufReader::new(stream))
}

/// Reads to the next message with this key; events in between are passed over.
fn answer(lines: &mut BufReader<UnixStream>, key: &str) -> IoResult<()> {
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line)? == 0 {
            return Err(IoError::other("QEMU closed the connection"));
        }
        let message: serde_json::Value = serde_json::from_str(&line)?;
        if message.get(key).is_some() {
            return Ok(());
        }
        if let Some(error) = message.get("error") {
            return Err(IoError::other(format!("QEMU refused: {error}")));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A stand-in for QEMU that greets and answers each line with the next of `replies`.
    fn monitor(
        listener: UnixListener,
        replies: Vec<&'static str>,
    ) -> std::thread::JoinHandle<Vec<String>> {
        std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("client");
            let mut writer = stream.try_clone().expect("clone");
            writer.write_all(b"{\"QMP\": {}}\n").expect("greeting");
            let mut commands =
                serde_json::Deserializer::from_reader(stream).into_iter::<serde_json::Value>();
            let answered = replies.into_iter().map(|reply| {
                let command = commands.next().expect("command").expect("JSON");
                writer.write_all(reply.as_bytes()).expect("reply");
                command["execute"].as_str().expect("name").to_owned()
            });
            answered.collect()
        })
    }

    #[test]
    fn commands_are_answered_past_events() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let listener = UnixListener::bind(dir.path().join(SOCKET)).expect("bind");
        let event = "{\"event\": \"RESET\"}\n{\"return\": {}}\n";
        let seen = monitor(listener, vec!["{\"return\": {}}\n", event]);
        execute(dir.path(), "system_reset").expect("answered");
        assert_eq!(
            seen.join().expect("monitor"),
            ["qmp_capabilities", "system_reset"]
        );
    }

    #[test]
    fn a_refusal_is_an_error() {
        let dir = tempfile::tempdir().expect("temporary folder");
        let listener = UnixListener::bind(dir.path().join(SOCKET)).expect("bind");
        let seen = monitor(
            listener,
            vec!["{\"return\": {}}\n", "{\"error\": {\"desc\": \"no\"}}\n"],
        );
        let error = execute(dir.path(), "nonsense").expect_err("refused");
        assert!(error.to_string().contains("QEMU refused"), "{error}");
        seen.join().expect("monitor");
    }
}

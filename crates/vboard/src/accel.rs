//! KVM or TCG: found out by booting a guest, because a device node proves nothing.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::Read as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::command::tool;
use crate::{BaseImage, Error, Result};

/// A guest under working KVM needs about two seconds; under KVM that does not work it hangs.
const DEADLINE: Duration = Duration::from_secs(15);

/// How long a result stands, in seconds.
const KEEP_S: u64 = 24 * 3600;

/// What the probing guest prints from its initrd.
const MARK: &[u8] = b"klab-probe: userspace";

/// How QEMU runs guest code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AccelKind {
    /// The host's processor runs it.
    Kvm,
    /// QEMU translates it; works everywhere, several times slower.
    Tcg,
}

impl fmt::Display for AccelKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Kvm => "KVM",
            Self::Tcg => "TCG",
        })
    }
}

/// The accelerator and why it was chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Accel {
    /// What to use.
    pub kind: AccelKind,
    /// Why, for people.
    pub reason: String,
}

impl Accel {
    /// TCG without a probe.
    #[must_use]
    pub fn tcg() -> Self {
        Self {
            kind: AccelKind::Tcg,
            reason: "chosen by the caller".to_owned(),
        }
    }

    /// KVM without a probe.
    #[must_use]
    pub fn kvm() -> Self {
        Self {
            kind: AccelKind::Kvm,
            reason: "chosen by the caller".to_owned(),
        }
    }
}

/// A stored probe.
#[derive(Debug, Serialize, Deserialize)]
struct Stored {
    accel: Accel,
    /// When it was probed, in seconds since 1970.
    at: u64,
}

/// The stored result if it is fresh, else a new probe.
pub(crate) fn cached(root: &Path, image: &BaseImage) -> Result<Accel> {
    let machine = image.machine();
    if !machine.is_of_host() {
        return Ok(Accel {
            kind: AccelKind::Tcg,
            reason: format!("{machine} code on {}", std::env::consts::ARCH),
        });
    }
    let file = root.join("accel.json");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |d| d.as_secs());
    if let Some(accel) = std::fs::read_to_string(&file)
        .ok()
        .and_then(|text| fresh(&text, now))
    {
        return Ok(accel);
    }
    let accel = probe(root, image)?;
    tracing::info!(kind = ?accel.kind, reason = accel.reason, "probed the accelerator");
    let stored = Stored { accel, at: now };
    let text = serde_json::to_string(&stored).map_err(|e| Error::io("write", &file)(e.into()))?;
    std::fs::write(&file, text).map_err(Error::io("write", &file))?;
    Ok(stored.accel)
}

fn fresh(text: &str, now: u64) -> Option<Accel> {
    let stored: Stored = serde_json::from_str(text).ok()?;
    // A time in the future comes from a clock that was set back: not fresh either.
    now.checked_sub(stored.at)
        .filter(|age| *age < KEEP_S)
        .map(|_| stored.accel)
}

/// Boots the image's kernel to its initrd under KVM, within the deadline.
fn probe(root: &Path, image: &BaseImage) -> Result<Accel> {
    let tcg = |reason: String| {
        Ok(Accel {
            kind: AccelKind::Tcg,
            reason,
        })
    };
    if let Err(error) = OpenOptions::new().read(true).write(true).open("/dev/kvm") {
        return tcg(format!("/dev/kvm cannot be opened: {error}"));
    }
    let console = root.join(format!("probe-{}.log", std::process::id()));
    let log = File::create(&console).map_err(Error::io("create", &console))?;
    let mut command = tool("setpriv");
    command.args([
        "--pdeathsig",
        "KILL",
        image.machine().qemu(),
        "-nodefaults",
        "-no-user-config",
    ]);
    command.args([
        "-display",
        "none",
        "-no-reboot",
        "-m",
        "256",
        "-serial",
        "stdio",
    ]);
    command
        .args(image.machine().accel_args(AccelKind::Kvm))
        .arg("-kernel")
        .arg(image.vmlinuz())
        .arg("-initrd")
        .arg(image.initrd());
    command.args(["-append", "console=ttyS0 quiet panic=-1 klab.probe"]);
    let started = Instant::now();
    let mut child = command
        .stdout(log)
        .stderr(Stdio::piped())
        .spawn()
        .map_err(Error::io("start", "qemu"))?;
    let mut marked = false;
    let mut ended = false;
    while !marked && !ended && started.elapsed() < DEADLINE {
        ended = child
            .try_wait()
            .map_err(Error::io("wait for", "qemu"))?
            .is_some();
        let text = std::fs::read(&console).map_err(Error::io("read", &console))?;
        marked = text.windows(MARK.len()).any(|w| w == MARK);
        std::thread::sleep(Duration::from_millis(50));
    }
    let took = started.elapsed().as_secs_f64();
    let _ = child.kill();
    child.wait().map_err(Error::io("wait for", "qemu"))?;
    std::fs::remove_file(&console).map_err(Error::io("remove", &console))?;
    if marked {
        return Ok(Accel {
            kind: AccelKind::Kvm,
            reason: format!("a guest under KVM booted in {took:.1} s"),
        });
    }
    if ended {
        let mut said = String::new();
        if let Some(mut stderr) = child.stderr.take() {
            // What cannot be read is missing from the reason, no more.
            let _ = stderr.read_to_string(&mut said);
        }
        let said = said.lines().next().unwrap_or("no message").trim();
        return tcg(format!("QEMU ended by itself under KVM: {said}"));
    }
    tcg(format!(
        "a guest under KVM did not boot within {} s",
        DEADLINE.as_secs()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_stands_for_a_day() {
        let stored = Stored {
            accel: Accel::kvm(),
            at: 1000,
        };
        let text = serde_json::to_string(&stored).expect("JSON");
        assert_eq!(fresh(&text, 1000 + KEEP_S - 1), Some(Accel::kvm()));
        assert_eq!(fresh(&text, 1000 + KEEP_S), None);
        assert_eq!(fresh(&text, 999), None);
        assert_eq!(fresh("{", 1000), None);
    }
}

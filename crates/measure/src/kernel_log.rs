//! The log of the kernel that runs, as dmesg prints it.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The longest record that the kernel gives in one read (CONSOLE_EXT_LOG_MAX in printk).
const LONGEST_RECORD: usize = 8192;
/// Bytes that are kept: the largest buffer of a usual configuration, with stamps.
const MOST: u64 = 16 << 20;

/// Writes what the kernel below `sysroot` has logged to `to`: one line per message with its
/// time since the boot in seconds. `false` if that kernel shows no log (`/dev/kmsg`).
///
/// Records are those of Documentation/ABI/testing/dev-kmsg.
///
/// # Errors
/// If the log cannot be read or the file cannot be written.
pub fn kernel_log(sysroot: &Path, to: &Path) -> io::Result<bool> {
    let kmsg = OpenOptions::new()
        .read(true)
        .custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed())
        .open(sysroot.join("dev/kmsg"));
    let kmsg = match kmsg {
        Ok(kmsg) => kmsg,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    let mut file = io::BufWriter::new(File::create(to)?);
    copy(kmsg, &mut file)?;
    file.flush()?;
    Ok(true)
}

fn copy(mut kmsg: File, to: &mut impl Write) -> io::Result<()> {
    let mut record = vec![0; LONGEST_RECORD];
    let mut written = 0;
    while written < MOST {
        match kmsg.read(&mut record) {
            Ok(0) => break,
            Ok(length) => written += line(&record[..length], to)?,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            // Overwritten while it was read; the next read goes on with what is there.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Writes `LEVEL,SEQUENCE,MICROSECONDS,FLAGS;TEXT` as dmesg does; gives the bytes written.
/// Lines after the first one name devices and are left out.
fn line(record: &[u8], to: &mut impl Write) -> io::Result<u64> {
    let first = record
        .split(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let Some(at) = first.iter().position(|byte| *byte == b';') else {
        return Ok(0);
    };
    let prefix = String::from_utf8_lossy(&first[..at]);
    let micros: u64 = prefix
        .split(',')
        .nth(2)
        .and_then(|micros| micros.parse().ok())
        .unwrap_or_default();
    let stamp = format!("[{:5}.{:06}] ", micros / 1_000_000, micros % 1_000_000);
    to.write_all(stamp.as_bytes())?;
    to.write_all(&first[at + 1..])?;
    to.write_all(b"\n")?;
    Ok((stamp.len() + first.len() - at) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(record: &str) -> String {
        let mut text = Vec::new();
        line(record.as_bytes(), &mut text).expect("memory can be written");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn records_become_lines_as_dmesg_prints_them() {
        for (record, expected) in [
            (
                "6,0,0,-;Linux version 6.1.0\n",
                "[    0.000000] Linux version 6.1.0\n",
            ),
            (
                "4,339,5140900,-,caller=T1;NET: a; b\n SUBSYSTEM=pci\n DEVICE=+pci:0\n",
                "[    5.140900] NET: a; b\n",
            ),
            ("6,1,86400000007,c;late\n", "[86400.000007] late\n"),
            ("6,1,x,-;no time\n", "[    0.000000] no time\n"),
            ("no record\n", ""),
            ("", ""),
        ] {
            assert_eq!(lines(record), expected);
        }
    }

    #[test]
    fn a_kernel_without_a_log_is_told_apart_from_one_that_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let to = folder.path().join("dmesg.log");
        assert!(!kernel_log(folder.path(), &to).expect("no log"));
        assert!(!to.exists());
        std::fs::create_dir_all(folder.path().join("dev/kmsg")).expect("a folder");
        kernel_log(folder.path(), &to).expect_err("a folder is no log");
    }
}

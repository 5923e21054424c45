//! Facts about the board and about the environment of a trial, as the kernel tells them.

use std::io::Read as _;
use std::path::Path;

use klab_model::{BoardFacts, Capability, TrialFacts};

use crate::sysfs;

/// Facts about the board that runs below `sysroot`.
#[must_use]
pub fn board_facts(
    sysroot: &Path,
    agent_version: &str,
    capabilities: Vec<Capability>,
) -> BoardFacts {
    let read = |name: &str| sysfs::read(&sysroot.join(name)).unwrap_or_default();
    BoardFacts {
        model: model(sysroot),
        cpus: count_cpus(&read("sys/devices/system/cpu/online")),
        memory_kib: memory_kib(&read("proc/meminfo")),
        release: read("proc/sys/kernel/osrelease"),
        boot_id: read("proc/sys/kernel/random/boot_id"),
        agent_version: agent_version.to_owned(),
        capabilities,
    }
}

/// The environment of a trial that begins now.
#[must_use]
pub fn trial_facts(sysroot: &Path) -> TrialFacts {
    let read = |name: &str| sysfs::read(&sysroot.join(name)).unwrap_or_default();
    TrialFacts {
        cmdline: read("proc/cmdline"),
        clocksource: read("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        governors: governors(sysroot),
        mitigations: sysfs::entries(&sysroot.join("sys/devices/system/cpu/vulnerabilities"))
            .iter()
            .filter_map(|path| Some((sysfs::name(path), sysfs::read(path)?)))
            .collect(),
        temperatures: temperatures(sysroot),
        notes: Vec::new(),
    }
}

/// Bytes of a kernel's configuration file that are read; those of distributions have 300 KiB.
const LONGEST_CONFIG: u64 = 1 << 20;

/// The configuration file of the kernel that runs: as the kernel shows it, or as distributions
/// install it. Text, or text packed with gzip.
#[must_use]
pub fn kernel_config(sysroot: &Path) -> Option<Vec<u8>> {
    let release = sysfs::read(&sysroot.join("proc/sys/kernel/osrelease"))?;
    [
        "proc/config.gz".to_owned(),
        format!("boot/config-{release}"),
        format!("lib/modules/{release}/config"),
    ]
    .iter()
    .find_map(|name| {
        let mut bytes = Vec::new();
        let file = std::fs::File::open(sysroot.join(name)).ok()?;
        let read = file.take(LONGEST_CONFIG + 1).read_to_end(&mut bytes).ok()?;
        (read > 0 && read as u64 <= LONGEST_CONFIG).then_some(bytes)
    })
}

/// Device tree first: boards with one often have poor DMI tables.
fn model(sysroot: &Path) -> String {
    let read = |name: &str| sysfs::read(&sysroot.join(name)).filter(|text| !text.is_empty());
    if let Some(model) = read("proc/device-tree/model") {
        return model;
    }
    let dmi = |name: &str| read(&format!("sys/class/dmi/id/{name}"));
    match (dmi("sys_vendor"), dmi("product_name")) {
        (Some(vendor), Some(product)) if product.starts_with(&vendor) => product,
        (Some(vendor), Some(product)) => format!("{vendor} {product}"),
        (None, Some(one)) | (Some(one), None) => one,
        (None, None) => "unknown".to_owned(),
    }
}

/// CPUs in a list such as `0-3,8`.
fn count_cpus(list: &str) -> u32 {
    list.split(',')
        .filter_map(|part| {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
            last.checked_sub(first)?.checked_add(1)
        })
        .fold(0, u32::saturating_add)
}

fn memory_kib(meminfo: &str) -> u64 {
    meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:"))
        .and_then(|rest| rest.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

fn cpus(sysroot: &Path) -> impl Iterator<Item = std::path::PathBuf> {
    sysfs::entries(&sysroot.join("sys/devices/system/cpu"))
        .into_iter()
        .filter(|path| {
            sysfs::name(path)
                .strip_prefix("cpu")
                .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
        })
}

fn governors(sysroot: &Path) -> Vec<String> {
    cpus(sysroot)
        .map(|cpu| sysfs::read(&cpu.join("cpufreq/scaling_governor")))
        .map(|governor| governor.unwrap_or_else(|| "none".to_owned()))
        .collect()
}

fn temperatures(sysroot: &Path) -> Vec<(String, i64)> {
    sysfs::entries(&sysroot.join("sys/class/thermal"))
        .into_iter()
        .filter(|zone| sysfs::name(zone).starts_with("thermal_zone"))
        .filter_map(|zone| {
            let kind = sysfs::read(&zone.join("type")).unwrap_or_else(|| sysfs::name(&zone));
            Some((kind, sysfs::read(&zone.join("temp"))?.parse().ok()?))
        })
        .collect()
}

/// What may change during a trial and then spoils it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Condition {
    throttles: u64,
    taint: u64,
    oom_kills: u64,
    frequencies: Vec<u64>,
    temperatures: Vec<(String, i64)>,
}

impl Condition {
    pub(crate) fn read(sysroot: &Path) -> Self {
        let number = |path: &Path| sysfs::read(path).and_then(|text| text.parse::<u64>().ok());
        Self {
            throttles: cpus(sysroot)
                .filter_map(|cpu| number(&cpu.join("thermal_throttle/core_throttle_count")))
                .sum(),
            taint: number(&sysroot.join("proc/sys/kernel/tainted")).unwrap_or(0),
            oom_kills: sysfs::read(&sysroot.join("proc/vmstat"))
                .and_then(|text| {
                    text.lines()
                        .find_map(|l| l.strip_prefix("oom_kill ")?.parse().ok())
                })
                .unwrap_or(0),
            frequencies: cpus(sysroot)
                .filter_map(|cpu| number(&cpu.join("cpufreq/scaling_cur_freq")))
                .collect(),
            temperatures: temperatures(sysroot),
        }
    }

    /// What changed until `after`, one sentence each.
    pub(crate) fn changes(&self, after: &Self) -> Vec<String> {
        let mut notes = Vec::new();
        let throttled = after.throttles.saturating_sub(self.throttles);
        if throttled > 0 {
            notes.push(format!("CPUs were throttled {throttled} times"));
        }
        if after.taint != self.taint {
            notes.push(format!(
                "the kernel became tainted: {} before, {} after; look at its log",
                self.taint, after.taint
            ));
        }
        let oom_kills = after.oom_kills.saturating_sub(self.oom_kills);
        if oom_kills > 0 {
            notes.push(format!("memory ran out: {oom_kills} processes were killed"));
        }
        let mhz = |khz: &[u64]| {
            khz.iter()
                .map(|khz| (khz / 1000).to_string())
                .collect::<Vec<_>>()
                .join(" ")
        };
        if !after.frequencies.is_empty() {
            notes.push(format!(
                "CPU frequencies in MHz: {} before, {} after",
                mhz(&self.frequencies),
                mhz(&after.frequencies)
            ));
        }
        for (zone, degrees) in &after.temperatures {
            notes.push(format!(
                "{zone}: {}.{} °C after",
                degrees / 1000,
                degrees.abs() % 1000 / 100
            ));
        }
        notes
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn put(root: &Path, name: &str, text: &str) {
        let path = root.join(name);
        fs::create_dir_all(path.parent().expect("parent")).expect("folder");
        fs::write(path, text).expect("file");
    }

    #[test]
    fn the_configuration_is_found_where_kernels_and_distributions_have_it() {
        let root = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| put(root.path(), name, text);
        put("lib/modules/6.12.0/config", "CONFIG_A=y\n");
        assert_eq!(kernel_config(root.path()), None, "of which release?");
        put("proc/sys/kernel/osrelease", "6.12.0\n");
        let found = |expected: &str| {
            let found = kernel_config(root.path()).expect("found");
            assert_eq!(String::from_utf8_lossy(&found), expected);
        };
        found("CONFIG_A=y\n");
        put("boot/config-6.1.0", "CONFIG_OTHER=y\n");
        put("boot/config-6.12.0", "CONFIG_B=y\n");
        found("CONFIG_B=y\n");
        put("proc/config.gz", "packed");
        found("packed");
        // What no configuration file is, is passed over.
        put("proc/config.gz", &"x".repeat(1 << 21));
        found("CONFIG_B=y\n");
    }

    #[test]
    fn the_board_is_read_from_proc_and_sys() {
        let root = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| put(root.path(), name, text);
        put("sys/class/dmi/id/sys_vendor", "QEMU\n");
        put("sys/class/dmi/id/product_name", "Standard PC\n");
        put("sys/devices/system/cpu/online", "0-2,8\n");
        put("proc/meminfo", "MemTotal:        1000 kB\nMemFree: 1 kB\n");
        put("proc/sys/kernel/osrelease", "6.12.0\n");
        put("proc/sys/kernel/random/boot_id", "b1\n");
        let facts = board_facts(root.path(), "0.1.0", Vec::new());
        assert_eq!(facts.model, "QEMU Standard PC");
        assert_eq!((facts.cpus, facts.memory_kib), (4, 1000));
        assert_eq!((&*facts.release, &*facts.boot_id), ("6.12.0", "b1"));
        put("proc/device-tree/model", "StarFive VisionFive 2\0");
        assert_eq!(
            board_facts(root.path(), "", Vec::new()).model,
            "StarFive VisionFive 2"
        );
    }

    #[test]
    fn an_empty_board_gives_no_error() {
        let root = tempfile::tempdir().expect("folder");
        assert_eq!(board_facts(root.path(), "", Vec::new()).model, "unknown");
        assert_eq!(trial_facts(root.path()), TrialFacts::default());
        assert_eq!(count_cpus("x,3-1,,5"), 1);
    }

    #[test]
    fn the_environment_of_a_trial_is_recorded() {
        let root = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| put(root.path(), name, text);
        put("proc/cmdline", "ro quiet\n");
        put(
            "sys/devices/system/clocksource/clocksource0/current_clocksource",
            "tsc\n",
        );
        for cpu in [0, 2, 10] {
            put(&format!("sys/devices/system/cpu/cpu{cpu}/online"), "1");
        }
        put(
            "sys/devices/system/cpu/cpu10/cpufreq/scaling_governor",
            "performance\n",
        );
        put("sys/devices/system/cpu/cpufreq/x", "");
        put(
            "sys/devices/system/cpu/vulnerabilities/meltdown",
            "Not affected\n",
        );
        put("sys/class/thermal/thermal_zone0/type", "cpu-thermal\n");
        put("sys/class/thermal/thermal_zone0/temp", "45123\n");
        let facts = trial_facts(root.path());
        assert_eq!((&*facts.cmdline, &*facts.clocksource), ("ro quiet", "tsc"));
        assert_eq!(facts.governors, ["none", "none", "performance"]);
        assert_eq!(
            facts.mitigations,
            [("meltdown".to_owned(), "Not affected".to_owned())]
        );
        assert_eq!(facts.temperatures, [("cpu-thermal".to_owned(), 45123)]);
    }

    #[test]
    fn throttling_during_a_trial_is_told() {
        let root = tempfile::tempdir().expect("folder");
        let put = |name: &str, text: &str| put(root.path(), name, text);
        let throttle = "sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count";
        put(throttle, "3");
        put("proc/sys/kernel/tainted", "0");
        let before = Condition::read(root.path());
        assert_eq!(before.changes(&before), Vec::<String>::new());
        put(throttle, "5");
        put("proc/sys/kernel/tainted", "512");
        let notes = before.changes(&Condition::read(root.path()));
        assert_eq!(notes[0], "CPUs were throttled 2 times");
        assert!(notes[1].contains("512 after"), "{}", notes[1]);
    }
}

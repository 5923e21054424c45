//! What kernels reported in the logs of a job's runs.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use bytes::Bytes;
use klab_klog::{Blame, Boot, Kind, LogReport};
use klab_model::{Artifact, BootMarker, JobId, RunId, VariantName};
use klab_proto::status::Reason;
use klab_store::{JobRecord, KernelReport, KernelReportRecord, ParserId};

use super::{Engine, EngineError};

/// Reports that are kept of one log. One that floods its log says no more with more of them.
const MOST_OF_A_LOG: usize = 100;
/// Notes on kernel reports under a comparison.
const MOST_NOTES: usize = 10;

/// The kernel reports of a job, each one once per attempt: a console and the kernel's own log
/// tell the same.
#[derive(Debug)]
pub(crate) struct KernelReports(Vec<KernelReportRecord>);

impl KernelReports {
    fn new(mut all: Vec<KernelReportRecord>) -> Self {
        let mut known = HashSet::new();
        all.retain(|record| {
            let said = &record.said;
            let title = said.report.title.clone();
            known.insert((
                record.run,
                record.attempt,
                said.candidate,
                said.report.kind,
                title,
            ))
        });
        all.sort_by_key(|record| !record.said.candidate);
        Self(all)
    }

    /// Those of the runs' own kernels first, otherwise by run, attempt and log.
    pub(crate) fn into_records(self) -> Vec<KernelReportRecord> {
        self.0
    }

    /// What a comparison has to say: each fault of which a variant's kernel is to blame, and
    /// in how many of its runs it came.
    pub(super) fn notes(&self, record: &JobRecord) -> Vec<String> {
        type Runs<'a> = BTreeMap<&'a VariantName, BTreeSet<RunId>>;
        let mut faults: Vec<((Kind, &str), Runs<'_>)> = Vec::new();
        let own = self.0.iter().filter(|record| {
            record.said.candidate && record.said.report.kind.blame() == Blame::Kernel
        });
        for record in own {
            let key = (record.said.report.kind, record.said.report.title.as_str());
            let at = faults.iter().position(|(known, _)| *known == key);
            let at = at.unwrap_or_else(|| {
                faults.push((key, Runs::new()));
                faults.len() - 1
            });
            let runs = faults[at].1.entry(&record.variant).or_default();
            runs.insert(record.run);
        }
        let more = faults.len().saturating_sub(MOST_NOTES);
        let mut notes: Vec<String> = faults
            .iter()
            .take(MOST_NOTES)
            .map(|((kind, title), runs)| format!("{kind}: {title}: {}", counted(record, runs)))
            .collect();
        if more > 0 {
            let job = record.job.id;
            notes.push(format!("{more} more kernel report(s): klab job show {job}"));
        }
        notes
    }
}

/// `base in 0 of 3 runs, v1 in 2 of 3 runs`.
fn counted(record: &JobRecord, with: &BTreeMap<&VariantName, BTreeSet<RunId>>) -> String {
    let variants = record.job.variants.iter().map(|variant| {
        let name = &variant.name;
        let all = record.runs().filter(|run| run.variant == *name).count();
        let with = with.get(name).map_or(0, BTreeSet::len);
        format!("{name} in {with} of {all} runs")
    });
    variants.collect::<Vec<_>>().join(", ")
}

impl Engine {
    /// What the kernels of a job reported.
    pub(crate) async fn kernel_reports(&self, job: JobId) -> Result<KernelReports, EngineError> {
        let all = self.store.kernel_reports_of(job).await?;
        Ok(KernelReports::new(all))
    }

    /// Saves what is reported in a log.
    pub(super) async fn derive_kernel_reports(
        &self,
        artifact: &Artifact,
        parser: &ParserId,
        log: Bytes,
    ) -> Result<(), EngineError> {
        let log = tokio::task::spawn_blocking(move || klab_klog::read(&log[..]))
            .await
            .map_err(std::io::Error::other)
            .flatten()
            .map_err(|error| {
                let reason = format!("reading a kernel log failed: {error}");
                EngineError::refused(Reason::Internal, reason)
            })?;
        let marker = BootMarker {
            run: artifact.run,
            attempt: artifact.attempt,
        };
        let release = self.release_of(artifact.run).await?;
        let reports = attribute(log, marker, release.as_deref());
        self.store
            .replace_kernel_reports(artifact.id, parser, &reports)
            .await?;
        Ok(())
    }

    /// The release of the kernel that a run is about.
    async fn release_of(&self, run: RunId) -> Result<Option<String>, EngineError> {
        let run = self.store.run(run).await?.value;
        let job = self.store.job(run.job).await?.job;
        let kernel = self.kernel_of(&job, &run).await?;
        Ok(kernel.map(|kernel| kernel.offer.release))
    }
}

/// The reports of a log, those of the run's own kernel first.
fn attribute(log: LogReport, marker: BootMarker, release: Option<&str>) -> Vec<KernelReport> {
    let own = own_boots(&log.boots, marker, release);
    let mut reports: Vec<KernelReport> = log
        .boots
        .into_iter()
        .zip(own)
        .flat_map(|(boot, candidate)| {
            let release = boot.release;
            boot.reports.into_iter().map(move |report| KernelReport {
                candidate,
                release: release.clone(),
                report,
            })
        })
        .collect();
    reports.sort_by_key(|said| (!said.candidate, said.report.kind.blame() != Blame::Kernel));
    reports.truncate(MOST_OF_A_LOG);
    reports
}

/// Which boots are those of the run's own kernel. The mark on the command line tells for sure;
/// in a log without one the release does. A boot that tells neither goes with the one before
/// it; where no boot tells anything, all are taken for the kernel's.
fn own_boots(boots: &[Boot], marker: BootMarker, release: Option<&str>) -> Vec<bool> {
    let mark = |boot: &Boot| boot.command_line.as_deref().and_then(BootMarker::find);
    let marked = boots.iter().any(|boot| mark(boot).is_some());
    let tells = |boot: &Boot| boot.release.is_some() || boot.command_line.is_some();
    let is_own = |boot: &Boot| match &boot.release {
        _ if marked => mark(boot) == Some(marker),
        Some(told) => release == Some(told),
        None => true,
    };
    let mut own = !boots.iter().any(tells);
    let each = boots.iter().map(|boot| {
        if tells(boot) {
            own = is_own(boot);
        }
        own
    });
    each.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker(attempt: u32) -> BootMarker {
        let run = "01890a5d-ac96-774b-bcce-b302099a8057".parse().unwrap();
        BootMarker { run, attempt }
    }

    fn own(log: &str) -> Vec<bool> {
        let log = klab_klog::read(log.as_bytes()).unwrap();
        own_boots(&log.boots, marker(1), Some("6.1.0-rt"))
    }

    fn boot(release: &str, command_line: &str) -> String {
        let mut log = format!("[    0.000000] Linux version {release} (me@here) #1\n");
        if !command_line.is_empty() {
            log += &format!("[    0.000000] Command line: ro {command_line}\n");
        }
        log + "[    9.000000] last\n"
    }

    #[test]
    fn boots_belong_to_the_kernel_that_was_asked_for() {
        let [one, two] = [marker(1), marker(2)].map(|mark| mark.to_string());
        let good = boot("6.1.0-good", "quiet");
        let same = boot("6.1.0-rt", "quiet");
        let rest = "[  100.000000] before all boots\n".to_owned();
        for (log, expected) in [
            (vec![], vec![]),
            // Nothing tells whose boot it is.
            (vec![rest.clone()], vec![true]),
            (vec![boot("6.1.0-rt", "")], vec![true]),
            (
                vec![rest.clone(), boot("6.1.0-rt", ""), good.clone()],
                vec![false, true, false],
            ),
            (vec![good.clone()], vec![false]),
            // The known-good kernel has the same release.
            (
                vec![same.clone(), boot("6.1.0-rt", &one), same],
                vec![false, true, false],
            ),
            (
                vec![boot("6.1.0-rt", &two), boot("6.1.0-rt", &one)],
                vec![false, true],
            ),
            // Another kernel than the one that was asked for.
            (vec![boot("5.10.0", &one), good], vec![true, false]),
        ] {
            let text = log.concat();
            assert_eq!(own(&text), expected, "{text}");
        }
    }

    #[test]
    fn of_a_flood_the_kernels_own_faults_are_kept() {
        let mut log = boot("6.1.0-good", "");
        for n in 0..200 {
            log += &format!("[   10.000000] BUG: a good kernel x{n}y\n");
        }
        log += &boot("6.1.0-rt", "");
        for n in 0..200 {
            log += &format!("[   10.000000] I/O error, dev vd{n}x, sector 8 op\n");
        }
        log += "[   11.000000] BUG: its own\n";
        let log = klab_klog::read(log.as_bytes()).unwrap();
        let reports = attribute(log, marker(1), Some("6.1.0-rt"));
        assert_eq!(reports.len(), MOST_OF_A_LOG);
        assert_eq!(reports[0].report.title, "its own");
        assert!(reports.iter().all(|said| said.candidate));
        assert_eq!(reports[0].release.as_deref(), Some("6.1.0-rt"));
    }
}

//! The attempt at hand, as the journal tells it, and what comes next.
//!
//! [`Attempt`] is the fold of the journal's records. [`next`] is the whole step machine:
//! a pure function of that fold and of what runs now. There is no second path for
//! "resume": after a reboot, a crash or a power cut the same question gets its answer.

use klab_boot::{Installed, Running};
use klab_model::{AgentEvent, ArtifactKind, BootMarker, EventBody, Failure, Order, TrialIndex};

use crate::journal::Record;
use crate::spool::SpoolFile;

/// What the journal says about the attempt at hand.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// What was ordered.
    pub order: Order,
    /// Whether the package is complete.
    pub fetched: bool,
    /// The kernel as the boot method installed it.
    pub installed: Option<Installed>,
    /// What ran when the one boot was armed.
    pub armed: Option<Running>,
    /// The boot id under which the candidate was proved.
    pub proved: Option<String>,
    /// Trials that are over.
    pub done: Vec<TrialIndex>,
    /// Files that wait for the controller.
    pub files: Vec<SpoolFile>,
    /// Whether the log of the kernel that was booted is kept.
    pub kernel_log: bool,
    /// Events that wait for the controller's acknowledgement, oldest first.
    pub events: Vec<AgentEvent>,
    /// The number of the last event.
    pub last_seq: u64,
    /// The boot ids that were left for the known-good kernel.
    pub left: Vec<String>,
    /// Why the attempt cannot go on.
    pub failure: Option<Failure>,
    /// Whether the controller wants it ended.
    pub cancelled: bool,
    /// Whether the last word was raised.
    pub closing: bool,
}

impl Attempt {
    /// The attempt in the journal, if one is open.
    pub fn replay(records: Vec<Record>) -> Option<Attempt> {
        let mut attempt = None;
        for record in records {
            match (record, &mut attempt) {
                (Record::Accepted(order), _) => attempt = Some(Attempt::new(*order)),
                (Record::Closed, _) => attempt = None,
                (record, Some(attempt)) => attempt.apply(record),
                (_, None) => {}
            }
        }
        attempt
    }

    /// An attempt that has just been accepted.
    pub fn new(order: Order) -> Attempt {
        Attempt {
            order,
            fetched: false,
            installed: None,
            armed: None,
            proved: None,
            done: Vec::new(),
            files: Vec::new(),
            kernel_log: false,
            events: Vec::new(),
            last_seq: 0,
            left: Vec::new(),
            failure: None,
            cancelled: false,
            closing: false,
        }
    }

    /// Takes one record in.
    pub fn apply(&mut self, record: Record) {
        match record {
            Record::Fetched => self.fetched = true,
            Record::Installed(installed) => self.installed = Some(*installed),
            Record::Armed(known_good) => self.armed = Some(*known_good),
            Record::Proved { boot_id } => self.proved = Some(boot_id),
            Record::TrialDone(index) if !self.done.contains(&index) => self.done.push(index),
            Record::Spooled(file) => {
                self.kernel_log |= file.kind == ArtifactKind::KernelLog;
                // A repeated trial writes the same names again; the newer file counts.
                self.files
                    .retain(|old| old.trial != file.trial || old.name != file.name);
                self.files.push(file);
            }
            Record::Uploaded(file) => self.files.retain(|waiting| *waiting != file),
            Record::Restoring { boot_id } => {
                if !self.left.contains(&boot_id) {
                    self.left.push(boot_id);
                }
            }
            Record::Event(event) => {
                self.last_seq = self.last_seq.max(event.seq);
                self.closing |= matches!(
                    event.body,
                    EventBody::Finished { .. } | EventBody::Cancelled
                );
                self.events.push(*event);
            }
            Record::Acked { seq } => self.events.retain(|event| event.seq > seq),
            // The first failure is the cause; what follows it is a consequence.
            Record::Failed(failure) => {
                self.failure.get_or_insert(failure);
            }
            Record::CancelAsked => self.cancelled = true,
            Record::TrialBegan(_) | Record::TrialDone(_) | Record::Accepted(_) | Record::Closed => {
            }
        }
    }

    /// The mark that the candidate's command line carries.
    pub fn marker(&self) -> BootMarker {
        BootMarker {
            run: self.order.run,
            attempt: self.order.attempt,
        }
    }

    /// Whether something else than the known-good kernel runs because of this attempt.
    pub fn is_away(&self, running: &Running) -> bool {
        let Some(known_good) = &self.armed else {
            return false;
        };
        if running.boot_id == known_good.boot_id {
            return false;
        }
        running.marker.is_some()
            || self.proved.as_ref() == Some(&running.boot_id)
            || (!is_same(known_good, running) && !self.is_new_home(running))
    }

    /// Whether what runs after a way home is neither marked nor the candidate: the known-good
    /// kernel was upgraded while the candidate ran.
    fn is_new_home(&self, running: &Running) -> bool {
        let kernel = &self.order.kernel;
        let builds = running.build_id.as_ref().zip(kernel.build_id.as_ref());
        let candidate = running.release == kernel.release && builds.is_none_or(|(a, b)| a == b);
        !candidate && self.left.iter().any(|left| *left != running.boot_id)
    }

    /// Whether every way home was tried and did not lead there.
    fn is_lost(&self, running: &Running) -> bool {
        self.left.len() >= MOST_WAYS_HOME && !self.left.contains(&running.boot_id)
    }

    /// What people should know of the kernel that runs at the end of the attempt.
    pub fn homecoming(&self, running: &Running) -> Option<String> {
        let known_good = self.armed.as_ref()?;
        if self.is_away(running) {
            return Some(lost(known_good, running));
        }
        let upgraded = running.boot_id != known_good.boot_id && !is_same(known_good, running);
        upgraded.then(|| {
            format!(
                "the board's known-good kernel is {} now; it was {}",
                running.release, known_good.release
            )
        })
    }

    /// The next trial that is not over.
    fn next_trial(&self) -> Option<TrialIndex> {
        let mut trials = self.order.plan.trials();
        trials
            .find(|trial| !self.done.contains(&trial.index))
            .map(|trial| trial.index)
    }
}

/// Reboots into the known-good kernel before the board is given up.
const MOST_WAYS_HOME: usize = 3;

fn is_same(known_good: &Running, running: &Running) -> bool {
    known_good.release == running.release && known_good.build_id == running.build_id
}

fn lost(known_good: &Running, running: &Running) -> String {
    format!(
        "the board does not return to its known-good kernel {}: {} runs after {MOST_WAYS_HOME} \
         reboots; boot {0} by hand and look at the board's boot loader",
        known_good.release, running.release
    )
}

/// What the agent does next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Check the board, then fetch the package.
    Fetch,
    /// Install the kernel.
    Install,
    /// Arm the one boot and reboot.
    Boot,
    /// Something else than before the reboot runs: compare what runs with what was ordered.
    Prove,
    /// Execute a trial.
    Trial(TrialIndex),
    /// The attempt cannot go on for this reason; write it down.
    Fail(Failure),
    /// Send what waits, then return to the known-good kernel.
    Restore,
    /// The known-good kernel runs: send what waits and say the last word.
    Finish,
}

/// The step machine.
pub fn next(attempt: &Attempt, running: &Running) -> Action {
    if attempt.failure.is_some() || attempt.cancelled || attempt.next_trial().is_none() {
        return match &attempt.armed {
            Some(known_good) if attempt.is_away(running) => {
                if !attempt.is_lost(running) {
                    Action::Restore
                } else if attempt.failure.is_none() {
                    Action::Fail(Failure::infrastructure(lost(known_good, running)))
                } else {
                    Action::Finish
                }
            }
            _ => Action::Finish,
        };
    }
    if let Some(proved) = &attempt.proved {
        return match attempt.next_trial() {
            Some(index) if *proved == running.boot_id => Action::Trial(index),
            _ => Action::Fail(Failure::kernel(
                "the board rebooted by itself under the candidate: see console.log",
            )),
        };
    }
    match &attempt.armed {
        Some(known_good) if known_good.boot_id != running.boot_id => Action::Prove,
        None if !attempt.fetched => Action::Fetch,
        None if attempt.installed.is_none() => Action::Install,
        _ => Action::Boot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use klab_model::{
        Arch, Digest, Fence, KernelName, OrderKernel, Plan, PlanName, Span, TimeLimits,
        VariantName, Workload, WorkloadName,
    };

    fn plan(trials: u32) -> Plan {
        let workload = Workload {
            name: WorkloadName::parse("w").expect("legal"),
            command: vec!["true".into()],
            trials,
            time_limit: Span::secs(10),
            artifacts: Vec::new(),
        };
        Plan {
            name: PlanName::parse("p").expect("legal"),
            about: String::new(),
            loads: Vec::new(),
            workloads: vec![workload],
            trace: None,
            time_limits: TimeLimits {
                boot: Span::secs(60),
                settle: Span::secs(1),
                no_network: Span::secs(60),
            },
        }
    }

    fn order() -> Order {
        let digest = Digest::of(b"kernel");
        Order {
            run: "01890a5d-ac96-774b-bcce-b302099a8057"
                .parse()
                .expect("an id"),
            attempt: 1,
            fence: Fence(5),
            variant: VariantName::parse("base").expect("legal"),
            kernel: OrderKernel {
                name: KernelName::parse("k").expect("legal"),
                digest,
                size: 6,
                arch: Arch::X86_64,
                release: "6.1-candidate".into(),
                build_id: None,
                image_digest: digest,
            },
            plan: plan(2),
        }
    }

    fn runs(release: &str, boot_id: &str, marked: bool) -> Running {
        Running {
            release: release.into(),
            boot_id: boot_id.into(),
            build_id: None,
            cmdline: String::new(),
            marker: marked.then(|| Attempt::new(order()).marker()),
        }
    }

    fn good() -> Running {
        runs("6.1-good", "boot-1", false)
    }

    fn candidate() -> Running {
        runs("6.1-candidate", "boot-2", true)
    }

    fn installed() -> Record {
        Record::Installed(Box::new(Installed {
            slot: "s".into(),
            digest: Digest::of(b"kernel"),
            release: "6.1-candidate".into(),
            build_id: None,
            image_digest: Digest::of(b"kernel"),
            image: "/boot/klab/s/vmlinuz".into(),
            initrd: None,
            notes: Vec::new(),
        }))
    }

    /// The records of a run that goes well, up to `length` of them.
    fn story(length: usize) -> Attempt {
        let records = vec![
            Record::Accepted(Box::new(order())),
            Record::Fetched,
            installed(),
            Record::Armed(Box::new(good())),
            Record::Proved {
                boot_id: "boot-2".into(),
            },
            Record::TrialBegan(TrialIndex(0)),
            Record::TrialDone(TrialIndex(0)),
            Record::TrialDone(TrialIndex(1)),
        ];
        Attempt::replay(records.into_iter().take(length).collect()).expect("an open attempt")
    }

    #[test]
    fn a_run_that_goes_well_takes_every_step_in_order() {
        let table = [
            (1, good(), Action::Fetch),
            (2, good(), Action::Install),
            (3, good(), Action::Boot),
            (4, candidate(), Action::Prove),
            (5, candidate(), Action::Trial(TrialIndex(0))),
            (7, candidate(), Action::Trial(TrialIndex(1))),
            (8, candidate(), Action::Restore),
            (8, runs("6.1-good", "boot-3", false), Action::Finish),
        ];
        for (length, running, expected) in table {
            assert_eq!(
                next(&story(length), &running),
                expected,
                "after {length} records"
            );
        }
    }

    #[test]
    fn a_trial_that_was_cut_is_repeated() {
        assert_eq!(next(&story(6), &candidate()), Action::Trial(TrialIndex(0)));
    }

    #[test]
    fn an_agent_that_died_between_arming_and_rebooting_boots_again() {
        assert_eq!(next(&story(4), &good()), Action::Boot);
    }

    #[test]
    fn a_board_that_rebooted_by_itself_fails_the_kernel() {
        let action = next(&story(5), &runs("6.1-good", "boot-3", false));
        assert!(
            matches!(&action, Action::Fail(f) if f.class == klab_model::FailureClass::Kernel),
            "{action:?}"
        );
    }

    fn left(mut attempt: Attempt, boot_ids: &[&str]) -> Attempt {
        for boot_id in boot_ids {
            let boot_id = (*boot_id).to_owned();
            attempt.apply(Record::Restoring { boot_id });
        }
        attempt
    }

    #[test]
    fn a_known_good_kernel_that_was_upgraded_meanwhile_is_home() {
        let upgraded = runs("6.1-good2", "boot-3", false);
        // Before the way home it is a kernel that nobody asked for.
        assert_eq!(next(&story(8), &upgraded), Action::Restore);
        let attempt = left(story(8), &["boot-2"]);
        assert_eq!(next(&attempt, &upgraded), Action::Finish);
        let note = attempt.homecoming(&upgraded).expect("people are told");
        assert_eq!(
            note,
            "the board's known-good kernel is 6.1-good2 now; it was 6.1-good"
        );
        assert_eq!(attempt.homecoming(&runs("6.1-good", "boot-3", false)), None);
    }

    #[test]
    fn a_board_that_never_comes_home_is_given_up() {
        let still = |boot_id| runs("6.1-candidate", boot_id, true);
        let unmarked = |boot_id| runs("6.1-candidate", boot_id, false);
        for away in [still("boot-4"), unmarked("boot-4")] {
            // A reboot that was asked for again and again is one way.
            let slow = left(story(8), &["boot-2", "boot-2", "boot-2"]);
            assert_eq!(next(&slow, &away), Action::Restore);
            let attempt = left(story(8), &["boot-2", "boot-3"]);
            assert_eq!(next(&attempt, &away), Action::Restore);
            // The reboot did not happen yet: the same boot is left once more.
            let mut attempt = left(attempt, &["boot-4", "boot-4"]);
            assert_eq!(next(&attempt, &away), Action::Restore);
            let away = Running {
                boot_id: "boot-5".into(),
                ..away
            };
            let Action::Fail(failure) = next(&attempt, &away) else {
                panic!("{:?}", next(&attempt, &away));
            };
            assert_eq!(failure.class, klab_model::FailureClass::Infrastructure);
            let reason = failure.reason.clone();
            assert!(
                reason.contains("6.1-good: 6.1-candidate runs after 3 reboots"),
                "{reason}"
            );
            attempt.apply(Record::Failed(failure));
            assert_eq!(next(&attempt, &away), Action::Finish);
            assert_eq!(attempt.homecoming(&away), Some(reason));
        }
    }

    #[test]
    fn a_failure_or_a_cancellation_leads_home_from_wherever_the_board_is() {
        for record in [Record::Failed(Failure::workload("w")), Record::CancelAsked] {
            let mut away = story(5);
            away.apply(record.clone());
            assert_eq!(next(&away, &candidate()), Action::Restore);
            let mut home = story(2);
            home.apply(record);
            assert_eq!(next(&home, &good()), Action::Finish);
        }
    }

    #[test]
    fn the_first_failure_is_the_cause() {
        let mut attempt = story(5);
        attempt.apply(Record::Failed(Failure::kernel("panic")));
        attempt.apply(Record::Failed(Failure::infrastructure("what came of it")));
        assert_eq!(attempt.failure, Some(Failure::kernel("panic")));
    }

    #[test]
    fn a_closed_attempt_is_forgotten() {
        let records = vec![Record::Accepted(Box::new(order())), Record::Closed];
        assert_eq!(Attempt::replay(records), None);
    }
}

//! Builders of boards and jobs.
#![allow(dead_code, unreachable_pub)] // Each test file uses its own part.

use klab_model::{
    Arch, Assignment, Board, BoardFacts, BoardName, BoardSlot, BoardState, Fence, Job, KernelName,
    Owner, Plan, PlanName, Presence, Run, RunState, Session, Span, Tag, TagSelector, TimeLimits,
    Variant, VariantName, Workload, WorkloadName, from_micros,
};
use newtype_uuid::{GenericUuid, TypedUuid, TypedUuidKind};
use uuid::Uuid;

pub fn id<K: TypedUuidKind>(number: u128) -> TypedUuid<K> {
    TypedUuid::from_untyped_uuid(Uuid::from_u128(number))
}

pub fn board_name(text: &str) -> BoardName {
    BoardName::parse(text).expect("legal board name")
}

/// A connected, idle board with the tag `lab=<lab>`.
pub fn board(name: &str, arch: Arch, lab: &str) -> Board {
    Board {
        name: board_name(name),
        arch,
        tags: [("lab".to_owned(), lab.to_owned())].into(),
        facts: BoardFacts::default(),
        holder: None,
        state: BoardState {
            presence: Presence::Online(Session {
                id: id(1),
                instance: id(2),
            }),
            busy: None,
        },
        seen_at: from_micros(0),
    }
}

pub fn bound(name: &str) -> BoardSlot {
    BoardSlot::Bound(board_name(name))
}

pub fn open(tags: &[&str]) -> BoardSlot {
    let tags = tags.iter().map(|tag| Tag::parse(tag).expect("legal tag"));
    BoardSlot::Open(TagSelector(tags.collect()))
}

/// Job `number` of `owner`, submitted at `time`, with this many variants and rounds.
pub fn job(number: u128, owner: &str, time: i64, boards: Vec<BoardSlot>, size: (u32, u32)) -> Job {
    let variants = (0..size.0).map(|n| Variant {
        name: VariantName::parse(&format!("v{n}")).expect("legal variant"),
        kernels: vec![KernelName::parse(&format!("k{n}")).expect("legal kernel")],
    });
    Job {
        id: id(number),
        owner: Owner::parse(owner).expect("legal owner"),
        variants: variants.collect(),
        boards,
        rounds: size.1,
        plan: plan(),
        created_at: from_micros(time),
    }
}

fn plan() -> Plan {
    Plan {
        name: PlanName::parse("p").expect("legal plan name"),
        about: String::new(),
        loads: Vec::new(),
        workloads: vec![Workload {
            name: WorkloadName::parse("w").expect("legal workload name"),
            command: vec!["true".to_owned()],
            trials: 1,
            time_limit: Span::secs(1),
            artifacts: Vec::new(),
        }],
        trace: None,
        time_limits: TimeLimits {
            boot: Span::secs(1),
            settle: Span::secs(1),
            no_network: Span::secs(1),
        },
    }
}

/// The runs of `job`; the ids start at a number that no other job uses.
pub fn runs(job: &Job) -> Vec<Run> {
    let mut next = job.id.into_untyped_uuid().as_u128() * 1_000_000;
    klab_sched::expand(job, || {
        next += 1;
        id(next)
    })
}

/// A state in which `board` works on the run.
pub fn active_on(board: &str) -> RunState {
    RunState::Active {
        assignment: Assignment {
            board: board_name(board),
            attempt: 1,
            fence: Fence(1),
        },
        step: None,
        cancelling: false,
    }
}

//! Jobs, boards and events in one line each.

use std::collections::BTreeMap;

use bytes::Bytes;
use klab_model::*;
use klab_store::{Store, Transition, Versioned};
use newtype_uuid::GenericUuid;
use uuid::Uuid;

pub(crate) fn at(second: i64) -> Timestamp {
    from_micros(1_800_000_000_000_000 + second * 1_000_000)
}

/// Ids that count up.
pub(crate) fn id<K: newtype_uuid::TypedUuidKind>(number: u128) -> newtype_uuid::TypedUuid<K> {
    let base = Uuid::parse_str("01936f4e-0000-7000-8000-000000000000").expect("a legal id");
    newtype_uuid::TypedUuid::from_untyped_uuid(Uuid::from_u128(base.as_u128() + number))
}

pub(crate) fn board_name(text: &str) -> BoardName {
    BoardName::parse(text).expect("a legal name")
}

pub(crate) fn plan() -> Plan {
    Plan {
        name: PlanName::parse("rt-latency").expect("a legal name"),
        about: "Latency \"under\" load; it's fine.".to_owned(),
        loads: Vec::new(),
        workloads: vec![Workload {
            name: WorkloadName::parse("cyclictest").expect("a legal name"),
            command: vec!["cyclictest".to_owned(), "-q".to_owned()],
            trials: 2,
            time_limit: Span::secs(60),
            artifacts: Vec::new(),
        }],
        trace: None,
        time_limits: TimeLimits {
            boot: Span::secs(300),
            settle: Span::secs(5),
            no_network: Span::secs(600),
        },
    }
}

fn variant(name: &str) -> Variant {
    Variant {
        name: VariantName::parse(name).expect("a legal name"),
        kernels: vec![KernelName::parse("k1").expect("a legal name")],
    }
}

/// A job number `n` with two runs in one open slot.
pub(crate) fn job(n: u128) -> (Job, Vec<Run>) {
    let tag = Tag::parse("arch=riscv64").expect("a legal tag");
    let job = Job {
        id: id(n * 100),
        owner: Owner::parse("ada").expect("a legal name"),
        variants: vec![variant("base"), variant("+1")],
        boards: vec![BoardSlot::Open(TagSelector(vec![tag]))],
        rounds: 1,
        plan: plan(),
        created_at: at(i64::try_from(n).expect("small")),
    };
    let runs = (0_u32..2).map(|position| Run {
        id: id(n * 100 + 1 + u128::from(position)),
        job: job.id,
        slot: 0,
        round: 0,
        position,
        variant: job.variants[position as usize].name.clone(),
        state: RunState::new(),
    });
    let runs = runs.collect();
    (job, runs)
}

pub(crate) fn board(name: &str) -> Board {
    let session = Session {
        id: id(7),
        instance: id(8),
    };
    Board {
        name: board_name(name),
        arch: Arch::Riscv64,
        tags: BTreeMap::from([("site".to_owned(), "lab".to_owned())]),
        facts: BoardFacts {
            model: "VisionFive 2".to_owned(),
            cpus: 4,
            ..BoardFacts::default()
        },
        holder: Some(session.instance),
        state: BoardState {
            presence: Presence::Online(session),
            busy: None,
        },
        seen_at: at(0),
    }
}

pub(crate) async fn kernel(store: &Store, name: &str, content: &'static [u8]) -> Kernel {
    let digest = store
        .objects()
        .put(Bytes::from_static(content))
        .await
        .expect("an object");
    Kernel {
        name: KernelName::parse(name).expect("a legal name"),
        offer: KernelOffer {
            digest,
            size: content.len() as u64,
            arch: Arch::Riscv64,
            release: "6.12.0-rc1".to_owned(),
            build_id: Some(BuildId::from_bytes(&[7; 20]).expect("20 bytes")),
            image_digest: Digest::of(b"image"),
        },
        added_at: at(0),
    }
}

pub(crate) fn event(
    run: RunId,
    attempt: u32,
    fence: Fence,
    seq: u64,
    body: EventBody,
) -> AgentEvent {
    AgentEvent {
        run,
        attempt,
        fence,
        seq,
        board_time_us: -5,
        body,
    }
}

pub(crate) fn identity() -> Identity {
    Identity {
        release: "6.12.0-rc1".to_owned(),
        boot_id: "b".to_owned(),
        proof: IdentityProof::BuildId(BuildId::from_bytes(&[7; 20]).expect("20 bytes")),
    }
}

pub(crate) fn trial(index: u32) -> TrialResult {
    TrialResult {
        index: TrialIndex(index),
        workload: WorkloadName::parse("cyclictest").expect("a legal name"),
        failure: None,
        duration_ms: 60_000,
        perturbation: Perturbation::default(),
        facts: TrialFacts::default(),
    }
}

/// Assigns a run to a board with a new fence, as a controller does.
pub(crate) async fn assign(store: &Store, run: RunId, name: &str) -> Fence {
    let run = store.run(run).await.expect("the run");
    let board = store.board(&board_name(name)).await.expect("the board");
    let fence = store.next_fence().await.expect("a fence");
    let transition = assignment(&run, &board, fence);
    store.transition(&transition).await.expect("the assignment");
    fence
}

pub(crate) fn assignment(
    run: &Versioned<Run>,
    board: &Versioned<Board>,
    fence: Fence,
) -> Transition {
    let busy = Busy {
        run: run.value.id,
        fence,
        lease_until: at(100),
    };
    let assigned = RunEvent::Assigned {
        board: board.value.name.clone(),
        fence,
    };
    let state = run.value.state.apply(assigned).expect("a queued run");
    Transition::new(at(10))
        .run(run, state)
        .board(board, board.value.state.assign(busy).expect("a free board"))
        .bind(run.value.job, run.value.slot, board.value.name.clone())
}

/// A run ends its attempt and its board is free again.
pub(crate) async fn finish(
    store: &Store,
    run: RunId,
    fence: Fence,
    seq: u64,
    failure: Option<Failure>,
) {
    let run = store.run(run).await.expect("the run");
    let assignment = run.value.state.assignment().expect("an active run").clone();
    let board = store.board(&assignment.board).await.expect("the board");
    let finished = RunEvent::Finished {
        fence,
        failure: failure.clone(),
    };
    let state = run.value.state.apply(finished).expect("a legal event");
    let transition = Transition::new(at(20))
        .run(&run, state)
        .board(&board, board.value.state.release(fence));
    let body = EventBody::Finished { failure };
    let event = event(run.value.id, assignment.attempt, fence, seq, body);
    store
        .record_agent_event(&event, &transition)
        .await
        .expect("the end is recorded");
}

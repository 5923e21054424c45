//! Messages as JSON, with names that scripts can rely on.

pub(crate) use klab_model::hex;
use klab_proto::v1;
use serde_json::{Value, json};

pub(crate) fn arch(arch: i32) -> &'static str {
    match v1::Arch::try_from(arch) {
        Ok(v1::Arch::X8664) => "x86_64",
        Ok(v1::Arch::Riscv64) => "riscv64",
        Ok(v1::Arch::Aarch64) => "aarch64",
        _ => "unknown",
    }
}

pub(crate) fn class(class: i32) -> &'static str {
    match v1::FailureClass::try_from(class) {
        Ok(v1::FailureClass::Infrastructure) => "infrastructure",
        Ok(v1::FailureClass::Kernel) => "kernel",
        Ok(v1::FailureClass::Workload) => "workload",
        _ => "",
    }
}

pub(crate) fn job_state(state: i32) -> &'static str {
    match v1::JobState::try_from(state) {
        Ok(v1::JobState::Queued) => "queued",
        Ok(v1::JobState::Running) => "running",
        Ok(v1::JobState::Done) => "done",
        Ok(v1::JobState::Failed) => "failed",
        Ok(v1::JobState::Cancelled) => "cancelled",
        _ => "unknown",
    }
}

/// RFC 3339 in UTC, to the second.
pub(crate) fn time(time: Option<&prost_types::Timestamp>) -> String {
    time.and_then(|time| klab_model::Timestamp::from_second(time.seconds).ok())
        .map(|time| time.to_string())
        .unwrap_or_default()
}

pub(crate) fn failure(failure: Option<&v1::Failure>) -> Value {
    failure.map_or(
        Value::Null,
        |failure| json!({ "class": class(failure.class), "reason": failure.reason }),
    )
}

pub(crate) fn kernel(kernel: &v1::Kernel) -> Value {
    json!({
        "name": kernel.name,
        "arch": arch(kernel.arch),
        "release": kernel.release,
        "build_id": hex(&kernel.build_id),
        "digest": hex(&kernel.digest),
        "size": kernel.size,
        "added_at": time(kernel.added_at.as_ref()),
    })
}

pub(crate) fn board(board: &v1::Board) -> Value {
    let facts = board.facts.clone().unwrap_or_default();
    json!({
        "name": board.name,
        "arch": arch(board.arch),
        "state": board.state,
        "online": board.online,
        "run": board.run,
        "model": facts.model,
        "cpus": facts.cpus,
        "memory_kib": facts.memory_kib,
        "release": facts.release,
        "tags": tags(&board.tags),
        "seen_at": time(board.seen_at.as_ref()),
    })
}

fn tags(tags: &[v1::Tag]) -> Value {
    tags.iter()
        .map(|tag| (tag.key.clone(), Value::from(tag.value.clone())))
        .collect()
}

pub(crate) fn slot(slot: &v1::BoardSlot) -> String {
    if slot.board.is_empty() {
        let tags = slot
            .tags
            .iter()
            .map(|tag| format!("{}={}", tag.key, tag.value));
        tags.collect::<Vec<_>>().join(",")
    } else {
        slot.board.clone()
    }
}

pub(crate) fn job(job: &v1::Job) -> Value {
    let variants: Vec<Value> = job
        .variants
        .iter()
        .map(|variant| json!({ "name": variant.name, "kernels": variant.kernels }))
        .collect();
    json!({
        "id": job.id,
        "owner": job.owner,
        "plan": job.plan,
        "variants": variants,
        "boards": job.boards.iter().map(slot).collect::<Vec<_>>(),
        "rounds": job.rounds,
        "state": job_state(job.state),
        "failure_class": class(job.failure_class),
        "runs_total": job.runs_total,
        "runs_ended": job.runs_ended,
        "created_at": time(job.created_at.as_ref()),
    })
}

/// The board that works on a run or did: its slot keeps the name when the run has ended.
/// Empty as long as none was chosen.
pub(crate) fn board_of<'a>(run: &'a v1::Run, job: &'a v1::Job) -> &'a str {
    match (run.board.as_str(), job.boards.get(run.slot as usize)) {
        ("", Some(slot)) => &slot.board,
        (board, _) => board,
    }
}

pub(crate) fn run(run: &v1::Run, job: &v1::Job) -> Value {
    json!({
        "id": run.id,
        "variant": run.variant,
        "round": run.round + 1,
        "state": run.state,
        "board": board_of(run, job),
        "attempt": run.attempt,
        "failure": failure(run.failure.as_ref()),
    })
}

pub(crate) fn kernel_report(report: &v1::KernelReport) -> Value {
    let told = |text: &String| (!text.is_empty()).then(|| text.clone());
    json!({
        "run": report.run,
        "attempt": report.attempt,
        "candidate": report.candidate,
        "release": told(&report.release),
        "artifact": report.artifact,
        "file": report.file,
        "first_line": report.first_line,
        "last_line": report.last_line,
        "kind": report.kind,
        "title": report.title,
        "function": told(&report.function),
        "count": report.count,
        "quote": report.quote,
    })
}

pub(crate) fn artifact(artifact: &v1::Artifact) -> Value {
    json!({
        "id": artifact.id,
        "run": artifact.run,
        "attempt": artifact.attempt,
        "trial": artifact.trial.map(|trial| trial + 1),
        "name": artifact.name,
        "kind": artifact.kind,
        "digest": hex(&artifact.digest),
        "size": artifact.size,
    })
}

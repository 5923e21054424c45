//! Kernels that are built: by builders that follow a script, for jobs that wait.
#![allow(clippy::unwrap_used)] // A helper of a test fails the test where it stands.
#![allow(missing_docs)]

mod support;

use klab_model::{BuildProgress, BuildReport, Failure};
use klab_proto::status::{reason_of, violations_of};
use klab_proto::v1;
use klab_proto::v1::build_event::Body;
use klab_proto::v1::watch_build_response::News;
use klab_proto::v1::work_response::Message as Down;
use support::*;
use tempfile::TempDir;
use tonic::Code;

const X86: &[v1::Arch] = &[v1::Arch::X8664];

async fn lab_with_tree() -> (TempDir, Lab) {
    let folder = tempfile::tempdir().unwrap();
    let lab = Lab::start(folder.path()).await;
    add_tree(&lab.channel, "linux", "/srv/linux").await.unwrap();
    (folder, lab)
}

fn states(build: &v1::Build) -> Vec<&str> {
    build
        .targets
        .iter()
        .map(|target| target.state.as_str())
        .collect()
}

async fn in_state(lab: &Lab, id: &str, state: &str) -> v1::Build {
    until(async || find_build(&lab.channel, id).await.state == state).await;
    find_build(&lab.channel, id).await
}

#[tokio::test]
async fn trees_are_added_listed_and_removed() {
    let (_folder, lab) = lab_with_tree().await;
    let again = add_tree(&lab.channel, "linux", "/srv/linux").await.unwrap();
    assert_eq!(again.source, "/srv/linux");
    let other = add_tree(&lab.channel, "linux", "/srv/other")
        .await
        .unwrap_err();
    assert_eq!(other.code(), Code::AlreadyExists);
    assert!(
        other.message().contains("klab tree remove linux"),
        "{other}"
    );
    let bad = add_tree(&lab.channel, "linux", "../linux")
        .await
        .unwrap_err();
    assert_eq!(violations_of(&bad)[0].0, "source");

    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let remove = || {
        let name = "linux".to_owned();
        let mut client = trees(&lab.channel);
        async move { client.delete_tree(v1::DeleteTreeRequest { name }).await }
    };
    let needed = remove().await.unwrap_err();
    assert!(needed.message().contains(&build.id), "{needed}");
    let cancel = v1::CancelBuildRequest { id: build.id };
    builds(&lab.channel).cancel_build(cancel).await.unwrap();
    remove().await.unwrap();
    let mut client = trees(&lab.channel);
    let list = client.list_trees(v1::ListTreesRequest::default());
    assert!(list.await.unwrap().into_inner().trees.is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn what_is_wrong_with_a_wish_is_said_at_once_and_nothing_is_kept() {
    let (folder, lab) = lab_with_tree().await;
    let mut bad = wish();
    bad.tree = "linus".to_owned();
    bad.targets[1].variant = "base".to_owned();
    bad.targets[0].source = Some(v1::build_target::Source::Patches(2));
    let refused = create_build(&lab.channel, bad, MBOX).await.unwrap_err();
    let fields: Vec<String> = violations_of(&refused)
        .into_iter()
        .map(|(field, _)| field)
        .collect();
    assert_eq!(fields, ["targets[0].patches", "targets[1].variant", "tree"]);
    assert!(
        refused.message().contains("known trees: linux"),
        "{refused}"
    );

    let mut bad = wish();
    bad.series = None;
    bad.base = String::new();
    let refused = create_build(&lab.channel, bad, b"").await.unwrap_err();
    assert!(
        violations_of(&refused)
            .iter()
            .any(|(field, _)| field == "base"),
        "{refused}"
    );

    for mbox in [
        &b"other bytes of another length that are far too long for what was announced, really"[..],
        b"short",
    ] {
        let refused = create_build(&lab.channel, wish(), mbox).await.unwrap_err();
        assert!(
            matches!(refused.code(), Code::InvalidArgument | Code::OutOfRange),
            "{refused}"
        );
    }
    until(async || files_in(&folder.path().join("uploads")) == 0).await;
    let mut client = builds(&lab.channel);
    let list = client.list_builds(v1::ListBuildsRequest::default());
    assert!(list.await.unwrap().into_inner().builds.is_empty());
    lab.stop().await;
}

#[tokio::test]
async fn a_build_from_wish_to_kernels() {
    let (_folder, lab) = lab_with_tree().await;
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    assert_eq!(
        (build.state.as_str(), states(&build)),
        ("queued", vec!["waiting", "waiting"])
    );
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let order = builder.order().await;
    assert_eq!(order.build.id.to_string(), build.id);
    assert_eq!(
        (order.pending.as_slice(), order.tree.source.as_str()),
        (&[0, 1][..], "/srv/linux")
    );
    let series = v1::FetchSeriesRequest {
        build: Some(order.at.into()),
    };
    let mut client = v1::builder_service_client::BuilderServiceClient::new(lab.channel.clone());
    let mut pieces = client.fetch_series(series).await.unwrap().into_inner();
    assert_eq!(pieces.message().await.unwrap().unwrap().data, MBOX);

    assert_eq!(order.base, None);
    let base = commit("7");
    builder.say(order.at, BuildReport::BaseFound(base.clone()));
    builder.say(order.at, BuildReport::TargetStarted { index: 0 });
    builder.say(
        order.at,
        BuildReport::Log(b"  CC      mm/madvise.o\n".to_vec()),
    );
    assert!(builder.build(&lab.channel, &order, 0, b"key of base").await);
    builder.say(
        order.at,
        BuildReport::Note("1 line of ftrace did not take".to_owned()),
    );
    builder.fail(order.at, 1, "mm/madvise.c:1:1: error: expected ;");
    builder.say(
        order.at,
        BuildReport::Log(b"  CC      mm/other.o\n".to_vec()),
    );
    builder.finish(order.at, None);
    let ended = in_state(&lab, &build.id, "failed").await;
    assert_eq!(states(&ended), ["built", "failed"]);
    assert_eq!(ended.base_commit, base.as_str());
    let failure = ended.failure.unwrap();
    assert_eq!(failure.class(), v1::FailureClass::Kernel);
    assert!(failure.reason.contains("madvise.c:1:1"), "{failure:?}");

    let news = watch_build(&lab.channel, &build.id).await;
    let bodies: Vec<&Body> = news
        .iter()
        .filter_map(|news| match news {
            News::Event(event) => event.body.as_ref(),
            News::Progress(_) => None,
        })
        .collect();
    assert!(matches!(bodies[0], Body::Submitted(_)));
    assert!(matches!(bodies[1], Body::Note(text) if text.contains("--role builder")));
    assert!(matches!(bodies[2], Body::Assigned(assigned) if assigned.builder == "w1"));
    assert!(matches!(bodies[3], Body::BaseFound(commit) if commit == base.as_str()));
    assert!(matches!(bodies.last(), Some(Body::Ended(ended)) if ended.state == "failed"));
    let log = build_log(&lab.channel, &build.id, 0, false).await;
    assert_eq!(log, b"  CC      mm/madvise.o\n  CC      mm/other.o\n");
    assert_eq!(
        build_log(&lab.channel, &build.id, 24, true).await,
        b" CC      mm/other.o\n"
    );
    lab.stop().await;
}

#[tokio::test]
async fn the_same_inputs_are_never_built_twice() {
    let (_folder, lab) = lab_with_tree().await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let first = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let order = builder.order().await;
    assert!(builder.build(&lab.channel, &order, 0, b"base").await);
    assert!(builder.build(&lab.channel, &order, 1, b"+1").await);
    builder.finish(order.at, None);
    in_state(&lab, &first.id, "done").await;

    let second = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let order = builder.order().await;
    assert!(!builder.build(&lab.channel, &order, 0, b"base").await);
    assert!(!builder.build(&lab.channel, &order, 1, b"+1").await);
    builder.finish(order.at, None);
    let second = in_state(&lab, &second.id, "done").await;
    assert_eq!(states(&second), ["cached", "cached"]);
    // Under its own name it is the same kernel.
    let digest = async |name: &str| {
        let request = v1::GetKernelRequest {
            name: name.to_owned(),
        };
        let mut client = v1::kernel_service_client::KernelServiceClient::new(lab.channel.clone());
        client
            .get_kernel(request)
            .await
            .unwrap()
            .into_inner()
            .kernel
            .unwrap()
            .digest
    };
    let first = find_build(&lab.channel, &first.id).await;
    assert_ne!(first.targets[0].kernel, second.targets[0].kernel);
    assert_eq!(
        digest(&first.targets[0].kernel).await,
        digest(&second.targets[0].kernel).await
    );
    lab.stop().await;
}

#[tokio::test]
async fn what_two_want_at_once_is_built_by_one() {
    let (_folder, lab) = lab_with_tree().await;
    let mut one = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let mut two = FakeBuilder::connect(&lab.channel, "w2", X86).await.unwrap();
    let mut ids = Vec::new();
    for _ in 0..2 {
        ids.push(create_build(&lab.channel, wish(), MBOX).await.unwrap().id);
    }
    let (first, second) = (one.order().await, two.order().await);
    one.key(first.at, 0, b"base");
    assert!(!one.verdict().await);
    two.key(second.at, 0, b"base");
    two.say(second.at, BuildReport::Progress(BuildProgress::default()));
    // The second hears nothing before the first is done.
    let name = first.build.targets[0].kernel.to_string();
    kernel(&lab.channel, &name, "x86_64").await;
    let key = klab_model::Digest::of(b"base");
    one.say(
        first.at,
        BuildReport::TargetBuilt {
            index: 0,
            key,
            duration_ms: 1,
        },
    );
    assert!(two.verdict().await, "known by now");

    // One that goes away leaves its claim to who waits.
    one.key(first.at, 1, b"+1");
    assert!(!one.verdict().await);
    two.key(second.at, 1, b"+1");
    drop(one);
    assert!(!two.verdict().await, "it is the second's to build");
    lab.stop().await;
}

fn commit(digit: &str) -> klab_model::ObjectId {
    klab_model::ObjectId::parse(&digit.repeat(40)).unwrap()
}

#[tokio::test]
async fn a_builder_that_goes_away_gives_its_build_back() {
    let (_folder, lab) = lab_with_tree().await;
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    for attempt in 1..=3 {
        let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
        let order = builder.order().await;
        assert_eq!(order.at.attempt, attempt);
        // A branch that has gone on meanwhile.
        let found = BuildReport::BaseFound(commit(&attempt.to_string()));
        builder.say(order.at, found);
        if attempt == 1 {
            assert!(builder.build(&lab.channel, &order, 0, b"base").await);
            until(async || states(&find_build(&lab.channel, &build.id).await)[0] == "built").await;
        } else {
            assert_eq!(order.pending, [1], "what is built stays built");
            assert_eq!(order.base, Some(commit("1")), "on the base of the first");
        }
        drop(builder);
        let state = if attempt == 3 { "failed" } else { "queued" };
        let build = in_state(&lab, &build.id, state).await;
        assert_eq!(build.builder, "");
    }
    let build = find_build(&lab.channel, &build.id).await;
    assert_eq!(states(&build), ["built", "failed"]);
    assert_eq!(
        build.failure.unwrap().class(),
        v1::FailureClass::Infrastructure
    );
    lab.stop().await;
}

#[tokio::test]
async fn builders_are_asked_for_what_they_can_build_and_held_to_it() {
    let (_folder, lab) = lab_with_tree().await;
    let none = FakeBuilder::connect(&lab.channel, "w1", &[])
        .await
        .err()
        .unwrap();
    assert_eq!(none.code(), Code::InvalidArgument);
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let double = FakeBuilder::connect(&lab.channel, "w1", X86)
        .await
        .err()
        .unwrap();
    assert_eq!(reason_of(&double).as_deref(), Some("ALREADY_EXISTS"));

    let mut riscv = wish();
    riscv.arch = v1::Arch::Riscv64.into();
    let foreign = create_build(&lab.channel, riscv, MBOX).await.unwrap();
    let own = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let order = builder.order().await;
    assert_eq!(order.build.id.to_string(), own.id);
    assert_eq!(find_build(&lab.channel, &foreign.id).await.state, "queued");
    // A kernel that was never added is not believed.
    let key = klab_model::Digest::of(b"k");
    builder.say(
        order.at,
        BuildReport::TargetBuilt {
            index: 0,
            key,
            duration_ms: 1,
        },
    );
    let refusal = builder.end().await;
    assert!(refusal.message().contains("was not added"), "{refusal}");
    in_state(&lab, &own.id, "queued").await;
    lab.stop().await;
}

#[tokio::test]
async fn a_build_is_cancelled_whether_it_waits_or_not() {
    let (_folder, lab) = lab_with_tree().await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let waiting = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let order = builder.order().await;
    for id in [&build.id, &waiting.id] {
        let cancel = v1::CancelBuildRequest { id: id.clone() };
        builds(&lab.channel).cancel_build(cancel).await.unwrap();
    }
    assert_eq!(
        find_build(&lab.channel, &waiting.id).await.state,
        "cancelled"
    );
    assert_eq!(
        find_build(&lab.channel, &build.id).await.state,
        "cancelling"
    );
    assert!(matches!(builder.next().await, Down::Cancel(_)));
    builder.say(order.at, BuildReport::Stopped);
    in_state(&lab, &build.id, "cancelled").await;
    let next = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    assert_eq!(
        builder.order().await.build.id.to_string(),
        next.id,
        "the builder is free again"
    );
    lab.stop().await;
}

/// A job of both kernels of a build, on board b1.
async fn job_of(lab: &Lab, build: &v1::Build) -> v1::Job {
    let variants: Vec<String> = build
        .targets
        .iter()
        .map(|target| format!("{}={}", target.variant, target.kernel))
        .collect();
    let variants: Vec<&str> = variants.iter().map(String::as_str).collect();
    create_job(&lab.channel, submission(&variants, "b1", 1))
        .await
        .unwrap()
}

#[tokio::test]
async fn a_job_waits_for_its_kernels_and_then_runs() {
    let (_folder, lab) = lab_with_tree().await;
    let mut agent = lab.agent("b1").await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let job = job_of(&lab, &build).await;
    let order = builder.order().await;
    assert!(builder.build(&lab.channel, &order, 0, b"base").await);
    until(async || states(&find_build(&lab.channel, &build.id).await)[0] == "built").await;
    // A job whose kernels are all there overtakes it; this board is free.
    kernel(&lab.channel, "k1", "x86_64").await;
    let other = create_job(&lab.channel, submission(&["base=k1"], "b1", 1))
        .await
        .unwrap();
    let first = agent.order().await;
    assert_eq!(
        find_job(&lab.channel, &other.id).await.runs[0].id,
        at(&first).0.to_string()
    );
    agent.report(at(&first), 1, done()).await;
    assert!(builder.build(&lab.channel, &order, 1, b"+1").await);
    builder.finish(order.at, None);
    let run = agent.order().await;
    assert_eq!(run.kernel.name.as_str(), build.targets[0].kernel);
    agent.report(at(&run), 1, done()).await;
    let run = agent.order().await;
    assert_eq!(run.kernel.name.as_str(), build.targets[1].kernel);
    agent.report(at(&run), 1, done()).await;
    until(async || {
        find_job(&lab.channel, &job.id).await.job.unwrap().state() == v1::JobState::Done
    })
    .await;
    lab.stop().await;
}

#[tokio::test]
async fn runs_whose_kernel_never_comes_end_and_the_others_go_on() {
    let (_folder, lab) = lab_with_tree().await;
    let mut agent = lab.agent("b1").await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let job = job_of(&lab, &build).await;
    let order = builder.order().await;
    assert!(builder.build(&lab.channel, &order, 0, b"base").await);
    builder.fail(order.at, 1, "hunk 1 of mm/madvise.c does not apply");
    builder.finish(order.at, None);
    let run = agent.order().await;
    assert_eq!(run.kernel.name.as_str(), build.targets[0].kernel);
    agent.report(at(&run), 1, done()).await;
    let failed =
        async || find_job(&lab.channel, &job.id).await.job.unwrap().state() == v1::JobState::Failed;
    until(failed).await;
    let found = find_job(&lab.channel, &job.id).await;
    assert_eq!(found.job.unwrap().failure_class(), v1::FailureClass::Kernel);
    let reason = &found.runs[1].failure.as_ref().unwrap().reason;
    assert_eq!(
        reason,
        "+1 was not built: hunk 1 of mm/madvise.c does not apply"
    );
    // The comparison says which variant is not in it.
    let request = v1::GetReportRequest {
        job: job.id.clone(),
        format: v1::ReportFormat::Text.into(),
    };
    let mut reports = v1::report_service_client::ReportServiceClient::new(lab.channel.clone());
    let report = reports.get_report(request).await.unwrap().into_inner();
    let text = report.content;
    assert!(
        text.contains("+1 has no kernel: it was not built"),
        "{text}"
    );
    // Asked for again, it is refused at once.
    let late = submission(&[&format!("x={}", build.targets[1].kernel)], "b1", 1);
    let late = create_job(&lab.channel, late).await.unwrap_err();
    assert!(late.message().contains("was not built: hunk 1"), "{late}");
    lab.stop().await;
}

#[tokio::test]
async fn a_job_ends_when_nothing_of_it_can_be_built() {
    let (_folder, lab) = lab_with_tree().await;
    let _agent = lab.agent("b1").await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let job = job_of(&lab, &build).await;
    let order = builder.order().await;
    builder.finish(
        order.at,
        Some(Failure::kernel("the base v6.1 is not in tree linux")),
    );
    until(async || {
        find_job(&lab.channel, &job.id).await.job.unwrap().state() == v1::JobState::Failed
    })
    .await;
    for run in find_job(&lab.channel, &job.id).await.runs {
        assert!(
            run.failure
                .unwrap()
                .reason
                .contains("base v6.1 is not in tree")
        );
    }
    lab.stop().await;
}

#[tokio::test]
async fn a_lab_that_cannot_build_is_no_failure_of_the_kernel() {
    let (_folder, lab) = lab_with_tree().await;
    let _agent = lab.agent("b1").await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let job = job_of(&lab, &build).await;
    for _ in 0..3 {
        let order = builder.order().await;
        builder.finish(order.at, Some(Failure::infrastructure("no flex here")));
    }
    until(async || {
        find_job(&lab.channel, &job.id).await.job.unwrap().state() == v1::JobState::Failed
    })
    .await;
    let found = find_job(&lab.channel, &job.id).await;
    assert_eq!(found.runs.len(), 2);
    for run in found.runs {
        let failure = run.failure.unwrap();
        assert_eq!(failure.class(), v1::FailureClass::Infrastructure);
        assert!(failure.reason.contains("no flex here"), "{failure:?}");
    }
    lab.stop().await;
}

#[tokio::test]
async fn a_controller_that_was_started_again_gives_its_builds_away_again() {
    let (folder, lab) = lab_with_tree().await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let build = create_build(&lab.channel, wish(), MBOX).await.unwrap();
    let order = builder.order().await;
    assert!(builder.build(&lab.channel, &order, 0, b"base").await);
    builder.say(order.at, BuildReport::Log(b"first\n".to_vec()));
    until(async || {
        !build_log(&lab.channel, &build.id, 0, false)
            .await
            .is_empty()
    })
    .await;
    lab.stop().await;
    let lab = Lab::start(folder.path()).await;
    let mut builder = FakeBuilder::connect(&lab.channel, "w1", X86).await.unwrap();
    let again = builder.order().await;
    assert_eq!((again.at.attempt, again.pending.as_slice()), (2, &[1][..]));
    builder.say(again.at, BuildReport::Log(b"second\n".to_vec()));
    assert!(builder.build(&lab.channel, &again, 1, b"+1").await);
    builder.finish(again.at, None);
    in_state(&lab, &build.id, "done").await;
    assert_eq!(
        build_log(&lab.channel, &build.id, 0, false).await,
        b"first\nsecond\n"
    );
    lab.stop().await;
}

#[tokio::test]
async fn process_a_killed_controller_gives_its_builds_away_again() {
    let folder = tempfile::tempdir().unwrap();
    let (mut child, channel) = process::start(folder.path()).await;
    add_tree(&channel, "linux", "/srv/linux").await.unwrap();
    let mut builder = FakeBuilder::connect(&channel, "w1", X86).await.unwrap();
    let build = create_build(&channel, wish(), MBOX).await.unwrap();
    let order = builder.order().await;
    assert!(builder.build(&channel, &order, 0, b"base").await);
    until(async || states(&find_build(&channel, &build.id).await)[0] == "built").await;
    child.kill().await.unwrap();

    let (mut child, channel) = process::start(folder.path()).await;
    let mut builder = FakeBuilder::connect(&channel, "w1", X86).await.unwrap();
    let again = builder.order().await;
    assert_eq!(again.build.id.to_string(), build.id);
    assert_eq!((again.at.attempt, again.pending.as_slice()), (2, &[1][..]));
    child.kill().await.unwrap();
}

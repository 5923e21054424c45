use bytes::Bytes;
use klab_model::*;
use klab_store::*;

use crate::common::Lab;
use crate::common::values::*;

async fn lab_with_attempt(lab: &Lab) -> (Store, Job, Vec<Run>, Fence) {
    let store = lab.open().await;
    store.upsert_board(&board("vf2"), None).await.expect("new");
    let (job, runs) = job(1);
    store.create_job(&job, &runs).await.expect("new");
    let fence = assign(&store, runs[0].id, "vf2").await;
    (store, job, runs, fence)
}

async fn artifact(store: &Store, number: u128, run: RunId, attempt: u32, text: &str) -> Artifact {
    let bytes = Bytes::copy_from_slice(text.as_bytes());
    let digest = store.objects().put(bytes).await.expect("an object");
    Artifact {
        id: id(10_000 + number),
        run,
        attempt,
        trial: Some(TrialIndex(0)),
        name: ArtifactName::parse("hist.txt").expect("a legal name"),
        kind: ArtifactKind::Result(ResultFormat::CyclictestHistogram),
        digest,
        size: text.len() as u64,
        created_at: at(15),
    }
}

fn sample(value: f64) -> Sample {
    Sample {
        metric: Metric::parse("cyclictest.latency.max").expect("a legal name"),
        value,
        unit: Unit::Microseconds,
        direction: Direction::LowerIsBetter,
    }
}

fn parser(version: u32) -> ParserId {
    ParserId {
        name: "cyclictest-histogram".to_owned(),
        version,
    }
}

async fn report_trial(store: &Store, run: RunId, attempt: u32, fence: Fence, duration_ms: u64) {
    let result = TrialResult {
        duration_ms,
        ..trial(0)
    };
    let event = event(run, attempt, fence, 1, EventBody::TrialEnded(result));
    let transition = Transition::new(at(12));
    store
        .record_agent_event(&event, &transition)
        .await
        .expect("it is recorded");
}

pub(crate) async fn the_last_attempt_counts(lab: &Lab) {
    let (store, job, runs, fence) = lab_with_attempt(lab).await;
    let run = runs[0].id;
    report_trial(&store, run, 1, fence, 1).await;
    let one = artifact(&store, 1, run, 1, "first").await;
    store.add_artifact(&one).await.expect("new");
    store
        .replace_samples(one.id, &parser(1), &[sample(1.5)])
        .await
        .expect("samples");
    let lost = Failure::infrastructure("the board lost power");
    finish(&store, run, fence, 2, Some(lost.clone())).await;
    assert_eq!(store.trials_of(job.id).await.expect("trials").len(), 1);
    let fence = assign(&store, run, "vf2").await;
    report_trial(&store, run, 2, fence, 2).await;
    let two = artifact(&store, 2, run, 2, "second").await;
    store.add_artifact(&two).await.expect("new");
    store
        .replace_samples(two.id, &parser(1), &[sample(2.5)])
        .await
        .expect("samples");
    finish(&store, run, fence, 2, None).await;
    let trials = store.trials_of(job.id).await.expect("trials");
    let counted: Vec<_> = trials
        .iter()
        .map(|t| (t.attempt, t.result.duration_ms))
        .collect();
    assert_eq!(counted, [(2, 2)]);
    let samples = store.samples_of(job.id).await.expect("samples");
    let counted: Vec<_> = samples
        .iter()
        .map(|s| (s.artifact, s.sample.value))
        .collect();
    assert_eq!(counted, [(two.id, 2.5)]);
    let attempts = store.attempts_of(job.id).await.expect("attempts");
    assert_eq!(attempts[0].failure(), Some(&lost));
    assert_eq!(attempts[1].ended, Some((at(20), Outcome::Done)));
    // Nothing measured is lost: the files of the first attempt are still there.
    assert_eq!(
        store.artifacts_of_job(job.id).await.expect("artifacts"),
        [one, two]
    );
}

pub(crate) async fn infrastructure_failures_give_no_samples(lab: &Lab) {
    let (store, job, runs, fence) = lab_with_attempt(lab).await;
    let artifact = artifact(&store, 1, runs[0].id, 1, "first").await;
    store.add_artifact(&artifact).await.expect("new");
    store
        .replace_samples(artifact.id, &parser(1), &[sample(1.5)])
        .await
        .expect("samples");
    assert_eq!(store.samples_of(job.id).await.expect("samples").len(), 1);
    // The lease ran out; no event of the agent says so.
    let run = store.run(runs[0].id).await.expect("the run");
    let reason = "no word for 5 minutes".to_owned();
    let outcome = Outcome::Failed(Failure::infrastructure(reason.clone()));
    let state = run
        .value
        .state
        .apply(RunEvent::LeaseEnded { fence, reason })
        .expect("legal");
    let transition =
        Transition::new(at(30))
            .run(&run, state)
            .attempt_ended(run.value.id, 1, outcome.clone());
    store
        .transition(&transition)
        .await
        .expect("the end of the lease");
    assert_eq!(store.samples_of(job.id).await.expect("samples"), []);
    // The agent's own word comes late and changes nothing.
    let late = event(
        run.value.id,
        1,
        fence,
        1,
        EventBody::Finished { failure: None },
    );
    store
        .record_agent_event(&late, &Transition::new(at(40)))
        .await
        .expect("recorded");
    let attempt = store.attempt(run.value.id, 1).await.expect("the attempt");
    assert_eq!(attempt.ended, Some((at(30), outcome)));
}

pub(crate) async fn an_attempt_without_an_end_is_replaced_too(lab: &Lab) {
    let (store, job, runs, fence) = lab_with_attempt(lab).await;
    let one = artifact(&store, 1, runs[0].id, 1, "first").await;
    store.add_artifact(&one).await.expect("new");
    store
        .replace_samples(one.id, &parser(1), &[sample(1.5)])
        .await
        .expect("samples");
    let run = store.run(runs[0].id).await.expect("the run");
    let board = store.board(&board_name("vf2")).await.expect("the board");
    let reason = "no word for 5 minutes".to_owned();
    let state = run
        .value
        .state
        .apply(RunEvent::LeaseEnded { fence, reason });
    let transition = Transition::new(at(30))
        .run(&run, state.expect("legal"))
        .board(&board, board.value.state.release(fence));
    store.transition(&transition).await.expect("a new attempt");
    assert_eq!(store.samples_of(job.id).await.expect("samples").len(), 1);
    assign(&store, runs[0].id, "vf2").await;
    assert_eq!(store.samples_of(job.id).await.expect("samples"), []);
}

pub(crate) async fn artifacts_are_recorded_once(lab: &Lab) {
    let (store, job, runs, _) = lab_with_attempt(lab).await;
    let run = runs[0].id;
    let first = artifact(&store, 1, run, 1, "one").await;
    let added = store.add_artifact(&first).await.expect("new");
    assert_eq!((added.artifact, added.job), (first.clone(), job.id));
    let told = added.event.expect("a new artifact is told");
    assert_eq!(told.board, Some(board_name("vf2")));
    let again = Artifact {
        id: id(77_777),
        ..first.clone()
    };
    let again = store.add_artifact(&again).await.expect("the same bytes");
    assert_eq!((again.artifact, again.event), (first.clone(), None));
    let other = artifact(&store, 2, run, 1, "two").await;
    match store.add_artifact(&other).await {
        Err(StoreError::AlreadyExists { existing, .. }) => {
            assert_eq!(existing, Some(first.digest));
        }
        other => panic!("{other:?}"),
    }
    // The same name beside the trials, twice: the whole run is one place as well.
    let whole = Artifact {
        trial: None,
        ..other
    };
    store.add_artifact(&whole).await.expect("another place");
    let again = store
        .add_artifact(&Artifact {
            id: id(88_888),
            ..whole.clone()
        })
        .await;
    assert_eq!(again.expect("the same").artifact, whole);
    assert_eq!(
        store.artifacts_of_run(run).await.expect("artifacts"),
        [whole, first.clone()]
    );
    assert_eq!(store.artifact(first.id).await.expect("the artifact"), first);
    let nowhere = artifact(&store, 3, run, 9, "one").await;
    let refused = store.add_artifact(&nowhere).await;
    assert!(matches!(
        refused,
        Err(StoreError::NotFound {
            what: "attempt",
            ..
        })
    ));
    let mut absent = artifact(&store, 4, run, 1, "one").await;
    absent.digest = Digest::of(b"never stored");
    let refused = store.add_artifact(&absent).await;
    assert!(matches!(
        refused,
        Err(StoreError::NotFound { what: "object", .. })
    ));
    assert_eq!(
        store
            .job_events(job.id, 1, 99)
            .await
            .expect("the feed")
            .len(),
        2
    );
}

pub(crate) async fn samples_are_replaced_by_a_newer_parser(lab: &Lab) {
    let (store, job, runs, _) = lab_with_attempt(lab).await;
    let artifact = artifact(&store, 1, runs[0].id, 1, "one").await;
    store.add_artifact(&artifact).await.expect("new");
    let values = [0.1, 1e300, -3.0, 7.0];
    let old: Vec<Sample> = values.map(sample).to_vec();
    store
        .replace_samples(artifact.id, &parser(1), &old)
        .await
        .expect("samples");
    let read = store.samples_of(job.id).await.expect("samples");
    assert_eq!(
        read.iter().map(|s| s.sample.clone()).collect::<Vec<_>>(),
        old
    );
    store
        .replace_samples(artifact.id, &parser(2), &old[..1])
        .await
        .expect("samples");
    let read = store.samples_of(job.id).await.expect("samples");
    assert_eq!(read.len(), 1);
    assert_eq!(read[0].parser, parser(2));
    assert_eq!(
        (read[0].trial, &read[0].board),
        (Some(TrialIndex(0)), &board_name("vf2"))
    );
    store
        .record_parse_problem(artifact.id, &parser(3), "line 4")
        .await
        .expect("a problem");
    assert_eq!(store.samples_of(job.id).await.expect("samples"), []);
    let problems = store.parse_problems_of(job.id).await.expect("problems");
    assert_eq!(problems.len(), 1);
    assert_eq!(
        (&problems[0].parser, problems[0].problem.as_str()),
        (&parser(3), "line 4")
    );
    let unknown = store.replace_samples(id(5), &parser(1), &old).await;
    assert!(matches!(
        unknown,
        Err(StoreError::NotFound {
            what: "artifact",
            ..
        })
    ));
}

pub(crate) async fn unread_artifacts_are_found(lab: &Lab) {
    let (store, _, runs, _) = lab_with_attempt(lab).await;
    let artifact = artifact(&store, 1, runs[0].id, 1, "one").await;
    store.add_artifact(&artifact).await.expect("new");
    let kind = artifact.kind;
    // As after a crash between recording and parsing.
    drop(store);
    let store = lab.open().await;
    let waiting = store
        .artifacts_to_parse(kind, &parser(1), 9)
        .await
        .expect("artifacts");
    assert_eq!(waiting, std::slice::from_ref(&artifact));
    store
        .replace_samples(artifact.id, &parser(1), &[])
        .await
        .expect("no samples");
    let waiting = store
        .artifacts_to_parse(kind, &parser(1), 9)
        .await
        .expect("artifacts");
    assert_eq!(waiting, []);
    let newer = store
        .artifacts_to_parse(kind, &parser(2), 9)
        .await
        .expect("artifacts");
    assert_eq!(newer, [artifact]);
    let other = store
        .artifacts_to_parse(ArtifactKind::Trace, &parser(1), 9)
        .await;
    assert_eq!(other.expect("artifacts"), []);
}

fn kernel_report(number: u64) -> KernelReport {
    KernelReport {
        candidate: number.is_multiple_of(2),
        release: (number > 0).then(|| "6.1.0-rt".to_owned()),
        report: klab_klog::Report {
            kind: klab_klog::Kind::Oops,
            title: format!("number {number}"),
            function: (number > 1).then(|| "madvise_cold".to_owned()),
            first_line: number + 1,
            last_line: number + 9,
            quote: vec!["BUG: it's \"bad\"".to_owned(), String::new()],
            count: 3,
        },
    }
}

pub(crate) async fn kernel_reports_come_back_as_they_were_read(lab: &Lab) {
    let (store, job, runs, _) = lab_with_attempt(lab).await;
    let console = Artifact {
        trial: None,
        kind: ArtifactKind::Console,
        ..artifact(&store, 1, runs[0].id, 1, "one").await
    };
    store.add_artifact(&console).await.expect("new");
    let klog = |version| ParserId {
        name: "klog".to_owned(),
        version,
    };
    let all: Vec<KernelReport> = (0..3).map(kernel_report).collect();
    for reports in [&all[..], &all[1..], &[]] {
        store
            .replace_kernel_reports(console.id, &klog(1), reports)
            .await
            .expect("reports");
        let read = store.kernel_reports_of(job.id).await.expect("reports");
        let expected = reports.iter().map(|report| KernelReportRecord {
            run: runs[0].id,
            attempt: 1,
            variant: runs[0].variant.clone(),
            artifact: console.id,
            file: console.name.clone(),
            said: report.clone(),
        });
        assert_eq!(read, expected.collect::<Vec<_>>());
    }
    let waiting = async |version| {
        let kind = ArtifactKind::Console;
        let waiting = store.artifacts_to_parse(kind, &klog(version), 9).await;
        waiting.expect("artifacts").len()
    };
    assert_eq!((waiting(1).await, waiting(2).await), (0, 1));
    store
        .replace_kernel_reports(console.id, &klog(1), &all)
        .await
        .expect("reports");
    store
        .record_parse_problem(console.id, &klog(2), "too large")
        .await
        .expect("a problem");
    assert_eq!(store.kernel_reports_of(job.id).await.expect("reports"), []);
    let unknown = store.replace_kernel_reports(id(5), &klog(1), &all).await;
    assert!(matches!(
        unknown,
        Err(StoreError::NotFound {
            what: "artifact",
            ..
        })
    ));
}

use klab_model::*;
use klab_store::*;

use crate::common::Lab;
use crate::common::values::*;

pub(crate) async fn a_job_comes_back_as_it_was_submitted(lab: &Lab) {
    let store = lab.open().await;
    let (job, runs) = job(1);
    let event = store.create_job(&job, &runs).await.expect("new");
    assert_eq!(event.seq, 1);
    assert_eq!(event.body, JobEventBody::Submitted { runs: 2 });
    let record = store.job(job.id).await.expect("the job");
    assert_eq!(record.job, job);
    assert_eq!(record.runs().cloned().collect::<Vec<_>>(), runs);
    assert_eq!(record.state(), JobState::Queued);
    assert_eq!(store.run(runs[1].id).await.expect("the run").value, runs[1]);
    assert_eq!(store.job_events(job.id, 0, 9).await.expect("feed"), [event]);
    let again = store.create_job(&job, &runs).await;
    assert!(matches!(
        again,
        Err(StoreError::AlreadyExists { what: "job", .. })
    ));
    // A run of a slot that the job does not have: nothing of the job is kept.
    let (other, mut bad) = crate::common::values::job(2);
    bad[1].slot = 7;
    let refused = store.create_job(&other, &bad).await;
    assert!(
        matches!(refused, Err(StoreError::NotFound { .. })),
        "{refused:?}"
    );
    let unknown = store.job(other.id).await;
    assert!(matches!(
        unknown,
        Err(StoreError::NotFound { what: "job", .. })
    ));
}

pub(crate) async fn jobs_are_listed_newest_first(lab: &Lab) {
    let store = lab.open().await;
    for n in [2, 1, 3, 5, 4] {
        let (job, runs) = job(n);
        store.create_job(&job, &runs).await.expect("new");
    }
    let first = store
        .list_jobs(&PageRequest::first(2))
        .await
        .expect("a page");
    let ids = |page: &Page<JobRecord>| page.items.iter().map(|r| r.job.id).collect::<Vec<_>>();
    assert_eq!(ids(&first), [id(500), id(400)]);
    let rest = PageRequest {
        after: first.next,
        size: 3,
    };
    let rest = store.list_jobs(&rest).await.expect("a page");
    assert_eq!(ids(&rest), [id(300), id(200), id(100)]);
    assert_eq!(rest.next, None);
    let bad = PageRequest {
        after: Some("x".to_owned()),
        size: 3,
    };
    let refused = store.list_jobs(&bad).await;
    assert!(matches!(refused, Err(StoreError::BadPageToken { .. })));
}

pub(crate) async fn only_jobs_with_live_runs_are_live(lab: &Lab) {
    let store = lab.open().await;
    for n in 1..=2 {
        let (job, runs) = job(n);
        store.create_job(&job, &runs).await.expect("new");
    }
    let live = |records: Vec<JobRecord>| records.iter().map(|r| r.job.id).collect::<Vec<_>>();
    assert_eq!(
        live(store.live_jobs().await.expect("jobs")),
        [id(100), id(200)]
    );
    let mut transition = Transition::new(at(5));
    for run in store.runs_of(id(100)).await.expect("runs") {
        let state = run
            .value
            .state
            .apply(RunEvent::Cancel)
            .expect("it can be cancelled");
        transition = transition.run(&run, state);
    }
    store.transition(&transition).await.expect("a cancellation");
    assert_eq!(live(store.live_jobs().await.expect("jobs")), [id(200)]);
    let cancelled = store.job(id(100)).await.expect("the job");
    assert_eq!(cancelled.state(), JobState::Cancelled);
}

pub(crate) async fn a_slot_is_bound_once(lab: &Lab) {
    let store = lab.open().await;
    let (job, runs) = job(1);
    store.create_job(&job, &runs).await.expect("new");
    let bind = |name| Transition::new(at(1)).bind(job.id, 0, board_name(name));
    store.transition(&bind("vf2")).await.expect("it is open");
    store
        .transition(&bind("vf2"))
        .await
        .expect("the same board");
    let refused = store.transition(&bind("other")).await;
    assert!(
        matches!(refused, Err(StoreError::Conflict { .. })),
        "{refused:?}"
    );
    let record = store.job(job.id).await.expect("the job");
    assert_eq!(record.job.boards, [BoardSlot::Bound(board_name("vf2"))]);
}

pub(crate) async fn feeds_have_no_gaps(lab: &Lab) {
    let store = lab.open().await;
    let (job, runs) = job(1);
    store.create_job(&job, &runs).await.expect("new");
    let note = |text: String| NewEvent::of_job(job.id, JobEventBody::Note { text });
    let tasks: Vec<_> = (0..24)
        .map(|n| {
            let store = store.clone();
            let transition = Transition::new(at(n)).event(note(format!("note {n}")));
            tokio::spawn(async move { store.transition(&transition).await.expect("a note") })
        })
        .collect();
    let mut told = Vec::new();
    for task in tasks {
        told.extend(task.await.expect("no panic").events);
    }
    told.sort_by_key(|(_, event)| event.seq);
    let told: Vec<JobEvent> = told.into_iter().map(|(_, event)| event).collect();
    let all = store.job_events(job.id, 0, 100).await.expect("the feed");
    assert_eq!(
        all.iter().map(|e| e.seq).collect::<Vec<_>>(),
        (1..=25).collect::<Vec<_>>()
    );
    assert_eq!(all[1..], told);
    let some = store.job_events(job.id, 20, 3).await.expect("the feed");
    assert_eq!(some, all[20..23]);
    let nowhere =
        Transition::new(at(1)).event(NewEvent::of_job(id(999), JobEventBody::CancelRequested));
    let refused = store.transition(&nowhere).await;
    assert!(matches!(
        refused,
        Err(StoreError::NotFound { what: "job", .. })
    ));
}

pub(crate) async fn everything_survives_a_restart(lab: &Lab) {
    let store = lab.open().await;
    store.upsert_board(&board("vf2"), None).await.expect("new");
    let (job, runs) = job(1);
    store.create_job(&job, &runs).await.expect("new");
    let fence = assign(&store, runs[0].id, "vf2").await;
    let before = (
        store.job(job.id).await.expect("the job"),
        store.board(&board_name("vf2")).await.expect("the board"),
        store.attempts_of(job.id).await.expect("attempts"),
    );
    // No close: as if the controller had been killed.
    drop(store);
    let store = lab.open().await;
    let after = (
        store.job(job.id).await.expect("the job"),
        store.board(&board_name("vf2")).await.expect("the board"),
        store.attempts_of(job.id).await.expect("attempts"),
    );
    assert_eq!(before, after);
    assert_eq!(after.2[0].fence, fence);
    finish(&store, runs[0].id, fence, 1, None).await;
    assert_eq!(
        store.job(job.id).await.expect("the job").state(),
        JobState::Running
    );
}

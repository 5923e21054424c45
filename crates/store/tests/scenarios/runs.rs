use klab_model::*;
use klab_store::*;

use crate::common::Lab;
use crate::common::values::*;

async fn lab_with_job(lab: &Lab) -> (Store, Job, Vec<Run>) {
    let store = lab.open().await;
    store.upsert_board(&board("vf2"), None).await.expect("new");
    let (job, runs) = job(1);
    store.create_job(&job, &runs).await.expect("new");
    (store, job, runs)
}

pub(crate) async fn a_transition_happens_whole_or_not_at_all(lab: &Lab) {
    let (store, job, runs) = lab_with_job(lab).await;
    let run = store.run(runs[0].id).await.expect("the run");
    let board = store.board(&board_name("vf2")).await.expect("the board");
    let fence = store.next_fence().await.expect("a fence");
    let told = JobEventBody::RunAssigned { attempt: 1 };
    let told = NewEvent::of_run(job.id, runs[0].id, Some(board_name("vf2")), told);
    let stale = Versioned {
        version: board.version.next(),
        ..board.clone()
    };
    // Each of the parts refused in turn, after others have been done.
    let stale_run = Versioned {
        version: run.version.next(),
        ..run.clone()
    };
    let unknown = NewEvent::of_run(job.id, id(4711), None, JobEventBody::CancelRequested);
    let refused = [
        assignment(&run, &stale, fence).event(told.clone()),
        assignment(&stale_run, &board, fence).event(told.clone()),
        assignment(&run, &board, fence)
            .bind(job.id, 9, board_name("vf2"))
            .event(told.clone()),
        assignment(&run, &board, fence)
            .event(told.clone())
            .event(unknown),
    ];
    for transition in &refused {
        let error = store
            .transition(transition)
            .await
            .expect_err("one part is refused");
        assert!(
            matches!(
                error,
                StoreError::Conflict { .. } | StoreError::NotFound { .. }
            ),
            "{error:?}"
        );
        assert_eq!(store.run(runs[0].id).await.expect("the run"), run);
        assert_eq!(
            store.board(&board_name("vf2")).await.expect("the board"),
            board
        );
        assert_eq!(store.attempts_of(job.id).await.expect("attempts"), []);
        assert_eq!(store.job_events(job.id, 1, 9).await.expect("the feed"), []);
        assert_eq!(
            store.job(job.id).await.expect("the job").job.boards,
            job.boards
        );
    }
    let good = assignment(&run, &board, fence).event(told);
    let applied = store.transition(&good).await.expect("nobody was faster");
    assert_eq!(applied.events[0].1.seq, 2);
    let attempt = store.attempt(runs[0].id, 1).await.expect("the attempt");
    assert_eq!((attempt.fence, attempt.started_at), (fence, at(10)));
    assert_eq!((attempt.identity, attempt.ended), (None, None));
    let run = store.run(runs[0].id).await.expect("the run");
    assert_eq!(run.version, Version::FIRST.next());
    assert_eq!(run.value.state.assignment().map(|a| a.fence), Some(fence));
}

pub(crate) async fn an_ended_run_stays_ended(lab: &Lab) {
    let (store, _, runs) = lab_with_job(lab).await;
    let run = store.run(runs[0].id).await.expect("the run");
    let ended = run
        .value
        .state
        .apply(RunEvent::Cancel)
        .expect("it can be cancelled");
    let transition = Transition::new(at(1)).run(&run, ended);
    store.transition(&transition).await.expect("a cancellation");
    let run = store.run(runs[0].id).await.expect("the run");
    let back = Transition::new(at(2)).run(&run, RunState::new());
    let refused = store.transition(&back).await;
    assert!(matches!(
        refused,
        Err(StoreError::Conflict { what: "run", .. })
    ));
}

pub(crate) async fn one_of_many_assignments_wins(lab: &Lab) {
    let (store, job, runs) = lab_with_job(lab).await;
    let run = store.run(runs[0].id).await.expect("the run");
    let mut tasks = Vec::new();
    for n in 0..8 {
        let name = format!("b{n}");
        store.upsert_board(&board(&name), None).await.expect("new");
        let board = store.board(&board_name(&name)).await.expect("the board");
        let fence = store.next_fence().await.expect("a fence");
        let (store, transition) = (store.clone(), assignment(&run, &board, fence));
        tasks.push(tokio::spawn(
            async move { store.transition(&transition).await },
        ));
    }
    let mut won = 0;
    for task in tasks {
        match task.await.expect("no panic") {
            Ok(_) => won += 1,
            Err(StoreError::Conflict { .. }) => {}
            Err(error) => panic!("{error:?}"),
        }
    }
    assert_eq!(won, 1);
    assert_eq!(store.attempts_of(job.id).await.expect("attempts").len(), 1);
    let boards = store.list_boards().await.expect("boards");
    let busy = boards
        .iter()
        .filter(|board| board.value.state.busy.is_some());
    assert_eq!(busy.count(), 1);
}

pub(crate) async fn events_are_recorded_once(lab: &Lab) {
    let (store, job, runs) = lab_with_job(lab).await;
    let fence = assign(&store, runs[0].id, "vf2").await;
    assert_eq!(
        store.last_agent_seq(runs[0].id, 1).await.expect("a number"),
        0
    );
    let bodies = [
        EventBody::StepStarted(Step::Prove),
        EventBody::Proved(identity()),
        EventBody::TrialEnded(trial(0)),
        EventBody::Note("a note".to_owned()),
    ];
    for round in 0..2 {
        for (body, seq) in bodies.iter().zip(1..) {
            let told = NewEvent::of_job(
                job.id,
                JobEventBody::Note {
                    text: seq.to_string(),
                },
            );
            let transition = Transition::new(at(11)).event(told);
            let event = event(runs[0].id, 1, fence, seq, body.clone());
            let recorded = store.record_agent_event(&event, &transition).await;
            match recorded.expect("it is recorded") {
                Recorded::New(applied) => assert_eq!((round, applied.events.len()), (0, 1)),
                Recorded::Again => assert_eq!(round, 1),
            }
        }
    }
    assert_eq!(
        store.last_agent_seq(runs[0].id, 1).await.expect("a number"),
        4
    );
    assert_eq!(
        store
            .job_events(job.id, 1, 99)
            .await
            .expect("the feed")
            .len(),
        4
    );
    let attempt = store.attempt(runs[0].id, 1).await.expect("the attempt");
    assert_eq!(attempt.identity, Some(identity()));
    let trials = store.trials_of(job.id).await.expect("trials");
    assert_eq!(trials.len(), 1);
    assert_eq!(trials[0].result, trial(0));
    assert_eq!(trials[0].variant, runs[0].variant);
}

pub(crate) async fn a_refused_event_can_come_again(lab: &Lab) {
    let (store, job, runs) = lab_with_job(lab).await;
    let fence = assign(&store, runs[0].id, "vf2").await;
    let mut run = store.run(runs[0].id).await.expect("the run");
    let stepped = RunEvent::Stepped {
        fence,
        step: Step::Trial(TrialIndex(0)),
    };
    let state = run.value.state.apply(stepped).expect("a legal event");
    let right = run.version;
    run.version = right.next();
    let event = event(runs[0].id, 1, fence, 1, EventBody::TrialEnded(trial(0)));
    let stale = Transition::new(at(11)).run(&run, state.clone());
    let refused = store.record_agent_event(&event, &stale).await;
    assert!(matches!(refused, Err(StoreError::Conflict { .. })));
    assert_eq!(store.trials_of(job.id).await.expect("trials"), []);
    assert_eq!(
        store.last_agent_seq(runs[0].id, 1).await.expect("a number"),
        0
    );
    run.version = right;
    let fresh = Transition::new(at(12)).run(&run, state);
    let recorded = store.record_agent_event(&event, &fresh).await;
    assert!(matches!(recorded, Ok(Recorded::New(_))), "{recorded:?}");
    assert_eq!(store.trials_of(job.id).await.expect("trials").len(), 1);
}

pub(crate) async fn events_of_unknown_attempts_are_refused(lab: &Lab) {
    let (store, _, runs) = lab_with_job(lab).await;
    let event = event(runs[0].id, 1, Fence(3), 1, EventBody::Cancelled);
    let refused = store
        .record_agent_event(&event, &Transition::new(at(1)))
        .await;
    assert!(
        matches!(
            refused,
            Err(StoreError::NotFound {
                what: "attempt",
                ..
            })
        ),
        "{refused:?}"
    );
}

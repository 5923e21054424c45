//! Which kernel runs: every way to be wrong, and the two ways to be right.

mod common;

use common::{Board, build_id, marker, package};
use klab_boot::{CameBack, Expected, ProveError, Running, came_back, prove, running};
use klab_model::{BootMarker, Digest, FailureClass, IdentityProof, OrderKernel};

fn order() -> OrderKernel {
    let folder = tempfile::tempdir().expect("folder");
    package(folder.path(), "6.12.0", "A", &[]).order
}

fn candidate() -> Running {
    Running {
        release: "6.12.0".to_owned(),
        boot_id: "boot-2".to_owned(),
        build_id: Some(build_id(7)),
        cmdline: String::new(),
        marker: Some(marker()),
    }
}

fn known_good() -> Running {
    Running {
        release: "6.1.0-good".to_owned(),
        boot_id: "boot-1".to_owned(),
        build_id: Some(build_id(1)),
        cmdline: String::new(),
        marker: None,
    }
}

fn expected(order: &OrderKernel) -> Expected<'_> {
    Expected {
        kernel: order,
        image_digest: order.image_digest,
        boot_id_before: "boot-1",
        marker: Some(marker()),
    }
}

#[test]
fn the_running_kernel_is_read_from_proc_and_sys() {
    let board = Board::new();
    let line = format!("ro {}", marker());
    board.runs("6.12.0", "boot-2", Some(&build_id(7)), &line);
    let found = running(board.root.path()).expect("running");
    assert_eq!(
        found,
        Running {
            cmdline: line,
            ..candidate()
        }
    );
    board.runs("6.12.0", "boot-2", None, "ro");
    let found = running(board.root.path()).expect("running");
    assert_eq!((found.build_id, found.marker), (None, None));
    std::fs::remove_file(board.path("proc/cmdline")).expect("removed");
    let error = running(board.root.path()).expect_err("no /proc");
    assert!(error.to_string().contains("proc/cmdline"), "{error}");
}

#[test]
fn a_build_id_proves_the_candidate() {
    let order = order();
    let identity = prove(&expected(&order), &candidate()).expect("proved");
    assert_eq!(identity.proof, IdentityProof::BuildId(build_id(7)));
    assert_eq!(
        (&*identity.release, &*identity.boot_id),
        ("6.12.0", "boot-2")
    );
    // Boot methods without marks rely on it alone.
    let unmarked = Expected {
        marker: None,
        ..expected(&order)
    };
    let without = Running {
        marker: None,
        ..candidate()
    };
    assert!(prove(&unmarked, &without).is_ok());
}

#[test]
fn without_a_build_id_image_and_mark_prove_it_together() {
    let order = order();
    let nameless = OrderKernel {
        build_id: None,
        ..order.clone()
    };
    let by_image = IdentityProof::ImageDigest(order.image_digest);
    let silent = Running {
        build_id: None,
        ..candidate()
    };
    assert_eq!(
        prove(&expected(&nameless), &candidate())
            .expect("proved")
            .proof,
        by_image
    );
    assert_eq!(
        prove(&expected(&order), &silent).expect("proved").proof,
        by_image
    );
    let unmarked = Expected {
        marker: None,
        ..expected(&order)
    };
    assert!(matches!(
        prove(&unmarked, &silent),
        Err(ProveError::NoProof { .. })
    ));
    let wrong = Expected {
        image_digest: Digest::of(b"x"),
        ..expected(&order)
    };
    assert!(matches!(
        prove(&wrong, &silent),
        Err(ProveError::Image { .. })
    ));
}

#[test]
fn anything_else_is_refused() {
    let order = order();
    let earlier = BootMarker {
        attempt: 1,
        ..marker()
    };
    type Is = fn(&ProveError) -> bool;
    let cases: [(Running, Is); 5] = [
        (
            Running {
                boot_id: "boot-1".to_owned(),
                ..candidate()
            },
            |e| matches!(e, ProveError::SameBoot { .. }),
        ),
        (
            Running {
                release: "6.12.0+".to_owned(),
                ..candidate()
            },
            |e| matches!(e, ProveError::Release { .. }),
        ),
        (
            Running {
                build_id: Some(build_id(8)),
                ..candidate()
            },
            |e| matches!(e, ProveError::BuildId { .. }),
        ),
        (
            Running {
                marker: None,
                ..candidate()
            },
            |e| matches!(e, ProveError::Marker { .. }),
        ),
        (
            Running {
                marker: Some(earlier),
                ..candidate()
            },
            |e| matches!(e, ProveError::Marker { .. }),
        ),
    ];
    for (running, is) in cases {
        let error = prove(&expected(&order), &running).expect_err("refused");
        assert!(is(&error), "{error}");
    }
    let other = Running {
        build_id: Some(build_id(8)),
        ..candidate()
    };
    assert_eq!(
        prove(&expected(&order), &other)
            .expect_err("refused")
            .to_string(),
        format!(
            "kernel 6.12.0 runs with build-id {}, build-id {} was asked for",
            build_id(8),
            build_id(7)
        )
    );
}

#[test]
fn what_came_back_is_told_apart() {
    let order = order();
    let told = |running: &Running| came_back(&expected(&order), &known_good(), running);
    assert!(matches!(told(&candidate()), CameBack::Candidate(_)));
    let fell_back = Running {
        boot_id: "boot-3".to_owned(),
        ..known_good()
    };
    assert_eq!(
        told(&fell_back),
        CameBack::KnownGood {
            release: "6.1.0-good".to_owned()
        }
    );
    assert!(matches!(told(&known_good()), CameBack::NotRebooted(_)));
    let other = Running {
        release: "5.10.0".to_owned(),
        ..candidate()
    };
    assert!(matches!(told(&other), CameBack::Other(_)));
    let classes = [&candidate(), &fell_back, &known_good(), &other]
        .map(|running| told(running).failure().map(|failure| failure.class));
    let infrastructure = Some(FailureClass::Infrastructure);
    assert_eq!(
        classes,
        [
            None,
            Some(FailureClass::Kernel),
            infrastructure,
            infrastructure
        ]
    );
}

#[test]
fn falling_back_from_the_boards_own_kernel_is_seen_by_the_mark() {
    let order = OrderKernel {
        release: known_good().release,
        build_id: known_good().build_id,
        ..order()
    };
    let fell_back = Running {
        boot_id: "boot-3".to_owned(),
        ..known_good()
    };
    let told = came_back(&expected(&order), &known_good(), &fell_back);
    assert!(matches!(told, CameBack::KnownGood { .. }), "{told:?}");
}

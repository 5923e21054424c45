//! What controllers and builders say to each other.

use std::time::Duration;

use klab_model as model;

use super::build::{build_id, commit_of};
use super::common::{duration, duration_of, failure_of};
use crate::error::{ConvertError, InField, required};
use crate::v1;
use crate::v1::build_report as message;
use crate::v1::build_report::Body;

impl From<model::BuildRef> for v1::BuildRef {
    fn from(at: model::BuildRef) -> Self {
        v1::BuildRef {
            build: at.build.to_string(),
            attempt: at.attempt,
            fence: at.fence.0,
        }
    }
}

impl TryFrom<v1::BuildRef> for model::BuildRef {
    type Error = ConvertError;
    fn try_from(at: v1::BuildRef) -> Result<Self, ConvertError> {
        Ok(model::BuildRef {
            build: build_id("build", &at.build)?,
            attempt: at.attempt,
            fence: model::Fence(at.fence),
        })
    }
}

impl v1::BuildOrder {
    /// The order for an attempt of a build in this state.
    pub fn of(
        at: model::BuildRef,
        tree: model::Tree,
        build: model::Build,
        state: &model::BuildState,
    ) -> Self {
        v1::BuildOrder {
            r#ref: Some(at.into()),
            tree: Some(tree.into()),
            build: Some(v1::Build::of(build, state)),
        }
    }
}

impl TryFrom<v1::BuildOrder> for model::BuildOrder {
    type Error = ConvertError;
    fn try_from(order: v1::BuildOrder) -> Result<Self, ConvertError> {
        let build = required("build", order.build)?;
        let waiting = model::TargetState::Waiting.as_str();
        let pending = (0..).zip(&build.targets);
        let pending = pending.filter(|(_, target)| target.state == waiting);
        let pending = pending.map(|(index, _)| index).collect();
        let inside = |field: &'static str| move |error: ConvertError| error.inside(field);
        let base = commit_of("build.base_commit", &build.base_commit)?;
        let at = required("ref", order.r#ref)?;
        let tree = required("tree", order.tree)?;
        Ok(model::BuildOrder {
            at: at.try_into().map_err(inside("ref"))?,
            tree: tree.try_into().map_err(inside("tree"))?,
            build: build.try_into().map_err(inside("build"))?,
            pending,
            base,
        })
    }
}

impl v1::BuildReport {
    /// The message for something a builder says.
    pub fn of(at: model::BuildRef, report: model::BuildReport) -> Self {
        v1::BuildReport {
            build: Some(at.into()),
            body: Some(body(report)),
        }
    }
}

fn body(report: model::BuildReport) -> Body {
    use model::BuildReport as From;
    let millis = |ms| Some(duration(Duration::from_millis(ms)));
    match report {
        From::Note(text) => Body::Note(text),
        From::BaseFound(commit) => Body::BaseFound(commit.into()),
        From::TargetStarted { index } => Body::TargetStarted(message::TargetStarted { index }),
        From::TargetKey { index, key } => Body::TargetKey(message::TargetKey {
            index,
            key: key.as_bytes().to_vec().into(),
        }),
        From::TargetBuilt {
            index,
            key,
            duration_ms,
        } => Body::TargetBuilt(message::TargetBuilt {
            index,
            key: key.as_bytes().to_vec().into(),
            duration: millis(duration_ms),
        }),
        From::TargetFailed {
            index,
            reason,
            duration_ms,
        } => Body::TargetFailed(message::TargetFailed {
            index,
            reason,
            duration: millis(duration_ms),
        }),
        From::Progress(progress) => Body::Progress(message::Progress {
            index: progress.index,
            files_done: progress.files_done,
            files_total: progress.files_total,
        }),
        From::Log(bytes) => Body::Log(bytes.into()),
        From::Finished { failure } => Body::Finished(message::Finished {
            failure: failure.map(Into::into),
        }),
        From::Stopped => Body::Stopped(message::Stopped {}),
    }
}

impl TryFrom<v1::BuildReport> for (model::BuildRef, model::BuildReport) {
    type Error = ConvertError;
    fn try_from(report: v1::BuildReport) -> Result<Self, ConvertError> {
        let at = required("build", report.build)?.try_into();
        let at = at.map_err(|error: ConvertError| error.inside("build"))?;
        Ok((at, report_of(required("body", report.body)?)?))
    }
}

fn report_of(body: Body) -> Result<model::BuildReport, ConvertError> {
    use model::BuildReport as To;
    let key = |bytes: &[u8]| model::Digest::from_bytes(bytes).in_field("key");
    Ok(match body {
        Body::Note(text) => To::Note(text),
        Body::BaseFound(commit) => {
            To::BaseFound(model::ObjectId::parse(&commit).in_field("base_found")?)
        }
        Body::TargetStarted(started) => To::TargetStarted {
            index: started.index,
        },
        Body::TargetKey(told) => To::TargetKey {
            index: told.index,
            key: key(&told.key)?,
        },
        Body::TargetBuilt(built) => To::TargetBuilt {
            index: built.index,
            key: key(&built.key)?,
            duration_ms: millis_of(built.duration)?,
        },
        Body::TargetFailed(failed) => To::TargetFailed {
            index: failed.index,
            reason: failed.reason,
            duration_ms: millis_of(failed.duration)?,
        },
        Body::Progress(progress) => To::Progress(model::BuildProgress {
            index: progress.index,
            files_done: progress.files_done,
            files_total: progress.files_total,
        }),
        Body::Log(bytes) => To::Log(bytes.to_vec()),
        Body::Finished(finished) => To::Finished {
            failure: failure_of("failure", finished.failure)?,
        },
        Body::Stopped(_) => To::Stopped,
    })
}

fn millis_of(duration: Option<prost_types::Duration>) -> Result<u64, ConvertError> {
    let duration = duration_of("duration", duration)?;
    Ok(u64::try_from(duration.as_millis()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use klab_model as model;
    use model::{BuildProgress, BuildRef, BuildReport, Digest, Failure, Fence};

    use crate::v1;

    fn id() -> model::BuildTaskId {
        let text = "01936f4e-0000-7000-8000-000000000007";
        text.parse().expect("a legal id")
    }

    #[test]
    fn reports_survive_the_wire() {
        let at = BuildRef {
            build: id(),
            attempt: 2,
            fence: Fence(9),
        };
        let key = Digest::of(b"key");
        let reports = [
            BuildReport::Note("n".into()),
            BuildReport::BaseFound(model::ObjectId::parse(&"7".repeat(40)).expect("an id")),
            BuildReport::TargetStarted { index: 1 },
            BuildReport::TargetKey { index: 1, key },
            BuildReport::TargetBuilt {
                index: 1,
                key,
                duration_ms: 1501,
            },
            BuildReport::TargetFailed {
                index: 1,
                reason: "r".into(),
                duration_ms: 3,
            },
            BuildReport::Progress(BuildProgress {
                index: 1,
                files_done: 2,
                files_total: 3,
            }),
            BuildReport::Log(b"CC\n".to_vec()),
            BuildReport::Finished { failure: None },
            BuildReport::Finished {
                failure: Some(Failure::kernel("f")),
            },
            BuildReport::Stopped,
        ];
        for report in reports {
            let message = v1::BuildReport::of(at, report.clone());
            assert_eq!(message.try_into(), Ok((at, report)));
        }
    }

    #[test]
    fn an_order_names_the_targets_that_wait() {
        let target = |variant: &str| model::BuildTarget {
            variant: variant.parse().expect("a legal name"),
            source: model::TargetSource::Patches(0),
            kernel: format!("k-{variant}").parse().expect("a legal name"),
        };
        let build = model::Build {
            id: id(),
            owner: "ada".parse().expect("a legal name"),
            tree: "linux".parse().expect("a legal name"),
            base: None,
            series: Some(model::BuildSeries {
                series: model::Series {
                    subject: "mm".into(),
                    revision: 2,
                    base_commit: Some("abc".into()),
                    patches: vec![model::Patch {
                        subject: "a".into(),
                        message_id: None,
                    }],
                },
                mbox: Digest::of(b"mbox"),
                size: 4,
            }),
            config: model::KernelConfig {
                base: model::ConfigBase::Tinyconfig,
                fragments: vec![model::ConfigText {
                    name: "ftrace".into(),
                    text: "CONFIG_FTRACE=y\n".into(),
                }],
                allow_missing: true,
            },
            arch: model::Arch::Riscv64,
            targets: vec![target("a"), target("b")],
            created_at: model::from_micros(5),
        };
        let mut state = model::BuildState::new(2);
        state.base = Some(model::ObjectId::parse(&"7".repeat(40)).expect("an id"));
        state.targets[0] = model::TargetState::Built { cached: true };
        let tree = model::Tree {
            name: "linux".parse().expect("a legal name"),
            source: "/srv/linux".parse().expect("a legal source"),
            added_at: model::from_micros(6),
        };
        let at = BuildRef {
            build: build.id,
            attempt: 1,
            fence: Fence(3),
        };
        let message = v1::BuildOrder::of(at, tree.clone(), build.clone(), &state);
        let order = model::BuildOrder {
            at,
            tree,
            build,
            pending: vec![1],
            base: state.base,
        };
        assert_eq!(message.try_into(), Ok(order));
    }
}

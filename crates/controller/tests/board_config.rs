//! The configuration files of boards' kernels.
#![allow(missing_docs, clippy::unwrap_used)]

mod support;

use klab_model::Digest;
use klab_proto::status::{reason_of, violations_of};
use klab_proto::v1;
use klab_proto::v1::session_request::Message as Up;
use support::*;

async fn agent_with(lab: &Lab, config: &[u8]) -> FakeAgent {
    let mut hello = hello("b1", INSTANCE_A, None);
    hello.config_digest = Digest::of(config).as_bytes().to_vec().into();
    FakeAgent::connect(&lab.channel, hello).await.unwrap()
}

fn file(release: &str, content: &[u8]) -> Up {
    Up::KernelConfig(v1::KernelConfigFile {
        release: release.to_owned(),
        content: content.to_vec().into(),
    })
}

async fn config_of(lab: &Lab, board: &str) -> Result<v1::GetBoardConfigResponse, tonic::Status> {
    let request = v1::GetBoardConfigRequest {
        board: board.to_owned(),
    };
    let answer = within(boards(&lab.channel).get_board_config(request)).await;
    answer.map(tonic::Response::into_inner)
}

#[tokio::test]
async fn a_board_is_asked_for_its_configuration_when_it_is_a_new_one() {
    let (_folder, lab, agent) = lab_with_board().await;
    assert!(!agent.wants_config, "it told of none");
    drop(agent);
    let missing = config_of(&lab, "b1").await.unwrap_err();
    assert_eq!(reason_of(&missing).as_deref(), Some("NOT_FOUND"));
    assert!(missing.message().contains("/proc/config.gz"), "{missing}");
    let unknown = config_of(&lab, "b9").await.unwrap_err();
    assert!(!unknown.message().contains("/proc/config.gz"), "{unknown}");

    for (release, content) in [("6.1.0", b"first"), ("6.12.0", b"other")] {
        let agent = agent_with(&lab, content).await;
        assert!(agent.wants_config);
        agent.say(file(release, content));
        until(async || {
            let found = config_of(&lab, "b1").await;
            found.is_ok_and(|found| found.release == release && found.content[..] == content[..])
        })
        .await;
        drop(agent);
        assert!(!agent_with(&lab, content).await.wants_config, "it is known");
    }
    lab.stop().await;
}

#[tokio::test]
async fn a_file_that_is_no_configuration_is_refused() {
    let (_folder, lab, agent) = lab_with_board().await;
    drop(agent);
    let mut agent = agent_with(&lab, b"huge").await;
    agent.say(file("6.1.0", &vec![b'x'; (1 << 20) + 1]));
    let refusal = agent.end().await.expect("the session ends");
    let fields = violations_of(&refusal);
    assert_eq!(fields[0].0, "kernel_config.content", "{refusal}");
    config_of(&lab, "b1").await.unwrap_err();
    lab.stop().await;
}

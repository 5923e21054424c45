//! The real controller: from submission to the first order, and its memory.
#![allow(missing_docs)]
#![allow(clippy::unwrap_used)] // A benchmark that cannot go on ends where it stands.

#[path = "../tests/support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

use klab_testkit::bench::{compare, limit, resident_mb, timed};
use support::{FakeAgent, INSTANCE_A, at, create_job, done, hello, kernel, process, submission};
use tokio::runtime::Runtime;
use tonic::transport::Channel;
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

const ROUNDS: usize = 200;

/// The time from the call until an idle board has its order; the board then ends the run.
async fn submit_to_order(channel: &Channel, agent: &mut FakeAgent) -> Duration {
    let start = Instant::now();
    let submit = create_job(channel, submission(&["base=k1"], "b1", 1));
    let order = async {
        let order = agent.order().await;
        (order, start.elapsed())
    };
    let (job, (order, time)) = tokio::join!(submit, order);
    job.unwrap();
    agent.report(at(&order), 1, done()).await;
    time
}

fn main() {
    let runtime = Runtime::new().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (mut child, channel) = runtime.block_on(process::start(folder.path()));
    let id = child.id().unwrap();
    runtime.block_on(async { tokio::time::sleep(Duration::from_secs(1)).await });
    limit("controller idle RSS", resident_mb(id).unwrap(), 60.0, "MB");

    let mut agent = runtime.block_on(async {
        kernel(&channel, "k1", "x86_64").await;
        let hello = hello("b1", INSTANCE_A, None);
        FakeAgent::connect(&channel, hello).await.unwrap()
    });
    let mut times = Vec::new();
    let mut health = HealthClient::new(channel.clone());
    compare(
        ("submit to first order", || {
            let time = runtime.block_on(submit_to_order(&channel, &mut agent));
            times.push(time);
            time
        }),
        ("a health check", || {
            timed(|| {
                let request = HealthCheckRequest::default();
                runtime.block_on(health.check(request)).unwrap()
            })
        }),
        ROUNDS,
    );
    let worst = times.iter().max().unwrap().as_secs_f64() * 1e3;
    limit("submit to first order, worst", worst, 100.0, "ms");
    let name = format!("controller RSS after {} jobs", times.len());
    limit(&name, resident_mb(id).unwrap(), 60.0, "MB");
    runtime.block_on(child.kill()).unwrap();
}

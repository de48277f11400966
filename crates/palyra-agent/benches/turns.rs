//! What Palyra itself costs in a turn: between the last byte of a model's answer and the first byte of the next request, per part of a streamed
//! answer, and in memory per run at work.
//!
//! All of it is real: an engine on a real journal, the OpenAI-compatible provider, HTTP over loopback. The server at the other end answers at once and
//! keeps the times; it is in `turns/server.rs`.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a measuring program stops at the first surprise")]

#[path = "turns/server.rs"]
mod server;
#[path = "../tests/it/support.rs"]
#[expect(dead_code, reason = "the tests use the rest")]
mod support;

use std::sync::Arc;
use std::time::Duration;

use palyra_common::RunLifecyclePhase;
use palyra_figures::{Aim, Report, Samples};
use palyra_models::{HttpProviderOptions, OpenAiCompatible, install_crypto_provider};

use crate::server::{Answer, Server};
use crate::support::{Bench, Setup};

/// Bytes of the task, which every turn carries along.
const HISTORY: usize = 200 * 1024;
/// Calls, and so turns, of a measured run.
const TURNS: usize = 40;
/// Measured runs.
const RUNS: usize = 6;
/// Parts of a long answer.
const PARTS: usize = 2_000;
/// Runs at work at the same time.
const CROWD: usize = 64;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    install_crypto_provider();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let mut report = Report::new("turns");
    runtime.block_on(overhead(&mut report));
    runtime.block_on(streaming(&mut report));
    runtime.block_on(memory(&mut report));
    report.note(&format!(
        "a task of {HISTORY} bytes in every request; one call of palyra.time.now per turn, whose time is not taken out"
    ));
    report.finish()?;
    Ok(())
}

async fn engine(server: &Server) -> Bench {
    let options = HttpProviderOptions {
        base_url: Some(server.base_url()),
        model: Some("m".to_owned()),
        context_tokens: 4_000_000,
        ..HttpProviderOptions::new("openai_compatible")
    };
    let mut setup = Setup::script("turn = []");
    setup.provider = Some(Arc::new(OpenAiCompatible::new(options).unwrap()));
    setup.max_concurrent = CROWD;
    setup.start().await
}

async fn completed(bench: &Bench, prompt: &str) {
    let run = bench.engine.create_run(bench.task(prompt)).await.unwrap();
    loop {
        let row = bench.engine.run(run.run_id).await.unwrap();
        if row.phase.is_terminal() {
            assert_eq!(row.phase, RunLifecyclePhase::Completed, "{:?}", row.detail);
            return;
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

async fn overhead(report: &mut Report) {
    let mut gaps = Vec::new();
    for round in 0..=RUNS {
        let mut answers: Vec<Answer> = (0..TURNS).map(|_| Answer::Call("palyra__time__now")).collect();
        answers.push(Answer::Say("done".to_owned()));
        let server = Server::start(answers);
        let bench = engine(&server).await;
        completed(&bench, &task()).await;
        // The first run warms up.
        if round > 0 {
            gaps.extend(server.gaps().into_iter().map(|gap| gap.as_secs_f64() * 1e3));
        }
    }
    let gaps = Samples::from_values(gaps).expect("there are turns");
    let n = gaps.n() as u64;
    report.figure("turn.overhead.p50", gaps.p50(), "ms", None, Aim::None, n, Some(gaps.spread()));
    report.figure("turn.overhead.p99", gaps.p99(), "ms", None, Aim::None, n, None);
}

async fn streaming(report: &mut Report) {
    let mut each = Vec::new();
    for _ in 0..RUNS {
        let server = Server::start(vec![Answer::Parts(PARTS)]);
        let bench = engine(&server).await;
        let began = std::time::Instant::now();
        completed(&bench, "say a lot").await;
        each.push(began.elapsed().as_secs_f64() * 1e3 / PARTS as f64);
    }
    let each = Samples::from_values(each).expect("there are runs");
    report.figure("turn.chunk", each.median(), "ms", None, Aim::AtMost(1.0), RUNS as u64, Some(each.spread()));
}

async fn memory(report: &mut Report) {
    let server = Server::start((0..CROWD).map(|_| Answer::Hold).collect());
    let bench = engine(&server).await;
    let before = resident();
    for _ in 0..CROWD {
        bench.engine.create_run(bench.task(&task())).await.unwrap();
    }
    while server.requests() < CROWD {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let each = (resident() - before) / CROWD as f64 / 1024.0;
    report.figure("turn.memory", each, "KiB per run at work", None, Aim::None, CROWD as u64, None);
    server.let_go();
}

fn task() -> String {
    "word ".repeat(HISTORY / 5)
}

/// Bytes of this process that are in memory.
fn resident() -> f64 {
    let pages: f64 = std::fs::read_to_string("/proc/self/statm").unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096.0
}

//! A model server that goes away and comes back: runs wait for it and none of them fails.

use std::time::{Duration, Instant};

use palyra_client::api::RunView;
use palyra_common::RunLifecyclePhase;
use palyra_models::testing::{ModelServer, Reply};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::support::{Daemon, Place};

/// Most that anything here waits for.
const PATIENCE: Duration = Duration::from_secs(60);
const RUNS: usize = 20;

/// A server that can be away: it passes on what it is sent.
struct Gateway {
    port: u16,
    to: String,
    open: Option<JoinHandle<()>>,
}

impl Gateway {
    async fn start(server: &ModelServer) -> Self {
        let to = server.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
        let mut gateway = Self { port: 0, to, open: None };
        gateway.come_back().await;
        gateway
    }

    async fn come_back(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.port = listener.local_addr().unwrap().port();
        self.open = Some(tokio::spawn(pass_on(listener, self.to.clone())));
    }

    /// Closes the listener and every connection.
    async fn go_away(&mut self) {
        let open = self.open.take().unwrap();
        open.abort();
        let _ = open.await;
    }
}

async fn pass_on(listener: TcpListener, to: String) {
    let mut connections = JoinSet::new();
    loop {
        let Ok((mut client, _)) = listener.accept().await else { return };
        let to = to.clone();
        connections.spawn(async move {
            if let Ok(mut server) = TcpStream::connect(&to).await {
                let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
            }
        });
    }
}

async fn phase(daemon: &Daemon, run: &RunView) -> RunLifecyclePhase {
    daemon.client.run(run.run_id).await.unwrap().run.phase
}

async fn ended(daemon: &Daemon, run: &RunView) -> RunLifecyclePhase {
    let began = Instant::now();
    loop {
        let phase = phase(daemon, run).await;
        if phase.is_terminal() {
            return phase;
        }
        assert!(began.elapsed() < PATIENCE, "{} stays {phase:?}", run.run_id);
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn runs_wait_for_a_model_that_is_away_and_go_on_when_it_is_back() {
    let server = ModelServer::start(vec![Reply::text(&["here"]); RUNS + 1]).unwrap();
    let mut gateway = Gateway::start(&server).await;
    let place = Place::new();
    let models = format!(
        "version = 1\n[providers.lab]\nkind = 'openai_compatible'\nbase_url = 'http://127.0.0.1:{}/v1'\n[routes]\ndefault = ['lab/m']\n",
        gateway.port
    );
    std::fs::write(place.path().join("models.toml"), models).unwrap();
    let config = place.path().join("palyra.toml").display().to_string();
    std::fs::write(&config, "version = 1\n").unwrap();
    let place = place.with("PALYRA_CONFIG", &config);
    let daemon = place.start().await;
    let first = daemon.create("say something").await;
    assert_eq!(ended(&daemon, &first).await, RunLifecyclePhase::Completed);

    gateway.go_away().await;
    let mut runs = Vec::new();
    for _ in 0..RUNS {
        runs.push(daemon.create("say something").await);
    }
    // Whoever follows a run is told what it waits for.
    let mut tape = daemon.client.tape(runs[0].run_id, 1, palyra_client::Follow::UntilEnd).with_progress();
    let told = async {
        loop {
            let event = tape.next().await.unwrap().expect("the run goes on");
            if event.progress().is_some_and(|progress| progress.message.contains("waiting for lab/m")) {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, told).await.expect("it is said that the run waits");
    // Longer than the tries of a call last.
    tokio::time::sleep(Duration::from_secs(10)).await;
    for run in &runs {
        assert!(!phase(&daemon, run).await.is_terminal(), "{} did not wait", run.run_id);
    }
    gateway.come_back().await;
    for run in &runs {
        assert_eq!(ended(&daemon, run).await, RunLifecyclePhase::Completed);
    }
}

//! A model provider that is away: runs wait for it, also over a restart of the daemon, which must not take it for one that was configured wrongly.

use std::time::{Duration, Instant};

use palyra_common::RunLifecyclePhase;
use palyra_testkit::model_server::{ModelServer, Reply};
use palyra_testkit::{DaemonOptions, Model};
use serde_json::json;

use super::{PATIENCE, finish, task, workspace};

/// Answers of a gateway whose server is away: several times what a call takes for granted that fails.
const AWAY: usize = 16;
/// How many of them the first daemon gets to see.
const BEFORE: usize = 3;

fn asked(server: &ModelServer) -> usize {
    server.requests().iter().filter(|request| request.method == "POST").count()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_goes_on_waiting_for_its_provider_after_a_restart() {
    let server = ModelServer::start(vec![Reply::text(&["Hello."])]).unwrap();
    let place = workspace();
    let mut daemon = DaemonOptions::new(Model::Server(server.base_url())).start().await.unwrap();
    let first = daemon.client().create_run(&task("say hello", place.path())).await.unwrap();
    let (detail, _) = finish(&daemon.client(), first.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());

    let answered = asked(&server);
    for _ in 0..AWAY {
        server.push(Reply::status(503, &json!({ "error": { "message": "the model is being restarted" } })));
    }
    server.push(Reply::text(&["Back again."]));
    let run = daemon.client().create_run(&task("say it again", place.path())).await.unwrap();
    let began = Instant::now();
    while asked(&server) < answered + BEFORE {
        assert!(began.elapsed() < PATIENCE, "{}", daemon.log());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    daemon.kill9().unwrap();
    let seen = asked(&server) - answered;
    assert!(seen < AWAY / 2, "too little is left to wait for: {seen}");
    daemon.restart().await.unwrap();
    let (detail, _) = finish(&daemon.client(), run.run_id).await;
    assert_eq!(detail.run.phase, RunLifecyclePhase::Completed, "{}", daemon.log());
    assert!(asked(&server) > answered + AWAY, "it was waited for");
    daemon.finish().await.unwrap();
}

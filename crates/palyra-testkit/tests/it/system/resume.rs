//! A client that follows a run while its daemon is killed and started again, and sees every event exactly once.

use std::time::Duration;

use palyra_client::{Follow, Reconnect};
use palyra_common::{RunLifecyclePhase, RunStreamBody};
use palyra_testkit::{DaemonOptions, Model};
use serde_json::json;

use super::{task, workspace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stream_goes_on_by_position_over_a_kill() {
    let words: Vec<String> = (0..20).map(|number| format!("word {number} ")).collect();
    let script = json!({ "turn": [{ "text": words, "delay_ms": 40 }] });
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("tell a story", workspace.path())).await.unwrap();
    let patient =
        Reconnect { attempts: 200, first_wait: Duration::from_millis(10), longest_wait: Duration::from_millis(50) };
    let mut tape = client.tape(run.run_id, 1, Follow::UntilEnd).reconnecting(patient);
    let mut events = Vec::new();
    let mut tokens = 0;
    while let Some(event) = tape.next().await.unwrap() {
        tokens += u32::from(matches!(event.body, RunStreamBody::ModelToken(_)));
        events.push(event);
        if tokens == 3 {
            tokens += 1;
            daemon.kill9().unwrap();
            daemon.restart().await.unwrap();
        }
    }
    assert!(events.iter().map(|event| event.seq).eq(1..=events.len() as u64), "a gap or a repetition");
    let again = super::finish(&client, run.run_id).await;
    assert_eq!(again.1, events, "the tape is not what was streamed");
    assert_eq!(again.0.run.phase, RunLifecyclePhase::Completed);
    assert_eq!(again.0.answer.unwrap(), (0..20).map(|number| format!("word {number} ")).collect::<String>());
    daemon.finish().await.unwrap();
}

//! Sessions: what was said before is part of the next run's context.

use palyra_client::api::CreateRunParams;
use palyra_testkit::model_server::{ModelServer, Reply};
use palyra_testkit::{DaemonOptions, Model};

use super::{finish, task, workspace};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn earlier_exchanges_are_carried_into_the_next_run_and_no_further() {
    let server =
        ModelServer::start(vec![Reply::text(&["blue"]), Reply::text(&["I said blue"]), Reply::text(&["who?"])])
            .unwrap();
    let daemon = DaemonOptions::new(Model::Server(server.base_url())).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let in_session = |prompt: &str, key: &str| CreateRunParams {
        objective: None,
        max_attempts: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_key: Some(key.to_owned()),
        ..task(prompt, workspace.path())
    };
    let mut sessions = Vec::new();
    for (prompt, key) in [("which colour?", "talk"), ("what did you say?", "talk"), ("hello", "other")] {
        let run = client.create_run(&in_session(prompt, key)).await.unwrap();
        sessions.push(run.session_id);
        finish(&client, run.run_id).await;
    }
    assert_eq!(sessions[0], sessions[1]);
    assert_ne!(sessions[1], sessions[2]);
    assert_eq!(client.session(sessions[0], &Default::default()).await.unwrap().runs.len(), 2);

    let said: Vec<String> = server
        .requests()
        .iter()
        .filter(|request| request.method == "POST")
        .map(|request| {
            request.messages().iter().skip(1).map(|message| message.content.clone()).collect::<Vec<_>>().join("|")
        })
        .collect();
    assert_eq!(said, ["which colour?", "which colour?|blue|what did you say?", "hello"]);
    daemon.finish().await.unwrap();
}

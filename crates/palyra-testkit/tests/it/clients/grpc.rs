//! Python's `grpcio`, which knows of Palyra what reflection tells it.

use palyra_testkit::{DaemonOptions, Model, TestDaemon};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::PythonClient;

const GATEWAY: &str = "palyra.gateway.v1.GatewayService";

struct Setting {
    daemon: TestDaemon,
    workspace: TempDir,
    python: PythonClient,
    address: String,
    token: String,
}

impl Setting {
    async fn new(script: Value) -> Self {
        let options = DaemonOptions::new(Model::Scripted(script)).env("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
        let daemon = options.start().await.unwrap();
        let read = |name| std::fs::read_to_string(daemon.state_root().join(name)).unwrap().trim().to_owned();
        let (address, token) = (read("grpc.addr"), read("local.token"));
        let python = PythonClient::new("grpc");
        Self { workspace: TempDir::new().unwrap(), daemon, python, address, token }
    }

    async fn client(&self, arguments: &[&str]) -> Value {
        self.with(arguments, &[("PALYRA_TOKEN", &self.token)]).await
    }

    async fn with(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Value {
        let all: Vec<&str> = [self.address.as_str()].into_iter().chain(arguments.iter().copied()).collect();
        self.python.run(&all, environment).await
    }

    fn workspace(&self) -> &str {
        self.workspace.path().to_str().unwrap()
    }
}

fn writes() -> Value {
    let call = json!({ "tool": "palyra.fs.write", "arguments": { "path": "made.txt", "content": "one\n" } });
    json!({ "turn": [{ "text": "Writing it.", "call": [call] }, { "text": "Done." }] })
}

fn positions(events: &Value) -> Vec<u64> {
    // The JSON form of protobuf writes 64-bit numbers as texts.
    let events = events.as_array().unwrap();
    events.iter().map(|event| event["seq"].as_str().unwrap().parse().unwrap()).collect()
}

#[tokio::test]
async fn reflection_is_all_that_a_foreign_client_needs() {
    let setting = Setting::new(writes()).await;
    let listed = setting.client(&["services"]).await;
    let expected = [
        "grpc.health.v1.Health",
        "grpc.reflection.v1alpha.ServerReflection",
        "palyra.auth.v1.TokensService",
        "palyra.gateway.v1.ApprovalsService",
        "palyra.gateway.v1.CanvasService",
        GATEWAY,
    ];
    assert_eq!(listed["services"], json!(expected), "nothing is listed that is not served");

    // A whole run: started, asked about, allowed, finished; then read again from the middle.
    let seen = setting.client(&["run", "write it", setting.workspace(), "allow"]).await;
    let events = &seen["events"];
    let all = positions(events);
    assert_eq!(all, (1..=all.len() as u64).collect::<Vec<_>>());
    let last = events.as_array().unwrap().last().unwrap();
    assert_eq!(last["status"]["phase"], "RUN_LIFECYCLE_PHASE_COMPLETED", "{last}");
    assert_eq!(std::fs::read_to_string(setting.workspace.path().join("made.txt")).unwrap(), "one\n");
    let receipts = seen["receipts"].as_array().unwrap();
    assert_eq!(receipts.len(), 2, "one for the start and one for the answer: {receipts:?}");
    assert!(receipts.iter().all(|receipt| receipt.get("error").is_none()), "{receipts:?}");

    let run_id = last["run_id"].as_str().unwrap();
    let again = setting.client(&["resume", run_id, "3"]).await;
    assert_eq!(again["events"].as_array().unwrap()[..], events.as_array().unwrap()[2..]);

    let call = format!("{GATEWAY}/GetRun");
    let shown = setting.client(&["call", &call, &json!({ "run_id": run_id }).to_string()]).await;
    assert_eq!(shown["answer"]["answer"], "Done.", "{shown}");
    setting.daemon.finish().await.unwrap();
}

#[tokio::test]
async fn a_foreign_client_reads_why_it_was_refused() {
    let setting = Setting::new(writes()).await;
    let call = format!("{GATEWAY}/GetRun");
    let missing = json!({ "run_id": "01JC0Q6F7Z8G9H0J1K2M3N4P5Q" }).to_string();
    let refused = setting.client(&["call", &call, &missing]).await["refusal"].clone();
    assert_eq!(refused["code"], "NOT_FOUND", "{refused}");
    assert_eq!(refused["info"]["reason"], "RUN_NOT_FOUND");
    assert_eq!(refused["info"]["domain"], "palyra");
    assert_eq!(refused["envelope"]["code"], "run_not_found");
    assert_eq!(refused["envelope"]["category"], "ERROR_CATEGORY_NOT_FOUND");
    assert_eq!(refused["envelope"]["message"], refused["message"]);

    let large = json!({ "run_id": "x".repeat(100_000) }).to_string();
    let refused = setting.client(&["call", &call, &large]).await["refusal"].clone();
    assert_eq!(refused["code"], "INVALID_ARGUMENT", "{refused}");
    assert_eq!(refused["envelope"]["code"], "proto_message_invalid");
    let told = refused["message"].as_str().unwrap();
    assert!(told.len() < 300, "of a wrong id a line shows what it can: {told}");
    let large = json!({ "attachments": [{ "artifact": "x".repeat(100_000) }] }).to_string();
    let refused = setting.client(&["call", &format!("{GATEWAY}/RouteMessage"), &large]).await["refusal"].clone();
    assert_eq!(refused["info"]["metadata"]["truncated"], "true", "a long text does not break the trailers: {refused}");

    for environment in [&[][..], &[("PALYRA_TOKEN", "wrong")]] {
        let refused = setting.with(&["services"], environment).await["refusal"].clone();
        assert_eq!(refused["code"], "UNAUTHENTICATED", "{refused}");
        assert_eq!(setting.with(&["health"], environment).await["answer"], json!([8, 1]), "it serves");
    }
}

#[tokio::test]
async fn a_foreign_client_gives_up_and_the_run_goes_on() {
    let setting = Setting::new(writes()).await;
    // Nobody answers the question, so the run waits.
    let seen = setting.client(&["give-up", "write it", setting.workspace(), "2"]).await;
    assert_eq!(seen["refusal"]["code"], "DEADLINE_EXCEEDED", "{seen}");
    let run_id = seen["events"][0]["run_id"].as_str().expect("events came before the deadline").parse().unwrap();
    let run = setting.daemon.client().run(run_id).await.unwrap().run;
    assert!(!run.phase.is_terminal(), "{run:?}");
}

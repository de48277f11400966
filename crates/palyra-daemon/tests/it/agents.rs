//! Agents through the API: set up by the owner, used by everybody, gone with their bindings.

use palyra_client::api::{CreateRunParams, RunAgentView};
use palyra_proto::gateway::v1 as wire;
use serde_json::{Value, json};
use tonic::Code;

use crate::grpc::support::{Grpc, refused};
use crate::raw::{Answer, loopback_json, unix};
use crate::support::{Daemon, Place, code};

/// The tool of the second turn is one that the agent below does not have.
const SCRIPT: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[turn]]
echo = "last_result"
"#;

fn post(daemon: &Daemon, path: &str, body: &Value) -> Answer {
    unix(daemon, &format!("POST {path}"), body.to_string().as_bytes())
}

fn reader(place: &Place) -> Value {
    json!({"agent_id": "reader", "name": "Reads", "instructions": "Only look.", "mode": "strict",
        "workspace": place.workspace(), "tools": ["palyra.fs.read", "palyra.fs.list"]})
}

#[tokio::test]
async fn an_agent_shapes_runs_until_it_is_removed() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    let set = post(&daemon, "/api/v1/agents", &reader(&place)).json();
    assert_eq!((&set["agent_id"], &set["mode"]), (&json!("reader"), &json!("strict")), "{set}");
    let version = set["version"].as_u64().unwrap();

    let params = CreateRunParams { agent: Some("reader".into()), workspace: String::new(), ..daemon.task("look") };
    let run = daemon.client.create_run(&params).await.unwrap();
    daemon.follow(run.run_id, 1).await;
    let detail = daemon.client.run(run.run_id).await.unwrap();
    assert_eq!(detail.agent, Some(RunAgentView { agent_id: "reader".into(), version: Some(version) }));
    assert!(detail.answer.unwrap().contains("this agent does not have palyra.fs.write"));
    assert!(!place.workspace().join("a.txt").exists());
    let context = unix(&daemon, &format!("GET /api/v1/runs/{}/context", run.run_id), b"").json();
    let segments = context["segments"].as_array().unwrap();
    let said = segments.iter().find(|segment| segment["kind"] == "agent").unwrap_or_else(|| panic!("{context}"));
    assert_eq!(said["label"]["integrity"], "operator");
    let looser = CreateRunParams { mode: Some(palyra_common::RunMode::Open), ..params.clone() };
    assert_eq!(code(daemon.client.create_run(&looser).await), "agent_mode_loosened");

    // A session and a binding may name it; what they name has to be there.
    let session = post(&daemon, "/api/v1/sessions", &json!({"settings": {"agent": "reader"}})).json();
    let id = session["session_id"].clone();
    assert_eq!(session["settings"]["agent"], "reader", "{session}");
    let wrong = post(&daemon, "/api/v1/sessions", &json!({"settings": {"agent": "raeder"}}));
    assert_eq!(wrong.refusal(), (404, "agent_not_found".to_owned()));
    assert!(wrong.body.contains("did you mean `reader`?"), "{}", wrong.body);
    let place_of = |agent: &str| json!({"place": {"channel": "zed"}, "session_id": id, "agent": agent});
    assert_eq!(post(&daemon, "/api/v1/bindings", &place_of("nobody")).status, 404);
    let bound = post(&daemon, "/api/v1/bindings", &place_of("reader")).json();
    assert_eq!(bound["agent"], "reader");
    let listed = unix(&daemon, "GET /api/v1/bindings?agent=reader", b"").json();
    assert_eq!(listed["bindings"].as_array().unwrap().len(), 1);

    daemon.kill();
    let daemon = place.start().await;
    let listed = unix(&daemon, "GET /api/v1/agents", b"").json();
    assert_eq!(listed["agents"][0], set, "it is the same after a restart");
    let removed = post(&daemon, "/api/v1/agents/reader/remove", &json!({})).json();
    assert_eq!((&removed["agent"], &removed["removed_bindings"]), (&set, &json!(1)));
    let left = unix(&daemon, "GET /api/v1/bindings", b"").json();
    assert_eq!(left["bindings"], json!([]));
    let gone = CreateRunParams { agent: Some("reader".into()), ..daemon.task("look") };
    assert_eq!(code(daemon.client.create_run(&gone).await), "agent_not_found");
    assert!(
        daemon.client.replay_run(run.run_id).await.unwrap().identical,
        "its tape holds all that the run took of it"
    );
}

#[tokio::test]
async fn a_command_with_a_key_or_a_version_has_its_effect_once() {
    let place = Place::new();
    let daemon = place.start().await;
    let set = |name: &str, key: Option<&str>, version: Option<u64>| {
        let envelope = json!({"request_id": palyra_common::RequestId::generate(), "command": "agent.set",
            "params": {"agent_id": "a", "name": name}, "idempotency_key": key, "expected_version": version});
        post(&daemon, "/acp/v1/command", &envelope).json()
    };
    let first = set("one", Some("k"), Some(0));
    assert_eq!(first["ok"], true, "{first}");
    let again = set("one", Some("k"), Some(0));
    assert_eq!((&again["replayed"], &again["result"]), (&json!(true), &first["result"]));
    assert_eq!(set("two", Some("k"), Some(0))["error"]["code"], "idempotency_conflict");
    assert_eq!(set("two", None, Some(0))["error"]["code"], "version_conflict");
    let version = first["result"]["version"].as_u64();
    assert_eq!(set("two", None, version)["result"]["name"], "two");
    for wrong in
        [json!({"agent_id": "Not A Name"}), json!({"agent_id": "a", "tools": ["a*b"]}), json!({"agent_id": ""})]
    {
        let refused = post(&daemon, "/api/v1/agents", &wrong);
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.body);
    }
}

#[tokio::test]
async fn only_owners_set_agents_up_and_everybody_may_look() {
    let place = Place::new();
    let daemon = place.start().await;
    post(&daemon, "/api/v1/agents", &reader(&place));
    let token = |role: &str| {
        let params = json!({"name": role, "role": role, "subject": "ada"});
        post(&daemon, "/api/v1/tokens", &params).json()["secret"].as_str().unwrap().to_owned()
    };
    for role in ["viewer", "operator"] {
        let token = token(role);
        let ask = |line: &str, body: &str| loopback_json(&daemon, line, Some(&token), body);
        assert_eq!(ask("GET /api/v1/agents/reader", "").json()["instructions"], "Only look.");
        let change = ask("POST /api/v1/agents", &reader(&place).to_string());
        assert_eq!(change.refusal(), (403, "command_denied".to_owned()), "{role}");
        assert_eq!(ask("POST /api/v1/agents/reader/remove", "{}").status, 403, "{role}");
    }
}

#[tokio::test]
async fn agents_over_grpc() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let agent = |id: &str| wire::Agent {
        agent_id: id.to_owned(),
        instructions: "Be brief.".to_owned(),
        mode: palyra_proto::contract_to_wire(palyra_common::RunMode::Strict),
        tools: vec!["palyra.fs.*".to_owned()],
        ..wire::Agent::default()
    };
    let set = |agent, expected_version| wire::SetAgentRequest { agent: Some(agent), expected_version };
    let first = grpc.gateway.set_agent(set(agent("a"), Some(0))).await.unwrap().into_inner().agent.unwrap();
    assert!(first.version > 0 && first.created_at.is_some());
    assert_eq!(wire::Agent { version: 0, created_at: None, updated_at: None, ..first.clone() }, agent("a"));
    let stale = refused(grpc.gateway.set_agent(set(agent("a"), Some(0))).await);
    assert_eq!(stale, (Code::Aborted, "version_conflict".into()));
    grpc.gateway.set_agent(set(agent("b"), None)).await.unwrap();
    let page = |page_token: &str| wire::ListAgentsRequest { page_size: 1, page_token: page_token.to_owned() };
    let one = grpc.gateway.list_agents(page("")).await.unwrap().into_inner();
    let two = grpc.gateway.list_agents(page(&one.next_page_token)).await.unwrap().into_inner();
    assert_eq!((one.agents[0].agent_id.as_str(), two.agents[0].agent_id.as_str()), ("a", "b"));
    assert_eq!(two.next_page_token, "");
    let get = |id: &str| wire::GetAgentRequest { agent_id: id.to_owned() };
    assert_eq!(grpc.gateway.get_agent(get("a")).await.unwrap().into_inner().agent, Some(first.clone()));
    let remove = |expected_version| wire::RemoveAgentRequest { agent_id: "a".to_owned(), expected_version };
    assert_eq!(refused(grpc.gateway.remove_agent(remove(Some(first.version + 1))).await).0, Code::Aborted);
    assert_eq!(grpc.gateway.remove_agent(remove(Some(first.version))).await.unwrap().into_inner().removed_bindings, 0);
    assert_eq!(refused(grpc.gateway.get_agent(get("a")).await), (Code::NotFound, "agent_not_found".into()));
}

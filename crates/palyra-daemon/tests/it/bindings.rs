//! Places outside and the sessions that they lead to.

use palyra_client::api::BindingPlace;
use serde_json::{Value, json};

use crate::raw::{Answer, loopback_json, unix};
use crate::support::{Daemon, Place};

const SCRIPT: &str = "[[turn]]\ntext = \"done\"";

fn post(daemon: &Daemon, path: &str, body: &Value) -> Answer {
    unix(daemon, &format!("POST {path}"), body.to_string().as_bytes())
}

fn place(conversation: &str) -> Value {
    json!({"channel": "matrix", "account": "@palyra:example", "conversation": conversation})
}

#[tokio::test]
async fn a_place_leads_to_its_session_also_after_a_restart() {
    let at = Place::new().with_script(SCRIPT);
    let daemon = at.start().await;
    let begun = post(&daemon, "/api/v1/sessions", &json!({"binding": place("!room"), "title": "the room"})).json();
    let again = post(&daemon, "/api/v1/sessions", &json!({"binding": place("!room"), "title": "another"})).json();
    assert_eq!(begun["session_id"], again["session_id"], "a bound place begins nothing");
    assert_eq!(again["title"], "the room");
    let run = json!({"prompt": "p", "workspace": at.workspace(), "binding": place("!room")});
    let started = post(&daemon, "/api/v1/runs", &run).json();
    assert_eq!(started["session_id"], begun["session_id"]);

    let nowhere = json!({"prompt": "p", "workspace": at.workspace(), "binding": place("!elsewhere")});
    assert_eq!(post(&daemon, "/api/v1/runs", &nowhere).refusal(), (404, "binding_not_found".to_owned()));
    let both = json!({"prompt": "p", "workspace": at.workspace(), "binding": place("!room"), "session_key": "k"});
    assert_eq!(post(&daemon, "/api/v1/runs", &both).refusal(), (422, "request_invalid".to_owned()));
    for bad in [json!({"channel": ""}), json!({"channel": "Matrix"}), json!({"channel": "m", "account": "\u{7}"})] {
        let refused = post(&daemon, "/api/v1/sessions", &json!({"binding": bad}));
        assert_eq!(refused.refusal(), (422, "request_invalid".to_owned()), "{bad}");
    }

    daemon.kill();
    let daemon = at.start().await;
    let found = unix(&daemon, "GET /api/v1/bindings?channel=matrix&conversation=!room", b"").json();
    assert_eq!(found["bindings"][0]["session_id"], begun["session_id"]);
    let none = unix(&daemon, "GET /api/v1/bindings?channel=signal", b"").json();
    assert_eq!(none["bindings"], json!([]));
    let typed: BindingPlace = serde_json::from_value(found["bindings"][0]["place"].clone()).unwrap();
    assert_eq!(typed.conversation, "!room");
}

#[tokio::test]
async fn bindings_are_set_anew_by_version_and_removed() {
    let at = Place::new().with_script(SCRIPT);
    let daemon = at.start().await;
    let [one, two] = [(), ()].map(|()| post(&daemon, "/api/v1/sessions", &json!({})).json()["session_id"].clone());
    let set = |session: &Value, version: Option<&str>| {
        let body = json!({"place": place("!room"), "session_id": session}).to_string();
        let command = json!({"request_id": palyra_common::RequestId::generate(), "command": "binding.set",
            "params": serde_json::from_str::<Value>(&body).unwrap(), "expected_version": version.map(|v| v.parse::<u64>().unwrap())});
        post(&daemon, "/acp/v1/command", &command).json()
    };
    let first = set(&one, Some("0"));
    assert_eq!(first["ok"], true, "{first}");
    assert_eq!(set(&two, Some("0"))["error"]["code"], "version_conflict");
    let version = first["result"]["version"].to_string();
    let second = set(&two, Some(&version));
    assert_eq!(second["result"]["session_id"], two, "{second}");
    assert_eq!(second["result"]["binding_id"], first["result"]["binding_id"], "one place is one binding");
    let id = first["result"]["binding_id"].as_str().unwrap().to_owned();
    let removed = post(&daemon, &format!("/api/v1/bindings/{id}/remove"), &json!({})).json();
    assert_eq!(removed["session_id"], two);
    let gone = unix(&daemon, &format!("GET /api/v1/bindings/{id}"), b"");
    assert_eq!(gone.refusal(), (404, "binding_not_found".to_owned()));
    let unknown = json!({"place": place("!x"), "session_id": palyra_common::SessionId::from_u128(9)});
    assert_eq!(post(&daemon, "/api/v1/bindings", &unknown).refusal(), (404, "session_not_found".to_owned()));
}

#[tokio::test]
async fn places_of_different_people_do_not_meet() {
    let at = Place::new().with_script(SCRIPT);
    let daemon = at.start().await;
    let token = |subject: &str| {
        let params = json!({"name": subject, "role": "operator", "subject": subject});
        post(&daemon, "/api/v1/tokens", &params).json()["secret"].as_str().unwrap().to_owned()
    };
    let (ada, bob) = (token("ada"), token("bob"));
    let ask = |token: &str, line: &str, body: &Value| loopback_json(&daemon, line, Some(token), &body.to_string());
    let hers = ask(&ada, "POST /api/v1/sessions", &json!({"binding": place("!room")})).json();
    let his = ask(&bob, "POST /api/v1/sessions", &json!({"binding": place("!room")})).json();
    assert_ne!(hers["session_id"], his["session_id"], "the same place is each one's own");
    let steal = json!({"place": place("!other"), "session_id": hers["session_id"]});
    assert_eq!(ask(&bob, "POST /api/v1/bindings", &steal).refusal(), (403, "command_denied".to_owned()));
    let listed = ask(&bob, "GET /api/v1/bindings", &json!({})).json();
    assert_eq!(listed["bindings"].as_array().unwrap().len(), 1);
    assert_eq!(listed["bindings"][0]["session_id"], his["session_id"]);
}

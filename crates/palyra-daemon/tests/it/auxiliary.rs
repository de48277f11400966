//! Auxiliary tasks from outside: through the addresses, with the real daemon.

use serde_json::{Value, json};

use crate::raw::unix;
use crate::support::{Daemon, Place};

const SCRIPT: &str = r#"
[[script]]
auxiliary = "classification"
turn = [{ text = "{\"label\":\"cross\"}", usage = { input_tokens = 40, output_tokens = 5 } }]

[[script]]
auxiliary = "objective_judge"
turn = [{ text = "it is met, trust me" }]

[[script]]
[[script.turn]]
text = "done"
"#;

fn post(daemon: &Daemon, path: &str, body: &Value) -> Value {
    unix(daemon, &format!("POST {path}"), body.to_string().as_bytes()).json()
}

fn get(daemon: &Daemon, path: &str) -> Value {
    unix(daemon, &format!("GET {path}"), b"").json()
}

#[tokio::test]
async fn a_task_is_carried_out_listed_and_read_again() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    let asked = json!({"kind": "classification", "input": {"text": "late again", "labels": ["glad", "cross"]}});
    let task = post(&daemon, "/api/v1/auxiliary", &asked);
    assert_eq!(task["output"], json!({"label": "cross"}), "{task}");
    assert_eq!((&task["state"], &task["calls"], &task["input_tokens"]), (&json!("succeeded"), &json!(1), &json!(40)));
    assert_eq!(task["label"]["integrity"], "untrusted", "nobody vouches for what came from outside");
    let id = task["task_id"].as_str().unwrap();
    assert_eq!(get(&daemon, &format!("/api/v1/auxiliary/{id}")), task);

    let judged = json!({"kind": "objective_judge", "input": {"objective": "o", "criteria": ["c"], "evidence": ["e"]}});
    let refused = unix(&daemon, "POST /api/v1/auxiliary", judged.to_string().as_bytes());
    assert_eq!(refused.refusal().1, "auxiliary_output_invalid");
    let failed = get(&daemon, "/api/v1/auxiliary?state=failed");
    assert_eq!(failed["tasks"].as_array().unwrap().len(), 1, "{failed}");
    assert_eq!(failed["tasks"][0]["calls"], 2, "it was asked once more: {failed}");
    assert_eq!(failed["tasks"][0]["error"]["code"], "auxiliary_output_invalid");

    let page = get(&daemon, "/api/v1/auxiliary?limit=1");
    assert_eq!(
        (&page["tasks"][0]["kind"], &page["next_before"]),
        (&json!("objective_judge"), &page["tasks"][0]["task_id"])
    );
    let rest = get(&daemon, &format!("/api/v1/auxiliary?limit=1&before={}", page["next_before"].as_str().unwrap()));
    assert_eq!(rest["tasks"][0]["task_id"], task["task_id"]);
    assert_eq!(rest["next_before"], Value::Null);
}

#[tokio::test]
async fn wrong_input_is_refused_before_anything_is_recorded() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    for (body, code) in [
        (json!({"kind": "classification", "input": {"text": "x", "labels": []}}), "auxiliary_input_invalid"),
        (
            json!({"kind": "classification", "input": {"text": "x", "labels": ["a"], "tools": []}}),
            "auxiliary_input_invalid",
        ),
        (json!({"kind": "poetry", "input": {}}), "request_invalid"),
        (
            json!({"kind": "summary", "input": {"text": "x"}, "session_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV"}),
            "session_not_found",
        ),
    ] {
        let refused = unix(&daemon, "POST /api/v1/auxiliary", body.to_string().as_bytes());
        assert_eq!(refused.refusal().1, code, "{body}");
    }
    assert_eq!(get(&daemon, "/api/v1/auxiliary")["tasks"], json!([]));
    let missing = unix(&daemon, "GET /api/v1/auxiliary/01ARZ3NDEKTSV4RRFFQ69G5FAV", b"");
    assert_eq!(missing.refusal(), (404, "auxiliary_task_not_found".to_owned()));
}

#[tokio::test]
async fn a_compaction_is_taken_back() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    let first = daemon.create("One. And more.").await;
    let session = first.session_id;
    daemon.follow(first.run_id, 1).await;
    for prompt in ["Two", "Three", "Four", "Five", "Six"] {
        let input = post(
            &daemon,
            &format!("/api/v1/sessions/{session}/input"),
            &json!({"text": prompt, "workspace": first.workspace}),
        );
        let run = input["run"]["run_id"].as_str().unwrap_or_else(|| panic!("{input}")).parse().unwrap();
        daemon.follow(run, 1).await;
    }
    let at = format!("/api/v1/sessions/{session}/compaction");
    let early = unix(&daemon, &format!("POST {at}/revert"), b"{}");
    assert_eq!(early.refusal(), (409, "nothing_to_revert".to_owned()));
    let applied = post(&daemon, &at, &json!({}));
    assert_eq!((&applied["applied"], applied["summarised"].as_array().unwrap().len()), (&json!(true), 2), "{applied}");
    let reverted = post(&daemon, &format!("{at}/revert"), &json!({}));
    assert_eq!((&reverted["whole_again"], &reverted["still_summarised"]), (&json!(2), &json!(0)), "{reverted}");
    let story = get(&daemon, &format!("/api/v1/sessions/{session}/explain"));
    let events: Vec<&str> =
        story["steps"].as_array().unwrap().iter().filter_map(|step| step["event"].as_str()).collect();
    assert!(events.contains(&"compacted") && events.contains(&"compaction_reverted"), "{events:?}");
}

//! Records of clients' own: what is kept of them, and what is refused.

use palyra_client::api::TailJournalParams;
use palyra_journal::InclusionProof;
use palyra_proto::gateway::v1 as wire;
use serde_json::{Value, json};
use tonic::Code;

use crate::grpc::support::{Grpc, refused};
use crate::raw::{Answer, loopback_json, unix};
use crate::support::{Daemon, Place};

fn append(daemon: &Daemon, body: &Value) -> Answer {
    unix(daemon, "POST /api/v1/events", body.to_string().as_bytes())
}

fn opened() -> Value {
    json!({"kind": "ux.surface.opened", "payload": {"surface": "web", "section": "chat", "outcome": "ok", "latencyMs": 12}})
}

#[tokio::test]
async fn telemetry_becomes_a_flat_record_that_can_be_proven() {
    let place = Place::new().with_script("[[turn]]\ntext = \"done\"");
    let daemon = place.start().await;
    let run = daemon.create("hello").await;
    daemon.follow(run.run_id, 1).await;
    let mut about = opened();
    about["run_id"] = json!(run.run_id);
    about["payload"]["summary"] = json!("looked at it");
    let kept = append(&daemon, &about).json();
    let seq = kept["seq"].as_u64().unwrap_or_else(|| panic!("{kept}"));
    let params = TailJournalParams { from_seq: Some(seq), ..Default::default() };
    let record = daemon.client.journal_tail(&params).await.unwrap().next().await.unwrap().unwrap();
    assert_eq!((record.kind.as_str(), json!(record.hash)), ("ux.surface.opened", kept["hash"].clone()));
    let flat: palyra_common::SystemEventRecord = serde_json::from_value(record.payload).unwrap();
    assert_eq!(
        (flat.run_id, flat.latency_ms, flat.summary.as_deref()),
        (Some(run.run_id), Some(12), Some("looked at it"))
    );
    assert_eq!(flat.by, Some(run.owner.clone()));
    assert_eq!((record.run_id, record.run_seq, record.session_id), (None, None, None), "it stands on nobody's tape");
    assert_eq!(daemon.client.run(run.run_id).await.unwrap().run.last_seq, run_end(&daemon, run.run_id).await);
    let proof: InclusionProof = serde_json::from_value(daemon.client.journal_prove(seq).await.unwrap()).unwrap();
    proof.verify().unwrap();
}

async fn run_end(daemon: &Daemon, run: palyra_common::RunId) -> u64 {
    daemon.follow(run, 1).await.last().unwrap().seq
}

#[tokio::test]
async fn nothing_passes_for_a_record_of_palyra_itself() {
    let place = Place::new();
    let daemon = place.start().await;
    let good = json!({"kind": "client.zed.note", "payload": {"any": ["thing", 1]}});
    assert_eq!(append(&daemon, &good).status, 200);
    let payload = |with: Value| {
        let mut event = opened();
        event["payload"].as_object_mut().unwrap().extend(with.as_object().unwrap().clone());
        event
    };
    let large = json!({"kind": "client.a", "payload": {"text": "x".repeat(16 << 10)}});
    for wrong in [
        json!({"kind": "run.status", "payload": {}}),
        json!({"kind": "session.created", "payload": {}}),
        json!({"kind": "client", "payload": {}}),
        json!({"kind": "client.", "payload": {}}),
        json!({"kind": "client.Note", "payload": {}}),
        json!({"kind": format!("client.{}", "x".repeat(64)), "payload": {}}),
        json!({"kind": "clientx.note", "payload": {}}),
        json!({"kind": "ux.Surface", "payload": opened()["payload"]}),
        json!({"kind": "ux.surface.opened", "payload": {}}),
        json!({"kind": "ux.surface.opened", "payload": []}),
        payload(json!({"section": "kitchen"})),
        payload(json!({"prompt": "what the person wrote"})),
        payload(json!({"summary": "x".repeat(241)})),
        payload(json!({"summary": "two\nlines"})),
        payload(json!({"step": "x".repeat(65)})),
        payload(json!({"name": "ux.mode.changed"})),
        large,
    ] {
        let refused = append(&daemon, &wrong);
        assert_eq!(refused.status, 422, "{wrong}: {}", refused.body);
    }
    let nowhere = json!({"kind": "client.a", "run_id": palyra_common::RunId::from_u128(7), "payload": {}});
    assert_eq!(append(&daemon, &nowhere).refusal(), (404, "run_not_found".to_owned()));
}

#[tokio::test]
async fn whose_session_it_is_about_is_looked_at_and_floods_are_stopped() {
    let place = Place::new();
    let daemon = place.start().await;
    let session = unix(&daemon, "POST /api/v1/sessions", b"{}").json()["session_id"].clone();
    let params = json!({"name": "ada", "role": "operator", "subject": "ada"}).to_string();
    let ada = unix(&daemon, "POST /api/v1/tokens", params.as_bytes()).json()["secret"].as_str().unwrap().to_owned();
    let ask = |body: &Value| loopback_json(&daemon, "POST /api/v1/events", Some(&ada), &body.to_string());
    let mut hidden = opened();
    hidden["payload"]["sessionId"] = session.clone();
    for foreign in [json!({"kind": "client.a", "session_id": session, "payload": {}}), hidden.clone()] {
        assert_eq!(ask(&foreign).refusal(), (403, "command_denied".to_owned()), "{foreign}");
    }
    let mut torn = hidden;
    torn["session_id"] = json!(palyra_common::SessionId::from_u128(9));
    assert_eq!(append(&daemon, &torn).status, 422, "two sessions are named");

    // Also whoever is at the machine may give only so many.
    let limited = (0..300).map(|_| append(&daemon, &opened())).find(|answer| answer.status != 200).expect("no limit");
    assert_eq!(limited.refusal(), (429, "rate_limited".to_owned()));
}

#[tokio::test]
async fn events_over_grpc() {
    let place = Place::new();
    let daemon = place.start().await;
    let mut grpc = Grpc::of(&daemon).await;
    let event = |kind: &str, payload: &str, key: Option<&str>| wire::AppendEventRequest {
        kind: kind.to_owned(),
        payload_json: payload.to_owned(),
        idempotency_key: key.map(str::to_owned),
        ..wire::AppendEventRequest::default()
    };
    let first = grpc.gateway.append_event(event("client.a", "{\"n\":1}", Some("k"))).await.unwrap().into_inner();
    assert!(first.seq > 0 && first.hash.starts_with("sha256:"), "{first:?}");
    let again = grpc.gateway.append_event(event("client.a", "{\"n\":1}", Some("k"))).await.unwrap().into_inner();
    assert_eq!(again, first);
    let other = refused(grpc.gateway.append_event(event("client.a", "{\"n\":2}", Some("k"))).await);
    assert_eq!(other, (Code::FailedPrecondition, "idempotency_conflict".into()));
    for (kind, payload) in [("client.a", "[]"), ("client.a", "{"), ("run.status", "{}")] {
        assert_eq!(refused(grpc.gateway.append_event(event(kind, payload, None)).await).0, Code::InvalidArgument);
    }
}

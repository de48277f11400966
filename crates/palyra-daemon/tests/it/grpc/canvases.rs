//! CanvasService: all of it, on a canvas that a run drew.

use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::watch_canvas_response::Change;
use serde_json::{Value, json};
use tonic::Code;

use super::support::Grpc;
use crate::support::Place;

const SCRIPT: &str = r#"
[[script]]
when = "draw"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.a2ui.render"
arguments = { title = "t", document = { root = { type = "form", id = "f", fields = [{ type = "number", name = "n", label = "N" }] } } }
[[script.turn]]
text = "drawn"
[[script]]
[[script.turn]]
echo = "user"
"#;

#[tokio::test]
async fn a_canvas_is_listed_read_watched_submitted_to_and_closed() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    let run = daemon.create("draw it").await;
    daemon.follow(run.run_id, 1).await;
    let mut grpc = Grpc::of(&daemon).await;
    let session_id = run.session_id.to_string();
    let list = wire::ListCanvasesRequest { session_id: session_id.clone(), include_closed: false };
    let listed = grpc.canvases.list_canvases(list.clone()).await.unwrap().into_inner().canvases;
    let [canvas] = listed.as_slice() else { panic!("{listed:?}") };
    assert_eq!((canvas.title.as_str(), canvas.version, &canvas.session_id), ("t", 1, &session_id));
    let canvas_id = canvas.canvas_id.clone();

    let got = grpc.canvases.get_canvas(wire::GetCanvasRequest { canvas_id: canvas_id.clone() }).await.unwrap();
    let document: Value = serde_json::from_str(&got.into_inner().document_json).unwrap();
    assert_eq!(document["root"]["id"], "f");

    let watch = wire::WatchCanvasRequest { canvas_id: canvas_id.clone(), from_version: 0 };
    let mut watched = grpc.canvases.watch_canvas(watch).await.unwrap().into_inner();
    let first = watched.message().await.unwrap().unwrap();
    assert_eq!(first.version, 1);
    assert!(matches!(first.change, Some(Change::DocumentJson(text)) if text.contains("\"f\"")));

    let action = |values: Value, expected_version| wire::SubmitCanvasActionRequest {
        canvas_id: canvas_id.clone(),
        component_id: "f".into(),
        action: "submit".into(),
        values_json: values.to_string(),
        expected_version,
    };
    let code = |answer: Result<_, tonic::Status>| answer.map(|_: tonic::Response<_>| ()).unwrap_err().code();
    assert_eq!(code(grpc.canvases.submit_canvas_action(action(json!({"n": "x"}), 1)).await), Code::InvalidArgument);
    assert_eq!(code(grpc.canvases.submit_canvas_action(action(json!([]), 1)).await), Code::InvalidArgument);
    assert_eq!(code(grpc.canvases.submit_canvas_action(action(json!({"n": 7}), 2)).await), Code::Aborted);
    let taken = grpc.canvases.submit_canvas_action(action(json!({"n": 7}), 1)).await.unwrap().into_inner();
    let run_id = taken.run_id.parse().unwrap();
    daemon.follow(run_id, 1).await;
    let answer = daemon.client.run(run_id).await.unwrap().answer.unwrap();
    assert!(answer.contains("{\"n\":7}"), "{answer}");

    let closed = grpc.canvases.close_canvas(wire::CloseCanvasRequest { canvas_id: canvas_id.clone() }).await.unwrap();
    assert!(closed.into_inner().canvas.unwrap().closed_at.is_some());
    assert!(watched.message().await.unwrap().is_none(), "the stream ends with the canvas");
    assert!(grpc.canvases.list_canvases(list).await.unwrap().into_inner().canvases.is_empty());
}

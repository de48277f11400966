//! CanvasService: pages that agents drew, and what people do on them.

use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use palyra_client::api::{CanvasChangeView, CanvasView, ListCanvasesParams, SubmitCanvasParams, WatchCanvasParams};
use palyra_client::command::{About, StreamCommand};
use palyra_common::{CanvasId, Timestamp};
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::canvas_service_server::CanvasService;
use palyra_proto::gateway::v1::watch_canvas_response::Change;
use palyra_proto::{ProtoError, json_from_wire, timestamp_to_wire};
use prost::Message;
use serde_json::Value;
use tonic::{Request, Response, Status};

use super::ask::{caller, outcome, unreadable};
use super::{bounded, read};
use crate::app::App;
use crate::dispatch::{self, HeldMessages, HeldPage, Page};

/// The service.
pub(super) struct Canvases {
    app: Arc<App>,
}

impl Canvases {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl CanvasService for Canvases {
    type WatchCanvasStream = Pin<Box<dyn Stream<Item = Result<wire::WatchCanvasResponse, Status>> + Send>>;

    async fn list_canvases(
        &self,
        request: Request<wire::ListCanvasesRequest>,
    ) -> Result<Response<wire::ListCanvasesResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.get_ref();
        let session_id = read::parsed(&request.session_id, "session_id").map_err(unreadable)?;
        let params = ListCanvasesParams {
            session_id: Some(session_id),
            include_closed: Some(request.include_closed),
            limit: None,
        };
        let listed = outcome!(&self.app, &caller, CanvasList(params));
        Ok(Response::new(wire::ListCanvasesResponse { canvases: listed.canvases.into_iter().map(canvas).collect() }))
    }

    async fn get_canvas(
        &self,
        request: Request<wire::GetCanvasRequest>,
    ) -> Result<Response<wire::GetCanvasResponse>, Status> {
        let caller = caller(&request)?;
        let id = id(&request.get_ref().canvas_id)?;
        let found = outcome!(&self.app, &caller, CanvasGet(About::only(id)));
        Ok(Response::new(wire::GetCanvasResponse {
            canvas: Some(canvas(found.canvas)),
            document_json: found.document.to_string(),
        }))
    }

    async fn watch_canvas(
        &self,
        request: Request<wire::WatchCanvasRequest>,
    ) -> Result<Response<Self::WatchCanvasStream>, Status> {
        let caller = caller(&request)?;
        let request = request.get_ref();
        let target = id(&request.canvas_id)?;
        let params = WatchCanvasParams { from_version: Some(request.from_version) };
        let command = StreamCommand::CanvasWatch(About { target, params });
        let documents = dispatch::open(&self.app, &caller, command).await?;
        Ok(bounded::streaming(Box::pin(watched(documents.into_pages())) as Self::WatchCanvasStream))
    }

    async fn submit_canvas_action(
        &self,
        request: Request<wire::SubmitCanvasActionRequest>,
    ) -> Result<Response<wire::SubmitCanvasActionResponse>, Status> {
        let caller = caller(&request)?;
        let request = request.into_inner();
        let target = id(&request.canvas_id)?;
        let params = submission(request).map_err(unreadable)?;
        let taken = outcome!(&self.app, &caller, CanvasSubmit(About { target, params }));
        let of_input = taken.input.and_then(|input| input.run).map(|run| run.run_id);
        let run_id = of_input.or_else(|| taken.approval.and_then(|approval| approval.run_id));
        let run_id = run_id.map(|id| id.to_string()).unwrap_or_default();
        Ok(Response::new(wire::SubmitCanvasActionResponse { run_id }))
    }

    async fn close_canvas(
        &self,
        request: Request<wire::CloseCanvasRequest>,
    ) -> Result<Response<wire::CloseCanvasResponse>, Status> {
        let caller = caller(&request)?;
        let id = id(&request.get_ref().canvas_id)?;
        let closed = outcome!(&self.app, &caller, CanvasClose(About::only(id)));
        Ok(Response::new(wire::CloseCanvasResponse { canvas: Some(canvas(closed)) }))
    }
}

fn id(text: &str) -> Result<CanvasId, Status> {
    read::parsed(text, "canvas_id").map_err(unreadable)
}

/// What a message says was done. The answer to a question names it among the values, as `approval_id`.
fn submission(request: wire::SubmitCanvasActionRequest) -> Result<SubmitCanvasParams, ProtoError> {
    let mut values = match request.values_json.as_str() {
        "" => Value::Object(serde_json::Map::new()),
        text => json_from_wire(text, "values_json")?,
    };
    let Value::Object(fields) = &mut values else {
        return Err(ProtoError::invalid("values_json", "it is not an object"));
    };
    let answers = matches!(request.action.as_str(), "allow" | "deny");
    let approval_id = match answers.then(|| fields.remove("approval_id")).flatten() {
        None => None,
        Some(Value::String(id)) => Some(read::parsed(&id, "values_json.approval_id")?),
        Some(_) => return Err(ProtoError::invalid("values_json.approval_id", "it is not a string")),
    };
    Ok(SubmitCanvasParams {
        component_id: request.component_id,
        action: Some(request.action).filter(|action| !action.is_empty()),
        approval_id,
        values: std::mem::take(fields),
        // Versions count from 1, so zero says that none is expected.
        expected_version: Some(request.expected_version).filter(|version| *version > 0),
        once: None,
    })
}

/// Each step as a message; pulled, so that a client that stops reading holds one page and nothing else.
fn watched(
    pages: impl Stream<Item = dispatch::Result<HeldPage>> + Send,
) -> impl Stream<Item = Result<wire::WatchCanvasResponse, Status>> + Send {
    let messages = |page: dispatch::Result<HeldPage>| match page {
        Ok(HeldPage { page: Page::Canvas(changes), permit }) => {
            let messages = changes.into_iter().map(|change| Ok(change_of(change))).collect();
            let bytes =
                |message: &Result<wire::WatchCanvasResponse, Status>| message.as_ref().map_or(0, Message::encoded_len);
            HeldMessages::new(messages, bytes, permit)
        }
        Ok(_) => HeldMessages::default(),
        Err(refusal) => HeldMessages::single(Err(Status::from(refusal))),
    };
    pages.flat_map(move |page| futures::stream::iter(messages(page)))
}

fn change_of(view: CanvasChangeView) -> wire::WatchCanvasResponse {
    let change = match (view.document, view.patch) {
        (Some(document), _) => Some(Change::DocumentJson(document.to_string())),
        (None, Some(patch)) => Some(Change::PatchJson(patch.to_string())),
        (None, None) => None,
    };
    wire::WatchCanvasResponse { version: view.version, change }
}

fn canvas(view: CanvasView) -> wire::Canvas {
    let at = |instant: Timestamp| Some(timestamp_to_wire(instant));
    wire::Canvas {
        canvas_id: view.canvas_id.to_string(),
        session_id: view.session_id.to_string(),
        title: view.title,
        version: view.version,
        created_at: at(view.created_at),
        updated_at: at(view.updated_at),
        closed_at: view.closed_at.and_then(at),
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use serde_json::json;

    use super::*;
    use crate::dispatch::TestBudget;

    #[tokio::test]
    async fn steps_are_held_until_the_client_has_taken_them() {
        let change = |version| CanvasChangeView {
            canvas_id: CanvasId::from_u128(1),
            version,
            document: None,
            patch: Some(json!([])),
        };
        let budget = TestBudget::new();
        let page = budget.hold(Page::Canvas(vec![change(1), change(2)])).await;
        // Nothing more happens on the canvas.
        let pages = futures::stream::iter([Ok(page)]).chain(futures::stream::pending());
        let mut messages = pin!(watched(pages));
        for version in [1, 2] {
            assert_eq!(messages.next().await.unwrap().unwrap().version, version);
            assert!(!budget.is_free(), "what a client does not take counts");
        }
        // The connection asks for more once it has sent the last one.
        assert!(futures::poll!(messages.next()).is_pending());
        assert!(budget.is_free());
    }
}

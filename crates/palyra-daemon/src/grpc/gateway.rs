//! GatewayService: sessions, runs and commands by name. What it does not have yet it says it does not have.

use std::sync::Arc;

use palyra_common::AcpCommandEnvelope;
use palyra_proto::ProtoError;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::gateway_service_server::GatewayService;
use tonic::{Request, Response, Status, Streaming};

use super::ask::{caller, unreadable};
use super::run_stream::{self, RunStream};
use super::{bindings, runs, sessions, status, write};
use crate::app::App;
use crate::{dispatch, http};

type Answer<T> = Result<Response<T>, Status>;

/// The service.
pub(super) struct Gateway {
    app: Arc<App>,
}

impl Gateway {
    pub(super) fn new(app: Arc<App>) -> Self {
        Self { app }
    }
}

#[tonic::async_trait]
impl GatewayService for Gateway {
    type RunStreamStream = RunStream;

    async fn get_health(&self, _: Request<wire::GetHealthRequest>) -> Answer<wire::GetHealthResponse> {
        Ok(Response::new(write::health(http::health_report(&self.app))))
    }

    async fn run_stream(&self, request: Request<Streaming<wire::RunStreamRequest>>) -> Answer<RunStream> {
        let caller = caller(&request)?;
        run_stream::open(Arc::clone(&self.app), caller, request.into_inner()).await.map(Response::new)
    }

    async fn execute(&self, request: Request<wire::ExecuteRequest>) -> Answer<wire::ExecuteResponse> {
        let caller = caller(&request)?;
        let command = request.into_inner().command.ok_or_else(|| unreadable(ProtoError::missing("command")))?;
        let envelope = AcpCommandEnvelope::try_from(command).map_err(|error| unreadable(error.inside("command")))?;
        let result = dispatch::envelope(&self.app, &caller, envelope).await;
        Ok(Response::new(wire::ExecuteResponse { result: Some(result.into()) }))
    }

    async fn abort_run(&self, request: Request<wire::AbortRunRequest>) -> Answer<wire::AbortRunResponse> {
        let caller = caller(&request)?;
        runs::abort(&self.app, &caller, request.into_inner()).await.map(Response::new)
    }

    async fn list_runs(&self, request: Request<wire::ListRunsRequest>) -> Answer<wire::ListRunsResponse> {
        let caller = caller(&request)?;
        runs::list(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn get_run(&self, request: Request<wire::GetRunRequest>) -> Answer<wire::GetRunResponse> {
        let caller = caller(&request)?;
        runs::get(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn get_run_tape(&self, request: Request<wire::GetRunTapeRequest>) -> Answer<wire::GetRunTapeResponse> {
        let caller = caller(&request)?;
        runs::tape(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn list_sessions(&self, request: Request<wire::ListSessionsRequest>) -> Answer<wire::ListSessionsResponse> {
        let caller = caller(&request)?;
        sessions::list(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn resolve_session(
        &self,
        request: Request<wire::ResolveSessionRequest>,
    ) -> Answer<wire::ResolveSessionResponse> {
        let caller = caller(&request)?;
        sessions::resolve(&self.app, &caller, request.into_inner()).await.map(Response::new)
    }

    async fn cleanup_session(
        &self,
        request: Request<wire::CleanupSessionRequest>,
    ) -> Answer<wire::CleanupSessionResponse> {
        let caller = caller(&request)?;
        sessions::cleanup(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn append_event(&self, _: Request<wire::AppendEventRequest>) -> Answer<wire::AppendEventResponse> {
        Err(status::not_yet("AppendEvent"))
    }

    async fn route_message(&self, _: Request<wire::RouteMessageRequest>) -> Answer<wire::RouteMessageResponse> {
        Err(status::not_yet("RouteMessage"))
    }

    async fn list_agents(&self, _: Request<wire::ListAgentsRequest>) -> Answer<wire::ListAgentsResponse> {
        Err(status::not_yet("ListAgents"))
    }

    async fn get_agent(&self, _: Request<wire::GetAgentRequest>) -> Answer<wire::GetAgentResponse> {
        Err(status::not_yet("GetAgent"))
    }

    async fn set_agent(&self, _: Request<wire::SetAgentRequest>) -> Answer<wire::SetAgentResponse> {
        Err(status::not_yet("SetAgent"))
    }

    async fn remove_agent(&self, _: Request<wire::RemoveAgentRequest>) -> Answer<wire::RemoveAgentResponse> {
        Err(status::not_yet("RemoveAgent"))
    }

    async fn list_bindings(&self, request: Request<wire::ListBindingsRequest>) -> Answer<wire::ListBindingsResponse> {
        let caller = caller(&request)?;
        bindings::list(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn set_binding(&self, request: Request<wire::SetBindingRequest>) -> Answer<wire::SetBindingResponse> {
        let caller = caller(&request)?;
        bindings::set(&self.app, &caller, request.into_inner()).await.map(Response::new)
    }

    async fn remove_binding(
        &self,
        request: Request<wire::RemoveBindingRequest>,
    ) -> Answer<wire::RemoveBindingResponse> {
        let caller = caller(&request)?;
        bindings::remove(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }
}

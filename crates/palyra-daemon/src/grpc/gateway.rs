//! GatewayService: sessions, runs, agents, what comes in from outside, and commands by name.

use std::sync::Arc;

use palyra_common::AcpCommandEnvelope;
use palyra_proto::ProtoError;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::gateway_service_server::GatewayService;
use tonic::{Request, Response, Status, Streaming};

use super::ask::{caller, unreadable};
use super::run_stream::{self, RunStream};
use super::{agents, bindings, bounded, inbound, runs, sessions, write};
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
        run_stream::open(Arc::clone(&self.app), caller, request.into_inner()).await.map(bounded::streaming)
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

    async fn append_event(&self, request: Request<wire::AppendEventRequest>) -> Answer<wire::AppendEventResponse> {
        let caller = caller(&request)?;
        inbound::append(&self.app, &caller, request.into_inner()).await.map(Response::new)
    }

    async fn route_message(&self, request: Request<wire::RouteMessageRequest>) -> Answer<wire::RouteMessageResponse> {
        let caller = caller(&request)?;
        inbound::route(&self.app, &caller, request.into_inner()).await.map(Response::new)
    }

    async fn list_agents(&self, request: Request<wire::ListAgentsRequest>) -> Answer<wire::ListAgentsResponse> {
        let caller = caller(&request)?;
        agents::list(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn get_agent(&self, request: Request<wire::GetAgentRequest>) -> Answer<wire::GetAgentResponse> {
        let caller = caller(&request)?;
        agents::get(&self.app, &caller, request.get_ref()).await.map(Response::new)
    }

    async fn set_agent(&self, request: Request<wire::SetAgentRequest>) -> Answer<wire::SetAgentResponse> {
        let caller = caller(&request)?;
        agents::set(&self.app, &caller, request.into_inner()).await.map(Response::new)
    }

    async fn remove_agent(&self, request: Request<wire::RemoveAgentRequest>) -> Answer<wire::RemoveAgentResponse> {
        let caller = caller(&request)?;
        agents::remove(&self.app, &caller, request.get_ref()).await.map(Response::new)
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

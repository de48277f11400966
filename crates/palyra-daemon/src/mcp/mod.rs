//! The daemon as a server of the Model Context Protocol: `/mcp` over streamable HTTP.
//!
//! A foreign agent sees a few commands of the catalogue as tools ([`tools`] says which and why only those). Every call passes through the one
//! dispatcher with the caller that the gate let in, so policies, rates, ownership and idempotency hold as everywhere. The protocol itself, with its
//! revisions and its negotiation, is rmcp's.
//!
//! INVARIANT: nothing is kept between requests. Each one shows its credential anew, so a revoked or expired token ends at once, and no session of the protocol
//! could outlive whoever opened it. What lasts is a run, and that is on the journal.

mod call;
mod tools;

use std::sync::Arc;

use axum::Router;
use axum::extract::{FromRequest as _, Request, State};
use axum::response::{IntoResponse as _, Response};
use axum::routing::any;
use http::request::Parts;
use palyra_common::BuildInfo;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, ErrorData, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use rmcp::{RoleServer, ServerHandler};

use crate::app::App;
use crate::dispatch::{Caller, Transport};
use crate::http::{Body, MAX_BODY_BYTES};

/// Where the protocol is served.
const PATH: &str = "/mcp";

/// What an agent is told about this server before it sees the tools.
const INSTRUCTIONS: &str = "Palyra runs tasks durably on the machine it is installed on. `run_create` gives it a task and waits for the answer; when `phase` is \
    not terminal yet, ask again with `run_get` and `wait_seconds`. A run in `waiting_for_approval` waits for a person: tell yours to look at \
    `pending_approvals`; you cannot answer for them. A run continues when you stop waiting; `run_abort` ends it.";

/// The one address of the protocol.
pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new().route(PATH, any(serve))
}

async fn serve(State(app): State<Arc<App>>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    // The gate checked the host and the origin; the body is read under the same bounds of size and time as any other.
    let Body(body) = match Body::from_request(Request::from_parts(parts.clone(), body), &()).await {
        Ok(body) => body,
        Err(refused) => return refused.into_response(),
    };
    let config = StreamableHttpServerConfig::default()
        .with_legacy_session_mode(false)
        .disable_allowed_hosts()
        .with_max_request_body_bytes(MAX_BODY_BYTES);
    let server = StreamableHttpService::new(
        move || Ok(Server { app: Arc::clone(&app) }),
        Arc::new(NeverSessionManager::default()),
        config,
    );
    let request = http::Request::from_parts(parts, axum::body::Body::from(body));
    server.handle(request).await.map(axum::body::Body::new)
}

/// What answers one request.
struct Server {
    app: Arc<App>,
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let server = Implementation::new("palyra", BuildInfo::current().version);
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(server)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(tools::all().map(|offered| offered.tool.clone()).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(offered) = tools::named(&request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let caller = caller(&context)?;
        let arguments = request.arguments.unwrap_or_default();
        Ok(call::tool(&self.app, &caller, offered, arguments, &context).await.into())
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        tools::named(name).map(|offered| offered.tool.clone())
    }
}

/// Whom the gate let in with this request.
fn caller(context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
    let admitted = context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>());
    let Some(admitted) = admitted else {
        return Err(ErrorData::internal_error("the caller is not authenticated", None));
    };
    let mut caller = admitted.clone();
    caller.transport = Transport::Mcp;
    Ok(caller)
}

//! Methods about sessions.

use std::sync::Arc;

use palyra_client::api::{AbortRunParams, ArchiveSessionParams, ResolveSessionParams};
use palyra_client::command::About;
use palyra_common::SessionId;
use palyra_proto::ProtoError;
use palyra_proto::gateway::v1 as wire;
use palyra_proto::gateway::v1::resolve_session_request::By;
use tonic::Status;

use super::ask::{outcome, unreadable};
use super::{read, write};
use crate::app::App;
use crate::dispatch::Caller;

pub(super) async fn list(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::ListSessionsRequest,
) -> Result<wire::ListSessionsResponse, Status> {
    let params = read::list_sessions(request).map_err(unreadable)?;
    let page = outcome!(app, caller, SessionList(params));
    Ok(wire::ListSessionsResponse {
        sessions: page.sessions.into_iter().map(write::session).collect(),
        next_page_token: page.next_before.map(|place| place.to_string()).unwrap_or_default(),
    })
}

pub(super) async fn resolve(
    app: &Arc<App>,
    caller: &Caller,
    request: wire::ResolveSessionRequest,
) -> Result<wire::ResolveSessionResponse, Status> {
    let (session, created) = match request.by {
        Some(By::SessionKey(session_key)) => {
            let params = ResolveSessionParams { session_key, title: request.title };
            let resolved = outcome!(app, caller, SessionResolve(params));
            (resolved.session, resolved.created)
        }
        Some(By::SessionId(id)) => {
            let id: SessionId = read::parsed(&id, "session_id").map_err(unreadable)?;
            (outcome!(app, caller, SessionResume(About::only(id))).session, false)
        }
        None => return Err(unreadable(ProtoError::missing("by"))),
    };
    Ok(wire::ResolveSessionResponse { session: Some(write::session(session)), created })
}

/// Archives first: from then on the session takes no new run, so none can begin behind the ones that are stopped.
pub(super) async fn cleanup(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::CleanupSessionRequest,
) -> Result<wire::CleanupSessionResponse, Status> {
    let target: SessionId = read::parsed(&request.session_id, "session_id").map_err(unreadable)?;
    let params = ArchiveSessionParams { archived: true };
    let about = About { target, params };
    let archived = outcome!(app, caller, SessionArchive(about), version request.expected_version);
    let left = outcome!(app, caller, SessionResume(About::only(target)));
    let mut aborted_runs = 0;
    for run in left.active_runs {
        let params = AbortRunParams { reason: Some("its session was removed".to_owned()) };
        outcome!(app, caller, RunAbort(About { target: run.run_id, params }));
        aborted_runs += 1;
    }
    Ok(wire::CleanupSessionResponse { session: Some(write::session(archived)), aborted_runs })
}

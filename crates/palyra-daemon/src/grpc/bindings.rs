//! Methods about bindings.

use std::sync::Arc;

use palyra_client::api::{BindingPlace, BindingView, SetBindingParams};
use palyra_client::command::About;
use palyra_common::{BindingId, SessionId};
use palyra_proto::ProtoError;
use palyra_proto::gateway::v1 as wire;
use tonic::Status;

use super::ask::{outcome, unreadable};
use super::read;
use crate::app::App;
use crate::dispatch::Caller;

pub(super) async fn list(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::ListBindingsRequest,
) -> Result<wire::ListBindingsResponse, Status> {
    let params = read::list_bindings(request).map_err(unreadable)?;
    let page = outcome!(app, caller, BindingList(params));
    Ok(wire::ListBindingsResponse {
        bindings: page.bindings.into_iter().map(binding).collect(),
        next_page_token: page.next_after.map(|id| id.to_string()).unwrap_or_default(),
    })
}

pub(super) async fn set(
    app: &Arc<App>,
    caller: &Caller,
    request: wire::SetBindingRequest,
) -> Result<wire::SetBindingResponse, Status> {
    let wanted = request.binding.ok_or_else(|| unreadable(ProtoError::missing("binding")))?;
    let session_id: SessionId = read::parsed(&wanted.session_id, "binding.session_id").map_err(unreadable)?;
    let place = BindingPlace { channel: wanted.channel, account: wanted.account, conversation: wanted.conversation };
    if !wanted.binding_id.is_empty() {
        let id: BindingId = read::parsed(&wanted.binding_id, "binding.binding_id").map_err(unreadable)?;
        let known = outcome!(app, caller, BindingGet(About::only(id)));
        if known.place != place {
            return Err(unreadable(ProtoError::invalid("binding.binding_id", "it is the id of another binding")));
        }
    }
    let agent = Some(wanted.agent_id).filter(|agent| !agent.is_empty());
    let params = SetBindingParams { place, session_id, agent, trusted_senders: wanted.trusted_senders };
    let set = outcome!(app, caller, BindingSet(params), version request.expected_version);
    Ok(wire::SetBindingResponse { binding: Some(binding(set)) })
}

pub(super) async fn remove(
    app: &Arc<App>,
    caller: &Caller,
    request: &wire::RemoveBindingRequest,
) -> Result<wire::RemoveBindingResponse, Status> {
    let id: BindingId = read::parsed(&request.binding_id, "binding_id").map_err(unreadable)?;
    outcome!(app, caller, BindingRemove(About::only(id)));
    Ok(wire::RemoveBindingResponse {})
}

fn binding(view: BindingView) -> wire::Binding {
    wire::Binding {
        binding_id: view.binding_id.to_string(),
        agent_id: view.agent.unwrap_or_default(),
        channel: view.place.channel,
        account: view.place.account,
        conversation: view.place.conversation,
        version: view.version,
        session_id: view.session_id.to_string(),
        trusted_senders: view.trusted_senders,
    }
}

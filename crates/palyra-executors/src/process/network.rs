//! The way out of one sandbox: the egress proxy on the sockets that the sandbox made inside its own network.

use palyra_egress::{Egress, EgressGrant, ProxyAccess, ProxyHandle, ProxyOptions, listener_from_fd};
use palyra_sandbox::Child;
use palyra_tools::{EffectId, ToolError};

use super::options::ProcessOptions;
use super::readiness::refused;

/// Serves the proxies of a process. They end when they are dropped.
pub(super) fn serve(
    egress: &Egress,
    options: &ProcessOptions,
    effect_id: &EffectId,
    child: &mut Child,
) -> Result<Vec<ProxyHandle>, ToolError> {
    let mut handles = Vec::new();
    for socket in std::mem::take(&mut child.proxy_listeners) {
        let mut grant = EgressGrant::new(effect_id.to_string());
        grant.rules.clone_from(&options.network);
        grant.private_hosts.clone_from(&options.private_hosts);
        let listener = listener_from_fd(socket).map_err(|error| refused(&error))?;
        let options = ProxyOptions { grant, access: ProxyAccess::Open };
        handles.push(egress.serve(listener, options).map_err(|error| refused(&error))?);
    }
    Ok(handles)
}

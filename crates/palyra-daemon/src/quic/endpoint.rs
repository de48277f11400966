//! Where connections come in. Opens certificates in the background, so that no start waits for them; packets that arrive meanwhile wait in the system's queue.

use std::net::UdpSocket;
use std::sync::Arc;
use std::time::Duration;

use palyra_client::quic::CloseCode;
use palyra_common::{ComponentHealth, HealthStatus, ToStableError as _};
use palyra_identity::Authority;
use quinn::{Endpoint, EndpointConfig, TokioRuntime, VarInt};
use quinn_proto::HashedConnectionIdGenerator;
use ring::hmac;
use tokio_util::task::TaskTracker;

use super::{connection, settings};
use crate::app::App;
use crate::auth::Proxies;
use crate::error::DaemonError;
use crate::options;
use crate::serve::{ConnectionLimits, Connections, Origin};
use crate::tls::Identity;

/// How long the last packets may take when the daemon stops.
const GOODBYE: Duration = Duration::from_millis(500);

/// Serves QUIC at a socket until the daemon closes.
pub(crate) async fn serve(app: Arc<App>, socket: UdpSocket, identity: Identity) {
    let opened = tokio::select! {
        () = app.closing.cancelled() => return,
        opened = open(&app, socket, &identity) => opened,
    };
    match opened {
        Ok((endpoint, authority)) => accept(&app, &endpoint, &authority).await,
        Err(error) => {
            let envelope = error.to_stable();
            tracing::error!(code = envelope.code, message = envelope.message, "QUIC is not served");
            let health = ComponentHealth::new("quic", HealthStatus::Failing, envelope.message);
            app.quic_health.set(match envelope.recovery_hint {
                Some(hint) => health.hint(hint),
                None => health,
            });
        }
    }
}

async fn open(
    app: &Arc<App>,
    socket: UdpSocket,
    identity: &Identity,
) -> Result<(Endpoint, Arc<Authority>), DaemonError> {
    let authority = identity.authority().await?;
    let server = settings::server(&authority, &app.config.config().quic)?;
    let endpoint = Endpoint::new(names(identity).await?, Some(server), socket, Arc::new(TokioRuntime));
    Ok((endpoint.map_err(DaemonError::system("serve QUIC"))?, authority))
}

/// How connections are named. The same keys after a restart: the daemon then knows that a packet belongs to a connection that is gone, and its client
/// believes it when it says so, instead of waiting in vain.
async fn names(identity: &Identity) -> Result<EndpointConfig, DaemonError> {
    let ids = hmac::sign(&identity.derived_key(b"palyra quic connection ids v1").await?, b"");
    let key = ids.as_ref().first_chunk().copied().map(u64::from_be_bytes).unwrap_or_default();
    let mut config = EndpointConfig::new(Arc::new(identity.derived_key(b"palyra quic stateless reset v1").await?));
    config.cid_generator(move || Box::new(HashedConnectionIdGenerator::from_key(key)));
    Ok(config)
}

async fn accept(app: &Arc<App>, endpoint: &Endpoint, authority: &Arc<Authority>) {
    let config = app.config.config();
    let slots =
        Connections::new(ConnectionLimits::for_open(config.quic.max_connections as usize, options::idle(config)));
    let proxies = Proxies::new(&config.http);
    let connections = TaskTracker::new();
    loop {
        let incoming = tokio::select! {
            biased;
            () = app.closing.cancelled() => break,
            incoming = endpoint.accept() => incoming,
        };
        let Some(incoming) = incoming else { break };
        // When it gets crowded, a client first shows that it is where it says: one that makes addresses up drives nobody out.
        if slots.is_crowded() && !incoming.remote_address_validated() && incoming.may_retry() {
            let _ = incoming.retry();
            continue;
        }
        let Some(slot) = slots.admit(Origin::of_address(incoming.remote_address().ip(), proxies.trusted())) else {
            tracing::warn!("a QUIC connection was refused: all slots are taken by authenticated callers");
            incoming.refuse();
            continue;
        };
        let (app, authority) = (Arc::clone(app), Arc::clone(authority));
        connections.spawn(async move { connection::serve(&app, authority, incoming, slot).await });
    }
    // Nobody new from here on; what is under way is answered first.
    endpoint.set_server_config(None);
    connections.close();
    connections.wait().await;
    endpoint.close(VarInt::from_u32(CloseCode::Stopping.number()), b"the daemon is stopping");
    let _ = tokio::time::timeout(GOODBYE, endpoint.wait_idle()).await;
}

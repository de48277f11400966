//! The proxy as a service: started on a listener, owned through a handle, ended with all its connections.

use std::fmt;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::sync::{Arc, PoisonError, RwLock};

use palyra_common::SecretString;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

use super::door;
use crate::egress::Egress;
use crate::error::EgressError;
use crate::log::{OpenRecord, Via};
use crate::rules::{EgressGrant, Intercept};
use crate::tls::SandboxAuthority;

/// Who may use the proxy.
#[derive(Debug, Clone)]
pub enum ProxyAccess {
    /// Whoever reaches the listener. Right for a listener inside a sandbox's own network namespace.
    Open,
    /// Whoever shows this token, as password of `Proxy-Authorization: Basic` or of SOCKS5; the user name does not matter. For a
    /// listener that other processes of the machine can reach too.
    Token(SecretString),
}

/// What one proxy serves.
#[derive(Debug, Clone)]
pub struct ProxyOptions {
    /// What may be reached.
    pub grant: EgressGrant,
    /// Who may use it.
    pub access: ProxyAccess,
}

/// Takes a port for a proxy. Port 0 lets the system choose.
pub async fn bind(address: SocketAddr) -> Result<TcpListener, EgressError> {
    TcpListener::bind(address)
        .await
        .map_err(|source| EgressError::ListenFailed { address: address.to_string(), source })
}

/// A listening socket that was made elsewhere, such as in the network namespace of a sandbox.
pub fn listener_from_fd(descriptor: OwnedFd) -> Result<TcpListener, EgressError> {
    let failed = |source| EgressError::ListenFailed { address: "an inherited socket".to_owned(), source };
    let listener = std::net::TcpListener::from(descriptor);
    listener.set_nonblocking(true).map_err(failed)?;
    // Also finds out whether the descriptor is a TCP socket at all.
    listener.local_addr().map_err(failed)?;
    TcpListener::from_std(listener).map_err(failed)
}

/// What the connections of one proxy share.
pub(super) struct Shared {
    pub(super) egress: Egress,
    pub(super) access: ProxyAccess,
    pub(super) authority: Option<Arc<SandboxAuthority>>,
    state: RwLock<State>,
}

struct State {
    grant: Arc<EgressGrant>,
    /// Cancelled when the grant is replaced or withdrawn: what it allowed ends with it.
    generation: CancellationToken,
    connections: Arc<Semaphore>,
}

impl Shared {
    /// The grant of now, for one request.
    pub(super) fn grant(&self) -> Arc<EgressGrant> {
        Arc::clone(&self.state.read().unwrap_or_else(PoisonError::into_inner).grant)
    }

    pub(super) fn open_record(&self, grant: &EgressGrant, via: Via) -> OpenRecord {
        let life = self.state.read().unwrap_or_else(PoisonError::into_inner).generation.clone();
        self.egress.open_record(grant, via).living_with(life)
    }

    fn admit(&self) -> (CancellationToken, Result<OwnedSemaphorePermit, EgressError>) {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        let permit = Arc::clone(&state.connections).try_acquire_owned();
        let limit = state.grant.limits.concurrent;
        (state.generation.clone(), permit.map_err(|_| EgressError::Busy { limit }))
    }
}

impl Egress {
    /// Serves a grant on a listener until the handle is shut down or dropped.
    pub fn serve(&self, listener: TcpListener, options: ProxyOptions) -> Result<ProxyHandle, EgressError> {
        let authority = match options.grant.intercept {
            Intercept::Never => None,
            Intercept::WhenGranted => Some(self.authority(&options.grant.id)?),
        };
        self.serve_under(listener, options, authority)
    }

    /// A new authority, for a sandbox that has to know it before its proxy can listen.
    pub fn authority(&self, grant: &str) -> Result<Arc<SandboxAuthority>, EgressError> {
        Ok(Arc::new(SandboxAuthority::new(grant, &*self.parts().clock)?))
    }

    /// Serves a grant as [`Egress::serve`] does, under an authority that was made before.
    pub fn serve_under(
        &self,
        listener: TcpListener,
        options: ProxyOptions,
        authority: Option<Arc<SandboxAuthority>>,
    ) -> Result<ProxyHandle, EgressError> {
        let ProxyOptions { grant, access } = options;
        grant.validate()?;
        let address =
            listener.local_addr().map_err(|source| EgressError::ListenFailed { address: "unknown".into(), source })?;
        let shared = Arc::new(Shared { egress: self.clone(), access, authority, state: RwLock::new(state_of(grant)) });
        let stop = CancellationToken::new();
        let task = tokio::spawn(accept(listener, Arc::clone(&shared), stop.clone()));
        Ok(ProxyHandle { address, shared, stop, task: Some(task) })
    }
}

fn state_of(grant: EgressGrant) -> State {
    let connections = Arc::new(Semaphore::new(grant.limits.concurrent.min(Semaphore::MAX_PERMITS)));
    State { grant: Arc::new(grant), generation: CancellationToken::new(), connections }
}

/// A running proxy. Dropping it ends the proxy and all its connections.
pub struct ProxyHandle {
    address: SocketAddr,
    shared: Arc<Shared>,
    stop: CancellationToken,
    task: Option<JoinHandle<()>>,
}

impl ProxyHandle {
    /// Where it listens, as seen from the listener's own network namespace.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The certificate that the sandbox has to trust, in PEM, if the grant lets the proxy look into TLS.
    #[must_use]
    pub fn authority_pem(&self) -> Option<&str> {
        self.shared.authority.as_deref().map(SandboxAuthority::pem)
    }

    /// Replaces the grant. Connections made under the old one end; a grant that lets the proxy look into TLS needs a proxy that was started so.
    pub fn replace_grant(&self, grant: EgressGrant) -> Result<(), EgressError> {
        grant.validate()?;
        if grant.intercept == Intercept::WhenGranted && self.shared.authority.is_none() {
            let reason = "this proxy was started without a certificate authority, so it cannot inspect TLS".to_owned();
            return Err(EgressError::GrantInvalid { grant: grant.id, reason });
        }
        let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        state.generation.cancel();
        *state = state_of(grant);
        Ok(())
    }

    /// Withdraws the grant: everything under way ends, everything new is refused.
    pub fn revoke(&self) {
        let mut state = self.shared.state.write().unwrap_or_else(PoisonError::into_inner);
        let mut nothing = EgressGrant::new(state.grant.id.clone());
        nothing.limits = state.grant.limits.clone();
        state.generation.cancel();
        *state = state_of(nothing);
    }

    /// Ends the proxy and waits until its last connection is gone.
    pub async fn shutdown(mut self) {
        self.stop.cancel();
        if let Some(task) = self.task.take() {
            let _ = task.await;
        }
    }
}

impl Drop for ProxyHandle {
    fn drop(&mut self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for ProxyHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProxyHandle").field("address", &self.address).finish_non_exhaustive()
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>, stop: CancellationToken) {
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => break,
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(serve_one(Arc::clone(&shared), stream));
                }
                // Out of descriptors, most likely: leave the processor to those who will close some.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            },
        }
    }
    connections.shutdown().await;
}

async fn serve_one(shared: Arc<Shared>, stream: TcpStream) {
    let _ = stream.set_nodelay(true);
    let (generation, permit) = shared.admit();
    match permit {
        Ok(_permit) => {
            tokio::select! {
                () = generation.cancelled() => {}
                () = door::serve(shared, stream) => {}
            }
        }
        Err(busy) => door::turn_away(&shared, stream, &busy).await,
    }
}

//! What the proxy and the client share: where names, secrets and trust come from, and where records go.

use std::fmt;
use std::sync::Arc;

use palyra_common::{Clock, SystemClock};

use crate::client::EgressClient;
use crate::error::EgressError;
use crate::log::{ConnectionLog, NoLog, OpenRecord, Via};
use crate::resolve::{Resolver, SystemResolver};
use crate::rules::EgressGrant;
use crate::secrets::{NoSecrets, SecretSource};
use crate::tls::{Trust, Trusted};

/// The ports of this crate, filled by whoever assembles the daemon.
pub struct EgressOptions {
    /// Resolves names.
    pub resolver: Arc<dyn Resolver>,
    /// Hands out bound secrets.
    pub secrets: Arc<dyn SecretSource>,
    /// Takes a record of every connection.
    pub log: Arc<dyn ConnectionLog>,
    /// Whom to trust.
    pub trust: Trust,
    /// Tells the time.
    pub clock: Arc<dyn Clock>,
}

impl Default for EgressOptions {
    fn default() -> Self {
        Self {
            resolver: Arc::new(SystemResolver),
            secrets: Arc::new(NoSecrets),
            log: Arc::new(NoLog),
            trust: Trust::System,
            clock: Arc::new(SystemClock),
        }
    }
}

impl fmt::Debug for EgressOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressOptions").field("trust", &self.trust).finish_non_exhaustive()
    }
}

/// The way out. Cheap to clone; proxies and clients are made from it.
#[derive(Clone)]
pub struct Egress(Arc<Parts>);

pub(crate) struct Parts {
    pub(crate) resolver: Arc<dyn Resolver>,
    pub(crate) secrets: Arc<dyn SecretSource>,
    pub(crate) log: Arc<dyn ConnectionLog>,
    pub(crate) trusted: Trusted,
    pub(crate) clock: Arc<dyn Clock>,
}

impl Egress {
    /// Assembles the way out. A certificate file that cannot be used is reported here.
    pub fn new(options: EgressOptions) -> Result<Self, EgressError> {
        let EgressOptions { resolver, secrets, log, trust, clock } = options;
        Ok(Self(Arc::new(Parts { resolver, secrets, log, trusted: Trusted::new(trust)?, clock })))
    }

    /// A client with its own cache.
    #[must_use]
    pub fn client(&self) -> EgressClient {
        EgressClient::new(self.clone())
    }

    pub(crate) fn parts(&self) -> &Parts {
        &self.0
    }

    pub(crate) fn open_record(&self, grant: &EgressGrant, via: Via) -> OpenRecord {
        OpenRecord::open(&self.0.log, &*self.0.clock, &grant.id, via)
    }
}

impl fmt::Debug for Egress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Egress")
    }
}

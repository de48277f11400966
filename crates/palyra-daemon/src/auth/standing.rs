//! Whether a credential that was good when something long began still is.
//!
//! A token may be revoked or run out, a certificate too, a session of the console may be ended. Whatever lasts longer than a request holds a [`Lease`] and ends
//! when it is lost: at once where somebody took the credential back here, at the moment it runs out otherwise.

use std::sync::Arc;
use std::time::Duration;

use palyra_common::{Clock, Timestamp};
use palyra_identity::{ConsoleSessions, Principal, Refusal, Via};
use tokio::sync::watch;

use crate::dispatch::Tokens;
use crate::tls::Identity;

/// Longest sleep before a lease is looked at again, whatever is known about its end: clocks are set.
const LOOK_EVERY: Duration = Duration::from_secs(20);

/// Everything that knows about credentials.
pub(super) struct Standing {
    pub(super) tokens: Arc<Tokens>,
    pub(super) identity: Identity,
    pub(super) console: ConsoleSessions,
    pub(super) clock: Arc<dyn Clock>,
    /// Counts whenever a credential was taken back.
    taken_back: watch::Sender<u64>,
}

impl Standing {
    pub(super) fn new(
        tokens: Arc<Tokens>,
        identity: Identity,
        console: ConsoleSessions,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { tokens, identity, console, clock, taken_back: watch::Sender::new(0) }
    }

    /// Has everything that lasts look at its credential now.
    pub(super) fn look_again(&self) {
        self.taken_back.send_modify(|count| *count += 1);
    }

    /// Until when a credential is good as far as is known, or why it is not any more.
    pub(super) fn check(&self, via: &Via) -> Result<Option<Timestamp>, Refusal> {
        let now = self.clock.now();
        let until = match via {
            Via::UnixSocket { .. } | Via::LocalToken => None,
            Via::ApiToken { id, secret } => self.tokens.good_until(id, *secret, now)?,
            Via::Device { serial, .. } if self.identity.is_revoked(serial) => return Err(Refusal::Revoked),
            Via::Device { serial, .. } => self.identity.expiry(serial),
            Via::CanvasLink { made_with, .. } => return self.check(made_with),
            Via::Console { session } => {
                return match self.console.opened_by(session) {
                    None => Err(Refusal::Expired),
                    // It has been one session of one credential from the beginning; sessions are not opened with sessions.
                    Some(Via::Console { .. }) => Ok(None),
                    Some(opened_by) => self.check(&opened_by),
                };
            }
        };
        if until.is_some_and(|until| until <= now) { Err(Refusal::Expired) } else { Ok(until) }
    }
}

/// The right to go on with something, for as long as its credential is good.
pub(crate) struct Lease {
    standing: Arc<Standing>,
    via: Via,
    taken_back: watch::Receiver<u64>,
}

impl Lease {
    pub(super) fn new(standing: &Arc<Standing>, principal: &Principal) -> Self {
        let taken_back = standing.taken_back.subscribe();
        Self { standing: Arc::clone(standing), via: principal.via.clone(), taken_back }
    }

    /// Waits until it is lost; says why. Cancel-safe.
    pub(crate) async fn lost(&mut self) -> Refusal {
        loop {
            let until = match self.standing.check(&self.via) {
                Ok(until) => until,
                Err(refusal) => return refusal,
            };
            let left = until.map_or(LOOK_EVERY, |until| until.since(self.standing.clock.now()));
            // A millisecond more, so that it has really run out then.
            let sleep = left.min(LOOK_EVERY) + Duration::from_millis(1);
            tokio::select! {
                () = tokio::time::sleep(sleep) => {}
                // The sender lives as long as this does.
                _ = self.taken_back.changed() => {}
            }
        }
    }
}

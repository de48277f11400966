//! What a credential can hand on: nobody gives more than they have.
//!
//! Every credential that is made with another one goes through [`Bounds`]: its role, scopes, life and rate stay within those of what it was made with.

use std::collections::BTreeSet;
use std::num::NonZeroU32;

use palyra_common::{PrincipalRole, Timestamp, TokenScope};

use super::record::{Parent, ParentDevice, ParentToken};
use crate::{IdentityError, NewToken, Principal, TokenRecord, Via};

/// The most that a credential can hand on.
#[derive(Debug, Clone)]
pub struct Bounds {
    role: PrincipalRole,
    scopes: BTreeSet<TokenScope>,
    /// When the credential ends, if it does.
    until: Option<Timestamp>,
    rate_per_minute: Option<NonZeroU32>,
    parent: Option<Parent>,
}

impl Bounds {
    /// The bounds of somebody whose credential is `behind` them and ends at `until`.
    #[must_use]
    pub fn of(principal: &Principal, behind: &Via, until: Option<Timestamp>) -> Self {
        let parent = match behind {
            Via::ApiToken { id, secret } => Some(Parent::Token(ParentToken { id: id.clone(), secret: *secret })),
            Via::Device { id, serial } => Some(Parent::Device(ParentDevice { device: *id, serial: serial.clone() })),
            Via::UnixSocket { .. } | Via::LocalToken | Via::Console { .. } | Via::CanvasLink { .. } => None,
        };
        Self {
            role: principal.role,
            scopes: principal.scopes.clone(),
            until,
            rate_per_minute: principal.rate_per_minute,
            parent,
        }
    }

    /// A token as it may be: what is left open is no more than the maker has.
    ///
    /// # Errors
    /// When more is asked for.
    pub(crate) fn narrow(&self, wanted: NewToken) -> Result<(NewToken, Option<Parent>), IdentityError> {
        let scopes = wanted.scopes.clone().unwrap_or_else(|| {
            wanted.role.scopes().iter().copied().filter(|scope| self.scopes.contains(scope)).collect()
        });
        let expires_at = wanted.expires_at.or(self.until);
        let rate_per_minute = wanted.rate_per_minute.or(self.rate_per_minute);
        self.hold(wanted.role, &scopes, expires_at, rate_per_minute)?;
        Ok((NewToken { scopes: Some(scopes), expires_at, rate_per_minute, ..wanted }, self.parent.clone()))
    }

    /// Refuses to hand out a secret of a token that is good for more.
    ///
    /// # Errors
    /// What it is good for beyond these bounds.
    pub(crate) fn hold_record(&self, record: &TokenRecord) -> Result<(), IdentityError> {
        // A token may change its own secret, whatever its life.
        if matches!(&self.parent, Some(Parent::Token(own)) if own.id == record.id) {
            return Ok(());
        }
        self.hold(record.role, &record.scopes, record.expires_at, record.rate_per_minute)
    }

    fn hold(
        &self,
        role: PrincipalRole,
        scopes: &BTreeSet<TokenScope>,
        expires_at: Option<Timestamp>,
        rate_per_minute: Option<NonZeroU32>,
    ) -> Result<(), IdentityError> {
        let beyond = |what: String| Err(IdentityError::BeyondCredential { what });
        // A role is within another when everything it reaches is.
        if let Some(scope) = role.scopes().iter().find(|scope| !self.role.reaches(**scope)) {
            return beyond(format!("the role `{role}`, which includes `{scope}`"));
        }
        if let Some(scope) = scopes.iter().find(|scope| !self.scopes.contains(scope)) {
            return beyond(format!("the scope `{scope}`"));
        }
        if self.until.is_some_and(|until| expires_at.is_none_or(|at| at > until)) {
            return beyond("a longer life".to_owned());
        }
        if self.rate_per_minute.is_some_and(|most| rate_per_minute.is_none_or(|rate| rate > most)) {
            return beyond("a higher rate".to_owned());
        }
        Ok(())
    }
}

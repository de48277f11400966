//! The book of tokens: the sum of their events, and the check of what a caller shows.
//!
//! Making, rotating and revoking give an event and change nothing. Whoever keeps the journal writes the event and then applies it, so
//! that no token works that is not on record. When a token was last used is kept in memory and handed out to be stored now and then:
//! a write for each request would cost more than the fact is worth.
//!
//! A check takes the same work whether or not the token exists: one digest, two comparisons of 32 bytes in constant time.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::num::NonZeroU32;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use palyra_common::{DeviceId, Digest, PrincipalRole, SecretString, Timestamp, TokenScope};
use subtle::{Choice, ConstantTimeEq as _};

use super::bounds::Bounds;
use super::record::{MAX_OVERLAP, Parent, PreviousSecret};
use super::text::{digest, mint, parse};
use crate::{IdentityError, Principal, PrincipalId, Refusal, Serial, TokenEvent, TokenId, TokenRecord, Via};

/// Most tokens in force at one time: far above what people manage, and a bound for whoever may create them.
const MAX_LIVE_TOKENS: usize = 4_096;

/// What a token should be.
#[derive(Debug, Clone)]
pub struct NewToken {
    /// What a person calls it.
    pub name: String,
    /// For whom it acts.
    pub subject: PrincipalId,
    /// As what.
    pub role: PrincipalRole,
    /// For what; all that the role reaches if not given.
    pub scopes: Option<BTreeSet<TokenScope>>,
    /// When it ends by itself.
    pub expires_at: Option<Timestamp>,
    /// How often a minute it may be used.
    pub rate_per_minute: Option<NonZeroU32>,
}

/// A token with a new secret: the event to record, and the text that is shown once and kept nowhere.
#[derive(Debug)]
pub struct IssuedToken {
    /// To be recorded, then applied.
    pub event: TokenEvent,
    /// What its holder gets.
    pub text: SecretString,
}

/// When tokens were last used.
#[derive(Debug, Default)]
struct LastUsed {
    at: HashMap<TokenId, Timestamp>,
    /// Those that changed since they were last handed out.
    changed: BTreeSet<TokenId>,
}

/// What stands at the beginning of a line of tokens, each made with the one before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// A token that a person was there to make.
    Token(TokenId),
    /// A device.
    Device(DeviceId),
}

/// The tokens in force, and those that were.
#[derive(Debug, Default)]
pub struct TokenBook {
    records: BTreeMap<TokenId, TokenRecord>,
    /// Certificates of devices that were taken back: tokens that were made with them are not good any more.
    revoked_certificates: BTreeSet<Serial>,
    last_used: Mutex<LastUsed>,
}

impl TokenBook {
    /// A book without tokens.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The book that a history adds up to, with what contradicts the events before it. Those events count for nothing: a token that was revoked
    /// stays so, and one that was never created stays unknown. One odd record must not lock everybody out.
    pub fn from_events<'a>(events: impl IntoIterator<Item = &'a TokenEvent>) -> (Self, Vec<IdentityError>) {
        let mut book = Self::new();
        let contradictions = events.into_iter().filter_map(|event| book.apply(event).err()).collect();
        (book, contradictions)
    }

    /// Ends the tokens that were made with these certificates.
    pub fn certificates_revoked(&mut self, serials: impl IntoIterator<Item = Serial>) {
        self.revoked_certificates.extend(serials);
    }

    /// Adds an event that is on record.
    ///
    /// # Errors
    /// When it contradicts what was before; the book stays as it was.
    pub fn apply(&mut self, event: &TokenEvent) -> Result<(), IdentityError> {
        match event {
            TokenEvent::Created { record } => {
                record.check().map_err(|error| IdentityError::token_history(error.to_string()))?;
                if self.records.contains_key(&record.id) {
                    return Err(IdentityError::token_history(format!("`{}` is created twice", record.id)));
                }
                self.records.insert(record.id.clone(), record.as_ref().clone());
            }
            TokenEvent::Rotated { id, at, hash, previous_until, .. } => {
                let record = self.changeable(id)?;
                record.previous = previous_until.map(|until| PreviousSecret { hash: record.hash, until });
                record.hash = *hash;
                record.rotated_at = Some(*at);
            }
            TokenEvent::Revoked { id, at, .. } => {
                let record = self.changeable(id)?;
                record.revoked_at = Some(*at);
                record.previous = None;
            }
        }
        Ok(())
    }

    fn changeable(&mut self, id: &TokenId) -> Result<&mut TokenRecord, IdentityError> {
        let unknown = || IdentityError::token_history(format!("`{id}` changes before it is created"));
        let record = self.records.get_mut(id).ok_or_else(unknown)?;
        if record.revoked_at.is_some() {
            return Err(IdentityError::token_history(format!("`{id}` changes after it was revoked")));
        }
        Ok(record)
    }

    /// Makes a token.
    ///
    /// # Errors
    /// When it is not one that may exist: no name, scopes beyond its role, more than its maker has, already over, or one too many.
    pub fn create(
        &self,
        wanted: NewToken,
        by: &PrincipalId,
        within: &Bounds,
        now: Timestamp,
    ) -> Result<IssuedToken, IdentityError> {
        let live = self.records.values().filter(|record| record.is_live(now));
        if live.count() >= MAX_LIVE_TOKENS {
            return Err(IdentityError::TooManyTokens { limit: MAX_LIVE_TOKENS });
        }
        if wanted.expires_at.is_some_and(|at| at <= now) {
            return Err(IdentityError::token_request("it would already have expired"));
        }
        let (wanted, parent) = within.narrow(wanted)?;
        let mut id = TokenId::generate()?;
        while self.records.contains_key(&id) {
            id = TokenId::generate()?;
        }
        let (text, hash) = mint(&id)?;
        let scopes = wanted.scopes.unwrap_or_else(|| wanted.role.scopes().iter().copied().collect());
        let record = TokenRecord {
            id,
            name: wanted.name,
            subject: wanted.subject,
            role: wanted.role,
            scopes,
            created_at: now,
            created_by: by.clone(),
            parent,
            expires_at: wanted.expires_at,
            rate_per_minute: wanted.rate_per_minute,
            revoked_at: None,
            rotated_at: None,
            hash,
            previous: None,
        };
        record.check()?;
        Ok(IssuedToken { event: TokenEvent::Created { record: Box::new(record) }, text })
    }

    /// Gives a token another secret; with an overlap the old one works for that long too.
    ///
    /// # Errors
    /// When there is no such token, it was revoked or has run out, it is good for more than whoever asks, or the overlap is longer than a week.
    pub fn rotate(
        &self,
        id: &TokenId,
        overlap: Option<Duration>,
        by: &PrincipalId,
        within: &Bounds,
        now: Timestamp,
    ) -> Result<IssuedToken, IdentityError> {
        let record = self.unrevoked(id)?;
        within.hold_record(record)?;
        if record.has_expired(now) {
            return Err(IdentityError::token_request("it has already expired; create another one"));
        }
        if overlap.is_some_and(|overlap| overlap > MAX_OVERLAP) {
            return Err(IdentityError::token_request("the old secret can stay valid for at most a week"));
        }
        let (text, hash) = mint(&record.id)?;
        let previous_until = overlap.filter(|overlap| !overlap.is_zero()).map(|overlap| now.plus(overlap));
        let event = TokenEvent::Rotated { id: id.clone(), at: now, by: by.clone(), hash, previous_until };
        Ok(IssuedToken { event, text })
    }

    /// Takes a token back, for good.
    ///
    /// # Errors
    /// When there is no such token, or it was revoked before.
    pub fn revoke(&self, id: &TokenId, by: &PrincipalId, now: Timestamp) -> Result<TokenEvent, IdentityError> {
        self.unrevoked(id)?;
        Ok(TokenEvent::Revoked { id: id.clone(), at: now, by: by.clone() })
    }

    fn unrevoked(&self, id: &TokenId) -> Result<&TokenRecord, IdentityError> {
        let record = self.records.get(id).ok_or_else(|| IdentityError::TokenNotFound { id: id.to_string() })?;
        match record.revoked_at {
            Some(_) => Err(IdentityError::TokenRevoked { id: id.to_string() }),
            None => Ok(record),
        }
    }

    /// Who shows this text.
    ///
    /// # Errors
    /// When it is no token in force. That it was revoked or is over is said only to whoever holds its secret.
    pub fn verify(&self, text: &str, now: Timestamp) -> Result<Principal, Refusal> {
        let parsed = parse(text);
        let (id, secret) = parsed.unwrap_or_default();
        let shown = digest(id, secret);
        let record = id.parse().ok().and_then(|id: TokenId| self.records.get(&id));
        let nobody = Digest([0; 32]);
        let current = record.map_or(nobody, |record| record.hash);
        let previous = record.and_then(|record| record.previous);
        let in_overlap = Choice::from(u8::from(previous.is_some_and(|previous| now < previous.until)));
        let is_current = shown.0.ct_eq(&current.0);
        let is_previous = shown.0.ct_eq(&previous.map_or(nobody, |previous| previous.hash).0) & in_overlap;
        let matches = bool::from(is_current | is_previous);
        let Some(record) = record.filter(|_| matches && parsed.is_some()) else { return Err(Refusal::Unknown) };
        if record.revoked_at.is_some() {
            return Err(Refusal::Revoked);
        }
        if record.has_expired(now) {
            return Err(Refusal::Expired);
        }
        self.good_until(&record.id, shown, now)?;
        let via = Via::ApiToken { id: record.id.clone(), secret: shown };
        let mut principal = Principal::new(record.subject.clone(), record.role, via)
            .narrowed(&record.scopes)
            .called(format!("{} ({})", record.subject, record.name));
        principal.rate_per_minute = record.rate_per_minute;
        Ok(principal)
    }

    /// Until when a secret of a token is good, or why it is not any more. It ends with the token, when another secret takes its place, and with the token
    /// or device that it was made with.
    ///
    /// # Errors
    /// Why it is not good.
    pub fn good_until(&self, id: &TokenId, secret: Digest, now: Timestamp) -> Result<Option<Timestamp>, Refusal> {
        let (mut id, mut secret, mut until) = (id, secret, None::<Timestamp>);
        // Whoever made a token was there before it, so this ends.
        loop {
            let record = self.records.get(id).ok_or(Refusal::Unknown)?;
            if record.revoked_at.is_some() {
                return Err(Refusal::Revoked);
            }
            let replaced = match record.previous {
                _ if record.hash == secret => None,
                Some(previous) if previous.hash == secret && now < previous.until => Some(previous.until),
                _ => return Err(Refusal::Revoked),
            };
            if record.has_expired(now) {
                return Err(Refusal::Expired);
            }
            until = [until, replaced, record.expires_at].into_iter().flatten().min();
            match &record.parent {
                Some(Parent::Token(parent)) => (id, secret) = (&parent.id, parent.secret),
                Some(Parent::Device(parent)) if self.revoked_certificates.contains(&parent.serial) => {
                    return Err(Refusal::Revoked);
                }
                // A token ends no later than the certificate that it was made with.
                Some(Parent::Device(_)) | None => return Ok(until),
            }
        }
    }

    /// The beginning of the line in which each token was made with the one before: what a program was given by somebody else.
    #[must_use]
    pub fn origin_of(&self, id: &TokenId) -> Origin {
        let mut id = id;
        loop {
            match self.records.get(id).and_then(|record| record.parent.as_ref()) {
                Some(Parent::Token(parent)) => id = &parent.id,
                Some(Parent::Device(parent)) => return Origin::Device(parent.device),
                None => return Origin::Token(id.clone()),
            }
        }
    }

    /// All tokens, also those that are over, in the order of their ids.
    pub fn list(&self) -> impl Iterator<Item = &TokenRecord> {
        self.records.values()
    }

    /// One token.
    #[must_use]
    pub fn get(&self, id: &TokenId) -> Option<&TokenRecord> {
        self.records.get(id)
    }

    /// Notes that a token was used.
    pub fn touch(&self, id: &TokenId, now: Timestamp) {
        if !self.records.contains_key(id) {
            return;
        }
        let mut last = self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        let later = last.at.get(id).is_none_or(|before| *before < now);
        if later {
            last.at.insert(id.clone(), now);
            last.changed.insert(id.clone());
        }
    }

    /// When a token was last used, as far as this process or what it was told knows.
    #[must_use]
    pub fn last_used(&self, id: &TokenId) -> Option<Timestamp> {
        self.last_used.lock().unwrap_or_else(PoisonError::into_inner).at.get(id).copied()
    }

    /// Takes up what was stored before.
    pub fn restore_last_used(&self, stored: impl IntoIterator<Item = (TokenId, Timestamp)>) {
        let mut last = self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        for (id, at) in stored {
            if self.records.contains_key(&id) {
                let known = last.at.entry(id).or_insert(at);
                *known = at.max(*known);
            }
        }
    }

    /// The tokens that were used since this was last asked, with when.
    #[must_use]
    pub fn flush_last_used(&self) -> Vec<(TokenId, Timestamp)> {
        let mut last = self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        let changed = std::mem::take(&mut last.changed);
        changed.into_iter().filter_map(|id| last.at.get(&id).map(|at| (id.clone(), *at))).collect()
    }
}

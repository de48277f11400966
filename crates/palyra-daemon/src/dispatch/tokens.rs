//! Commands about API tokens, and the book of them that the gate asks.
//!
//! What happens to a token is on the journal before it counts. When tokens were last used is noted now and then, in one record for all of them.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use palyra_client::api::{CreateTokenParams, ListTokensResponse, RotateTokenParams, TokenSecretResponse, TokenView};
use palyra_client::command::{About, TokenName};
use palyra_common::{Clock as _, Digest, SystemClock, Timestamp};
use palyra_identity::{
    IssuedToken, NewToken, Origin, Principal, PrincipalId, Serial, TokenBook, TokenEvent, TokenId, TokenRecord, Via,
};
use palyra_journal::Journal;
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use super::devices;
use super::records::{self, TokensUsed, kind};
use super::refusal::{Refusal, Result};
use crate::app::App;

/// Longest life of a token that ends at all, in seconds: ten years. More is a slip of the hand, and would not fit a calendar.
const MAX_LIFE: u64 = 3650 * 24 * 3600;
const MINUTE: Duration = Duration::from_secs(60);
/// How often it is noted when tokens were last used; one record for all of them.
const NOTE_EVERY: Duration = MINUTE;

/// All API tokens.
#[derive(Debug)]
pub(crate) struct Tokens {
    book: RwLock<TokenBook>,
    journal: Journal,
    /// One change at a time: each looks at the book, is recorded and then changes it.
    changing: Mutex<()>,
}

impl Tokens {
    /// The book as the journal has it.
    pub(crate) fn load(journal: &Journal) -> Result<Self> {
        let read = journal.read_blocking(|reader| {
            let connection = reader.connection();
            let revoked = devices::revoked_certificates(connection)?;
            Ok((records::token_events(connection)?, records::tokens_used(connection)?, revoked))
        });
        let (events, used, revoked) = read?;
        let (mut book, contradictions) = TokenBook::from_events(&events);
        for error in contradictions {
            tracing::warn!(%error, "ignoring a token event that contradicts earlier ones");
        }
        book.certificates_revoked(revoked.into_iter().map(|revoked| revoked.serial));
        book.restore_last_used(used);
        Ok(Self { book: RwLock::new(book), journal: journal.clone(), changing: Mutex::new(()) })
    }

    /// Whom a text stands for.
    pub(crate) fn verify(
        &self,
        text: &str,
        now: Timestamp,
    ) -> std::result::Result<Principal, palyra_identity::Refusal> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let principal = book.verify(text, now)?;
        if let Via::ApiToken { id, .. } = &principal.via {
            book.touch(id, now);
        }
        Ok(principal)
    }

    /// Until when a secret of a token is good, or why it is not any more.
    pub(crate) fn good_until(
        &self,
        id: &TokenId,
        secret: Digest,
        now: Timestamp,
    ) -> std::result::Result<Option<Timestamp>, palyra_identity::Refusal> {
        self.book.read().unwrap_or_else(PoisonError::into_inner).good_until(id, secret, now)
    }

    /// What a line of tokens began with, each made with the one before.
    pub(crate) fn origin_of(&self, id: &TokenId) -> Origin {
        self.book.read().unwrap_or_else(PoisonError::into_inner).origin_of(id)
    }

    /// Ends the tokens that were made with these certificates.
    pub(super) fn certificates_revoked(&self, serials: impl IntoIterator<Item = Serial>) {
        self.book.write().unwrap_or_else(PoisonError::into_inner).certificates_revoked(serials);
    }

    /// Notes every minute when tokens were last used, so that a daemon that is killed forgets little.
    pub(crate) async fn keep_noted(self: Arc<Self>, closing: CancellationToken) {
        loop {
            tokio::select! {
                // What is left is noted at the end, when nobody asks any more.
                () = closing.cancelled() => return,
                () = tokio::time::sleep(NOTE_EVERY) => {}
            }
            if let Err(refusal) = self.flush() {
                tracing::warn!(error = %refusal.envelope().message, "cannot record when tokens were last used");
            }
        }
    }

    /// Notes when tokens were last used.
    pub(crate) fn flush(&self) -> Result<()> {
        let used = self.book.read().unwrap_or_else(PoisonError::into_inner).flush_last_used();
        if used.is_empty() {
            return Ok(());
        }
        let record = records::record(kind::TOKENS_USED, SystemClock.now(), &TokensUsed { used })?;
        // The book gives them once, so they wait in the journal while it cannot be written.
        Ok(self.journal.append_detached(vec![record])?)
    }

    async fn change<T>(&self, make: impl FnOnce(&TokenBook) -> Result<(TokenEvent, T)>) -> Result<(TokenEvent, T)> {
        let _turn = self.changing.lock().await;
        let (event, rest) = make(&self.book.read().unwrap_or_else(PoisonError::into_inner))?;
        let record = records::record(kind::TOKEN_CHANGED, SystemClock.now(), &event)?;
        self.journal.append(vec![record]).await?;
        self.book.write().unwrap_or_else(PoisonError::into_inner).apply(&event)?;
        Ok((event, rest))
    }

    fn view_of(&self, id: &TokenId) -> Result<TokenView> {
        let book = self.book.read().unwrap_or_else(PoisonError::into_inner);
        let record = book.get(id).ok_or_else(|| Refusal::internal("a token that was just changed no longer exists"))?;
        Ok(view(&book, record))
    }
}

pub(super) async fn create(app: &App, caller: &Caller, params: CreateTokenParams) -> Result<TokenSecretResponse> {
    let now = SystemClock.now();
    let subject = match &params.subject {
        None => caller.principal.id.clone(),
        // A bare name means a person or program of that name.
        Some(name) if !name.contains(':') => parse(&format!("user:{name}"))?,
        Some(id) => parse(id)?,
    };
    if params.expires_in_seconds.is_some_and(|seconds| seconds == 0 || seconds > MAX_LIFE) {
        return Err(Refusal::field("expires_in_seconds", format!("it must be 1 to {MAX_LIFE} (ten years)")));
    }
    let rate_per_minute = match params.rate_per_minute {
        None => None,
        Some(rate) => Some(rate.try_into().map_err(|_| Refusal::field("rate_per_minute", "it must be at least 1"))?),
    };
    let wanted = NewToken {
        name: params.name,
        subject,
        role: params.role,
        scopes: params.scopes.map(|scopes| scopes.into_iter().collect()),
        expires_at: params.expires_in_seconds.map(|seconds| now.plus(Duration::from_secs(seconds))),
        rate_per_minute,
    };
    let (by, within) = (caller.principal.id.clone(), app.gate.bounds(&caller.principal)?);
    issued(app, |book| Ok(book.create(wanted, &by, &within, now)?)).await
}

fn parse(text: &str) -> Result<PrincipalId> {
    text.parse().map_err(|_| Refusal::field("subject", format!("`{text}` is not the name of a principal")))
}

pub(super) async fn rotate(
    app: &App,
    caller: &Caller,
    about: About<TokenName, RotateTokenParams>,
) -> Result<TokenSecretResponse> {
    let id = token_id(&about.target)?;
    let overlap = about.params.overlap_minutes.map(|minutes| MINUTE.saturating_mul(minutes));
    let (by, within) = (caller.principal.id.clone(), app.gate.bounds(&caller.principal)?);
    let issued = issued(app, |book| Ok(book.rotate(&id, overlap, &by, &within, SystemClock.now())?)).await?;
    // Whatever was begun with the secret before ends now, or when that one does.
    app.gate.look_again();
    Ok(issued)
}

async fn issued(app: &App, make: impl FnOnce(&TokenBook) -> Result<IssuedToken>) -> Result<TokenSecretResponse> {
    let (event, text) = app.gate.tokens().change(|book| make(book).map(|issued| (issued.event, issued.text))).await?;
    Ok(TokenSecretResponse { token: app.gate.tokens().view_of(event.id())?, secret: text.expose().clone() })
}

pub(super) async fn revoke(app: &App, caller: &Caller, name: TokenName) -> Result<TokenView> {
    let id = token_id(&name)?;
    let by = caller.principal.id.clone();
    app.gate.tokens().change(|book| Ok((book.revoke(&id, &by, SystemClock.now())?, ()))).await?;
    app.gate.log_out_opened_by(&id);
    app.gate.tokens().view_of(&id)
}

/// A token as it is now.
pub(super) fn named(app: &App, name: &TokenName) -> Result<TokenView> {
    app.gate.tokens().view_of(&token_id(name)?)
}

fn token_id(name: &TokenName) -> Result<TokenId> {
    name.0.parse().map_err(|_| palyra_identity::IdentityError::TokenNotFound { id: name.0.clone() }.into())
}

pub(super) fn list(app: &App) -> ListTokensResponse {
    let book = app.gate.tokens().book.read().unwrap_or_else(PoisonError::into_inner);
    let mut tokens: Vec<_> = book.list().map(|record| view(&book, record)).collect();
    tokens.sort_by_key(|token| std::cmp::Reverse(token.created_at));
    ListTokensResponse { tokens }
}

fn view(book: &TokenBook, record: &TokenRecord) -> TokenView {
    TokenView {
        token_id: record.id.to_string(),
        name: record.name.clone(),
        subject: record.subject.to_string(),
        role: record.role,
        scopes: record.scopes.iter().copied().collect(),
        created_at: record.created_at,
        created_by: record.created_by.to_string(),
        expires_at: record.expires_at,
        last_used_at: book.last_used(&record.id),
        rotated_at: record.rotated_at,
        revoked_at: record.revoked_at,
        rate_per_minute: record.rate_per_minute.map(u32::from),
    }
}

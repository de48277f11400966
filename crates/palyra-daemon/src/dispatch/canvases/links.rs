//! Links to canvases: 256 random bits in an address that stand for one canvas, for a while, and for nothing else.
//!
//! The journal has the digest of a token and who made it with what; the token itself is told once. A link is good until it runs out, its canvas is
//! closed, or the credential that it was made with is not good any more. It never reaches beyond what its maker could do, nor beyond what a page needs.

use std::collections::BTreeSet;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use palyra_client::api::CanvasAccess;
use palyra_common::{
    CanvasId, Clock as _, DeviceId, Digest, ErrorCategory, PrincipalRole, StableErrorEnvelope, SystemClock, Timestamp,
    TokenScope,
};
use palyra_identity::{Principal, PrincipalId, Serial, TokenId, Via};
use palyra_journal::rusqlite::{Connection, OptionalExtension as _, params};
use palyra_journal::{Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;

use crate::app::App;
use crate::dispatch::caller::Caller;
use crate::dispatch::records::{self, read};
use crate::dispatch::refusal::{Refusal, Result};

const LINKED: &str = "canvas.linked";
/// The engine's record of a canvas's end, which is the end of its links.
const CLOSED: &str = "canvas.closed";
const TOKEN_BYTES: usize = 32;
/// Most links to one canvas that are good at a time.
const MAX_LINKS: u64 = 64;

/// What a page needs to show a canvas.
const LOOKING: [TokenScope; 2] = [TokenScope::SessionsRead, TokenScope::ApprovalsRead];
/// What a page needs besides to act on it.
const ACTING: [TokenScope; 2] = [TokenScope::RunsWrite, TokenScope::ApprovalsDecide];

/// A link that is good at this moment.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) canvas_id: CanvasId,
    pub(crate) access: CanvasAccess,
    pub(crate) expires_at: Timestamp,
    /// Its maker, with what the link needs of their rights.
    pub(crate) principal: Principal,
}

/// Payload of a `canvas.linked` record.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Linked {
    canvas_id: CanvasId,
    /// Digest of the token.
    token: Digest,
    access: CanvasAccess,
    by: PrincipalId,
    role: PrincipalRole,
    scopes: BTreeSet<TokenScope>,
    made_with: MadeWith,
    expires_at: Timestamp,
}

/// The credential that a link was made with, and with which it ends.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum MadeWith {
    UnixSocket {
        uid: u32,
    },
    LocalToken,
    ApiToken {
        id: TokenId,
        /// Digest of the secret that was shown; links from before it was noted are not good any more.
        #[serde(default = "no_secret")]
        secret: Digest,
    },
    Device {
        id: DeviceId,
        serial: Serial,
    },
}

fn no_secret() -> Digest {
    Digest([0; 32])
}

impl MadeWith {
    fn of(via: Via) -> Option<Self> {
        match via {
            Via::UnixSocket { uid } => Some(Self::UnixSocket { uid }),
            Via::LocalToken => Some(Self::LocalToken),
            Via::ApiToken { id, secret } => Some(Self::ApiToken { id, secret }),
            Via::Device { id, serial } => Some(Self::Device { id, serial }),
            Via::Console { .. } | Via::CanvasLink { .. } => None,
        }
    }

    fn via(self) -> Via {
        match self {
            Self::UnixSocket { uid } => Via::UnixSocket { uid },
            Self::LocalToken => Via::LocalToken,
            Self::ApiToken { id, secret } => Via::ApiToken { id, secret },
            Self::Device { id, serial } => Via::Device { id, serial },
        }
    }
}

/// Makes a link and gives its token.
pub(super) async fn make(
    app: &App,
    caller: &Caller,
    canvas_id: CanvasId,
    access: CanvasAccess,
    expires_at: Timestamp,
) -> Result<String> {
    if access == CanvasAccess::Act && !caller.has(TokenScope::RunsWrite) {
        return Err(Refusal::field("access", "this credential may not write to sessions, so its links cannot either"));
    }
    let needed: BTreeSet<TokenScope> = match access {
        CanvasAccess::Read => LOOKING.into(),
        CanvasAccess::Act => LOOKING.into_iter().chain(ACTING).collect(),
    };
    // A link of a link would outlive what its maker was given.
    let made_with = match &caller.principal.via {
        Via::CanvasLink { .. } => None,
        via => app.gate.behind(via).and_then(MadeWith::of),
    };
    let made_with = made_with.ok_or_else(|| Refusal::internal("the caller's credential cannot create links"))?;
    let mut bytes = [0_u8; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|error| Refusal::internal(format!("no random bytes: {error}")))?;
    let linked = Linked {
        canvas_id,
        token: Digest::of(&bytes),
        access,
        by: caller.principal.id.clone(),
        role: caller.principal.role,
        scopes: caller.principal.scopes.intersection(&needed).copied().collect(),
        made_with,
        expires_at,
    };
    let _turn = app.keys.turn("\u{0}canvas links", &canvas_id.to_string()).await;
    let now = SystemClock.now();
    let live = app.journal.read(move |reader| Ok(count(reader.connection(), canvas_id, now)?)).await?;
    if live >= MAX_LINKS {
        return Err(full());
    }
    app.journal.append(vec![records::record(LINKED, now, &linked)?]).await?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn full() -> Refusal {
    let message = format!("the limit of {MAX_LINKS} active links to this canvas is reached");
    StableErrorEnvelope::new("canvas_links_full", ErrorCategory::Conflict, message)
        .hint("use one of them, wait until some expire, or close the canvas, which ends all of them")
        .into()
}

/// What a token stands for; nothing if it is unknown, has run out, its canvas is closed or its maker's credential is not good any more.
pub(crate) async fn link_of(app: &App, token: &str) -> Result<Option<Link>> {
    let Some(bytes) = URL_SAFE_NO_PAD.decode(token).ok().filter(|bytes| bytes.len() == TOKEN_BYTES) else {
        return Ok(None);
    };
    let digest = Digest::of(&bytes);
    // The search is for a digest of what was shown, so how long it takes says nothing about any token; the compare is for the record.
    let found = app.journal.read(move |reader| Ok(by_digest(reader.connection(), digest)?)).await?;
    let Some(linked) = found.filter(|linked| bool::from(linked.token.0.ct_eq(&digest.0))) else { return Ok(None) };
    if linked.expires_at <= SystemClock.now() {
        return Ok(None);
    }
    let (canvas, _) = app.engine.canvas(linked.canvas_id).await?;
    let via = Via::CanvasLink { link: linked.token, made_with: Box::new(linked.made_with.via()) };
    let principal = Principal::new(linked.by, linked.role, via).narrowed(&linked.scopes);
    if canvas.closed_at.is_some() || app.gate.still_good(&principal).is_err() {
        return Ok(None);
    }
    Ok(Some(Link { canvas_id: linked.canvas_id, access: linked.access, expires_at: linked.expires_at, principal }))
}

/// The table.
pub(in crate::dispatch) struct Links;

impl Projection for Links {
    fn name(&self) -> &'static str {
        "canvas_links"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["canvas_links"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE canvas_links (
                token TEXT PRIMARY KEY NOT NULL, canvas_id TEXT NOT NULL, expires_at INTEGER NOT NULL, linked TEXT NOT NULL
            ) STRICT, WITHOUT ROWID;
            CREATE INDEX canvas_links_by_canvas ON canvas_links (canvas_id)",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> std::result::Result<(), ProjectionError> {
        match record.kind.as_ref() {
            LINKED => {
                let linked: Linked = read(record)?;
                let text =
                    serde_json::to_string(&linked).map_err(|error| ProjectionError::Refused(error.to_string()))?;
                // Those that have run out are of no use to anybody.
                connection.prepare_cached("DELETE FROM canvas_links WHERE expires_at <= ?1")?.execute([record.at.0])?;
                connection.prepare_cached("INSERT OR REPLACE INTO canvas_links VALUES (?1, ?2, ?3, ?4)")?.execute(
                    params![linked.token.to_string(), linked.canvas_id.to_string(), linked.expires_at.0, text],
                )?;
            }
            CLOSED => {
                let Closed { canvas_id } = read(record)?;
                connection
                    .prepare_cached("DELETE FROM canvas_links WHERE canvas_id = ?1")?
                    .execute([canvas_id.to_string()])?;
            }
            _ => {}
        }
        Ok(())
    }
}

/// What matters here of the record that a canvas was closed.
#[derive(Deserialize)]
struct Closed {
    canvas_id: CanvasId,
}

fn by_digest(connection: &Connection, digest: Digest) -> rusqlite::Result<Option<Linked>> {
    connection
        .prepare_cached("SELECT linked FROM canvas_links WHERE token = ?1")?
        .query_row([digest.to_string()], |row| {
            let text: String = row.get(0)?;
            serde_json::from_str(&text).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
            })
        })
        .optional()
}

fn count(connection: &Connection, canvas: CanvasId, now: Timestamp) -> rusqlite::Result<u64> {
    connection
        .prepare_cached("SELECT count(*) FROM canvas_links WHERE canvas_id = ?1 AND expires_at > ?2")?
        .query_row(params![canvas.to_string(), now.0], |row| row.get::<_, i64>(0).map(i64::unsigned_abs))
}

//! Commands about bindings: which session a place outside belongs to.
//!
//! A binding belongs to whoever set it, and its id comes from its owner and its place. So nobody can tie a place for somebody else, the same
//! command given twice is one binding, and a look-up is one read by id. Whoever uses a binding must be allowed to use its session at that moment: a binding
//! gives nobody anything.

mod table;

use palyra_client::api::{BindingPlace, BindingView, ListBindingsParams, ListBindingsResponse, SetBindingParams};
use palyra_common::{BindingId, Clock as _, Digest, ErrorCategory, SessionId, StableErrorEnvelope, SystemClock};
use palyra_journal::NewRecord;

use self::table::{BindingRemoved, BindingSet, Filter};
use super::caller::Caller;
use super::records;
use super::refusal::{Refusal, Result};
use super::runs::page_size;
use crate::app::App;

pub(super) use table::Bindings;

/// Longest name of a channel.
const MAX_CHANNEL: usize = 64;
/// Longest name of an account, a conversation or a sender.
const MAX_NAME: usize = 200;
/// Most senders that count as the owner: one person has few names.
const MAX_SENDERS: usize = 16;

pub(super) async fn set(
    app: &App,
    caller: &Caller,
    params: SetBindingParams,
    version: Option<u64>,
) -> Result<BindingView> {
    check(&params.place)?;
    check_senders(&params.trusted_senders)?;
    let id = id_of(caller.id(), &params.place);
    let _turn = turn(app, id).await;
    check_version(find(app, id).await?.as_ref(), version)?;
    if let Some(agent) = &params.agent {
        app.engine.check_agent(agent)?;
    }
    tie(app, caller, params).await
}

pub(super) async fn list(app: &App, caller: &Caller, params: ListBindingsParams) -> Result<ListBindingsResponse> {
    let limit = page_size(params.limit)?;
    let filter = Filter {
        owner: caller.sees(),
        session_id: params.session_id,
        agent: params.agent,
        channel: params.channel,
        account: params.account,
        conversation: params.conversation,
        after: params.after,
        // One more than asked for tells whether there is a next page.
        limit: limit + 1,
    };
    let mut bindings = app.journal.read(move |reader| Ok(table::bindings(reader.connection(), &filter)?)).await?;
    let more = bindings.len() > limit as usize;
    bindings.truncate(limit as usize);
    let next_after = if more { bindings.last().map(|binding| binding.binding_id) } else { None };
    Ok(ListBindingsResponse { bindings, next_after })
}

/// One binding, which has to be there.
pub(super) async fn get(app: &App, id: BindingId) -> Result<BindingView> {
    find(app, id).await?.ok_or_else(|| not_found(&id.to_string()))
}

/// Unties a place; the answer is what it was tied to.
pub(super) async fn remove(app: &App, caller: &Caller, id: BindingId, version: Option<u64>) -> Result<BindingView> {
    let _turn = turn(app, id).await;
    let known = get(app, id).await?;
    check_version(Some(&known), version)?;
    let removed = BindingRemoved { binding_id: id, by: caller.id().to_owned() };
    let record = records::record(table::REMOVED, SystemClock.now(), &removed)?;
    app.journal.append(vec![record]).await?;
    Ok(known)
}

/// The session that a place of the caller's is tied to.
pub(super) async fn session_of(app: &App, caller: &Caller, place: &BindingPlace) -> Result<Option<SessionId>> {
    check(place)?;
    Ok(find(app, id_of(caller.id(), place)).await?.map(|binding| binding.session_id))
}

/// The binding of a place of the caller's, if it is tied.
pub(super) async fn find_at(app: &App, caller: &Caller, place: &BindingPlace) -> Result<Option<BindingView>> {
    check(place)?;
    find(app, id_of(caller.id(), place)).await
}

/// The same for a place that has to be tied.
pub(super) async fn at(app: &App, caller: &Caller, place: &BindingPlace) -> Result<BindingView> {
    find_at(app, caller, place).await?.ok_or_else(|| not_found(&written(place)))
}

/// The records that untie every place, whoever's, where an agent answers.
pub(super) async fn without_agent(app: &App, by: &str, agent: &str) -> Result<Vec<NewRecord>> {
    let filter = Filter { agent: Some(agent.to_owned()), limit: u32::MAX, ..Filter::default() };
    let bound = app.journal.read(move |reader| Ok(table::bindings(reader.connection(), &filter)?)).await?;
    let untied = |binding: BindingView| {
        let removed = BindingRemoved { binding_id: binding.binding_id, by: by.to_owned() };
        records::record(table::REMOVED, SystemClock.now(), &removed)
    };
    bound.into_iter().map(untied).collect()
}

/// Ties a place of the caller's to a session, whatever it was tied to before. The caller has the turn of the place.
pub(super) async fn tie(app: &App, caller: &Caller, params: SetBindingParams) -> Result<BindingView> {
    let SetBindingParams { place, session_id, agent, trusted_senders } = params;
    let owner = caller.id().to_owned();
    let id = id_of(&owner, &place);
    let set = BindingSet { binding_id: id, by: owner.clone(), owner, place, session_id, agent, trusted_senders };
    let record = records::record(table::SET, SystemClock.now(), &set)?;
    app.journal.append(vec![record]).await?;
    get(app, id).await
}

/// Holds a place of the caller's, so that looking at it and tying it are one step.
pub(super) async fn hold<'a>(app: &'a App, caller: &Caller, place: &BindingPlace) -> crate::keys::Turn<'a> {
    turn(app, id_of(caller.id(), place)).await
}

async fn turn(app: &App, id: BindingId) -> crate::keys::Turn<'_> {
    // Keys of callers have no control characters, so none is ever taken for this one.
    app.keys.turn("\u{0}binding", &id.to_string()).await
}

async fn find(app: &App, id: BindingId) -> Result<Option<BindingView>> {
    Ok(app.journal.read(move |reader| Ok(table::binding(reader.connection(), id)?)).await?)
}

fn id_of(owner: &str, place: &BindingPlace) -> BindingId {
    let parts = ["binding", owner, &place.channel, &place.account, &place.conversation];
    let digest = Digest::of_parts(&parts.map(str::as_bytes));
    let mut bits = [0; 16];
    bits.copy_from_slice(digest.0.first_chunk::<16>().unwrap_or(&[0; 16]));
    BindingId::from_u128(u128::from_be_bytes(bits))
}

fn check(place: &BindingPlace) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"._-".contains(&byte);
    if place.channel.is_empty() || place.channel.len() > MAX_CHANNEL || !place.channel.bytes().all(plain) {
        let message = format!("it must be 1 to {MAX_CHANNEL} lower-case letters, digits, `.`, `_` and `-`");
        return Err(Refusal::field("channel", message));
    }
    for (field, name) in [("account", &place.account), ("conversation", &place.conversation)] {
        if name.chars().count() > MAX_NAME || name.chars().any(char::is_control) {
            let message = format!("it must have at most {MAX_NAME} characters and no control characters");
            return Err(Refusal::field(field, message));
        }
    }
    Ok(())
}

fn check_senders(senders: &[String]) -> Result<()> {
    let fits = |name: &String| {
        !name.trim().is_empty() && name.chars().count() <= MAX_NAME && !name.chars().any(char::is_control)
    };
    if senders.len() <= MAX_SENDERS && senders.iter().all(fits) {
        return Ok(());
    }
    let message = format!("at most {MAX_SENDERS}, each with 1 to {MAX_NAME} characters and no control characters");
    Err(Refusal::field("trusted_senders", message))
}

fn check_version(known: Option<&BindingView>, expected: Option<u64>) -> Result<()> {
    let actual = known.map_or(0, |binding| binding.version);
    match expected {
        Some(expected) if expected != actual => {
            let message = format!("the binding is at version {actual}, not at {expected}");
            Err(StableErrorEnvelope::new("version_conflict", ErrorCategory::Conflict, message)
                .hint("read it again, and repeat the change if it still applies")
                .details(serde_json::json!({"expected": expected, "actual": actual}))
                .into())
        }
        _ => Ok(()),
    }
}

fn written(place: &BindingPlace) -> String {
    let named = [&place.channel, &place.account, &place.conversation];
    named.into_iter().filter(|name| !name.is_empty()).map(String::as_str).collect::<Vec<_>>().join("/")
}

fn not_found(what: &str) -> Refusal {
    StableErrorEnvelope::new("binding_not_found", ErrorCategory::NotFound, format!("no session is bound to `{what}`"))
        .hint("`session.new` with the same `binding` starts a session there; `binding.list` lists all bindings")
        .into()
}

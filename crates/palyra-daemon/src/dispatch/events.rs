//! Records of clients' own: telemetry of surfaces under `ux.`, anything else under `client.`.
//!
//! They are kept on the journal and go nowhere else. INVARIANT: no record of a client can be taken for one of Palyra's own. Its kind begins with one of these two
//! words, which nothing else uses; it stands on no run's tape and in no session's story, only its payload names them; and who gave it is written beside
//! what they said.

use palyra_client::api::{AppendEventParams, AppendEventResponse};
use palyra_common::{
    AcpCommand, Clock as _, RunId, SessionId, SystemClock, SystemEventRecord, ToStableError as _, UxEventName,
    UxTelemetryEvent,
};
use palyra_journal::NewRecord;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::authorise;
use super::caller::Caller;
use super::refusal::{Refusal, Result};
use crate::app::App;

/// How kinds of telemetry begin.
const TELEMETRY: &str = "ux.";
/// How all other kinds begin.
const CLIENT: &str = "client.";
/// Longest kind.
const MAX_KIND: usize = 64;
/// Longest payload in bytes.
const MAX_PAYLOAD: usize = 16 << 10;
/// Longest name of a step, in characters.
const MAX_STEP: usize = 64;

/// What a record of a client holds.
#[derive(Debug, Serialize, Deserialize)]
struct ClientEvent {
    by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    session_id: Option<SessionId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run_id: Option<RunId>,
    payload: Map<String, Value>,
}

/// What a record is about, and what it says.
struct Event {
    session_id: Option<SessionId>,
    run_id: Option<RunId>,
    payload: Vec<u8>,
}

pub(super) async fn append(app: &App, caller: &Caller, params: AppendEventParams) -> Result<AppendEventResponse> {
    // Also for the owner at the machine: a surface gone wild must not fill the disk.
    app.event_rates.admit(&caller.principal)?;
    let kind = params.kind.clone();
    let event = if kind.starts_with(TELEMETRY) { telemetry(caller, params)? } else { own(caller, params)? };
    if let Some(session_id) = event.session_id {
        authorise::in_session(app, caller, AcpCommand::EventAppend, session_id).await?;
    }
    if let Some(run_id) = event.run_id {
        authorise::in_run(app, caller, AcpCommand::EventAppend, run_id).await?;
        let home = app.engine.run(run_id).await?.session_id;
        if event.session_id.is_some_and(|named| named != home) {
            return Err(Refusal::field("run_id", format!("the run belongs to session `{home}`")));
        }
    }
    app.journal.admission()?;
    let record = NewRecord::new(kind, SystemClock.now(), event.payload);
    let seq = app.journal.append(vec![record]).await?.last_seq;
    let hash = app.journal.read(move |reader| reader.record(seq)).await?.hash;
    Ok(AppendEventResponse { seq, hash })
}

/// Telemetry as the flat record of its contract.
fn telemetry(caller: &Caller, params: AppendEventParams) -> Result<Event> {
    let AppendEventParams { kind, session_id, run_id, mut payload } = params;
    let name = UxEventName::try_from(kind).map_err(|error| error.to_stable())?;
    let named = payload.insert("name".to_owned(), Value::String(name.as_str().to_owned()));
    if named.is_some_and(|named| named.as_str() != Some(name.as_str())) {
        return Err(Refusal::field("payload.name", "it differs from the kind"));
    }
    let mut event: UxTelemetryEvent = serde_json::from_value(Value::Object(payload))
        .map_err(|error| Refusal::field("payload", format!("it is not a valid telemetry event: {error}")))?;
    let lines =
        [("payload.step", event.step.as_deref()), ("payload.summary", event.summary.as_ref().map(|s| s.as_str()))];
    for (field, text) in lines {
        if text.is_some_and(|text| text.chars().any(char::is_control)) {
            return Err(Refusal::field(field, "it must be one line"));
        }
    }
    if event.step.as_ref().is_some_and(|step| step.chars().count() > MAX_STEP) {
        return Err(Refusal::field("payload.step", format!("it must have at most {MAX_STEP} characters")));
    }
    event.session_id = agreed("session_id", session_id, event.session_id)?;
    event.run_id = agreed("run_id", run_id, event.run_id)?;
    let (session_id, run_id) = (event.session_id, event.run_id);
    let record = SystemEventRecord { by: Some(caller.id().to_owned()), ..SystemEventRecord::from(event) };
    Ok(Event { session_id, run_id, payload: written(&record)? })
}

/// The same id may be named beside the payload and in it.
fn agreed<T: PartialEq>(field: &str, beside: Option<T>, inside: Option<T>) -> Result<Option<T>> {
    match (beside, inside) {
        (Some(one), Some(other)) if one != other => Err(Refusal::field(field, "the payload names a different one")),
        (one, other) => Ok(one.or(other)),
    }
}

/// Anything else, as it was given.
fn own(caller: &Caller, params: AppendEventParams) -> Result<Event> {
    let AppendEventParams { kind, session_id, run_id, payload } = params;
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
    };
    let fits = kind.len() <= MAX_KIND && kind.strip_prefix(CLIENT).is_some_and(|rest| rest.split('.').all(word));
    if !fits {
        let message = format!(
            "it must be `{TELEMETRY}` or `{CLIENT}` and dotted words of lower-case letters, digits and `_`, {MAX_KIND} characters in all"
        );
        return Err(Refusal::field("kind", message));
    }
    let size = written(&payload)?.len();
    if size > MAX_PAYLOAD {
        return Err(Refusal::field("payload", format!("it has {size} bytes; the limit is {MAX_PAYLOAD}")));
    }
    let event = ClientEvent { by: caller.id().to_owned(), session_id, run_id, payload };
    Ok(Event { session_id, run_id, payload: written(&event)? })
}

fn written(value: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(value).map_err(|error| Refusal::internal(format!("a record cannot be written: {error}")))
}

//! A command with a key has its effect once, however often it is given.
//!
//! What is to be done is on the journal before it is done, and what it came to after. In between, the first commit of the command carries a record of its own, so
//! that a daemon which died there knows whether anything happened: [`after_crash`](super::after_crash) says what follows. The same key with another command is a
//! conflict.
//!
//! Two kinds of commands need none of this: those that only look, and creating a run, whose key is part of the run itself.

use palyra_client::command::{Command, Outcome};
use palyra_common::{Clock as _, Digest, ErrorCategory, StableErrorEnvelope, SystemClock};
use palyra_journal::{FirstCommit, NewRecord};

use super::after_crash::{self, Resolution, Traces};
use super::caller::Caller;
use super::facts::facts;
use super::records::{self, CommandAccepted, CommandAnswered, CommandEffect, Earlier, kind};
use super::refusal::{Refusal, Result};
use super::{Answer, Asked, carry_out, changes_nothing, storage};
use crate::app::App;

/// Longest key; keys are indexed.
const MAX_KEY_CHARS: usize = 200;

/// Carries a command out, or gives the answer that it got before.
pub(super) async fn once(app: &App, caller: &Caller, asked: Asked) -> Result<Answer> {
    let Some(key) = asked.idempotency_key.clone() else {
        storage::admit(app, caller, &asked.command).await?;
        return Ok(Answer::Fresh(carry_out(app, caller, asked).await?));
    };
    check_key("idempotency_key", &key)?;
    if changes_nothing(&asked.command) {
        return Ok(Answer::Fresh(carry_out(app, caller, asked).await?));
    }
    if matches!(asked.command, Command::RunCreate(_)) {
        let _turn = app.keys.turn(caller.id(), &key).await;
        let known = app.engine.run_of_key(caller.id(), &key).await?.is_some();
        if !known {
            storage::admit(app, caller, &asked.command).await?;
        }
        let outcome = carry_out(app, caller, asked).await?;
        // The run as it stands now: its key is part of it, so there is no older answer to give.
        return if known { stored(&outcome).map(Answer::Stored) } else { Ok(Answer::Fresh(outcome)) };
    }
    if matches!(facts(&asked.command).traces, Traces::Secret) {
        return Err(Refusal::field(
            "idempotency_key",
            "an answer that contains a secret is not stored, so it cannot be repeated",
        ));
    }
    // Whoever gives the same key meanwhile waits for the first.
    let _turn = app.keys.turn(caller.id(), &key).await;
    let request = digest(&asked)?;
    match look_up(app, caller, &key).await? {
        Some(earlier) if earlier.request != request || earlier.command != asked.command.name().as_str() => {
            return Err(conflict(&key));
        }
        Some(Earlier { result: Some(result), .. }) => return Ok(Answer::Stored(result)),
        Some(earlier) => match after_crash::resolve(app, caller, &asked.command, &earlier).await? {
            Resolution::Execute => storage::admit(app, caller, &asked.command).await?,
            Resolution::Unknown => return Err(unknown(&key)),
            Resolution::Answered(result) => {
                answered(app, caller, key, Some(result.clone())).await?;
                return Ok(Answer::Stored(result));
            }
        },
        None => {
            storage::admit(app, caller, &asked.command).await?;
            let command = asked.command.name().as_str().to_owned();
            let before = after_crash::before(app, &asked.command).await;
            let accepted = CommandAccepted {
                by: caller.id().to_owned(),
                key: key.clone(),
                command,
                request,
                before,
                marked: true,
            };
            let record = records::record(kind::COMMAND_ACCEPTED, SystemClock.now(), &accepted)?;
            app.journal.append(vec![record]).await?;
        }
    }
    let effect = CommandEffect { by: caller.id().to_owned(), key: key.clone() };
    let effect = FirstCommit::with(records::record(kind::COMMAND_EFFECT, SystemClock.now(), &effect)?);
    let leaves_traces = !matches!(facts(&asked.command).traces, Traces::None);
    let outcome = effect.scope(carry_out(app, caller, asked)).await;
    let noted = match &outcome {
        Ok(outcome) => answered(app, caller, key, Some(stored(outcome)?)).await,
        // Whoever gives it again finds out from the journal what came of it, also where this is not noted.
        Err(_) if leaves_traces => {
            app.journal.append(vec![answer(caller, key, None)?]).await.map(drop).map_err(Refusal::from)
        }
        Err(_) => answered(app, caller, key, None).await,
    };
    if let Err(refusal) = noted {
        tracing::error!(error = %refusal.envelope().message, "the outcome of a command could not be recorded under its key");
    }
    outcome.map(Answer::Fresh)
}

/// What this caller was told when it gave this very command, if the thing that the command is about is gone since.
pub(super) async fn answered_before(
    app: &App,
    caller: &Caller,
    asked: &Asked,
    refusal: &Refusal,
) -> Result<Option<Answer>> {
    let gone = refusal.envelope().category == ErrorCategory::NotFound;
    let (true, Some(key)) = (gone, &asked.idempotency_key) else { return Ok(None) };
    let _turn = app.keys.turn(caller.id(), key).await;
    let request = digest(asked)?;
    let Some(earlier) = look_up(app, caller, key).await? else { return Ok(None) };
    if earlier.request != request || earlier.command != asked.command.name().as_str() {
        return Ok(None);
    }
    // Answered, or committed by a daemon that died before it could answer.
    Ok(earlier.result.or_else(|| earlier.effect.and(earlier.before)).map(Answer::Stored))
}

/// Notes what a command came to, as soon as the journal can take it: of some nobody could find it out later.
async fn answered(app: &App, caller: &Caller, key: String, result: Option<serde_json::Value>) -> Result<()> {
    app.journal.append_patiently(vec![answer(caller, key, result)?], app.closing.cancelled()).await?;
    Ok(())
}

fn answer(caller: &Caller, key: String, result: Option<serde_json::Value>) -> Result<NewRecord> {
    let answered = CommandAnswered { by: caller.id().to_owned(), key, result };
    records::record(kind::COMMAND_ANSWERED, SystemClock.now(), &answered)
}

pub(super) fn stored(outcome: &Outcome) -> Result<serde_json::Value> {
    serde_json::to_value(outcome).map_err(|error| Refusal::internal(format!("an answer cannot be written: {error}")))
}

async fn look_up(app: &App, caller: &Caller, key: &str) -> Result<Option<Earlier>> {
    let (by, key) = (caller.id().to_owned(), key.to_owned());
    Ok(app.journal.read(move |reader| Ok(records::earlier(reader.connection(), &by, &key)?)).await?)
}

fn digest(asked: &Asked) -> Result<Digest> {
    let params = asked.command.to_value().map_err(|error| Refusal::internal(error.to_string()))?;
    let version = asked.expected_version.map(|version| version.to_string()).unwrap_or_default();
    // Keys of JSON records are sorted, so equal parameters have equal texts.
    Ok(Digest::of_parts(&[canonical(&params).as_bytes(), version.as_bytes()]))
}

/// JSON with sorted keys, whatever order the parser keeps.
fn canonical(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Object(fields) => {
            let mut sorted: Vec<_> = fields.iter().collect();
            sorted.sort_by_key(|(name, _)| name.as_str());
            let inner: Vec<_> = sorted
                .into_iter()
                .map(|(name, value)| format!("{}:{}", serde_json::Value::String(name.clone()), canonical(value)))
                .collect();
            format!("{{{}}}", inner.join(","))
        }
        serde_json::Value::Array(items) => format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(",")),
        other => other.to_string(),
    }
}

/// What a caller may use as a key.
pub(super) fn check_key(field: &str, key: &str) -> Result<()> {
    let fits = !key.trim().is_empty() && key.chars().count() <= MAX_KEY_CHARS && !key.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(Refusal::field(field, format!("it must have 1 to {MAX_KEY_CHARS} characters and no control characters")))
}

fn conflict(key: &str) -> Refusal {
    let message = format!("the idempotency key `{key}` was used for another command");
    StableErrorEnvelope::new("idempotency_conflict", ErrorCategory::Conflict, message)
        .hint("use a new key for a different command")
        .into()
}

fn unknown(key: &str) -> Refusal {
    let message =
        format!("the daemon stopped while executing the command with the key `{key}`; it may have taken effect");
    StableErrorEnvelope::new("command_outcome_unknown", ErrorCategory::Conflict, message)
        .hint("check whether it took effect, and send it again with a new key if it did not")
        .into()
}

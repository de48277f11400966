//! Conversations: a client sends all that was said each time, and it is found again which session that was.
//!
//! What was said is a chain of digests, one link per message. When an answer is given, the journal notes which chain it ended. A request whose
//! earlier messages are that chain goes on in the session of that answer. Instructions are no part of the chain: a client may word them anew each time.
//! In the same table stands which run a request with a key began.
//!
//! What a client tells is what the model gets to see, not what the session holds: a client that leaves something out means it. Where an answer is
//! found again, its recorded text is used, so that it is trusted as far as it was then.

use std::sync::Arc;

use palyra_agent::{RunFilter, RunRow};
use palyra_client::api::ExchangeParams;
use palyra_common::{Clock as _, Digest, RunId, SystemClock};
use palyra_journal::rusqlite::{Connection, OptionalExtension as _, params};
use palyra_journal::{NewRecord, Projection, ProjectionError, StoredRecord, rusqlite};
use serde::{Deserialize, Serialize};

use super::images::Image;
use super::messages::Said;
use crate::app::App;
use crate::dispatch::{Caller, Refusal, Result};

/// What stands between several texts of one side.
pub(super) const BETWEEN: &str = "\n\n";
/// Exchanges of a conversation that are looked up.
const LOOKED_UP: usize = 256;
/// Kind of the records.
const ANSWERED: &str = "openai.answered";

/// What a request says.
#[derive(Debug)]
pub(super) struct Conversation {
    /// How to answer, in the caller's words.
    pub(super) instructions: String,
    /// What was asked and answered before, with the chain up to each answer.
    pub(super) earlier: Vec<Exchange>,
    /// Calls that the last answer before the end asked for.
    pub(super) open_calls: Vec<String>,
    /// What is new.
    pub(super) new: New,
    /// The chain up to the end.
    pub(super) chain: Chain,
}

/// What is new in a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct New {
    /// What the user says; empty if only tools speak.
    pub(super) text: String,
    /// What the user shows.
    pub(super) images: Vec<Image>,
    /// Results of the client's tools: the call, the content, and where it stands.
    pub(super) results: Vec<(String, String, String)>,
}

/// Something that was asked and answered.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    prompt: String,
    answer: String,
    chain: Chain,
}

/// A digest of all that was said so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Chain(Digest);

impl Chain {
    fn begin() -> Self {
        Self(Digest::of(b"palyra openai conversation"))
    }

    fn then(self, said: &Said) -> Self {
        let mut parts: Vec<&[u8]> = vec![&self.0.0];
        match said {
            Said::Instructions(_) => return self,
            Said::User(text) => parts.extend([&b"user"[..], text.trim().as_bytes()]),
            Said::Image(image) => parts.extend([&b"image"[..], &image.digest.0]),
            Said::Assistant { text, calls } => {
                parts.extend([&b"assistant"[..], text.trim().as_bytes()]);
                parts.extend(calls.iter().map(String::as_bytes));
            }
            Said::Result { call, content, .. } => {
                parts.extend([&b"result"[..], call.as_bytes(), content.trim().as_bytes()]);
            }
        }
        Self(Digest::of_parts(&parts))
    }

    /// The chain with an answer at its end.
    pub(super) fn answered(self, text: &str) -> Self {
        self.then(&Said::Assistant { text: text.to_owned(), calls: Vec::new() })
    }
}

impl Conversation {
    /// Finds the end of what was said before and what is new after it.
    pub(super) fn read(said: Vec<Said>, field: &str) -> Result<Self> {
        let instructions: Vec<_> = said
            .iter()
            .filter_map(|said| if let Said::Instructions(text) = said { Some(text.as_str()) } else { None })
            .collect();
        let instructions = instructions.join(BETWEEN);
        let mut said = merged(said);
        let end = said.iter().rposition(|said| matches!(said, Said::Assistant { .. })).map_or(0, |last| last + 1);
        let tail = said.split_off(end);
        let open_calls = match said.last() {
            Some(Said::Assistant { calls, .. }) => calls.clone(),
            _ => Vec::new(),
        };
        let (earlier, chain) = exchanges(said);
        let chain = tail.iter().fold(chain, |chain, said| chain.then(said));
        let new = new(tail);
        if new.results.is_empty() && new.text.trim().is_empty() && new.images.is_empty() {
            return Err(Refusal::field(field, "the last message must be from the user or a tool, and not empty"));
        }
        if !new.images.is_empty() && !open_calls.is_empty() {
            return Err(Refusal::field(
                field,
                "images cannot go with the results of tools; send them with the next question",
            ));
        }
        Ok(Self { instructions, earlier, open_calls, new, chain })
    }

    /// The task of a new run: the user's words, then those of the program that passes them on.
    pub(super) fn prompt(&self) -> String {
        let words = if self.new.text.trim().is_empty() { "(Only an image was sent.)" } else { &self.new.text };
        match self.instructions.trim() {
            "" => words.to_owned(),
            instructions => {
                format!("{words}\n\n---\nInstructions of the program through which this is asked:\n{instructions}")
            }
        }
    }
}

/// Without instructions, and with neighbouring answers as one: clients send a text and its calls together or apart.
fn merged(said: Vec<Said>) -> Vec<Said> {
    let mut merged: Vec<Said> = Vec::new();
    for said in said {
        match (merged.last_mut(), said) {
            (_, Said::Instructions(_)) => {}
            (Some(Said::Assistant { text, calls }), Said::Assistant { text: more, calls: others }) => {
                if !text.is_empty() && !more.is_empty() {
                    text.push_str(BETWEEN);
                }
                text.push_str(&more);
                calls.extend(others);
            }
            (_, said) => merged.push(said),
        }
    }
    merged
}

fn exchanges(said: Vec<Said>) -> (Vec<Exchange>, Chain) {
    let mut chain = Chain::begin();
    let mut exchanges: Vec<Exchange> = Vec::new();
    let mut asked: Vec<String> = Vec::new();
    let mut answered: Vec<String> = Vec::new();
    let mut answered_at = chain;
    let mut close = |asked: &mut Vec<String>, answered: &mut Vec<String>, chain| {
        if !answered.is_empty() {
            let prompt = if asked.is_empty() { "(nothing was asked)".to_owned() } else { asked.join(BETWEEN) };
            exchanges.push(Exchange { prompt, answer: answered.join(BETWEEN), chain });
            asked.clear();
            answered.clear();
        }
    };
    for said in said {
        chain = chain.then(&said);
        match said {
            Said::Instructions(_) => {}
            Said::User(text) => {
                close(&mut asked, &mut answered, answered_at);
                asked.push(text);
            }
            Said::Image(image) => {
                close(&mut asked, &mut answered, answered_at);
                asked.push(format!("[an image was sent: {}]", image.digest));
            }
            Said::Assistant { text, .. } => {
                if !text.trim().is_empty() {
                    answered.push(text);
                }
                answered_at = chain;
            }
            Said::Result { content, .. } => answered.push(format!("[a tool of the caller gave: {content}]")),
        }
    }
    close(&mut asked, &mut answered, answered_at);
    (exchanges, chain)
}

fn new(tail: Vec<Said>) -> New {
    let mut texts = Vec::new();
    let (mut images, mut results) = (Vec::new(), Vec::new());
    for said in tail {
        match said {
            Said::User(text) => texts.push(text),
            Said::Image(image) => images.push(image),
            Said::Result { call, content, at } => results.push((call, content, at)),
            Said::Instructions(_) | Said::Assistant { .. } => {}
        }
    }
    New { text: texts.join(BETWEEN), images, results }
}

/// What is known of a conversation.
#[derive(Debug)]
pub(super) struct Known {
    /// What was said before, with answers as they were recorded.
    pub(super) history: Vec<ExchangeParams>,
    /// The run that gave the newest answer, if that was the last thing that happened in its session.
    pub(super) last: Option<RunRow>,
}

/// Looks a conversation up among those of the caller.
pub(super) async fn known(app: &App, caller: &Caller, earlier: Vec<Exchange>) -> Result<Known> {
    let owner = caller.id().to_owned();
    // What is older than these does not fit any model's window; a long story must not keep the journal busy.
    let old = earlier.len().saturating_sub(LOOKED_UP);
    let chains: Vec<Chain> = earlier.iter().skip(old).map(|exchange| exchange.chain).collect();
    let places = app
        .journal
        .read(move |reader| {
            let found: rusqlite::Result<Vec<_>> =
                chains.iter().map(|chain| place_of(reader.connection(), &owner, *chain)).collect();
            Ok(found?)
        })
        .await?;
    let mut history = Vec::new();
    let mut last = None;
    let places = std::iter::repeat_n(None, old).chain(places);
    for (exchange, place) in earlier.into_iter().zip(places) {
        let run = match place {
            Some(place) => Some(app.engine.run(place.run_id).await?),
            None => None,
        };
        let recorded = run.as_ref().and_then(|run| run.answer.clone());
        history.push(ExchangeParams { prompt: exchange.prompt, answer: recorded.unwrap_or(exchange.answer) });
        last = run;
    }
    let last = match last {
        Some(run) if is_newest(app, &run).await? => Some(run),
        _ => None,
    };
    Ok(Known { history, last })
}

/// Whether nothing came after a run in its session, and the session takes more.
pub(super) async fn is_newest(app: &App, run: &RunRow) -> Result<bool> {
    let filter = RunFilter { session_id: Some(run.session_id), limit: 1, ..RunFilter::default() };
    let newest = app.engine.runs(filter).await?.first().map(|newest| newest.run_id);
    Ok(newest == Some(run.run_id) && app.engine.session(run.session_id).await?.archived_at.is_none())
}

/// Where an answer is: a run, and the position on its tape at which it begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) run_id: RunId,
    pub(super) from_seq: u64,
}

/// What a request with a key is known by: the same key with other words is another request.
pub(super) fn request_of(key: &str, path: &str, body: &[u8]) -> Chain {
    Chain(Digest::of_parts(&[b"palyra openai request", key.as_bytes(), path.as_bytes(), body]))
}

/// Where the answer to a request was begun before.
pub(super) async fn begun(app: &App, caller: &Caller, request: Chain) -> Result<Option<Place>> {
    let owner = caller.id().to_owned();
    Ok(app.journal.read(move |reader| Ok(place_of(reader.connection(), &owner, request)?)).await?)
}

/// Notes where the answer to a conversation or a request is.
pub(super) async fn note(app: &App, caller: &Caller, chain: Chain, place: Place) -> Result<()> {
    let Place { run_id, from_seq } = place;
    let answered = Answered { owner: caller.id().to_owned(), conversation: chain.0, run_id, from_seq };
    let payload = serde_json::to_vec(&answered).map_err(|error| Refusal::internal(error.to_string()))?;
    app.journal.append(vec![NewRecord::new(ANSWERED, SystemClock.now(), payload)]).await?;
    Ok(())
}

#[derive(Debug, Serialize, Deserialize)]
struct Answered {
    owner: String,
    conversation: Digest,
    run_id: RunId,
    from_seq: u64,
}

/// The table of answers.
pub(crate) fn projection() -> Arc<dyn Projection> {
    Arc::new(Answers)
}

struct Answers;

impl Projection for Answers {
    fn name(&self) -> &'static str {
        "openai_answers"
    }
    fn version(&self) -> u32 {
        1
    }
    fn tables(&self) -> &'static [&'static str] {
        &["openai_answers"]
    }
    fn create(&self, connection: &Connection) -> rusqlite::Result<()> {
        connection.execute_batch(
            "CREATE TABLE openai_answers (
                owner TEXT NOT NULL, conversation TEXT NOT NULL, run_id TEXT NOT NULL, from_seq INTEGER NOT NULL,
                PRIMARY KEY (owner, conversation)
            ) STRICT, WITHOUT ROWID",
        )
    }
    fn apply(&self, connection: &Connection, record: &StoredRecord) -> std::result::Result<(), ProjectionError> {
        if record.kind != ANSWERED {
            return Ok(());
        }
        let answered: Answered = serde_json::from_slice(&record.payload)
            .map_err(|error| ProjectionError::Refused(format!("record {} does not read: {error}", record.seq)))?;
        // The same words may be answered in the same way twice; the newer one is gone on with.
        connection.prepare_cached("INSERT OR REPLACE INTO openai_answers VALUES (?1, ?2, ?3, ?4)")?.execute(
            params![
                answered.owner,
                answered.conversation.to_string(),
                answered.run_id.to_string(),
                i64::try_from(answered.from_seq).unwrap_or(i64::MAX)
            ],
        )?;
        Ok(())
    }
}

fn place_of(connection: &Connection, owner: &str, chain: Chain) -> rusqlite::Result<Option<Place>> {
    let found: Option<(String, i64)> = connection
        .prepare_cached("SELECT run_id, from_seq FROM openai_answers WHERE owner = ?1 AND conversation = ?2")?
        .query_row(params![owner, chain.0.to_string()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(found.and_then(|(run_id, from_seq)| {
        Some(Place { run_id: run_id.parse().ok()?, from_seq: u64::try_from(from_seq).ok()? })
    }))
}

#[cfg(test)]
#[path = "conversation_tests.rs"]
mod tests;

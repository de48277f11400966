//! Forking: a new session that goes on from any point of another.

use palyra_common::{RunId, SessionId};
use palyra_journal::StoredRecord;

use super::create::NewSession;
use super::history::unknown_label;
use super::lineage::{self, Place};
use super::{missing, read};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::machine::{Action, Input, StatusChange};
use crate::projections::{self, SessionRow, SessionState};
use crate::replay::replay;
use crate::session::{Fork, ForkPoint, ForkedFrom};
use crate::spec::{Exchange, OutsideSender};
use crate::tape::TapeEntry;

/// What the model is told at the end of an exchange that was cut short.
const CUT_NOTE: &str = "(the conversation was forked here, before this run was over)";

/// A point of a session's line, found.
struct Found {
    state: SessionState,
    run_id: Option<RunId>,
    /// Whether only a part of the run belongs to the line.
    place: Option<Place>,
    /// Last event of the run, and whether it is over.
    last_seq: u64,
    is_over: bool,
    inherited: u64,
}

impl Engine {
    /// Begins a session whose history is that of `from` up to a point: whole runs before it, and of the run at the point what was said up to there. The fork
    /// takes over mode and settings, and no approvals.
    ///
    /// # Errors
    /// When there is no such session or point, or the id belongs to another session.
    pub async fn fork_session(
        &self,
        from: SessionId,
        point: ForkPoint,
        owner: &str,
        title: Option<String>,
        session_id: Option<SessionId>,
    ) -> Result<SessionRow, AgentError> {
        let owner = owner.to_owned();
        let session_id = session_id.unwrap_or_else(SessionId::generate);
        self.to_the_end(|engine| async move { engine.fork_now(from, point, &owner, title, session_id).await }).await
    }

    async fn fork_now(
        &self,
        from: SessionId,
        point: ForkPoint,
        owner: &str,
        title: Option<String>,
        session_id: SessionId,
    ) -> Result<SessionRow, AgentError> {
        let _session = self.shared.locks.session(session_id).await;
        let found = self.find_point(from, point).await?;
        let fork = self.fork_at(&found, from, point).await?;
        if let Some(created) = self.created_record(session_id).await? {
            // An unfinished run grows between two requests, so the same request may mean a later event of it.
            let same = created.owner == owner
                && created.fork.as_ref().is_some_and(|known| {
                    (known.from.session_id, known.from.run_id) == (from, fork.from.run_id)
                        && (point.seq.is_none() || known.from.seq == fork.from.seq)
                });
            return if same { self.session(session_id).await } else { Err(AgentError::SessionExists(session_id)) };
        }
        let source = found.state.row;
        let new = NewSession {
            session_id: Some(session_id),
            key: None,
            title: Some(title.unwrap_or(source.title)),
            owner: owner.to_owned(),
            mode: source.mode,
            settings: source.settings,
        };
        self.create_fork(new, session_id, fork).await
    }

    async fn find_point(&self, from: SessionId, point: ForkPoint) -> Result<Found, AgentError> {
        if point.run_id.is_none() && point.seq.is_some() {
            return Err(AgentError::ForkPointInvalid("a position needs the run that it is in".to_owned()));
        }
        read(self, move |reader| {
            let db = reader.connection();
            let Some(state) = projections::session(db, from)? else { return Ok(Err(missing(from))) };
            let run_id = match point.run_id {
                Some(run_id) => Some(run_id),
                None => lineage::links(db, &state, 1)?.first().map(lineage::Link::run_id),
            };
            let Some(run_id) = run_id else {
                return Ok(Ok(Found { state, run_id: None, place: None, last_seq: 0, is_over: true, inherited: 0 }));
            };
            let Some(place) = lineage::place_of(db, &state, run_id)? else {
                let why = format!("run `{run_id}` is not in the history of session `{from}`");
                return Ok(Err(AgentError::ForkPointInvalid(why)));
            };
            let is_over = projections::run(db, run_id)?.is_some_and(|run| run.phase.is_terminal());
            let inherited = lineage::count_through(db, &state, run_id)?;
            let last_seq = reader.last_run_seq(run_id)?;
            Ok(Ok(Found { state, run_id: Some(run_id), place: Some(place), last_seq, is_over, inherited }))
        })
        .await
    }

    async fn fork_at(&self, found: &Found, from: SessionId, point: ForkPoint) -> Result<Fork, AgentError> {
        let cut = match found.run_id {
            Some(run_id) => self.cut_at(found, run_id, point.seq).await?,
            None => None,
        };
        let (seq, cut) = cut.unzip();
        // A summary holds as long as everything that it stands for is in the fork.
        let compaction = match (&found.state.compaction, found.run_id) {
            (Some(compaction), Some(run_id)) if self.reaches(&found.state, compaction.through, run_id).await? => {
                Some(compaction.clone())
            }
            _ => None,
        };
        Ok(Fork {
            from: ForkedFrom { session_id: from, run_id: found.run_id, seq },
            inherited: found.inherited,
            cut,
            compaction,
        })
    }

    /// Whether a line up to `end` holds all of the line up to `through`.
    async fn reaches(&self, state: &SessionState, through: RunId, end: RunId) -> Result<bool, AgentError> {
        let state = state.clone();
        self.query(move |reader| {
            let db = reader.connection();
            Ok(lineage::count_through(db, &state, through)? <= lineage::count_through(db, &state, end)?)
        })
        .await
    }

    /// Up to which event the run belongs to the fork, and what was said until then; nothing if all of it does.
    async fn cut_at(
        &self,
        found: &Found,
        run_id: RunId,
        seq: Option<u64>,
    ) -> Result<Option<(u64, Exchange)>, AgentError> {
        let inherited = found.place.as_ref().and_then(|place| place.cut.clone());
        let last = inherited.as_ref().map_or(found.last_seq, |(seq, _)| *seq);
        let seq = match (seq, inherited) {
            (Some(seq), _) if seq == 0 || seq > last => {
                let why = format!("run `{run_id}` has the positions 1 to {last} here");
                return Err(AgentError::ForkPointInvalid(why));
            }
            (Some(seq), Some((cut, exchange))) if seq == cut => return Ok(Some((cut, exchange))),
            (None, Some(inherited)) => return Ok(Some(inherited)),
            (Some(seq), _) if seq < last || !found.is_over => seq,
            (None, None) if !found.is_over => last,
            _ => return Ok(None),
        };
        let limit = usize::try_from(seq).unwrap_or(usize::MAX);
        let records = self.shared.options.journal.read(move |reader| reader.run_tape(run_id, 1, limit)).await?;
        Ok(Some((seq, said(run_id, &records)?)))
    }
}

/// What was said in the first records of a run.
fn said(run_id: RunId, records: &[StoredRecord]) -> Result<Exchange, AgentError> {
    let (mut prompt, mut prompt_label) = (String::new(), None);
    let mut turns: Vec<String> = Vec::new();
    let mut speaking = String::new();
    for record in records {
        match TapeEntry::from_record(record)? {
            TapeEntry::Input(Input::Accepted(spec)) => {
                prompt_label = spec.from.as_ref().map(OutsideSender::label);
                prompt = spec.prompt;
            }
            TapeEntry::Input(Input::UserMessage { text, .. }) => {
                prompt.push_str("\n\n");
                prompt.push_str(&text);
            }
            TapeEntry::Input(Input::ModelDelta { text, .. }) => speaking.push_str(&text),
            TapeEntry::Input(Input::ModelTurnFinished(turn)) => {
                speaking.clear();
                turns.push(turn.text);
            }
            TapeEntry::Action(Action::Status(StatusChange { answer: Some(answer), label, .. })) => {
                // The run was over; what follows are notes.
                let label = label.unwrap_or_else(unknown_label);
                return Ok(Exchange { run_id: Some(run_id), prompt, prompt_label, answer, label });
            }
            TapeEntry::Input(Input::ModelFailed(_)) | TapeEntry::Action(Action::StopModel { .. }) => speaking.clear(),
            _ => {}
        }
    }
    turns.push(speaking);
    turns.push(CUT_NOTE.to_owned());
    turns.retain(|text| !text.trim().is_empty());
    // The tape may end between an input and its actions; the machine stands where the last input left it. A tape of an older machine does not
    // replay, and then nobody knows what the model had read.
    let label = match replay(records) {
        Ok(replayed) if replayed.difference.as_ref().is_none_or(|found| found.seq > replayed.last_seq) => {
            replayed.machine.seen()
        }
        _ => unknown_label(),
    };
    Ok(Exchange { run_id: Some(run_id), prompt, prompt_label, answer: turns.join("\n\n"), label })
}

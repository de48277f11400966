//! Shortening what later runs of a session know of the earlier ones.
//!
//! What was asked and what was answered are kept apart: the words of those who asked stay as trusted as they were, shortened to first sentences. What was
//! answered is summarised by a model where one is configured (`compact_by_model`), and shortened likewise where none is or it fails. Looking at it in advance asks
//! no model, since looking costs nothing. An untrusted answer is left out rather than quoted, because a quotation would make the whole summary untrusted.
//! Everything stays whole on the journal.

use palyra_common::{Integrity, Label, RunId, SessionId};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::change::check_version;
use super::history::{exchange, open_links};
use super::read;
use super::revert::{MadeSummary, summary_from};
use crate::engine::Engine;
use crate::error::AgentError;
use crate::projections::{SessionRow, SessionState};
use crate::session::{Compaction, SessionChange};
use crate::spec::Exchange;

/// Exchanges that are kept whole if nobody says how many.
const KEEP: usize = 4;
/// Exchanges that one summary looks at.
const LOOKED_AT: usize = 1_000;
/// Most characters of a first sentence.
const SENTENCE_CHARS: usize = 200;
/// Most bytes of either half of a summary; the oldest lines go first.
const HALF_BYTES: usize = 4_800;

/// What stands for an answer that nobody vouches for.
pub(super) const LEFT_OUT: &str = "(this answer holds untrusted text and is left out)";

/// What stands for a task that somebody outside wrote: nobody outside speaks for those who asked.
pub(super) const OUTSIDE: &str = "(a message of an outside sender, which is left out)";

/// What summarising a session would do, or did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CompactionPlan {
    /// The session.
    pub session_id: SessionId,
    /// The version of the session that this was made from.
    pub version: u64,
    /// Exchanges that a summary stands for from then on, oldest first. An earlier summary is not among them, though it is taken over.
    pub summarised: Vec<ExchangeOutline>,
    /// Exchanges that are kept whole, oldest first.
    pub kept: Vec<ExchangeOutline>,
    /// The summary.
    pub summary: Compaction,
    /// Bytes that later runs would be told without it.
    pub bytes_before: u64,
    /// Bytes that later runs are told with it.
    pub bytes_after: u64,
    /// What else there is to say about how it was made, or would be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A plan with what it was made from.
pub(super) struct Draft {
    pub(super) plan: CompactionPlan,
    /// The summary that it takes over.
    pub(super) earlier: Option<Compaction>,
    /// What it summarises, oldest first.
    pub(super) old: Vec<Exchange>,
    /// Whose session it is, and which model its runs take.
    pub(super) owner: String,
    pub(super) model: String,
}

/// One exchange of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ExchangeOutline {
    /// The run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_id: Option<RunId>,
    /// The first sentence of what was asked.
    pub asked: String,
    /// Its size in bytes.
    pub bytes: u64,
}

impl Engine {
    /// What summarising a session would do, if the newest `keep` exchanges are kept whole.
    ///
    /// # Errors
    /// When there is no such session, or nothing to summarise.
    pub async fn compact_preview(
        &self,
        session_id: SessionId,
        keep: Option<u32>,
    ) -> Result<CompactionPlan, AgentError> {
        let state = self.session_state(session_id).await?;
        let mut plan = self.draft(state, keep).await?.plan;
        if self.has_language_model() {
            plan.note =
                Some("a model writes what was answered when it is applied; this is the draft without one".into());
        }
        Ok(plan)
    }

    /// Summarises a session: later runs are told the summary instead of what it stands for.
    ///
    /// # Errors
    /// When there is no such session, it changed meanwhile, or there is nothing to summarise.
    pub async fn compact_apply(
        &self,
        session_id: SessionId,
        keep: Option<u32>,
        by: &str,
        expected_version: Option<u64>,
    ) -> Result<(SessionRow, CompactionPlan), AgentError> {
        let by = by.to_owned();
        self.to_the_end(|engine| async move {
            let state = engine.session_state(session_id).await?;
            check_version(&state.row, expected_version)?;
            let (version, earlier) = (state.row.version, state.compaction.clone());
            let draft = engine.draft(state, keep).await?;
            // Without the session's lock: a model may take its time, and nothing is recorded meanwhile.
            let plan = engine.written(draft).await;
            let _session = engine.shared.locks.session(session_id).await;
            let state = engine.session_state(session_id).await?;
            check_version(&state.row, expected_version)?;
            if state.compaction != earlier {
                check_version(&state.row, Some(version))?;
            }
            let change = SessionChange::Compacted(Box::new(plan.summary.clone()));
            Ok((engine.record_change(session_id, change, &by).await?, plan))
        })
        .await
    }

    async fn draft(&self, state: SessionState, keep: Option<u32>) -> Result<Draft, AgentError> {
        let row = state.row.clone();
        let earlier = state.compaction.clone();
        let links = self.query(move |reader| open_links(reader.connection(), &state, LOOKED_AT)).await?;
        // Newest first; what is still at work is neither kept nor summarised.
        let mut exchanges: Vec<Exchange> = links.into_iter().filter_map(exchange).collect();
        let keep = keep.map_or(KEEP, |keep| keep as usize).min(exchanges.len());
        let mut old = exchanges.split_off(keep);
        old.reverse();
        exchanges.reverse();
        let Some(through) = old.last().and_then(|exchange| exchange.run_id) else {
            return Err(AgentError::NothingToCompact(row.session_id));
        };
        let summary = summarise(earlier.clone(), &old, through);
        let plan = self.plan(&row, earlier.as_ref(), (&old, &exchanges), summary);
        Ok(Draft { plan, earlier, old, owner: row.owner, model: row.settings.model.unwrap_or_default() })
    }

    /// A summary with what it stands for and what is kept beside it, both oldest first.
    fn plan(
        &self,
        row: &SessionRow,
        earlier: Option<&Compaction>,
        (old, kept): (&[Exchange], &[Exchange]),
        summary: Compaction,
    ) -> CompactionPlan {
        let before: u64 = old.iter().map(size).sum::<u64>() + earlier.map_or(0, summary_size);
        let kept_bytes: u64 = kept.iter().map(size).sum();
        CompactionPlan {
            session_id: row.session_id,
            version: row.version,
            summarised: old.iter().map(outline).collect(),
            kept: kept.iter().map(outline).collect(),
            bytes_before: before + kept_bytes,
            bytes_after: summary_size(&summary) + kept_bytes,
            note: self.note(&summary),
            summary,
        }
    }

    /// What there is to say about how a summary was made.
    pub(super) fn note(&self, summary: &Compaction) -> Option<String> {
        match &summary.why {
            _ if !self.has_language_model() => {
                Some("no language model is configured: first sentences are taken".to_owned())
            }
            Some(why) => Some(format!("first sentences were taken, because no model wrote it: {why}")),
            None => None,
        }
    }

    /// What summarising a session came to whose record is the first of its kind from `seq` on, as far as the session still tells; nothing if there is no such record. It
    /// tells the version that the session has now.
    ///
    /// # Errors
    /// When there is no such session, or the journal cannot be read.
    pub async fn compaction_applied(
        &self,
        session_id: SessionId,
        seq: u64,
    ) -> Result<Option<CompactionPlan>, AgentError> {
        let mut state = self.session_state(session_id).await?;
        let made = read(self, move |reader| Ok(Ok(summary_from(reader, session_id, seq)?))).await?;
        let Some(MadeSummary { summary, earlier }) = made else { return Ok(None) };
        state.compaction = earlier.or_else(|| state.fork.as_ref().and_then(|fork| fork.compaction.clone()));
        let (row, earlier) = (state.row.clone(), state.compaction.clone());
        let links = self.query(move |reader| open_links(reader.connection(), &state, LOOKED_AT)).await?;
        let mut exchanges: Vec<Exchange> = links.into_iter().filter_map(exchange).collect();
        exchanges.reverse();
        let last = exchanges.iter().position(|exchange| exchange.run_id == Some(summary.through));
        let mut kept = exchanges.split_off(last.map_or(0, |last| last + 1));
        // What came later was not there to be kept.
        kept.truncate(KEEP);
        Ok(Some(self.plan(&row, earlier.as_ref(), (&exchanges, &kept), summary)))
    }
}

fn size(exchange: &Exchange) -> u64 {
    (exchange.prompt.len() + exchange.answer.len()) as u64
}

pub(super) fn summary_size(summary: &Compaction) -> u64 {
    (summary.asked.len() + summary.answered.len()) as u64
}

fn outline(exchange: &Exchange) -> ExchangeOutline {
    ExchangeOutline { run_id: exchange.run_id, asked: first_sentence(&exchange.prompt), bytes: size(exchange) }
}

/// A summary of an earlier one and of exchanges after it, oldest first.
fn summarise(earlier: Option<Compaction>, exchanges: &[Exchange], through: RunId) -> Compaction {
    let mut summary = earlier.unwrap_or_else(|| Compaction {
        through,
        replaces: 0,
        asked: String::new(),
        answered: String::new(),
        label: Label::system(),
        method: String::new(),
        why: None,
        task_id: None,
    });
    for exchange in exchanges {
        let asked = match &exchange.prompt_label {
            Some(_) => OUTSIDE.to_owned(),
            None => first_sentence(&exchange.prompt),
        };
        summary.asked.push_str(&format!("- {asked}\n"));
        let answer = if exchange.label.integrity == Integrity::Untrusted {
            LEFT_OUT.to_owned()
        } else {
            summary.label = summary.label.join(&exchange.label);
            first_sentence(&exchange.answer)
        };
        summary.answered.push_str(&format!("- {answer}\n"));
    }
    Compaction {
        through,
        replaces: summary.replaces + exchanges.len() as u64,
        asked: newest_lines(&summary.asked),
        answered: newest_lines(&summary.answered),
        label: summary.label,
        method: Compaction::EXTRACTIVE.to_owned(),
        why: None,
        task_id: None,
    }
}

/// As many of the last lines as fit.
fn newest_lines(text: &str) -> String {
    let mut size = 0;
    let fits = |line: &&str| {
        size += line.len() + 1;
        size <= HALF_BYTES
    };
    let mut lines: Vec<&str> = text.lines().rev().take_while(fits).collect();
    lines.reverse();
    lines.join("\n") + "\n"
}

/// The beginning of a text up to the end of its first sentence or line, in one line.
fn first_sentence(text: &str) -> String {
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    let end = line
        .char_indices()
        .zip(line.chars().skip(1).map(Some).chain([None]))
        .find(|((_, c), next)| matches!(c, '.' | '!' | '?') && next.is_none_or(char::is_whitespace))
        .map_or(line.len(), |((at, c), _)| at + c.len_utf8());
    let sentence = line.get(..end).unwrap_or(line);
    let mut short: String = sentence.chars().filter(|c| !c.is_control()).take(SENTENCE_CHARS).collect();
    if sentence.chars().count() > SENTENCE_CHARS {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_first_sentence_ends_where_people_end_it() {
        assert_eq!(first_sentence("\n  Use version 1.2 now. And then rest.\nmore"), "Use version 1.2 now.");
        assert_eq!(first_sentence("no end at all\nsecond line"), "no end at all");
        assert_eq!(first_sentence("Ende… gut? Ja"), "Ende… gut?");
        assert_eq!(first_sentence(""), "");
        assert_eq!(first_sentence(&"x".repeat(500)).chars().count(), SENTENCE_CHARS + 1);
    }

    #[test]
    fn untrusted_answers_are_left_out_and_the_oldest_lines_go_first() {
        let exchange = |n: u32, integrity| Exchange {
            run_id: Some(RunId::from_u128(u128::from(n))),
            prompt: format!("Ask {n}. Please."),
            prompt_label: None,
            answer: format!("Answer {n}. Indeed."),
            label: Label::new(integrity, palyra_common::Confidentiality::Private),
        };
        let first = [exchange(1, Integrity::User), exchange(2, Integrity::Untrusted)];
        let summary = summarise(None, &first, RunId::from_u128(2));
        assert_eq!(summary.asked, "- Ask 1.\n- Ask 2.\n");
        assert!(summary.answered.starts_with("- Answer 1.\n- (this answer holds untrusted text"));
        assert_eq!(summary.label.integrity, Integrity::User);
        let label = Some(Label::new(Integrity::Untrusted, palyra_common::Confidentiality::Private));
        let outside = Exchange { prompt_label: label, ..exchange(3, Integrity::User) };
        let asked = summarise(None, &[outside], RunId::from_u128(3)).asked;
        assert!(!asked.contains("Ask 3"), "nobody outside speaks for those who asked: {asked}");
        let many: Vec<Exchange> = (3..2_000).map(|n| exchange(n, Integrity::User)).collect();
        let again = summarise(Some(summary), &many, RunId::from_u128(1_999));
        assert_eq!(again.replaces, 1_999);
        assert!(again.asked.len() <= HALF_BYTES && again.asked.ends_with("- Ask 1999.\n"), "{}", again.asked.len());
    }
}

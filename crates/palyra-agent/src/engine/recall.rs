//! Finding what was said before, in the sessions of one person.
//!
//! Candidates are found by words: what was asked and answered in the newest runs of the owner is looked through, and the best are kept. An auxiliary task then
//! says which of them help, and why; it can name candidates alone, so a reference that it invents is refused by its contract. Without a language model, or when
//! the task fails, the order by words is what there is, and that is said. Texts and references always come from the journal, never from the model.

use palyra_common::{Label, RunId, SessionId, ToStableError as _};
use palyra_journal::Reader;

use super::Engine;
use super::auxiliary::{AuxiliaryDone, NewAuxiliaryTask};
use super::sessions::unknown_label;
use crate::auxiliary::{AuxiliaryInput, AuxiliaryOutput, RecallCandidate, RecallSearchInput};
use crate::error::AgentError;
use crate::projections::{self, Said};
use crate::tape::kind;

/// Runs that are looked through, the newest first.
const LOOKED_THROUGH: usize = 5_000;
/// Candidates that are ranked.
const CANDIDATES: usize = 24;
/// Different words of a query that count.
const TERMS: usize = 16;
/// Most bytes of a piece, around the first word that was found.
const EXCERPT: usize = 1_600;
/// Records at the end of a tape among which the one with the answer is.
const LAST_RECORDS: u64 = 16;

/// What is looked for.
#[derive(Debug, Clone)]
pub struct RecallQuery {
    /// Whose sessions.
    pub owner: String,
    /// One of them; all if none is named.
    pub session_id: Option<SessionId>,
    /// In plain words.
    pub query: String,
    /// Most pieces.
    pub limit: usize,
}

palyra_common::runtime_contract_enum! {
    /// What put pieces in their order.
    pub enum RankedBy("recall_ranked_by") {
        /// An auxiliary task.
        Model = "model",
        /// How many words of the query they have.
        Words = "words",
    }
}

/// What was found.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// The pieces, the most fitting first.
    pub pieces: Vec<RecalledPiece>,
    /// What put them in this order.
    pub ranked_by: RankedBy,
    /// Why no model did, where none did.
    pub note: Option<String>,
    /// The label of all of it.
    pub label: Label,
}

/// Something that was said.
#[derive(Debug, Clone, PartialEq)]
pub struct RecalledPiece {
    /// In which session.
    pub session_id: SessionId,
    /// In which run.
    pub run_id: RunId,
    /// Position on that run's tape.
    pub seq: u64,
    /// Whether it was asked or answered.
    pub said: Said,
    /// The text around what was found.
    pub text: String,
    /// How far it may be trusted and shown.
    pub label: Label,
    /// How well it fits, from 0 to 1.
    pub score: f64,
    /// Why, in a sentence; empty if only words were compared.
    pub why: String,
}

impl Engine {
    /// Finds what was said before.
    ///
    /// # Errors
    /// When there is no such session, the query is empty or too long, or the journal cannot be read.
    pub async fn recall(&self, query: RecallQuery) -> Result<Recalled, AgentError> {
        if let Some(session_id) = query.session_id {
            self.session(session_id).await?;
        }
        let terms = terms(&query.query);
        if terms.is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        let (owner, session_id) = (query.owner.clone(), query.session_id);
        let found = self
            .shared
            .options
            .journal
            .read(move |reader| {
                let mut found = Found::default();
                projections::each_said(reader.connection(), &owner, session_id, LOOKED_THROUGH, |said| {
                    found.look_at(said, &terms);
                })?;
                found.best.into_iter().map(|(score, said)| piece(reader, score, said)).collect::<Result<Vec<_>, _>>()
            })
            .await?;
        let label = found.iter().fold(Label::user(), |joined, piece| joined.join(&piece.label));
        let by_words = |mut pieces: Vec<RecalledPiece>, note: Option<String>| {
            pieces.truncate(query.limit);
            Recalled { pieces, ranked_by: RankedBy::Words, note, label: label.clone() }
        };
        if found.is_empty() {
            return Ok(by_words(found, None));
        }
        if !self.shared.options.provider.describe().is_language_model {
            return Ok(by_words(found, Some("no language model is configured: only words were compared".to_owned())));
        }
        match self.rank(&query, &found).await {
            Ok(mut pieces) => {
                pieces.truncate(query.limit);
                Ok(Recalled { pieces, ranked_by: RankedBy::Model, note: None, label: label.clone() })
            }
            // Of these, nothing that follows would be worth more.
            Err(error @ (AgentError::Journal(_) | AgentError::Stopping)) => Err(error),
            Err(error) => {
                let error = error.to_stable();
                let note = format!("only words were compared, because no model ranked them: {}", error.message);
                Ok(by_words(found, Some(note)))
            }
        }
    }

    /// The pieces that help, as an auxiliary task sees it.
    async fn rank(&self, query: &RecallQuery, found: &[RecalledPiece]) -> Result<Vec<RecalledPiece>, AgentError> {
        let candidates =
            found.iter().map(|piece| RecallCandidate { id: name(piece), text: piece.text.clone() }).collect();
        let input = RecallSearchInput { query: query.query.clone(), context: None, candidates };
        let labels = std::iter::once(Label::user()).chain(found.iter().map(|piece| piece.label.clone()));
        let task = NewAuxiliaryTask {
            input: AuxiliaryInput::RecallSearch(input),
            labels: labels.collect(),
            session_id: query.session_id,
            owner: Some(query.owner.clone()),
            model: None,
        };
        let AuxiliaryDone { output: AuxiliaryOutput::RecallSearch(ranked), .. } = self.run_auxiliary(task).await?
        else {
            return Err(AgentError::Internal("a recall task gave something else".to_owned()));
        };
        let of = |evidence: crate::auxiliary::RecallEvidence| {
            let piece = found.iter().find(|piece| name(piece) == evidence.id)?;
            Some(RecalledPiece { score: evidence.score, why: evidence.why, ..piece.clone() })
        };
        Ok(ranked.evidence.into_iter().filter_map(of).collect())
    }
}

/// How a piece is named among candidates.
fn name(piece: &RecalledPiece) -> String {
    format!("{}/{}", piece.run_id, piece.seq)
}

/// The words of a query, in lower case, each once.
fn terms(query: &str) -> Vec<String> {
    let mut terms: Vec<String> = Vec::new();
    for word in query.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        let word = word.to_lowercase();
        if !terms.contains(&word) {
            terms.push(word);
        }
    }
    // Short words are in every text; they count only where there is nothing else.
    if terms.iter().any(|term| term.chars().count() > 2) {
        terms.retain(|term| term.chars().count() > 2);
    }
    terms.truncate(TERMS);
    terms
}

/// The best so far, the best first; among equals the newer stands first.
#[derive(Default)]
struct Found {
    best: Vec<(f64, projections::SaidRow)>,
}

impl Found {
    fn look_at(&mut self, mut said: projections::SaidRow, terms: &[String]) {
        let lower = said.text.to_lowercase();
        let has = terms.iter().filter(|term| lower.contains(term.as_str())).count();
        if has == 0 {
            return;
        }
        let score = has as f64 / terms.len() as f64;
        let at = self.best.iter().position(|(other, _)| *other < score).unwrap_or(self.best.len());
        if at < CANDIDATES {
            said.text = excerpt(&said.text, &lower, terms);
            self.best.insert(at, (score, said));
            self.best.truncate(CANDIDATES);
        }
    }
}

/// The part of a text around the first word that was found.
fn excerpt(text: &str, lower: &str, terms: &[String]) -> String {
    if text.len() <= EXCERPT {
        return text.to_owned();
    }
    let first = terms.iter().filter_map(|term| lower.find(term.as_str())).min().unwrap_or(0);
    // Lower case may be longer or shorter by some bytes; the place need not be exact.
    let mut begin = first.saturating_sub(EXCERPT / 4).min(text.len().saturating_sub(EXCERPT));
    while !text.is_char_boundary(begin) {
        begin -= 1;
    }
    let mut end = (begin + EXCERPT).min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let (before, after) = (if begin > 0 { "…" } else { "" }, if end < text.len() { "…" } else { "" });
    format!("{before}{}{after}", text.get(begin..end).unwrap_or_default())
}

/// A row with its place on the tape.
fn piece(
    reader: &Reader,
    score: f64,
    row: projections::SaidRow,
) -> Result<RecalledPiece, palyra_journal::JournalError> {
    let (seq, label) = match row.said {
        // A tape begins with what was asked.
        // Somebody outside may have written the task.
        Said::Asked => (1, row.label.unwrap_or_else(Label::user)),
        Said::Answered => (place_of_answer(reader, row.run_id)?, row.label.unwrap_or_else(unknown_label)),
    };
    Ok(RecalledPiece {
        session_id: row.session_id,
        run_id: row.run_id,
        seq,
        said: row.said,
        text: row.text,
        label,
        score,
        why: String::new(),
    })
}

/// Where on its tape a run was given its last phase: the record that holds the answer. Little follows it.
fn place_of_answer(reader: &Reader, run_id: RunId) -> Result<u64, palyra_journal::JournalError> {
    let last = reader.last_run_seq(run_id)?;
    let from = last.saturating_sub(LAST_RECORDS).max(1);
    let tape = reader.run_tape(run_id, from, usize::MAX)?;
    let status = tape.iter().rev().find(|record| record.kind.as_ref() == kind::RUN_STATUS);
    Ok(status.and_then(|record| record.run_seq).unwrap_or(last))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_count_once_and_short_ones_only_alone() {
        assert_eq!(terms("Where is the THE parser-test?"), ["where", "the", "parser", "test"]);
        assert_eq!(terms("is it"), ["is", "it"]);
        assert_eq!(terms(" ?! "), [""; 0]);
        assert_eq!(terms(&(0..99).map(|n| format!("word{n} ")).collect::<String>()).len(), TERMS);
    }

    #[test]
    fn an_excerpt_is_around_what_was_found_and_whole_in_characters() {
        let text = format!("{}needle{}", "ä".repeat(3_000), "ö".repeat(3_000));
        let shown = excerpt(&text, &text.to_lowercase(), &["needle".to_owned()]);
        assert!(shown.contains("needle") && shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.len() <= EXCERPT + 2 * '…'.len_utf8());
        assert_eq!(excerpt("short needle", "short needle", &["needle".to_owned()]), "short needle");
    }

    #[test]
    fn the_best_are_kept_and_the_newer_stand_first() {
        let row = |n: u128, text: &str| projections::SaidRow {
            run_id: RunId::from_u128(n),
            session_id: SessionId::from_u128(1),
            said: Said::Asked,
            text: text.to_owned(),
            label: None,
        };
        let terms = terms("blue whale");
        let mut found = Found::default();
        for (n, text) in [(3, "a Blue sky"), (2, "a blue whale"), (1, "the whale"), (0, "nothing")] {
            found.look_at(row(n, text), &terms);
        }
        let order: Vec<u128> = found.best.iter().map(|(_, row)| row.run_id.to_u128()).collect();
        assert_eq!(order, [2, 3, 1]);
        for n in 10..100 {
            found.look_at(row(n, "blue"), &terms);
        }
        assert_eq!(found.best.len(), CANDIDATES);
    }
}

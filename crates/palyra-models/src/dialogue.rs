//! A conversation as the strict wires want it.
//!
//! Anthropic and Gemini refuse conversations that the lenient wires take: every call needs its result in the very next
//! turn, results stand before anything else that is said there, ids are unique in the whole conversation, the person speaks first and
//! last, and instructions exist only at the very start. A run that moved over from another provider, was interrupted between call and
//! result, or was compacted keeps none of these rules by itself. [`Dialogue`] brings it into that form without
//! inventing anything: a missing result is called missing, a result without its call is told as text.
//!
//! Instructions in the middle are summaries and notes. They may quote what strangers wrote, so they are not raised to the
//! rank of the instructions at the start: they are said in the person's turn, marked as coming from Palyra. The mark gives no authority
//! that the person does not have, so somebody who imitates it gains nothing.
//!
//! How a turn is spelled is left to each wire; nothing here is written anywhere.

use std::collections::BTreeSet;

use crate::message::{Message, Role};
use crate::part::Part;

/// Stands before what Palyra says in the person's turn.
const NOTE: &str = "[note from Palyra, not from the person]\n";
/// What is said when a conversation would begin with the model.
const OPENING: &str = "(the conversation began earlier)";
/// What is said when a conversation would end with the model.
const GO_ON: &str = "(go on)";
/// What a call without a result gets.
pub(crate) const NO_RESULT: &str = "there is no result: the call was interrupted";
/// Where an element that no message stands for comes from.
pub(crate) const NOWHERE: usize = usize::MAX;
/// Longest id that is sent.
const MAX_ID: usize = 64;

/// A conversation in turns.
#[derive(Debug)]
pub(crate) struct Dialogue<'a> {
    /// The instructions at the start.
    pub(crate) instructions: Vec<&'a str>,
    /// Turns, the person's and the model's in alternation; the first and the last are the person's.
    pub(crate) turns: Vec<Turn<'a>>,
}

/// One turn.
#[derive(Debug)]
pub(crate) enum Turn<'a> {
    /// Results and what was said after them.
    Person(PersonTurn<'a>),
    /// What the model said and called.
    Model(Vec<ModelSaid<'a>>),
}

/// A turn of the person, tools and Palyra.
#[derive(Debug, Default)]
pub(crate) struct PersonTurn<'a> {
    /// One result for each call of the model's turn before, in the order of the calls.
    pub(crate) results: Vec<CallResult<'a>>,
    /// What was said besides.
    pub(crate) said: Vec<Said<'a>>,
}

/// The result of a call.
#[derive(Debug)]
pub(crate) struct CallResult<'a> {
    /// The call's id, unique in the conversation.
    pub(crate) id: String,
    /// The call's id as the conversation has it.
    pub(crate) given_id: &'a str,
    /// The tool's name.
    pub(crate) name: &'a str,
    /// The result; none if there is none.
    pub(crate) message: Option<&'a Message>,
    /// Position of the message, [`NOWHERE`] if there is none.
    pub(crate) at: usize,
}

/// Something said by the person or by Palyra.
#[derive(Debug)]
pub(crate) struct Said<'a> {
    /// The words.
    pub(crate) text: String,
    /// Images and files.
    pub(crate) parts: &'a [Part],
    /// Position of the message, [`NOWHERE`] if there is none.
    pub(crate) at: usize,
}

/// A message of the model.
#[derive(Debug)]
pub(crate) struct ModelSaid<'a> {
    /// The message.
    pub(crate) message: &'a Message,
    /// Ids of its calls, unique in the conversation.
    pub(crate) ids: Vec<String>,
    /// Position of the message.
    pub(crate) at: usize,
}

impl<'a> Dialogue<'a> {
    /// Brings a conversation into turns.
    pub(crate) fn of(messages: &'a [Message]) -> Self {
        let lead = messages.iter().take_while(|message| message.role == Role::System).count();
        let mut builder = Builder::default();
        for (at, message) in messages.iter().enumerate().skip(lead) {
            match message.role {
                Role::User => builder.say(message.content.clone(), &message.parts, at),
                Role::System => builder.say(format!("{NOTE}{}", message.content), &message.parts, at),
                Role::Tool => builder.result(message, at),
                Role::Assistant => builder.model(message, at),
            }
        }
        let instructions = messages
            .iter()
            .take(lead)
            .map(|message| message.content.as_str())
            .filter(|text| !text.trim().is_empty())
            .collect();
        Self { instructions, turns: builder.finish() }
    }
}

#[derive(Debug, Default)]
struct Builder<'a> {
    turns: Vec<Turn<'a>>,
    open: PersonTurn<'a>,
    taken: BTreeSet<String>,
}

impl<'a> Builder<'a> {
    fn say(&mut self, text: String, parts: &'a [Part], at: usize) {
        // Blank texts are refused by both wires.
        if !text.trim().is_empty() || !parts.is_empty() {
            self.open.said.push(Said { text, parts, at });
        }
    }

    fn result(&mut self, message: &'a Message, at: usize) {
        let id = message.tool_call_id.as_deref();
        let name = message.name.as_deref().unwrap_or_default();
        let asked = self.open.results.iter_mut().find(|result| {
            let same = match id {
                Some(id) => result.given_id == id,
                None => result.name == name,
            };
            result.message.is_none() && same
        });
        match asked {
            Some(result) => {
                result.message = Some(message);
                result.at = at;
            }
            None => {
                self.say(format!("[result of an earlier call of `{name}`]\n{}", message.content), &message.parts, at);
            }
        }
    }

    fn model(&mut self, message: &'a Message, at: usize) {
        // A turn that only thought cannot be sent; it said nothing that anybody answered.
        if message.content.trim().is_empty() && message.tool_calls.is_empty() {
            return;
        }
        self.close();
        if self.turns.is_empty() {
            let said = vec![Said { text: OPENING.to_owned(), parts: &[], at: NOWHERE }];
            self.turns.push(Turn::Person(PersonTurn { results: Vec::new(), said }));
        }
        let ids: Vec<String> = message.tool_calls.iter().map(|call| self.unique(&call.id)).collect();
        let waiting = message.tool_calls.iter().zip(&ids).map(|(call, id)| CallResult {
            id: id.clone(),
            given_id: &call.id,
            name: &call.name,
            message: None,
            at: NOWHERE,
        });
        self.open.results = waiting.collect();
        let said = ModelSaid { message, ids, at };
        match self.turns.last_mut() {
            Some(Turn::Model(messages)) => messages.push(said),
            _ => self.turns.push(Turn::Model(vec![said])),
        }
    }

    /// Ends the person's turn, if anything was said in it.
    fn close(&mut self) {
        let open = std::mem::take(&mut self.open);
        if !open.results.is_empty() || !open.said.is_empty() {
            self.turns.push(Turn::Person(open));
        }
    }

    fn finish(mut self) -> Vec<Turn<'a>> {
        self.close();
        if !matches!(self.turns.last(), Some(Turn::Person(_))) {
            let said = vec![Said { text: GO_ON.to_owned(), parts: &[], at: NOWHERE }];
            self.turns.push(Turn::Person(PersonTurn { results: Vec::new(), said }));
        }
        self.turns
    }

    /// An id of letters, digits, `_` and `-` that no other call has.
    fn unique(&mut self, id: &str) -> String {
        let allowed = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') { c } else { '_' };
        let clean: String = id.chars().map(allowed).take(MAX_ID).collect();
        let clean = if clean.is_empty() { "call".to_owned() } else { clean };
        let numbered = (2_usize..).map(|n| {
            let suffix = format!("_{n}");
            let head: String = clean.chars().take(MAX_ID - suffix.len().min(MAX_ID)).collect();
            format!("{head}{suffix}")
        });
        let free = std::iter::once(clean.clone()).chain(numbered).find(|candidate| !self.taken.contains(candidate));
        let free = free.unwrap_or(clean);
        self.taken.insert(free.clone());
        free
    }
}

#[cfg(test)]
#[path = "dialogue_tests.rs"]
mod tests;

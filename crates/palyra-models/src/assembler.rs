//! Makes a whole turn of the events of a stream.
//!
//! Servers differ in how they cut tool calls into parts. The rules here, from the strict to the lenient:
//! - a part with an index belongs to that index; a new id on an index that has one already opens another call (some
//!   servers number every call zero);
//! - a part without an index belongs to the call with its id, or opens a call when the id is new;
//! - a part with neither goes to the newest call;
//! - a part without id that brings a name opens another call when the arguments of the present one are complete;
//! - empty arguments become `{}`; a call without id gets `call_<position>`; a repeated id gets a suffix. All of it depends
//!   on the events alone, so replay gives the same ids;
//! - arguments that are not JSON are put right where a rule covers the slip, or where a server sent every part twice; each time is
//!   told in `repairs`. What no rule covers stays as it is.
//!
//! A try that failed takes back everything it gave: only the last try makes the turn.
//!
//! INVARIANT: ids within an assembled turn are unique and not empty.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::attempt::{Answering, Attempt};
use crate::error::ModelError;
use crate::event::{ModelEvent, StopReason, Usage};
use crate::message::ToolCallRequest;
use crate::reasoning::ReasoningBlock;
use crate::wire::{Cut, is_json, repair_arguments, without_lone_surrogates};

/// Most bytes of text and arguments in one turn. A server that never stops must not fill the memory.
const MAX_TURN_BYTES: usize = 16 * 1024 * 1024;
/// Most calls in one turn, for the same reason; far above the limit of calls in a run.
const MAX_CALLS: usize = 1024;

/// A complete turn of a model.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssembledTurn {
    /// Everything the model said.
    pub text: String,
    /// The calls it asked for, in order of their first part.
    pub tool_calls: Vec<ToolCallRequest>,
    /// Tokens used, zero where the provider did not say.
    pub usage: Usage,
    /// Why it stopped.
    pub stop_reason: StopReason,
    /// What it thought, to be given back in later turns.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reasoning: Vec<ReasoningBlock>,
    /// Who answered, where the provider says so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answering: Option<Answering>,
    /// Tries that failed before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<Attempt>,
    /// What was put right in the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub repairs: Vec<String>,
}

/// A call being put together.
#[derive(Debug, Default)]
struct Slot {
    index: Option<u32>,
    id: String,
    name: String,
    arguments: String,
    /// Where each part of the arguments ends.
    ends: Vec<usize>,
}

impl Slot {
    /// The arguments as they are to be used, and what had to be done to them.
    fn arguments(&self, cut: Cut) -> (String, Option<String>) {
        if self.arguments.trim().is_empty() {
            return ("{}".to_owned(), None);
        }
        // First, because such a text is JSON by its form and can be read by nobody.
        if let Cow::Owned(mended) = without_lone_surrogates(&self.arguments)
            && is_json(&mended)
        {
            return (mended, Some("half a surrogate pair became the replacement character".to_owned()));
        }
        if is_json(&self.arguments) {
            return (self.arguments.clone(), None);
        }
        if let Some(once) = self.every_other_part().filter(|once| is_json(once)) {
            return (once, Some("every part came twice and was taken once".to_owned()));
        }
        match repair_arguments(&self.arguments, cut) {
            Some(repair) => (repair.text, Some(repair.what)),
            None => (self.arguments.clone(), None),
        }
    }

    /// Every second part, if each is followed by its like.
    fn every_other_part(&self) -> Option<String> {
        let mut begin = 0;
        let parts: Option<Vec<&str>> = self
            .ends
            .iter()
            .map(|end| {
                let part = self.arguments.get(begin..*end);
                begin = *end;
                part
            })
            .collect();
        let mut once = String::new();
        for pair in parts?.chunks(2) {
            let [first, second] = pair else { return None };
            if first != second {
                return None;
            }
            once.push_str(first);
        }
        Some(once)
    }
}

/// Folds events into a turn, one at a time.
#[derive(Debug, Default)]
pub struct TurnAssembler {
    text: String,
    slots: Vec<Slot>,
    usage: Usage,
    stop_reason: Option<StopReason>,
    reasoning: Vec<ReasoningBlock>,
    answering: Option<Answering>,
    attempts: Vec<Attempt>,
    repairs: Vec<String>,
    bytes: usize,
}

impl TurnAssembler {
    /// An assembler that has seen nothing.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next event. Fails only when the answer grows beyond all reason.
    pub fn push(&mut self, event: &ModelEvent) -> Result<(), ModelError> {
        match event {
            ModelEvent::TextDelta(text) => {
                self.grow(text.len())?;
                self.text.push_str(text);
            }
            ModelEvent::ToolCallDelta { index, id, name, arguments } => {
                let id = id.as_deref().unwrap_or_default();
                let name = name.as_deref().unwrap_or_default();
                self.grow(id.len() + name.len() + arguments.len())?;
                self.add_call_part(*index, id, name, arguments)?;
            }
            ModelEvent::Reasoning(block) => {
                self.grow(block.text.len() + size(&block.payload))?;
                self.reasoning.push(block.clone());
            }
            // Shown while it is written; the whole block follows.
            ModelEvent::ReasoningDelta(text) => self.grow(text.len())?,
            ModelEvent::Attempted(attempt) => {
                self.start_over();
                self.attempts.push(attempt.clone());
                self.bytes = self.attempts.iter().map(|attempt| attempt.error.message.len()).sum();
                self.grow(0)?;
            }
            ModelEvent::Answering(answering) => self.answering = Some(answering.clone()),
            ModelEvent::Waiting(_) => {}
            ModelEvent::Repaired(what) => {
                self.grow(what.len())?;
                self.repairs.push(what.clone());
            }
            ModelEvent::Usage(usage) => self.usage = *usage,
            ModelEvent::Finished(reason) => self.stop_reason = Some(*reason),
        }
        Ok(())
    }

    /// Forgets a try that failed; who was asked before is still known.
    fn start_over(&mut self) {
        let attempts = std::mem::take(&mut self.attempts);
        *self = Self { attempts, ..Self::default() };
    }

    /// What the model has said so far.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the answer is complete.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.stop_reason.is_some()
    }

    /// The turn as it stands.
    #[must_use]
    pub fn finish(self) -> AssembledTurn {
        let mut taken = BTreeSet::new();
        let mut repairs = self.repairs;
        let mut tool_calls = Vec::with_capacity(self.slots.len());
        let told = self.stop_reason.is_some_and(|reason| reason != StopReason::MaxTokens);
        let cut = if told { Cut::Impossible } else { Cut::Possible };
        for slot in self.slots {
            if slot.name.is_empty() && slot.arguments.trim().is_empty() {
                continue;
            }
            let (arguments, repair) = slot.arguments(cut);
            let wanted = if slot.id.is_empty() { format!("call_{}", tool_calls.len() + 1) } else { slot.id };
            let id = unique(wanted, &taken);
            taken.insert(id.clone());
            repairs.extend(repair.map(|what| format!("arguments of `{}` ({id}): {what}", slot.name)));
            tool_calls.push(ToolCallRequest { id, name: slot.name, arguments });
        }
        let stop_reason = match self.stop_reason.unwrap_or(StopReason::Other) {
            // Servers are not of one mind about what to say beside calls; the calls themselves decide.
            StopReason::EndTurn | StopReason::Other if !tool_calls.is_empty() => StopReason::ToolUse,
            StopReason::ToolUse if tool_calls.is_empty() => StopReason::EndTurn,
            reason => reason,
        };
        AssembledTurn {
            text: self.text,
            tool_calls,
            usage: self.usage,
            stop_reason,
            reasoning: self.reasoning,
            answering: self.answering,
            attempts: self.attempts,
            repairs,
        }
    }

    fn grow(&mut self, bytes: usize) -> Result<(), ModelError> {
        self.bytes = self.bytes.saturating_add(bytes);
        if self.bytes > MAX_TURN_BYTES {
            return Err(ModelError::malformed("the answer is larger than 16 MiB"));
        }
        Ok(())
    }

    fn add_call_part(&mut self, index: Option<u32>, id: &str, name: &str, arguments: &str) -> Result<(), ModelError> {
        let position = self.position_for(index, id, name);
        if position.is_none() && self.slots.len() >= MAX_CALLS {
            return Err(ModelError::malformed("the answer asks for more than 1024 tool calls in one turn"));
        }
        let slot = match position.and_then(|position| self.slots.get_mut(position)) {
            Some(slot) => slot,
            None => self.slots.push_mut(Slot { index, ..Slot::default() }),
        };
        if slot.id.is_empty() {
            id.clone_into(&mut slot.id);
        }
        // A name may come in pieces before the arguments start, or be repeated with every part.
        if slot.name.is_empty() {
            name.clone_into(&mut slot.name);
        } else if slot.arguments.is_empty() && slot.name != name {
            slot.name.push_str(name);
        }
        if !arguments.is_empty() {
            slot.arguments.push_str(arguments);
            slot.ends.push(slot.arguments.len());
        }
        Ok(())
    }

    /// The call that a part belongs to; none when it opens a new one.
    fn position_for(&self, index: Option<u32>, id: &str, name: &str) -> Option<usize> {
        let at = if index.is_some() {
            self.slots.iter().rposition(|slot| slot.index == index)?
        } else if !id.is_empty() {
            return self.slots.iter().rposition(|slot| slot.id == id);
        } else {
            self.slots.len().checked_sub(1)?
        };
        let slot = self.slots.get(at)?;
        let other_id = !id.is_empty() && !slot.id.is_empty() && slot.id != id;
        let another_call = id.is_empty() && !name.is_empty() && !slot.name.is_empty() && is_whole(&slot.arguments);
        if other_id || another_call { None } else { Some(at) }
    }
}

/// About how many bytes a document holds.
fn size(value: &Value) -> usize {
    match value {
        Value::String(text) => text.len(),
        Value::Array(items) => items.iter().map(size).sum(),
        Value::Object(fields) => fields.iter().map(|(name, value)| name.len() + size(value)).sum(),
        Value::Null | Value::Bool(_) | Value::Number(_) => 8,
    }
}

/// Whether these arguments are complete, so that another name must mean another call.
fn is_whole(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<serde::de::IgnoredAny>(arguments).is_ok()
}

/// The wanted id, with the lowest suffix that makes it unique.
fn unique(wanted: String, taken: &BTreeSet<String>) -> String {
    if !taken.contains(&wanted) {
        return wanted;
    }
    (2_usize..).map(|n| format!("{wanted}_{n}")).find(|candidate| !taken.contains(candidate)).unwrap_or(wanted)
}

#[cfg(test)]
#[path = "assembler_tests.rs"]
mod tests;

//! Answers without the key that was sent with the request.
//!
//! A server can repeat the key in what it streams, where it would be kept on the journal and given to other models. Texts are searched across the
//! borders of events; only what could still become the key is held back, until the next event of its kind or the end of the answer.

use std::collections::VecDeque;

use serde_json::Value;

use super::mask::Mask;
use crate::event::ModelEvent;

/// Passes events on without the key.
#[derive(Debug, Default)]
pub(super) struct MaskedEvents {
    mask: Mask,
    /// Ends of texts that could be the start of the key.
    text: String,
    reasoning: String,
    arguments: String,
    /// Which call the arguments belong to. Some servers name it in each part.
    index: Option<u32>,
    id: Option<String>,
}

impl MaskedEvents {
    pub(super) fn new(mask: &Mask) -> Self {
        Self { mask: mask.for_answers(), ..Self::default() }
    }

    /// Passes one event on.
    pub(super) fn push(&mut self, event: ModelEvent, out: &mut VecDeque<ModelEvent>) {
        match event {
            ModelEvent::TextDelta(text) => {
                self.text.push_str(&text);
                let shown = self.mask.take_decided(&mut self.text);
                out.extend((!shown.is_empty()).then_some(ModelEvent::TextDelta(shown)));
            }
            ModelEvent::ReasoningDelta(text) => {
                self.reasoning.push_str(&text);
                let shown = self.mask.take_decided(&mut self.reasoning);
                out.extend((!shown.is_empty()).then_some(ModelEvent::ReasoningDelta(shown)));
            }
            ModelEvent::ToolCallDelta { index, id, name, arguments } => {
                let unnamed = index.is_none() && id.is_none();
                if index != self.index || (id.is_some() && id != self.id) || (unnamed && name.is_some()) {
                    self.end_call(out);
                    self.index = index;
                    self.id.clone_from(&id);
                }
                self.arguments.push_str(&arguments);
                let arguments = self.mask.take_decided(&mut self.arguments);
                let clean = |text: Option<String>| text.map(|text| self.mask.clean_text(&text));
                out.push_back(ModelEvent::ToolCallDelta { index, id: clean(id), name: clean(name), arguments });
            }
            ModelEvent::Reasoning(mut block) => {
                block.text = self.mask.clean_text(&block.text);
                self.clean_json(&mut block.payload);
                out.push_back(ModelEvent::Reasoning(block));
            }
            ModelEvent::Repaired(what) => out.push_back(ModelEvent::Repaired(self.mask.clean_text(&what))),
            ModelEvent::Finished(reason) => {
                self.end_call(out);
                for (text, event) in [
                    (&mut self.text, ModelEvent::TextDelta as fn(String) -> ModelEvent),
                    (&mut self.reasoning, ModelEvent::ReasoningDelta),
                ] {
                    let rest = self.mask.clean_text(&std::mem::take(text));
                    out.extend((!rest.is_empty()).then(|| event(rest)));
                }
                out.push_back(ModelEvent::Finished(reason));
            }
            ModelEvent::Attempted(_) | ModelEvent::Waiting(_) | ModelEvent::Answering(_) | ModelEvent::Usage(_) => {
                out.push_back(event);
            }
        }
    }

    /// Passes on what was held back of the arguments of a call.
    fn end_call(&mut self, out: &mut VecDeque<ModelEvent>) {
        let arguments = self.mask.clean_text(&std::mem::take(&mut self.arguments));
        if !arguments.is_empty() {
            out.push_back(ModelEvent::ToolCallDelta { index: self.index, id: None, name: None, arguments });
        }
    }

    fn clean_json(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.mask.clean_text(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.clean_json(item)),
            Value::Object(members) => members.values_mut().for_each(|member| self.clean_json(member)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use palyra_common::SecretString;

    use super::*;
    use crate::event::StopReason;
    use crate::reasoning::ReasoningBlock;

    const KEY: &str = "sk-0123456789abcdefghij";

    fn passed(events: Vec<ModelEvent>, key: &str) -> Vec<ModelEvent> {
        let mut masked = MaskedEvents::new(&Mask::new(Some(SecretString::from(key.to_owned()))));
        let mut out = VecDeque::new();
        for event in events {
            masked.push(event, &mut out);
        }
        out.into()
    }

    fn call(index: u32, id: Option<&str>, arguments: &str) -> ModelEvent {
        ModelEvent::ToolCallDelta {
            index: Some(index),
            id: id.map(str::to_owned),
            name: None,
            arguments: arguments.to_owned(),
        }
    }

    #[test]
    fn a_key_is_found_across_events_of_every_kind() {
        let (front, back) = KEY.split_at(9);
        let block = ReasoningBlock {
            origin: "x".into(),
            text: KEY.into(),
            payload: serde_json::json!({"signature": [KEY, 7]}),
            position: 0,
        };
        let events = vec![
            ModelEvent::TextDelta(format!("it is {front}")),
            ModelEvent::ReasoningDelta(front.to_owned()),
            ModelEvent::TextDelta(format!("{back}. Task")),
            ModelEvent::ReasoningDelta(back.to_owned()),
            ModelEvent::Reasoning(block),
            call(0, Some("a"), &format!("{{\"q\":\"{front}")),
            call(0, Some("a"), &format!("{back}\"}} s")),
            call(1, Some("b"), "{}"),
            ModelEvent::Finished(StopReason::EndTurn),
        ];
        let out = passed(events, KEY);
        assert!(!format!("{out:?}").contains(&KEY[3..]), "{out:?}");
        let text: String = out
            .iter()
            .filter_map(|event| match event {
                ModelEvent::TextDelta(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(text, "it is [redacted]. Task");
        let arguments = |wanted: u32| -> String {
            out.iter()
                .filter_map(|event| match event {
                    ModelEvent::ToolCallDelta { index, arguments, .. } if *index == Some(wanted) => {
                        Some(arguments.as_str())
                    }
                    _ => None,
                })
                .collect()
        };
        assert_eq!((arguments(0).as_str(), arguments(1).as_str()), ("{\"q\":\"[redacted]\"} s", "{}"));
        assert_eq!(out.last(), Some(&ModelEvent::Finished(StopReason::EndTurn)));
    }

    #[test]
    fn a_word_that_is_given_for_a_key_is_left_alone() {
        let events = vec![ModelEvent::TextDelta("start lm-studio".into()), ModelEvent::Finished(StopReason::EndTurn)];
        assert_eq!(passed(events.clone(), "lm-studio"), events);
    }
}

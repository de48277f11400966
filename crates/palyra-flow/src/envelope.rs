//! What a run set out to do, stated while nobody but the user and the operator had been read.

use std::collections::BTreeSet;

use palyra_common::Integrity;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One kind of effect that a run means to have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Intent {
    /// The tool's name.
    pub tool: String,
    /// Recipients, hosts or accounts, as the user named them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub destinations: BTreeSet<String>,
}

/// The intents of a run. It widens only through a person.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Envelope {
    intents: Vec<Intent>,
}

impl Envelope {
    /// Adds intents, if nothing untrusted has been read yet. Says whether it did.
    pub fn declare(&mut self, intents: Vec<Intent>, seen: Integrity) -> bool {
        if seen == Integrity::Untrusted {
            return false;
        }
        self.widen(intents);
        true
    }

    /// Adds intents on a person's word.
    pub fn widen(&mut self, intents: Vec<Intent>) {
        for intent in intents {
            match self.intents.iter_mut().find(|known| known.tool == intent.tool) {
                // No destinations means "wherever the work shows", which is wider than any list.
                Some(known) if known.destinations.is_empty() || intent.destinations.is_empty() => {
                    known.destinations.clear();
                }
                Some(known) => known.destinations.extend(intent.destinations),
                None => self.intents.push(intent),
            }
        }
    }

    /// Takes a tool out again.
    pub fn narrow(&mut self, tool: &str) {
        self.intents.retain(|intent| intent.tool != tool);
    }

    /// The intents, in the order in which they were stated.
    #[must_use]
    pub fn intents(&self) -> &[Intent] {
        &self.intents
    }

    /// Whether a call was meant: its tool is named and, where destinations are named too, it goes to one of them. Whether its other
    /// destinations are anybody's choice but the user's is a question of their provenance.
    #[must_use]
    pub fn covers<'a>(&self, tool: &str, destinations: impl IntoIterator<Item = &'a str>) -> bool {
        let Some(intent) = self.intents.iter().find(|intent| intent.tool == tool) else { return false };
        intent.destinations.is_empty()
            || destinations
                .into_iter()
                .any(|value| intent.destinations.iter().any(|named| crate::entity::same(named, value)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent(tool: &str, destinations: &[&str]) -> Intent {
        Intent { tool: tool.to_owned(), destinations: destinations.iter().map(|&name| name.to_owned()).collect() }
    }

    #[test]
    fn an_envelope_covers_what_it_names() {
        let mut envelope = Envelope::default();
        assert!(!envelope.covers("mail.send", ["ada@example.org"]));
        assert!(
            envelope
                .declare(vec![intent("mail.send", &["ada@example.org"]), intent("chat.post", &[])], Integrity::User)
        );
        assert!(envelope.covers("mail.send", ["ADA@example.org"]));
        assert!(!envelope.covers("mail.send", ["eve@example.org"]));
        assert!(envelope.covers("chat.post", ["anywhere"]));
        assert!(!envelope.covers("mail.delete", []));
        envelope.narrow("chat.post");
        assert!(!envelope.covers("chat.post", []));
    }

    #[test]
    fn after_untrusted_text_only_a_person_widens_it() {
        let mut envelope = Envelope::default();
        assert!(!envelope.declare(vec![intent("mail.send", &[])], Integrity::Untrusted));
        assert!(envelope.intents().is_empty());
        envelope.widen(vec![intent("mail.send", &["a"])]);
        envelope.widen(vec![intent("mail.send", &["b"])]);
        assert!(envelope.covers("mail.send", ["b"]));
        assert!(!envelope.covers("mail.send", ["c"]));
        envelope.widen(vec![intent("mail.send", &[])]);
        assert!(envelope.covers("mail.send", ["c"]));
    }
}

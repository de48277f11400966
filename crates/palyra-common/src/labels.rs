//! Information-flow labels: how far a datum may be trusted, how widely it may be shown, and where it came from.
//!
//! A [`Label`] is a point in a lattice. When data combine, their labels [`join`](Label::join): the *lowest* integrity,
//! the *highest* confidentiality, the *intersection* of readers and the *union* of sources. Nothing in this file
//! raises integrity or lowers confidentiality; that is an explicit, journaled act elsewhere.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::runtime_contract_enum;

runtime_contract_enum! {
    /// How far a datum may be trusted to steer effects. Ordered: a *greater* value is *less* trusted.
    pub enum Integrity("integrity") {
        /// Written by Palyra itself.
        System = "system",
        /// Written by whoever configures this installation.
        Operator = "operator",
        /// Written by the person who started the run.
        User = "user",
        /// Produced by a tool that an attacker cannot write to.
        ToolTrusted = "tool_trusted",
        /// Anyone may have written it.
        Untrusted = "untrusted",
    }
}

runtime_contract_enum! {
    /// Who may see a datum. Ordered from widest to narrowest.
    pub enum Confidentiality("confidentiality") {
        /// Anyone.
        Public = "public",
        /// People of this installation.
        Internal = "internal",
        /// The user whose run it is.
        Private = "private",
        /// Credentials and the like: never to a model or a sink that was not granted it by name.
        Secret = "secret",
    }
}

/// Integrity, confidentiality, permitted readers and sources of one datum.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Label {
    /// How far it may be trusted.
    pub integrity: Integrity,
    /// How widely it may be shown.
    pub confidentiality: Confidentiality,
    /// Hosts, channels and principals that may receive it; `None` means "whoever the confidentiality allows".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub readers: Option<BTreeSet<String>>,
    /// Tool calls, URLs, files and senders it came from.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub sources: BTreeSet<String>,
}

impl Label {
    /// A label without readers or sources.
    #[must_use]
    pub const fn new(integrity: Integrity, confidentiality: Confidentiality) -> Self {
        Self { integrity, confidentiality, readers: None, sources: BTreeSet::new() }
    }

    /// What a person typed into their own run.
    #[must_use]
    pub const fn user() -> Self {
        Self::new(Integrity::User, Confidentiality::Private)
    }

    /// What Palyra itself wrote.
    #[must_use]
    pub const fn system() -> Self {
        Self::new(Integrity::System, Confidentiality::Public)
    }

    /// The same label with one more source.
    #[must_use]
    pub fn from_source(mut self, source: impl Into<String>) -> Self {
        self.sources.insert(source.into());
        self
    }

    /// The label of data made from both.
    #[must_use]
    pub fn join(&self, other: &Self) -> Self {
        let readers = match (&self.readers, &other.readers) {
            (None, None) => None,
            (Some(one), None) | (None, Some(one)) => Some(one.clone()),
            (Some(left), Some(right)) => Some(left.intersection(right).cloned().collect()),
        };
        Self {
            integrity: self.integrity.max(other.integrity),
            confidentiality: self.confidentiality.max(other.confidentiality),
            readers,
            sources: self.sources.union(&other.sources).cloned().collect(),
        }
    }
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;

//! Information-flow labels: how far a datum may be trusted, how widely it may be shown, and where it came from.
//!
//! A [`Label`] is a point in a lattice. When data combine, their labels [`join`](Label::join): the *lowest* integrity,
//! the *highest* confidentiality, the *intersection* of readers and the *union* of sources and origins. Nothing in this file
//! raises integrity or lowers confidentiality; that is an explicit, journaled act elsewhere.

use std::collections::BTreeSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{DataOrigin, runtime_contract_enum};

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

/// Integrity, confidentiality, permitted readers, sources and origins of one datum.
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
    /// The places whose data it holds. Data that are not public and have no origin come from [`DataOrigin::Unknown`]; see
    /// [`Label::origins`].
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub origins: BTreeSet<DataOrigin>,
}

impl Label {
    /// A label without readers, sources or origins.
    #[must_use]
    pub const fn new(integrity: Integrity, confidentiality: Confidentiality) -> Self {
        Self { integrity, confidentiality, readers: None, sources: BTreeSet::new(), origins: BTreeSet::new() }
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

    /// The same label for data of this place. What is public may be anybody's and needs no origin.
    #[must_use]
    pub fn of_origin(mut self, origin: DataOrigin) -> Self {
        if self.confidentiality > Confidentiality::Public {
            self.origins.insert(origin);
        }
        self
    }

    /// The places whose data it holds, none of them left out: what is not public and does not say where it comes from comes from an
    /// unknown place, unless the user, the operator or Palyra wrote it.
    #[must_use]
    pub fn all_origins(&self) -> BTreeSet<DataOrigin> {
        if self.confidentiality == Confidentiality::Public {
            return BTreeSet::new();
        }
        if !self.origins.is_empty() {
            return self.origins.clone();
        }
        let origin = match self.integrity {
            Integrity::System | Integrity::Operator => DataOrigin::Operator,
            Integrity::User => DataOrigin::User,
            Integrity::ToolTrusted | Integrity::Untrusted => DataOrigin::Unknown,
        };
        BTreeSet::from([origin])
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
            origins: self.joined_origins(other),
        }
    }

    /// INVARIANT: whatever either side may hold is among them, beside what people wrote themselves. They are left out where the other fields of the joined label say them.
    fn joined_origins(&self, other: &Self) -> BTreeSet<DataOrigin> {
        let all: BTreeSet<DataOrigin> = self.all_origins().union(&other.all_origins()).cloned().collect();
        let written = |origins: &BTreeSet<DataOrigin>| {
            origins.iter().all(|origin| matches!(origin, DataOrigin::User | DataOrigin::Operator))
        };
        let integrity = self.integrity.max(other.integrity);
        let unsaid = Self::new(integrity, self.confidentiality.max(other.confidentiality)).all_origins();
        if all == unsaid || (written(&all) && written(&unsaid)) { BTreeSet::new() } else { all }
    }
}

#[cfg(test)]
#[path = "labels_tests.rs"]
mod tests;

//! How the results and arguments of one tool are treated by the information-flow rule.
//!
//! Built-in tools state this in code. Tools of an outside server get [`ToolClassification::cautious`] until the operator has reviewed
//! that server's classification file, which is a table of these by tool name. A classification is data; `palyra-flow` applies it.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Confidentiality, Integrity, Label, SinkKind, runtime_contract_enum};

runtime_contract_enum! {
    /// Whether an effect matters outside the run.
    pub enum Consequence("consequence") {
        /// It can be undone or stays inside.
        Contained = "contained",
        /// It changes something that others see.
        Consequential = "consequential",
    }
}

runtime_contract_enum! {
    /// Who can have written a field of a result.
    pub enum FieldRole("field_role") {
        /// The user's own store assigned it: numbers, dates, flags, record ids. Nobody else can choose it.
        Assigned = "assigned",
        /// A name out of a closed list of the user's own store. Trusted only where the value is a plain identifier; free text in its
        /// place is untrusted.
        Identifier = "identifier",
        /// The identity that the store attests for whoever wrote the record. Anyone may be it, so it is not trusted as a destination;
        /// but it says who wrote the rest.
        Author = "author",
        /// Free text that anyone may have written. The default.
        Text = "text",
    }
}

/// The role of the fields that a pattern names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FieldClass {
    /// Where the field stands in the structured result: names and `*` (any name or position) separated by dots, such as `*.id`.
    /// `.` alone is the result itself.
    pub field: String,
    /// Who can have written it.
    pub role: FieldRole,
}

/// What label a tool's results get.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OutputClass {
    /// Integrity of everything that no field says more about.
    pub integrity: Integrity,
    /// Confidentiality of the whole.
    pub confidentiality: Confidentiality,
    /// Fields with a role of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<FieldClass>,
}

impl OutputClass {
    /// A result without fields of their own.
    #[must_use]
    pub const fn whole(label: &Label) -> Self {
        Self { integrity: label.integrity, confidentiality: label.confidentiality, fields: Vec::new() }
    }
}

/// How one tool is treated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ToolClassification {
    /// Whether its effect matters outside the run.
    pub consequence: Consequence,
    /// What label its results get.
    pub output: OutputClass,
    /// What the arguments decide, by name. An argument that is not listed decides nothing.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub sinks: BTreeMap<String, SinkKind>,
    /// Whether the same call may be made again after a crash.
    #[serde(default)]
    pub repeatable: bool,
}

impl ToolClassification {
    /// What holds for a tool that nobody has reviewed: consequential, not repeatable, untrusted private results, every argument a
    /// destination.
    #[must_use]
    pub fn cautious(arguments: impl IntoIterator<Item = String>) -> Self {
        Self {
            consequence: Consequence::Consequential,
            output: OutputClass {
                integrity: Integrity::Untrusted,
                confidentiality: Confidentiality::Private,
                fields: Vec::new(),
            },
            sinks: arguments.into_iter().map(|name| (name, SinkKind::Destination)).collect(),
            repeatable: false,
        }
    }
}

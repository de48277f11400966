//! A first classification of a tool, from what its server says about it.
//!
//! The rules are deterministic and documented in `docs/mcp.md`; they look at names, schemas and descriptions only and know no product.
//! A proposal is for a person to check: it never takes effect by itself. Where a rule has to guess, it guesses towards more caution, and
//! what a server claims about itself in its hints can make a proposal stricter but never looser.
//!
//! `verbs` decides whether a tool acts, `arguments` what each argument decides, `output` who can have written each field of a result.

mod arguments;
mod output;
mod schema;
mod verbs;
// The lists stay readable as lists.
#[rustfmt::skip]
mod vocabulary;
mod words;

use std::collections::BTreeMap;

use palyra_common::{Consequence, SinkKind, ToolClassification};
use serde_json::Value;

use crate::ToolDescription;
use arguments::{Finding, Setting};

/// A proposed classification and the reasons for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proposal {
    /// The classification.
    pub classification: ToolClassification,
    /// One sentence per choice.
    pub why: Vec<String>,
}

/// Proposes a classification by the documented rules.
#[must_use]
pub fn propose(tool: &ToolDescription) -> Proposal {
    let verdict = verbs::judge(tool);
    let mut why = vec![verdict.why];
    let mut consequence = verdict.consequence;

    let nothing = serde_json::Map::new();
    let properties: BTreeMap<&String, &Value> = tool.properties().unwrap_or(&nothing).iter().collect();
    // A tool that runs what it is given is what it is given: whatever its name says, it acts.
    let contained = Setting::new(tool, Consequence::Contained);
    let runs = |(name, schema): (&&String, &&Value)| {
        arguments::sink(name, schema, &contained).is_some_and(|finding| finding.kind == SinkKind::Command)
    };
    if consequence == Consequence::Contained && properties.iter().any(runs) {
        consequence = Consequence::Consequential;
        why.push("consequential after all: an argument determines what is executed".to_owned());
    }

    let setting = Setting::new(tool, consequence);
    let mut sinks = BTreeMap::new();
    for (name, schema) in properties {
        match arguments::sink(name, schema, &setting) {
            Some(Finding { kind, why: reason }) => {
                why.push(format!("argument {name}: {kind}, {reason}"));
                sinks.insert(name.clone(), kind);
            }
            None => why.push(format!("argument {name}: not sensitive")),
        }
    }

    let (output, reasons) = output::class(tool, consequence, &sinks);
    why.extend(reasons);
    let repeatable = consequence == Consequence::Contained && tool.hints().idempotent != Some(false);
    why.push(if repeatable {
        "repeatable: it only reads".to_owned()
    } else {
        "not repeatable: a second call could repeat the effect".to_owned()
    });
    Proposal { classification: ToolClassification { consequence, output, sinks, repeatable }, why }
}

#[cfg(test)]
#[path = "propose_tests.rs"]
mod tests;

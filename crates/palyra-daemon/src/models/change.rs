//! What a change of `models.toml`, of the price file or of the budgets was, on the journal.

use std::path::Path;

use palyra_common::{StableErrorEnvelope, Timestamp};
use palyra_journal::NewRecord;
use palyra_models::Accounts;
use serde::Serialize;

/// Kind of the record of a change of `models.toml`.
pub(super) const MODELS_CHANGED: &str = "models.changed";
/// Kind of the record of a change of the price file.
pub(super) const PRICES_CHANGED: &str = "prices.changed";

/// Kind of the record of a change of the budgets in `palyra.toml`.
pub(super) const BUDGETS_CHANGED: &str = "budgets.changed";

/// What is different between two files. Keys are references, and not even those are told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Difference {
    /// Accounts that came.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) added: Vec<String>,
    /// Accounts that are gone.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) removed: Vec<String>,
    /// Accounts that are not what they were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) changed: Vec<String>,
    /// Whether other models are asked, or in another order.
    pub(crate) routes: bool,
}

impl Difference {
    pub(super) fn between(before: &Accounts, after: &Accounts) -> Self {
        let names = |of: &Accounts, is: &dyn Fn(&str) -> bool| -> Vec<String> {
            of.providers.keys().filter(|name| is(name)).cloned().collect()
        };
        Self {
            added: names(after, &|name| !before.providers.contains_key(name)),
            removed: names(before, &|name| !after.providers.contains_key(name)),
            changed: names(after, &|name| {
                before.providers.get(name).is_some_and(|account| after.providers.get(name) != Some(account))
            }),
            routes: before.routes != after.routes,
        }
    }

    pub(super) fn is_nothing(&self) -> bool {
        *self == Self::default()
    }
}

/// Payload of these records.
#[derive(Debug, Clone, Serialize)]
struct FileChanged<'a> {
    file: String,
    /// Whether it is in force.
    taken_over: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    difference: Option<&'a Difference>,
    /// Where conversations go from now on.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a StableErrorEnvelope>,
}

/// What came of a changed file.
#[derive(Debug, Clone, Copy)]
pub(super) enum Came<'a> {
    /// It is in force.
    TakenOver {
        /// What is different, where that can be said.
        difference: Option<&'a Difference>,
        /// Where conversations go.
        reason: Option<&'a str>,
    },
    /// It is not.
    Refused(&'a StableErrorEnvelope),
}

/// The record of a change.
pub(super) fn record(
    kind: &'static str,
    at: Timestamp,
    file: &Path,
    came: Came<'_>,
) -> Result<NewRecord, serde_json::Error> {
    let file = file.display().to_string();
    let changed = match came {
        Came::TakenOver { difference, reason } => {
            FileChanged { file, taken_over: true, difference, reason, error: None }
        }
        Came::Refused(error) => {
            FileChanged { file, taken_over: false, difference: None, reason: None, error: Some(error) }
        }
    };
    Ok(NewRecord::new(kind, at, serde_json::to_vec(&changed)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accounts(text: &str) -> Accounts {
        Accounts::parse(&format!("version = 1\n{text}"), Path::new("models.toml")).unwrap()
    }

    #[test]
    fn accounts_and_routes_are_told_apart() {
        let before = accounts("[providers.a]\nkind = 'ollama'\n[providers.b]\nkind = 'ollama'\n");
        let after = accounts(
            "[providers.b]\nkind = 'ollama'\ncontext_tokens = 2048\n[providers.c]\nkind = 'ollama'\n[routes]\ndefault = ['c/x']\n",
        );
        let difference = Difference::between(&before, &after);
        assert_eq!((difference.added, difference.removed), (vec!["c".to_owned()], vec!["a".to_owned()]));
        assert_eq!((difference.changed, difference.routes), (vec!["b".to_owned()], true));
        assert!(Difference::between(&after, &after).is_nothing());
    }
}

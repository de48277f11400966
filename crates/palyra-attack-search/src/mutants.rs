//! The product with one check taken away: what the search has to notice.

use palyra_flow::Check;
use palyra_policy::{PolicySource, PolicySources, SHIPPED_POLICIES};

/// Something that was taken away.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mutant {
    /// A check of the rule.
    Check(Check),
    /// A policy, by its file and id.
    Policy(&'static str, &'static str),
}

/// Policies that hold something back, of those that ship. What only grants is none.
pub const GUARDS: &[(&str, &str)] = &[
    ("asking.cedar", "outside_envelope"),
    ("sinks.cedar", "destination"),
    ("sinks.cedar", "clearance"),
    ("sinks.cedar", "flow"),
];

impl Mutant {
    /// All that there are.
    #[must_use]
    pub fn all() -> Vec<Self> {
        let checks = Check::ALL.iter().map(|check| Self::Check(*check));
        checks.chain(GUARDS.iter().map(|(file, id)| Self::Policy(file, id))).collect()
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::Check(check) => check.as_str().to_owned(),
            Self::Policy(file, id) => format!("{}.{id}", file.trim_end_matches(".cedar")),
        }
    }
}

/// The shipped policies without one, or all of them.
#[must_use]
pub fn policies(without: Option<(&str, &str)>) -> PolicySources {
    let Some((file, id)) = without else { return PolicySources::shipped() };
    let mut sources = PolicySources::default();
    for shipped in SHIPPED_POLICIES {
        let text = if shipped.name == file { without_policy(shipped.text, id) } else { shipped.text.to_owned() };
        sources = sources.with_text(PolicySource::new(shipped.name, text));
    }
    sources
}

/// A text of policies without the one of an id: from its `@id` up to the next.
fn without_policy(text: &str, id: &str) -> String {
    let mark = format!("@id(\"{id}\")");
    let Some((before, after)) = text.split_once(&mark) else { return text.to_owned() };
    let rest = after.find("@id(").and_then(|at| after.get(at..)).unwrap_or_default();
    format!("{before}{rest}")
}

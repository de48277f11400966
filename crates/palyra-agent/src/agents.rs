//! Agents: named ways of working that the operator sets up, with what a run keeps of one.
//!
//! What an agent says counts as the operator's word, in everybody's runs; who may set one is decided elsewhere. A run takes what it needs of its agent when it is
//! accepted, so that neither a change nor a removal reaches a run that is under way, and a tape replays whatever became of the agent.
//!
//! INVARIANT: an agent only ever narrows. Its patterns take tools away and its mode is the loosest that its runs have; nothing in it permits anything.

use palyra_common::{Confidentiality, Integrity, Label, RunMode, Timestamp};
use serde::{Deserialize, Serialize};

use crate::error::AgentError;
use crate::own_tools::{INSPECT, INTENT, PLAN, SEARCH};

/// Longest name of an agent.
const MAX_ID: usize = 64;
/// Longest name for people, in characters.
const MAX_NAME: usize = 200;
/// Longest instructions, in bytes; they stand in every request to the model.
const MAX_INSTRUCTIONS: usize = 32 << 10;
/// Longest name of a model or a directory, in bytes.
const MAX_TEXT: usize = 4 << 10;
/// Most patterns of tools.
const MAX_TOOLS: usize = 64;
/// Longest pattern of a tool's name: names have at most as many characters.
const MAX_PATTERN: usize = 128;
/// Below this two names have too little in common for a guess to help.
const ALIKE: f64 = 0.75;

/// A named way of working.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentProfile {
    /// What it is called by: small letters, digits, `-` and `_`.
    pub agent_id: String,
    /// Its name for people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// What is said to the model at the beginning of every run.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// The model that plans where neither the run nor its session names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How untrusted results are treated at the loosest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<RunMode>,
    /// The directory to work in where neither the run nor its session names one, absolute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace: Option<String>,
    /// The only tools that its runs may use: names, or beginnings of names followed by `*`. Empty means all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

/// An agent as it stands now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AgentRow {
    /// What it is.
    pub profile: AgentProfile,
    /// Number of the record that set it last: grows with every change, and never comes back.
    pub version: u64,
    /// When it was first set.
    pub created_at: Timestamp,
    /// When it was last set.
    pub updated_at: Timestamp,
    /// By whom.
    pub updated_by: String,
}

/// What a run keeps of its agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAgent {
    /// The version that it was taken from.
    pub version: u64,
    /// See [`AgentProfile::instructions`].
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub instructions: String,
    /// See [`AgentProfile::tools`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tools: Vec<String>,
}

impl RunAgent {
    pub(crate) fn of(row: &AgentRow) -> Self {
        let AgentProfile { instructions, tools, .. } = row.profile.clone();
        Self { version: row.version, instructions, tools }
    }

    /// The label of what an agent says.
    #[must_use]
    pub const fn label() -> Label {
        Label::new(Integrity::Operator, Confidentiality::Internal)
    }

    /// Whether its runs may use a tool. What acts on the run alone belongs to every run: stating an intent, looking into variables, showing a plan,
    /// finding the tools that it may use.
    #[must_use]
    pub fn lets_use(&self, tool: &str) -> bool {
        let fits = |pattern: &String| match pattern.strip_suffix('*') {
            Some(stem) => tool.starts_with(stem),
            None => pattern == tool,
        };
        self.tools.is_empty() || [INTENT, INSPECT, PLAN, SEARCH].contains(&tool) || self.tools.iter().any(fits)
    }
}

impl AgentProfile {
    /// Whether it makes sense.
    pub(crate) fn check(&self) -> Result<(), AgentError> {
        check_id(&self.agent_id)?;
        let wrong = |field, why: String| Err(AgentError::AgentInvalid { field, why });
        if self.name.chars().count() > MAX_NAME || self.name.chars().any(char::is_control) {
            return wrong("name", format!("it must be one line of at most {MAX_NAME} characters"));
        }
        let unprintable = |c: char| c.is_control() && !matches!(c, '\n' | '\t');
        if self.instructions.len() > MAX_INSTRUCTIONS || self.instructions.chars().any(unprintable) {
            let why =
                format!("they must have at most {MAX_INSTRUCTIONS} bytes and no control characters except line breaks");
            return wrong("instructions", why);
        }
        for (field, text) in [("model", &self.model), ("workspace", &self.workspace)] {
            let fits = |text: &String| {
                !text.trim().is_empty() && text.len() <= MAX_TEXT && !text.chars().any(char::is_control)
            };
            if text.as_ref().is_some_and(|text| !fits(text)) {
                return wrong(field, "it is empty or too long; omit it for the default".to_owned());
            }
        }
        if self.workspace.as_ref().is_some_and(|path| !std::path::Path::new(path).is_absolute()) {
            return wrong("workspace", "it is not an absolute path".to_owned());
        }
        if self.tools.len() > MAX_TOOLS {
            return wrong("tools", format!("there are more than {MAX_TOOLS}"));
        }
        match self.tools.iter().find(|pattern| !is_pattern(pattern)) {
            Some(_) => wrong("tools", "each must be a tool name, or a prefix followed by `*`".to_owned()),
            None => Ok(()),
        }
    }
}

/// Names of agents stand in files, addresses, budgets and reports.
pub(crate) fn check_id(id: &str) -> Result<(), AgentError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
    let fits = (1..=MAX_ID).contains(&id.len()) && id.bytes().all(plain);
    if fits { Ok(()) } else { Err(AgentError::AgentNameInvalid(id.chars().take(MAX_ID).collect())) }
}

fn is_pattern(pattern: &str) -> bool {
    let stem = pattern.strip_suffix('*').unwrap_or(pattern);
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    !pattern.is_empty() && pattern.len() <= MAX_PATTERN && stem.bytes().all(plain)
}

/// The agent that somebody may have meant.
pub(crate) fn nearest<'a>(wanted: &str, known: impl Iterator<Item = &'a str>) -> Option<String> {
    known
        .map(|known| (strsim::jaro_winkler(known, wanted), known))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, known)| known.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(tools: &[&str]) -> RunAgent {
        RunAgent { version: 1, instructions: String::new(), tools: tools.iter().map(ToString::to_string).collect() }
    }

    #[test]
    fn patterns_take_tools_away() {
        assert!(agent(&[]).lets_use("mcp.chat.send"));
        let narrow = agent(&["palyra.fs.*", "mcp.chat.read"]);
        for (tool, may) in [
            ("palyra.fs.read", true),
            ("palyra.fs.write", true),
            ("palyra.fsx", false),
            ("mcp.chat.read", true),
            ("mcp.chat.read_all", false),
            ("client.palyra.fs.read", false),
            (INTENT, true),
            (INSPECT, true),
        ] {
            assert_eq!(narrow.lets_use(tool), may, "{tool}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_field() {
        let good = AgentProfile {
            agent_id: "re-viewer_2".into(),
            name: "Reviewer".into(),
            instructions: "Read.\n\tThen say.".into(),
            model: Some("work/large".into()),
            mode: Some(RunMode::Strict),
            workspace: Some("/srv".into()),
            tools: vec!["palyra.fs.*".into(), "*".into()],
        };
        good.check().unwrap();
        let refused = |wrong: AgentProfile| match wrong.check() {
            Err(AgentError::AgentInvalid { field, .. }) => field,
            Err(AgentError::AgentNameInvalid(_)) => "agent_id",
            other => panic!("{other:?}"),
        };
        let wrong = [
            ("agent_id", AgentProfile { agent_id: "Re viewer".into(), ..good.clone() }),
            ("agent_id", AgentProfile { agent_id: "x".repeat(65), ..good.clone() }),
            ("name", AgentProfile { name: "two\nlines".into(), ..good.clone() }),
            ("instructions", AgentProfile { instructions: "x".repeat(MAX_INSTRUCTIONS + 1), ..good.clone() }),
            ("instructions", AgentProfile { instructions: "\u{1b}[31m".into(), ..good.clone() }),
            ("model", AgentProfile { model: Some(" ".into()), ..good.clone() }),
            ("workspace", AgentProfile { workspace: Some("here".into()), ..good.clone() }),
            ("tools", AgentProfile { tools: vec!["palyra.*.read".into()], ..good.clone() }),
            ("tools", AgentProfile { tools: vec!["a".into(); 65], ..good }),
        ];
        for (field, profile) in wrong {
            assert_eq!(refused(profile), field);
        }
        assert_eq!(nearest("reviwer", ["main", "reviewer"].into_iter()), Some("reviewer".to_owned()));
        assert_eq!(nearest("zzz", ["main", "reviewer"].into_iter()), None);
    }
}

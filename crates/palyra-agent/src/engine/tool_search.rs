//! Carrying out `palyra.tools.search`.
//!
//! What servers and skills say about their tools helps to find them, but is not repeated in the result: the model reads it where it always does, in the
//! description of the tool once it is on offer. So a search shows nothing that somebody else wrote, except names of a closed alphabet.

use palyra_tools::{ToolDeclaration, ToolError};
use serde_json::Value;

use super::EngineOptions;
use super::tool_offer::{ToolOffer, permitted};
use crate::machine::Machine;
use crate::own_tools::{SEARCH, SearchInput};

/// Most tools that one search puts on offer.
const MOST_FOUND: usize = 6;
/// Most names that are listed when nothing fits.
const MOST_NAMES: usize = 60;

/// What a search gave.
pub(super) struct FoundTools {
    /// For the model.
    pub(super) content: String,
    /// Names of the tools that it is told about from now on.
    pub(super) names: Vec<String>,
}

/// Searches the tools that the run could have and was not told about.
pub(super) fn find(options: &EngineOptions, machine: &Machine, arguments: Value) -> Result<FoundTools, ToolError> {
    let input: SearchInput = serde_json::from_value(arguments)
        .map_err(|error| ToolError::argument(SEARCH, "query", "invalid_query", error.to_string()))?;
    let (registry, spec) = (options.registry.current(), machine.spec());
    let deferred = ToolOffer::to(options, spec, machine.tools_in_use()).deferred;
    let words = words(&input.query);
    let mut found: Vec<(usize, &ToolDeclaration)> = permitted(&registry, spec)
        .map(|(tool, _)| tool)
        .filter(|tool| deferred.iter().any(|name| name == tool.name.as_str()))
        .map(|tool| (score(tool, &words), tool))
        .filter(|(score, _)| *score > 0)
        .collect();
    // Ties are broken by name: the same search gives the same answer.
    found.sort_by(|one, other| other.0.cmp(&one.0).then_with(|| one.1.name.cmp(&other.1.name)));
    found.truncate(MOST_FOUND);
    if found.is_empty() {
        let names: Vec<&str> = deferred.iter().map(String::as_str).take(MOST_NAMES).collect();
        let more = deferred.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let content = match names.as_slice() {
            [] => "there are no other tools".to_owned(),
            names => format!("nothing fits; search by name for one of: {}{more}", names.join(", ")),
        };
        return Ok(FoundTools { content, names: Vec::new() });
    }
    let lines: Vec<String> = found.iter().map(|(_, tool)| line(tool)).collect();
    Ok(FoundTools {
        content: format!("you can call these from your next step on:\n{}", lines.join("\n")),
        names: found.iter().map(|(_, tool)| tool.name.to_string()).collect(),
    })
}

/// One tool in a result: in our own words, or by its name alone.
fn line(tool: &ToolDeclaration) -> String {
    match (&tool.server, &tool.skill) {
        (Some(server), _) => format!("- {} (server {server})", tool.name),
        (None, Some(skill)) => format!("- {} (skill {skill})", tool.name),
        (None, None) => {
            let first = tool.description.split_whitespace().collect::<Vec<_>>().join(" ");
            let first = first.split_once(". ").map_or(first.as_str(), |(first, _)| first);
            format!("- {}: {}", tool.name, first.trim_end_matches('.'))
        }
    }
}

fn words(text: &str) -> Vec<String> {
    let parts = text.split(|c: char| !c.is_alphanumeric()).filter(|word| word.chars().count() > 1);
    parts.map(str::to_lowercase).collect()
}

/// How well a tool fits: a word of its name counts most, one of its description least. Beginnings count too, so that `process` finds `processes`.
fn score(tool: &ToolDeclaration, query: &[String]) -> usize {
    let weigh = |text: &str, weight: usize| -> usize {
        let there = words(text);
        let fits = |word: &&String| {
            there.iter().any(|known| known.starts_with(word.as_str()) || (known.len() > 3 && word.starts_with(known)))
        };
        query.iter().filter(fits).count() * weight
    };
    weigh(tool.name.as_str(), 6) + weigh(&tool.title, 3) + weigh(&tool.description, 1)
}

//! The tools that every daemon offers, for trying a model before there is a daemon.
//!
//! Mechanisms do not know each other, so the list is a file: `make reference` writes it from the real tools, and `make test` fails when the
//! two differ.

use crate::message::ToolSpec;

/// The list as it is generated.
const LIST: &str = include_str!("default_tools.json");

/// Every tool that is there without skills and MCP servers.
#[must_use]
pub fn default_tools() -> Vec<ToolSpec> {
    serde_json::from_str(LIST).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_can_be_read_and_has_the_tools_of_every_origin() {
        let names: Vec<String> = default_tools().into_iter().map(|tool| tool.name).collect();
        for one in ["palyra.fs.read", "palyra.a2ui.patch", "palyra.process.run", "palyra.http.fetch"] {
            assert!(names.iter().any(|name| name == one), "{one} is missing in {names:?}");
        }
    }
}

//! Tool names on the wire.
//!
//! Palyra's tool names have dots; chat-completions servers accept `[a-zA-Z0-9_-]{1,64}` only. A dot becomes `__`, any other
//! foreign character `_`, and what is then too long or taken already is shortened and given a digest of the full name. The
//! way back is a table made for each request, so it is exact for every name that was offered or used before. A name the
//! model made up is turned back by the general rule and fails later as an unknown tool.

use std::collections::BTreeMap;

use palyra_common::Digest;

use crate::request::ModelRequest;

/// Longest name that servers accept.
const MAX_NAME: usize = 64;
/// How much of the digest marks a shortened name.
const MARK: usize = 8;

/// Both directions for one request.
#[derive(Debug, Clone, Default)]
pub(crate) struct ToolNames {
    to_wire: BTreeMap<String, String>,
    from_wire: BTreeMap<String, String>,
}

impl ToolNames {
    /// The table for all names that a request offers or mentions.
    pub(crate) fn for_request(request: &ModelRequest) -> Self {
        let mut names = Self::default();
        let offered = request.tools.iter().map(|tool| &tool.name);
        let used = request.messages.iter().flat_map(|message| &message.tool_calls).map(|call| &call.name);
        for name in offered.chain(used) {
            names.add(name);
        }
        names
    }

    /// The name as servers accept it.
    pub(crate) fn to_wire(&self, name: &str) -> String {
        self.to_wire.get(name).cloned().unwrap_or_else(|| plain(name))
    }

    /// The name as Palyra knows it.
    pub(crate) fn known_as(&self, name: &str) -> String {
        self.from_wire.get(name).cloned().unwrap_or_else(|| name.replace("__", "."))
    }

    fn add(&mut self, name: &str) {
        if self.to_wire.contains_key(name) {
            return;
        }
        let plain = plain(name);
        let mut wire = plain.clone();
        let mut attempt = 0_u64;
        while wire.is_empty() || wire.len() > MAX_NAME || self.from_wire.contains_key(&wire) {
            let digest = Digest::of_parts(&[name.as_bytes(), &attempt.to_be_bytes()]).to_hex();
            let head: String = plain.chars().take(MAX_NAME - MARK - 1).collect();
            let mark: String = digest.chars().take(MARK).collect();
            wire = format!("{head}-{mark}");
            attempt += 1;
        }
        self.from_wire.insert(wire.clone(), name.to_owned());
        self.to_wire.insert(name.to_owned(), wire);
    }
}

/// The general rule.
fn plain(name: &str) -> String {
    let mut wire = String::with_capacity(name.len() + 4);
    for c in name.chars() {
        match c {
            '.' => wire.push_str("__"),
            c if c.is_ascii_alphanumeric() || matches!(c, '_' | '-') => wire.push(c),
            _ => wire.push('_'),
        }
    }
    wire
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn dots_become_double_underscores_and_back() {
        let mut names = ToolNames::default();
        names.add("palyra.fs.read");
        assert_eq!(names.to_wire("palyra.fs.read"), "palyra__fs__read");
        assert_eq!(names.known_as("palyra__fs__read"), "palyra.fs.read");
        assert_eq!(names.known_as("palyra__made__up"), "palyra.made.up");
    }

    proptest! {
        #[test]
        fn every_offered_name_comes_back_and_is_acceptable(
            wanted in prop::collection::btree_set(prop_oneof!["[a-b._]{1,4}", "\\PC{1,80}", "[a.]{60,90}"], 1..12),
        ) {
            let mut names = ToolNames::default();
            for name in &wanted {
                names.add(name);
            }
            for name in &wanted {
                let wire = names.to_wire(name);
                prop_assert!(wire.len() <= MAX_NAME && !wire.is_empty());
                prop_assert!(wire.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')), "{wire}");
                prop_assert_eq!(&names.known_as(&wire), name);
            }
        }
    }
}

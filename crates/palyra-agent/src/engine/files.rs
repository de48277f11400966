//! Files that enter a context: project files and `@file:` references.
//!
//! They are read once, when the run is accepted, and are part of its specification from then on.

use palyra_tools::{TextPrefix, ToolError, Workspace};

use crate::error::AgentError;
use crate::spec::ContextItem;

/// Bytes of one file that enter a context; more is cut off with a note.
const MAX_FILE_BYTES: usize = 64 * 1024;
/// References that one message may carry.
const MAX_REFERENCES: usize = 16;
const MARK: &str = "@file:";

/// Project files that exist, in the configured order.
pub(super) fn project_files(workspace: &Workspace, names: &[String]) -> Vec<ContextItem> {
    names.iter().filter_map(|name| read(workspace, name).ok()).collect()
}

/// The files a message refers to, in order, each once.
pub(super) fn references(workspace: &Workspace, text: &str) -> Result<Vec<ContextItem>, AgentError> {
    let mut items: Vec<ContextItem> = Vec::new();
    for path in reference_paths(text).into_iter().take(MAX_REFERENCES) {
        if !items.iter().any(|item| item.source == path) {
            let item = read(workspace, &path).map_err(|source| AgentError::BadReference { path, source })?;
            items.push(item);
        }
    }
    Ok(items)
}

fn read(workspace: &Workspace, path: &str) -> Result<ContextItem, ToolError> {
    let TextPrefix { mut text, whole, label } = workspace.read_text_prefix(path, MAX_FILE_BYTES)?;
    if !whole {
        text.push_str("\n[the rest of this file is not shown; palyra.fs.read reads on]");
    }
    Ok(ContextItem { source: path.to_owned(), text, label })
}

/// Paths after `@file:`, bare up to white space or in double quotes. Punctuation that ends a sentence does not belong to a path.
fn reference_paths(text: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(MARK) {
        let (path, next) = match after.strip_prefix('"').and_then(|quoted| quoted.split_once('"')) {
            Some((path, next)) => (path, next),
            None => {
                let end = after.find(char::is_whitespace).unwrap_or(after.len());
                let (path, next) = after.split_at(end);
                (path.trim_end_matches([',', ';', ':', '!', '?', ')', '.']), next)
            }
        };
        if !path.is_empty() {
            paths.push(path.to_owned());
        }
        rest = next;
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_end_at_white_space_quotes_or_closing_punctuation() {
        let text = "compare @file:a.txt, @file:\"b c.md\" and (@file:d/e.rs). @file: nothing";
        assert_eq!(reference_paths(text), ["a.txt", "b c.md", "d/e.rs"]);
        assert!(reference_paths("no references, not even @files").is_empty());
    }
}

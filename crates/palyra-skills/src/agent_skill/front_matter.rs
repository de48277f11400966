//! The front matter of a `SKILL.md`: a small YAML document between two lines of `---`.
//!
//! YAML is read by a parser of the whole language, but only texts, lists and tables are taken: anchors, aliases and tags are refused, since they are what makes a
//! small document large or more than data. Every scalar is a text.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Parser};

use super::AgentSkillMetadata;

/// Largest front matter.
const MAX_FRONT_MATTER: usize = 16 << 10;
/// Deepest nesting. Other products keep settings of their own in `metadata`, some levels deep.
const MAX_DEPTH: usize = 16;
/// Most values.
const MAX_VALUES: usize = 512;
/// Longest description.
const MAX_DESCRIPTION: usize = 1_024;
/// Longest note on compatibility.
const MAX_COMPATIBILITY: usize = 500;

/// A value of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    Text(String),
    List(Vec<Node>),
    Table(BTreeMap<String, Node>),
}

/// Splits a `SKILL.md` into front matter and body.
pub(super) fn split(text: &str) -> Result<(&str, &str), String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.split_inclusive('\n');
    let first = lines.next().unwrap_or_default();
    if first.trim_end() != "---" {
        return Err("it does not start with front matter (a `---` line)".to_owned());
    }
    let start = first.len();
    let mut at = start;
    for line in lines {
        if line.trim_end() == "---" {
            let front = text.get(start..at).unwrap_or_default();
            let body = text.get(at + line.len()..).unwrap_or_default();
            return match front.len() <= MAX_FRONT_MATTER {
                true => Ok((front, body)),
                false => Err("its front matter is larger than 16 KiB".to_owned()),
            };
        }
        at += line.len();
    }
    Err("its front matter is not closed with a `---` line".to_owned())
}

/// Reads front matter.
pub(super) fn read(front: &str) -> Result<AgentSkillMetadata, String> {
    let Node::Table(mut fields) = parse(front)? else { return Err("its front matter is not a table".to_owned()) };
    let mut text = |key: &str| match fields.remove(key) {
        None => Ok(None),
        Some(Node::Text(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{key}` is not a string")),
    };
    let name = text("name")?.ok_or("`name` is missing")?;
    if !is_name(&name) {
        return Err("`name` must be 1 to 64 characters of a-z and 0-9, with single hyphens between them".to_owned());
    }
    let description = text("description")?.filter(|text| !text.trim().is_empty()).ok_or("`description` is missing")?;
    if description.chars().count() > MAX_DESCRIPTION {
        return Err("`description` is longer than 1,024 characters".to_owned());
    }
    let license = text("license")?;
    let compatibility = text("compatibility")?;
    if compatibility.as_ref().is_some_and(|text| text.chars().count() > MAX_COMPATIBILITY) {
        return Err("`compatibility` is longer than 500 characters".to_owned());
    }
    let allowed_tools = match fields.remove("allowed-tools") {
        None => Vec::new(),
        Some(Node::Text(text)) => split_tools(&text),
        Some(Node::List(items)) => items
            .into_iter()
            .map(|item| match item {
                Node::Text(text) => Ok(text),
                _ => Err("`allowed-tools` must be a list of strings".to_owned()),
            })
            .collect::<Result<_, _>>()?,
        Some(Node::Table(_)) => return Err("`allowed-tools` must be a string or a list".to_owned()),
    };
    let mut metadata = BTreeMap::new();
    let mut others = Vec::new();
    match fields.remove("metadata") {
        None => {}
        Some(Node::Table(entries)) => {
            for (key, value) in entries {
                match value {
                    Node::Text(text) => _ = metadata.insert(key, text),
                    // The format has texts there, and folders in the wild have lists and tables for other products.
                    _ => others.push(format!("metadata.{key}")),
                }
            }
        }
        Some(_) => return Err("`metadata` must be a table of strings".to_owned()),
    }
    let ignored = fields.into_keys().chain(others).collect();
    Ok(AgentSkillMetadata { name, description, license, compatibility, allowed_tools, metadata, ignored })
}

/// Whether a text is a name of the format.
pub(super) fn is_name(name: &str) -> bool {
    (1..=64).contains(&name.len())
        && name
            .split('-')
            .all(|word| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit()))
}

/// Splits `Read, Grep Bash(git log:*)` at commas and spaces outside parentheses.
fn split_tools(text: &str) -> Vec<String> {
    let mut tools = vec![String::new()];
    let mut depth = 0_usize;
    for letter in text.chars() {
        match letter {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        match tools.last_mut() {
            Some(last) if depth > 0 || !(letter.is_whitespace() || letter == ',') => last.push(letter),
            _ => tools.push(String::new()),
        }
    }
    tools.retain(|tool| !tool.is_empty());
    tools
}

/// A list or table that is being read.
enum Open {
    List(Vec<Node>),
    Table(BTreeMap<String, Node>, Option<String>),
}

fn parse(text: &str) -> Result<Node, String> {
    let mut open: Vec<Open> = Vec::new();
    let mut root = None;
    let mut values = 0;
    for event in Parser::new_from_str(text) {
        let (event, _) = event.map_err(|error| {
            format!("its front matter is not valid YAML: {}", crate::error::shown(&error.to_string()))
        })?;
        values += 1;
        if values > MAX_VALUES {
            return Err("its front matter has more than 512 values".to_owned());
        }
        let finished = match event {
            Event::Alias(_) => return Err("its front matter contains a YAML alias".to_owned()),
            Event::Scalar(_, _, anchor, tag) if anchor != 0 || tag.is_some() => return Err(TRICKS.to_owned()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) if anchor != 0 || tag.is_some() => {
                return Err(TRICKS.to_owned());
            }
            Event::Scalar(text, ..) => Some(Node::Text(text.into_owned())),
            Event::SequenceStart(..) => {
                open.push(Open::List(Vec::new()));
                None
            }
            Event::MappingStart(..) => {
                open.push(Open::Table(BTreeMap::new(), None));
                None
            }
            Event::SequenceEnd | Event::MappingEnd => match open.pop() {
                Some(Open::List(items)) => Some(Node::List(items)),
                Some(Open::Table(entries, _)) => Some(Node::Table(entries)),
                None => return Err("its front matter is not valid YAML".to_owned()),
            },
            Event::DocumentStart(_) if root.is_some() => {
                return Err("its front matter contains several YAML documents".to_owned());
            }
            _ => None,
        };
        if open.len() > MAX_DEPTH {
            return Err("its front matter is nested too deeply".to_owned());
        }
        let Some(node) = finished else { continue };
        match (open.last_mut(), node) {
            (None, node) => root = Some(node),
            (Some(Open::List(items)), node) => items.push(node),
            (Some(Open::Table(_, key @ None)), Node::Text(text)) => *key = Some(text),
            (Some(Open::Table(_, None)), _) => return Err("a key in its front matter is not a string".to_owned()),
            (Some(Open::Table(entries, key)), node) => {
                let key = key.take().unwrap_or_default();
                if entries.insert(key.clone(), node).is_some() {
                    return Err(format!("its front matter has `{}` twice", crate::error::shown(&key)));
                }
            }
        }
    }
    root.ok_or_else(|| "its front matter is empty".to_owned())
}

const TRICKS: &str = "its front matter contains a YAML anchor or tag";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fields_of_the_format_are_read() {
        let text = "---\nname: pdf-forms\ndescription: >-\n  Fills in\n  forms.\nlicense: Apache-2.0\nallowed-tools: Read, Bash(git log:*) Grep\nmetadata:\n  author: acme\n  version: 1.0\nmodel: other\n---\n# Body\n---\nmore\n";
        let (front, body) = split(text).unwrap();
        assert_eq!(body, "# Body\n---\nmore\n");
        let read = read(front).unwrap();
        assert_eq!((read.name.as_str(), read.description.as_str()), ("pdf-forms", "Fills in forms."));
        assert_eq!(read.allowed_tools, ["Read", "Bash(git log:*)", "Grep"]);
        assert_eq!(read.metadata["version"], "1.0");
        assert_eq!(read.ignored, ["model"]);
    }

    #[test]
    fn folders_of_the_wild_are_read() {
        let text = "\u{feff}---\r\nname: git-notes\r\ndescription: |\r\n  Reads notes.\r\n  Ünïcode, \"quotes\" and: colons.\r\nallowed-tools:\r\n  - Read\r\n  - \"Bash(git:*)\"\r\nversion: 2\r\nmetadata: {\"author\": \"acme\", \"tags\": [a, b], \"other\": {\"requires\": {\"bins\": [\"git\"]}, \"install\": [{\"id\": \"brew\", \"bins\": [\"git\"]}]}}\r\n---\r\nBody.\r\n";
        let (front, body) = split(text).unwrap();
        assert_eq!(body.trim(), "Body.");
        let read = read(front).unwrap();
        assert_eq!(read.description.trim(), "Reads notes.\nÜnïcode, \"quotes\" and: colons.");
        assert_eq!(read.allowed_tools, ["Read", "Bash(git:*)"]);
        assert_eq!(read.metadata.keys().collect::<Vec<_>>(), ["author"]);
        assert_eq!(read.ignored, ["version", "metadata.other", "metadata.tags"]);
    }

    #[test]
    fn bad_front_matter_is_refused() {
        let deep = format!("name: a\ndescription: b\nmetadata: {}{}", "[".repeat(200), "]".repeat(200));
        let many = format!(
            "name: a\ndescription: b\nmetadata:\n{}",
            (0..600).map(|n| format!("  k{n}: v\n")).collect::<String>()
        );
        let long = format!("name: a\ndescription: {}", "x".repeat(1_025));
        for bad in [
            "",
            "just text",
            "- list",
            "name: a",
            "description: b",
            "name: A\ndescription: b",
            "name: a--b\ndescription: c",
            "name: -a\ndescription: c",
            "name: a\ndescription: b\nname: c",
            "name: &x a\ndescription: *x",
            "name: a\ndescription: !!binary b",
            "name: a\ndescription: [b]",
            "name: a\ndescription: b\nmetadata: c",
            "name: a\ndescription: b\n? [x]\n: y",
            "name: a\ndescription: \"b",
            "name: a\n--- \nname: b",
            "name: a\ndescription: '  '",
            &deep,
            &many,
            &long,
        ] {
            assert!(read(bad).is_err(), "{bad:.80}");
        }
        assert!(split("name: a\n").is_err());
        assert!(split("---\nname: a\n").is_err());
        assert!(split(&format!("---\n{}---\n", "# x\n".repeat(5_000))).is_err());
    }
}

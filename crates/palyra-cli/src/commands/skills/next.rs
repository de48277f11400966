//! What to type next: one `next:` line per command, each of which works as it is printed.

use std::path::{Path, PathBuf};

use palyra_client::api::SkillDetail;
use palyra_common::{SkillStatus, command_line};
use palyra_skills::SkillManifest;
use serde_json::{Map, Value, json};

use crate::console::{Console, one_line};

/// Prints the commands.
pub(super) fn show(console: &Console, commands: impl IntoIterator<Item = String>) {
    for command in commands {
        console.remark(&format!("next: {}", one_line(&command)));
    }
}

/// A word as a POSIX shell reads it back.
pub(super) fn word(text: &str) -> String {
    command_line([text])
}

pub(super) fn path(path: &Path) -> String {
    word(&path.to_string_lossy())
}

/// A command about the skill in a folder, which need not be named where it is the current one.
pub(super) fn in_folder(verb: &str, folder: &Path) -> String {
    if folder == Path::new(".") {
        format!("palyra skills {verb}")
    } else {
        format!("palyra skills {verb} {}", path(folder))
    }
}

/// The public key beside a private one.
pub(super) fn public_half(key: &Path) -> PathBuf {
    let mut path = key.as_os_str().to_owned();
    path.push(".pub");
    PathBuf::from(path)
}

/// After the tests of a folder passed: a key, unless there is one, and the archive. The key stays outside the folder that is packed.
pub(super) fn after_tests(folder: &Path) -> Vec<String> {
    let key = if folder == Path::new(".") { "../publisher.key" } else { "publisher.key" };
    let keygen = (!Path::new(key).exists()).then(|| format!("palyra skills keygen {key}"));
    keygen.into_iter().chain([format!("{} --key {key}", in_folder("pack", folder))]).collect()
}

/// After a skill was installed, with its manifest where it came from a file.
pub(super) fn after_installation(detail: &SkillDetail, manifest: Option<&SkillManifest>) -> Vec<String> {
    let (skill, id) = (&detail.skill, &detail.skill.skill_id);
    match skill.status {
        SkillStatus::Enabled => {
            let Some(manifest) = manifest else { return vec![format!("palyra skills info {id}")] };
            let tool = manifest.tools.first().map(|tool| {
                let input = example(&tool.input_schema).to_string();
                format!("palyra skills call {id}.{} {}", tool.id, word(&input))
            });
            let hook = manifest.hooks.first().and_then(|hook| hook.events.first());
            let hook = hook.map(|event| format!("palyra skills hooks bind {event} {id}"));
            tool.into_iter().chain(hook).collect()
        }
        SkillStatus::Disabled => vec![format!("palyra skills enable {id}")],
        SkillStatus::Quarantined => vec![format!("palyra skills audit {id}")],
    }
}

/// An input that fits a simple schema: what is required, with the first value that comes to mind.
fn example(schema: &Value) -> Value {
    let given = |name: &str| schema.get(name).cloned();
    let listed = |name: &str| schema.get(name).and_then(Value::as_array).and_then(|values| values.first()).cloned();
    if let Some(value) =
        given("default").or_else(|| given("const")).or_else(|| listed("examples")).or_else(|| listed("enum"))
    {
        return value;
    }
    let kind = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.first().and_then(Value::as_str),
        Some(kind) => kind.as_str(),
        None => None,
    };
    match kind {
        Some("string") => json!("example"),
        Some("integer" | "number") => given("minimum").unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ => {
            let required = schema.get("required").and_then(Value::as_array).into_iter().flatten();
            let names = required.filter_map(Value::as_str);
            let property =
                |name: &str| schema.get("properties").and_then(|all| all.get(name)).map_or(Value::Null, example);
            Value::Object(names.map(|name| (name.to_owned(), property(name))).collect::<Map<_, _>>())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_has_what_a_schema_requires() {
        let schema = json!({
            "type": "object",
            "properties": {
                "name": { "type": "string" },
                "count": { "type": "integer", "minimum": 3 },
                "mood": { "enum": ["glad", "cross"] },
                "notes": { "type": "array", "items": { "type": "string" } },
                "place": { "type": "object", "properties": { "x": { "type": "number" } }, "required": ["x"] },
                "spare": { "type": "string" },
            },
            "required": ["name", "count", "mood", "notes", "place"],
        });
        let expected = json!({"name": "example", "count": 3, "mood": "glad", "notes": [], "place": {"x": 1}});
        assert_eq!(example(&schema), expected);
        assert_eq!(example(&json!({})), json!({}));
    }
}

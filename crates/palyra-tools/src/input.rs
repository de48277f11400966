//! Turns checked arguments into a tool's input struct, and cuts long results to what a model should read at once.

use std::fmt::Write as _;

use palyra_common::{Digest, Label};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::{ArtifactRef, Artifacts, ToolError, ToolLimits, ToolName, ToolOutput};

/// Reads the arguments of a call. The registry has checked them against the schema; this is the check that counts.
pub(crate) fn parse<Input: DeserializeOwned>(tool: &ToolName, arguments: Value) -> Result<Input, ToolError> {
    let arguments = if arguments.is_null() { json!({}) } else { arguments };
    serde_json::from_value(arguments)
        .map_err(|error| ToolError::argument(tool.as_str(), "arguments", "invalid", error.to_string()))
}

/// A text argument, for summaries and resources of calls that may not be valid yet.
pub(crate) fn text<'a>(arguments: &'a Value, name: &str) -> Option<&'a str> {
    arguments.get(name).and_then(Value::as_str)
}

/// A text result of any length: what does not fit goes to an artifact, and the text says how to read on.
pub(crate) fn bounded(
    content: String,
    label: Label,
    limits: &ToolLimits,
    artifacts: &dyn Artifacts,
) -> Result<ToolOutput, ToolError> {
    if content.len() <= limits.inline_bytes {
        return Ok(ToolOutput::text(content, label));
    }
    /// Room for the note at the end.
    const NOTE: usize = 256;
    let digest = artifacts.put(content.as_bytes())?;
    let bytes = content.len();
    let mut inline = content;
    inline.truncate(cut(&inline, limits.inline_bytes.saturating_sub(NOTE)));
    let shown = inline.len();
    if !inline.ends_with('\n') {
        inline.push('\n');
    }
    // Writing to a string cannot fail.
    let _ = write!(
        inline,
        "[{shown} of {bytes} bytes shown; read on with palyra.artifact.read, digest {digest}, offset {shown}]"
    );
    let artifact = ArtifactRef { digest, bytes: bytes as u64, media_type: "text/plain; charset=utf-8".to_owned() };
    Ok(ToolOutput { artifact: Some(artifact), truncated: true, ..ToolOutput::text(inline, label) })
}

/// Where to cut a text of at most `limit` bytes: after the last whole line, or else after the last whole character.
fn cut(text: &str, limit: usize) -> usize {
    let end = text.floor_char_boundary(limit);
    text.get(..end).and_then(|head| head.rfind('\n')).map_or(end, |line_end| line_end + 1)
}

/// What an effect is told apart by, besides its id: the tool and its arguments.
pub(crate) fn fingerprint(tool: &ToolName, arguments: &Value) -> Digest {
    Digest::of_parts(&[tool.as_str().as_bytes(), arguments.to_string().as_bytes()])
}

//! `palyra.fs.edit`: replaces an exact text in one file.
//!
//! The text has to be in the file exactly as given, and exactly as often as the call says; anything else changes nothing and tells the
//! model where to look. Line ends follow the file: a call written with `\n` finds and makes `\r\n` in a file whose lines all end so. Byte
//! order mark and mode stay as they are.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Digest, Integrity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::drafts::Drafts;
use crate::effects::{Ground, Plan};
use crate::input::{fingerprint, parse, text};
use crate::workspace_path::normal_text;
use crate::{
    CallResource, FileChange, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolLimits, ToolName,
    ToolOutput, Workspace, cancel,
};

/// Lines named when a text is found in several places.
const NAMED_LINES: usize = 8;
/// Bytes that a line may have more than four times those of the text it is compared with.
const SHORT: usize = 120;
/// Lines looked at for the one that is most like the text that was not found.
const COMPARED_LINES: usize = 20_000;
/// How alike a line has to be in order to be worth a mention.
const ALIKE: f64 = 0.8;

/// Replaces an exact text in a file. `old` must occur exactly once, whitespace included, unless `all` is set; give enough
/// lines around the change to make it unique.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FsEditInput {
    /// File to change.
    path: String,
    /// Text to replace, copied exactly from the file.
    old: String,
    /// Text to put there.
    new: String,
    /// Replace every occurrence.
    #[serde(default)]
    all: bool,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct FsEdit(ToolDeclaration);

impl FsEdit {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.fs.edit");
        Self(
            ToolDeclaration::of::<FsEditInput>(name, "Edit file", "edit `{path}`")
                .writes_workspace()
                .sink("path", SinkKind::Path)
                .sink("new", SinkKind::Content)
                .labelling_results()
                .output(Integrity::ToolTrusted, Confidentiality::Private)
                .offered(Offering::Always),
        )
    }

    fn input(&self, arguments: Value) -> Result<FsEditInput, ToolError> {
        let input: FsEditInput = parse(&self.0.name, arguments)?;
        let wrong =
            |field: &str, message: &str| Err(ToolError::argument(self.0.name.as_str(), field, "invalid", message));
        if input.old.is_empty() {
            return wrong("old", "`old` is empty; use palyra.fs.write to write a whole file");
        }
        if input.old == input.new {
            return wrong("new", "`old` and `new` are the same");
        }
        Ok(input)
    }
}

#[async_trait]
impl Tool for FsEdit {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, workspace: &Workspace) -> Result<CallResource, ToolError> {
        workspace.named(text(arguments, "path").unwrap_or_default()).map(CallResource::file)
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let input = self.input(arguments.clone())?;
        workspace.path(&input.path).map(drop)
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let fingerprint = fingerprint(&self.0.name, &invocation.arguments);
        let input = self.input(invocation.arguments)?;
        let label = self.0.output.clone().from_source(format!("file:{}", normal_text(&input.path)));
        let Invocation { workspace, artifacts, limits, effects, effect_id, cancel: token, .. } = invocation;
        let receipt = cancel::write(&token, move |cancel| {
            let ground = Ground { workspace: &workspace, artifacts: artifacts.as_ref(), cancel };
            effects.once(&ground, &effect_id, fingerprint, || plan(&ground, &input, &limits))
        })
        .await?;
        Ok(receipt.into_output(label))
    }
}

fn plan(ground: &Ground<'_>, input: &FsEditInput, limits: &ToolLimits) -> Result<Plan, ToolError> {
    let path = ground.workspace.path(&input.path)?;
    let shown = path.to_string();
    let mut drafts = Drafts::new(ground.workspace, limits.file_bytes);
    let draft = drafts.get(&path)?;
    let bytes = draft.now.take().ok_or_else(|| ToolError::PathNotFound { path: shown.clone(), suggestion: None })?;
    let present = match String::from_utf8(bytes) {
        Ok(text) if text.contains('\0') => return Err(ToolError::BinaryFile { path: shown }),
        Ok(text) => text,
        Err(error) if error.as_bytes().contains(&0) => return Err(ToolError::BinaryFile { path: shown }),
        Err(error) => {
            let position = error.utf8_error().valid_up_to() as u64;
            return Err(ToolError::NotUtf8 { path: shown, position });
        }
    };
    ground.cancel.check()?;
    let (old, new) = in_line_ends_of(&present, &input.old, &input.new);
    let places: Vec<usize> = present.match_indices(&old).map(|(at, _)| at).collect();
    let lines: Vec<usize> = places.iter().take(NAMED_LINES).map(|at| line_of(&present, *at)).collect();
    match places.len() {
        0 => return Err(ToolError::EditTextNotFound { path: shown, nearest: nearest(&present, &old) }),
        _ if input.all => {}
        // Two places that overlap are two places.
        1 if present.rfind(&old) == places.first().copied() => {}
        found => {
            let times = found.max(2);
            return Err(ToolError::EditTextAmbiguous { path: shown, times, lines });
        }
    }
    let changed = present.replace(&old, &new);
    let digest = Digest::of(changed.as_bytes());
    draft.now = Some(changed.into_bytes());
    let (times, first) = (places.len(), lines.first().copied().unwrap_or(1));
    drafts.into_plan(ground.artifacts, |_: &[FileChange]| {
        let where_ = match times {
            1 => format!("at line {first}"),
            times => format!("in {times} places"),
        };
        let data = json!({ "path": shown, "outcome": "edited", "replaced": times, "line": first, "digest": digest });
        (format!("edited `{shown}` {where_}"), data)
    })
}

/// Both texts with the line ends of the file, if its lines all end with `\r\n` and the call's do not.
fn in_line_ends_of(present: &str, old: &str, new: &str) -> (String, String) {
    let newlines = present.matches('\n').count();
    let windows = newlines > 0 && present.matches("\r\n").count() == newlines;
    let plain = |text: &str| !text.contains("\r\n");
    if windows && plain(old) && plain(new) {
        return (old.replace('\n', "\r\n"), new.replace('\n', "\r\n"));
    }
    (old.to_owned(), new.to_owned())
}

/// The line, from 1, in which a byte is.
fn line_of(text: &str, at: usize) -> usize {
    text.as_bytes().iter().take(at).filter(|byte| **byte == b'\n').count() + 1
}

/// The number of the line that is most like the first line of what was looked for.
fn nearest(present: &str, old: &str) -> Option<usize> {
    let wanted = old.lines().map(str::trim).find(|line| !line.is_empty())?;
    (1..)
        .zip(present.lines().take(COMPARED_LINES))
        .filter(|(_, line)| line.len() <= 4 * wanted.len() + SHORT)
        .map(|(number, line)| (strsim::jaro_winkler(wanted, line.trim()), number))
        .filter(|(score, _)| *score >= ALIKE)
        .max_by(|one, other| one.0.total_cmp(&other.0).then(other.1.cmp(&one.1)))
        .map(|(_, number)| number)
}

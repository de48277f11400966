//! `palyra.fs.apply_patch`: several edits of several files, all or none.

use std::collections::BTreeSet;

use async_trait::async_trait;
use palyra_common::{Confidentiality, Integrity, Label};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::drafts::Drafts;
use crate::effects::{Ground, Plan};
use crate::input::{fingerprint, parse, text};
use crate::patch::{self, Action, FilePatch, Hunk};
use crate::patch_apply::{CarriageReturns, apply};
use crate::workspace_path::normal_text;
use crate::{
    CallResource, FileChange, Invocation, Offering, SinkKind, Tool, ToolDeclaration, ToolError, ToolLimits, ToolName,
    ToolOutput, Workspace, cancel,
};

/// Changes several files at once by a patch, all or nothing; also moves and deletes files. Old and context lines must be exactly as in
/// the file. Takes a unified diff, or:
/// *** Begin Patch
/// *** Update File: path (then, optionally, *** Move to: new path)
/// @@ a line before the change (optional)
///  context line
/// -old line
/// +new line
/// *** Add File: path (then every line of it with + before it)
/// *** Delete File: path
/// *** End Patch
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FsApplyPatchInput {
    /// The patch, at most 1 MiB and 256 files.
    patch: String,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct FsApplyPatch(ToolDeclaration);

impl FsApplyPatch {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.fs.apply_patch");
        Self(
            ToolDeclaration::of::<FsApplyPatchInput>(name, "Patch files", "apply a patch")
                .writes_workspace()
                .sink("patch", SinkKind::Path)
                .sink("patch", SinkKind::Content)
                .labelling_results()
                .output(Integrity::ToolTrusted, Confidentiality::Private)
                .offered(Offering::OnDemand),
        )
    }
}

#[async_trait]
impl Tool for FsApplyPatch {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, workspace: &Workspace) -> Result<CallResource, ToolError> {
        let files = patch::parse(text(arguments, "patch").unwrap_or_default())?;
        let named: Result<Vec<_>, _> = paths(&files).iter().map(|path| workspace.named(path)).collect();
        CallResource::files(named?).ok_or_else(|| {
            ToolError::argument(self.0.name.as_str(), "patch", "empty_patch", "the patch names no file".to_owned())
        })
    }

    fn summarise(&self, arguments: &Value) -> String {
        /// Files named before "and others".
        const NAMED: usize = 5;
        let Ok(files) = patch::parse(text(arguments, "patch").unwrap_or_default()) else {
            return "apply a patch that cannot be read".to_owned();
        };
        let paths = paths(&files);
        let named: Vec<_> = paths.iter().take(NAMED).map(|path| format!("`{path}`")).collect();
        let others = match paths.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("patch {}{others}", named.join(", "))
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let input: FsApplyPatchInput = parse(&self.0.name, arguments.clone())?;
        let files = patch::parse(&input.patch)?;
        paths(&files).iter().try_for_each(|path| workspace.path(path).map(drop))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let fingerprint = fingerprint(&self.0.name, &invocation.arguments);
        let input: FsApplyPatchInput = parse(&self.0.name, invocation.arguments)?;
        let Invocation { workspace, artifacts, limits, effects, effect_id, cancel: token, .. } = invocation;
        let receipt = cancel::write(&token, move |cancel| {
            let ground = Ground { workspace: &workspace, artifacts: artifacts.as_ref(), cancel };
            effects.once(&ground, &effect_id, fingerprint, || plan(&ground, &input.patch, &limits))
        })
        .await?;
        let label = receipt
            .changes
            .iter()
            .fold(self.0.output.clone(), |label: Label, change| label.from_source(format!("file:{}", change.path)));
        Ok(receipt.into_output(label))
    }
}

/// Every path a patch names, in one spelling, sorted.
fn paths(files: &[FilePatch]) -> Vec<String> {
    let mut paths = BTreeSet::new();
    for file in files {
        paths.insert(normal_text(&file.path));
        if let Action::Update { move_to: Some(target), .. } = &file.action {
            paths.insert(normal_text(target));
        }
    }
    paths.into_iter().collect()
}

fn plan(ground: &Ground<'_>, text: &str, limits: &ToolLimits) -> Result<Plan, ToolError> {
    if text.len() > limits.patch_bytes {
        return Err(ToolError::PatchTooLarge { actual: text.len(), unit: "bytes", limit: limits.patch_bytes });
    }
    let files = patch::parse(text)?;
    if files.len() > limits.patch_files {
        return Err(ToolError::PatchTooLarge { actual: files.len(), unit: "files", limit: limits.patch_files });
    }
    let returns =
        if patch::keeps_carriage_returns(text) { CarriageReturns::AreContent } else { CarriageReturns::EndLines };
    let mut drafts = Drafts::new(ground.workspace, limits.file_bytes);
    for file in files {
        ground.cancel.check()?;
        draft(ground, &mut drafts, file, returns)?;
    }
    drafts.into_plan(ground.artifacts, report)
}

fn draft(
    ground: &Ground<'_>,
    drafts: &mut Drafts<'_>,
    file: FilePatch,
    returns: CarriageReturns,
) -> Result<(), ToolError> {
    let path = ground.workspace.path(&file.path)?;
    let shown = path.to_string();
    let present = drafts.get(&path)?;
    match file.action {
        Action::Add { content, mode } => {
            if present.now.is_some() {
                return Err(ToolError::PathExists { path: shown });
            }
            present.now = Some(content.into_bytes());
            present.mode = mode.or(present.mode);
        }
        Action::Delete { hunks } => {
            let left = patched(ground, &shown, present.now.as_deref(), &hunks, returns)?;
            if !hunks.is_empty() && !left.is_empty() {
                let reason = "the file is to be deleted, but it holds more than the patch removes".to_owned();
                return Err(ToolError::PatchDoesNotApply { path: shown, hunk: hunks.len(), reason });
            }
            present.now = None;
        }
        Action::Update { hunks, move_to, mode } => {
            let content = patched(ground, &shown, present.now.as_deref(), &hunks, returns)?;
            let mode = mode.or(present.mode);
            let Some(target) = move_to else {
                present.now = Some(content);
                present.mode = mode;
                return Ok(());
            };
            present.now = None;
            let target = ground.workspace.path(&target)?;
            let moved = drafts.get(&target)?;
            if moved.now.is_some() {
                return Err(ToolError::PathExists { path: target.to_string() });
            }
            moved.now = Some(content);
            moved.mode = mode;
        }
    }
    Ok(())
}

fn patched(
    ground: &Ground<'_>,
    path: &str,
    present: Option<&[u8]>,
    hunks: &[Hunk],
    returns: CarriageReturns,
) -> Result<Vec<u8>, ToolError> {
    let bytes = present.ok_or_else(|| ToolError::PathNotFound { path: path.to_owned(), suggestion: None })?;
    if !hunks.is_empty() && bytes.contains(&0) {
        return Err(ToolError::BinaryFile { path: path.to_owned() });
    }
    apply(path, bytes, hunks, returns, ground.cancel)
}

fn report(changes: &[FileChange]) -> (String, Value) {
    if changes.is_empty() {
        return ("the patch changes nothing: the files are already so".to_owned(), json!({ "files": [] }));
    }
    let outcome = |change: &FileChange| match (&change.before, &change.after) {
        (None, _) => "added",
        (_, None) => "deleted",
        _ => "changed",
    };
    let lines: Vec<_> = changes.iter().map(|change| format!("{} `{}`", outcome(change), change.path)).collect();
    let files: Vec<_> =
        changes.iter().map(|change| json!({ "path": change.path, "outcome": outcome(change) })).collect();
    (lines.join("\n"), json!({ "files": files }))
}

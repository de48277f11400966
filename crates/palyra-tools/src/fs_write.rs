//! `palyra.fs.write`: one file, written whole.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Digest, Integrity, runtime_contract_enum};
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

/// Writes a whole text file: creates it with its directories, or replaces its content. To change a part of a file, use palyra.fs.edit.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct FsWriteInput {
    /// File to write.
    path: String,
    /// Complete content.
    content: String,
    /// Digest (`sha256:…`) that the file must have now, as palyra.fs.read returned it; refused if it has another.
    #[serde(default)]
    #[schemars(extend("x-rare" = true))]
    expected_digest: Option<Digest>,
    /// What to do if the file exists: `replace` (default) or `refuse`.
    #[serde(default)]
    #[schemars(extend("x-rare" = true))]
    if_exists: Option<IfExists>,
}

runtime_contract_enum! {
    /// What to do with a file that is there already.
    pub enum IfExists("if_exists") {
        /// Replace its content.
        Replace = "replace" | "overwrite",
        /// Leave it and fail.
        Refuse = "refuse" | "fail",
    }
}

/// The tool.
#[derive(Debug)]
pub(crate) struct FsWrite(ToolDeclaration);

impl FsWrite {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.fs.write");
        Self(
            ToolDeclaration::of::<FsWriteInput>(name, "Write file", "write `{path}`")
                .writes_workspace()
                .sink("path", SinkKind::Path)
                .sink("content", SinkKind::Content)
                .labelling_results()
                .output(Integrity::ToolTrusted, Confidentiality::Private)
                .offered(Offering::Always),
        )
    }
}

#[async_trait]
impl Tool for FsWrite {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, workspace: &Workspace) -> Result<CallResource, ToolError> {
        workspace.named(text(arguments, "path").unwrap_or_default()).map(CallResource::file)
    }

    fn check(&self, arguments: &Value, workspace: &Workspace) -> Result<(), ToolError> {
        let input: FsWriteInput = parse(&self.0.name, arguments.clone())?;
        workspace.path(&input.path).map(drop)
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let fingerprint = fingerprint(&self.0.name, &invocation.arguments);
        let input: FsWriteInput = parse(&self.0.name, invocation.arguments)?;
        let label = self.0.output.clone().from_source(format!("file:{}", normal_text(&input.path)));
        let Invocation { workspace, artifacts, limits, effects, effect_id, cancel: token, .. } = invocation;
        let receipt = cancel::write(&token, move |cancel| {
            let ground = Ground { workspace: &workspace, artifacts: artifacts.as_ref(), cancel };
            effects.once(&ground, &effect_id, fingerprint, || plan(&ground, input, &limits))
        })
        .await?;
        Ok(receipt.into_output(label))
    }
}

fn plan(ground: &Ground<'_>, input: FsWriteInput, limits: &ToolLimits) -> Result<Plan, ToolError> {
    let workspace: &Workspace = ground.workspace;
    let path = workspace.path(&input.path)?;
    let mut drafts = Drafts::new(workspace, limits.file_bytes);
    let draft = drafts.get(&path)?;
    if let (Some(IfExists::Refuse), Some(_)) = (input.if_exists, &draft.now) {
        return Err(ToolError::PathExists { path: path.to_string() });
    }
    if let Some(expected) = input.expected_digest {
        let found = draft.now.as_deref().map(Digest::of);
        if found != Some(expected) {
            let found = found.map_or_else(|| "no file".to_owned(), |digest| digest.to_string());
            return Err(ToolError::DigestMismatch { path: path.to_string(), expected, found });
        }
    }
    let bytes = input.content.len();
    let digest = Digest::of(input.content.as_bytes());
    draft.now = Some(input.content.into_bytes());
    ground.cancel.check()?;
    drafts.into_plan(ground.artifacts, |changes: &[FileChange]| {
        let verb = match changes.first() {
            None => "unchanged",
            Some(change) if change.before.is_none() => "created",
            Some(_) => "replaced",
        };
        let content = format!("{verb} `{path}` ({bytes} bytes, {digest})");
        (content, json!({ "path": path.to_string(), "outcome": verb, "bytes": bytes, "digest": digest }))
    })
}

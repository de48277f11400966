//! `palyra.artifact.read`: a range of something an earlier result stored.

use async_trait::async_trait;
use palyra_common::{Confidentiality, Digest, Integrity};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::input::{parse, text};
use crate::{
    Artifacts, CallResource, EffectScope, Invocation, Offering, Tool, ToolDeclaration, ToolError, ToolName, ToolOutput,
    Workspace, cancel,
};

/// Bytes given when the call does not say how many.
const DEFAULT_BYTES: usize = 32 << 10;
/// Room kept for the note at the end.
const NOTE: usize = 256;

/// Reads a part of an artifact: the full text of a result that was too long to show. The digest and the offset to read on from
/// are in the note at the end of that result.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ArtifactReadInput {
    /// The artifact's digest, `sha256:…`.
    digest: Digest,
    /// First byte.
    #[serde(default)]
    offset: Option<u64>,
    /// Most bytes; 32768 by default.
    #[serde(default)]
    #[schemars(range(min = 1))]
    limit: Option<u64>,
}

/// The tool.
#[derive(Debug)]
pub(crate) struct ArtifactRead(ToolDeclaration);

impl ArtifactRead {
    pub(crate) fn new() -> Self {
        let name = ToolName::builtin("palyra.artifact.read");
        // What an artifact may be trusted with depends on who stored it, which this tool does not know: the cautious end.
        Self(
            ToolDeclaration::of::<ArtifactReadInput>(name, "Read artifact", "read artifact {digest}")
                .reads(EffectScope::WorkspaceRead)
                .labelling_results()
                .output(Integrity::Untrusted, Confidentiality::Private)
                .offered(Offering::OnDemand),
        )
    }
}

#[async_trait]
impl Tool for ArtifactRead {
    fn declaration(&self) -> &ToolDeclaration {
        &self.0
    }

    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let given = text(arguments, "digest").unwrap_or_default();
        let digest = given.parse::<Digest>().map_or_else(|_| given.to_owned(), |digest| digest.to_string());
        Ok(CallResource::tool(format!("artifact:{digest}")))
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let input: ArtifactReadInput = parse(&self.0.name, invocation.arguments)?;
        let label = self.0.output.clone().from_source(format!("artifact:{}", input.digest));
        let label =
            invocation.workspace.label_of_known(&input.digest).map_or(label.clone(), |known| label.join(&known));
        let artifacts = invocation.artifacts;
        let cap = invocation.limits.inline_bytes.saturating_sub(NOTE);
        let limit =
            input.limit.map_or(DEFAULT_BYTES, |limit| usize::try_from(limit).unwrap_or(cap)).clamp(1, cap.max(1));
        let (content, data) = cancel::read(&invocation.cancel, move |_| {
            read(artifacts.as_ref(), &input.digest, input.offset.unwrap_or(0), limit)
        })
        .await?;
        let truncated = data.get("next_offset").is_some_and(Value::is_u64);
        Ok(ToolOutput { truncated, ..ToolOutput::text(content, label).with_data(data) })
    }
}

fn read(artifacts: &dyn Artifacts, digest: &Digest, offset: u64, limit: usize) -> Result<(String, Value), ToolError> {
    // What belongs to somebody else looks like what is not there.
    if !artifacts.may_be_read(digest)? {
        return Err(ToolError::ArtifactNotFound { digest: *digest });
    }
    let size = artifacts.len(digest)?.ok_or(ToolError::ArtifactNotFound { digest: *digest })?;
    // A character at the end may need up to three bytes more than asked for, or else nothing would ever be read at limit 1.
    let mut bytes = artifacts.get_range(digest, offset, limit.saturating_add(3))?;
    let shown = format!("artifact {digest}");
    if bytes.contains(&0) {
        return Err(ToolError::BinaryFile { path: shown });
    }
    let end = bytes.len().min(limit);
    let end =
        (end..bytes.len()).find(|at| bytes.get(*at).is_none_or(|byte| byte & 0xC0 != 0x80)).unwrap_or(bytes.len());
    bytes.truncate(end);
    let taken = bytes.len() as u64;
    let mut content = String::from_utf8(bytes).map_err(|error| ToolError::NotUtf8 {
        path: shown,
        position: offset + error.utf8_error().valid_up_to() as u64,
    })?;
    let next = offset.saturating_add(taken);
    let next = (next < size).then_some(next);
    if let Some(next) = next {
        let separator = if content.ends_with('\n') { "" } else { "\n" };
        content.push_str(&format!("{separator}[bytes {offset} to {next} of {size} shown; read on with offset {next}]"));
    } else if taken == 0 {
        content = format!("[the artifact ends at byte {size}]");
    }
    Ok((content, json!({ "digest": digest, "bytes": size, "offset": offset, "next_offset": next })))
}

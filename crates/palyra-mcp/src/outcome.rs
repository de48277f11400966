//! What a call of an outside tool gave.

use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// What a call gave. All of it is the server's, so all of it is untrusted until its classification says otherwise.
#[derive(Debug, Clone, PartialEq)]
pub struct McpOutcome {
    /// The text parts, one after the other; images, sounds and resources are noted by a line each.
    pub text: String,
    /// The structured result, where the server gave one that its schema allows.
    pub structured: Option<Value>,
    /// Whether the server says that the call failed.
    pub is_error: bool,
}

impl McpOutcome {
    pub(crate) fn from_protocol(result: CallToolResult) -> Self {
        let parts: Vec<String> = result.content.into_iter().map(part).collect();
        let mut text = parts.join("\n");
        if text.is_empty()
            && let Some(structured) = &result.structured_content
        {
            text = structured.to_string();
        }
        Self { text, structured: result.structured_content, is_error: result.is_error == Some(true) }
    }
}

/// One part as text. Binary parts are described, not shown: a model that reads text gains nothing from base64.
fn part(block: ContentBlock) -> String {
    // The number of bytes that so much base64 stands for.
    let bytes = |data: &str| data.len() / 4 * 3;
    match block {
        ContentBlock::Text(text) => text.text,
        ContentBlock::Image(image) => format!("[image {}, {} bytes]", image.mime_type, bytes(&image.data)),
        ContentBlock::Audio(audio) => format!("[audio {}, {} bytes]", audio.mime_type, bytes(&audio.data)),
        ContentBlock::Resource(embedded) => match embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => format!("[resource {uri}]\n{text}"),
            ResourceContents::BlobResourceContents { uri, blob, mime_type, .. } => {
                let kind = mime_type.unwrap_or_else(|| "application/octet-stream".to_owned());
                format!("[resource {uri}, {kind}, {} bytes]", bytes(&blob))
            }
            _ => "[a resource of an unknown kind]".to_owned(),
        },
        ContentBlock::ResourceLink(resource) => format!("[link {} `{}`]", resource.uri, resource.name),
        _ => "[a part of an unknown kind]".to_owned(),
    }
}

//! Files that are handed over beside words: stored first, named by whoever uses them afterwards.

use palyra_common::Digest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A file to be stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddAttachmentParams {
    /// Its name, such as `plan.png`.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Its bytes in base64. Larger files are sent as a form; see `POST /api/v1/attachments/form`.
    pub data: String,
}

/// A file that was stored before whatever mentions it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachmentParams {
    /// Its name.
    #[schemars(length(min = 1, max = 200))]
    pub name: String,
    /// Its media type, such as `image/png`.
    #[schemars(length(min = 3, max = 100))]
    pub media_type: String,
    /// Where it is kept.
    pub artifact: Digest,
    /// Its size in bytes.
    pub size_bytes: u64,
}

/// Files that came in one form, in its order.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AddAttachmentsResponse {
    /// What was stored; to be handed back as it is where files are attached.
    pub attachments: Vec<AttachmentParams>,
}

//! What a message carries besides text: images and files.
//!
//! A part holds its bytes. Who builds a request decides what may leave the machine; providers only spell it.

use std::fmt;
use std::sync::Arc;

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

runtime_contract_enum! {
    /// What a part is.
    pub enum PartKind("message_part") {
        /// A picture.
        Image = "image",
        /// A document, such as a PDF.
        File = "file",
    }
}

/// A picture or a document in a message.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// What it is.
    pub kind: PartKind,
    /// Its media type, such as `image/png`.
    pub media_type: String,
    /// Its name, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Its bytes in base64 (standard alphabet, padded), as every provider's wire has them. Shared: each call of a run and each try at it
    /// carries the same picture, which may be megabytes.
    pub data: Arc<str>,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Part")
            .field("kind", &self.kind)
            .field("media_type", &self.media_type)
            .field("name", &self.name)
            .field("base64_bytes", &self.data.len())
            .finish()
    }
}

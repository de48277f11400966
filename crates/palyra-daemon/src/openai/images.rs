//! Images that a client's user sends with words: taken out of the request, stored as attachments, named by the run. Nothing is fetched.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_client::api::{AddAttachmentParams, AttachmentParams};
use palyra_client::command::Command;
use palyra_common::Digest;
use serde_json::Value;

use super::begin::ask;
use super::fields::Fields;
use super::unsupported;
use crate::app::App;
use crate::dispatch::{Caller, Refusal, Result};

/// One image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Image {
    /// In base64.
    data: String,
    /// Of its bytes: however they are written down, they are the same image.
    pub(super) digest: Digest,
}

/// Reads a part of a message that is an image: `image_url` of chats, `input_image` of responses.
pub(super) fn read(part: &mut Fields) -> Result<Image> {
    let at = part.path("image_url");
    // How finely to look is for models that are asked directly.
    part.pass_over(&["detail"]);
    part.only_if("file_id", Value::is_null, "files must be sent inline in the request")?;
    let address = match part.take("image_url") {
        Some(Value::String(address)) => address,
        Some(value) => {
            let mut inner = Fields::of(value, at.clone())?;
            inner.pass_over(&["detail"]);
            let address = inner.needed_text("url")?;
            inner.end()?;
            address
        }
        None => return Err(Refusal::field(&at, "it is missing")),
    };
    let Some((head, data)) = address.strip_prefix("data:").and_then(|rest| rest.split_once(',')) else {
        return Err(unsupported(&at, "only `data:` URLs are supported; remote images are not fetched"));
    };
    if !head.starts_with("image/") || !head.ends_with(";base64") {
        return Err(Refusal::field(&at, "it must be `data:image/…;base64,…`"));
    }
    let bytes =
        STANDARD.decode(data).map_err(|error| Refusal::field(&at, format!("it is not valid base64: {error}")))?;
    Ok(Image { data: data.to_owned(), digest: Digest::of(&bytes) })
}

/// Hands images over as files of the caller.
pub(super) async fn store(app: &Arc<App>, caller: &Caller, images: Vec<Image>) -> Result<Vec<AttachmentParams>> {
    let mut stored = Vec::with_capacity(images.len());
    for (number, image) in (1..).zip(images) {
        let params = AddAttachmentParams { name: format!("image {number}"), data: image.data };
        stored.push(ask(app, caller, Command::AttachmentAdd(params), None).await?);
    }
    Ok(stored)
}

//! What a message of a channel may hold. A channel hands on what strangers wrote, so everything is bounded.

use palyra_client::api::{AttachmentParams, RouteMessageParams};
use palyra_common::Digest;

use crate::app::App;
use crate::dispatch::attachments::{MAX_FILES, name, of_the_caller};
use crate::dispatch::caller::Caller;
use crate::dispatch::refusal::{Refusal, Result};

/// Longest media type.
const MAX_MEDIA_TYPE: usize = 100;
/// Longest text, in bytes.
const MAX_TEXT: usize = 64 << 10;

pub(super) fn message(params: &RouteMessageParams) -> Result<()> {
    name("sender", &params.sender)?;
    name("message_id", &params.message_id)?;
    if params.text.trim().is_empty() && params.attachments.is_empty() {
        return Err(Refusal::field("text", "it must have a text or a file"));
    }
    if params.text.len() > MAX_TEXT {
        return Err(Refusal::field("text", format!("it has more than {MAX_TEXT} bytes")));
    }
    if params.attachments.len() > MAX_FILES {
        return Err(Refusal::field("attachments", format!("at most {MAX_FILES} are allowed")));
    }
    for file in &params.attachments {
        name("attachments.name", &file.name)?;
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte);
        let is_type = file.media_type.len() <= MAX_MEDIA_TYPE
            && file.media_type.split_once('/').is_some_and(|(kind, rest)| {
                [kind, rest].iter().all(|part| !part.is_empty() && part.bytes().all(plain))
            });
        if !is_type {
            return Err(Refusal::field("attachments.media_type", "it is not a media type such as `image/png`"));
        }
    }
    Ok(())
}

/// Files have to be handed over already, by whoever delivers the message, and to be what it says they are.
pub(super) async fn attachments(app: &App, caller: &Caller, files: &[AttachmentParams]) -> Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    of_the_caller(app, caller, files).await?;
    let wanted: Vec<(Digest, u64)> = files.iter().map(|file| (file.artifact, file.size_bytes)).collect();
    let artifacts = app.journal.artifacts().clone();
    let checked = tokio::task::spawn_blocking(move || {
        wanted.into_iter().find(|(digest, size)| artifacts.len(digest).ok() != Some(*size))
    });
    match checked.await.map_err(|error| Refusal::internal(error.to_string()))? {
        None => Ok(()),
        Some((digest, size)) => {
            let message = format!("no file `{digest}` of {size} bytes is stored here; store files before the message");
            Err(Refusal::field("attachments.artifact", message))
        }
    }
}

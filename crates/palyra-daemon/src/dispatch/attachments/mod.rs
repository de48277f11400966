//! Files that are handed over beside words: `attachment.add`, in one piece over any transport or in many as a form, and whose they are.
//!
//! A file is stored before anything mentions it, and belongs to whoever handed it over: nobody attaches a file by its digest alone.

mod arriving;
mod table;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_agent::GivenFile;
use palyra_client::api::{AddAttachmentParams, AttachmentParams};
use palyra_common::Digest;

use super::caller::Caller;
use super::refusal::{Refusal, Result};
use crate::app::App;

pub(crate) use arriving::Arriving;
pub(super) use table::Attachments;

/// Longest name of a file, in characters.
const MAX_NAME: usize = 200;
/// Most files of a form, a task or a message.
pub(crate) const MAX_FILES: usize = 16;

pub(super) async fn add(app: &App, caller: &Caller, params: AddAttachmentParams) -> Result<AttachmentParams> {
    let bytes = STANDARD
        .decode(&params.data)
        .map_err(|error| Refusal::field("data", format!("it is not valid base64: {error}")))?;
    Arriving::begin(app, &params.name).await?.write(bytes.into()).await?.keep(app, caller).await
}

/// The files of a task, each of which the caller handed over before.
pub(super) async fn given(app: &App, caller: &Caller, files: Vec<AttachmentParams>) -> Result<Vec<GivenFile>> {
    if files.len() > MAX_FILES {
        return Err(Refusal::field("attachments", format!("at most {MAX_FILES} are allowed")));
    }
    for file in &files {
        name("attachments.name", &file.name)?;
    }
    of_the_caller(app, caller, &files).await?;
    Ok(files.into_iter().map(|file| GivenFile { name: file.name, artifact: file.artifact }).collect())
}

/// Refuses files that the caller did not hand over: one that others did may be mentioned by nobody else.
pub(super) async fn of_the_caller(app: &App, caller: &Caller, files: &[AttachmentParams]) -> Result<()> {
    let wanted: Vec<Digest> = files.iter().map(|file| file.artifact).collect();
    let owner = caller.id().to_owned();
    let missing =
        app.journal.read(move |reader| Ok(table::first_missing(reader.connection(), &owner, &wanted)?)).await?;
    match missing {
        None => Ok(()),
        Some(digest) => {
            let message = format!("you have not uploaded a file `{digest}`; store it with `attachment.add` first");
            Err(Refusal::field("attachments.artifact", message))
        }
    }
}

/// Names are shown to people and to models.
pub(super) fn name(field: &str, text: &str) -> Result<()> {
    let fits = !text.trim().is_empty() && text.chars().count() <= MAX_NAME && !text.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(Refusal::field(field, format!("it must have 1 to {MAX_NAME} characters and no control characters")))
}

//! One file on its way in, in pieces: bounded, written to disk from the first piece on, and on the journal once it is whole.

use bytes::Bytes;
use palyra_agent::image_media_type;
use palyra_client::api::AttachmentParams;
use palyra_common::{Clock as _, SystemClock};
use palyra_journal::{Incoming, JournalError};

use super::name;
use super::table::{ADDED, AttachmentAdded};
use crate::app::App;
use crate::dispatch::caller::Caller;
use crate::dispatch::records;
use crate::dispatch::refusal::{Refusal, Result};
use crate::dispatch::storage;

/// Most bytes of one file.
const MAX_FILE_BYTES: u64 = 32 << 20;
/// Bytes by whose look a media type is told.
const HEAD: usize = 4096;

/// A file that is being handed over. If it is let go, nothing of it remains.
pub(crate) struct Arriving {
    name: String,
    head: Vec<u8>,
    incoming: Incoming,
}

impl Arriving {
    /// Begins a file. What is in front of the last `/` or `\` of a name says where it lay with its sender, and means nothing here.
    pub(crate) async fn begin(app: &App, given: &str) -> Result<Self> {
        let last = given.rsplit(['/', '\\']).next().unwrap_or(given).trim();
        name("name", last)?;
        app.journal.admission()?;
        let artifacts = app.journal.artifacts().clone();
        let incoming = blocking(move || artifacts.receive()).await?;
        Ok(Self { name: last.to_owned(), head: Vec::new(), incoming })
    }

    /// Takes the next piece.
    pub(crate) async fn write(self, piece: Bytes) -> Result<Self> {
        let Self { name, mut head, mut incoming } = self;
        if incoming.size() + piece.len() as u64 > MAX_FILE_BYTES {
            let message = format!("`{name}` has more than {} MiB", MAX_FILE_BYTES >> 20);
            return Err(Refusal::field("data", message));
        }
        let missing = HEAD.saturating_sub(head.len());
        head.extend(piece.iter().take(missing));
        let incoming = blocking(move || incoming.write(&piece).map(|()| incoming)).await?;
        Ok(Self { name, head, incoming })
    }

    /// Keeps it as the caller's own.
    pub(crate) async fn keep(self, app: &App, caller: &Caller) -> Result<AttachmentParams> {
        let Self { name, head, incoming } = self;
        if incoming.size() == 0 {
            return Err(Refusal::field("data", format!("`{name}` is empty")));
        }
        storage::check(app, caller, incoming.size()).await?;
        let media_type = media_type(&head).to_owned();
        let (artifact, size_bytes) = blocking(move || incoming.finish()).await?;
        let at = SystemClock.now();
        let owner = caller.id().to_owned();
        let stored = AttachmentParams { name, media_type, artifact, size_bytes };
        let AttachmentParams { name, media_type, .. } = stored.clone();
        let added = AttachmentAdded { owner, name, media_type, artifact, size_bytes, at };
        app.journal.append(vec![records::record(ADDED, at, &added)?]).await?;
        Ok(stored)
    }
}

/// Told by the bytes: what a sender says of them is only a claim.
fn media_type(head: &[u8]) -> &'static str {
    let is_text = !head.contains(&0)
        && match std::str::from_utf8(head) {
            Ok(_) => true,
            // The last character may go on behind the head.
            Err(error) => error.error_len().is_none(),
        };
    match image_media_type(head) {
        Some(image) => image,
        None if is_text => "text/plain",
        None => "application/octet-stream",
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> std::result::Result<T, JournalError> + Send + 'static,
) -> Result<T> {
    let done = tokio::task::spawn_blocking(work).await;
    Ok(done.map_err(|error| Refusal::internal(error.to_string()))??)
}

#[cfg(test)]
mod tests {
    use super::media_type;

    #[test]
    fn a_media_type_is_told_by_the_bytes() {
        assert_eq!(media_type(b"\x89PNG\r\n\x1a\n...."), "image/png");
        assert_eq!(media_type("grüße".as_bytes()), "text/plain");
        assert_eq!(media_type(&"grü".as_bytes()[..3]), "text/plain", "cut inside a character");
        assert_eq!(media_type(b"a\0b"), "application/octet-stream");
        assert_eq!(media_type(b"\xff\xfe\xfd"), "application/octet-stream");
    }
}

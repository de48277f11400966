//! Archives on their way in: handed over in pieces, kept apart until they are whole and have the digest that was announced.
//!
//! Pieces pass through the dispatcher like every other command, so an archive comes in over any transport. What is not whole is worth nothing: it is never
//! read as an archive, and forgotten at the next start.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use palyra_common::Digest;

/// Archives that may be on their way at the same time; the oldest makes room for a new one.
const MOST_PARTIAL: usize = 8;
/// Largest archive.
pub(crate) const MAX_ARCHIVE: u64 = 64 << 20;
/// Largest piece.
pub(crate) const MAX_PIECE: usize = 1 << 20;

/// The folder that pieces are gathered in.
pub(crate) struct Uploads {
    directory: PathBuf,
}

/// Why a piece was not taken.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UploadError {
    /// It does not follow what is there.
    #[error("the chunk starts at {offset}, but {received} bytes were received")]
    Gap {
        /// Where it begins.
        offset: u64,
        /// What is there.
        received: u64,
    },
    /// There is more than was announced.
    #[error("the archive has more bytes than were announced")]
    TooLong,
    /// The whole has another digest.
    #[error("the archive does not match the announced digest")]
    OtherDigest,
    /// The disk does not take it.
    #[error("the archive cannot be stored: {0}")]
    File(#[from] io::Error),
}

impl Uploads {
    /// An empty folder; what an earlier daemon left is gone.
    pub(crate) fn open(directory: PathBuf) -> io::Result<Self> {
        match fs::remove_dir_all(&directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        DirBuilder::new().recursive(true).mode(0o700).create(&directory)?;
        Ok(Self { directory })
    }

    /// Takes a piece. Returns how many bytes are there, and whether that is the whole archive.
    pub(crate) fn take(&self, digest: Digest, size: u64, offset: u64, data: &[u8]) -> Result<(u64, bool), UploadError> {
        let partial = self.partial(digest);
        if offset == 0 {
            self.make_room()?;
            OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&partial)?;
        }
        let received = length(&partial)?;
        if received != offset {
            return Err(UploadError::Gap { offset, received });
        }
        let received = received.saturating_add(data.len() as u64);
        if received > size {
            fs::remove_file(&partial)?;
            return Err(UploadError::TooLong);
        }
        OpenOptions::new().append(true).open(&partial)?.write_all(data)?;
        if received < size {
            return Ok((received, false));
        }
        if Digest::of(&fs::read(&partial)?) != digest {
            fs::remove_file(&partial)?;
            return Err(UploadError::OtherDigest);
        }
        fs::rename(&partial, self.whole(digest))?;
        Ok((received, true))
    }

    /// The bytes of a whole archive.
    pub(crate) fn read(&self, digest: Digest) -> io::Result<Option<Vec<u8>>> {
        match fs::read(self.whole(digest)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Forgets an archive that is kept elsewhere now.
    pub(crate) fn forget(&self, digest: Digest) {
        if let Err(error) = fs::remove_file(self.whole(digest)) {
            tracing::debug!(%error, "an uploaded archive could not be removed; it stays until the next start");
        }
    }

    fn make_room(&self) -> io::Result<()> {
        let mut there: Vec<(std::time::SystemTime, PathBuf)> = Vec::new();
        for entry in fs::read_dir(&self.directory)? {
            let entry = entry?;
            there.push((entry.metadata()?.modified()?, entry.path()));
        }
        there.sort();
        let surplus = (there.len() + 1).saturating_sub(MOST_PARTIAL);
        there.into_iter().take(surplus).try_for_each(|(_, path)| fs::remove_file(path))
    }

    fn partial(&self, digest: Digest) -> PathBuf {
        self.directory.join(format!("{digest}.part"))
    }

    fn whole(&self, digest: Digest) -> PathBuf {
        self.directory.join(format!("{digest}.palyra-skill"))
    }
}

fn length(path: &Path) -> io::Result<u64> {
    match fs::metadata(path) {
        Ok(metadata) => Ok(metadata.len()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uploads() -> (tempfile::TempDir, Uploads) {
        let directory = tempfile::tempdir().unwrap();
        let uploads = Uploads::open(directory.path().join("incoming")).unwrap();
        (directory, uploads)
    }

    #[test]
    fn pieces_become_the_archive_that_was_announced() {
        let (_directory, uploads) = uploads();
        let digest = Digest::of(b"archive");
        assert_eq!(uploads.take(digest, 7, 0, b"arc").unwrap(), (3, false));
        assert_eq!(uploads.read(digest).unwrap(), None);
        assert!(matches!(uploads.take(digest, 7, 5, b"ve"), Err(UploadError::Gap { received: 3, .. })));
        assert_eq!(uploads.take(digest, 7, 3, b"hive").unwrap(), (7, true));
        assert_eq!(uploads.read(digest).unwrap().unwrap(), b"archive");
    }

    #[test]
    fn other_bytes_or_more_of_them_are_worth_nothing() {
        let (_directory, uploads) = uploads();
        let digest = Digest::of(b"archive");
        assert!(matches!(uploads.take(digest, 7, 0, b"ARCHIVE"), Err(UploadError::OtherDigest)));
        assert!(matches!(uploads.take(digest, 7, 0, b"archive and more"), Err(UploadError::TooLong)));
        assert_eq!(uploads.read(digest).unwrap(), None);
    }

    #[test]
    fn only_so_many_are_kept_at_once() {
        let (_directory, uploads) = uploads();
        for number in 0..20_u8 {
            uploads.take(Digest::of(&[number]), 2, 0, b"x").unwrap();
        }
        assert!(fs::read_dir(&uploads.directory).unwrap().count() <= MOST_PARTIAL);
    }
}

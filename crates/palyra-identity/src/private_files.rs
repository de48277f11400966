//! Files with keys in them: readable by one user, written whole or not at all.
//!
//! A file is opened first and looked at then, without following a link at its end, so that what was checked is what is read. A file or
//! directory that somebody else owns, or that others can reach, is refused rather than put right: its contents may already be known or
//! may be theirs.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::process::geteuid;

use crate::IdentityError;

/// Largest file that is read here; certificates and keys have a few kilobytes, a list of revocations some more.
const MAX_FILE_BYTES: u64 = 4 << 20;

/// Makes a directory for private files, or checks the one that is there.
pub(crate) fn ensure_directory(path: &Path) -> Result<(), IdentityError> {
    let failed = |source| IdentityError::File { doing: "create", path: path.to_owned(), source };
    DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(failed)?;
    let flags = flags(OFlags::NOFOLLOW | OFlags::DIRECTORY);
    let opened = OpenOptions::new().read(true).custom_flags(flags).open(path);
    let directory = opened.map_err(|source| IdentityError::File { doing: "open", path: path.to_owned(), source })?;
    check_privacy(path, &directory, 0o022)
}

/// The text of a private file, or nothing where there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, IdentityError> {
    let failed = |source| IdentityError::File { doing: "read", path: path.to_owned(), source };
    // Without blocking: a named pipe would keep its reader waiting.
    let flags = flags(OFlags::NOFOLLOW | OFlags::NONBLOCK);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(IdentityError::Exposed { path: path.to_owned(), reason: "it is a symbolic link".to_owned() });
        }
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    check_privacy(path, &file, 0o077)?;
    let mut text = String::new();
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err(failed(io::Error::other("it is larger than 4 MiB")));
    }
    Ok(Some(text))
}

/// Replaces a private file at once; it is private from its first byte on, and survives a power cut.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), IdentityError> {
    let failed = |source| IdentityError::File { doing: "write", path: path.to_owned(), source };
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let copy = directory.join(format!(".{name}.{}.new", std::process::id()));
    let _ = fs::remove_file(&copy);
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&copy, path)?;
        File::open(directory)?.sync_all()
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&copy);
        failed(error)
    })
}

fn flags(flags: OFlags) -> i32 {
    flags.bits().cast_signed()
}

fn check_privacy(path: &Path, file: &File, forbidden: u32) -> Result<(), IdentityError> {
    let failed = |source| IdentityError::File { doing: "inspect", path: path.to_owned(), source };
    let metadata = file.metadata().map_err(failed)?;
    let exposed = |reason: String| Err(IdentityError::Exposed { path: path.to_owned(), reason });
    if metadata.uid() != geteuid().as_raw() {
        return exposed(format!("it belongs to user {}", metadata.uid()));
    }
    if metadata.mode() & forbidden != 0 {
        return exposed(format!("its mode is {:o}, which gives other users access", metadata.mode() & 0o7777));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    use palyra_common::ToStableError as _;

    use super::*;

    fn code(result: Result<impl std::fmt::Debug, IdentityError>) -> String {
        result.unwrap_err().to_stable().code
    }

    #[test]
    fn a_private_file_is_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        assert_eq!(read(&path).unwrap(), None);
        replace(&path, "one").unwrap();
        replace(&path, "two").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some("two"));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1, "nothing is left over");
    }

    #[test]
    fn what_others_can_reach_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        replace(&path, "one").unwrap();
        for mode in [0o640, 0o604, 0o622, 0o610] {
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(code(read(&path)), "identity_exposed", "{mode:o}");
        }
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        let link = directory.path().join("link");
        symlink(&path, &link).unwrap();
        assert_eq!(code(read(&link)), "identity_exposed");
        assert_eq!(code(read(directory.path())), "identity_file_failed");
    }

    #[test]
    fn a_directory_that_others_can_change_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let inside = directory.path().join("a/b");
        ensure_directory(&inside).unwrap();
        assert_eq!(fs::metadata(&inside).unwrap().mode() & 0o7777, 0o700);
        fs::set_permissions(&inside, fs::Permissions::from_mode(0o770)).unwrap();
        assert_eq!(code(ensure_directory(&inside)), "identity_exposed");
        let link = directory.path().join("link");
        symlink(&inside, &link).unwrap();
        assert!(ensure_directory(&link).is_err());
    }

    #[test]
    fn what_is_too_large_or_no_text_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("key");
        replace(&path, &"x".repeat(usize::try_from(MAX_FILE_BYTES).unwrap() + 1)).unwrap();
        assert_eq!(code(read(&path)), "identity_file_failed");
        fs::write(&path, [0xff, 0xfe]).unwrap();
        assert_eq!(code(read(&path)), "identity_file_failed");
    }
}

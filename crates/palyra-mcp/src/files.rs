//! Reading and replacing the small files of this crate: bounded on the way in, atomic and private on the way out.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::Path;

use crate::McpError;

/// Largest file that is read: a larger one is the wrong file, and reading it would only cost memory.
const MAX_FILE: u64 = 8 << 20;

/// The file's text, or nothing where there is no file.
pub(crate) fn read(path: &Path) -> Result<Option<String>, McpError> {
    let failed = |source| McpError::File { doing: "read", path: path.to_owned(), source };
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(failed(io::Error::other("it is not a regular file")));
    }
    let mut text = String::new();
    file.take(MAX_FILE + 1).read_to_string(&mut text).map_err(failed)?;
    if text.len() as u64 > MAX_FILE {
        return Err(failed(io::Error::other("it is larger than 8 MiB")));
    }
    Ok(Some(text))
}

/// Replaces the file at once; it is private from its first byte on.
pub(crate) fn replace(path: &Path, text: &str) -> Result<(), McpError> {
    let failed = |source| McpError::File { doing: "write", path: path.to_owned(), source };
    let directory = path.parent().unwrap_or_else(|| Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(failed)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // The process id keeps two writers apart; the last rename wins with a complete file.
    let copy = directory.join(format!(".{name}.{}.new", std::process::id()));
    let _ = fs::remove_file(&copy);
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&copy)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&copy, path)?;
        // Makes the rename itself survive a power cut.
        fs::File::open(directory)?.sync_all()
    };
    write().map_err(|error| {
        let _ = fs::remove_file(&copy);
        failed(error)
    })
}

/// Removes the file if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), McpError> {
    match fs::remove_file(path) {
        Err(source) if source.kind() != io::ErrorKind::NotFound => {
            Err(McpError::File { doing: "remove", path: path.to_owned(), source })
        }
        _ => Ok(()),
    }
}

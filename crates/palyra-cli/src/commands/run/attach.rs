//! Files that go with a task: read here, handed to the daemon, named by the run.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_client::Client;
use palyra_client::api::{AddAttachmentParams, AttachmentParams};
use palyra_common::Environment;
use rustix::fs::OFlags;

use crate::error::CliError;

/// Largest file: an image may have as much, and of a text only the beginning is shown anyway.
pub(super) const LARGEST: u64 = 5 << 20;
/// What standard input is called where it is shown to the model.
const STANDARD_INPUT: &str = "standard input";

/// A file that was read.
pub(super) struct Read {
    name: String,
    bytes: Vec<u8>,
}

/// Reads all files, so that a wrong name is told before anything begins.
pub(super) fn read(paths: &[PathBuf], environment: &Environment) -> Result<Vec<Read>, CliError> {
    paths.iter().map(|path| read_one(path, environment)).collect()
}

/// What was piped in beside a task: the same as a file that was attached, and believed no further.
pub(super) fn standard_input(bytes: Vec<u8>) -> Result<Read, CliError> {
    let refuse = |reason: &str| Err(CliError::Attachment { path: STANDARD_INPUT.into(), reason: reason.to_owned() });
    if bytes.len() as u64 > LARGEST {
        return refuse("it has more than 5 MiB");
    }
    Ok(Read { name: STANDARD_INPUT.to_owned(), bytes })
}

fn read_one(path: &Path, environment: &Environment) -> Result<Read, CliError> {
    let refuse = |reason: String| CliError::Attachment { path: path.to_owned(), reason };
    // Without waiting: a pipe that nobody writes to would be waited for until somebody does, and is refused anyway.
    let nonblocking = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let opened = File::options().read(true).custom_flags(nonblocking).open(environment.absolute(path));
    let file = opened.map_err(|error| {
        refuse(match error.kind() {
            std::io::ErrorKind::NotFound => "it does not exist".to_owned(),
            _ => error.to_string(),
        })
    })?;
    let metadata = file.metadata().map_err(|error| refuse(error.to_string()))?;
    if !metadata.is_file() {
        return Err(refuse("it is not a regular file".to_owned()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| refuse(error.to_string()))?;
    match bytes.len() as u64 {
        0 => Err(refuse("it is empty".to_owned())),
        size if size > LARGEST => Err(refuse("it has more than 5 MiB".to_owned())),
        _ => {
            let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
            Ok(Read { name, bytes })
        }
    }
}

/// Hands the files over.
pub(super) async fn hand_over(client: &Client, files: Vec<Read>) -> Result<Vec<AttachmentParams>, CliError> {
    let mut stored = Vec::with_capacity(files.len());
    for Read { name, bytes } in files {
        let data = STANDARD.encode(bytes);
        stored.push(client.add_attachment(&AddAttachmentParams { name, data }).await?);
    }
    Ok(stored)
}

#[cfg(test)]
mod tests {
    use rustix::fs::{CWD, FileType, Mode, mknodat};

    use super::*;

    #[test]
    fn only_regular_files_are_read_and_nothing_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("plan.txt"), "so").unwrap();
        std::fs::write(at("empty"), "").unwrap();
        mknodat(CWD, at("pipe"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        let read = |path: PathBuf| read_one(&path, &Environment::default()).map_err(|error| error.to_string());
        let file = read(at("plan.txt")).unwrap();
        assert_eq!((file.name.as_str(), file.bytes.as_slice()), ("plan.txt", &b"so"[..]));
        for (name, reason) in [
            ("pipe", "it is not a regular file"),
            ("", "it is not a regular file"),
            ("empty", "it is empty"),
            ("absent", "it does not exist"),
        ] {
            let error = read(at(name)).err().unwrap_or_default();
            assert!(error.ends_with(reason), "{name}: {error}");
        }
        assert!(read("/dev/null".into()).is_err_and(|error| error.ends_with("it is not a regular file")));
    }
}

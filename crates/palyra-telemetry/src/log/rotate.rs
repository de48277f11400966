//! A file of whole lines that is set aside when it is large.
//!
//! INVARIANT: at every moment each accepted line is whole in exactly one file. Rotation happens between lines; a line that a full disk took in part is cut off
//! again. When setting aside or opening anew fails, lines go on into the file that is open.

use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use super::LogFile;

#[derive(Debug)]
pub(super) struct RotatingFile {
    path: PathBuf,
    max_bytes: u64,
    keep: u32,
    file: File,
    /// Length of the open file.
    length: u64,
    /// Length at which setting aside is tried next; later than `max_bytes` after a failure, so as not to try at every line.
    rotate_at: u64,
}

impl RotatingFile {
    pub(super) fn open(options: &LogFile) -> io::Result<Self> {
        if let Some(directory) = options.path.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        }
        let file = open(&options.path)?;
        let length = file.metadata()?.len();
        let max_bytes = options.max_bytes.max(1);
        Ok(Self {
            path: options.path.clone(),
            max_bytes,
            keep: options.keep.max(1),
            file,
            length,
            rotate_at: max_bytes,
        })
    }

    /// Device and number of the open file.
    pub(super) fn identity(&self) -> io::Result<(u64, u64)> {
        self.file.metadata().map(|metadata| (metadata.dev(), metadata.ino()))
    }

    /// Writes lines in order and says how many the disk took.
    pub(super) fn write_lines(&mut self, lines: &[Box<[u8]>]) -> usize {
        self.look_again();
        let mut written = 0;
        while let Some(rest) = lines.get(written..).filter(|rest| !rest.is_empty()) {
            let mut together = self.fitting(rest);
            if together == 0 {
                self.set_aside();
                // Whether or not that worked, the next line goes somewhere.
                together = self.fitting(rest).max(1);
            }
            let Some(batch) = rest.get(..together) else { break };
            match self.append(&batch.concat()) {
                Ok(()) => written += together,
                // One by one, for the sake of those that still fit.
                Err(_) => return written + batch.iter().take_while(|line| self.append(line).is_ok()).count(),
            }
        }
        written
    }

    /// How many of these lines go into the open file; none if it should be set aside first.
    fn fitting(&self, lines: &[Box<[u8]>]) -> usize {
        let mut length = self.length;
        let fitting = lines
            .iter()
            .take_while(|line| {
                length = length.saturating_add(line.len() as u64);
                length <= self.rotate_at
            })
            .count();
        // A line longer than a whole file gets a file of its own.
        if self.length == 0 { fitting.max(1) } else { fitting }
    }

    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let outcome = self.file.write_all(bytes);
        match outcome {
            Ok(()) => self.length = self.length.saturating_add(bytes.len() as u64),
            Err(_) => {
                let _ = self.file.set_len(self.length);
            }
        }
        outcome
    }

    /// Others may have written to the file, removed it or set it aside.
    fn look_again(&mut self) {
        if let Ok(metadata) = self.file.metadata() {
            self.length = metadata.len();
        }
        let mine = self.identity().ok();
        let there = fs::symlink_metadata(&self.path).ok().map(|metadata| (metadata.dev(), metadata.ino()));
        if mine != there
            && let Ok(file) = open(&self.path)
        {
            self.take_over(file);
        }
    }

    fn take_over(&mut self, file: File) {
        self.length = file.metadata().map_or(0, |metadata| metadata.len());
        self.file = file;
        self.rotate_at = self.max_bytes;
    }

    fn set_aside(&mut self) {
        match self.shift().and_then(|()| open(&self.path)) {
            Ok(file) => self.take_over(file),
            Err(_) => self.rotate_at = self.length.saturating_add(self.max_bytes / 8).saturating_add(1),
        }
    }

    /// Moves each file to the next number, the oldest out of existence.
    fn shift(&self) -> io::Result<()> {
        for number in (1..self.keep).rev() {
            match fs::rename(self.numbered(number), self.numbered(number + 1)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        fs::rename(&self.path, self.numbered(1))
    }

    fn numbered(&self, number: u32) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{number}"));
        name.into()
    }
}

/// Opens for appending and for the owner alone; nothing but an ordinary file will do, and no link is followed to it.
fn open(path: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).map_err(io::Error::other)?;
    let file = OpenOptions::new().append(true).create(true).mode(0o600).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file"));
    }
    if metadata.mode() & 0o077 != 0 {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

#[cfg(test)]
#[path = "rotate_tests.rs"]
mod tests;

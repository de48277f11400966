//! Makes the system calls of a daemon fail that concern its journal and its artifacts, without a switch in the product.
//!
//! A small library is compiled with `rustc` and loaded before libc (`LD_PRELOAD`). The test turns faults on and off through a file that the
//! daemon has mapped.

use std::fs::{self, File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use crate::DaemonOptions;

/// Which calls fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Calls {
    /// `open`.
    Open = 1,
    /// `read`, `pread`.
    Read = 2,
    /// `write`, `pwrite`.
    Write = 4,
    /// `fsync`, `fdatasync`.
    Sync = 8,
    /// `ftruncate`.
    Truncate = 16,
    /// `rename`, `unlink`, `mkdir`.
    Name = 32,
    /// All of them.
    All = 63,
}

/// The faults of one daemon.
#[derive(Debug)]
pub struct IoFaults {
    directory: TempDir,
    control: File,
}

impl IoFaults {
    /// Compiles the library; no fault is on.
    ///
    /// # Errors
    /// When it cannot be compiled.
    pub fn new() -> Result<Self> {
        let directory = TempDir::with_prefix("palyra-io-faults-")?;
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("fixtures/io_faults.rs");
        let compiled = Command::new("rustc")
            .args(["--edition=2024", "--crate-type=cdylib", "-O", "-o"])
            .arg(library(directory.path()))
            .arg(source)
            .output()
            .context("running rustc")?;
        ensure!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
        let control = directory.path().join("control");
        fs::write(&control, [0; 4096])?;
        let control = OpenOptions::new().read(true).write(true).open(control)?;
        Ok(Self { directory, control })
    }

    /// Lets this daemon load the library.
    #[must_use]
    pub fn in_daemon(&self, options: DaemonOptions, state_root: &Path) -> DaemonOptions {
        options
            .state_root(state_root)
            .env("LD_PRELOAD", library(self.directory.path()))
            .env("IO_FAULTS_CONTROL", self.directory.path().join("control"))
            .env("IO_FAULTS_ROOT", state_root)
    }

    /// From now on these calls fail with this error.
    ///
    /// # Errors
    /// When the control file cannot be written.
    pub fn begin(&self, errno: rustix::io::Errno, calls: Calls) -> Result<()> {
        self.start(errno, calls, 0)
    }

    /// From now on the `at`-th of these calls fails with this error, counted from 1 over all threads, and no other.
    ///
    /// # Errors
    /// When the control file cannot be written.
    pub fn begin_at(&self, errno: rustix::io::Errno, calls: Calls, at: u32) -> Result<()> {
        self.start(errno, calls, at.saturating_add(1))
    }

    /// From now on these calls are counted and none fails; [`Self::counted`] says how many there were.
    ///
    /// # Errors
    /// When the control file cannot be written.
    pub fn count(&self, calls: Calls) -> Result<()> {
        self.start(rustix::io::Errno::IO, calls, u32::MAX)
    }

    /// How many calls there were since [`Self::count`].
    ///
    /// # Errors
    /// When the control file cannot be read.
    pub fn counted(&self) -> Result<u32> {
        Ok(u32::MAX - self.read(12)?)
    }

    fn start(&self, errno: rustix::io::Errno, calls: Calls, turn: u32) -> Result<()> {
        self.control.write_all_at(&turn.to_ne_bytes(), 12)?;
        self.control.write_all_at(&(calls as u32).to_ne_bytes(), 4)?;
        Ok(self.control.write_all_at(&errno.raw_os_error().to_ne_bytes(), 0)?)
    }

    fn read(&self, offset: u64) -> Result<u32> {
        let mut number = [0; 4];
        self.control.read_exact_at(&mut number, offset)?;
        Ok(u32::from_ne_bytes(number))
    }

    /// From now on nothing fails; returns how many calls did since the library was loaded.
    ///
    /// # Errors
    /// When the control file cannot be written.
    pub fn end(&self) -> Result<u32> {
        self.control.write_all_at(&0_u32.to_ne_bytes(), 0)?;
        self.read(8)
    }
}

fn library(directory: &Path) -> PathBuf {
    directory.join("libio_faults.so")
}

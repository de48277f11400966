//! Killing a daemon at an exact system call, from outside: the product has no switch for it.
//!
//! `strace` stops the daemon on entering the n-th matching call and delivers SIGKILL instead of carrying the call out. Counting is
//! per thread; one thread does all writing of the journal, and one all sending of the probe, so a count is one point in
//! the life of a run. `--seccomp-bpf` would be faster, but under it injected signals are not delivered.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Where a daemon dies.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kill {
    /// System calls, separated by commas, that are counted together.
    pub calls: &'static str,
    /// Files below the state root that the calls must be about; none means any.
    pub files: &'static [&'static str],
    /// On entering which of them, counted from 1.
    pub at: u32,
}

impl Kill {
    /// The command that starts `program` under these conditions.
    pub(crate) fn command(&self, state_root: &Path, program: &Path) -> Command {
        let mut command = Command::new("strace");
        command.args(["-f", "-qq", "-e", "signal=none", "-o", "/dev/null"]);
        command.arg("-e").arg(format!("trace={}", self.calls));
        command.arg("-e").arg(format!("inject={}:signal=KILL:when={}", self.calls, self.at));
        for file in self.files {
            command.arg("-P").arg(resolved(state_root).join(file));
        }
        command.arg(program);
        command
    }
}

/// The kernel reports resolved paths, so the filter must name those.
fn resolved(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

/// Whether `strace` is there and may trace.
#[must_use]
pub fn strace_is_usable() -> bool {
    let mut command = Command::new("strace");
    command.args(["-f", "-qq", "-o", "/dev/null", "true"]).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

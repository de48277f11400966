//! Killing a daemon at an exact system call, or letting that call fail, from outside: the product has no switch for it.
//!
//! `strace` stops the daemon on entering the n-th matching call and delivers SIGKILL, or returns an error, instead of carrying the call out. Counting is
//! per thread; one thread does all writing of the journal, and one all sending of the probe, so a count is one point in
//! the life of a run. `--seccomp-bpf` would be faster for kills, too, but under it injected signals are not delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
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

/// Calls of a daemon that fail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyscallFault {
    /// System calls, separated by commas, that are counted together.
    pub calls: &'static str,
    /// Files below the state root that the calls must be about; none means any.
    pub files: &'static [&'static str],
    /// The error, such as `EIO`; none only counts the calls.
    pub error: Option<&'static str>,
    /// The first call of a thread that fails, counted from 1.
    pub at: u32,
    /// Whether all later ones fail as well.
    pub lasts: FaultDuration,
}

/// How long a fault lasts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultDuration {
    /// One call of a thread.
    Once,
    /// That call and every later one.
    Lasting,
}

impl SyscallFault {
    /// The command that starts `program` under these conditions; the calls are written to `trace`.
    pub(crate) fn command(&self, state_root: &Path, program: &Path, trace: &Path) -> Command {
        let mut command = Command::new("strace");
        // With the paths of descriptors, so that a trace tells which files its calls were about.
        command.args(["-f", "-y", "--seccomp-bpf", "-qq", "-e", "signal=none", "-o"]).arg(trace);
        command.arg("-e").arg(format!("trace={}", self.calls));
        if let Some(error) = self.error {
            let rest = if self.lasts == FaultDuration::Lasting { "+" } else { "" };
            command.arg("-e").arg(format!("inject={}:error={error}:when={}{rest}", self.calls, self.at));
        }
        for file in self.files {
            command.arg("-P").arg(resolved(state_root).join(file));
        }
        command.arg(program);
        command
    }
}

/// What a trace shows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traced {
    /// Calls that failed because they were told to.
    pub failed: usize,
    /// Calls of the thread that made the most.
    pub most_of_a_thread: u32,
}

/// The names of the calls in a trace that were about these files, or anything below them.
pub(crate) fn calls_about(trace: &Path, files: &[PathBuf]) -> BTreeSet<String> {
    let text = fs::read_to_string(trace).unwrap_or_default();
    let files: Vec<String> = files.iter().map(|file| resolved(file).display().to_string()).collect();
    let about = text.lines().filter(|line| files.iter().any(|file| line.contains(file.as_str())));
    let name = |line: &str| {
        let name = line.split_once(' ')?.1.trim_start().split_once('(')?.0;
        // The second part of a call that another thread interrupted begins with `<...`.
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_').then(|| name.to_owned())
    };
    about.filter_map(name).collect()
}

impl Traced {
    /// Reads a trace; one that is not there shows nothing.
    pub(crate) fn read(trace: &Path) -> Self {
        let text = fs::read_to_string(trace).unwrap_or_default();
        let mut threads: BTreeMap<&str, u32> = BTreeMap::new();
        // A call that another thread interrupts is written in two parts, of which the second begins with `<...`.
        for (thread, call) in text.lines().filter_map(|line| line.split_once(' ')) {
            if !call.trim_start().starts_with("<...") {
                *threads.entry(thread).or_default() += 1;
            }
        }
        let most_of_a_thread = threads.into_values().max().unwrap_or_default();
        Self { failed: text.matches("(INJECTED)").count(), most_of_a_thread }
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

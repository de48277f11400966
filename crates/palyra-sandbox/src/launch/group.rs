//! The control groups of a supervisor, one per hierarchy.
//!
//! A process is born into the groups of the one that forked it. So a supervisor enters its groups once, keeps them from sandbox to sandbox and only sets
//! their limits anew: moving a process waits for the whole kernel to take notice, which takes longer than everything else together.
//!
//! Everything is files in a directory, so the tests also run it on an ordinary directory that looks like the unified hierarchy.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use super::sweep::sweep;
use crate::host::Cgroups;
use crate::plan::Plan;

/// What the supervisor and the sandbox's first process need themselves.
const OWN_BYTES: u64 = 16 << 20;

/// The supervisor, the first process of the sandbox, and in tier B that of a room which waits for a sandbox of tier C.
const OWN_PROCESSES: u64 = 3;

/// The groups of one supervisor; it leaves and removes them when this is dropped.
#[derive(Debug)]
pub(crate) struct Groups {
    facts: Cgroups,
    /// Version 2, or memory of version 1.
    memory: Option<PathBuf>,
    /// Version 2, or processes of version 1.
    pids: Option<PathBuf>,
    /// Kills for want of memory before the present sandbox.
    kills_before: u64,
    /// Bytes and processes that are set already: setting a limit makes the kernel add up what every processor keeps apart.
    set: Option<(u64, u32)>,
}

/// What the kernel counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Counted {
    /// Largest memory use.
    pub(crate) memory_bytes: Option<u64>,
    /// How often a process was killed for want of memory.
    pub(crate) memory_kills: u64,
}

impl Groups {
    /// Makes groups of the given name and enters them. On failure nothing is left behind.
    pub(crate) fn enter(facts: &Cgroups, name: &str) -> io::Result<Self> {
        let mut groups = Self { facts: facts.clone(), memory: None, pids: None, kills_before: 0, set: None };
        parents(facts).for_each(sweep);
        match facts {
            Cgroups::None(_) => {}
            Cgroups::V2 { parent, memory, pids } => {
                let path = parent.join(name);
                make(&path)?;
                groups.memory = memory.then(|| path.clone());
                groups.pids = (*pids || !*memory).then_some(path);
            }
            Cgroups::V1 { memory, pids } => {
                for (parent, kept) in [(memory, &mut groups.memory), (pids, &mut groups.pids)] {
                    if let Some(parent) = parent {
                        make(&parent.join(name))?;
                        *kept = Some(parent.join(name));
                    }
                }
            }
        }
        groups.paths().iter().try_for_each(|path| join(path))?;
        Ok(groups)
    }

    /// Whether these are the groups that a plan asks for.
    pub(crate) fn fit(&self, facts: &Cgroups) -> bool {
        self.facts == *facts
    }

    /// The directories, each once.
    pub(crate) fn paths(&self) -> Vec<PathBuf> {
        let mut paths: Vec<_> = self.memory.iter().chain(&self.pids).cloned().collect();
        paths.dedup();
        paths
    }

    /// Sets the limits of the next sandbox and begins to count anew.
    pub(crate) fn limit(&mut self, plan: &Plan) -> io::Result<()> {
        let wanted = Some((plan.limits.memory_bytes, plan.limits.processes));
        if self.set != wanted {
            self.set = None;
            self.set_limits(plan)?;
            self.set = wanted;
        }
        if let (Some(path), Cgroups::V1 { .. }) = (&self.memory, &self.facts) {
            set(path, "memory.max_usage_in_bytes", "0")?;
        }
        self.kills_before = self.kills();
        Ok(())
    }

    fn set_limits(&self, plan: &Plan) -> io::Result<()> {
        if let Some(path) = &self.memory {
            let bytes = plan.limits.memory_bytes.saturating_add(OWN_BYTES).to_string();
            if matches!(self.facts, Cgroups::V2 { .. }) {
                set(path, "memory.max", &bytes)?;
                // Swapping would only slow the end down; absent where the kernel has no swap.
                set_if_present(path, "memory.swap.max", "0")?;
            } else {
                // The sum with swap may never be below the memory alone, also not in between.
                set_if_present(path, "memory.memsw.limit_in_bytes", "-1")?;
                set(path, "memory.limit_in_bytes", &bytes)?;
                set_if_present(path, "memory.memsw.limit_in_bytes", &bytes)?;
            }
        }
        if let Some(path) = &self.pids
            && self.facts.limits_processes()
        {
            set(path, "pids.max", &u64::from(plan.limits.processes).saturating_add(OWN_PROCESSES).to_string())?;
        }
        Ok(())
    }

    fn kills(&self) -> u64 {
        let Some(path) = &self.memory else { return 0 };
        let name = match self.facts {
            Cgroups::None(_) | Cgroups::V2 { .. } => "memory.events",
            Cgroups::V1 { .. } => "memory.oom_control",
        };
        fs::read_to_string(path.join(name)).ok().and_then(|text| named(&text, "oom_kill")).unwrap_or(0)
    }

    /// What the kernel counted since the limits were set.
    pub(crate) fn counted(&self) -> Counted {
        let number = |name: &str| {
            let path = self.memory.as_ref()?.join(name);
            fs::read_to_string(path).ok().and_then(|text| text.trim().parse::<u64>().ok())
        };
        Counted {
            // Version 2 cannot begin to count anew on every kernel; the samples tell then.
            memory_bytes: number("memory.max_usage_in_bytes"),
            memory_kills: self.kills().saturating_sub(self.kills_before),
        }
    }
}

/// How the groups of all supervisors are named; their process id follows.
pub(super) const PREFIX: &str = "palyra-sandbox-";

/// Where groups are made.
fn parents(facts: &Cgroups) -> impl Iterator<Item = &Path> {
    let (one, other) = match facts {
        Cgroups::None(_) => (None, None),
        Cgroups::V2 { parent, .. } => (Some(parent), None),
        Cgroups::V1 { memory, pids } => (memory.as_ref(), pids.as_ref()),
    };
    one.into_iter().chain(other).map(PathBuf::as_path)
}

/// Makes a group. One that has the name already was left by a dead supervisor, for no two that live have the same process id.
fn make(path: &Path) -> io::Result<()> {
    match fs::create_dir(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            remove(path);
            fs::create_dir(path)
        }
        made => made,
    }
}

impl Drop for Groups {
    fn drop(&mut self) {
        for path in self.paths() {
            if let Some(parent) = path.parent() {
                // A group with a process in it cannot be removed.
                let _ = join(parent);
            }
            remove(&path);
        }
    }
}

/// Moves this process into a group; zero is whoever writes it.
fn join(group: &Path) -> io::Result<()> {
    set(group, "cgroup.procs", "0")
}

/// Removes a group that is empty or about to be.
pub(crate) fn remove(path: &Path) {
    // The kernel lets go of the last process a moment after it was reaped.
    for _ in 0..50 {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
            _ => return,
        }
    }
}

/// The number after a word at the start of a line.
fn named(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word)?.trim().parse().ok())
}

fn set(group: &Path, name: &str, value: &str) -> io::Result<()> {
    let write = || -> io::Result<()> {
        let mut file: File = OpenOptions::new().write(true).open(group.join(name))?;
        io::Write::write_all(&mut file, value.as_bytes())
    };
    write().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))
}

fn set_if_present(group: &Path, name: &str, value: &str) -> io::Result<()> {
    if group.join(name).exists() { set(group, name, value) } else { Ok(()) }
}

#[cfg(test)]
#[path = "group_tests.rs"]
mod group_tests;

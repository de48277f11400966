//! Clearing up after supervisors that were killed together with their launcher.
//!
//! In tier C the kernel ends a sandbox with its first process. In tier B only that process dies with the supervisor; what it started is found by
//! the control group that it cannot leave.

use std::fs;
use std::path::Path;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal};

use super::group::PREFIX;

/// How often processes are killed that make new ones meanwhile; their group bounds how many these are.
const ROUNDS: usize = 50;

/// Ends what is left in the groups of supervisors that are gone, and removes these groups.
pub(super) fn sweep(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let supervisor = name.to_str().and_then(|name| name.strip_prefix(PREFIX)).and_then(|pid| pid.parse().ok());
        let group = entry.path();
        if supervisor.is_some_and(|pid| is_gone(&group, pid)) {
            end(&group);
        }
    }
}

/// Whether a group has lost its supervisor, be it one of here or of a container that makes its groups in the same place.
fn is_gone(group: &Path, supervisor: i32) -> bool {
    let mut members = members(group).peekable();
    if members.peek().is_none() {
        // It may not have entered yet.
        return !is_alive(&status(supervisor));
    }
    !members.any(|pid| innermost(&status(pid.as_raw_nonzero().get())) == Some(supervisor))
}

fn status(pid: i32) -> String {
    fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default()
}

/// One that is dead may wait for its parent for as long as that likes.
fn is_alive(status: &str) -> bool {
    status
        .lines()
        .find_map(|line| line.strip_prefix("State:"))
        .is_some_and(|state| !state.trim().starts_with(['Z', 'X']))
}

/// A process's id as it sees it itself.
fn innermost(status: &str) -> Option<i32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
    ids.split_whitespace().next_back()?.parse().ok()
}

fn members(group: &Path) -> impl Iterator<Item = Pid> + use<> {
    let text = fs::read_to_string(group.join("cgroup.procs")).unwrap_or_default();
    let pids: Vec<_> = text.lines().filter_map(|line| line.parse().ok().and_then(Pid::from_raw)).collect();
    pids.into_iter()
}

fn end(group: &Path) {
    for _ in 0..ROUNDS {
        if fs::remove_dir(group).is_ok() || !group.exists() {
            return;
        }
        members(group).for_each(|pid| kill(group, pid));
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Kills a process of the group, and no other that was given its id meanwhile.
fn kill(group: &Path, pid: Pid) {
    if let Ok(process) = rustix::process::pidfd_open(pid, PidfdFlags::empty())
        && members(group).any(|member| member == pid)
    {
        let _ = rustix::process::pidfd_send_signal(process, Signal::KILL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_supervisor_in_a_container_is_known_by_its_own_id() {
        let status = |ids: &str| format!("Name:\tpalyrad\nPid:\t4100\nNSpid:\t{ids}\nThreads:\t1\n");
        assert_eq!(innermost(&status("4100\t12")), Some(12));
        assert_eq!(innermost(&status("4100")), Some(4100));
        assert_eq!(innermost("Name:\tx\n"), None);
    }

    #[test]
    fn the_dead_do_not_live_until_they_are_reaped() {
        assert!(is_alive("Name:\tx\nState:\tS (sleeping)\n"));
        assert!(is_alive("Name:\tx\nState:\tT (stopped)\n"));
        assert!(!is_alive("Name:\tx\nState:\tZ (zombie)\n"));
        assert!(!is_alive(""));
    }

    #[test]
    fn only_groups_of_the_gone_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let group = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            path
        };
        // The kernel gives ids up to 2²²; the second is this process.
        let gone = group("palyra-sandbox-5000000");
        let kept = [
            group(&format!("palyra-sandbox-{}", std::process::id())),
            group("palyra-sandbox-x"),
            group("other-5000000"),
        ];
        sweep(parent.path());
        assert!(!gone.exists());
        assert!(kept.iter().all(|path| path.exists()));
    }
}

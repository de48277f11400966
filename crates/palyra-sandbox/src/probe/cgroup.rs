//! Which control groups this process may make: by making one and removing it again.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::Cgroups;

/// Finds the hierarchies in which a child of our own group can be made and limited.
pub(super) fn probe() -> Cgroups {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    choose(&groups, &mounts, &|group| try_group(group))
}

/// What a child group that was made has.
struct Child {
    memory: bool,
    pids: bool,
}

fn try_group(group: &Path) -> Option<Child> {
    let path = group.join(format!("palyra-probe-{}", std::process::id()));
    fs::create_dir(&path).ok()?;
    let has = |name: &str| path.join(name).exists();
    let child = Child { memory: has("memory.max") || has("memory.limit_in_bytes"), pids: has("pids.max") };
    let _ = fs::remove_dir(&path);
    Some(child)
}

fn choose(groups: &str, mounts: &str, attempt: &dyn Fn(&Path) -> Option<Child>) -> Cgroups {
    if let Some(parent) = own_group(groups, mounts, None)
        && let Some(Child { memory, pids }) = attempt(&parent)
        && (memory || pids)
    {
        return Cgroups::V2 { parent, memory, pids };
    }
    let usable = |controller: &str| {
        let group = own_group(groups, mounts, Some(controller))?;
        let child = attempt(&group)?;
        let has = if controller == "memory" { child.memory } else { child.pids };
        has.then_some(group)
    };
    let (memory, pids) = (usable("memory"), usable("pids"));
    if memory.is_none() && pids.is_none() {
        return Cgroups::None("no cgroup with memory or process limits can be created".to_owned());
    }
    Cgroups::V1 { memory, pids }
}

/// The directory of our own group in the hierarchy of a controller; `None` means the unified one.
fn own_group(groups: &str, mounts: &str, controller: Option<&str>) -> Option<PathBuf> {
    let path = groups.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        match controller {
            None => controllers.is_empty().then_some(path),
            Some(name) => controllers.split(',').any(|one| one == name).then_some(path),
        }
    })?;
    mounts.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let (kind, options) = (after.next()?, after.nth(1)?);
        let right = match controller {
            None => kind == "cgroup2",
            Some(name) => kind == "cgroup" && options.split(',').any(|one| one == name),
        };
        let mut before = before.split(' ').skip(3);
        let (root, mount_point) = (before.next()?, before.next()?);
        // In a container the group is named from the host's root, of which the mount shows only a part.
        let below = Path::new(path).strip_prefix(root).or_else(|_| Path::new(path).strip_prefix("/")).ok()?;
        right.then(|| Path::new(mount_point).join(below))
    })
}

#[cfg(test)]
#[path = "cgroup_tests.rs"]
mod cgroup_tests;

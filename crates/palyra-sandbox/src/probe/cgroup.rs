//! Which control groups this process may make: by making one, moving a process into it and removing it again.
//!
//! A group that has processes of its own cannot give controllers to children, so the group of a service is usually of no use. An ordinary user's service manager
//! is delegated a subtree (`user@UID.service`), in which groups can be made beside the service's own.

use std::fs;
use std::path::{Path, PathBuf};

use crate::host::{Cgroups, Privilege};
use crate::launch::group;
use crate::sys::{self, Forked, Patience};

/// Finds the hierarchies in which a child of our own group can be made and limited.
pub(super) fn probe() -> Cgroups {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    choose(&groups, &mounts, &|group| try_group(group))
}

/// How to get control groups, where an ordinary user has none and a service manager that could make some.
pub(super) fn note(cgroups: &Cgroups, privilege: Privilege, exists: impl Fn(&Path) -> bool) -> Option<String> {
    let Privilege::Ordinary { uid, .. } = privilege else { return None };
    let has_manager = exists(Path::new(&format!("/run/user/{uid}/systemd/private")));
    (has_manager && !cgroups.limits_memory()).then(|| {
        "no control group limits memory; one does if your service manager starts the daemon (`systemd-run --user --scope palyra daemon run`)".to_owned()
    })
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
    let entered = can_enter(&path);
    group::remove(&path);
    entered.then_some(child)
}

/// Whether a process of ours can be moved into a group: its group and the new one need an ancestor that is ours.
fn can_enter(group: &Path) -> bool {
    match sys::fork(0) {
        // Zero is whoever writes it.
        Ok(Forked::Child) => sys::exit(i32::from(fs::write(group.join("cgroup.procs"), "0").is_err())),
        Ok(Forked::Parent(pid)) => {
            matches!(sys::wait4(Some(pid), Patience::Block), Ok(Some(waited)) if waited.status == 0)
        }
        Err(_) => false,
    }
}

fn choose(groups: &str, mounts: &str, attempt: &dyn Fn(&Path) -> Option<Child>) -> Cgroups {
    if let Some(own) = own_group(groups, mounts, None) {
        for parent in std::iter::once(own.as_path()).chain(delegated(&own)) {
            if let Some(Child { memory, pids }) = attempt(parent)
                && (memory || pids)
            {
                return Cgroups::V2 { parent: parent.to_owned(), memory, pids };
            }
        }
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

/// The groups above our own that belong to the user's service manager, nearest first.
fn delegated(own: &Path) -> impl Iterator<Item = &Path> {
    let is_manager = |path: &Path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("user@") && name.ends_with(".service")
    };
    let manager = own.ancestors().skip(1).find(|path| is_manager(path));
    own.ancestors().skip(1).take_while(move |path| manager.is_some_and(|manager| path.starts_with(manager)))
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

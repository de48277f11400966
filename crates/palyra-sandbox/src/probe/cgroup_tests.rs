//! Finding our own control group in the shapes that hosts have.

use std::path::Path;

use super::{Child, choose, note};
use crate::host::{Cgroups, Privilege};

const UNIFIED: &str = "30 24 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw";
const SEPARATE: &str = "31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
                        32 24 0:28 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                        33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";

fn everything(_: &Path) -> Option<Child> {
    Some(Child { memory: true, pids: true })
}

#[test]
fn the_unified_hierarchy_is_used_when_a_child_gets_controllers() {
    let found = choose("0::/user.slice/palyra.service\n", UNIFIED, &everything);
    let parent = "/sys/fs/cgroup/user.slice/palyra.service".into();
    assert_eq!(found, Cgroups::V2 { parent, memory: true, pids: true });
}

#[test]
fn separate_hierarchies_are_used_when_the_unified_one_is_bare() {
    let attempt = |path: &Path| {
        let bare = path.starts_with("/sys/fs/cgroup/unified");
        Some(Child {
            memory: !bare && path.starts_with("/sys/fs/cgroup/memory"),
            pids: !bare && path.ends_with("pids"),
        })
    };
    let found = choose("2:pids:/\n1:memory:/group\n0::/\n", SEPARATE, &attempt);
    let Cgroups::V1 { memory: Some(memory), pids: Some(pids) } = found else { panic!("{found:?}") };
    assert_eq!(memory, Path::new("/sys/fs/cgroup/memory/group"));
    assert_eq!(pids, Path::new("/sys/fs/cgroup/pids"));
}

#[test]
fn in_a_container_the_path_is_taken_from_the_mount() {
    let mounts = "30 24 0:26 /docker/abc /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    let found = choose("0::/docker/abc/inner\n", mounts, &everything);
    assert_eq!(found, Cgroups::V2 { parent: "/sys/fs/cgroup/inner".into(), memory: true, pids: true });
}

#[test]
fn without_the_right_to_make_a_child_there_is_none() {
    let found = choose("2:pids:/\n1:memory:/\n0::/\n", SEPARATE, &|_| None);
    assert!(matches!(found, Cgroups::None(_)), "{found:?}");
    assert!(matches!(choose("", "", &everything), Cgroups::None(_)));
}

#[test]
fn a_users_service_gets_its_groups_beside_its_own() {
    let own = "0::/user.slice/user-1000.slice/user@1000.service/app.slice/palyra.service\n";
    let slice = Path::new("/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service/app.slice");
    // The service's own group has the daemon in it, and so no controllers for children.
    let attempt = |path: &Path| {
        let ours = path.starts_with("/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service");
        ours.then(|| Child { memory: path == slice, pids: path == slice })
    };
    let found = choose(own, UNIFIED, &attempt);
    assert_eq!(found, Cgroups::V2 { parent: slice.to_owned(), memory: true, pids: true });
    // Where the manager's slice gives no controllers, the manager's own group may.
    let manager = slice.parent().unwrap();
    let attempt = |path: &Path| Some(Child { memory: path == manager, pids: false });
    let found = choose(own, UNIFIED, &attempt);
    assert_eq!(found, Cgroups::V2 { parent: manager.to_owned(), memory: true, pids: false });
}

#[test]
fn who_has_a_service_manager_and_no_groups_is_told_how_to_get_them() {
    let none = Cgroups::None("none".to_owned());
    let user = Privilege::Ordinary { uid: 1000, gid: 1000 };
    let asked = std::cell::RefCell::new(Vec::new());
    let exists = |path: &Path| {
        asked.borrow_mut().push(path.to_owned());
        true
    };
    assert!(note(&none, user, exists).is_some_and(|note| note.contains("systemd-run --user")));
    assert_eq!(*asked.borrow(), [Path::new("/run/user/1000/systemd/private")]);
    assert_eq!(note(&none, user, |_| false), None, "there is no manager");
    assert_eq!(note(&none, Privilege::Root, |_| true), None, "root's are not its business");
    let limited = |memory| Cgroups::V2 { parent: "/sys/fs/cgroup".into(), memory, pids: true };
    assert_eq!(note(&limited(true), user, |_| true), None);
    assert!(note(&limited(false), user, |_| true).is_some(), "processes alone are not enough");
}

#[test]
fn groups_above_the_users_manager_are_left_alone() {
    let asked = std::cell::RefCell::new(Vec::new());
    let attempt = |path: &Path| {
        asked.borrow_mut().push(path.to_owned());
        None
    };
    let manager = "/sys/fs/cgroup/user.slice/user-1000.slice/user@1000.service";
    let found = choose("0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.service\n", UNIFIED, &attempt);
    assert!(matches!(found, Cgroups::None(_)));
    assert!(asked.borrow().iter().all(|path| path.starts_with(manager)), "{asked:?}");
    asked.borrow_mut().clear();
    // A session or a system service is not below a manager.
    choose("0::/user.slice/user-1000.slice/session-3.scope\n", UNIFIED, &attempt);
    assert_eq!(*asked.borrow(), [Path::new("/sys/fs/cgroup/user.slice/user-1000.slice/session-3.scope")]);
}

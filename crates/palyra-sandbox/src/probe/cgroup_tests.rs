//! Finding our own control group in the shapes that hosts have.

use std::path::Path;

use super::{Child, choose};
use crate::host::Cgroups;

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

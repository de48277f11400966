//! Control groups on an ordinary directory that looks like the unified hierarchy.

use std::fs;
use std::path::PathBuf;

use palyra_common::SandboxTier;

use super::{Counted, Groups, OWN_BYTES};
use crate::host::Cgroups;
use crate::plan::invented::{USER, grant, host, invocation};
use crate::plan::plan;

#[test]
fn a_group_of_a_dead_supervisor_with_the_same_process_id_is_made_anew() {
    let (parent, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let leftover = parent.path().join("palyra-sandbox-1");
    fs::create_dir(&leftover).unwrap();
    for facts in [
        Cgroups::V2 { parent: parent.path().to_owned(), memory: true, pids: true },
        Cgroups::V1 { memory: Some(other.path().to_owned()), pids: Some(parent.path().to_owned()) },
    ] {
        // It comes as far as entering, which an ordinary directory has no file for.
        let failed = Groups::enter(&facts, "palyra-sandbox-1").unwrap_err().to_string();
        assert!(failed.contains("cgroup.procs"), "{failed}");
        assert!(!leftover.exists(), "what was made anew is removed again");
        fs::create_dir(&leftover).unwrap();
    }
}

#[test]
fn limits_are_written_where_the_unified_hierarchy_has_them() {
    let parent = tempfile::tempdir().unwrap();
    let facts = Cgroups::V2 { parent: parent.path().to_owned(), memory: true, pids: true };
    // The kernel fills a new group with files; here nothing does, so entering it fails and nothing stays behind.
    assert!(Groups::enter(&facts, "first").unwrap_err().to_string().contains("cgroup.procs"));
    assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 0);

    let group = parent.path().join("second");
    fs::create_dir(&group).unwrap();
    for name in ["cgroup.procs", "memory.max", "memory.swap.max", "pids.max"] {
        fs::write(group.join(name), "").unwrap();
    }
    fs::write(group.join("memory.events"), "low 0\noom 3\noom_kill 2\noom_group_kill 0\n").unwrap();
    let (memory, pids): (Option<PathBuf>, _) = (Some(group.clone()), Some(group.clone()));
    let mut groups = Groups { facts: facts.clone(), memory, pids, kills_before: 0, set: None };
    let mut host = host(USER);
    host.cgroups = facts.clone();
    let mut grant = grant(SandboxTier::C);
    grant.limits.memory_bytes = 1000;
    grant.limits.processes = 7;
    groups.limit(&plan(&grant, &host, &invocation()).unwrap()).unwrap();
    let read = |name: &str| fs::read_to_string(group.join(name)).unwrap();
    assert_eq!((read("memory.max"), read("memory.swap.max")), ((1000 + OWN_BYTES).to_string(), "0".to_owned()));
    assert_eq!(read("pids.max"), "10", "three more than granted, for the processes that are ours");
    assert_eq!(groups.counted(), Counted { memory_bytes: None, memory_kills: 0 });
    fs::write(group.join("memory.events"), "low 0\noom 3\noom_kill 5\noom_group_kill 0\n").unwrap();
    assert_eq!(groups.counted().memory_kills, 3, "only those since the limits were set");
    assert!(groups.fit(&facts) && !groups.fit(&Cgroups::None(String::new())));
}

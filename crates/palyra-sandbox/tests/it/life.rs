//! What happens when those who started a sandbox go away, and when there are many.

use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use palyra_common::SandboxTier;
use palyra_sandbox::{Ability, Cgroups, EndCause, Exit, HostFacts, Place, SandboxError, Stdio, Stream, plan};

use crate::world::{World, finish};

const TIERS: [SandboxTier; 2] = [SandboxTier::B, SandboxTier::C];

/// Waits until something is so, for as long as a loaded machine may need.
fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < Duration::from_secs(20), "never: {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

fn parent_of(pid: i32) -> i32 {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(')').unwrap().1.split_whitespace().nth(1).unwrap().parse().unwrap()
}

fn signal(pid: i32, name: &str) {
    assert!(Command::new("kill").args(["-s", name, &pid.to_string()]).status().unwrap().success());
}

/// A tree with a process in a session of its own.
const TREE: &str = "setsid sleep 1000 & sleep 1000 & sleep 1000";

#[test]
fn sixty_four_at_once() {
    let world = World::new();
    for tier in TIERS {
        let script = "echo $$ > file-$1; sleep 0.3; cat file-$1 > /dev/null && echo done-$1";
        let started: Vec<_> = thread::scope(|scope| {
            let starting: Vec<_> = (0..64)
                .map(|number| {
                    let world = &world;
                    scope.spawn(move || {
                        let invocation = world.invocation("sh", &["-c", script, "sh", &number.to_string()]);
                        let plan = world.plan(&world.grant(tier), &invocation);
                        finish(world.sandbox.spawn_blocking(&plan, Stdio::pipes()).unwrap(), "")
                    })
                })
                .collect();
            starting.into_iter().map(|one| one.join().unwrap()).collect()
        });
        for (number, ran) in started.iter().enumerate() {
            assert_eq!(ran.stdout, format!("done-{number}\n"), "{tier:?} {ran:?}");
        }
    }
    assert_eq!(world.leftovers(), Vec::<String>::new());
}

#[tokio::test]
async fn waiting_can_be_given_up_and_taken_up_again() {
    let world = World::new();
    for tier in TIERS {
        let plan = world.plan(&world.grant(tier), &world.invocation("sleep", &["0.4"]));
        let mut child = world.sandbox.spawn(&plan, Stdio::default()).await.unwrap();
        assert!(tokio::time::timeout(Duration::from_millis(50), child.wait()).await.is_err());
        assert_eq!(child.wait().await.unwrap().exit, Exit::Code(0));
        assert_eq!(child.wait().await.unwrap_err(), SandboxError::Lost, "there is one end to report");
    }
}

#[test]
fn a_dropped_child_is_a_dead_tree() {
    let world = World::new();
    for tier in TIERS {
        let plan = world.plan(&world.grant(tier), &world.invocation("sh", &["-c", TREE]));
        let child = world.sandbox.spawn_blocking(&plan, Stdio::default()).unwrap();
        eventually("the tree runs", || world.leftovers().len() >= 4);
        drop(child);
        eventually("the tree is dead", || world.leftovers().is_empty());
    }
}

#[test]
fn a_dead_launcher_takes_its_sandboxes_along_and_is_replaced() {
    let world = World::new();
    for tier in TIERS {
        let plan = world.plan(&world.grant(tier), &world.invocation("sh", &["-c", TREE]));
        let mut child = world.sandbox.spawn_blocking(&plan, Stdio::default()).unwrap();
        eventually("the tree runs", || world.leftovers().len() >= 4);
        let launcher = parent_of(parent_of(child.pid));
        signal(launcher, "KILL");
        let report = child.wait_blocking().unwrap();
        assert_eq!(report.cause, EndCause::Abandoned, "{tier:?}");
        eventually("the tree is dead", || world.leftovers().is_empty());
        assert_eq!(world.run(tier, "echo", &["again"]).stdout, "again\n");
    }
}

#[test]
fn a_dead_supervisor_is_a_lost_child_and_a_dead_tree() {
    let world = World::new();
    for tier in TIERS {
        let plan = world.plan(&world.grant(tier), &world.invocation("sh", &["-c", TREE]));
        let mut child = world.sandbox.spawn_blocking(&plan, Stdio::default()).unwrap();
        eventually("the tree runs", || world.leftovers().len() >= 4);
        signal(parent_of(child.pid), "KILL");
        assert_eq!(child.wait_blocking().unwrap_err(), SandboxError::Lost, "{tier:?}");
        eventually("the tree is dead", || world.leftovers().is_empty());
        assert_eq!(world.run(tier, "echo", &["again"]).stdout, "again\n");
    }
}

#[test]
fn a_dead_daemon_is_a_dead_tree() {
    let world = World::new();
    let program = std::env::current_exe().unwrap();
    for tier in TIERS {
        let mut daemon = Command::new(&program)
            .args(["--exact", "life::daemon_that_is_killed", "--ignored"])
            .env("PALYRA_SANDBOX_TEST_WORKSPACE", &world.workspace)
            .env("PALYRA_SANDBOX_TEST_TIER", tier.as_str())
            .stdout(std::process::Stdio::null())
            .spawn()
            .unwrap();
        eventually("the tree runs", || world.leftovers().len() >= 4);
        daemon.kill().unwrap();
        daemon.wait().unwrap();
        eventually("the tree is dead", || world.leftovers().is_empty());
    }
}

#[test]
#[ignore = "started by `a_dead_daemon_is_a_dead_tree`"]
fn daemon_that_is_killed() {
    let mut world = World::new();
    world.workspace = std::env::var_os("PALYRA_SANDBOX_TEST_WORKSPACE").unwrap().into();
    let tier = if std::env::var("PALYRA_SANDBOX_TEST_TIER").unwrap() == SandboxTier::B.as_str() {
        SandboxTier::B
    } else {
        SandboxTier::C
    };
    let plan = world.plan(&world.grant(tier), &world.invocation("sh", &["-c", TREE]));
    let stdio = Stdio { stdin: Stream::Null, ..Stdio::default() };
    let mut child = world.sandbox.spawn_blocking(&plan, stdio).unwrap();
    child.wait_blocking().unwrap();
}

/// The control groups that a supervisor makes on this host.
fn groups_of(supervisor: i32, host: &HostFacts) -> Vec<PathBuf> {
    let parents = match &host.cgroups {
        Cgroups::None(_) => vec![],
        Cgroups::V2 { parent, .. } => vec![parent],
        Cgroups::V1 { memory, pids } => memory.iter().chain(pids).collect(),
    };
    parents.into_iter().map(|parent| parent.join(format!("palyra-sandbox-{supervisor}"))).collect()
}

#[test]
fn nothing_is_left_of_a_finished_sandbox() {
    let world = World::new();
    let mut groups = Vec::new();
    for tier in TIERS {
        let script = "mkdir $HOME/x; chmod 0 $HOME/x; echo x > $TMPDIR/y; read line";
        let plan = world.plan(&world.grant(tier), &world.invocation("sh", &["-c", script]));
        let child = world.sandbox.spawn_blocking(&plan, Stdio::pipes()).unwrap();
        let own = groups_of(parent_of(child.pid), &world.host);
        assert!(own.iter().all(|group| group.exists()), "{own:?}");
        groups.extend(own);
        assert!(finish(child, "go\n").report.exit.success());
    }
    let left: Vec<_> = fs::read_dir(world.directory.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with("palyra-sandbox-")), "{left:?}");
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap();
    assert!(!mounts.contains(world.directory.path().to_str().unwrap()));
    drop(world);
    eventually("the groups are gone", || groups.iter().all(|group| !group.exists()));
}

#[test]
fn what_a_killed_launcher_and_supervisor_left_goes_with_the_next_start() {
    for tier in TIERS {
        let world = World::new();
        let plan = world.plan(&world.grant(tier), &world.invocation("sh", &["-c", TREE]));
        let child = world.sandbox.spawn_blocking(&plan, Stdio::default()).unwrap();
        eventually("the tree runs", || world.leftovers().len() >= 4);
        let supervisor = parent_of(child.pid);
        let launcher = parent_of(supervisor);
        // Stopped, so that it has no time to clear up when it sees the launcher die.
        signal(supervisor, "STOP");
        signal(launcher, "KILL");
        signal(supervisor, "KILL");
        let groups = groups_of(supervisor, &world.host);
        eventually("the kernel ends the tree", || world.leftovers().is_empty());
        assert!(World::new().run(SandboxTier::C, "true", &[]).report.exit.success());
        eventually("the tree is dead", || world.leftovers().is_empty());
        eventually("the groups are gone", || groups.iter().all(|group| !group.exists()));
    }
}

/// The ways in which tier B is set up, by what the host can do.
fn variants(host: &HostFacts) -> Vec<(&'static str, SandboxTier, HostFacts)> {
    let fails = || Ability::Fails("forbidden by the test".to_owned());
    let no_isolation = HostFacts { isolation: fails(), ..host.clone() };
    let no_namespaces = HostFacts { user_namespace: fails(), ..no_isolation.clone() };
    vec![
        ("tier C", SandboxTier::C, host.clone()),
        ("tier B", SandboxTier::B, host.clone()),
        ("tier B without process namespaces", SandboxTier::B, no_isolation),
        ("tier B without user namespaces", SandboxTier::B, no_namespaces),
    ]
}

#[test]
fn no_guest_survives_launcher_and_supervisor_killed_together() {
    let host = World::new().host;
    for (name, tier, host) in variants(&host) {
        let world = World::new();
        let program = world.guest("stubborn_survivor");
        let mut grant = world.grant(tier);
        grant.read_only.push(Place::look(&program).unwrap());
        // The next start would clear control groups up; here nothing may be left before it.
        let host = HostFacts { cgroups: Cgroups::None("forbidden by the test".to_owned()), ..host };
        let plan = plan(&grant, &host, &world.invocation(program.to_str().unwrap(), &[])).unwrap();
        let child = world.sandbox.spawn_blocking(&plan, Stdio::default()).unwrap();
        eventually("the tree runs", || world.leftovers().len() >= 7);
        let supervisor = parent_of(child.pid);
        let launcher = parent_of(supervisor);
        signal(supervisor, "STOP");
        signal(launcher, "KILL");
        signal(supervisor, "KILL");
        eventually(&format!("{name}: the tree is dead"), || world.leftovers().is_empty());
    }
}

#[test]
fn what_is_mounted_on_the_host_meanwhile_is_seen() {
    use std::os::unix::fs::MetadataExt as _;
    let world = World::new();
    let root = fs::metadata("/proc/self").unwrap().uid() == 0;
    fs::write(world.workspace.join("below"), "").unwrap();
    // The first leaves a room ready that has the mounts of now.
    assert_eq!(world.run(SandboxTier::C, "ls", &[]).stdout, "below\n");
    thread::sleep(Duration::from_millis(200));
    if !root {
        // Only root can mount; the room that is ready serves.
        assert_eq!(world.run(SandboxTier::C, "ls", &[]).stdout, "below\n");
        return;
    }
    let mounted = Command::new("mount").args(["-t", "tmpfs", "none"]).arg(&world.workspace).status().unwrap();
    assert!(mounted.success());
    fs::write(world.workspace.join("above"), "").unwrap();
    let ran = world.run(SandboxTier::C, "ls", &[]);
    assert!(Command::new("umount").arg("-l").arg(&world.workspace).status().unwrap().success());
    assert_eq!(ran.stdout, "above\n", "{ran:?}");
}

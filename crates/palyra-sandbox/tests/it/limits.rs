//! Guests that take too much, and guests that will not end.

use std::fs;
use std::io::Read as _;
use std::thread;
use std::time::{Duration, Instant};

use palyra_common::SandboxTier;
use palyra_sandbox::{EndCause, Exit, Grant, Limits, Place, Privilege, Stdio, Stream};

use crate::world::{Ran, World};

const MIB: u64 = 1 << 20;
const TIERS: [SandboxTier; 2] = [SandboxTier::B, SandboxTier::C];

fn limited(world: &World, tier: SandboxTier, change: impl FnOnce(&mut Limits)) -> Grant {
    let mut grant = world.grant(tier);
    grant.limits.wall = Duration::from_secs(30);
    change(&mut grant.limits);
    grant
}

fn number(ran: &Ran) -> u64 {
    ran.stdout.split_whitespace().next().and_then(|text| text.parse().ok()).unwrap_or_else(|| panic!("{ran:?}"))
}

#[test]
fn processes_and_threads_are_counted() {
    let world = World::new();
    for tier in TIERS {
        for guest in ["greedy_fork", "greedy_threads"] {
            let ran = world.run_guest(limited(&world, tier, |limits| limits.processes = 20), guest, &[]);
            if ran.report.cause == EndCause::Processes {
                // Only where the kernel cannot count a tree: an ordinary user without user namespaces, tier B.
                let counted = world.host.cgroups.limits_processes() || world.host.user_namespace.works();
                assert!(tier == SandboxTier::B && !counted, "{ran:?}");
                continue;
            }
            let made = number(&ran);
            assert!((10..=20).contains(&made), "{guest} in {tier:?} made {made}: {ran:?}");
        }
    }
    assert_eq!(world.leftovers(), Vec::<String>::new());
}

#[test]
fn a_fork_bomb_ends_with_its_time_and_leaves_nothing() {
    let world = World::new();
    for tier in TIERS {
        let grant = limited(&world, tier, |limits| {
            limits.processes = 60;
            limits.wall = Duration::from_secs(1);
        });
        let ran = world.run_guest(grant, "greedy_fork_bomb", &[]);
        assert!(matches!(ran.report.cause, EndCause::WallClock | EndCause::Cpu | EndCause::Processes), "{ran:?}");
        if world.host.user_namespace.works() || world.host.cgroups.limits_processes() {
            // The kernel counts: the sandbox's own first process is the one more that may be seen.
            assert!(ran.report.usage.processes <= 61, "{tier:?} {ran:?}");
        }
        assert_eq!(world.leftovers(), Vec::<String>::new(), "{tier:?}");
    }
}

#[test]
fn memory_is_limited_for_one_process_and_for_the_tree() {
    let world = World::new();
    for tier in TIERS {
        let ran = world.run_guest(limited(&world, tier, |limits| limits.memory_bytes = 64 * MIB), "greedy_memory", &[]);
        // The kernel kills it, or tells it that there is no more.
        let told = ran.report.exit == Exit::Code(3) && number(&ran) <= 64;
        assert!(ran.report.cause == EndCause::Memory || told, "{tier:?} {ran:?}");
        let ran =
            world.run_guest(limited(&world, tier, |limits| limits.memory_bytes = 96 * MIB), "greedy_memory_tree", &[]);
        assert_eq!(ran.report.cause, EndCause::Memory, "{tier:?} {ran:?}");
        // Sampling sees it a moment late.
        assert!(ran.report.usage.memory_bytes <= 420 * MIB, "{tier:?} {ran:?}");
    }
}

#[test]
fn what_is_written_to_disk_is_limited() {
    let world = World::new();
    for tier in TIERS {
        let grant = limited(&world, tier, |limits| limits.written_bytes = 64 * MIB);
        let ran = world.run_guest(grant, "greedy_disk", &[]);
        assert_eq!(ran.report.cause, EndCause::Disk, "{tier:?} {ran:?}");
        let written: u64 =
            fs::read_dir(&world.workspace).unwrap().map(|file| file.unwrap().metadata().unwrap().len()).sum();
        assert!(written < 1024 * MIB, "{written} bytes were written");
        for file in fs::read_dir(&world.workspace).unwrap() {
            fs::remove_file(file.unwrap().path()).unwrap();
        }
        let grant = limited(&world, tier, |limits| limits.file_bytes = 8 * MIB);
        let ran = world.run_guest(grant, "greedy_file", &[]);
        assert_eq!(ran.report.cause, EndCause::Disk, "{tier:?} {ran:?}");
        assert_eq!(fs::metadata(world.workspace.join("large")).unwrap().len(), 8 * MIB);
        fs::remove_file(world.workspace.join("large")).unwrap();
    }
}

#[test]
fn inotify_instances_are_limited() {
    let world = World::new();
    for tier in TIERS {
        let ran = world.run_guest(limited(&world, tier, |_| {}), "greedy_inotify", &[]);
        // In tier B root's guest has a private id of the host, whose instances nobody else needs.
        let expected = if tier == SandboxTier::B && world.host.privilege == Privilege::Root { 1..1001 } else { 1..17 };
        assert!(expected.contains(&number(&ran)), "{tier:?} {ran:?}");
    }
}

#[test]
fn private_directories_have_a_size() {
    let world = World::new();
    for directory in ["/tmp", "/home/agent", "/dev/shm"] {
        let grant = limited(&world, SandboxTier::C, |limits| limits.scratch_bytes = 16 * MIB);
        let ran = world.run_guest(grant, "greedy_scratch", &[directory]);
        assert_eq!(ran.stdout, format!("{} full\n", 16 * MIB), "{directory} {ran:?}");
    }
    let program = world.guest("greedy_scratch");
    let mut grant = limited(&world, SandboxTier::B, |limits| limits.scratch_bytes = 16 * MIB);
    grant.read_only.push(Place::look(&program).unwrap());
    let script = format!("{} $TMPDIR", program.display());
    let ran = world.run_with(&grant, &world.invocation("sh", &["-c", &script]), "").unwrap();
    // One page has the default git configuration, where the directory has a size at all.
    assert_eq!(ran.stdout, format!("{} full\n", 16 * MIB - 4096), "{ran:?}");
    let ran = world.run_guest(limited(&world, SandboxTier::C, |_| {}), "greedy_inodes", &[]);
    assert!(number(&ran) < 140_000, "{ran:?}");
}

#[test]
fn processor_time_is_limited_for_the_tree() {
    let world = World::new();
    for tier in TIERS {
        let grant = limited(&world, tier, |limits| limits.cpu = Duration::from_secs(1));
        let ran = world.run_guest(grant, "greedy_cpu", &[]);
        assert_eq!(ran.report.cause, EndCause::Cpu, "{tier:?} {ran:?}");
        assert!(ran.report.usage.cpu >= Duration::from_millis(500), "{ran:?}");
    }
}

#[test]
fn open_files_are_counted() {
    let world = World::new();
    for tier in TIERS {
        let ran = world.run_guest(limited(&world, tier, |limits| limits.open_files = 40), "greedy_descriptors", &[]);
        assert_eq!(ran.stdout, "37\n", "{tier:?} {ran:?}");
    }
}

#[test]
fn endless_output_stops_when_nobody_wants_more() {
    let world = World::new();
    let program = world.guest("greedy_output");
    for tier in TIERS {
        let mut grant = limited(&world, tier, |_| {});
        grant.read_only.push(Place::look(&program).unwrap());
        let plan = world.plan(&grant, &world.invocation(program.to_str().unwrap(), &[]));
        let stdio = Stdio { stdin: Stream::Null, stdout: Stream::Pipe, stderr: Stream::Null };
        let mut child = world.sandbox.spawn_blocking(&plan, stdio).unwrap();
        let mut output = fs::File::from(child.stdout.take().unwrap());
        let mut bytes = vec![0; 4 << 20];
        output.read_exact(&mut bytes).unwrap();
        child.kill();
        let report = child.wait_blocking().unwrap();
        assert_eq!((report.exit, report.cause), (Exit::Signal(9), EndCause::Killed));
    }
}

#[test]
fn stopped_and_stubborn_processes_end_with_their_time() {
    let world = World::new();
    for tier in TIERS {
        for guest in ["stubborn_stop", "stubborn_timeout"] {
            let grant = limited(&world, tier, |limits| limits.wall = Duration::from_millis(500));
            let ran = world.run_guest(grant, guest, &[]);
            assert_eq!(ran.report.cause, EndCause::WallClock, "{guest} {tier:?} {ran:?}");
            assert_eq!(ran.report.exit, Exit::Signal(9), "{guest} {tier:?} {ran:?}");
            assert_eq!(world.leftovers(), Vec::<String>::new());
        }
        // What it said before is there.
        let grant = limited(&world, tier, |limits| limits.wall = Duration::from_millis(500));
        assert_eq!(world.run_guest(grant, "stubborn_timeout", &[]).stdout, "waiting\n");
    }
}

#[test]
fn what_a_process_leaves_behind_dies_with_it() {
    let world = World::new();
    for tier in TIERS {
        let began = Instant::now();
        let ran = world.run_guest(limited(&world, tier, |_| {}), "stubborn_holder", &[]);
        assert_eq!((ran.report.exit, ran.stdout.as_str()), (Exit::Code(5), "first\n"), "{tier:?}");
        assert!(began.elapsed() < Duration::from_secs(25), "the pipe was held open");
        let ran = world.run_guest(limited(&world, tier, |_| {}), "stubborn_daemon", &[]);
        assert_eq!((ran.report.exit, ran.stdout.as_str()), (Exit::Code(0), "gone\n"), "{tier:?}");
        thread::sleep(Duration::from_millis(1000));
        assert!(!world.workspace.join("late").exists(), "a daemonised process lived on in {tier:?}");
        let ran = world.run_guest(limited(&world, tier, |limits| limits.processes = 120), "stubborn_zombies", &[]);
        assert_eq!(ran.stdout, "done\n", "{tier:?} {ran:?}");
        assert_eq!(world.leftovers(), Vec::<String>::new());
    }
}

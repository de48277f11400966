//! Limits on a host where no control group counts anything.
//!
//! Root's tests have control groups on most hosts, which would hide that the supervisor counts wrong; so these plan without.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::time::Duration;

use palyra_common::SandboxTier;
use palyra_sandbox::{Cgroups, EndCause, Exit, Grant, Limits};

use crate::world::{Ran, World};

const MIB: u64 = 1 << 20;
const TIERS: [SandboxTier; 2] = [SandboxTier::B, SandboxTier::C];

fn world() -> World {
    let mut world = World::new();
    world.host.cgroups = Cgroups::None("forbidden by the test".to_owned());
    world
}

fn limited(world: &World, tier: SandboxTier, change: impl FnOnce(&mut Limits)) -> Grant {
    let mut grant = world.grant(tier);
    grant.limits.wall = Duration::from_secs(60);
    change(&mut grant.limits);
    grant
}

fn run_with_memory(world: &World, tier: SandboxTier, guest: &str, arguments: &[&str]) -> Ran {
    let grant = limited(world, tier, |limits| {
        limits.memory_bytes = 96 * MIB;
        limits.scratch_bytes = 512 * MIB;
    });
    world.run_guest(grant, guest, arguments)
}

#[test]
fn shared_memory_counts() {
    let world = world();
    for tier in TIERS {
        for guest in ["greedy_memory", "greedy_memory_tree", "greedy_shared"] {
            let ran = run_with_memory(&world, tier, guest, &[]);
            assert_eq!(ran.report.cause, EndCause::Memory, "{guest} in {tier:?} {ran:?}");
        }
    }
}

#[test]
fn memory_of_no_process_counts() {
    let world = world();
    for directory in ["/tmp", "/home/agent", "/dev/shm"] {
        let ran = run_with_memory(&world, SandboxTier::C, "greedy_scratch", &[directory]);
        assert_eq!(ran.report.cause, EndCause::Memory, "{directory} {ran:?}");
    }
    let ran = run_with_memory(&world, SandboxTier::C, "greedy_segments", &[]);
    assert_eq!(ran.report.cause, EndCause::Memory, "{ran:?}");
    // Tier B has no segments at all.
    let ran = run_with_memory(&world, SandboxTier::B, "greedy_segments", &[]);
    assert_eq!((ran.report.exit, ran.stdout.as_str()), (Exit::Code(3), "0\n"), "{ran:?}");
}

#[test]
fn files_in_memory_count_wherever_their_descriptors_are() {
    let world = world();
    for how in ["queue", "map", "open", "name"] {
        let ran = run_with_memory(&world, SandboxTier::C, "greedy_memory_files", &[how]);
        assert_eq!(ran.report.cause, EndCause::Memory, "{how} {ran:?}");
        // Sampling sees it a moment late.
        assert!(ran.report.usage.memory_bytes <= 420 * MIB, "{how} {ran:?}");
    }
    let ran = run_with_memory(&world, SandboxTier::B, "greedy_memory_files", &[]);
    assert_eq!((ran.report.exit, ran.stdout.as_str()), (Exit::Code(3), "0\n"), "{ran:?}");
}

#[test]
fn files_in_memory_behave_like_the_kernels_own() {
    let ran = run_with_memory(&world(), SandboxTier::C, "greedy_honest_files", &[]);
    assert_eq!(ran.stdout, "written through a mapping\n0 1 -1\n", "{ran:?}");
    assert_eq!(ran.report.cause, EndCause::Finished, "{ran:?}");
}

#[test]
fn a_guest_that_is_killed_while_it_makes_files_leaves_nothing() {
    let world = world();
    let script = "import os, threading\ndef make():\n    while True: os.close(os.memfd_create('x'))\nfor _ in range(4): threading.Thread(target=make).start()\n";
    let grant = limited(&world, SandboxTier::C, |limits| limits.wall = Duration::from_secs(1));
    for _ in 0..3 {
        let ran = world.run_with(&grant, &world.invocation("/usr/bin/python3", &["-c", script]), "").unwrap();
        assert_eq!(ran.report.cause, EndCause::WallClock, "{ran:?}");
    }
    // Callers that die in the middle of a call while others live on.
    let script = "import os, signal, time\nfor _ in range(50):\n    pid = os.fork()\n    if pid == 0:\n        while True: os.close(os.memfd_create('x'))\n    time.sleep(0.002); os.kill(pid, signal.SIGKILL); os.wait()\nos.write(os.memfd_create('x'), b'x'); print('done')\n";
    let grant = limited(&world, SandboxTier::C, |_| {});
    let ran = world.run_with(&grant, &world.invocation("/usr/bin/python3", &["-c", script]), "").unwrap();
    assert_eq!((ran.report.cause, ran.stdout.as_str()), (EndCause::Finished, "done\n"), "{ran:?}");
    assert_eq!(world.leftovers(), Vec::<String>::new());
}

#[test]
fn memory_that_processes_share_is_counted_once() {
    let world = world();
    // Eight processes with the same 24 MiB, copied by none of them, and the same shared 24 MiB.
    let script = "import mmap, os, time\ndata = b'x' * (24 << 20)\nshared = mmap.mmap(-1, 24 << 20)\nshared[:] = data\nfor _ in range(8):\n    if os.fork() == 0:\n        sum(shared[at] for at in range(0, 24 << 20, 4096)); time.sleep(1); os._exit(0)\nfor _ in range(8): os.wait()\nprint('done')\n";
    for tier in TIERS {
        let grant = limited(&world, tier, |limits| limits.memory_bytes = 192 * MIB);
        let ran = world.run_with(&grant, &world.invocation("/usr/bin/python3", &["-c", script]), "").unwrap();
        assert_eq!((ran.report.cause, ran.stdout.as_str()), (EndCause::Finished, "done\n"), "{tier:?} {ran:?}");
    }
}

fn blocks(world: &World) -> u64 {
    fs::read_dir(&world.workspace).unwrap().map(|file| file.unwrap().metadata().unwrap().blocks() * 512).sum()
}

#[test]
fn blocks_are_not_allocated_ahead() {
    for tier in TIERS {
        let world = world();
        let ran = world.run_guest(limited(&world, tier, |_| {}), "greedy_blocks", &[]);
        assert_eq!(ran.stdout, "0 freed\n", "{tier:?} {ran:?}");
        assert!(blocks(&world) < MIB, "{tier:?}: {}", blocks(&world));
    }
}

#[test]
fn what_nobody_waits_for_is_written_all_the_same() {
    for tier in TIERS {
        let world = world();
        let grant = limited(&world, tier, |limits| limits.written_bytes = 64 * MIB);
        let ran = world.run_guest(grant, "greedy_unwaited", &[]);
        assert_eq!(ran.report.cause, EndCause::Disk, "{tier:?} {ran:?}");
        assert!(blocks(&world) < 1024 * MIB, "{tier:?}: {}", blocks(&world));
    }
}

//! The shortest path through everything: start a program, see what it says, see how it ended.

use palyra_common::SandboxTier;
use palyra_sandbox::{EndCause, Exit, explain, prove};

use crate::world::World;

#[test]
fn a_program_runs_and_says_who_it_is() {
    let world = World::new();
    for tier in [SandboxTier::B, SandboxTier::C] {
        let ran = world.run(tier, "sh", &["-c", "id -u; pwd; echo to-stderr >&2; exit 7"]);
        assert_eq!(ran.report.exit, Exit::Code(7), "{ran:?}");
        assert_eq!(ran.report.cause, EndCause::Finished);
        assert!(ran.stdout.ends_with(&format!("{}\n", world.workspace.display())), "{ran:?}");
        assert_eq!(ran.stderr, "to-stderr\n");
    }
}

#[test]
fn the_built_in_battery_holds() {
    let world = World::new();
    println!("{}", explain(&world.host));
    for tier in [SandboxTier::B, SandboxTier::C] {
        let report = prove(&world.sandbox, &world.host, tier, world.directory.path()).unwrap();
        report.require().unwrap();
        assert!(report.checks.len() > 45, "{} checks", report.checks.len());
    }
}

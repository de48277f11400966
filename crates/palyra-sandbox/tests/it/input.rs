//! Bad input: a clear error with a stable code, and nothing started.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use palyra_common::{SandboxTier, ToStableError as _};
use palyra_sandbox::{
    Ability, Access, Fallback, Grant, HostFacts, Invocation, Network, Place, ProxyPorts, SandboxError, Share, plan,
};

use crate::world::{World, executable};

const TIERS: [SandboxTier; 2] = [SandboxTier::B, SandboxTier::C];

/// The code of the error, having made sure that nothing was left behind.
fn refused(world: &World, grant: &Grant, invocation: &Invocation) -> String {
    let error = world.run_with(grant, invocation, "").expect_err("it was started");
    assert!(!world.workspace.join("ran").exists(), "something ran");
    assert_eq!(world.leftovers(), Vec::<String>::new());
    let scratch = world.path(&format!("palyra-sandbox-{}", invocation.id));
    assert!(!scratch.exists(), "a scratch directory was left");
    error.to_stable().code
}

#[test]
fn a_program_that_cannot_be_executed() {
    let world = World::new();
    executable(&world.workspace.join("script"), "#!/nonexistent/interpreter\ntouch ran\n");
    executable(&world.workspace.join("garbage"), "\u{1}\u{2}\u{3}");
    fs::write(world.workspace.join("plain"), "#!/bin/sh\ntouch ran\n").unwrap();
    let cases = [
        ("no-such-program", "sandbox_program_not_found"),
        ("/no/such/program", "sandbox_program_not_found"),
        ("./nothing", "sandbox_program_not_found"),
        ("./plain", "sandbox_program_not_executable"),
        ("./script", "sandbox_program_not_executable"),
        ("./garbage", "sandbox_program_not_executable"),
        ("/tmp", "sandbox_program_not_executable"),
    ];
    for tier in TIERS {
        for (program, code) in cases {
            let invocation = world.invocation(program, &[]);
            assert_eq!(refused(&world, &world.grant(tier), &invocation), code, "{program} in {tier:?}");
        }
    }
}

#[test]
fn a_working_directory_that_is_gone_or_elsewhere() {
    let world = World::new();
    let gone = world.workspace.join("gone");
    let file = world.workspace.join("file");
    fs::write(&file, "").unwrap();
    std::os::unix::fs::symlink("/etc", world.workspace.join("etc")).unwrap();
    for tier in TIERS {
        let at = |path: &std::path::Path| {
            let mut invocation = world.invocation("touch", &["ran"]);
            invocation.working_directory = path.to_owned();
            refused(&world, &world.grant(tier), &invocation)
        };
        assert_eq!(at(&gone), "sandbox_cwd_unusable");
        assert_eq!(at(&file), "sandbox_cwd_unusable");
        assert_eq!(at(world.directory.path()), "sandbox_cwd_outside");
        assert_eq!(at(&world.workspace.join("../")), "sandbox_cwd_outside");
        assert_eq!(at(std::path::Path::new("relative")), "sandbox_cwd_outside");
    }
    // Through a link it is entered, and there is nothing to be had.
    let mut invocation = world.invocation("cat", &["shadow"]);
    invocation.working_directory = world.workspace.join("etc");
    for tier in TIERS {
        let ran = world.run_with(&world.grant(tier), &invocation, "").unwrap();
        assert!(!ran.report.exit.success(), "{ran:?}");
        invocation.id.push('x');
    }
}

#[test]
fn arguments_that_no_program_can_take() {
    let world = World::new();
    for tier in TIERS {
        let grant = world.grant(tier);
        let long = "x".repeat(200_000);
        assert_eq!(refused(&world, &grant, &world.invocation("touch", &["ran", &long])), "sandbox_arguments_too_long");
        let medium = "x".repeat(100_000);
        let many: Vec<&str> = std::iter::once("ran").chain(std::iter::repeat_n(medium.as_str(), 15)).collect();
        assert_eq!(refused(&world, &grant, &world.invocation("touch", &many)), "sandbox_arguments_too_long");
        assert_eq!(refused(&world, &grant, &world.invocation("touch", &["ran", "a\0b"])), "sandbox_argument_invalid");
        assert_eq!(refused(&world, &grant, &world.invocation("tou\0ch", &["ran"])), "sandbox_argument_invalid");
        assert_eq!(refused(&world, &grant, &world.invocation("", &["ran"])), "sandbox_argument_invalid");
        let mut invocation = world.invocation("touch", &["ran"]);
        invocation.id = "../escape".to_owned();
        assert_eq!(refused(&world, &grant, &invocation), "sandbox_argument_invalid");
    }
    // What just fits goes through.
    let most = "x".repeat(131_000);
    let ran = world.run(SandboxTier::C, "sh", &["-c", "printf %s \"$1\" | wc -c", "sh", &most]);
    assert_eq!(ran.stdout.trim(), "131000", "{ran:?}");
}

#[test]
fn variables_that_were_not_granted() {
    let world = World::new();
    for tier in TIERS {
        let mut grant = world.grant(tier);
        grant.environment.push("GREETING".to_owned());
        let mut invocation = world.invocation("sh", &["-c", "echo $GREETING"]);
        invocation.environment = vec![("LD_PRELOAD".to_owned(), "/evil.so".to_owned())];
        assert_eq!(refused(&world, &grant, &invocation), "sandbox_variable_not_granted");
        invocation.environment = vec![("A=B".to_owned(), String::new())];
        assert_eq!(refused(&world, &grant, &invocation), "sandbox_argument_invalid");
        invocation.environment = vec![("GREETING".to_owned(), "hello".to_owned())];
        assert_eq!(world.run_with(&grant, &invocation, "").unwrap().stdout, "hello\n");
    }
}

#[test]
fn limits_of_zero() {
    let world = World::new();
    let changes: [fn(&mut Grant); 8] = [
        |grant| grant.limits.cpu = Duration::ZERO,
        |grant| grant.limits.wall = Duration::ZERO,
        |grant| grant.limits.memory_bytes = 0,
        |grant| grant.limits.processes = 0,
        |grant| grant.limits.open_files = 0,
        |grant| grant.limits.file_bytes = 0,
        |grant| grant.limits.written_bytes = 0,
        |grant| grant.limits.scratch_bytes = 0,
    ];
    for change in changes {
        let mut grant = world.grant(SandboxTier::C);
        change(&mut grant);
        assert_eq!(refused(&world, &grant, &world.invocation("touch", &["ran"])), "sandbox_limit_zero");
    }
}

#[test]
fn shares_that_would_open_the_system() {
    let world = World::new();
    for path in ["/", "/usr", "/tmp", "/home", "/etc", "/proc/self", "/dev", "/sys/kernel"] {
        let Ok(place) = Place::look(std::path::Path::new(path)) else { continue };
        let mut grant = world.grant(SandboxTier::C);
        grant.workspace = Share { place: place.clone(), access: Access::ReadWrite };
        let mut invocation = world.invocation("touch", &["ran"]);
        invocation.working_directory.clone_from(&place.path);
        assert_eq!(refused(&world, &grant, &invocation), "sandbox_place_reserved", "{path}");
    }
    assert!(matches!(Place::look(&world.path("missing")), Err(SandboxError::PlaceUnusable { .. })));
    assert!(matches!(Place::look(std::path::Path::new("/dev/null")), Err(SandboxError::PlaceUnusable { .. })));
}

#[test]
fn a_share_that_was_swapped_for_a_link_is_refused() {
    let world = World::new();
    let place = world.path("shared");
    fs::create_dir(&place).unwrap();
    let mut grant = world.grant(SandboxTier::C);
    grant.read_only.push(Place::look(&place).unwrap());
    fs::remove_dir(&place).unwrap();
    std::os::unix::fs::symlink("/etc", &place).unwrap();
    assert_eq!(refused(&world, &grant, &world.invocation("touch", &["ran"])), "sandbox_setup_failed");
}

#[test]
fn a_host_that_cannot_give_the_tier() {
    let world = World::new();
    let invocation = world.invocation("touch", &["ran"]);
    let code = |grant: &Grant, host: &HostFacts| {
        plan(grant, host, &invocation).map(|plan| plan.tier()).map_err(|error| error.to_stable().code)
    };
    let mut host = world.host.clone();
    host.landlock = 0;
    for tier in TIERS {
        assert_eq!(code(&world.grant(tier), &host), Err("sandbox_tier_unavailable".to_owned()));
    }
    let mut host = world.host.clone();
    host.user_namespace = Ability::Fails("forbidden".to_owned());
    let mut grant = world.grant(SandboxTier::C);
    assert_eq!(code(&grant, &host), Err("sandbox_tier_unavailable".to_owned()));
    grant.fallback = Fallback::TierB;
    assert_eq!(code(&grant, &host), Ok(SandboxTier::B));
    assert_eq!(code(&grant, &world.host), Ok(SandboxTier::C));
    host.landlock = 3;
    grant.network = Network::Proxy(ProxyPorts::default());
    assert_eq!(code(&grant, &host), Err("sandbox_network_unavailable".to_owned()));
    grant.tier = SandboxTier::A;
    assert_eq!(code(&grant, &world.host), Err("sandbox_tier_invalid".to_owned()));
}

#[test]
fn a_workspace_that_the_guest_may_only_read() {
    let world = World::new();
    fs::write(world.workspace.join("file"), "content").unwrap();
    fs::set_permissions(world.workspace.join("file"), fs::Permissions::from_mode(0o600)).unwrap();
    for tier in TIERS {
        let mut grant = world.grant(tier);
        grant.workspace.access = Access::ReadOnly;
        let ran = world
            .run_with(
                &grant,
                &world.invocation("sh", &["-c", "cat file; touch ran || chmod 777 file || echo x > file"]),
                "",
            )
            .unwrap();
        assert_eq!(ran.stdout, "content", "{tier:?} {ran:?}");
        assert!(!world.workspace.join("ran").exists());
        assert_eq!(fs::read_to_string(world.workspace.join("file")).unwrap(), "content");
    }
}

//! Starting the daemon: missing, broken, dying, found.

use crate::support::{FakeDaemon, Place, Story};

#[test]
fn a_missing_daemon_program_is_named() {
    let place = Place::new();
    let ran = place.run(&["run", "x"]);
    assert_eq!(ran.code, 7, "{ran:?}");
    assert!(ran.err.contains("[daemon_not_installed]"), "{}", ran.err);
}

#[test]
fn a_daemon_that_dies_shows_its_last_words_and_its_exit_code() {
    let place = Place::new();
    place.install_daemon("echo old; for i in 1 2 3; do echo line $i; done; echo 'error: no luck' >&2; exit 3");
    let ran = place.run(&["daemon", "start"]);
    assert_eq!(ran.code, 3, "{ran:?}");
    assert!(ran.err.contains("  palyrad: line 3\n  palyrad: error: no luck\n"), "{}", ran.err);
    assert!(ran.err.contains("it exited at once (exit status: 3) [daemon_start_failed]"), "{}", ran.err);
    let logs = place.run(&["daemon", "logs", "-n", "1"]);
    assert_eq!(logs.out, "error: no luck\n");
    let json = place.run(&["daemon", "start", "--output", "json"]).json();
    assert_eq!(json["error"]["details"]["log"][0], "old");
}

#[test]
fn the_daemon_gets_a_session_of_its_own_and_the_state_root() {
    let place = Place::new();
    // Field 6 of stat is the session; the daemon must lead it.
    place.install_daemon("echo $PALYRA_STATE_ROOT; cut -d' ' -f1,6 /proc/$$/stat; exit 3");
    place.run(&["daemon", "start"]);
    let log = std::fs::read_to_string(place.path("state/logs/palyrad.log")).unwrap();
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], place.path("state").to_str().unwrap());
    let (pid, session) = lines[1].split_once(' ').unwrap();
    assert_eq!(pid, session);
}

#[test]
fn the_daemon_inherits_nothing_that_the_caller_had_open() {
    let place = Place::new();
    place.install_daemon("for descriptor in /proc/self/fd/*; do readlink $descriptor; done; exit 3");
    let (held, program) = (place.path("held"), place.path("bin/palyra"));
    let described = place.command(&[]);
    let mut shell = std::process::Command::new("sh");
    shell.args(["-c", &format!("exec 9>{}; {} daemon start", held.display(), program.display())]);
    shell.env_clear().envs(described.get_envs().filter_map(|(name, value)| Some((name, value?))));
    shell.output().unwrap();
    let log = std::fs::read_to_string(place.path("state/logs/palyrad.log")).unwrap();
    assert!(held.exists() && log.contains("/dev/null") && !log.contains("held"), "{log}");
}

#[test]
fn a_daemon_that_runs_is_used_and_can_be_stopped() {
    let place = Place::new();
    place.install_daemon("touch \"$PALYRA_STATE_ROOT/started\"");
    let _daemon = FakeDaemon::start(&place, Story::Completes);
    let ran = place.run(&["daemon", "start"]);
    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.err.contains("already running"), "{}", ran.err);
    assert!(ran.out.contains("model     offline (offline)\n          no model is configured\n"), "{}", ran.out);
    assert!(ran.out.contains("journal   ok: 7 records\n"), "{}", ran.out);
    assert!(!place.path("state/started").exists());
    let stopped = place.run(&["daemon", "stop"]);
    assert_eq!(stopped.code, 0, "{stopped:?}");
    assert!(stopped.out.ends_with("; 1 unfinished run kept for the next start\n"), "{}", stopped.out);
}

#[test]
fn a_daemon_that_is_named_is_never_started() {
    use std::os::unix::fs::PermissionsExt as _;

    let place = Place::new();
    place.install_daemon("touch \"$PALYRA_STATE_ROOT/started\"");
    let token = place.path("state/local.token");
    std::fs::create_dir_all(place.path("state")).unwrap();
    std::fs::write(&token, "secret\n").unwrap();
    std::fs::set_permissions(&token, std::fs::Permissions::from_mode(0o600)).unwrap();
    // Nobody listens there: the port was free a moment ago.
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for command in [&["run", "x"][..], &["runs", "list"], &["daemon", "start"]] {
        let ran = place.run(&[&["--endpoint", &format!("http://{free}")][..], command].concat());
        assert_eq!(ran.code, 4, "{ran:?}");
        assert!(ran.err.contains(&format!("no daemon answers at `http://{free}` [daemon_unreachable]")), "{}", ran.err);
    }
    assert!(!place.path("state/started").exists());
    for address in ["ftp://127.0.0.1:1", "http://agents.example:80", "agents.example"] {
        let ran = place.run(&["runs", "list", "--endpoint", address]);
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(ran.err.contains("[daemon_address_invalid]"), "{}", ran.err);
    }
    let without = place.run(&["runs", "list", "--endpoint", "https://agents.example"]);
    assert!(without.err.contains("PALYRA_TOKEN") && without.err.contains("[secret_missing]"), "{}", without.err);
    let file = format!("file:{}", token.display());
    let ran = place.run(&[
        "runs",
        "list",
        "--endpoint",
        "https://agents.example",
        "--token",
        &file,
        "--ca-file",
        "/nonexistent.pem",
    ]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.err.contains("[trust_unusable]"), "{}", ran.err);
}

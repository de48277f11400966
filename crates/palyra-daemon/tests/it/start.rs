//! Starts that must fail, each with one clear line, and starts that must not.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use crate::support::Place;

/// Exit code, and the error line after checking that there is nothing but it and a hint.
fn line(output: &Output) -> (i32, String) {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert!(lines[0].starts_with("error: "), "{text}");
    assert!(lines[1].starts_with("hint: "), "{text}");
    assert!(output.stdout.is_empty());
    (output.status.code().unwrap(), lines[0].to_owned())
}

#[tokio::test]
async fn a_second_daemon_on_the_same_state_is_refused() {
    let place = Place::new();
    let daemon = place.start().await;
    let (code, line) = line(&place.refused());
    assert_eq!(code, 7, "{line}");
    assert!(line.ends_with("[state_in_use]"), "{line}");
    assert!(line.contains(&format!("process {}", daemon.pid())), "{line}");
    // The first one does not notice.
    assert_eq!(daemon.client.health().await.unwrap().pid, daemon.pid());
    assert!(daemon.state_root.join("palyrad.sock").exists());
}

#[tokio::test]
async fn a_wrong_configuration_is_refused_before_anything_is_made() {
    let place = Place::new();
    let path = place.path().join("palyra.toml");
    let place = place.with("PALYRA_CONFIG", &path.display().to_string());
    for (text, expected) in [
        ("version = 1\n[run]\nmax_turn = 3\n", "[config_unknown_key]"),
        ("version = 1\n[run]\nmax_turns = \"many\"\n", "[config_wrong_type]"),
        ("version = 1\n[run\n", "[config_invalid]"),
    ] {
        std::fs::write(&path, text).unwrap();
        let (code, line) = line(&place.refused());
        assert_eq!(code, 2, "{line}");
        assert!(line.ends_with(expected), "{line}");
    }
    let (code, line) = line(&Place::new().with("PALYRA_DAEMON_HTTP_BIND", "0.0.0.0:0").refused());
    assert!(line.ends_with("[public_bind_refused]"), "{line}");
    assert_eq!(code, 2);
    assert!(!place.state_root().exists());
}

#[tokio::test]
async fn a_state_root_that_cannot_be_one_is_refused() {
    let place = Place::new();
    std::fs::write(place.state_root(), "a file").unwrap();
    let (code, message) = line(&place.refused());
    assert_eq!(code, 7);
    assert!(message.ends_with("[state_file_unusable]"), "{message}");

    let place = Place::new();
    std::fs::create_dir(place.state_root()).unwrap();
    std::fs::set_permissions(place.state_root(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let (code, message) = line(&place.refused());
    assert_eq!(code, 6);
    assert!(message.ends_with("[state_root_exposed]"), "{message}");
}

#[tokio::test]
async fn arguments_are_stronger_than_the_environment() {
    let place = Place::new();
    let file = place.path().join("a file");
    std::fs::write(&file, "version = 1\n").unwrap();
    let run = |arguments: [&std::ffi::OsStr; 2]| line(&place.command().args(arguments).output().unwrap());
    let (code, message) = run(["--state-root".as_ref(), file.as_ref()]);
    assert!(code == 7 && message.ends_with("[state_file_unusable]"), "{message}");
    let (code, message) = run(["--config".as_ref(), "nowhere.toml".as_ref()]);
    assert!(code == 2 && message.ends_with("[config_missing]"), "{message}");
    assert!(!place.state_root().exists());
}

#[tokio::test]
async fn a_key_that_cannot_be_had_is_refused() {
    let place = Place::new().with("PALYRA_MODEL_API_KEY", "env:NO_SUCH_KEY");
    let (code, message) = line(&place.refused());
    assert_eq!(code, 2, "{message}");
    assert!(message.contains("NO_SUCH_KEY"), "{message}");
    // Where no key is needed, none is missed.
    let place = place.with("PALYRA_MODEL_PROVIDER", "offline");
    place.start().await;
}

#[tokio::test]
async fn version_and_help_need_no_state() {
    let place = Place::new();
    let output = place.command().arg("--version").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with(&format!("palyrad {}", env!("CARGO_PKG_VERSION"))), "{text}");
    let output = place.command().arg("--help").output().unwrap();
    assert!(output.status.success());
    assert!(String::from_utf8(output.stdout).unwrap().contains("--state-root"));
    for (arguments, message) in [
        (&["--nonsense"][..], "unexpected argument `--nonsense` found [command_line_invalid]"),
        (&["extra"], "unexpected argument `extra` found [command_line_invalid]"),
        (&["--config"], "a value is required for `--config <FILE>` but none was supplied [command_line_invalid]"),
    ] {
        let output = place.command().args(arguments).output().unwrap();
        assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
        let told = String::from_utf8(output.stderr).unwrap();
        let lines: Vec<&str> = told.lines().collect();
        assert!(lines.len() == 2 && lines[0].ends_with(message) && lines[1].contains("--state-root DIR"), "{told}");
    }
    assert!(!place.state_root().exists());
}

#[tokio::test]
async fn what_a_killed_daemon_left_behind_is_no_obstacle() {
    let place = Place::new();
    let first = place.start().await;
    let token = first.token();
    first.kill();
    assert!(place.state_root().join("palyrad.sock").exists());
    let second = place.start().await;
    assert_eq!(second.client.health().await.unwrap().pid, second.pid());
    assert_eq!(second.token(), token, "clients keep their token over a restart");
}

#[tokio::test]
async fn a_deep_state_root_is_reached_too() {
    let place = Place::new();
    let deep = place.path().join("d".repeat(60)).join("e".repeat(60));
    let place = place.with("PALYRA_STATE_ROOT", &deep.display().to_string());
    let mut child = place.command().stderr(std::process::Stdio::null()).spawn().unwrap();
    let client = palyra_client::Client::new(palyra_client::Endpoint::unix(deep));
    let mut tries = 0;
    while client.health().await.is_err() {
        tries += 1;
        assert!(tries < 3000 && child.try_wait().unwrap().is_none());
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert_eq!(client.health().await.unwrap().pid, child.id());
    child.kill().unwrap();
    child.wait().unwrap();
}

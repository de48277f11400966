use palyra_common::{SecretRef, SecretResolver as _, ToStableError as _};

use super::*;
use crate::DaemonSecrets;

fn environment() -> Environment {
    Environment::from_pairs([("PATH", "/usr/bin:/bin"), ("HELD", "s3cret")]).in_directory("/")
}

fn run(line: &str) -> Result<SecretString, SecretError> {
    secret_of_command(line, &environment(), CommandLimits::default())
}

fn refused(line: &str, limits: CommandLimits) -> String {
    let error = secret_of_command(line, &environment(), limits).unwrap_err();
    assert_eq!(error.to_stable().code, "secret_command_failed", "{line}");
    error.to_string()
}

#[test]
fn what_a_command_prints_is_the_secret() {
    assert_eq!(run("printf '  s3cret value\\n\\n'").unwrap().expose(), "s3cret value");
    assert_eq!(run("sh -c 'printf %s \"$HELD\"'").unwrap().expose(), "s3cret", "the environment is the daemon's");
    assert_eq!(run("sh -c 'echo whispered >&2; echo s3cret'").unwrap().expose(), "s3cret");
    assert_eq!(
        run("cat").unwrap_err().to_string(),
        "the command `cat` that a secret refers to failed: it printed nothing"
    );
}

#[test]
fn no_shell_reads_the_line() {
    assert_eq!(run("echo a; echo b").unwrap().expose(), "a; echo b");
    assert_eq!(run("echo $HELD `id` *").unwrap().expose(), "$HELD `id` *");
}

#[test]
fn what_fails_says_so_and_nothing_of_what_was_printed() {
    let usual = CommandLimits::default();
    for (line, reason) in [
        ("sh -c 'echo half-a-s3cret; echo more-s3cret >&2; exit 3'", "it exited with exit status: 3"),
        ("sh -c 'echo s3cret; kill -9 $$'", "it exited with signal: 9"),
        ("/nonexistent/s3cret-manager get it", "it cannot be started"),
        ("echo 'never closed s3cret", "its quotes are unbalanced"),
        ("''", "its quotes are unbalanced, or it is empty"),
        ("printf '\\377\\376'", "is not valid UTF-8"),
        ("true", "it printed nothing"),
    ] {
        let shown = refused(line, usual);
        assert!(shown.contains(reason), "{line}: {shown}");
        let told = shown.replace("s3cret-manager", "");
        assert!(!told.contains("s3cret"), "{line}: {shown}");
    }
}

#[test]
fn one_that_prints_without_end_is_stopped() {
    let limits = CommandLimits { time: Duration::from_secs(2), bytes: 1000 };
    assert!(refused("yes s3cret", limits).contains("more than 1000 bytes"));
    let quiet = CommandLimits { time: Duration::from_millis(500), bytes: 1000 };
    assert!(refused("sh -c 'echo s3cret; exec >&-; sleep 600'", quiet).contains("it did not exit in time"));
    let exactly = CommandLimits { bytes: 6, ..CommandLimits::default() };
    assert_eq!(secret_of_command("printf s3cret", &environment(), exactly).unwrap().expose(), "s3cret");
    assert!(refused("printf s3cret7", exactly).contains("more than 6 bytes"));
}

#[test]
fn one_that_takes_too_long_is_ended_with_all_that_it_started() {
    let directory = tempfile::tempdir().unwrap();
    let note = directory.path().join("child");
    // The shell waits for a child of its own, which notes its number first.
    let line = format!("sh -c 'sh -c \"echo \\$\\$ > {}; exec sleep 600\" & wait'", note.display());
    let limits = CommandLimits { time: Duration::from_millis(1500), bytes: 1000 };
    assert!(refused(&line, limits).contains("it took longer than 1.5 s"));
    let child: i32 = std::fs::read_to_string(&note).unwrap().trim().parse().unwrap();
    let is_gone = || match std::fs::read_to_string(format!("/proc/{child}/stat")) {
        // Nobody may have reaped it where the tests run without an init.
        Ok(stat) => stat.contains(") Z "),
        Err(_) => true,
    };
    let patience = Instant::now() + Duration::from_secs(10);
    while !is_gone() && Instant::now() < patience {
        std::thread::sleep(LOOK_AGAIN);
    }
    assert!(is_gone());
}

#[test]
fn one_resolver_reads_all_kinds_but_the_vault() {
    let secrets = DaemonSecrets::new(environment());
    let read = |text: &str| secrets.resolve(&text.parse::<SecretRef>().unwrap());
    assert_eq!(read("env:HELD").unwrap().expose(), "s3cret");
    assert_eq!(read("exec:printf s3cret").unwrap().expose(), "s3cret");
    assert_eq!(read("vault:global/key").unwrap_err().to_stable().code, "unsupported_secret_reference");
    assert_eq!(
        environment().resolve(&"exec:printf s3cret".parse().unwrap()).unwrap_err().to_stable().code,
        "unsupported_secret_reference"
    );
}

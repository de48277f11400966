//! Hands the facts of `build_info.rs` to the compiler.
//!
//! A missing `git` or repository is no error. Debug builds do not look for a commit at all: they would be compiled again,
//! with everything above them, after each commit. A packager without a repository sets `PALYRA_BUILD_COMMIT`.

use std::env;
use std::path::Path;
use std::process::Command;

fn main() {
    // Naming these turns off the default of looking at every file of the package.
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=PALYRA_BUILD_COMMIT");
    println!("cargo::rustc-env=PALYRA_BUILD_TARGET={}", env::var("TARGET").unwrap_or_else(|_| "unknown".to_owned()));
    println!("cargo::rustc-env=PALYRA_BUILD_PROFILE={}", env::var("PROFILE").unwrap_or_else(|_| "unknown".to_owned()));

    let rustc = env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = output(&rustc, &["--version"]).unwrap_or_else(|| "unknown".to_owned());
    println!("cargo::rustc-env=PALYRA_BUILD_RUSTC={version}");

    if let Some(commit) = commit() {
        println!("cargo::rustc-env=PALYRA_BUILD_COMMIT_FOUND={commit}");
    }
}

fn commit() -> Option<String> {
    if let Ok(given) = env::var("PALYRA_BUILD_COMMIT") {
        let clean = given.trim();
        return (!clean.is_empty() && clean.chars().all(|c| c.is_ascii_hexdigit())).then(|| clean.to_owned());
    }
    if env::var("PROFILE").as_deref() != Ok("release") {
        return None;
    }
    let commit = output("git", &["rev-parse", "--short=12", "HEAD"])?;
    // The reflog changes with every commit and checkout. A path that does not exist would make every build dirty.
    if let Some(log) = output("git", &["rev-parse", "--git-path", "logs/HEAD"])
        && Path::new(&log).exists()
    {
        println!("cargo::rerun-if-changed={log}");
    }
    Some(commit)
}

/// The first line a command prints, if it succeeds.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

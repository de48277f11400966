//! Hands the facts of `build_info.rs` to the compiler.
//!
//! Packagers name the commit in `PALYRA_BUILD_COMMIT`; without it a build claims none.

use std::env;
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

/// Only what the packager says: a look at the repository here would compile every crate anew after each commit.
fn commit() -> Option<String> {
    let given = env::var("PALYRA_BUILD_COMMIT").ok()?;
    let clean = given.trim();
    (!clean.is_empty() && clean.chars().all(|c| c.is_ascii_hexdigit())).then(|| clean.to_owned())
}

/// The first line a command prints, if it succeeds.
fn output(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.lines().next().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned)
}

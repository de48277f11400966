//! Rust: the user's own cargo, with the standard library for WebAssembly or the source of it.

use std::path::PathBuf;
use std::process::Command;

use super::{MissingToolchain, Versions, versions};
use crate::Language;
use crate::process::{complaint, version};

/// What plugins are compiled for: it has no system below it, so there is nothing to take away.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// A cargo that can compile for [`TARGET`].
#[derive(Debug, Clone)]
pub(crate) struct Cargo {
    pub(crate) library: Library,
}

/// Where the standard library comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Library {
    /// It is installed for the target, as rustup does it.
    Installed,
    /// Its source is installed and is compiled along, as with Debian's `rust-web-src`.
    Source,
}

impl Cargo {
    pub(super) fn find() -> Result<(Self, Versions), MissingToolchain> {
        let missing = |what: &str, install: &str| MissingToolchain {
            language: Language::Rust,
            what: what.to_owned(),
            found: None,
            install: install.to_owned(),
        };
        let no_rust = || match complaint(Command::new("rustc").arg("--version")) {
            // Its toolchains are kept below the home directory, so another one has none.
            Some(words) => MissingToolchain {
                found: Some(format!(
                    "`rustc` is there, but says: {words}; rustup keeps toolchains in RUSTUP_HOME or the home directory"
                )),
                ..missing("a Rust toolchain", "rustup default stable")
            },
            None => missing("Rust", "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh -s -- -y"),
        };
        let rustc = version(Command::new("rustc").arg("--version")).ok_or_else(no_rust)?;
        let cargo = version(Command::new("cargo").arg("--version")).ok_or_else(no_rust)?;
        let library = library().ok_or_else(|| {
            missing("Rust's standard library for WebAssembly", &format!("rustup target add {TARGET}"))
        })?;
        Ok((Self { library }, versions([("cargo", cargo), ("rustc", rustc)])))
    }
}

fn library() -> Option<Library> {
    let installed = version(Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]))
        .map(PathBuf::from)
        .is_some_and(|folder| folder.is_dir());
    if installed {
        return Some(Library::Installed);
    }
    let sysroot = version(Command::new("rustc").args(["--print", "sysroot"])).map(PathBuf::from)?;
    let source = sysroot.join("lib/rustlib/src/rust/library/std/Cargo.toml");
    source.is_file().then_some(Library::Source)
}

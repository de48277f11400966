//! Rust: cargo makes a core module that describes itself, and the encoder makes a component of it.
//!
//! All skills share one build directory, so that the SDK and its dependencies are compiled once per machine.

use std::path::Path;
use std::process::Command;

use super::{Job, Modules, Workplace, read_output};
use crate::process::{compile as run_compiler, run};
use crate::toolchain::{Cargo, RUST_TARGET, RustLibrary};
use crate::{BuildError, Language, component};

/// The file that pins dependencies.
const LOCK_FILE: &str = "Cargo.lock";

/// How the module is made; its `Cargo.toml` says the rest.
pub(super) const ARGUMENTS: [&str; 6] = ["build", "--release", "--locked", "--quiet", "--target", RUST_TARGET];

pub(super) fn compile(job: &Job<'_>, cargo: &Cargo) -> Result<Modules, BuildError> {
    let place = Workplace::new(job, "rust")?;
    let mut command = cargo_command(job, &place.folder);
    command.args(ARGUMENTS);
    if cargo.library == RustLibrary::Source {
        // Debian's compiler has the library only as source, and a linker that is not on the path.
        command.args(["-Zbuild-std=std,panic_abort"]).env("RUSTC_BOOTSTRAP", "1");
        command.env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "rust-lld");
    }
    run_compiler(Language::Rust, &mut command)?;
    let package = package_name(&place.folder)?;
    let built =
        target_folder(job).join(RUST_TARGET).join("release").join(format!("{}.wasm", package.replace('-', "_")));
    let module = read_output(&built)?;
    Ok(Modules::from([(job.skill_id.to_owned(), component::encode(&module)?)]))
}

/// The lock file that fits the sources, if it is not the one they have: there is none yet, or the kit came with another version. Versions that are pinned stay; the
/// others are chosen from what is on the disk when the registry cannot be reached.
pub(super) fn new_lock_file(job: &Job<'_>) -> Result<Option<Vec<u8>>, BuildError> {
    let place = Workplace::new(job, "rust")?;
    let settle = |offline: &[&str]| {
        let mut command = cargo_command(job, &place.folder);
        run(Language::Rust, command.args(["metadata", "--format-version", "1", "--quiet"]).args(offline))
    };
    let said = settle(&[])?;
    if !said.success && !settle(&["--offline"])?.success {
        return Err(BuildError::compiler(Language::Rust, &said.all));
    }
    let settled = read_output(&place.folder.join(LOCK_FILE))?;
    Ok((job.sources.get(LOCK_FILE) != Some(settled.as_slice())).then_some(settled))
}

fn cargo_command(job: &Job<'_>, folder: &Path) -> Command {
    let mut command = Command::new("cargo");
    command.current_dir(folder).env("CARGO_TARGET_DIR", target_folder(job));
    // A build inside of another cargo must not take over what that one was told about its own package.
    for variable in ["RUSTFLAGS", "CARGO_BUILD_TARGET", "CARGO_MANIFEST_DIR", "CARGO_ENCODED_RUSTFLAGS"] {
        command.env_remove(variable);
    }
    // Messages of panics hold paths; the home of the registry says who built it.
    if let Some(flags) = remap_flags() {
        command.env("CARGO_ENCODED_RUSTFLAGS", flags);
    }
    command
}

fn remap_flags() -> Option<String> {
    let home = std::env::var_os("CARGO_HOME")
        .map(std::path::PathBuf::from)
        .or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    Some(format!("--remap-path-prefix={}=/cargo", home.to_str()?))
}

fn target_folder(job: &Job<'_>) -> std::path::PathBuf {
    job.tools.root().join("work/rust/target")
}

/// The name of the package, after which cargo calls the module.
fn package_name(folder: &Path) -> Result<String, BuildError> {
    let path = folder.join("Cargo.toml");
    let text = std::fs::read_to_string(&path).map_err(BuildError::io(&path))?;
    let manifest: toml::Table =
        toml::from_str(&text).map_err(|error| BuildError::source("Cargo.toml", error.message()))?;
    let name = |table: &str| manifest.get(table)?.get("name")?.as_str().map(str::to_owned);
    name("lib").or_else(|| name("package")).ok_or_else(|| BuildError::source("Cargo.toml", "it has no package name"))
}

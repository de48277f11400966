//! What these tests share: the compilers that are there, folders to build in, and what is expected of a component.

use std::path::{Path, PathBuf};

use palyra_plugins_build::{BuildOptions, BuiltSkill, GuestTools, Language, Reuse, build_skill};

/// Options that use the user's compilers.
pub(crate) fn options(reuse: Reuse) -> BuildOptions {
    BuildOptions { tools: GuestTools::of_user().unwrap(), reuse }
}

/// Whether a language can be built here; otherwise says why not.
pub(crate) fn available(language: Language) -> bool {
    match options(Reuse::Cached).tools.find(language) {
        Ok(_) => true,
        Err(missing) => {
            eprintln!("skipped {language}: {missing}; install it with: {}", missing.install);
            false
        }
    }
}

/// Builds the skill in a folder.
pub(crate) fn build(folder: &Path, reuse: Reuse) -> BuiltSkill {
    build_skill(folder, &options(reuse)).unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
}

/// Copies a folder without what builds leave behind.
pub(crate) fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in from.read_dir().unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name();
        if ["modules", "target", "vendor", "node_modules"].iter().any(|left| name == *left) {
            continue;
        }
        let target = to.join(&name);
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The folder of examples.
pub(crate) fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../examples/skills").canonicalize().unwrap()
}

/// Interfaces of the host, as a component names them.
pub(crate) fn host(names: &[&str]) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|name| format!("palyra:host/{name}@1.0.0")).collect();
    names.sort();
    names
}

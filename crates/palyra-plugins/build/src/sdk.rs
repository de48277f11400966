//! The kits that Palyra brings for Rust and C, written into `vendor/` of a skill's folder.
//!
//! They come from the Palyra that builds and are kept in step with it, so a skill needs no copy under version control and no network for them.

use std::path::Path;

use crate::source::write;
use crate::{BuildError, Language};

/// The manifest of the Rust kit outside of this workspace. A test holds it to the one inside.
const RUST_MANIFEST: &str = r#"# Written by `palyra skills build`; edits are lost.
[package]
name = "palyra-plugins-sdk"
version = "@version@"
edition = "2024"
license = "Apache-2.0"
description = "The Rust crate that plugins of Palyra are written with"
publish = false

[dependencies]
serde = { version = "1", features = ["derive"] }
serde_json = "1"
wit-bindgen = { version = "=@wit-bindgen@", default-features = false, features = ["macros", "realloc"] }
"#;

/// The version of `wit-bindgen` that encodes what our encoder reads.
const WIT_BINDGEN: &str = "0.60.0";

macro_rules! rust_sources {
    ($($path:literal),+ $(,)?) => {
        [$(($path, include_str!(concat!("../../sdk/", $path)))),+]
    };
}

const RUST: [(&str, &str); 15] = rust_sources![
    "src/bindings.rs",
    "src/channel.rs",
    "src/clock.rs",
    "src/config.rs",
    "src/failure.rs",
    "src/hooks.rs",
    "src/http.rs",
    "src/lib.rs",
    "src/log.rs",
    "src/progress.rs",
    "src/random.rs",
    "src/secret.rs",
    "src/storage.rs",
    "src/tools.rs",
    "wit/palyra-sdk.wit",
];

const C: [(&str, &str); 3] = [
    ("palyra.h", include_str!("../assets/c/palyra.h")),
    ("palyra.c", include_str!("../assets/c/palyra.c")),
    ("palyra_json.c", include_str!("../assets/c/palyra_json.c")),
];

/// Writes the kit of a language, if it has one.
pub(crate) fn write_kit(language: Language, folder: &Path) -> Result<(), BuildError> {
    match language {
        Language::Rust => {
            let kit = folder.join("vendor/palyra-plugins-sdk");
            let manifest =
                RUST_MANIFEST.replace("@version@", env!("CARGO_PKG_VERSION")).replace("@wit-bindgen@", WIT_BINDGEN);
            write(&kit.join("Cargo.toml"), manifest.as_bytes())?;
            RUST.iter().try_for_each(|(path, text)| write(&kit.join(path), text.as_bytes()))
        }
        Language::C => {
            C.iter().try_for_each(|(path, text)| write(&folder.join("vendor/palyra").join(path), text.as_bytes()))
        }
        Language::JavaScript | Language::Python | Language::Wat => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_rust_kit_is_brought() {
        let sdk = Path::new(env!("CARGO_MANIFEST_DIR")).join("../sdk");
        let mut there: Vec<String> = Vec::new();
        for folder in ["src", "wit"] {
            for entry in std::fs::read_dir(sdk.join(folder)).unwrap() {
                there.push(format!("{folder}/{}", entry.unwrap().file_name().to_str().unwrap()));
            }
        }
        there.sort();
        let brought: Vec<&str> = RUST.iter().map(|(path, _)| *path).collect();
        assert_eq!(there, brought);
    }

    #[test]
    fn the_kit_has_the_dependencies_of_the_workspace() {
        let workspace = include_str!("../../../../Cargo.toml");
        let line = format!("wit-bindgen = {{ version = \"={WIT_BINDGEN}\"");
        assert!(workspace.lines().any(|given| given.starts_with(&line)), "the workspace has another wit-bindgen");
        let crate_manifest: toml::Table = toml::from_str(include_str!("../../sdk/Cargo.toml")).unwrap();
        let kit: toml::Table = toml::from_str(RUST_MANIFEST).unwrap();
        let names = |table: &toml::Table| -> Vec<String> {
            table["dependencies"].as_table().unwrap().keys().cloned().collect()
        };
        assert_eq!(names(&crate_manifest), names(&kit));
    }
}

//! Compiles `schemas/proto` with a compiler written in Rust, so that a build needs no system `protoc`.
//!
//! Leaves in `OUT_DIR` the generated modules and the file descriptor set, which reflection serves and tests read. The set
//! keeps comments and drops positions: a reflection client can then show what each method is for.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

use prost::Message as _;
use tonic_prost_build::FileDescriptorSet;

/// Messages whose contents must not get into a log by way of `Debug`; `src/masked.rs` writes theirs by hand.
const MASKED: [&str; 5] = [
    "palyra.auth.v1.BeginPairingResponse",
    "palyra.auth.v1.CreateTokenResponse",
    "palyra.auth.v1.RotateTokenResponse",
    "palyra.gateway.v1.GetSecretResponse",
    "palyra.gateway.v1.PutSecretRequest",
];

fn main() -> Result<(), Box<dyn Error>> {
    let root = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../schemas/proto");
    println!("cargo:rerun-if-changed={}", root.display());
    println!("cargo:rerun-if-changed=build.rs");

    let mut files = Vec::new();
    collect(&root, &mut files)?;
    files.sort();
    if files.is_empty() {
        return Err(format!("no schema under {}", root.display()).into());
    }

    let mut compiler = protox::Compiler::new([&root])?;
    compiler.include_imports(true).include_source_info(true).open_files(&files)?;
    let set = FileDescriptorSet::decode(compiler.encode_file_descriptor_set().as_slice())?;
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("palyra_descriptors.bin"), described(&set).encode_to_vec())?;

    tonic_prost_build::configure()
        .include_file("palyra_modules.rs")
        .emit_rerun_if_changed(false)
        .skip_debug(MASKED)
        .compile_fds(set)?;
    Ok(())
}

/// Every schema file under a directory.
fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "proto") {
            files.push(path);
        }
    }
    Ok(())
}

/// The same set with the comments of our own files and without any positions.
fn described(set: &FileDescriptorSet) -> FileDescriptorSet {
    let mut set = set.clone();
    for file in &mut set.file {
        let ours = file.package().starts_with("palyra.");
        if let Some(info) = &mut file.source_code_info {
            info.location.retain(|location| ours && location.leading_comments.is_some());
        }
    }
    set
}

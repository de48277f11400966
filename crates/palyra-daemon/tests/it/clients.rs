//! Clients that are not ours: Python programs in environments of their own, made once by `scripts/clients/setup.sh`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The checkout.
pub(crate) fn checkout() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The interpreter of a client's environment.
pub(crate) fn python(client: &str) -> PathBuf {
    let made = Command::new("bash").arg(checkout().join("scripts/clients/setup.sh")).arg(client).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    PathBuf::from(String::from_utf8(made.stdout).unwrap().trim())
}

//! Clients that are not ours, against the real daemon. The client says what it saw, this file judges it.

mod grpc;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(2).unwrap().to_path_buf()
}

/// A Python program of `scripts/clients` with the packages it needs.
struct PythonClient {
    interpreter: PathBuf,
    program: PathBuf,
}

impl PythonClient {
    /// Makes the environment if it is not there yet. A machine that cannot have it fails the test: a client that was not tried shows
    /// nothing.
    fn new(name: &str) -> Self {
        let clients = workspace_root().join("scripts/clients");
        let made = Command::new(clients.join("setup.sh")).arg(name).stdin(Stdio::null()).output().unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let interpreter = String::from_utf8(made.stdout).unwrap().trim().into();
        Self { interpreter, program: clients.join(format!("{name}_client.py")) }
    }

    /// Runs it and reads the one JSON document that it prints.
    async fn run(&self, arguments: &[&str], environment: &[(&str, &str)]) -> Value {
        let output = tokio::process::Command::new(&self.interpreter)
            .arg(&self.program)
            .args(arguments)
            .env_clear()
            .envs(environment.iter().copied())
            .stdin(Stdio::null())
            .kill_on_drop(true)
            .output();
        let output = tokio::time::timeout(std::time::Duration::from_secs(60), output).await.expect("it hangs").unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }
}

//! The real llama.cpp server with a model of noise, which nobody here wrote: what our side makes of what it really sends.
//!
//! The server comes from `scripts/clients/setup.sh llama`, made once per machine. What the model says means nothing; asserted is
//! that every answer ends in order, that tokens are counted, and that grammars hold: a call that has to be made is made, a
//! document that has to fit a schema fits it.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// A running server. Dropping it ends it.
#[derive(Debug)]
pub(crate) struct Llama {
    process: Child,
    address: String,
}

impl Llama {
    /// The address without a path, such as `http://127.0.0.1:4711`.
    pub(crate) fn address(&self) -> &str {
        &self.address
    }

    /// The base URL of its OpenAI wire.
    pub(crate) fn base_url(&self) -> String {
        format!("{}/v1", self.address)
    }
}

impl Drop for Llama {
    fn drop(&mut self) {
        // It would leave by itself once its standard input closes; this is quicker.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Starts a server and waits until it answers.
pub(crate) fn start() -> Llama {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let made = Command::new("bash").arg(here.join("../../scripts/clients/setup.sh")).arg("llama").output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    let python = String::from_utf8(made.stdout).unwrap();
    let mut process = Command::new(python.trim())
        .arg("-B")
        .arg(here.join("tests/llama/serve.py"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let lines = BufReader::new(process.stdout.take().unwrap()).lines();
    let address = lines.map_while(Result::ok).find_map(|line| line.strip_prefix("listening ").map(str::to_owned));
    let address = address.unwrap_or_else(|| panic!("the server did not start: {:?}", process.wait()));
    Llama { process, address }
}

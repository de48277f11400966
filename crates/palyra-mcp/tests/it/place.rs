//! A directory of its own for each test, a registry in it, and servers that are pinned as they are.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::Environment;
use palyra_mcp::{
    McpCall, McpError, McpOptions, McpOutcome, McpRegistry, McpServer, ServerConfig, ServerName, StdioConfig,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

pub(crate) struct Place {
    pub(crate) directory: tempfile::TempDir,
    pub(crate) registry: McpRegistry,
}

/// Patient enough for a busy machine, impatient enough for a test.
pub(crate) fn options() -> McpOptions {
    McpOptions { output_bytes: 1 << 20, progress_interval: Duration::from_secs(3600), ..McpOptions::default() }
}

impl Place {
    pub(crate) fn new(options: McpOptions) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let environment = Environment::of_process()
            .with("PLAYED_SECRET", "hunter2-hunter2")
            .with("PLAYED_TOKEN", "token-for-http")
            .with("NOT_NAMED", "must not be seen");
        let registry = McpRegistry::open(directory.path().join("mcp"), environment, options).unwrap();
        Self { directory, registry }
    }

    /// How often the played server was started.
    pub(crate) fn starts(&self) -> usize {
        std::fs::read(self.counter()).map_or(0, |bytes| bytes.len())
    }

    fn counter(&self) -> PathBuf {
        self.directory.path().join("starts")
    }

    /// Adds a played server without pins.
    pub(crate) fn add(&self, greeting: &str) -> Arc<McpServer> {
        self.add_command(
            env!("CARGO_BIN_EXE_palyra-played-mcp-server"),
            vec![greeting.to_owned(), self.counter().display().to_string()],
        )
    }

    /// Adds a played server that a program in front of it keeps from starting for a while.
    pub(crate) fn add_delayed(&self, greeting: &str, delay: Duration) -> Arc<McpServer> {
        let script = format!("sleep {}; exec \"$0\" \"$@\"", delay.as_secs());
        self.add_command(
            "/bin/sh",
            vec![
                "-c".to_owned(),
                script,
                env!("CARGO_BIN_EXE_palyra-played-mcp-server").to_owned(),
                greeting.to_owned(),
                self.counter().display().to_string(),
            ],
        )
    }

    fn add_command(&self, command: &str, args: Vec<String>) -> Arc<McpServer> {
        let config = ServerConfig::stdio(StdioConfig {
            command: command.to_owned(),
            args,
            env: vec!["PATH".to_owned(), "PLAYED_SECRET".to_owned(), "NOT_SET_AT_ALL".to_owned()],
            cwd: None,
        });
        self.registry.add(&played(), &config).unwrap()
    }

    /// Adds a played server and agrees to its tools.
    pub(crate) async fn pinned(&self, greeting: &str) -> Arc<McpServer> {
        let server = self.add(greeting);
        self.registry.pin(&played(), &server.list_tools().await.unwrap()).unwrap();
        server
    }
}

pub(crate) fn played() -> ServerName {
    ServerName::new("played").unwrap()
}

pub(crate) fn call_of(tool: &str, arguments: Value) -> McpCall {
    McpCall {
        tool: tool.to_owned(),
        arguments,
        effect_id: "effect-1".to_owned(),
        cancel: CancellationToken::new(),
        deadline: Duration::from_secs(30),
        progress: None,
    }
}

pub(crate) async fn call(server: &McpServer, tool: &str, arguments: Value) -> Result<McpOutcome, McpError> {
    server.call(call_of(tool, arguments)).await
}

pub(crate) async fn echo_works(server: &McpServer) {
    let outcome = call(server, "echo", json!({ "text": "hello" })).await.unwrap();
    assert_eq!(outcome.text, "hello");
}

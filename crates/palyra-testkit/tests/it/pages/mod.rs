//! The pages that a newcomer follows, typed exactly as they stand on an empty home, and the hints that the programs print on the way.
//!
//! To take changed output over into the pages: `PALYRA_UPDATE_PAGES=1 cargo nextest run -p palyra-testkit pages::`.

mod first_steps;
mod follow;
mod hints;
mod page;
mod readme;
mod requests;
mod shell;

use std::path::PathBuf;
use std::process::Command;

use palyra_models::Script;
use palyra_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use self::shell::Shell;

/// A model that answers what a page asks, lists files when it is told to, as `palyra models test` does, and says `ok` to everything else.
fn model(scenes: Value) -> ModelServer {
    let mut scenes: Vec<Value> = serde_json::from_value(scenes).unwrap();
    scenes.push(json!({ "when": "palyra.fs.list", "turn": [
        { "call": [{ "tool": "palyra.fs.list", "arguments": {} }] },
        { "text": "There is notes.md." },
    ] }));
    let script = json!({ "script": scenes, "turn": [{ "text": "ok" }, { "text": "ok" }] });
    let server = ModelServer::with_script(Script::parse(&script.to_string()).unwrap()).unwrap();
    server.offer_models(&["claude-sonnet-4-5", "scripted-model"]);
    server
}

/// Puts the server behind the provider that the pages name. A reader has an account with that provider; a test has none.
fn provide_model(shell: &Shell, provider: &str, server: &ModelServer) {
    let directory = shell.home().join(".config/palyra");
    std::fs::create_dir_all(&directory).unwrap();
    let url = server.base_url();
    let account = format!("version = 1\n[providers.{provider}]\nkind = \"openai_compatible\"\nbase_url = \"{url}\"\n");
    std::fs::write(directory.join("models.toml"), account).unwrap();
}

/// Puts an `npx` on the path that starts the server which the pages add from a copy that is kept between tests. The real one asks the registry at each start, and a
/// server has ten seconds to answer.
fn provide_npx(shell: &mut Shell) {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let cache = cache.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let kept = cache.unwrap_or_else(std::env::temp_dir).join("palyra/mcp-servers");
    let package = "@modelcontextprotocol/server-filesystem";
    std::fs::create_dir_all(&kept).unwrap();
    // With the settings of whoever runs the tests, who may have a registry of their own.
    let install = format!(
        "[ -e .whole ] || {{ npm install --no-audit --no-fund --no-update-notifier --prefix . {package} && touch .whole; }}"
    );
    let fetched = Command::new("flock").args([".lock", "sh", "-c", &install]).current_dir(&kept).output().unwrap();
    assert!(fetched.status.success(), "{}", String::from_utf8_lossy(&fetched.stderr));
    let start = format!("exec node {}/node_modules/{package}/dist/index.js \"$@\"", kept.display());
    let npx =
        format!("#!/bin/sh\n# npx -y PACKAGE ARGUMENTS\n[ \"$1 $2\" = '-y {package}' ] || exit 1\nshift 2\n{start}\n");
    std::fs::create_dir(shell.home().join("bin")).unwrap();
    std::fs::write(shell.home().join("bin/npx"), npx).unwrap();
    shell.run("chmod 755 ~/bin/npx && export PATH=\"$HOME/bin:$PATH\"");
}

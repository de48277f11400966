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

use palyra_models::Script;
use palyra_testkit::model_server::ModelServer;
use serde_json::{Value, json};

use self::shell::Shell;

/// A model that answers what the pages ask, and `ok` to everything else.
fn model(scenes: &Value) -> ModelServer {
    let script = json!({ "script": scenes, "turn": [{ "text": "ok" }, { "text": "ok" }] });
    ModelServer::with_script(Script::parse(&script.to_string()).unwrap()).unwrap()
}

/// Puts the server behind the provider that the pages name. A reader has an account with that provider; a test has none.
fn provide_model(shell: &Shell, provider: &str, server: &ModelServer) {
    let directory = shell.home().join(".config/palyra");
    std::fs::create_dir_all(&directory).unwrap();
    let url = server.base_url();
    let account = format!("version = 1\n[providers.{provider}]\nkind = \"openai_compatible\"\nbase_url = \"{url}\"\n");
    std::fs::write(directory.join("models.toml"), account).unwrap();
}

/// Fetches the server that the pages add, and lets `npx` keep it, so that a test needs the network once per machine. A server has ten seconds to answer, which
/// fetching it may take.
fn keep_packages(shell: &mut Shell) {
    let cache = std::env::var_os("XDG_CACHE_HOME").map(std::path::PathBuf::from);
    let cache = cache.or_else(|| Some(std::path::PathBuf::from(std::env::var_os("HOME")?).join(".cache")));
    let cache = cache.unwrap_or_else(std::env::temp_dir).join("palyra/npm");
    let settings = format!("cache={}\nprefer-offline=true\nupdate-notifier=false\n", cache.display());
    std::fs::write(shell.home().join(".npmrc"), settings).unwrap();
    // Without a directory it ends at once; whether it was fetched shows when it is added.
    shell.run("npx -y @modelcontextprotocol/server-filesystem");
}

//! README.md.

use serde_json::json;

use super::follow::Follow;
use super::page::Page;
use super::shell::Shell;
use super::{model, provide_model, provide_npx};

const SET_DEFAULT: &str = "palyra models set-default anthropic/claude-sonnet-4-5";

#[test]
fn the_readme_works_as_it_stands() {
    let server = model(json!([
        { "when": "summarise notes.md", "turn": [
            { "call": [{ "tool": "palyra.fs.read", "arguments": { "path": "notes.md" } }] },
            { "text": "It is about watering plants." },
        ] },
        { "when": "which files are here", "turn": [
            { "call": [{ "tool": "mcp.files.list_allowed_directories", "arguments": {} }] },
            { "text": "There is notes.md." },
        ] },
    ]));
    Follow::new(Page::read("README.md", None))
        .leave_out("make run", "it builds everything; `system::demo` and `.ci/run` cover it")
        .leave_out("make test", "it runs this test")
        .leave_out("cargo build --release --bin palyra --bin palyrad", "the programs under test are built already")
        .leave_out(r#"export PATH="${CARGO_TARGET_DIR:-$PWD/target}/release:$PATH""#, "they are on the path already")
        .before(SET_DEFAULT, move |shell| {
            // As for somebody who has an account there.
            provide_model(shell, "anthropic", &server);
            // It is asked until the end of the page.
            std::mem::forget(server);
        })
        .before(r#"palyra mcp add files -- npx -y @modelcontextprotocol/server-filesystem "$PWD""#, provide_npx)
        .follow();
}

#[test]
fn choosing_a_model_without_its_key_names_the_variable() {
    let done = Shell::start().run(SET_DEFAULT);
    assert_ne!(done.code, 0, "{}", done.output);
    assert!(done.output.contains("ANTHROPIC_API_KEY is not set"), "{}", done.output);
    assert!(done.output.contains("export ANTHROPIC_API_KEY=…"), "{}", done.output);
}

//! The pages of docs/ that a newcomer reads next. Of a page that goes on as a reference, only the beginning is followed.

use serde_json::json;

use super::follow::Follow;
use super::page::Page;
use super::{model, provide_model, provide_npx};

#[test]
fn writing_skills_works_as_it_stands() {
    let server = model(json!([{ "when": "to greet Ada", "turn": [
        { "call": [{ "tool": "acme.todo-list.greet", "arguments": { "name": "Ada" } }] },
        { "text": "Done." },
    ] }]));
    Follow::new(Page::read("docs/writing-skills.md", None))
        .before(r#"palyra run "use acme.todo-list.greet to greet Ada""#, move |shell| {
            provide_model(shell, "local", &server);
            let chosen = shell.run("palyra models set-default local/scripted-model");
            assert_eq!(chosen.code, 0, "{}", chosen.output);
            std::mem::forget(server);
        })
        .follow();
}

#[test]
fn models_works_as_it_stands() {
    let server = model(json!([]));
    Follow::new(Page::read("docs/models.md", Some("## Several: `models.toml`")))
        .before("palyra models set-default anthropic/claude-sonnet-4-5", move |shell| {
            provide_model(shell, "anthropic", &server);
            std::mem::forget(server);
        })
        .follow();
}

#[test]
fn mcp_works_as_it_stands() {
    Follow::new(Page::read("docs/mcp.md", Some("## A server is somebody else's program")))
        .before("mkdir -p ~/papers", provide_npx)
        .follow();
}

#[test]
fn skills_works_as_it_stands() {
    Follow::new(Page::read("docs/skills.md", None)).follow();
}

#[test]
fn skill_registries_works_as_it_stands() {
    // What the keeper of a registry has: a key, and from a publisher an archive and a list of revocations.
    let prepared = [
        "palyra skills keygen registry.key",
        "palyra skills keygen acme.key",
        "palyra skills new acme.tickets --lang wat",
        "sed -i 's/^version = .*/version = \"1.2.0\"/' acme.tickets/skill.toml",
        "palyra skills build acme.tickets",
        "palyra skills pack acme.tickets --key acme.key",
        "palyra skills revoke acme --key acme.key --archive acme.tickets-1.2.0.palyra-skill --reason 'it leaks tokens'",
    ];
    Follow::new(Page::read("docs/skill-registries.md", None))
        .before("palyra skills registry create ./registry --key registry.key", move |shell| {
            for command in prepared {
                let done = shell.run(command);
                assert_eq!(done.code, 0, "{command}: {}", done.output);
            }
        })
        .follow();
}

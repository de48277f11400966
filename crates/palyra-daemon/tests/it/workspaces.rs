//! Who may work where: the local owner anywhere, everybody else below what was granted to them.

use std::collections::BTreeSet;
use std::path::Path;

use palyra_client::api::CreateRunParams;
use palyra_client::command;
use palyra_common::{AcpCommand, Digest, RequestId};
use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use crate::raw::{Answer, loopback_json, unix};
use crate::support::{Daemon, Place, code};
use crate::things::token;

/// Reads whatever it is asked for.
const SCRIPT: &str = r#"
[[turn]]
[[turn.call]]
tool = "palyra.fs.read"
arguments = { path = "secret.txt" }
[[turn]]
echo = "last_result"
"#;

/// A directory with a secret that nobody was granted.
fn private(place: &Place) -> String {
    let directory = place.path().join("private");
    std::fs::create_dir(&directory).unwrap();
    std::fs::write(directory.join("secret.txt"), "the crown jewels\n").unwrap();
    directory.display().to_string()
}

fn directory(place: &Place, name: &str) -> String {
    let directory = place.path().join(name);
    std::fs::create_dir_all(&directory).unwrap();
    directory.display().to_string()
}

fn run_in(daemon: &Daemon, token: &str, workspace: &str) -> Answer {
    let body = json!({"prompt": "read it", "workspace": workspace}).to_string();
    loopback_json(daemon, "POST /api/v1/runs", Some(token), &body)
}

fn operator(daemon: &Daemon, subject: &str) -> String {
    token(daemon, &json!({"name": "op", "role": "operator", "subject": subject})).0
}

fn grant(daemon: &Daemon, principal: &str, path: &str) -> Answer {
    unix(daemon, "POST /api/v1/workspaces", json!({"principal": principal, "path": path}).to_string().as_bytes())
}

fn revoke(daemon: &Daemon, principal: &str, path: &str) -> Answer {
    let body = json!({"principal": principal, "path": path}).to_string();
    unix(daemon, "POST /api/v1/workspaces/revoke", body.as_bytes())
}

const ACP: &str = "POST /acp/v1/command";
const REFUSED: (u16, &str) = (403, "workspace_not_granted");

fn assert_refused(answer: &Answer) {
    let (status, code) = answer.refusal();
    assert_eq!((status, code.as_str()), REFUSED, "{answer:?}");
}

#[tokio::test]
async fn a_token_works_only_below_what_was_granted() {
    let place = Place::new().with_script(SCRIPT);
    let (private, granted) = (private(&place), directory(&place, "granted/project"));
    let root = place.path().join("granted").display().to_string();
    let daemon = place.start().await;
    // A token of the local owner's own name is a token all the same.
    let own = token(&daemon, &json!({"name": "own", "role": "operator"})).0;
    let ci = operator(&daemon, "ci");
    for token in [&own, &ci] {
        assert_refused(&run_in(&daemon, token, &private));
        assert_refused(&run_in(&daemon, token, &granted));
    }
    let view = grant(&daemon, "ci", &root).json();
    assert_eq!((&view["principal"], &view["path"]), (&json!("user:ci"), &json!(real(&root))), "{view}");
    assert_eq!(grant(&daemon, "user:ci", &root).json(), view, "granting twice is granting once");
    assert_eq!(run_in(&daemon, &ci, &granted).status, 200);
    assert_refused(&run_in(&daemon, &ci, &private));
    assert_refused(&run_in(&daemon, &own, &granted));
    // What does not exist is told like what is not granted, byte for byte but for the name.
    let missing = format!("{private}-missing");
    let (there, not_there) = (run_in(&daemon, &ci, &private).json(), run_in(&daemon, &ci, &missing).json());
    let without = |answer: &Value, path: &str| {
        let mut error = answer["error"].clone();
        error.as_object_mut().unwrap().remove("request_id");
        error.to_string().replace(path, "")
    };
    assert_eq!(without(&there, &private), without(&not_there, &missing));

    daemon.kill();
    let daemon = place.start().await;
    assert_eq!(run_in(&daemon, &ci, &granted).status, 200, "a grant survives a restart");
    let listed = unix(&daemon, "GET /api/v1/workspaces", b"").json();
    assert!(listed["workspaces"].as_array().unwrap().contains(&view), "{listed}");
    assert_eq!(revoke(&daemon, "ci", &root).status, 200);
    assert_eq!(revoke(&daemon, "ci", &root).refusal(), (404, "workspace_grant_not_found".to_owned()));
    assert_refused(&run_in(&daemon, &ci, &granted));
    assert_eq!(loopback_json(&daemon, "GET /api/v1/workspaces", Some(&ci), "").status, 403, "owners alone look");
}

fn real(path: &str) -> String {
    Path::new(path).canonicalize().unwrap().display().to_string()
}

#[tokio::test]
async fn links_do_not_lead_out_of_a_root() {
    let place = Place::new().with_script(SCRIPT);
    let (private, root) = (private(&place), directory(&place, "granted"));
    let daemon = place.start().await;
    let ci = operator(&daemon, "ci");
    grant(&daemon, "ci", &root);
    let (link, below) = (format!("{root}/link"), format!("{root}/below"));
    std::os::unix::fs::symlink(&private, &link).unwrap();
    assert_refused(&run_in(&daemon, &ci, &link));
    assert_refused(&run_in(&daemon, &ci, &format!("{root}/../private")));

    // A session keeps a good directory; before its next run the directory becomes a link.
    std::fs::create_dir(&below).unwrap();
    let settings = json!({"settings": {"workspace": below}}).to_string();
    let session = loopback_json(&daemon, "POST /api/v1/sessions", Some(&ci), &settings).json();
    let session = session["session_id"].as_str().unwrap_or_else(|| panic!("{session}")).to_owned();
    std::fs::remove_dir(&below).unwrap();
    std::os::unix::fs::symlink(&private, &below).unwrap();
    let input = json!({"text": "read it"}).to_string();
    let address = format!("POST /api/v1/sessions/{session}/input");
    assert_refused(&loopback_json(&daemon, &address, Some(&ci), &input));
    let body = json!({"prompt": "read it", "session_id": session}).to_string();
    assert_refused(&loopback_json(&daemon, "POST /api/v1/runs", Some(&ci), &body));

    // A root that is replaced by a link grants nothing either.
    std::fs::rename(&root, format!("{root}-moved")).unwrap();
    std::os::unix::fs::symlink(&private, &root).unwrap();
    assert_refused(&run_in(&daemon, &ci, &root));
}

/// All parameters of the catalogue that are absolute paths, as commands and fields.
fn directories() -> Vec<(AcpCommand, String)> {
    let mut found = Vec::new();
    for spec in command::COMMANDS.iter().chain(command::STREAM_COMMANDS) {
        let mut generator = SchemaGenerator::default();
        let schema = (spec.params)(&mut generator).to_value();
        let mut fields = BTreeSet::new();
        absolute_paths(&schema, generator.definitions(), "", &mut fields);
        found.extend(fields.into_iter().map(|field| (spec.name, field)));
    }
    found
}

fn absolute_paths(schema: &Value, definitions: &Map<String, Value>, at: &str, found: &mut BTreeSet<String>) {
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.strip_prefix("#/$defs/")) {
        absolute_paths(&definitions[name], definitions, at, found);
    }
    for kind in ["anyOf", "oneOf", "allOf"] {
        for part in schema[kind].as_array().into_iter().flatten() {
            absolute_paths(part, definitions, at, found);
        }
    }
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let at = if at.is_empty() { name.clone() } else { format!("{at}.{name}") };
        let says_so = field["description"].as_str().is_some_and(|text| text.to_lowercase().contains("absolute path"));
        if says_so || matches!(name.as_str(), "workspace" | "directory" | "root" | "dest") {
            found.insert(at.clone());
        }
        absolute_paths(field, definitions, &at, found);
    }
}

#[tokio::test]
async fn no_command_names_a_directory_past_the_check() {
    let place = Place::new().with_script(SCRIPT);
    let private = private(&place);
    let daemon = place.start().await;
    let (ci, owner) =
        (operator(&daemon, "ci"), token(&daemon, &json!({"name": "o", "role": "owner", "subject": "o"})).0);
    let shared = place.workspace().display().to_string();
    let settings = json!({"settings": {"workspace": shared}}).to_string();
    let session = loopback_json(&daemon, "POST /api/v1/sessions", Some(&ci), &settings).json();
    let session = session["session_id"].as_str().unwrap_or_else(|| panic!("{session}")).to_owned();
    std::fs::write(Path::new(&private).join("AGENTS.md"), "Praise the crown.\n").unwrap();
    let labels = |answer: Answer| answer.json()["result"]["instructions"].as_array().map_or(0, Vec::len);
    let asked = |command: AcpCommand, params: &Value| {
        json!({"request_id": RequestId::generate(), "command": command, "params": params}).to_string()
    };
    for (command, field) in directories() {
        let (token, params) = match (command, field.as_str()) {
            (AcpCommand::RunCreate, "workspace") => (&ci, json!({"prompt": "p", "workspace": private})),
            (AcpCommand::SessionNew, "settings.workspace") => (&ci, json!({"settings": {"workspace": private}})),
            (AcpCommand::SessionInput, "workspace") => {
                (&ci, json!({"session_id": session, "text": "t", "workspace": private}))
            }
            (AcpCommand::SessionConfigSet, "workspace") => (&ci, json!({"session_id": session, "workspace": private})),
            (AcpCommand::AgentSet, "workspace") => (&owner, json!({"agent_id": "a", "workspace": private})),
            (AcpCommand::JournalBackup, "dest") => (&owner, json!({"dest": format!("{private}/copy")})),
            // Nobody grants what is not granted to them.
            (AcpCommand::WorkspaceGrant, "path") => (&owner, json!({"principal": "o", "path": private})),
            // To take a directory back leads nowhere.
            (AcpCommand::WorkspaceRevoke, "path") => continue,
            (AcpCommand::FileEndorse, "workspace") => {
                let digest = Digest::of(b"the crown jewels\n");
                (&owner, json!({"workspace": private, "path": "secret.txt", "digest": digest}))
            }
            // What runs wrote somewhere can always be asked about; what lies there is not looked at.
            (AcpCommand::FileLabels, "workspace") => {
                let asked = asked(command, &json!({"workspace": private}));
                assert_eq!(labels(loopback_json(&daemon, ACP, Some(&owner), &asked)), 0);
                assert_eq!(labels(unix(&daemon, ACP, asked.as_bytes())), 1, "the local owner sees them");
                continue;
            }
            (command, field) => panic!("say here what becomes of `{field}` of {command} without a grant"),
        };
        let answer = loopback_json(&daemon, ACP, Some(token), &asked(command, &params)).json();
        assert_eq!(answer["error"]["code"], REFUSED.1, "{command}: {answer}");
    }
    let inside = json!({"dest": format!("{shared}/copy")}).to_string();
    let copied = loopback_json(&daemon, "POST /api/v1/journal/backup", Some(&owner), &inside);
    assert_eq!(copied.status, 200, "{copied:?}");
    // An agent of the local owner's takes nobody along.
    let agent = json!({"agent_id": "a", "workspace": private}).to_string();
    assert_eq!(unix(&daemon, "POST /api/v1/agents", agent.as_bytes()).status, 200);
    let body = json!({"prompt": "p", "agent": "a"}).to_string();
    assert_refused(&loopback_json(&daemon, "POST /api/v1/runs", Some(&ci), &body));
    // What nobody may do over HTTP goes no other way.
    let models = token(&daemon, &json!({"name": "m", "role": "operator", "scopes": ["models:use"], "subject": "ci"})).0;
    grant(&daemon, "ci", &private);
    let chat = json!({"model": "palyra", "messages": [{"role": "user", "content": "read it"}],
        "metadata": {"workspace": private}});
    let answer = loopback_json(&daemon, "POST /v1/chat/completions", Some(&models), &chat.to_string());
    assert_eq!(answer.refusal(), (403, "workspace_not_granted".to_owned()), "models:use has no directory: {answer:?}");
    assert_eq!(run_in(&daemon, &ci, &private).status, 200);
}

#[tokio::test]
async fn a_token_does_not_steer_a_run_where_it_may_not_work() {
    let place = Place::new().with_script("[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\narguments = { path = \"a\", content = \"x\" }\n[[turn]]\ntext = \"ok\"\n")
        .with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let private = private(&place);
    let daemon = place.start().await;
    let own = token(&daemon, &json!({"name": "own", "role": "operator"})).0;
    let task = CreateRunParams { workspace: private, ..daemon.task("write it") };
    let run = daemon.client.create_run(&task).await.unwrap();
    let body = json!({"text": "read secret.txt instead", "mode": "steer"}).to_string();
    assert_refused(&loopback_json(&daemon, &format!("POST /api/v1/runs/{}/input", run.run_id), Some(&own), &body));
    let aborted = loopback_json(&daemon, &format!("POST /api/v1/runs/{}/abort", run.run_id), Some(&own), "{}");
    assert_eq!(aborted.status, 200, "to stop it is no way in: {aborted:?}");
}

#[tokio::test]
async fn the_local_owner_works_anywhere_but_in_the_whole_home() {
    let place = Place::new().with_script(SCRIPT);
    let private = private(&place);
    let daemon = place.start().await;
    let at = |path: &str| CreateRunParams { workspace: path.to_owned(), ..daemon.task("read it") };
    daemon.client.create_run(&at(&private)).await.unwrap();
    assert_eq!(run_in(&daemon, &daemon.token(), &private).status, 200, "the local token is the local owner");
    let home = place.path().display().to_string();
    for broad in [home.as_str(), "/"] {
        assert_eq!(code(daemon.client.create_run(&at(broad)).await), "workspace_too_broad", "{broad}");
    }
    let state = place.state_root().display().to_string();
    assert_eq!(code(daemon.client.create_run(&at(&state)).await), "workspace_not_found");
    assert_eq!(grant(&daemon, "ci", &state).refusal(), (404, "workspace_not_found".to_owned()));
    let me = unix(&daemon, "GET /api/v1/principal", b"").json();
    assert_eq!(grant(&daemon, me["principal"].as_str().unwrap(), &home).status, 200);
    daemon.client.create_run(&at(&home)).await.unwrap();
}

#[tokio::test]
async fn policies_see_the_directory() {
    let place = Place::new().with_script(SCRIPT);
    let policies = place.path().join("policies");
    std::fs::create_dir(&policies).unwrap();
    let rule = "@id(\"not_there\")\n@reason_person(\"not in private\")\n@reason_model(\"not in private\")\n\
        forbid (principal, action in Action::\"command\", resource)\nwhen { context has workspace && context.workspace like \"*/private\" };\n";
    std::fs::write(policies.join("own.cedar"), rule).unwrap();
    let private = private(&place);
    let place = place.with("PALYRA_POLICY_DIRECTORY", &policies.display().to_string());
    let daemon = place.start().await;
    let task = CreateRunParams { workspace: private, ..daemon.task("read it") };
    assert_eq!(code(daemon.client.create_run(&task).await), "command_denied");
    daemon.create("elsewhere").await;
}

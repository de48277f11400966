//! A page from end to end: an agent shows a form, a browser gets it and posts it, the agent answers with what was entered; a kill in between
//! changes nothing.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use palyra_client::Client;
use palyra_client::api::{
    CanvasAccess, CanvasLinkResponse, LinkCanvasParams, ListCanvasesParams, ListCanvasesResponse,
};
use palyra_client::command::{About, Command};
use palyra_common::{RunStreamBody, SessionId};
use palyra_testkit::{DaemonOptions, Model, TestContext};
use serde_json::json;

use super::{call, finish, task, workspace};

/// What a browser does: a request, and the answer to its end.
fn browse(root: &Path, request: &str, body: &str) -> String {
    let address = std::fs::read_to_string(root.join("http.addr")).unwrap();
    let mut stream = TcpStream::connect(address.trim()).unwrap();
    stream.set_read_timeout(Some(super::PATIENCE)).unwrap();
    write!(
        stream,
        "{request} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n\r\n{body}",
        address.trim(),
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    answer
}

async fn link(client: &Client, session_id: SessionId) -> CanvasLinkResponse {
    let params = ListCanvasesParams { session_id: Some(session_id), ..ListCanvasesParams::default() };
    let listed: ListCanvasesResponse = client.execute(&Command::CanvasList(params)).await.unwrap();
    let target = listed.canvases[0].canvas_id;
    let params = LinkCanvasParams { access: Some(CanvasAccess::Act), expires_in_seconds: None };
    client.execute(&Command::CanvasLink(About { target, params })).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_form_is_shown_filled_in_and_answered_over_a_kill() {
    let form = json!({"type": "form", "id": "trip", "title": "Where to?", "fields": [
        {"type": "text", "name": "city", "label": "City", "required": true},
        {"type": "select", "name": "class", "label": "Class", "options": [{"value": "first", "label": "First"}, {"value": "second", "label": "Second"}]},
    ]});
    let shows = call("palyra.a2ui.render", json!({"title": "A trip", "document": {"root": form}}));
    let script = json!({"script": [
        {"when": "plan a trip", "turn": [shows, {"text": "Please fill in the form."}]},
        {"turn": [{"text": "You said: ", "echo": "user"}]},
    ]});
    let mut daemon = DaemonOptions::new(Model::Scripted(script)).start().await.unwrap();
    let (client, workspace) = (daemon.client(), workspace());
    let run = client.create_run(&task("plan a trip", workspace.path())).await.unwrap();
    let (_, events) = finish(&client, run.run_id).await;
    assert!(events.iter().any(|event| matches!(event.body, RunStreamBody::A2uiUpdate(_))));

    let link = link(&client, run.session_id).await;
    let page = browse(&daemon.seen_root(), &format!("GET {}", link.path), "");
    assert!(page.starts_with("HTTP/1.1 200") && page.contains("Where to?"), "{page}");
    daemon.kill9().unwrap();
    daemon.restart().await.unwrap();

    let page = browse(&daemon.seen_root(), &format!("GET {}", link.path), "");
    assert!(page.contains("name=\"v.city\""), "the page is there after the kill: {page}");
    let sent = "component=trip&version=1&once=a1&action=submit&v.city=Z%C3%BCrich&v.class=second";
    let done = browse(&daemon.seen_root(), &format!("POST {}/actions", link.path), sent);
    assert!(done.starts_with("HTTP/1.1 303"), "{done}");
    let session = client.session(run.session_id, &Default::default()).await.unwrap();
    let next = session.runs.iter().find(|other| other.run_id != run.run_id).unwrap();
    let (detail, _) = finish(&client, next.run_id).await;
    let answer = detail.answer.unwrap();
    assert!(answer.contains(r#"{"city":"Zürich","class":"second"}"#), "{answer}");
    daemon.finish().await.unwrap();
}

#[test]
fn canvases_are_listed_shown_linked_and_closed_from_the_command_line() {
    let page = |title: &str, text: &str| {
        let root = json!({"type": "list", "items": [{"type": "text", "text": text}, {"type": "form", "id": "trip", "fields": [
            {"type": "text", "name": "city", "label": "City", "required": true}]}]});
        call("palyra.a2ui.render", json!({"title": title, "document": {"root": root}}))
    };
    let script = json!({"script": [
        {"when": "first", "turn": [page("The first", "\u{1b}[31mred"), {"text": "drawn"}]},
        {"turn": [page("The second", "plain"), {"text": "drawn"}]},
    ]});
    let context = TestContext::new().unwrap().scripted(&script).unwrap();
    let none = context.run(["daemon", "start"]).unwrap();
    assert_eq!(none.code, 0, "{none}");
    let none = context.run(["canvas", "list"]).unwrap();
    assert_eq!((none.code, none.stdout.as_str(), none.stderr.trim()), (0, "", "no open canvases"), "{none}");
    let none = context.run(["canvas", "show", "last"]).unwrap();
    assert!(none.code == 8 && none.stderr.contains("[id_not_found]"), "{none}");

    for task in ["first", "second"] {
        let ran = context.run(["run", task]).unwrap();
        assert!(ran.code == 0 && ran.stderr.contains("palyra canvas open 01"), "{ran}");
    }
    let listed = context.run(["canvas", "list", "--output", "json"]).unwrap().json().unwrap();
    let id = |index: usize| listed["canvases"][index]["canvas_id"].as_str().unwrap().to_owned();
    let (second, first) = (id(0), id(1));
    assert_eq!(listed["canvases"][0]["title"], "The second", "newest first");
    let session = listed["canvases"][1]["session_id"].as_str().unwrap();
    let of_one = context.run(["canvas", "list", "--session", session]).unwrap();
    assert!(of_one.stdout.contains(&first) && !of_one.stdout.contains(&second), "{of_one}");

    let shown = context.run(["canvas", "show", &first[18..]]).unwrap();
    assert!(shown.stdout.starts_with("The first\n\n") && shown.stdout.contains("city*: City (text)"), "{shown}");
    assert!(!shown.stdout.contains('\u{1b}'), "{shown}");
    let looking = context.run(["canvas", "open", "last", "--minutes", "5"]).unwrap();
    assert!(looking.code == 0 && looking.stderr.contains("use `--act` for one that can submit forms"), "{looking}");
    let acting = context.run(["canvas", "open", "last", "--act", "--output", "json"]).unwrap().json().unwrap();
    assert_eq!(acting["access"], "act");
    let browsed = |path: &str| browse(&context.state_root(), &format!("GET {path}"), "");
    let path = |url: &str| format!("/canvas/v1/{}", url.trim().rsplit('/').next().unwrap());
    let (looking, acting) = (path(&looking.stdout), acting["path"].as_str().unwrap().to_owned());
    assert!(browsed(&looking).contains("The second") && !browsed(&looking).contains("<form"), "{}", browsed(&looking));
    assert!(browsed(&acting).contains("<form"), "{}", browsed(&acting));
    for minutes in ["0", "1441", "soon"] {
        let refused = context.run(["canvas", "open", "last", "--minutes", minutes]).unwrap();
        assert_eq!(refused.code, 2, "{refused}");
    }

    let closed = context.run(["canvas", "close", "last"]).unwrap();
    assert_eq!((closed.code, closed.stdout.trim()), (0, format!("Closed canvas {second}").as_str()), "{closed}");
    assert!(browsed(&acting).contains("This link is not valid"), "a link ends with its page");
    let rest = context.run(["canvas", "list"]).unwrap();
    assert!(rest.stdout.contains(&first) && !rest.stdout.contains(&second), "{rest}");
    let all = context.run(["canvas", "list", "--all"]).unwrap();
    assert!(all.stdout.contains(&second) && all.stdout.contains("closed"), "{all}");
    let shown = context.run(["canvas", "show", &second[18..]]).unwrap();
    assert!(shown.code == 0 && shown.stderr.contains("closed "), "one that was closed can still be read: {shown}");
    let refused = context.run(["canvas", "open", &second]).unwrap();
    assert!(refused.code == 7 && refused.stderr.contains("[canvas_closed]"), "{refused}");
    context.finish().unwrap();
}

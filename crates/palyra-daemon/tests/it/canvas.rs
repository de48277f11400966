//! Canvases over HTTP: links and what ends them, pages, forms, events, and questions that are answered on a card.

use std::io::{BufRead, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palyra_common::RunLifecyclePhase;
use serde_json::{Value, json};

use crate::raw::{Answer, exchange_with, loopback_json, unix};
use crate::support::{Daemon, Place};

/// Draws a form when asked to, writes a file when asked to, and says anything else back.
const SCRIPT: &str = r#"
[[script]]
when = "draw"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.a2ui.render"
[script.turn.call.arguments]
title = "Sign <b>up</b>"
[script.turn.call.arguments.document.root]
type = "list"
[[script.turn.call.arguments.document.root.items]]
type = "text"
text = "<script>alert(1)</script>"
[[script.turn.call.arguments.document.root.items]]
type = "form"
id = "signup"
fields = [
  { type = "text", name = "name", label = "Name", required = true },
  { type = "email", name = "mail", label = "Mail" },
  { type = "checkbox", name = "terms", label = "Terms" },
]
[[script.turn.call.arguments.document.root.items]]
type = "approval"
id = "card"
[[script.turn]]
text = "fill it in"
[[script]]
when = "file"
[[script.turn]]
[[script.turn.call]]
tool = "palyra.fs.write"
arguments = { path = "a.txt", content = "x" }
[[script.turn]]
text = "written"
[[script]]
[[script.turn]]
text = "You said: "
echo = "user"
"#;

struct Drawn {
    place: Place,
    daemon: Daemon,
    session: String,
    canvas: String,
}

async fn drawn() -> Drawn {
    let place = Place::new().with_script(SCRIPT).with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write");
    let daemon = place.start().await;
    let run = daemon.create("draw it").await;
    daemon.follow(run.run_id, 1).await;
    let listed = unix(&daemon, "GET /api/v1/canvases", b"").json();
    let canvas = listed["canvases"][0]["canvas_id"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
    Drawn { place, daemon, session: run.session_id.to_string(), canvas }
}

fn made(answer: &Answer) -> String {
    answer.json()["path"].as_str().unwrap_or_else(|| panic!("{answer:?}")).to_owned()
}

impl Drawn {
    fn link(&self, params: &Value) -> String {
        made(&unix(&self.daemon, &format!("POST /api/v1/canvases/{}/link", self.canvas), params.to_string().as_bytes()))
    }

    fn get(&self, path: &str) -> Answer {
        exchange_with(&self.daemon, &format!("GET {path}"), &[], "")
    }

    fn post(&self, path: &str, form: &str) -> Answer {
        let headers = [("Content-Type", "application/x-www-form-urlencoded")];
        exchange_with(&self.daemon, &format!("POST {path}/actions"), &headers, form)
    }

    fn close(&self) {
        let path = format!("POST /api/v1/canvases/{}/close", self.canvas);
        assert_eq!(unix(&self.daemon, &path, b"").status, 200);
    }

    /// The newest run of the session, once it is over and there are so many.
    async fn newest_answer(&self, runs: usize) -> String {
        for _ in 0..1_000 {
            let session = self.daemon.client.session(self.session.parse().unwrap(), &Default::default()).await.unwrap();
            if session.runs.len() >= runs && session.runs.iter().all(|run| run.phase.is_terminal()) {
                let newest = session.runs.iter().max_by_key(|run| run.created_at).unwrap();
                return self.daemon.client.run(newest.run_id).await.unwrap().answer.unwrap_or_default();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the session does not come to rest")
    }
}

/// The value of a hidden field of the first form.
fn hidden(page: &str, name: &str) -> String {
    let marked = format!("name=\"{name}\" value=\"");
    let (_, rest) = page.split_once(&marked).unwrap_or_else(|| panic!("no {name}: {page}"));
    rest.split_once('"').unwrap().0.to_owned()
}

const GONE: &str = "This link is not valid";

#[tokio::test]
async fn a_page_is_strict_and_shows_nothing_as_markup() {
    let drawn = drawn().await;
    let page = drawn.get(&drawn.link(&json!({})));
    assert_eq!(page.status, 200, "{page:?}");
    let policy = page.raw_header("content-security-policy");
    let nonce = policy.split_once("script-src 'nonce-").unwrap().1.split_once('\'').unwrap().0.to_owned();
    for part in [
        "default-src 'none'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "img-src data:",
        "sandbox allow-forms allow-scripts allow-same-origin",
    ] {
        assert!(policy.contains(part), "{policy}");
    }
    assert!(!policy.contains("unsafe"), "{policy}");
    for (name, value) in [
        ("cache-control", "no-store"),
        ("referrer-policy", "same-origin"),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("cross-origin-opener-policy", "same-origin"),
        ("content-type", "text/html; charset=utf-8"),
    ] {
        assert_eq!(page.raw_header(name), value);
    }
    assert_eq!(page.body.matches("<script").count(), 1, "{}", page.body);
    assert!(page.body.contains(&format!("<script nonce=\"{nonce}\">")), "{}", page.body);
    assert!(page.body.contains("&lt;script&gt;alert(1)&lt;/script&gt;"), "{}", page.body);
    assert!(page.body.contains("Sign &lt;b&gt;up&lt;/b&gt;"), "{}", page.body);
    assert!(!page.body.contains("<form"), "a link for looking has no forms");
    let again = drawn.get(&drawn.link(&json!({})));
    assert!(!again.raw_header("content-security-policy").contains(&nonce), "a nonce is used once");
}

#[tokio::test]
async fn a_form_without_scripts_becomes_the_next_message() {
    let drawn = drawn().await;
    let link = drawn.link(&json!({"access": "act"}));
    let page = drawn.get(&link).body;
    let (component, version, once) = (hidden(&page, "component"), hidden(&page, "version"), hidden(&page, "once"));
    assert_eq!((component.as_str(), version.as_str()), ("signup", "1"));
    let form =
        |version: &str, rest: &str| format!("component=signup&version={version}&once={once}&action=submit&{rest}");

    let wrong = drawn.post(&link, &form("1", "v.mail=nobody"));
    assert_eq!(wrong.status, 422);
    assert!(wrong.body.contains("is required") && wrong.body.contains("<form"), "{}", wrong.body);
    assert_eq!(drawn.post(&link, &form("9", "v.name=Ada")).status, 409);
    assert_eq!(drawn.post(&link, &form("1", "v.name=Ada&v.name=Bob")).status, 422);
    assert_eq!(drawn.post(&link, &form("1", "v.name=Ada&v.role=admin")).status, 422);

    // The address of the refused form is now the browser's; loading it again leads back to the page.
    let reloaded = drawn.get(&format!("{link}/actions"));
    assert_eq!((reloaded.status, reloaded.raw_header("location")), (303, link.clone()));

    let sent = form("1", "v.name=Ada+%3Cb%3E&v.mail=ada%40example.org&v.terms=on");
    let done = drawn.post(&link, &sent);
    assert_eq!((done.status, done.raw_header("location")), (303, format!("{link}?done=sent")));
    assert!(drawn.get(&done.raw_header("location")).body.contains("Sent."));
    let answer = drawn.newest_answer(2).await;
    let (said, values) = answer.split_once('\n').unwrap();
    assert_eq!(said, format!("You said: I submitted the form `signup` of canvas {} with:", drawn.canvas));
    let values: Value = serde_json::from_str(values).unwrap();
    assert_eq!(values, json!({"name": "Ada <b>", "mail": "ada@example.org", "terms": true}));

    assert_eq!(drawn.post(&link, &sent).status, 303, "a second click is answered like the first");
    tokio::time::sleep(Duration::from_millis(300)).await;
    let session = drawn.daemon.client.session(drawn.session.parse().unwrap(), &Default::default()).await.unwrap();
    assert_eq!(session.runs.len(), 2, "and is the same submission");
}

#[tokio::test]
async fn links_that_are_not_good_all_look_the_same() {
    let drawn = drawn().await;
    let unknown = drawn.get(&format!("/canvas/v1/{}", "A".repeat(43)));
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains(GONE));
    // All but the nonce.
    let plain = |answer: &Answer| {
        let nonce = answer
            .raw_header("content-security-policy")
            .split_once("'nonce-")
            .unwrap()
            .1
            .split_once('\'')
            .unwrap()
            .0
            .to_owned();
        (answer.status, answer.body.replace(&nonce, ""))
    };
    let expected = plain(&unknown);
    assert_eq!(plain(&drawn.get(&format!("/canvas/v1/{}/actions", "A".repeat(43)))), expected);

    let expired = drawn.link(&json!({"expires_in_seconds": 1}));
    let (secret, id) = {
        let made = unix(&drawn.daemon, "POST /api/v1/tokens", br#"{"name":"t","role":"operator"}"#).json();
        (made["secret"].as_str().unwrap().to_owned(), made["token"]["token_id"].as_str().unwrap().to_owned())
    };
    let path = format!("POST /api/v1/canvases/{}/link", drawn.canvas);
    let revoked = made(&loopback_json(&drawn.daemon, &path, Some(&secret), r#"{"access":"act"}"#));
    assert_eq!(drawn.get(&revoked).status, 200);
    assert_eq!(unix(&drawn.daemon, &format!("POST /api/v1/tokens/{id}/revoke"), b"").status, 200);
    let closed = drawn.link(&json!({"access": "act"}));
    assert_eq!(drawn.get(&closed).status, 200);
    tokio::time::sleep(Duration::from_millis(1_100)).await;
    assert_eq!(plain(&drawn.get(&revoked)), expected, "revoked");
    assert_eq!(plain(&drawn.get(&expired)), expected, "expired");
    assert_eq!(drawn.post(&revoked, "component=signup&version=1&v.name=x").status, 404);
    assert_eq!(drawn.get(&format!("{expired}/events")).status, 404);
    drawn.close();
    // Whoever tries too often has to wait, so the last ones are few.
    tokio::time::sleep(Duration::from_millis(1_500)).await;
    let after = drawn.get(&closed);
    assert!(after.status == 404 || after.status == 429, "{after:?}");
    assert!(!after.body.contains("Sign"), "{}", after.body);
}

#[tokio::test]
async fn a_link_ends_with_the_secret_that_it_was_made_with() {
    let drawn = drawn().await;
    let token = unix(&drawn.daemon, "POST /api/v1/tokens", br#"{"name":"r","role":"operator"}"#).json();
    let (secret, id) = (token["secret"].as_str().unwrap(), token["token"]["token_id"].as_str().unwrap());
    let path = format!("POST /api/v1/canvases/{}/link", drawn.canvas);
    let link = made(&loopback_json(&drawn.daemon, &path, Some(secret), r#"{"access":"act"}"#));
    assert_eq!(drawn.get(&link).status, 200);
    assert_eq!(unix(&drawn.daemon, &format!("POST /api/v1/tokens/{id}/rotate"), b"{}").status, 200);
    assert_eq!(drawn.get(&link).status, 404);
}

#[tokio::test]
async fn a_link_is_good_for_its_canvas_and_nothing_else() {
    let drawn = drawn().await;
    let link = drawn.link(&json!({"access": "act"}));
    let token = link.rsplit('/').next().unwrap().to_owned();
    for path in ["/api/v1/sessions", "/api/v1/canvases", "/v1/models", "/acp/v1/command"] {
        let method = if path == "/acp/v1/command" { "POST" } else { "GET" };
        let answer = loopback_json(&drawn.daemon, &format!("{method} {path}"), Some(&token), "");
        assert_eq!(answer.status, 401, "{path}");
    }
    let reading = drawn.link(&json!({}));
    let refused = drawn.post(&reading, "component=signup&version=1&v.name=x");
    assert_eq!(refused.status, 403);
    assert!(refused.body.contains("this link is read-only"));
    // From another site, to another name, in another encoding.
    let form = "component=signup&version=1&v.name=x";
    let post =
        |headers: &[(&str, &str)]| exchange_with(&drawn.daemon, &format!("POST {link}/actions"), headers, form).status;
    let plain = ("Content-Type", "application/x-www-form-urlencoded");
    assert_eq!(post(&[plain, ("Origin", "https://evil.example")]), 403);
    assert_eq!(post(&[plain, ("Origin", "null")]), 403);
    assert_eq!(post(&[("Content-Type", "text/plain")]), 422);
    assert_eq!(post(&[plain, ("Content-Encoding", "gzip")]), 415);
    let rebound = crate::raw::loopback(&drawn.daemon, &format!("GET {link}"), &[("Host", "evil.example")]);
    assert!((400..500).contains(&rebound.status), "{rebound:?}");
    let huge = format!("component=signup&version=1&v.name={}", "x".repeat(300_000));
    assert_eq!(drawn.post(&link, &huge).status, 413);
    let runs = drawn.daemon.client.session(drawn.session.parse().unwrap(), &Default::default()).await.unwrap().runs;
    assert_eq!(runs.len(), 1, "nothing of that reached the session");
    for bad in [json!({"expires_in_seconds": 0}), json!({"expires_in_seconds": 86_401}), json!({"access": "admin"})] {
        let path = format!("POST /api/v1/canvases/{}/link", drawn.canvas);
        assert_eq!(
            unix(&drawn.daemon, &path, bad.to_string().as_bytes()).refusal(),
            (422, "request_invalid".to_owned())
        );
    }
    // The token is told once: neither the journal nor an idempotent answer has it.
    let path = format!("POST /api/v1/canvases/{}/link", drawn.canvas);
    let kept = exchange_with(
        &drawn.daemon,
        &path,
        &[("Authorization", &format!("Bearer {}", drawn.daemon.token())), ("Idempotency-Key", "k")],
        "{}",
    );
    assert_eq!(kept.refusal(), (422, "request_invalid".to_owned()));
    let tail = unix(&drawn.daemon, "GET /api/v1/journal/tail?n=100", b"").body;
    assert!(tail.contains("canvas.linked") && !tail.contains(&token));
}

#[tokio::test]
async fn a_page_follows_its_canvas_and_learns_of_its_end() {
    let drawn = drawn().await;
    let link = drawn.link(&json!({}));
    let mut stream = TcpStream::connect(drawn.daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let host = drawn.daemon.address();
    write!(stream, "GET {link}/events HTTP/1.1\r\nHost: {host}\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream).lines().map(|line| line.unwrap());
    assert!(lines.by_ref().any(|line| line == "id: 1"), "the version there is comes first");
    assert!(lines.by_ref().any(|line| line == "event: version"));
    drawn.close();
    assert!(lines.by_ref().any(|line| line == "event: end"));
    assert_eq!(drawn.get(&link).status, 404);
}

#[tokio::test]
async fn what_was_seen_is_not_told_again() {
    let drawn = drawn().await;
    let link = drawn.link(&json!({}));
    for (path, headers) in
        [(format!("{link}/events?from=1"), vec![]), (format!("{link}/events"), vec![("Last-Event-ID", "1")])]
    {
        let mut stream = TcpStream::connect(drawn.daemon.address()).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(700))).unwrap();
        let host = drawn.daemon.address();
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\n").unwrap();
        for (name, value) in headers {
            write!(stream, "{name}: {value}\r\n").unwrap();
        }
        write!(stream, "\r\n").unwrap();
        let lines: Vec<_> = BufReader::new(stream).lines().map_while(Result::ok).collect();
        assert!(lines.iter().any(|line| line.contains("text/event-stream")), "{lines:?}");
        assert!(!lines.iter().any(|line| line.starts_with("id:")), "{lines:?}");
    }
}

#[tokio::test]
async fn a_question_is_answered_on_a_card_in_palyras_own_words() {
    let drawn = drawn().await;
    let mut task = drawn.daemon.task("write the file");
    task.session_id = Some(drawn.session.parse().unwrap());
    let run = drawn.daemon.client.create_run(&task).await.unwrap();
    let approval = loop {
        let pending = drawn.daemon.client.run(run.run_id).await.unwrap().pending_approvals;
        if let Some(approval) = pending.first() {
            break approval.approval_id;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let reading = drawn.get(&drawn.link(&json!({}))).body;
    assert!(
        reading.contains("Palyra asks: ") && reading.contains("a.txt") && !reading.contains("Allow once"),
        "{reading}"
    );
    let link = drawn.link(&json!({"access": "act"}));
    let page = drawn.get(&link).body;
    assert!(page.contains("Allow once"), "{page}");
    let form = |action: &str, id: &str| format!("component=card&version=1&approval={id}&action={action}");
    assert_eq!(drawn.post(&link, &form("submit", &approval.to_string())).status, 422);
    let unknown = palyra_common::ApprovalId::generate().to_string();
    assert_eq!(drawn.post(&link, &form("allow", &unknown)).status, 404);
    assert!(!drawn.place.workspace().join("a.txt").exists());
    let done = drawn.post(&link, &form("allow", &approval.to_string()));
    assert_eq!((done.status, done.raw_header("location")), (303, format!("{link}?done=answered")));
    let events = drawn.daemon.follow(run.run_id, 1).await;
    assert!(drawn.place.workspace().join("a.txt").exists());
    let answered = serde_json::to_string(&events).unwrap();
    assert!(answered.contains("tool_approval_response"), "{answered}");
    assert_eq!(drawn.daemon.client.run(run.run_id).await.unwrap().run.phase, RunLifecyclePhase::Completed);
    let decided = unix(&drawn.daemon, &format!("GET /api/v1/approvals/{approval}"), b"").json();
    assert_eq!(
        decided["answer"]["via"].as_str().map(|via| via.starts_with("canvas link of unix socket")),
        Some(true),
        "{decided}"
    );
}

#[tokio::test]
async fn a_card_answers_no_question_of_another_session() {
    let drawn = drawn().await;
    let run = drawn.daemon.create("write the file").await;
    let approval = loop {
        let pending = drawn.daemon.client.run(run.run_id).await.unwrap().pending_approvals;
        if let Some(approval) = pending.first() {
            break approval.approval_id;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    };
    let link = drawn.link(&json!({"access": "act"}));
    assert!(!drawn.get(&link).body.contains("a.txt"), "it is not shown");
    let form = format!("component=card&version=1&approval={approval}&action=allow");
    assert_eq!(drawn.post(&link, &form).status, 404, "and not answered");
    assert!(!drawn.place.workspace().join("a.txt").exists());
}

#[tokio::test]
async fn a_link_outlives_a_restart() {
    let drawn = drawn().await;
    let link = drawn.link(&json!({"access": "act"}));
    let Drawn { place, daemon, session, canvas } = drawn;
    daemon.kill();
    let daemon = place.start().await;
    let drawn = Drawn { place, daemon, session, canvas };
    let page = drawn.get(&link);
    assert_eq!(page.status, 200, "{page:?}");
    assert!(page.body.contains("signup"));
}

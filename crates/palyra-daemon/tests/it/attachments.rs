//! Files that go with tasks: stored by their owners, shown to models, and forms that are made to hurt.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use palyra_client::api::{AddAttachmentParams, AttachmentParams, CreateRunParams};
use serde_json::{Value, json};

use crate::hostile::{peak, unharmed};
use crate::raw::{Answer, exchange_with, unix};
use crate::support::{Daemon, Place, code};

const ECHO: &str = "[[turn]]\necho = \"user\"";
const FORM: &str = "POST /api/v1/attachments/form";
const TYPE: (&str, &str) = ("Content-Type", "multipart/form-data; boundary=XyZ");

fn part(file: &str, content: &str) -> String {
    format!("--XyZ\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{file}\"\r\n\r\n{content}\r\n")
}

fn send(daemon: &Daemon, headers: &[(&str, &str)], body: &str) -> Answer {
    let token = format!("Bearer {}", daemon.token());
    let mut all = vec![("Authorization", token.as_str())];
    all.extend_from_slice(headers);
    exchange_with(daemon, FORM, &all, body)
}

async fn answer_with(daemon: &Daemon, attachments: Vec<AttachmentParams>) -> String {
    let params = CreateRunParams { attachments, ..daemon.task("what does it say?") };
    let run = daemon.client.create_run(&params).await.unwrap();
    daemon.follow(run.run_id, 1).await;
    daemon.client.run(run.run_id).await.unwrap().answer.unwrap()
}

#[tokio::test]
async fn a_text_reaches_the_model_however_it_was_sent() {
    let place = Place::new().with_script(ECHO);
    let daemon = place.start().await;
    let params =
        AddAttachmentParams { name: "C:\\Users\\me\\note.txt".into(), data: "dGhlIGhlcm9uIGxhbmRlZA==".into() };
    let alone = daemon.client.add_attachment(&params).await.unwrap();
    assert_eq!((alone.name.as_str(), alone.media_type.as_str(), alone.size_bytes), ("note.txt", "text/plain", 16));
    let form = format!("{}{}--XyZ--\r\n", part("../../a.md", "first of the form"), part("b.md", "second of the form"));
    let stored = send(&daemon, &[TYPE], &form);
    assert_eq!(stored.status, 200, "{}", stored.body);
    let files: Vec<AttachmentParams> = serde_json::from_value(stored.json()["attachments"].clone()).unwrap();
    assert_eq!(files.iter().map(|file| file.name.as_str()).collect::<Vec<_>>(), ["a.md", "b.md"]);
    let said = answer_with(&daemon, [vec![alone], files].concat()).await;
    for text in ["the heron landed", "first of the form", "second of the form", "attachment a.md"] {
        assert!(said.contains(text), "{text} is missing: {said}");
    }
}

#[tokio::test]
async fn a_file_is_attached_by_its_owner_alone_and_outlives_a_kill() {
    let place = Place::new().with_script(ECHO);
    let daemon = place.start().await;
    let params = AddAttachmentParams { name: "mine.txt".into(), data: "bWluZSBhbG9uZQ==".into() };
    let mine = daemon.client.add_attachment(&params).await.unwrap();
    let other = json!({"name": "other", "role": "operator", "subject": "mallory"});
    let made = unix(&daemon, "POST /api/v1/tokens", other.to_string().as_bytes());
    assert_eq!(made.status, 200, "{}", made.body);
    let token = format!("Bearer {}", made.json()["secret"].as_str().unwrap());
    let task = json!({"prompt": "p", "workspace": place.workspace(), "attachments": [mine]}).to_string();
    let refused = exchange_with(&daemon, "POST /api/v1/runs", &[("Authorization", &token)], &task);
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body.contains("you have not uploaded a file"), "{}", refused.body);
    daemon.kill();
    let daemon = place.start().await;
    assert!(answer_with(&daemon, vec![mine]).await.contains("mine alone"));
}

#[tokio::test]
async fn what_no_model_can_read_refuses_the_run() {
    let place = Place::new().with_script(ECHO);
    let daemon = place.start().await;
    let params = AddAttachmentParams { name: "a.bin".into(), data: "AAECAw==".into() };
    let stored = daemon.client.add_attachment(&params).await.unwrap();
    assert_eq!(stored.media_type, "application/octet-stream");
    let params = CreateRunParams { attachments: vec![stored.clone()], ..daemon.task("look") };
    assert_eq!(code(daemon.client.create_run(&params).await), "file_reference_invalid");
    let many = CreateRunParams { attachments: vec![stored; 17], ..daemon.task("look") };
    assert_eq!(code(daemon.client.create_run(&many).await), "request_invalid");
    for (name, data) in [("", "YQ=="), ("a\nb", "YQ=="), ("a", ""), ("a", "not base64"), (&"x".repeat(300), "YQ==")] {
        let params = AddAttachmentParams { name: name.into(), data: data.into() };
        assert_eq!(code(daemon.client.add_attachment(&params).await), "request_invalid", "{name:?} {data:?}");
    }
}

#[tokio::test]
async fn forms_that_are_wrong_are_refused_and_leave_nothing() {
    let place = Place::new();
    let daemon = place.start().await;
    let right = format!("{}--XyZ--\r\n", part("a.txt", "x"));
    let many = format!("{}--XyZ--\r\n", part("a.txt", "x").repeat(17));
    let field = "--XyZ\r\nContent-Disposition: form-data; name=\"note\"\r\n\r\nx\r\n--XyZ--\r\n";
    let long_head = format!("--XyZ\r\nX-Long: {}\r\n\r\nx\r\n--XyZ--\r\n", "y".repeat(3 << 20));
    let cases: [(&str, &str, &str); 9] = [
        ("text/plain", &right, "content-type"),
        ("multipart/form-data", &right, "content-type"),
        ("multipart/form-data; boundary=other", &right, "body"),
        (TYPE.1, "", "body"),
        (TYPE.1, &right[..right.len() - 8], "body"),
        (TYPE.1, field, "body"),
        (TYPE.1, &many, "body"),
        (TYPE.1, &long_head, "body"),
        (TYPE.1, &format!("{}--XyZ--\r\n", part("a.txt", "")), "data"),
    ];
    for (content_type, body, wrong) in cases {
        let answer = send(&daemon, &[("Content-Type", content_type)], body);
        assert_eq!(answer.refusal(), (422, "request_invalid".to_owned()), "{content_type}: {}", answer.body);
        assert_eq!(answer.json()["error"]["validation_errors"][0]["field"], wrong, "{}", answer.body);
    }
    let packed = send(&daemon, &[TYPE, ("Content-Encoding", "gzip")], &right);
    assert_eq!(packed.refusal(), (415, "encoding_unsupported".to_owned()));
    let unknown = exchange_with(&daemon, FORM, &[TYPE], &right);
    assert_eq!(unknown.status, 401);
    let incoming = daemon.state_root.join("artifacts/incoming");
    let left: Vec<_> = std::fs::read_dir(&incoming).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Sends a form without end of one file, and says what came back before the daemon hung up.
fn flood(daemon: &Daemon, head: &str, megabytes: usize) -> String {
    let mut stream = TcpStream::connect(daemon.address()).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let request = format!(
        "{FORM} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{}: {}\r\nTransfer-Encoding: chunked\r\n\r\n",
        daemon.address(),
        daemon.token(),
        TYPE.0,
        TYPE.1
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut pieces =
        std::iter::once(head.as_bytes().to_vec()).chain(std::iter::repeat_n(vec![b'z'; 1 << 20], megabytes));
    // It may be refused before all of it is sent.
    let _ = pieces.try_for_each(|piece| {
        stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes())?;
        stream.write_all(&piece)?;
        stream.write_all(b"\r\n")
    });
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn forms_without_end_cost_neither_memory_nor_disk() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let head = part("large.bin", "");
    for (head, megabytes) in [(head.trim_end(), 48), ("--XyZ\r\nX-Endless: ", 48), ("no part at all", 48)] {
        let answer = flood(&daemon, &format!("{head}\r\n\r\n"), megabytes);
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 4"), "{answer}");
    }
    unharmed(&daemon, before).await;
    let incoming = daemon.state_root.join("artifacts/incoming");
    let left: Vec<_> = std::fs::read_dir(&incoming).into_iter().flatten().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[tokio::test]
async fn curl_sends_a_large_file_in_pieces() {
    let place = Place::new();
    let daemon = place.start().await;
    let before = peak(&daemon);
    let file = place.path().join("large.txt");
    std::fs::write(&file, "a line of it\n".repeat(2 << 20)).unwrap();
    let sent = std::process::Command::new("curl")
        .args(["-sS", "--max-time", "120", "-F", &format!("file=@{}", file.display())])
        .args(["-H", &format!("Authorization: Bearer {}", daemon.token())])
        .arg(format!("http://{}/api/v1/attachments/form", daemon.address()))
        .output()
        .unwrap();
    let answer: Value = serde_json::from_slice(&sent.stdout).unwrap_or_else(|error| panic!("{error}: {sent:?}"));
    assert_eq!(answer["attachments"][0]["size_bytes"], 13 * (2 << 20), "{answer}");
    let grown = peak(&daemon).saturating_sub(before);
    assert!(grown < 16 << 20, "taking in 26 MiB cost {grown} bytes of memory");
}

//! A server of the protocol over standard streams, written by hand so that it can also misbehave.
//!
//! The first argument says how it greets (`2025`, `2024`, `2026`, `deaf`, `mute`, `quits`, `babbles`), the second where it counts its
//! starts. What it does after that depends on the tool that is called. The same behaviour over HTTP is played inside the tests.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a program for tests only"
)]

use std::io::{BufRead as _, Write as _};
use std::sync::mpsc;
use std::time::Duration;

use serde_json::{Value, json};

const META: &str = "io.modelcontextprotocol/subscriptionId";

struct Played {
    greeting: String,
    changed: bool,
    subscription: Option<Value>,
    lines: mpsc::Receiver<Value>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let greeting = arguments.get(1).cloned().unwrap_or_else(|| "2025".to_owned());
    if let Some(counter) = arguments.get(2) {
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(counter).unwrap();
        file.write_all(b"x").unwrap();
    }
    eprintln!("played server starts, greeting {greeting}");
    match greeting.as_str() {
        "quits" => {
            eprintln!("I am out of order");
            std::process::exit(3);
        }
        "babbles" => loop {
            if writeln!(std::io::stdout(), "{}", "bla ".repeat(1000)).is_err() {
                return;
            }
        },
        _ => {}
    }
    let (sender, lines) = mpsc::channel();
    std::thread::spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.send(serde_json::from_str(&line).unwrap()).is_err() {
                break;
            }
        }
    });
    let mut played = Played { greeting, changed: false, subscription: None, lines };
    while let Ok(message) = played.lines.recv() {
        played.answer(&message);
    }
}

fn say(message: &Value) {
    let mut stdout = std::io::stdout().lock();
    if writeln!(stdout, "{message}").and_then(|()| stdout.flush()).is_err() {
        std::process::exit(0);
    }
}

fn text(words: impl Into<String>) -> Value {
    json!({ "content": [{ "type": "text", "text": words.into() }] })
}

fn tool(name: &str, arguments: &[&str]) -> Value {
    let properties: serde_json::Map<String, Value> =
        arguments.iter().map(|name| ((*name).to_owned(), json!({ "type": "string" }))).collect();
    json!({ "name": name, "description": format!("Plays {name}."), "inputSchema": { "type": "object", "properties": properties } })
}

/// A tool that promises a number.
fn promising() -> Value {
    let mut tool = tool("promise", &["value"]);
    tool["outputSchema"] = json!({ "type": "object", "properties": { "value": { "type": "integer" } } });
    tool
}

impl Played {
    fn answer(&mut self, message: &Value) {
        let id = &message["id"];
        let result = |result: Value| say(&json!({ "result": result, "jsonrpc": "2.0", "id": id }));
        let unknown = || {
            say(&json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } }));
        };
        match (message["method"].as_str().unwrap_or_default(), self.greeting.as_str()) {
            (_, "mute") | ("server/discover", "deaf") => {}
            ("server/discover", "2026") => result(json!({
                "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
                "capabilities": { "tools": { "listChanged": true } },
                "_meta": { "io.modelcontextprotocol/serverInfo": { "name": "played", "version": "1" } },
            })),
            ("subscriptions/listen", "2026") => {
                self.subscription = Some(id.clone());
                say(&json!({ "jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {
                    "notifications": { "toolsListChanged": true }, "_meta": { META: id } } }));
            }
            ("initialize", greeting) if greeting != "2026" => {
                let version = if greeting == "2024" { "2024-11-05" } else { "2025-11-25" };
                result(json!({ "protocolVersion": version, "capabilities": { "tools": { "listChanged": true } },
                    "serverInfo": { "name": "played", "version": "1" } }));
            }
            ("notifications/initialized", _) => {}
            ("notifications/cancelled", _) => eprintln!("told to stop: {}", message["params"]["reason"]),
            ("ping", _) => result(json!({})),
            ("tools/list", _) => result(self.page(message["params"]["cursor"].as_str())),
            ("tools/call", _) => {
                if let Some(answer) = self.call(message) {
                    result(answer);
                }
            }
            _ if id.is_null() => {}
            _ => unknown(),
        }
    }

    /// The list in two pages, so that whoever reads only the first misses something.
    fn page(&self, cursor: Option<&str>) -> Value {
        let mut first = vec![
            tool("echo", &["text"]),
            promising(),
            tool("environment", &[]),
            tool("wait", &["milliseconds"]),
            tool("die", &[]),
            tool("huge", &["bytes"]),
            tool("flood", &[]),
            tool("babble", &[]),
        ];
        if self.changed {
            first[0]["description"] = json!("Now says something else.");
            first.push(tool("newcomer", &[]));
        }
        match cursor {
            None => json!({ "resultType": "complete", "tools": first, "nextCursor": "second page" }),
            Some("second page") => json!({ "resultType": "complete", "tools": [
                tool("change", &[]), tool("progress", &[]), tool("ask", &[]), tool("fail", &[]), tool("malformed", &[]),
                tool("parts", &[]), tool("family", &[]), tool("deaf", &[]), tool("more", &[]),
            ] }),
            Some(other) => panic!("unknown cursor {other}"),
        }
    }

    fn call(&mut self, message: &Value) -> Option<Value> {
        let arguments = &message["params"]["arguments"];
        let meta = &message["params"]["_meta"];
        let number =
            |name: &str| arguments[name].as_str().and_then(|text| text.parse::<u64>().ok()).unwrap_or_default();
        Some(match message["params"]["name"].as_str().unwrap_or_default() {
            "echo" => json!({
                "content": [{ "type": "text", "text": arguments["text"] }],
                "structuredContent": { "said": arguments["text"], "effect": meta["palyra.dev/effect-id"] },
            }),
            "environment" => {
                let mut names: Vec<String> = std::env::vars().map(|(name, _)| name).collect();
                names.sort();
                text(format!("{} in {}", names.join(","), std::env::current_dir().unwrap().display()))
            }
            "wait" => {
                eprintln!("waiting {}", arguments["milliseconds"]);
                std::thread::sleep(Duration::from_millis(number("milliseconds")));
                text("waited")
            }
            "die" => {
                eprintln!("last words, with the secret {}", std::env::var("PLAYED_SECRET").unwrap_or_default());
                std::process::exit(7)
            }
            "huge" => text("x".repeat(usize::try_from(number("bytes")).unwrap())),
            "flood" => loop {
                say(
                    &json!({ "jsonrpc": "2.0", "method": "notifications/message", "params": { "level": "info", "data": "bla" } }),
                );
            },
            "babble" => loop {
                if writeln!(std::io::stdout(), "no JSON at all, {}", "bla ".repeat(100)).is_err() {
                    std::process::exit(0);
                }
            },
            "change" => {
                self.changed = true;
                let mut news = json!({ "jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {} });
                if let Some(subscription) = &self.subscription {
                    news["params"]["_meta"] = json!({ META: subscription });
                }
                say(&news);
                text("changed")
            }
            "progress" => {
                for step in 1..=1000 {
                    say(&json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
                        "progressToken": meta["progressToken"], "progress": step, "total": 1000, "message": "x".repeat(2000) } }));
                }
                text("done")
            }
            "ask" => {
                let mut answers = Vec::new();
                for (number, method, params) in [
                    (901, "sampling/createMessage", json!({ "messages": [], "maxTokens": 10 })),
                    (902, "roots/list", json!({})),
                    (
                        903,
                        "elicitation/create",
                        json!({ "message": "Password?", "requestedSchema": { "type": "object", "properties": {} } }),
                    ),
                ] {
                    say(&json!({ "jsonrpc": "2.0", "id": number, "method": method, "params": params }));
                    let answer = self.lines.recv().unwrap();
                    answers.push(format!("{}: {}", answer["id"], answer["error"]["code"]));
                }
                text(answers.join(", "))
            }
            "promise" => {
                let value: Value = serde_json::from_str(arguments["value"].as_str().unwrap()).unwrap();
                json!({ "content": [], "structuredContent": { "value": value } })
            }
            "fail" => json!({ "content": [{ "type": "text", "text": "out of paper" }], "isError": true }),
            "malformed" => {
                say(
                    &json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "content": [{ "type": "hologram" }] } }),
                );
                return None;
            }
            "more" => json!({ "resultType": "input_required", "inputRequests": {}, "requestState": "x" }),
            "parts" => json!({ "content": [
                { "type": "text", "text": "before" },
                { "type": "image", "data": "AAAA", "mimeType": "image/png" },
                { "type": "resource", "resource": { "uri": "file:///a", "text": "inside" } },
                { "type": "resource_link", "uri": "file:///b", "name": "b" },
            ] }),
            "family" => {
                #[expect(clippy::zombie_processes, reason = "a server that does not look after its children")]
                let child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
                text(format!("{} {}", std::process::id(), child.id()))
            }
            "deaf" => {
                std::thread::sleep(Duration::from_secs(600));
                return None;
            }
            other => panic!("unknown tool {other}"),
        })
    }
}

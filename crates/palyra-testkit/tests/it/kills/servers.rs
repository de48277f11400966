//! MCP servers that outlive the daemon and write down every call before they answer it: one program on standard streams, one web service.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use anyhow::{Context as _, Result, ensure};
use palyra_testkit::TestContext;
use serde_json::{Value, json};

/// Appends the entry of each call to the file in its first argument. Nothing in it says that a call may be repeated.
const PROGRAM: &str = r#"#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\([0-9]*\).*/\1/p')
  case "$line" in
    *'"server/discover"'*) printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no"}}\n' "$id" ;;
    *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"ledger","version":"1"}}}\n' "$id" ;;
    *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[{"name":"record","inputSchema":{"type":"object","properties":{"entry":{"type":"string"},"note":{"type":"string"}}}}]}}\n' "$id" ;;
    *'"tools/call"'*)
      printf '%s\n' "$line" | sed -n 's/.*"entry":"\([^"]*\)".*/\1/p' >> "$1"
      printf '{"jsonrpc":"2.0","id":%s,"result":{"content":[{"type":"text","text":"recorded"}]}}\n' "$id" ;;
  esac
done
"#;

/// Where the effects of both servers arrive.
#[derive(Debug, Clone)]
pub(super) struct Ledger {
    file: PathBuf,
    web: Arc<Mutex<Vec<String>>>,
}

impl Ledger {
    /// Adds both servers to the state of this context.
    pub(super) fn add_servers(context: &TestContext) -> Result<Self> {
        let program = context.root().join("ledger.sh");
        std::fs::write(&program, PROGRAM)?;
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700))?;
        let ledger = Self { file: context.root().join("entries"), web: Arc::default() };
        let url = ledger.serve()?;
        let (program, file) = (program.display().to_string(), ledger.file.display().to_string());
        let stdio = ["mcp", "add", "ledger", "--", &program, &file];
        let http = ["mcp", "add", "web", "--url", &url];
        for arguments in [&stdio[..], &http[..]] {
            let added = context.run(arguments)?;
            ensure!(added.code == 0, "{added}");
        }
        Ok(ledger)
    }

    /// How often this entry arrived, at whichever server.
    pub(super) fn count(&self, entry: &str) -> usize {
        let file = std::fs::read_to_string(&self.file).unwrap_or_default();
        let web = self.web.lock().unwrap();
        file.lines().chain(web.iter().map(String::as_str)).filter(|line| *line == entry).count()
    }

    /// Every entry that arrived, in no order.
    pub(super) fn entries(&self) -> Vec<String> {
        let file = std::fs::read_to_string(&self.file).unwrap_or_default();
        file.lines().map(str::to_owned).chain(self.web.lock().unwrap().iter().cloned()).collect()
    }

    /// An effect that arrives as if from the web service.
    pub(super) fn record(&self, entry: &str) {
        self.web.lock().unwrap().push(entry.to_owned());
    }

    /// Serves until the test process ends; a connection has one request.
    fn serve(&self) -> Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}/mcp", listener.local_addr()?);
        let web = Arc::clone(&self.web);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(std::result::Result::ok) {
                let web = Arc::clone(&web);
                // A daemon that is killed in the middle of a request leaves half of it; the next one has a connection of its own.
                std::thread::spawn(move || drop(answer(stream, &web)));
            }
        });
        Ok(url)
    }
}

fn answer(mut stream: TcpStream, web: &Mutex<Vec<String>>) -> Result<()> {
    let message = read_message(&mut stream)?;
    let Some(id) = message.get("id") else {
        return Ok(stream.write_all(b"HTTP/1.1 202 Accepted\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")?);
    };
    let result = match message["method"].as_str().context("a request has a method")? {
        "server/discover" => Ok(json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": { "tools": {} },
        })),
        "tools/list" => {
            let properties = json!({ "entry": { "type": "string" }, "note": { "type": "string" } });
            let tool = json!({ "name": "record", "inputSchema": { "type": "object", "properties": properties } });
            Ok(json!({ "resultType": "complete", "tools": [tool], "ttlMs": 0, "cacheScope": "private" }))
        }
        "tools/call" => {
            let entry = message["params"]["arguments"]["entry"].as_str().context("an entry")?;
            web.lock().unwrap().push(entry.to_owned());
            Ok(json!({ "resultType": "complete", "content": [{ "type": "text", "text": "recorded" }] }))
        }
        _ => Err(json!({ "code": -32601, "message": "Method not found" })),
    };
    let body = match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(error) => json!({ "jsonrpc": "2.0", "id": id, "error": error }),
    }
    .to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    Ok(())
}

fn read_message(stream: &mut TcpStream) -> Result<Value> {
    let (mut held, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let read = stream.read(&mut part)?;
        ensure!(read > 0, "the client went away");
        held.extend_from_slice(&part[..read]);
        let Some(end) = held.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let head = String::from_utf8_lossy(&held[..end]).to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:")).context("a length")?;
        let body = &held[end + 4..];
        if body.len() >= length.trim().parse()? {
            return Ok(serde_json::from_slice(body)?);
        }
    }
}

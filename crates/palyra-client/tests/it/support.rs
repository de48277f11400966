//! A played daemon: takes one request per connection, answers with the bytes it is told to, and hangs up.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use palyra_client::{Client, Endpoint, SocketPath};
use palyra_common::{
    ModelToken, RunId, RunLifecyclePhase, RunStatus, RunStreamBody, RunStreamEvent, SessionId, Timestamp,
};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

/// What the client sent.
#[derive(Debug, Clone)]
pub(crate) struct Received {
    pub(crate) line: String,
    pub(crate) head: String,
    pub(crate) body: String,
}

type Answers = dyn Fn(usize, &Received) -> Vec<u8> + Send + Sync;

pub(crate) struct FakeDaemon {
    directory: TempDir,
    root: PathBuf,
    received: Arc<Mutex<Vec<Received>>>,
    serving: tokio::task::JoinHandle<()>,
}

impl Drop for FakeDaemon {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

impl FakeDaemon {
    /// Serves in a fresh state root; `answers` gets the number of the request (from 0) and the request.
    pub(crate) fn start(answers: impl Fn(usize, &Received) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().to_owned();
        Self::start_in(directory, root, Arc::new(answers))
    }

    /// The same in a state root so deep that its socket's path does not fit a socket address.
    pub(crate) fn start_deep(answers: impl Fn(usize, &Received) -> Vec<u8> + Send + Sync + 'static) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let root = directory.path().join("d".repeat(120)).join("e".repeat(120));
        std::fs::create_dir_all(&root).unwrap();
        Self::start_in(directory, root, Arc::new(answers))
    }

    fn start_in(directory: TempDir, root: PathBuf, answers: Arc<Answers>) -> Self {
        let path = SocketPath::in_state_root(&root).unwrap();
        let listener = UnixListener::bind(path.as_path()).unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&received);
        let serving = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                serve_one(stream, &answers, &log).await;
            }
        });
        Self { directory, root, received, serving }
    }

    pub(crate) fn client(&self) -> Client {
        assert!(self.directory.path().exists());
        Client::new(Endpoint::unix(&self.root))
    }

    pub(crate) fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }
}

async fn serve_one(mut stream: UnixStream, answers: &Arc<Answers>, log: &Mutex<Vec<Received>>) {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    let request = loop {
        let n = stream.read(&mut chunk).await.unwrap();
        if n == 0 {
            return;
        }
        bytes.extend_from_slice(&chunk[..n]);
        let text = String::from_utf8(bytes.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head
                .lines()
                .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ").map(str::to_owned))
                .map_or(0, |length| length.parse::<usize>().unwrap());
            if body.len() >= length {
                break Received {
                    line: head.lines().next().unwrap().to_owned(),
                    head: head.to_owned(),
                    body: body.to_owned(),
                };
            }
        }
    };
    let number = {
        let mut log = log.lock().unwrap();
        log.push(request.clone());
        log.len() - 1
    };
    // The client may have hung up already; that is its right.
    let _ = stream.write_all(&answers(number, &request)).await;
    let _ = stream.shutdown().await;
}

/// A whole JSON answer.
pub(crate) fn json(status: &str, body: &serde_json::Value) -> Vec<u8> {
    raw(status, "application/json", &body.to_string())
}

pub(crate) fn raw(status: &str, media_type: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!("HTTP/1.1 {status}\r\ncontent-type: {media_type}\r\ncontent-length: {length}\r\n\r\n{body}").into_bytes()
}

/// How a stream ends.
pub(crate) enum Ending {
    /// With the closing chunk.
    Proper,
    /// In the middle, after so many bytes of the body.
    CutAfter(usize),
}

/// A stream of lines in chunks.
pub(crate) fn stream(body: &str, ending: &Ending) -> Vec<u8> {
    let mut out =
        b"HTTP/1.1 200 OK\r\ncontent-type: application/x-ndjson\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    let kept = match ending {
        Ending::Proper => body.len(),
        Ending::CutAfter(kept) => (*kept).min(body.len()),
    };
    // Odd chunk size, so that lines and chunks never coincide for long.
    for chunk in body.as_bytes()[..kept].chunks(37) {
        out.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        out.extend_from_slice(chunk);
        out.extend_from_slice(b"\r\n");
    }
    if matches!(ending, Ending::Proper) {
        out.extend_from_slice(b"0\r\n\r\n");
    }
    out
}

pub(crate) const RUN: u128 = 77;

/// A tape of tokens that ends with the terminal status.
pub(crate) fn finished_tape(length: u64) -> Vec<RunStreamEvent> {
    (1..=length)
        .map(|seq| {
            let body = if seq == length {
                RunStreamBody::Status(RunStatus::entered(RunLifecyclePhase::Completed))
            } else {
                RunStreamBody::ModelToken(ModelToken { turn: 1, text: format!("word {seq} ä ") })
            };
            RunStreamEvent { run_id: RunId::from_u128(RUN), seq, at: Timestamp(seq.cast_signed()), body }
        })
        .collect()
}

pub(crate) fn lines(events: &[RunStreamEvent]) -> String {
    events.iter().map(|event| serde_json::to_string(event).unwrap() + "\n").collect()
}

pub(crate) fn from_seq(request: &Received) -> u64 {
    let query = request.line.split("from_seq=").nth(1).unwrap();
    query.chars().take_while(char::is_ascii_digit).collect::<String>().parse().unwrap()
}

pub(crate) fn run_view(phase: &str, last_seq: u64) -> serde_json::Value {
    serde_json::json!({
        "run_id": RunId::from_u128(RUN), "session_id": SessionId::from_u128(1), "phase": phase, "prompt": "list",
        "workspace": "/w", "created_at": 5, "turns": 1, "tool_calls": 0, "last_seq": last_seq, "model": "offline",
        "undone": false,
    })
}

pub(crate) fn run_detail(phase: &str, last_seq: u64) -> serde_json::Value {
    let mut view = run_view(phase, last_seq);
    let more = serde_json::json!({
        "changes": [], "pending_approvals": [], "usage": { "input_tokens": 1, "output_tokens": 2 },
        "mode": "guarded",
        "timings": { "total_ms": 1, "model_ms": 1, "tools_ms": 0, "waiting_ms": 0 },
    });
    view.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    view
}

//! A scripted model server for tests: real HTTP on a loopback port, the wires of several vendors, faults on demand.
//!
//! [`ModelServer`] answers what belongs to one of its [`Wire`]s with queued [`Reply`]s first, then from its script, `GET …/models`
//! with its list and `POST …/embeddings` with vectors that tell the lengths of the texts. It captures every request. It uses plain
//! threads and sockets so that tests of any crate can have it without a runtime, and so that it can misbehave in ways that no HTTP
//! library would allow. Dropping it closes all connections and joins its threads.

mod anthropic_wire;
mod chat_wire;
mod fault;
mod gemini_wire;
mod http;
mod ollama_wire;
mod reply;
mod responses_wire;
mod said;

use std::collections::VecDeque;
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use serde_json::{Value, json};

use self::http::{Connection, Sent};
use crate::message::{Message, Role};
use crate::scripted::Script;

pub use self::anthropic_wire::AnthropicWire;
pub use self::chat_wire::ChatWire;
pub use self::fault::{Delivery, Dress, Fault, LineEnding};
pub use self::gemini_wire::GeminiWire;
pub use self::ollama_wire::OllamaWire;
pub use self::reply::Reply;
pub use self::responses_wire::ResponsesWire;
pub use self::said::{Said, SaidCall, StreamForm, Wire, WireEvent};

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct CapturedRequest {
    /// `GET` or `POST`.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Headers in order, names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as JSON, `null` when it was none.
    pub body: Value,
}

impl CapturedRequest {
    /// The value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value.as_str())
    }

    /// The messages of a request, as far as they can be read.
    #[must_use]
    pub fn messages(&self) -> Vec<Message> {
        let list = ["messages", "input"].iter().find_map(|field| self.body.get(field).and_then(Value::as_array));
        list.into_iter().flatten().filter_map(message).collect()
    }
}

/// One message of any wire.
fn message(entry: &Value) -> Option<Message> {
    let text = |field: &str| entry.get(field).and_then(Value::as_str).map(str::to_owned);
    if let Some(output) = entry.get("output") {
        let content = output.as_str().map_or_else(|| texts(output), str::to_owned);
        return Some(Message { tool_call_id: text("call_id"), role: Role::Tool, ..Message::user(content) });
    }
    let role = text("role")?.parse().ok()?;
    let content = text("content").unwrap_or_else(|| texts(entry.get("content").unwrap_or(&Value::Null)));
    Some(Message { role, tool_call_id: text("tool_call_id"), ..Message::user(content) })
}

/// The texts of a list of parts.
fn texts(parts: &Value) -> String {
    let parts = parts.as_array().map(Vec::as_slice).unwrap_or_default();
    parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect()
}

/// What all threads of a server share.
#[derive(Debug)]
struct Shared {
    wires: Vec<Box<dyn Wire>>,
    stopping: AtomicBool,
    abandoned: AtomicUsize,
    queue: Mutex<VecDeque<Reply>>,
    script: Mutex<Option<Script>>,
    places: Mutex<Vec<(String, Reply)>>,
    models: Mutex<Vec<String>>,
    requests: Mutex<Vec<CapturedRequest>>,
    connections: Mutex<Vec<JoinHandle<()>>>,
}

impl Shared {
    fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    fn reply_to(&self, request: &CapturedRequest) -> Reply {
        let path = request.path.split('?').next().unwrap_or_default();
        if let Some((_, reply)) = locked(&self.places).iter().find(|(place, _)| place == path) {
            return reply.clone();
        }
        match request.method.as_str() {
            "GET" if path.ends_with("/models") => {
                let models: Vec<Value> =
                    locked(&self.models).iter().map(|id| json!({ "id": id, "object": "model" })).collect();
                Reply::status(200, &json!({ "object": "list", "data": models }))
            }
            "POST" if path.ends_with("/embeddings") => embeddings(request),
            "POST" if self.wires.iter().any(|wire| wire.answers(path)) => self.completion(request),
            _ => Reply::status(404, &json!({ "error": { "message": "no such route" } })),
        }
    }

    fn completion(&self, request: &CapturedRequest) -> Reply {
        let reply = locked(&self.queue).pop_front().or_else(|| {
            let messages = request.messages();
            let script = locked(&self.script);
            let (position, turn) = script.as_ref()?.turn_at(&messages, None)?;
            Some(Reply::turn(turn, position, &messages))
        });
        let reply =
            reply.unwrap_or_else(|| Reply::status(400, &json!({ "error": { "message": "the script has ended" } })));
        if self.wire_of(request).wants_stream(&request.path, &request.body) { reply } else { reply.as_document() }
    }

    /// The wire that a request is in; the first one for requests that are in none.
    fn wire_of(&self, request: &CapturedRequest) -> &dyn Wire {
        let path = request.path.split('?').next().unwrap_or_default();
        let found = self.wires.iter().find(|wire| wire.answers(path)).or_else(|| self.wires.first());
        found.map_or(&ChatWire, |wire| wire.as_ref())
    }
}

/// Vectors that say how long their texts are and which they were, the last one first: no client may rely on the order.
fn embeddings(request: &CapturedRequest) -> Reply {
    let texts = request.body.get("input").and_then(Value::as_array).cloned().unwrap_or_default();
    let vector = |(index, text): (usize, &Value)| {
        let length = text.as_str().map_or(0, str::len);
        json!({ "object": "embedding", "index": index, "embedding": [length as f64, index as f64, 0.5] })
    };
    let data: Vec<Value> = texts.iter().enumerate().map(vector).rev().collect();
    let usage = json!({ "prompt_tokens": texts.len(), "total_tokens": texts.len() });
    let model = request.body.get("model").cloned().unwrap_or_default();
    Reply::status(200, &json!({ "object": "list", "data": data, "model": model, "usage": usage }))
}

/// The server. See the module's text.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

impl ModelServer {
    /// Starts on a free loopback port with queued replies only, in the wires of OpenAI.
    pub fn start(replies: Vec<Reply>) -> io::Result<Self> {
        Self::speaking(vec![Box::new(ChatWire), Box::new(ResponsesWire)], replies)
    }

    /// The same in these wires.
    pub fn speaking(wires: Vec<Box<dyn Wire>>, replies: Vec<Reply>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            wires,
            stopping: AtomicBool::new(false),
            abandoned: AtomicUsize::new(0),
            queue: Mutex::new(replies.into()),
            script: Mutex::new(None),
            places: Mutex::new(Vec::new()),
            models: Mutex::new(vec!["scripted-model".to_owned()]),
            requests: Mutex::new(Vec::new()),
            connections: Mutex::new(Vec::new()),
        });
        let of_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::Builder::new()
            .name("model-server".to_owned())
            .spawn(move || accept(&listener, &of_acceptor))?;
        Ok(Self { address, shared, acceptor: Some(acceptor) })
    }

    /// Starts with a script that picks its turns by the messages of each request.
    pub fn with_script(script: Script) -> io::Result<Self> {
        let server = Self::start(Vec::new())?;
        *locked(&server.shared.script) = Some(script);
        Ok(server)
    }

    /// Follows another script from now on, and forgets the requests so far.
    pub fn follow_script(&self, script: Script) {
        *locked(&self.shared.script) = Some(script);
        locked(&self.shared.requests).clear();
    }

    /// The address without a path, such as `http://127.0.0.1:4711`.
    #[must_use]
    pub fn address(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The base URL to configure.
    #[must_use]
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Queues one more reply; queued replies go before the script.
    pub fn push(&self, reply: Reply) {
        locked(&self.shared.queue).push_back(reply);
    }

    /// From now on answers every request for this path, without its query, in the same way.
    pub fn serve_at(&self, path: &str, reply: Reply) {
        let mut places = locked(&self.shared.places);
        places.retain(|(known, _)| known != path);
        places.push((path.to_owned(), reply));
    }

    /// Offers these models.
    pub fn offer_models(&self, models: &[&str]) {
        *locked(&self.shared.models) = models.iter().map(|&model| model.to_owned()).collect();
    }

    /// All requests so far, in order of arrival.
    #[must_use]
    pub fn requests(&self) -> Vec<CapturedRequest> {
        locked(&self.shared.requests).clone()
    }

    /// How many answers were cut short because the client hung up.
    #[must_use]
    pub fn abandoned(&self) -> usize {
        self.shared.abandoned.load(Ordering::Acquire)
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::Release);
        // Wakes the acceptor; if that fails it is gone already.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
        for connection in std::mem::take(&mut *locked(&self.shared.connections)) {
            let _ = connection.join();
        }
    }
}

fn accept(listener: &TcpListener, shared: &Arc<Shared>) {
    for stream in listener.incoming() {
        if shared.is_stopping() {
            return;
        }
        let Ok(stream) = stream else { continue };
        let of_connection = Arc::clone(shared);
        let spawned = std::thread::Builder::new()
            .name("model-server-connection".to_owned())
            .spawn(move || serve(stream, &of_connection));
        let mut connections = locked(&shared.connections);
        connections.retain(|connection| !connection.is_finished());
        connections.extend(spawned.ok());
    }
}

fn serve(stream: TcpStream, shared: &Shared) {
    let stopping = || shared.is_stopping();
    let Ok(mut connection) = Connection::new(stream) else { return };
    while let Some(request) = connection.read_request(&stopping) {
        let reply = shared.reply_to(&request);
        let wire = shared.wire_of(&request);
        locked(&shared.requests).push(request);
        match connection.send(&reply, wire, &stopping) {
            Sent::Whole => {}
            Sent::Closed => return,
            Sent::Abandoned => {
                shared.abandoned.fetch_add(1, Ordering::AcqRel);
                return;
            }
        }
    }
}

/// A thread that panicked while holding a lock leaves plain data behind; the others may go on with it.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

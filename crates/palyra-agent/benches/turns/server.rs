//! A model server that answers at once and keeps the times: when the first byte of each request came, and when the last byte of each answer went.

use std::collections::VecDeque;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

/// What the server says.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Asks for a tool without arguments.
    Call(&'static str),
    /// Says this.
    Say(String),
    /// Says something in so many parts.
    Parts(usize),
    /// Begins to speak and goes on only when it is let go.
    Hold,
}

#[derive(Debug, Default)]
struct State {
    answers: VecDeque<Answer>,
    first_bytes: Vec<Instant>,
    last_bytes: Vec<Instant>,
    let_go: bool,
}

/// The server. Its threads end when their connections do.
pub(crate) struct Server {
    address: SocketAddr,
    shared: Arc<(Mutex<State>, Condvar)>,
}

impl Server {
    pub(crate) fn start(answers: Vec<Answer>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let shared = Arc::new((Mutex::new(State { answers: answers.into(), ..State::default() }), Condvar::new()));
        let of_listener = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let shared = Arc::clone(&of_listener);
                std::thread::spawn(move || serve(stream, &shared));
            }
        });
        Self { address, shared }
    }

    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The times between the last byte of an answer and the first byte of the next request.
    pub(crate) fn gaps(&self) -> Vec<Duration> {
        let state = self.shared.0.lock().unwrap();
        state.last_bytes.iter().zip(state.first_bytes.iter().skip(1)).map(|(last, first)| *first - *last).collect()
    }

    pub(crate) fn requests(&self) -> usize {
        self.shared.0.lock().unwrap().first_bytes.len()
    }

    pub(crate) fn let_go(&self) {
        self.shared.0.lock().unwrap().let_go = true;
        self.shared.1.notify_all();
    }
}

fn serve(mut stream: TcpStream, shared: &(Mutex<State>, Condvar)) {
    stream.set_nodelay(true).unwrap();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let Ok(mut filled @ 1..) = stream.read(&mut buffer) else { return };
        let first = Instant::now();
        let mut request = buffer.get(..filled).unwrap_or_default().to_vec();
        while !is_whole(&request) {
            filled = stream.read(&mut buffer).unwrap_or(0);
            if filled == 0 {
                return;
            }
            request.extend_from_slice(buffer.get(..filled).unwrap_or_default());
        }
        let answer = {
            let mut state = shared.0.lock().unwrap();
            state.first_bytes.push(first);
            state.answers.pop_front().unwrap_or_else(|| Answer::Say("over".to_owned()))
        };
        if speak(&mut stream, &answer, shared).is_err() {
            return;
        }
        shared.0.lock().unwrap().last_bytes.push(Instant::now());
    }
}

/// Whether head and body are there.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request.get(..request.len().min(8 * 1024)).unwrap_or_default());
    let Some(head) = text.find("\r\n\r\n") else { return false };
    let length = text
        .lines()
        .find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length:").map(|n| n.trim().parse::<usize>()))
        .and_then(Result::ok)
        .unwrap_or(0);
    request.len() >= head + 4 + length
}

fn speak(stream: &mut TcpStream, answer: &Answer, shared: &(Mutex<State>, Condvar)) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    let mut say = |event: &str| {
        let line = format!("data: {event}\n\n");
        stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes())
    };
    let text = |text: &str| format!(r#"{{"choices":[{{"index":0,"delta":{{"content":"{text}"}}}}]}}"#);
    let reason = match answer {
        Answer::Call(tool) => {
            say(&format!(
                r#"{{"choices":[{{"index":0,"delta":{{"tool_calls":[{{"index":0,"id":"c","function":{{"name":"{tool}","arguments":"{{}}"}}}}]}}}}]}}"#
            ))?;
            "tool_calls"
        }
        Answer::Say(words) => {
            say(&text(words))?;
            "stop"
        }
        Answer::Parts(parts) => {
            for _ in 0..*parts {
                say(&text("word "))?;
            }
            "stop"
        }
        Answer::Hold => {
            say(&text("well, "))?;
            let state = shared.0.lock().unwrap();
            drop(shared.1.wait_while(state, |state| !state.let_go).unwrap());
            "stop"
        }
    };
    say(&format!(r#"{{"choices":[{{"index":0,"delta":{{}},"finish_reason":"{reason}"}}]}}"#))?;
    say("[DONE]")?;
    stream.write_all(b"0\r\n\r\n")
}

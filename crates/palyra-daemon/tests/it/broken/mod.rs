//! Streams that break in the middle: the client is killed, the network is cut, the daemon is killed. Whoever follows the run goes on from the last position, and has
//! the whole tape in the end, without a gap and without a repetition.

mod cable;
mod client;
mod daemon;
mod network;

use std::time::{Duration, Instant};

use palyra_client::quic::{QuicClient, QuicTapeSource};
use palyra_client::{Client, ClientError, Endpoint, Follow, HttpTape, Reconnect, Tape, TapeSource};
use palyra_common::{RunId, RunLifecyclePhase, RunStreamEvent};
use serde_json::json;
use tokio::sync::mpsc;

use crate::quic_support::{PATIENCE, in_time};
use crate::support::{Daemon, Place};

/// More than any outage here lasts.
const STUBBORN: Reconnect =
    Reconnect { attempts: 200, first_wait: Duration::from_millis(50), longest_wait: Duration::from_millis(250) };
/// What a stream over HTTP may be silent here. The runs of these tests are never quiet for nearly as long.
const SILENCE: Duration = Duration::from_secs(2);

/// A place for a daemon whose runs speak for a long time: so many turns of forty words, each of which is waited for.
fn talkative(turns: usize) -> Place {
    let words: Vec<_> = (0..40).map(|number| format!("word {number} ")).collect();
    let turn = |number| {
        // Another one each time, so that nobody takes it for a run that goes round in circles.
        let call = json!({ "tool": "palyra.fs.list", "arguments": { "path": format!("directory-{number}") } });
        let calls = if number + 1 < turns { vec![call] } else { Vec::new() };
        json!({ "text": words, "delay_ms": 20, "call": calls })
    };
    let script = json!({ "turn": (0..turns).map(turn).collect::<Vec<_>>() });
    let place = Place::new().with_script(&script.to_string());
    for number in 0..turns {
        std::fs::create_dir(place.workspace().join(format!("directory-{number}"))).unwrap();
    }
    place
}

/// Which of the client's transports is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Over {
    /// HTTP at the loopback address.
    Http,
    /// QUIC with the certificate of the owner.
    Quic,
}

impl Over {
    /// Follows a run from a position on and hands out every event, then how it ended.
    async fn follow(self, state_root: &std::path::Path, id: RunId, from_seq: u64, into: mpsc::UnboundedSender<Told>) {
        let ended = match self {
            Self::Http => {
                let address = std::fs::read_to_string(state_root.join("http.addr")).unwrap();
                let client = Client::new(Endpoint::loopback(address.trim(), state_root).unwrap());
                let tape: Tape<HttpTape> = client.tape(id, from_seq, Follow::UntilEnd);
                read(tape.silent_for_at_most(SILENCE), &into).await
            }
            Self::Quic => match QuicClient::connect_local(state_root).await {
                Ok(client) => {
                    let tape: Tape<QuicTapeSource> = client.tape(id, from_seq, Follow::UntilEnd);
                    read(tape, &into).await
                }
                Err(error) => Err(error),
            },
        };
        let _ = into.send(Told::Ended(ended.map_err(|error| error.to_string())));
    }
}

/// What a follower tells.
#[derive(Debug)]
enum Told {
    Event(Box<RunStreamEvent>),
    Ended(Result<(), String>),
}

async fn read<S: TapeSource>(tape: Tape<S>, into: &mpsc::UnboundedSender<Told>) -> Result<(), ClientError> {
    let mut tape = tape.reconnecting(STUBBORN);
    while let Some(event) = tape.next().await? {
        let _ = into.send(Told::Event(Box::new(event)));
    }
    Ok(())
}

/// What a follower has told so far.
struct Heard {
    told: mpsc::UnboundedReceiver<Told>,
    events: Vec<RunStreamEvent>,
}

impl Heard {
    fn new(told: mpsc::UnboundedReceiver<Told>) -> Self {
        Self { told, events: Vec::new() }
    }

    /// The position up to which everything has arrived.
    fn seq(&self) -> u64 {
        self.events.last().map_or(0, |event| event.seq)
    }

    /// Waits until the follower has seen a position, in the middle of the run.
    async fn until(&mut self, seq: u64) {
        while self.seq() < seq {
            match in_time(self.told.recv()).await {
                Some(Told::Event(event)) => self.events.push(*event),
                other => panic!("the run ended before position {seq}: {other:?}"),
            }
        }
    }

    /// Takes what is there.
    fn drain(&mut self) -> u64 {
        while let Ok(told) = self.told.try_recv() {
            match told {
                Told::Event(event) => self.events.push(*event),
                Told::Ended(ended) => panic!("the stream ended: {ended:?}"),
            }
        }
        self.seq()
    }

    /// Reads to the end and compares with what the daemon has recorded.
    async fn whole(mut self, daemon: &Daemon, id: RunId) {
        let reading = async {
            loop {
                match self.told.recv().await {
                    Some(Told::Event(event)) => self.events.push(*event),
                    Some(Told::Ended(ended)) => break ended.unwrap(),
                    None => panic!("the follower is gone"),
                }
            }
        };
        in_time(reading).await;
        assert_whole(&self.events, daemon, id).await;
    }
}

/// Every position from the first to the last exactly once, each as it is recorded, and the last one says that the run is over.
async fn assert_whole(events: &[RunStreamEvent], daemon: &Daemon, id: RunId) {
    let positions: Vec<_> = events.iter().map(|event| event.seq).collect();
    assert_eq!(positions, (1..=events.len() as u64).collect::<Vec<_>>());
    assert!(events.last().unwrap().is_terminal(), "{:?}", events.last());
    assert_eq!(events, daemon.follow(id, 1).await, "what was seen is what is recorded");
    assert_eq!(daemon.client.run(id).await.unwrap().run.phase, RunLifecyclePhase::Completed);
}

/// Waits until the daemon has recorded more than a position, while nobody may be able to see it.
async fn recorded_beyond(daemon: &Daemon, id: RunId, seq: u64) {
    let start = Instant::now();
    while daemon.client.run(id).await.unwrap().run.last_seq <= seq {
        assert!(start.elapsed() < PATIENCE, "the run does not go on");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// How often a tape was opened over a transport.
fn opened(daemon: &Daemon, over: Over) -> u64 {
    let transport = match over {
        Over::Http => "http",
        Over::Quic => "quic",
    };
    let page = crate::raw::unix(daemon, "GET /metrics", b"").body;
    let named = |line: &&str| {
        line.starts_with("palyra_commands_total{command=\"run.tape\"") && line.contains(&format!("\"{transport}\""))
    };
    page.lines().filter(named).map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

//! `gateway.health`: how many questions about health are answered, against servers that do nothing else.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use palyra_figures::{Aim, Report};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tonic::transport::{Channel, Endpoint};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_client::HealthClient;

use crate::bare::Server;
use crate::daemon::{Place, processor};
use crate::{Failure, samples};

/// Questions under way at once.
const AT_ONCE: usize = 64;
/// Of these on one connection of gRPC, which carries many.
const PER_CHANNEL: usize = 8;
const ROUNDS: usize = 11;
const ROUND: Duration = Duration::from_millis(700);

pub(crate) async fn figures(report: &mut Report) -> Result<(), Failure> {
    let place = Place::new()?;
    let mut daemon = place.start().await?;
    {
        let bare = Server::Axum.start()?;
        let (mut ours, mut theirs) = (Vec::new(), Vec::new());
        for _ in 0..AT_ONCE {
            ours.push(Kept::open(daemon.http).await?);
            theirs.push(Kept::open(bare.address).await?);
        }
        let (ours, theirs) = (Side::new(daemon.pid(), ours), Side::new(bare.pid(), theirs));
        compare(report, "gateway.health", "an axum server that does nothing", ours, theirs).await?;
    }
    let bare = Server::Tonic.start()?;
    let ours = Side::new(daemon.pid(), channels(daemon.grpc).await?);
    let theirs = Side::new(bare.pid(), channels(bare.address).await?);
    compare(report, "gateway.health.grpc", "a tonic server that does nothing", ours, theirs).await?;
    daemon.stop()
}

/// Both in turns, so that a slow moment of the machine hits both.
async fn compare<A: Asks>(
    report: &mut Report,
    id: &str,
    reference: &str,
    mut ours: Side<A>,
    mut theirs: Side<A>,
) -> Result<(), Failure> {
    ours.round().await?;
    theirs.round().await?;
    let (mut own, mut bare, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..ROUNDS {
        let (us, them) = if n % 2 == 0 {
            let us = ours.round().await?;
            (us, theirs.round().await?)
        } else {
            let them = theirs.round().await?;
            (ours.round().await?, them)
        };
        ratios.push(us.rate / them.rate);
        own.push(us);
        bare.push(them);
    }
    let ratios = samples(ratios)?;
    let n = ROUNDS as u64;
    report.figure(id, ratios.median(), "ratio", Some(reference), Aim::AtLeast(0.8), n, Some(ratios.spread()));
    for (name, rounds) in [("rate", &own), ("bare", &bare)] {
        let rates = samples(rounds.iter().map(|round| round.rate).collect())?;
        report.figure(&format!("{id}.{name}"), rates.median(), "requests/s", None, Aim::None, n, Some(rates.spread()));
    }
    for (name, rounds) in [("processor", &own), ("processor.bare", &bare)] {
        let costs = samples(rounds.iter().map(|round| round.processor * 1e6).collect())?;
        report.figure(&format!("{id}.{name}"), costs.median(), "µs", None, Aim::None, n, Some(costs.spread()));
    }
    Ok(())
}

/// Something that asks one question after the other.
trait Asks: Send + 'static {
    fn ask(&mut self) -> impl Future<Output = Result<(), Failure>> + Send;
}

/// A server's process and those who ask it.
struct Side<A> {
    pid: u32,
    askers: Vec<A>,
}

struct Round {
    /// Questions per second.
    rate: f64,
    /// Seconds of the server's processor time for one.
    processor: f64,
}

impl<A: Asks> Side<A> {
    fn new(pid: u32, askers: Vec<A>) -> Self {
        Self { pid, askers }
    }

    /// Everybody asks for a while.
    async fn round(&mut self) -> Result<Round, Failure> {
        let before = processor(self.pid)?;
        let began = Instant::now();
        let mut tasks = JoinSet::new();
        for mut asker in self.askers.drain(..) {
            tasks.spawn(async move {
                let mut asked = 0_u64;
                while began.elapsed() < ROUND {
                    asker.ask().await?;
                    asked += 1;
                }
                Ok::<_, Failure>((asker, asked))
            });
        }
        let mut total = 0.0;
        while let Some(done) = tasks.join_next().await {
            let (asker, asked) = done??;
            self.askers.push(asker);
            total += asked as f64;
        }
        let elapsed = began.elapsed().as_secs_f64();
        Ok(Round { rate: total / elapsed, processor: (processor(self.pid)? - before) / total })
    }
}

/// One kept connection of HTTP/1.1, spoken by hand so that the client costs little.
struct Kept {
    stream: TcpStream,
    request: Vec<u8>,
    buffer: Vec<u8>,
}

impl Kept {
    async fn open(address: SocketAddr) -> Result<Self, Failure> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        let request = format!("GET /healthz HTTP/1.1\r\nHost: {address}\r\n\r\n").into_bytes();
        Ok(Self { stream, request, buffer: vec![0; 16 * 1024] })
    }
}

impl Asks for Kept {
    async fn ask(&mut self) -> Result<(), Failure> {
        self.stream.write_all(&self.request).await?;
        let mut filled = 0;
        loop {
            let read = self.stream.read(self.buffer.get_mut(filled..).unwrap_or_default()).await?;
            if read == 0 {
                return Err("the connection was closed".into());
            }
            filled += read;
            let answer = self.buffer.get(..filled).unwrap_or_default();
            if whole(answer).is_some_and(|length| filled >= length) {
                return if answer.starts_with(b"HTTP/1.1 200") { Ok(()) } else { Err("not healthy".into()) };
            }
        }
    }
}

/// How long an answer is, once its head is there.
fn whole(answer: &[u8]) -> Option<usize> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = std::str::from_utf8(answer.get(..end)?).ok()?;
    let length = head.split("content-length: ").nth(1)?.split("\r\n").next()?;
    Some(end + length.parse::<usize>().ok()?)
}

async fn channels(address: SocketAddr) -> Result<Vec<HealthClient<Channel>>, Failure> {
    let mut clients = Vec::new();
    while clients.len() < AT_ONCE {
        let channel = Endpoint::from_shared(format!("http://{address}"))?.connect().await?;
        clients.extend((0..PER_CHANNEL).map(|_| HealthClient::new(channel.clone())));
    }
    Ok(clients)
}

impl Asks for HealthClient<Channel> {
    async fn ask(&mut self) -> Result<(), Failure> {
        self.check(HealthCheckRequest::default()).await?;
        Ok(())
    }
}

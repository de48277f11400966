//! What the way out costs: transfers and connections through the proxy against the same ones without it, in one run on loopback.
//!
//! - `egress.rate`: bytes per second through a tunnel that is passed on unseen, against a direct connection between the same two ends.
//! - `egress.rate.http`: the same for a plain HTTP answer that the proxy reads and writes again.
//! - `egress.rate.searched`: the same with a secret bound to the host, so that every byte of the answer is searched for it.
//! - `egress.connect`: time of a new connection, one request and its answer, through the proxy against directly.
//!
//! Both ends are threads with blocking sockets, so that only the proxy is measured besides them; the proxy has a runtime with two workers. Left out: TLS of
//! the proxy's own (a cipher's figure, not the proxy's) and the real network.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::time::Instant;

use palyra_common::{SecretRef, SecretString};
use palyra_egress::{
    CredentialBinding, CredentialTransport, Egress, EgressGrant, EgressOptions, ProxyAccess, ProxyHandle, ProxyOptions,
    Resolver, SecretSource, bind,
};
use palyra_figures::{Aim, Report, Samples};

type Failure = Box<dyn std::error::Error>;

const TRANSFER: usize = 512 << 20;
const PIECE: usize = 256 << 10;
const REPEATS: usize = 11;
const CONNECTIONS: usize = 400;

struct Loopback;

#[async_trait::async_trait]
impl Resolver for Loopback {
    async fn resolve(&self, _: &str) -> Result<Vec<IpAddr>, String> {
        Ok(vec![Ipv4Addr::LOCALHOST.into()])
    }
}

struct OneSecret;

#[async_trait::async_trait]
impl SecretSource for OneSecret {
    async fn resolve(&self, _: &SecretRef) -> Result<SecretString, String> {
        Ok(SecretString::from("a secret of some length, 42".to_owned()))
    }
}

fn main() -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let stream_server = spawn_server(|stream, _| send_stream(stream))?;
    let http_server = spawn_server(|stream, head| {
        let body = if head.starts_with(b"GET /big") { TRANSFER } else { 2 };
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {body}\r\nConnection: close\r\n\r\n")?;
        if body == TRANSFER { send_stream(stream) } else { stream.write_all(b"ok") }
    })?;
    let _guard = runtime.enter();
    let egress = Egress::new(EgressOptions {
        resolver: Arc::new(Loopback),
        secrets: Arc::new(OneSecret),
        ..EgressOptions::default()
    })?;
    let plain = runtime.block_on(serve(&egress, grant(stream_server, http_server)?))?;
    let mut bound = grant(stream_server, http_server)?;
    let mut credential =
        CredentialBinding::header("bench.example", "authorization", "env:T".parse()?, "palyra-placeholder")?;
    credential.transport = CredentialTransport::Plain;
    bound.credentials.push(credential);
    let searched = runtime.block_on(serve(&egress, bound))?;

    let mut report = Report::new("proxy");
    rates(&mut report, stream_server, http_server, plain.address(), searched.address())?;
    connects(&mut report, http_server, plain.address())?;
    report.finish()?;
    Ok(())
}

fn grant(stream: SocketAddr, http: SocketAddr) -> Result<EgressGrant, Failure> {
    let mut grant = EgressGrant::new("bench")
        .rule(&format!("tcp://bench.example:{}", stream.port()))?
        .rule(&format!("http://bench.example:{}", http.port()))?
        .private_host("loopback:bench.example")?;
    grant.limits.download_bytes = u64::MAX;
    Ok(grant)
}

async fn serve(egress: &Egress, grant: EgressGrant) -> Result<ProxyHandle, Failure> {
    let listener = bind("127.0.0.1:0".parse()?).await?;
    Ok(egress.serve(listener, ProxyOptions { grant, access: ProxyAccess::Open })?)
}

/// A server with a thread per connection. The first bytes of a client start it.
fn spawn_server(
    answer: impl Fn(&mut TcpStream, &[u8]) -> std::io::Result<()> + Send + Sync + 'static,
) -> Result<SocketAddr, Failure> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let address = listener.local_addr()?;
    let answer = Arc::new(answer);
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            std::thread::spawn(move || {
                let mut head = [0; 4096];
                let count = stream.read(&mut head).unwrap_or(0);
                let _ = answer(&mut stream, head.get(..count).unwrap_or_default());
            });
        }
    });
    Ok(address)
}

fn send_stream(stream: &mut TcpStream) -> std::io::Result<()> {
    let piece = vec![b'x'; PIECE];
    for _ in 0..TRANSFER / PIECE {
        stream.write_all(&piece)?;
    }
    Ok(())
}

/// Reads to the end; bytes per second from the first byte on.
fn receive(stream: &mut TcpStream) -> Result<f64, Failure> {
    let mut buffer = vec![0; PIECE];
    let began = Instant::now();
    let mut received = 0;
    loop {
        match stream.read(&mut buffer)? {
            0 => break,
            count => received += count,
        }
    }
    if received < TRANSFER {
        return Err(format!("only {received} bytes came through").into());
    }
    Ok(received as f64 / began.elapsed().as_secs_f64())
}

fn direct(server: SocketAddr, request: &str) -> Result<f64, Failure> {
    let mut stream = TcpStream::connect(server)?;
    stream.write_all(request.as_bytes())?;
    receive(&mut stream)
}

fn tunnelled(proxy: SocketAddr, server: SocketAddr) -> Result<f64, Failure> {
    let mut stream = TcpStream::connect(proxy)?;
    let target = format!("bench.example:{}", server.port());
    write!(stream, "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")?;
    let mut head = [0; 39];
    stream.read_exact(&mut head)?;
    if !head.starts_with(b"HTTP/1.1 200") {
        return Err("the tunnel was refused".into());
    }
    stream.write_all(b"go")?;
    receive(&mut stream)
}

fn request(server: SocketAddr, path: &str) -> String {
    let target = format!("bench.example:{}", server.port());
    format!("GET http://{target}{path} HTTP/1.1\r\nHost: {target}\r\nConnection: close\r\n\r\n")
}

fn rates(
    report: &mut Report,
    stream: SocketAddr,
    http: SocketAddr,
    proxy: SocketAddr,
    searched: SocketAddr,
) -> Result<(), Failure> {
    let (mut straight, mut tunnel, mut plain, mut search) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // Interleaved and compared pair by pair: a busy moment of the machine hits both sides of a ratio.
    for round in 0..=REPEATS {
        let sample = (
            direct(stream, "go")?,
            tunnelled(proxy, stream)?,
            direct(proxy, &request(http, "/big"))?,
            direct(searched, &request(http, "/big"))?,
        );
        if round == 0 {
            continue;
        }
        straight.push(sample.0);
        tunnel.push(sample.1);
        plain.push(sample.2);
        search.push(sample.3);
    }
    let n = REPEATS as u64;
    for (id, values, aim) in [
        ("egress.rate", &tunnel, Aim::AtLeast(0.5)),
        ("egress.rate.http", &plain, Aim::None),
        ("egress.rate.searched", &search, Aim::None),
    ] {
        let ratios = values.iter().zip(&straight).map(|(ours, theirs)| ours / theirs).collect();
        let ratios = Samples::from_values(ratios).ok_or("no samples")?;
        report.figure(id, ratios.median(), "ratio", Some("direct loopback transfer"), aim, n, Some(ratios.spread()));
    }
    for (id, values) in [
        ("egress.direct.speed", straight),
        ("egress.tunnel.speed", tunnel),
        ("egress.http.speed", plain),
        ("egress.searched.speed", search),
    ] {
        let samples = Samples::from_values(values.iter().map(|value| value / 1e6).collect()).ok_or("no samples")?;
        report.figure(id, samples.median(), "MB/s", None, Aim::None, n, Some(samples.spread()));
    }
    Ok(())
}

fn connects(report: &mut Report, server: SocketAddr, proxy: SocketAddr) -> Result<(), Failure> {
    let once = |address: SocketAddr| -> Result<f64, Failure> {
        let began = Instant::now();
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.write_all(request(server, "/small").as_bytes())?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        if !answer.starts_with(b"HTTP/1.1 200") {
            return Err("no answer".into());
        }
        Ok(began.elapsed().as_secs_f64())
    };
    let (mut straight, mut ours) = (Vec::new(), Vec::new());
    for round in 0..CONNECTIONS + 20 {
        let pair = (once(server)?, once(proxy)?);
        if round >= 20 {
            straight.push(pair.0);
            ours.push(pair.1);
        }
    }
    let straight = Samples::from_values(straight).ok_or("no samples")?;
    let ours = Samples::from_values(ours).ok_or("no samples")?;
    let n = CONNECTIONS as u64;
    let reference = Some("the same request directly");
    report.figure(
        "egress.connect",
        ours.median() / straight.median(),
        "ratio",
        reference,
        Aim::None,
        n,
        Some(ours.spread()),
    );
    report.figure("egress.connect.latency", ours.median() * 1e6, "µs", None, Aim::None, n, Some(ours.spread()));
    report.figure("egress.connect.direct", straight.median() * 1e6, "µs", None, Aim::None, n, Some(straight.spread()));
    Ok(())
}

//! Servers on every address of the network, in the clear and with TLS, that count who came and what was said.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::GzEncoder;
use rustls::ServerConfig;
use std::io::Write as _;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::tls::Authority;

/// One connection that a server accepted.
#[derive(Debug, Clone)]
pub(crate) struct Visit {
    /// The address it was made to.
    pub(crate) to: IpAddr,
    /// Everything it said, decrypted.
    pub(crate) said: Vec<u8>,
    /// Bytes that came over the wire.
    pub(crate) bytes: usize,
}

#[derive(Clone)]
pub(crate) struct Servers {
    pub(crate) http: SocketAddr,
    pub(crate) https: SocketAddr,
    visits: Visits,
    barriers: Vec<SocketAddr>,
}

type Visits = Arc<Mutex<Vec<Arc<Mutex<Visit>>>>>;

/// Names that the TLS server has a certificate for.
pub(super) const NAMES: [&str; 4] = ["api.example", "echo.example", "narrow.example", "localhost"];

impl Servers {
    pub(crate) async fn start(authority: &Authority, http: u16, https: u16) -> Self {
        let nowhere = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut servers = Self { http: nowhere, https: nowhere, visits: Visits::default(), barriers: Vec::new() };
        let (http, https) = servers.listen(authority.server(&NAMES), http, https).await;
        (servers.http, servers.https) = ((Ipv4Addr::LOCALHOST, http).into(), (Ipv4Addr::LOCALHOST, https).into());
        servers.barriers = vec![servers.http, servers.https];
        servers
    }

    /// Listens in the network of the calling thread, and counts in the same book.
    pub(crate) async fn listen(&self, config: Arc<ServerConfig>, http: u16, https: u16) -> (u16, u16) {
        // One socket for both families, on all addresses: whoever is reached is counted, wherever a trick led.
        let plain = TcpListener::bind(SocketAddr::from(([0_u16; 8], http))).await.unwrap();
        let secure = TcpListener::bind(SocketAddr::from(([0_u16; 8], https))).await.unwrap();
        let ports = (plain.local_addr().unwrap().port(), secure.local_addr().unwrap().port());
        tokio::spawn(accept(plain, None, Arc::clone(&self.visits)));
        tokio::spawn(accept(secure, Some(TlsAcceptor::from(config)), Arc::clone(&self.visits)));
        ports
    }

    /// They listen at this address too.
    pub(crate) fn also_at(&mut self, address: IpAddr) {
        self.barriers
            .extend([(address, self.http.port()).into(), (address, self.https.port()).into()] as [SocketAddr; 2]);
    }

    /// Who came since the last question. Waits until every connection made before is accepted and read.
    pub(crate) async fn visits(&self) -> Vec<Visit> {
        // Accepting is in order: when the last one is through, so are those before it.
        for address in &self.barriers {
            let mut barrier = tokio::net::TcpStream::connect(address).await.unwrap();
            barrier.write_all(b"BARRIER\r\n\r\n").await.unwrap();
            let mut end = Vec::new();
            let _ = tokio::time::timeout(Duration::from_secs(5), barrier.read_to_end(&mut end)).await;
        }
        let mut visits = self.visits.lock().unwrap();
        let all = std::mem::take(&mut *visits);
        all.into_iter()
            .map(|visit| visit.lock().unwrap().clone())
            .filter(|visit| !visit.said.starts_with(b"BARRIER"))
            .collect()
    }
}

async fn accept(listener: TcpListener, acceptor: Option<TlsAcceptor>, visits: Visits) {
    while let Ok((stream, _)) = listener.accept().await {
        let to = match stream.local_addr().unwrap().ip() {
            IpAddr::V6(address) => address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4),
            four => four,
        };
        let visit = Arc::new(Mutex::new(Visit { to, said: Vec::new(), bytes: 0 }));
        visits.lock().unwrap().push(Arc::clone(&visit));
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            let note = move |said: &[u8]| {
                let mut visit = visit.lock().unwrap();
                visit.said = said.to_vec();
                visit.bytes = visit.bytes.max(said.len());
            };
            match acceptor {
                None => serve(stream, to, &note).await,
                Some(acceptor) => {
                    let mut first = [0; 9];
                    let count = stream.peek(&mut first).await.unwrap_or(0);
                    note(&first[..count]);
                    if first.starts_with(b"BARRIER") {
                        return;
                    }
                    if let Ok(stream) = acceptor.accept(stream).await {
                        serve(stream, to, &note).await;
                    }
                }
            }
        });
    }
}

/// Reads one request and answers by its path.
async fn serve<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, to: IpAddr, note: &(impl Fn(&[u8]) + Sync)) {
    let mut said = Vec::new();
    let length = loop {
        let mut buffer = [0; 8192];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => return,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
        }
        note(&said);
        if let Some(end) = said.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&said[..end]).to_ascii_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.split("\r\n").next())
                .and_then(|number| number.parse().ok());
            break end + 4 + length.unwrap_or(0);
        }
    };
    while said.len() < length {
        let mut buffer = [0; 65536];
        match stream.read(&mut buffer).await {
            Ok(0) | Err(_) => break,
            Ok(count) => said.extend_from_slice(&buffer[..count]),
        }
        note(&said);
    }
    let answer = answer(&said, to, &mut stream).await;
    let _ = stream.write_all(&answer).await;
    let _ = stream.shutdown().await;
}

fn with_body(status: &str, headers: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// The values of the headers that could carry a secret, joined.
fn credentials(said: &[u8]) -> String {
    let text = String::from_utf8_lossy(said).into_owned();
    let query = text
        .split(' ')
        .nth(1)
        .and_then(|target| target.split_once('?'))
        .map(|(_, query)| query.to_owned())
        .unwrap_or_default();
    let lines = text
        .lines()
        .filter_map(|line| line.split_once(": "))
        .filter(|(name, _)| name.eq_ignore_ascii_case("authorization") || name.eq_ignore_ascii_case("x-api-key"));
    let values: Vec<String> =
        lines.map(|(_, value)| value.trim_start_matches("Bearer ").to_owned()).chain([query]).collect();
    values.join(" ").trim().to_owned()
}

async fn answer<S: AsyncWrite + Unpin>(said: &[u8], to: IpAddr, stream: &mut S) -> Vec<u8> {
    let text = String::from_utf8_lossy(said).into_owned();
    let target = text.split(' ').nth(1).unwrap_or("/").to_owned();
    let (path, query) = target.split_once('?').map_or((target.as_str(), ""), |(path, query)| (path, query));
    let secret = credentials(said);
    match path {
        "/redirect" => with_body("302 Found", &format!("Location: {}\r\n", query.replace("%5C", "\\")), b"elsewhere"),
        "/see-other" => with_body("303 See Other", &format!("Location: {query}\r\n"), b""),
        "/again" => with_body("307 Temporary Redirect", &format!("Location: {query}\r\n"), b""),
        "/loop" => with_body("302 Found", "Location: /loop\r\n", b""),
        "/echo" => with_body("200 OK", "Content-Type: text/plain\r\n", said),
        "/echo/header" => {
            with_body("200 OK", &format!("X-Echo: {secret}\r\nSet-Cookie: t={secret}\r\n"), b"in a header")
        }
        "/echo/base64" => with_body("200 OK", "", STANDARD.encode(format!("x{secret}y")).as_bytes()),
        "/echo/hex" => with_body("200 OK", "", hex::encode(&secret).as_bytes()),
        "/echo/percent" => {
            let encoded: String = secret.bytes().map(|byte| format!("%{byte:02x}")).collect();
            with_body("200 OK", "", encoded.as_bytes())
        }
        "/echo/json" => with_body(
            "200 OK",
            "Content-Type: application/json\r\n",
            serde_json::to_string(&secret).unwrap().as_bytes(),
        ),
        "/echo/unicode" => {
            let escaped: String = secret.chars().map(|letter| format!("\\u{:04x}", u32::from(letter))).collect();
            with_body("200 OK", "Content-Type: application/json\r\n", escaped.as_bytes())
        }
        "/echo/entities" => {
            let escaped: String = secret.chars().map(|letter| format!("&#{};", u32::from(letter))).collect();
            with_body("200 OK", "Content-Type: text/html\r\n", escaped.as_bytes())
        }
        "/echo/utf16" => {
            let encoded: Vec<u8> = secret.encode_utf16().flat_map(u16::to_le_bytes).collect();
            with_body("200 OK", "Content-Type: text/plain; charset=utf-16le\r\n", &encoded)
        }
        "/echo/coded" => {
            let coded = gzip(secret.as_bytes());
            let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\nConnection: close\r\n\r\n";
            [head.as_bytes(), format!("{:x}\r\n", coded.len()).as_bytes(), &coded, b"\r\n0\r\n\r\n"].concat()
        }
        "/echo/gzip" => with_body("200 OK", "Content-Encoding: gzip\r\n", &gzip(secret.as_bytes())),
        "/echo/part" => with_body(
            "206 Partial Content",
            "Content-Range: bytes 0-3/9\r\n",
            &secret.as_bytes()[..4.min(secret.len())],
        ),
        "/echo/location" => with_body("302 Found", &format!("Location: http://api.example/?leak={secret}\r\n"), b""),
        "/echo/chunks" => {
            // A byte per chunk and per packet: the worst case for a search in a stream.
            let _ =
                stream.write_all(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n").await;
            for byte in secret.bytes() {
                let _ = stream.write_all(&[b"1\r\n".as_slice(), &[byte], b"\r\n"].concat()).await;
                let _ = stream.flush().await;
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            b"0\r\n\r\n".to_vec()
        }
        "/big" => with_body("200 OK", "", &vec![b'x'; query.parse().unwrap()]),
        "/endless" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await;
            while stream.write_all(&[b'x'; 65536]).await.is_ok() {}
            Vec::new()
        }
        "/trickle" => {
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n").await;
            while stream.write_all(b"x").await.is_ok() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
            Vec::new()
        }
        "/silence" => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Vec::new()
        }
        "/huge-head" => with_body("200 OK", &format!("X-Filler: {}\r\n", "y".repeat(200_000)), b""),
        "/bomb" => with_body("200 OK", "Content-Encoding: gzip\r\n", &gzip(&vec![0; 64 << 20])),
        "/gzip" => with_body("200 OK", "Content-Encoding: gzip\r\nContent-Type: text/plain\r\n", &gzip(b"unfolded")),
        "/nonsense" => b"this is not HTTP\r\n\r\n".to_vec(),
        "/switch" => b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: other\r\nConnection: Upgrade\r\n\r\nraw".to_vec(),
        "/two-lengths" => {
            b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 30\r\n\r\nabcHTTP/1.1 200 OK\r\n\r\n".to_vec()
        }
        "/page" => with_body(
            "200 OK",
            "Content-Type: text/html; charset=utf-8\r\nETag: \"v1\"\r\n",
            "<title>Page</title><p>Hello <a href=\"/next\">wörld</a>".as_bytes(),
        ),
        "/fresh" => with_body("200 OK", "Cache-Control: max-age=60\r\n", b"kept"),
        "/etag" if text.contains("if-none-match: \"v1\"") => {
            b"HTTP/1.1 304 Not Modified\r\nETag: \"v1\"\r\nConnection: close\r\n\r\n".to_vec()
        }
        "/etag" => with_body("200 OK", "ETag: \"v1\"\r\n", b"validated"),
        _ => with_body("200 OK", "Keep-Alive: timeout=5\r\nX-Kept: yes\r\n", format!("served by {to}").as_bytes()),
    }
}

//! A client that says exactly what it is told to, and keeps every byte it hears.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use rustls_pki_types::ServerName;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

use super::tls::trusting;

/// A tunnel or connection, with all that was heard.
pub(crate) struct Raw {
    pub(crate) stream: TcpStream,
}

impl Raw {
    pub(crate) async fn connect(address: SocketAddr) -> Self {
        Self { stream: TcpStream::connect(address).await.unwrap() }
    }

    pub(crate) async fn say(&mut self, bytes: impl AsRef<[u8]>) {
        // A peer that has already refused may have closed: that is an answer, not a failure of the test.
        let _ = self.stream.write_all(bytes.as_ref()).await;
    }

    /// Everything until the other side closes, or says nothing for long.
    pub(crate) async fn rest(&mut self) -> Vec<u8> {
        let mut heard = Vec::new();
        let mut buffer = [0; 16 * 1024];
        while let Ok(Ok(count)) = tokio::time::timeout(Duration::from_secs(20), self.stream.read(&mut buffer)).await {
            if count == 0 {
                break;
            }
            heard.extend_from_slice(&buffer[..count]);
        }
        heard
    }

    /// Reads up to and including an empty line.
    pub(crate) async fn head(&mut self) -> String {
        let mut heard = Vec::new();
        while !heard.ends_with(b"\r\n\r\n") {
            match self.stream.read_u8().await {
                Ok(byte) => heard.push(byte),
                Err(_) => break,
            }
        }
        String::from_utf8_lossy(&heard).into_owned()
    }

    /// One request to the proxy, the last on its connection, and all of its answer.
    pub(crate) async fn ask(proxy: SocketAddr, request: impl AsRef<str>) -> Vec<u8> {
        let mut raw = Self::connect(proxy).await;
        let request = request.as_ref();
        if request.contains("\r\nConnection: ") {
            raw.say(request).await;
        } else {
            raw.say(request.replacen("\r\n", "\r\nConnection: close\r\n", 1)).await;
        }
        raw.rest().await
    }

    /// Opens a tunnel by `CONNECT`; the head of the answer tells how that went.
    pub(crate) async fn tunnel(proxy: SocketAddr, target: &str) -> (Self, String) {
        let mut raw = Self::connect(proxy).await;
        raw.say(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n")).await;
        let head = raw.head().await;
        (raw, head)
    }

    /// Opens a tunnel by SOCKS5; the reply's status tells how that went. `kind` 1, 3 and 4 as in the protocol.
    pub(crate) async fn socks(proxy: SocketAddr, kind: u8, host: &[u8], port: u16) -> (Self, Option<u8>) {
        let mut raw = Self::connect(proxy).await;
        raw.say([5, 1, 0]).await;
        let mut chosen = [0; 2];
        if raw.stream.read_exact(&mut chosen).await.is_err() || chosen != [5, 0] {
            return (raw, None);
        }
        let name = if kind == 3 { [&[u8::try_from(host.len()).unwrap()], host].concat() } else { host.to_vec() };
        raw.say([&[5, 1, 0, kind][..], &name, &port.to_be_bytes()].concat()).await;
        let mut reply = [0; 10];
        let status = raw.stream.read_exact(&mut reply).await.ok().map(|_| reply[1]);
        (raw, status)
    }

    /// TLS inside the tunnel, trusting one authority; then one request and its whole answer.
    pub(crate) async fn ask_inside(
        self,
        trusted: &str,
        name: &'static str,
        request: impl AsRef<[u8]>,
    ) -> Result<Vec<u8>, String> {
        let connector = TlsConnector::from(Arc::clone(&trusting(trusted)));
        let name = ServerName::try_from(name).unwrap();
        let mut stream = connector.connect(name, self.stream).await.map_err(|error| error.to_string())?;
        stream.write_all(request.as_ref()).await.map_err(|error| error.to_string())?;
        let mut heard = Vec::new();
        // A server that closes without the alert is no matter here; what was heard is.
        let _ = tokio::time::timeout(Duration::from_secs(20), stream.read_to_end(&mut heard)).await;
        Ok(heard)
    }
}

/// The status of an HTTP answer; 0 for anything else.
pub(crate) fn status_of(answer: &[u8]) -> u16 {
    let text = String::from_utf8_lossy(answer);
    text.strip_prefix("HTTP/1.1 ").and_then(|rest| rest.get(..3)).and_then(|code| code.parse().ok()).unwrap_or(0)
}

fn greeting(name: &'static str, with_name: bool) -> Vec<u8> {
    let mut config = (*trusting("")).clone();
    config.enable_sni = with_name;
    let name = ServerName::try_from(name).unwrap();
    let mut connection = rustls::ClientConnection::new(Arc::new(config), name).unwrap();
    let mut bytes = Vec::new();
    connection.write_tls(&mut bytes).unwrap();
    bytes
}

/// What a TLS client says first when it wants this name.
pub(crate) fn client_hello(name: &'static str) -> Vec<u8> {
    greeting(name, true)
}

/// What a TLS client says first when it names nobody.
pub(crate) fn client_hello_without_name() -> Vec<u8> {
    greeting("hidden.example", false)
}

/// A greeting for `name` that carries a second, encrypted one.
pub(crate) fn encrypted_hello(name: &str) -> Vec<u8> {
    hand_made_hello(name, &[(0xfe0d, vec![0; 32])])
}

/// A greeting for any text as a name, with further extensions.
pub(crate) fn hand_made_hello(name: &str, further: &[(u16, Vec<u8>)]) -> Vec<u8> {
    let entry = [&[0], &u16::try_from(name.len()).unwrap().to_be_bytes()[..], name.as_bytes()].concat();
    let list = [&u16::try_from(entry.len()).unwrap().to_be_bytes()[..], &entry].concat();
    let mut extensions = Vec::new();
    for (kind, body) in [&[(0_u16, list)][..], further].concat() {
        extensions.extend(kind.to_be_bytes());
        extensions.extend(u16::try_from(body.len()).unwrap().to_be_bytes());
        extensions.extend(body);
    }
    let mut body = vec![3, 3];
    body.extend([7; 32]);
    body.extend([0, 0, 2, 0x13, 1, 1, 0]);
    body.extend(u16::try_from(extensions.len()).unwrap().to_be_bytes());
    body.extend(extensions);
    let message = [&[1, 0], &u16::try_from(body.len()).unwrap().to_be_bytes()[..], &body].concat();
    [&[22, 3, 1], &u16::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat()
}

//! As much of a WebSocket client as measuring needs: one text up, texts down, nothing read ahead.

use std::net::SocketAddr;

use palyra_client::api::paths;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use crate::Failure;

const TEXT: u8 = 1;
const CLOSE: u8 = 8;

pub(crate) struct Socket {
    stream: BufReader<TcpStream>,
}

impl Socket {
    /// Shakes hands on a connection.
    pub(crate) async fn open(mut stream: TcpStream, host: SocketAddr, token: &str) -> Result<Self, Failure> {
        let path = paths::ACP_SOCKET;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {host}\r\nAuthorization: Bearer {token}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut stream = BufReader::with_capacity(8 * 1024, stream);
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        if !line.starts_with("HTTP/1.1 101") {
            return Err(format!("no WebSocket: {line}").into());
        }
        while line != "\r\n" {
            line.clear();
            stream.read_line(&mut line).await?;
        }
        Ok(Self { stream })
    }

    /// Sends a short text. The mask is zero: it protects intermediaries, and there are none.
    pub(crate) async fn send(&mut self, text: &str) -> Result<(), Failure> {
        let length = u16::try_from(text.len())?;
        let mut frame = vec![0x80 | TEXT, 0x80 | 126];
        frame.extend_from_slice(&length.to_be_bytes());
        frame.extend_from_slice(&[0; 4]);
        frame.extend_from_slice(text.as_bytes());
        self.stream.get_mut().write_all(&frame).await?;
        Ok(())
    }

    /// The next text, `None` once the daemon closes. Pings are left unanswered, which the daemon minds only after two minutes.
    pub(crate) async fn next(&mut self) -> Result<Option<Vec<u8>>, Failure> {
        loop {
            let [kind, length] = self.stream.read_u16().await?.to_be_bytes();
            let length = match length & 0x7f {
                126 => u64::from(self.stream.read_u16().await?),
                127 => self.stream.read_u64().await?,
                short => u64::from(short),
            };
            let mut payload = vec![0; usize::try_from(length)?];
            self.stream.read_exact(&mut payload).await?;
            match kind & 0x0f {
                TEXT => return Ok(Some(payload)),
                CLOSE => return Ok(None),
                _ => {}
            }
        }
    }
}

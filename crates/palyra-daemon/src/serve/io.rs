//! The bytes of a connection: they hold its slot for as long as they are open, also after an upgrade, and a peer that stops reading is given up.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

use super::connections::Connection;

/// How long a peer may take nothing of what is ready for it. The system never gives up on one that keeps its window closed.
const WRITE_STALL: Duration = Duration::from_secs(120);

/// A connection's stream.
#[derive(Debug)]
pub(super) struct ConnectionIo<S> {
    stream: S,
    stalled: Option<Pin<Box<Sleep>>>,
    patience: Duration,
    _connection: Connection,
}

impl<S> ConnectionIo<S> {
    pub(super) fn new(stream: S, connection: Connection) -> Self {
        Self { stream, stalled: None, patience: WRITE_STALL, _connection: connection }
    }

    /// Turns a write that made no progress for too long into an error.
    fn progress<T>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.stalled = None;
            return written;
        }
        let patience = self.patience;
        let stalled = self.stalled.get_or_insert_with(|| Box::pin(sleep(patience)));
        match stalled.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for ConnectionIo<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for ConnectionIo<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.progress(cx, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(cx, slices);
        self.progress(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(cx);
        self.progress(cx, flushed)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(cx);
        self.progress(cx, ended)
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncWriteExt as _;

    use super::*;
    use crate::serve::connections::{ConnectionLimits, Connections, Origin};

    #[tokio::test]
    async fn a_peer_that_takes_nothing_is_given_up() {
        let connections = Connections::new(ConnectionLimits::for_open_files(1024, WRITE_STALL));
        let (near, _far) = tokio::io::duplex(16);
        let mut io = ConnectionIo::new(near, connections.admit(Origin::Shared).unwrap());
        io.patience = Duration::from_millis(10);
        let error = io.write_all(&[0; 64]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }
}

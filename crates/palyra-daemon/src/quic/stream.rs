//! One command on one stream: read it, carry it out, write what came of it.
//!
//! Streams of documents are pulled. A page is read from the journal when the one before it has been taken by the connection, and the connection takes no more than its
//! reader allows: whoever stops reading stops this task and nothing else.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use palyra_client::command::{StreamCommand, read_envelope};
use palyra_client::quic::{CloseCode, FrameDecoder, FrameError, MAX_FRAME_BYTES};
use palyra_common::{AcpCommandEnvelope, ToStableError as _};
use quinn::{RecvStream, SendStream, VarInt};

use super::reply;
use crate::app::App;
use crate::dispatch::{self, Caller, HeldPage, Refusal, Transport};
use crate::serve::Connection;
use crate::tls::Device;

/// How long a client may take to send its command. It holds one of its own streams meanwhile.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// How long the last bytes of an answer are waited for. A connection that is closed forgets what it has not sent.
const FLUSH: Duration = Duration::from_secs(1);

/// The other side is gone or wants no more.
struct Gone;

/// Why there is no command to carry out.
enum Unread {
    Gone,
    /// With the frame that says so.
    Unreadable(Vec<u8>),
}

/// Carries out the command of one stream.
pub(super) async fn answer(
    app: Arc<App>,
    device: Arc<Device>,
    slot: &Connection,
    mut send: SendStream,
    mut receive: RecvStream,
) {
    let read = tokio::select! {
        () = app.closing.cancelled() => Err(Unread::Gone),
        read = tokio::time::timeout(COMMAND_TIME, read_command(&mut receive)) => read.unwrap_or(Err(Unread::Gone)),
    };
    let written = match read {
        Ok(envelope) => carry_out(&app, &device, slot, &envelope, &mut send).await,
        Err(Unread::Unreadable(frame)) => {
            // What else there may be is not read.
            let _ = receive.stop(VarInt::from_u32(CloseCode::Done.number()));
            write(&mut send, &frame).await
        }
        Err(Unread::Gone) => Err(Gone),
    };
    match written {
        Ok(()) => {
            if send.finish().is_ok() {
                let _ = tokio::time::timeout(FLUSH, send.stopped()).await;
            }
        }
        Err(Gone) => {
            let _ = send.reset(VarInt::from_u32(CloseCode::Done.number()));
        }
    }
}

/// The one frame of a stream.
async fn read_command(receive: &mut RecvStream) -> Result<AcpCommandEnvelope, Unread> {
    let refused = |error: FrameError| Unread::Unreadable(reply::unreadable(&[], error.to_stable()));
    let mut decoder = FrameDecoder::of_commands();
    loop {
        if let Some(message) = decoder.next_message().map_err(refused)? {
            if decoder.finish().is_err() {
                return Err(refused(FrameError::Trailing));
            }
            return read_envelope(&message).map_err(|error| Unread::Unreadable(reply::unreadable(&message, error)));
        }
        match receive.read_chunk(MAX_FRAME_BYTES, true).await {
            Ok(Some(chunk)) => decoder.push(&chunk.bytes),
            Ok(None) => return Err(refused(FrameError::CutOff)),
            Err(_) => return Err(Unread::Gone),
        }
    }
}

async fn carry_out(
    app: &Arc<App>,
    device: &Device,
    slot: &Connection,
    envelope: &AcpCommandEnvelope,
    send: &mut SendStream,
) -> Result<(), Gone> {
    let principal = match device.principal() {
        Ok(principal) => principal,
        Err(refusal) => return write(send, &reply::refusal(envelope, refusal.into())).await,
    };
    let caller = Caller::new(principal, Transport::Quic).on(slot);
    let last = match StreamCommand::from_value(envelope.command, envelope.params.clone()) {
        None => reply::result(dispatch::envelope(app, &caller, envelope.clone()).await),
        Some(Err(error)) => reply::refusal(envelope, error.into()),
        Some(Ok(command)) => match documents(app, &caller, command, envelope, send).await? {
            Ok(()) => reply::end(envelope.request_id),
            Err(refusal) => reply::refusal(envelope, refusal),
        },
    };
    let _held = dispatch::answers_to(app, &caller).charge_large(last.len());
    // A reader that has stopped reading must not keep the daemon from ending.
    tokio::select! {
        biased;
        written = write(send, &last) => written,
        () = overdue(app) => Err(Gone),
    }
}

/// Some time after the daemon was told to end.
async fn overdue(app: &Arc<App>) {
    app.closing.cancelled().await;
    tokio::time::sleep(FLUSH).await;
}

/// Writes all documents of a stream.
async fn documents(
    app: &Arc<App>,
    caller: &Caller,
    command: StreamCommand,
    envelope: &AcpCommandEnvelope,
    send: &mut SendStream,
) -> Result<dispatch::Result<()>, Gone> {
    let mut documents = match dispatch::open(app, caller, command).await {
        Ok(documents) => documents,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut stopped = pin!(send.stopped());
    loop {
        let next = tokio::select! {
            biased;
            () = app.closing.cancelled() => return Ok(Err(Refusal::stopping())),
            _ = stopped.as_mut() => return Err(Gone),
            next = documents.next() => next,
        };
        let HeldPage { page, mut permit } = match next {
            Ok(Some(held)) => held,
            Ok(None) => return Ok(Ok(())),
            Err(refusal) => return Ok(Err(refusal)),
        };
        let frames = match reply::page(envelope.request_id, &page) {
            Ok(frames) => frames,
            Err(refusal) => return Ok(Err(refusal)),
        };
        drop(page);
        permit.resize(frames.len());
        tokio::select! {
            biased;
            written = write(send, &frames) => written?,
            () = app.closing.cancelled() => return Err(Gone),
        }
    }
}

async fn write(send: &mut SendStream, bytes: &[u8]) -> Result<(), Gone> {
    send.write_all(bytes).await.map_err(|_| Gone)
}

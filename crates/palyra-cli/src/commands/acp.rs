//! `palyra acp`: the control protocol over standard input and output, for programs that start other programs.
//!
//! One JSON document per line in both directions, as over the WebSocket: command envelopes and `{"cancel": …}` in; results, documents of streams
//! and their ends out. Commands are carried out side by side. The end of the input ends the program after what is under way.

use std::collections::HashMap;

use palyra_client::Client;
use palyra_client::command::{SocketMessage, SocketReply, StreamCommand, read_socket_message};
use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, ExitCode, RequestId, ToStableError as _};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;

/// Replies that wait for a slow reader.
const OUTBOX: usize = 16;

pub(super) async fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let client = launcher::connect(context).await?;
    let (outbox, mut replies) = mpsc::channel::<SocketReply>(OUTBOX);
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut tasks = JoinSet::new();
    let mut streams: HashMap<RequestId, AbortHandle> = HashMap::new();
    let mut reading = true;
    let mut outbox = Some(outbox);
    loop {
        tokio::select! {
            reply = replies.recv() => match reply {
                Some(reply) => print(&reply, context)?,
                None => return Ok(ExitCode::Ok),
            },
            line = lines.next_line(), if reading => match (line, &outbox) {
                (Ok(Some(line)), Some(outbox)) if !line.trim().is_empty() => {
                    take(&line, &client, outbox, &mut tasks, &mut streams).await;
                }
                (Ok(Some(_)), _) => {}
                // What is under way holds the outbox open until it is done.
                (Ok(None) | Err(_), _) => {
                    reading = false;
                    outbox = None;
                }
            },
            Some(_) = tasks.join_next() => {}
        }
    }
}

async fn take(
    line: &str,
    client: &Client,
    outbox: &mpsc::Sender<SocketReply>,
    tasks: &mut JoinSet<()>,
    streams: &mut HashMap<RequestId, AbortHandle>,
) {
    match read_socket_message(line.as_bytes()) {
        Err(error) => {
            // The task lets the loop go on reading replies while the outbox is full.
            let (outbox, reply) = (outbox.clone(), SocketReply::unreadable(line.as_bytes(), error));
            tasks.spawn(async move { drop(outbox.send(reply).await) });
        }
        Ok(SocketMessage::Cancel(id)) => {
            if let Some(stream) = streams.remove(&id) {
                stream.abort();
                let outbox = outbox.clone();
                tasks.spawn(async move { drop(outbox.send(SocketReply::End { request_id: id }).await) });
            }
        }
        Ok(SocketMessage::Command(envelope)) => {
            streams.retain(|_, stream| !stream.is_finished());
            let id = envelope.request_id;
            let handle = tasks.spawn(answer(*envelope, client.clone(), outbox.clone()));
            streams.insert(id, handle);
        }
    }
}

async fn answer(envelope: AcpCommandEnvelope, client: Client, outbox: mpsc::Sender<SocketReply>) {
    let failed = |error: palyra_common::StableErrorEnvelope| {
        SocketReply::Result(Box::new(AcpCommandResultEnvelope::answer(&envelope, Err(error))))
    };
    let last = match StreamCommand::from_value(envelope.command, envelope.params.clone()) {
        None => match client.envelope(&envelope).await {
            Ok(result) => SocketReply::Result(Box::new(result)),
            Err(error) => failed(error.to_stable()),
        },
        Some(Err(error)) => failed(error),
        Some(Ok(command)) => match stream(&command, envelope.request_id, &client, &outbox).await {
            Ok(()) => SocketReply::End { request_id: envelope.request_id },
            Err(error) => failed(error.to_stable()),
        },
    };
    let _ = outbox.send(last).await;
}

async fn stream(
    command: &StreamCommand,
    request_id: RequestId,
    client: &Client,
    outbox: &mpsc::Sender<SocketReply>,
) -> Result<(), palyra_client::ClientError> {
    let mut documents = client.documents(command).await?;
    while let Some(document) = documents.next().await? {
        if outbox.send(SocketReply::Document { request_id, document }).await.is_err() {
            break;
        }
    }
    Ok(())
}

fn print(reply: &SocketReply, context: &Context) -> Result<(), CliError> {
    let text = serde_json::to_string(reply).unwrap_or_default();
    context.console.piece(&format!("{text}\n"))
}

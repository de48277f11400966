//! What a tape is read from over QUIC: the documents of one stream.
//!
//! A change of network breaks nothing: the connection moves. What does break it, the cursor makes up for, as over HTTP. There are no heartbeats in the stream: the
//! connection has its own, and is lost when the other side is silent for too long.

use palyra_common::RunId;

use super::client::QuicClient;
use super::exchange::QuicDocuments;
use crate::api::{RunDetail, RunTapeParams};
use crate::command::{About, Command, NoParams, StreamCommand};
use crate::cursor::DOING;
use crate::error::ClientError;
use crate::tape::{Heard, Tape, TapeSource};

/// The events of one run over QUIC.
pub type QuicTape = Tape<QuicTapeSource>;

/// The documents of one stream, and how to get another one.
#[derive(Debug)]
pub struct QuicTapeSource {
    client: QuicClient,
    documents: Option<QuicDocuments>,
}

impl QuicTapeSource {
    pub(super) fn new(client: QuicClient) -> Self {
        Self { client, documents: None }
    }
}

impl TapeSource for QuicTapeSource {
    fn is_open(&self) -> bool {
        self.documents.is_some()
    }

    async fn open(&mut self, target: RunId, params: RunTapeParams) -> Result<(), ClientError> {
        let command = StreamCommand::RunTape(About { target, params });
        self.documents = Some(self.client.stream(&command).await?);
        Ok(())
    }

    async fn next(&mut self) -> Result<Heard, ClientError> {
        let Some(documents) = &mut self.documents else { return Ok(Heard::End) };
        match documents.next().await? {
            None => Ok(Heard::End),
            Some(document) => match serde_json::from_value(document) {
                Ok(event) => Ok(Heard::Event(Box::new(event))),
                Err(error) => Err(ClientError::Malformed { doing: DOING, message: error.to_string() }),
            },
        }
    }

    fn close(&mut self) {
        self.documents = None;
    }

    async fn run(&self, target: RunId) -> Result<RunDetail, ClientError> {
        self.client.ask(&Command::RunGet(About { target, params: NoParams {} })).await
    }
}

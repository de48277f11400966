//! Following the tape of a run over QUIC, across broken connections and restarts of the daemon.
//!
//! A change of network breaks nothing: the connection moves. What does break it, the cursor makes up for, as over HTTP.

use palyra_common::{RunId, RunStreamEvent};

use super::client::QuicClient;
use super::exchange::QuicDocuments;
use crate::api::RunDetail;
use crate::command::{About, Command, NoParams, StreamCommand};
use crate::cursor::{Cursor, DOING, Follow, Progress, Reconnect};
use crate::error::ClientError;

/// The events of one run, in order and without gaps.
#[derive(Debug)]
pub struct QuicTape {
    client: QuicClient,
    cursor: Cursor,
    documents: Option<QuicDocuments>,
}

impl QuicTape {
    pub(super) fn new(client: QuicClient, run_id: RunId, from_seq: u64, follow: Follow) -> Self {
        Self { client, cursor: Cursor::new(run_id, from_seq, follow), documents: None }
    }

    /// The same stream with how calls get on in between, which has no position of its own.
    #[must_use]
    pub fn with_progress(mut self) -> Self {
        self.cursor.progress = Progress::Told;
        self
    }

    /// The same stream with another stubbornness.
    #[must_use]
    pub fn reconnecting(mut self, reconnect: Reconnect) -> Self {
        self.cursor.reconnect = reconnect;
        self
    }

    /// The position that comes next, from which another stream could go on.
    #[must_use]
    pub fn next_seq(&self) -> u64 {
        self.cursor.next_seq
    }

    /// The next event; `None` at the end. Cancel-safe.
    ///
    /// # Errors
    /// When the daemon refuses, or does not come back for long enough.
    pub async fn next(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        while !self.cursor.ended {
            match self.attempt().await {
                Ok(Some(event)) => return Ok(Some(event)),
                Ok(None) => {}
                Err(error) => {
                    self.documents = None;
                    self.cursor.back_off(error).await?;
                }
            }
        }
        self.documents = None;
        Ok(None)
    }

    /// One step: opens a stream when there is none, takes one document otherwise.
    async fn attempt(&mut self) -> Result<Option<RunStreamEvent>, ClientError> {
        let target = self.cursor.run_id;
        let Some(documents) = &mut self.documents else {
            let command = StreamCommand::RunTape(About { target, params: self.cursor.params() });
            self.documents = Some(self.client.stream(&command).await?);
            return Ok(None);
        };
        match documents.next().await? {
            Some(document) => {
                let event = serde_json::from_value(document)
                    .map_err(|error| ClientError::Malformed { doing: DOING, message: error.to_string() })?;
                self.cursor.accept(event)
            }
            None if self.cursor.may_end() => {
                self.cursor.ended = true;
                Ok(None)
            }
            None => {
                let asked = Command::RunGet(About { target, params: NoParams {} });
                let detail: RunDetail = self.client.ask(&asked).await?;
                self.cursor.end_at(&detail.run)?;
                Ok(None)
            }
        }
    }
}

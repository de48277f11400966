//! What a tape is read from over HTTP: lines of JSON, with an empty line where the daemon has nothing to say for a while.

use std::time::Duration;

use palyra_common::RunId;

use crate::api::{RunDetail, RunTapeParams, paths};
use crate::client::Client;
use crate::cursor::DOING;
use crate::error::ClientError;
use crate::ndjson::{Line, Lines, SILENCE, parse};
use crate::tape::{Heard, Tape, TapeSource};
use crate::transport::{Call, open_stream};

/// The events of one run over HTTP.
pub type TapeStream = Tape<HttpTape>;

/// The lines of one connection, and how to get another one.
pub struct HttpTape {
    client: Client,
    lines: Option<Lines>,
    silence: Duration,
}

impl HttpTape {
    pub(crate) fn new(client: Client) -> Self {
        Self { client, lines: None, silence: SILENCE }
    }
}

impl Tape<HttpTape> {
    /// The same stream with another bound on silence: a connection over which nothing comes for so long, not even a heartbeat, is taken for dead and made anew. The daemon
    /// sends a heartbeat every ten seconds, so less than that suits only runs that are never quiet.
    #[must_use]
    pub fn silent_for_at_most(mut self, silence: Duration) -> Self {
        self.source.silence = silence;
        self
    }
}

impl TapeSource for HttpTape {
    fn is_open(&self) -> bool {
        self.lines.is_some()
    }

    async fn open(&mut self, run_id: RunId, params: RunTapeParams) -> Result<(), ClientError> {
        // A daemon that is there begins its answer at once; one behind a dead link never does.
        let call = Call::get(DOING, paths::for_run(paths::RUN_TAPE, run_id)).patience(self.silence).query(&params)?;
        let answer = open_stream(self.client.endpoint(), call).await?;
        self.lines = Some(Lines::new(DOING, answer).silent_for_at_most(self.silence));
        Ok(())
    }

    async fn next(&mut self) -> Result<Heard, ClientError> {
        let Some(lines) = &mut self.lines else { return Ok(Heard::End) };
        Ok(match lines.next().await? {
            Line::Heartbeat => Heard::Life,
            Line::Document(line) => Heard::Event(Box::new(parse(DOING, &line)?)),
            Line::End => Heard::End,
        })
    }

    fn close(&mut self) {
        self.lines = None;
    }

    async fn run(&self, run_id: RunId) -> Result<RunDetail, ClientError> {
        self.client.run(run_id).await
    }
}

impl std::fmt::Debug for HttpTape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HttpTape").field("endpoint", &self.client.endpoint().describe()).finish_non_exhaustive()
    }
}

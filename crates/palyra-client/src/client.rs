//! The client: one method per route, nothing hidden between the caller and the daemon.
//!
//! Only creating a run is repeated by itself, and only with an idempotency key: then a repetition after a broken connection
//! cannot make a second run. Reading a tape resumes in [`TapeStream`](crate::TapeStream).

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use palyra_common::{ApprovalId, RunId, SessionId};
use serde_json::{Value, json};

use crate::api::{
    AbortRunParams, AddAttachmentParams, ApprovalView, AttachmentParams, BackupJournalParams, BackupJournalResponse,
    ConfigResponse, CreateRunParams, DecideApprovalParams, DecideApprovalResponse, EditEnvelopeParams,
    ExportJournalParams, HealthResponse, JournalRecordView, ListApprovalsParams, ListApprovalsResponse,
    ListPatternsParams, ListPatternsResponse, ListRunsParams, ListRunsResponse, ListSessionsParams,
    ListSessionsResponse, LoadSessionParams, ReplayReport, ResumeRunParams, RunContextParams, RunContextResponse,
    RunDetail, RunInputParams, RunView, SessionDetail, StopDaemonResponse, TailJournalParams, UndoResponse,
    UndoRunParams, UsageParams, UsageResponse, VerifyLine, paths,
};
use crate::cursor::Follow;
use crate::endpoint::Endpoint;
use crate::error::ClientError;
use crate::http_tape::{HttpTape, TapeStream};
use crate::ndjson::NdjsonStream;
use crate::tape::Tape;
use crate::transport::{Call, exchange, open_stream};

/// For work whose length grows with the state: replay, undo, backup.
pub(crate) const LONG_PATIENCE: Duration = Duration::from_secs(3600);
/// Health is asked in order to learn quickly.
const HEALTH_PATIENCE: Duration = Duration::from_secs(3);
/// How often a run with an idempotency key is asked for.
const CREATE_ATTEMPTS: u32 = 3;

/// A handle on a daemon. Cheap to clone; holds no connection open.
#[derive(Debug, Clone)]
pub struct Client {
    endpoint: Arc<Endpoint>,
}

impl Client {
    /// A client of this endpoint. Nothing is sent yet.
    #[must_use]
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint: Arc::new(endpoint) }
    }

    /// A client of the daemon that serves a state root, after asking that daemon for its health.
    pub async fn connect(state_root: &Path) -> Result<Self, ClientError> {
        let client = Self::new(Endpoint::unix(state_root));
        client.health().await?;
        Ok(client)
    }

    /// Where the daemon is.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// `GET /healthz`
    pub async fn health(&self) -> Result<HealthResponse, ClientError> {
        exchange(&self.endpoint, Call::get("checking its health", paths::HEALTH).patience(HEALTH_PATIENCE)).await
    }

    /// Creates a run. With an idempotency key a broken connection is tried again.
    pub async fn create_run(&self, params: &CreateRunParams) -> Result<RunView, ClientError> {
        let mut attempt = 1;
        loop {
            let result = exchange(&self.endpoint, Call::post("creating a run", paths::RUNS, params)?).await;
            match result {
                Err(error)
                    if error.is_connection_trouble()
                        && params.idempotency_key.is_some()
                        && attempt < CREATE_ATTEMPTS =>
                {
                    tokio::time::sleep(Duration::from_millis(200) * attempt).await;
                    attempt += 1;
                }
                result => return result,
            }
        }
    }

    /// Stores a file, so that a run can name it.
    pub async fn add_attachment(&self, params: &AddAttachmentParams) -> Result<AttachmentParams, ClientError> {
        let call = Call::post("uploading a file", paths::ATTACHMENTS, params)?.patience(LONG_PATIENCE);
        exchange(&self.endpoint, call).await
    }

    /// Lists runs, newest first.
    pub async fn runs(&self, params: &ListRunsParams) -> Result<ListRunsResponse, ClientError> {
        exchange(&self.endpoint, Call::get("listing runs", paths::RUNS).query(params)?).await
    }

    /// One run with its answer, changes and pending approvals.
    pub async fn run(&self, id: RunId) -> Result<RunDetail, ClientError> {
        exchange(&self.endpoint, Call::get("reading a run", paths::for_run(paths::RUN, id))).await
    }

    /// A run's events from a position on; resumes over broken connections.
    #[must_use]
    pub fn tape(&self, id: RunId, from_seq: u64, follow: Follow) -> TapeStream {
        Tape::new(HttpTape::new(self.clone()), id, from_seq, follow)
    }

    /// Ends a run.
    pub async fn abort_run(&self, id: RunId, params: &AbortRunParams) -> Result<RunView, ClientError> {
        let path = paths::for_run(paths::RUN_ABORT, id);
        exchange(&self.endpoint, Call::post("aborting a run", path, params)?).await
    }

    /// Holds a run.
    pub async fn pause_run(&self, id: RunId) -> Result<RunView, ClientError> {
        let path = paths::for_run(paths::RUN_PAUSE, id);
        exchange(&self.endpoint, Call::post("pausing a run", path, &json!({}))?).await
    }

    /// Lets a held run go on.
    pub async fn resume_run(&self, id: RunId, params: &ResumeRunParams) -> Result<RunView, ClientError> {
        let path = paths::for_run(paths::RUN_RESUME, id);
        exchange(&self.endpoint, Call::post("resuming a run", path, params)?).await
    }

    /// Steers a run with a further message.
    pub async fn send_input(&self, id: RunId, params: &RunInputParams) -> Result<RunView, ClientError> {
        let path = paths::for_run(paths::RUN_INPUT, id);
        exchange(&self.endpoint, Call::post("sending a message to a run", path, params)?).await
    }

    /// Takes back the file changes of a run, all or none.
    pub async fn undo_run(&self, id: RunId) -> Result<UndoResponse, ClientError> {
        self.undo_part_of_run(id, &UndoRunParams::default()).await
    }

    /// Takes back those file changes of a run that are asked for.
    pub async fn undo_part_of_run(&self, id: RunId, params: &UndoRunParams) -> Result<UndoResponse, ClientError> {
        let path = paths::for_run(paths::RUN_UNDO, id);
        let call = Call::post("undoing a run", path, params)?.patience(LONG_PATIENCE);
        exchange(&self.endpoint, call).await
    }

    /// What the model of a run saw.
    pub async fn run_context(&self, id: RunId, params: &RunContextParams) -> Result<RunContextResponse, ClientError> {
        let path = paths::for_run(paths::RUN_CONTEXT, id);
        let call = Call::get("reading a model's context", path).query(params)?.patience(LONG_PATIENCE);
        exchange(&self.endpoint, call).await
    }

    /// What models used and cost.
    pub async fn usage(&self, params: &UsageParams) -> Result<UsageResponse, ClientError> {
        exchange(&self.endpoint, Call::get("reading the usage", paths::USAGE).query(params)?).await
    }

    /// Feeds a run's tape to the machine again and compares.
    pub async fn replay_run(&self, id: RunId) -> Result<ReplayReport, ClientError> {
        let path = paths::for_run(paths::RUN_REPLAY, id);
        let call = Call::post("replaying a run", path, &json!({}))?.patience(LONG_PATIENCE);
        exchange(&self.endpoint, call).await
    }

    /// Lists questions put to a person: one page if the parameters have a limit, otherwise all there are.
    pub async fn approvals(&self, params: &ListApprovalsParams) -> Result<ListApprovalsResponse, ClientError> {
        let mut listed: ListApprovalsResponse = self.approvals_page(params).await?;
        while let (None, Some(after)) = (params.limit, listed.next_after) {
            let next = self.approvals_page(&ListApprovalsParams { after: Some(after), ..params.clone() }).await?;
            listed.approvals.extend(next.approvals);
            listed.next_after = next.next_after;
        }
        Ok(listed)
    }

    async fn approvals_page(&self, params: &ListApprovalsParams) -> Result<ListApprovalsResponse, ClientError> {
        exchange(&self.endpoint, Call::get("listing approvals", paths::APPROVALS).query(params)?).await
    }

    /// Answers a question.
    pub async fn decide_approval(
        &self,
        id: ApprovalId,
        params: &DecideApprovalParams,
    ) -> Result<DecideApprovalResponse, ClientError> {
        let path = paths::for_approval(paths::APPROVAL_DECIDE, id);
        exchange(&self.endpoint, Call::post("deciding an approval", path, params)?).await
    }

    /// One question.
    pub async fn approval(&self, id: ApprovalId) -> Result<ApprovalView, ClientError> {
        let path = paths::for_approval(paths::APPROVAL, id);
        exchange(&self.endpoint, Call::get("reading an approval", path)).await
    }

    /// What people agreed to for longer than once.
    pub async fn patterns(&self, params: &ListPatternsParams) -> Result<ListPatternsResponse, ClientError> {
        exchange(&self.endpoint, Call::get("listing allowed patterns", paths::PATTERNS).query(params)?).await
    }

    /// Takes back what was agreed to; returns what still counts.
    pub async fn revoke_pattern(&self, id: ApprovalId) -> Result<ListPatternsResponse, ClientError> {
        let path = paths::for_approval(paths::PATTERN_REVOKE, id);
        exchange(&self.endpoint, Call::post("revoking a pattern", path, &json!({}))?).await
    }

    /// Changes what a run is meant to do.
    pub async fn edit_envelope(&self, id: RunId, params: &EditEnvelopeParams) -> Result<RunDetail, ClientError> {
        let path = paths::for_run(paths::RUN_ENVELOPE, id);
        exchange(&self.endpoint, Call::post("changing a run's intent", path, params)?).await
    }

    /// Lists sessions, newest activity first.
    pub async fn sessions(&self, params: &ListSessionsParams) -> Result<ListSessionsResponse, ClientError> {
        exchange(&self.endpoint, Call::get("listing sessions", paths::SESSIONS).query(params)?).await
    }

    /// One session with a page of its runs.
    pub async fn session(&self, id: SessionId, params: &LoadSessionParams) -> Result<SessionDetail, ClientError> {
        let call = Call::get("reading a session", paths::for_session(paths::SESSION, id)).query(params)?;
        exchange(&self.endpoint, call).await
    }

    /// The newest journal records, or all from a position on.
    pub async fn journal_tail(
        &self,
        params: &TailJournalParams,
    ) -> Result<NdjsonStream<JournalRecordView>, ClientError> {
        let doing = "reading the journal";
        let call = Call::get(doing, paths::JOURNAL_TAIL).query(params)?;
        Ok(NdjsonStream::new(doing, open_stream(&self.endpoint, call).await?))
    }

    /// Checks the whole journal; progress lines, then the report.
    pub async fn journal_verify(&self) -> Result<NdjsonStream<VerifyLine>, ClientError> {
        let doing = "verifying the journal";
        let call = Call::post(doing, paths::JOURNAL_VERIFY, &json!({}))?;
        Ok(NdjsonStream::new(doing, open_stream(&self.endpoint, call).await?))
    }

    /// The inclusion proof of one record, as the self-contained document that the journal made.
    pub async fn journal_prove(&self, seq: u64) -> Result<Value, ClientError> {
        exchange(&self.endpoint, Call::get("proving a record", paths::for_proof(seq))).await
    }

    /// All records from a position on.
    pub async fn journal_export(
        &self,
        params: &ExportJournalParams,
    ) -> Result<NdjsonStream<JournalRecordView>, ClientError> {
        let doing = "exporting the journal";
        let call = Call::get(doing, paths::JOURNAL_EXPORT).query(params)?;
        Ok(NdjsonStream::new(doing, open_stream(&self.endpoint, call).await?))
    }

    /// Copies the journal while it is in use.
    pub async fn journal_backup(&self, params: &BackupJournalParams) -> Result<BackupJournalResponse, ClientError> {
        let call = Call::post("backing up the journal", paths::JOURNAL_BACKUP, params)?.patience(LONG_PATIENCE);
        exchange(&self.endpoint, call).await
    }

    /// The configuration that the daemon runs with.
    pub async fn config(&self) -> Result<ConfigResponse, ClientError> {
        exchange(&self.endpoint, Call::get("reading the configuration", paths::CONFIG)).await
    }

    /// Asks the daemon to stop in good order.
    pub async fn stop_daemon(&self) -> Result<StopDaemonResponse, ClientError> {
        exchange(&self.endpoint, Call::post("stopping the daemon", paths::DAEMON_STOP, &json!({}))?).await
    }
}

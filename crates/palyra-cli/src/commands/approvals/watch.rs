//! `palyra approvals watch`: questions as they come, from every run, answered here or elsewhere.
//!
//! At a terminal each question is put to the person; otherwise questions and answers are printed as they happen. The daemon
//! is asked again and again: a question waits for a person anyway, so half a second more does not matter.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use clap::Args;
use palyra_client::api::{ApprovalView, ListApprovalsParams, ListApprovalsResponse};
use palyra_client::{Client, ClientError};
use palyra_common::{ApprovalId, ExitCode};
use tokio::signal::unix::{SignalKind, signal};

use super::desk::{Answering, Desk, QuestionPolicy, Unattended};
use crate::console::{Console, OutputFormat, Style};
use crate::context::Context;
use crate::error::CliError;
use crate::render::question::{self, Question};
use crate::render::text::instant;
use crate::{render, resolve};

/// How often the daemon is asked.
const EVERY: Duration = Duration::from_millis(500);
/// How long a daemon that was there may be away; a restart takes less.
const PATIENCE: Duration = Duration::from_secs(60);

/// Which questions.
#[derive(Debug, Args)]
pub(crate) struct WatchArguments {
    /// Only those of this run
    #[arg(long, value_name = "RUN")]
    run: Option<String>,
}

/// What the daemon said at one moment.
struct Seen {
    /// All that wait.
    open: Vec<ApprovalView>,
    /// Those that waited before and do not any more.
    closed: Vec<ApprovalView>,
}

struct Watch<'a> {
    console: &'a Console,
    desk: Desk<'a>,
    open: BTreeSet<ApprovalId>,
    /// Everything seen, as it was seen last, for the one document that `json` is.
    all: BTreeMap<ApprovalId, ApprovalView>,
    last_seen: Option<Instant>,
    /// Whether the person knows that the daemon is away.
    away: bool,
}

pub(super) async fn execute(
    arguments: &WatchArguments,
    client: &Client,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let run_id = match &arguments.run {
        Some(run) => Some(resolve::run(client, run).await?),
        None => None,
    };
    let params = ListApprovalsParams { run_id, ..Default::default() };
    let mut interrupts = signal(SignalKind::interrupt()).map_err(|source| CliError::Runtime { source })?;
    let console = &context.console;
    let mut watch = Watch {
        console,
        desk: Desk::new(client, console, QuestionPolicy::Ask(Unattended::Wait)),
        open: BTreeSet::new(),
        all: BTreeMap::new(),
        last_seen: None,
        away: false,
    };
    let mut looking = Box::pin(look(client, &params, BTreeSet::new(), Duration::ZERO));
    loop {
        tokio::select! {
            _ = interrupts.recv() => break,
            step = watch.desk.next() => watch.desk.step(step)?,
            seen = &mut looking => {
                watch.seen(seen)?;
                looking.set(look(client, &params, watch.open.clone(), EVERY));
            }
        }
    }
    if console.output() == OutputFormat::Json {
        console.document(&ListApprovalsResponse { approvals: watch.all.into_values().collect(), next_after: None })?;
    }
    Ok(ExitCode::Ok)
}

/// Asks the daemon after a while what waits, and what became of what waited before.
async fn look(
    client: &Client,
    params: &ListApprovalsParams,
    before: BTreeSet<ApprovalId>,
    after: Duration,
) -> Result<Seen, ClientError> {
    tokio::time::sleep(after).await;
    let open = client.approvals(params).await?.approvals;
    let mut closed = Vec::new();
    for id in before {
        if open.iter().all(|approval| approval.approval_id != id) {
            closed.push(client.approval(id).await?);
        }
    }
    Ok(Seen { open, closed })
}

impl Watch<'_> {
    fn seen(&mut self, seen: Result<Seen, ClientError>) -> Result<(), CliError> {
        let seen = match seen {
            Ok(seen) => seen,
            Err(error) => return self.missed(error),
        };
        let first = self.last_seen.replace(Instant::now()).is_none();
        if std::mem::take(&mut self.away) {
            self.desk.note("the daemon is back");
        }
        for approval in seen.closed {
            self.open.remove(&approval.approval_id);
            self.closed(approval)?;
        }
        for approval in seen.open {
            if self.open.insert(approval.approval_id) {
                self.asked(approval)?;
            }
        }
        if self.console.is_text() && self.desk.answering() == Answering::Person {
            self.desk.present();
        }
        if first && self.open.is_empty() && self.console.is_text() {
            self.console.remark("no open approvals yet; watching (Ctrl-C leaves)");
        }
        Ok(())
    }

    fn asked(&mut self, approval: ApprovalView) -> Result<(), CliError> {
        match (self.console.output(), self.desk.answering()) {
            (OutputFormat::Text, Answering::Person) => self.desk.asked(Question::from(approval)),
            (OutputFormat::Text, _) => {
                let at = instant(approval.requested_at);
                let by = approval.run_id.map(|run_id| format!(" by run {run_id}")).unwrap_or_default();
                self.console.line(&format!("{}  asked {at} UTC{by}", approval.approval_id))?;
                let question = Question::from(approval);
                question::lines(&question, self.console)
                    .iter()
                    .try_for_each(|line| self.console.line(&format!("  {line}")))?;
            }
            (OutputFormat::Ndjson, _) => self.console.document(&approval)?,
            (OutputFormat::Json, _) => drop(self.all.insert(approval.approval_id, approval)),
        }
        Ok(())
    }

    fn closed(&mut self, approval: ApprovalView) -> Result<(), CliError> {
        self.desk.answered(approval.approval_id);
        match (self.console.output(), self.desk.answering()) {
            (OutputFormat::Text, Answering::Person) => {
                self.desk.note(&self.console.styled(Style::Dim, &render::approvals::closed(&approval)));
            }
            (OutputFormat::Text, _) => self.console.line(&render::approvals::closed(&approval))?,
            (OutputFormat::Ndjson, _) => self.console.document(&approval)?,
            (OutputFormat::Json, _) => drop(self.all.insert(approval.approval_id, approval)),
        }
        Ok(())
    }

    /// A daemon that was never there is an error; one that was there may be restarting.
    fn missed(&mut self, error: ClientError) -> Result<(), CliError> {
        match self.last_seen {
            Some(last) if error.is_connection_trouble() && last.elapsed() < PATIENCE => {
                if !std::mem::replace(&mut self.away, true) && self.console.is_text() {
                    self.desk.note("the daemon is not answering; waiting for it to come back");
                }
                Ok(())
            }
            _ => Err(error.into()),
        }
    }
}

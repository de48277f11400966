//! `palyra run TASK`: from a sentence to a finished run.
//!
//! The run lives in the daemon; this command only creates and follows it. Killing it loses the view, not the run; Ctrl-C, SIGTERM and a
//! closed terminal cancel the run.
//! What the model writes goes to standard output, everything else to standard error, so that an answer can be piped on.

mod attach;
mod destination;
pub(super) mod follow;
mod live;
mod open_calls;
pub(super) mod questions;
pub(super) mod signals;
mod task;

use std::io::ErrorKind;
use std::path::PathBuf;

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{
    CreateRunParams, HealthResponse, ListRunsParams, ListSessionsParams, ProviderView, RunDetail, RunLimitsParams,
    RunView,
};
use palyra_common::{ExitCode, HealthStatus, RequestId, RunMode, SessionId, TerminationReason, config, env_vars};

use self::follow::{Ending, FollowOptions, OnInterrupt};
use self::questions::QuestionArguments;
use self::signals::Signals;
use crate::commands::{agents, files};
use crate::console::{self, OutputFormat, Style, one_line, plain};
use crate::context::Context;
use crate::error::CliError;
use crate::render::question::{self, Question};
use crate::render::text::{fitted, shortened};
use crate::{launcher, numbers, render};

const EXAMPLES: &str = "\
Examples:
  palyra run \"list the files, then read README.md\"
  palyra run --workspace ~/notes 'replace \"teh\" with \"the\" in draft.md'
  git diff | palyra run \"review this change\"       standard input goes with the task
  palyra run - < task.txt                          standard input is the task
  palyra run --session last \"and now the next file\"
  palyra run --attach ~/plan.png \"what is wrong with this plan?\"
  palyra run --objective \"every test passes\" \"repair the parser\"
  palyra run --output ndjson \"…\" | jq .            every event as it happens
  palyra run --detach \"…\"                          only start it; follow with `palyra runs attach last`

While it runs, Ctrl-C cancels the run, as does SIGTERM or closing the terminal; a second Ctrl-C
leaves at once. With --detach or nohup it outlives the terminal.

When a run asks before it acts, it shows the value in question, where it comes from and the
sentence it was found in. Answer a (once), s (calls like it in this session), t (for an hour),
d (deny) or m (show everything). No flag allows anything for you. What you name in the task
yourself needs no question.

Without a terminal, a run that needs an answer is left waiting: the command prints the commands
that answer it and ends with exit code 6. --wait waits instead; --on-approval deny refuses.";

/// The task and its surroundings.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArguments {
    /// What to do, in plain words; `-` reads it from standard input, which otherwise goes with the task as an attachment
    #[arg(value_name = "TASK")]
    task: Vec<String>,
    /// Attach a text file or an image from anywhere (repeatable)
    #[arg(short, long = "attach", value_name = "FILE")]
    attachments: Vec<PathBuf>,
    /// The directory the run may read and write [default: that of the agent you name, or the current one]
    #[arg(short, long, value_name = "DIR")]
    workspace: Option<PathBuf>,
    /// Continue a session: an id, `last`, or any name; a new name creates a session
    #[arg(short, long, value_name = "SESSION", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    session: Option<String>,
    /// Use this model instead of the configured one
    #[arg(short, long, value_name = "NAME")]
    model: Option<String>,
    /// The agent to use; see `palyra agents` [default: the session's, or main]
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// How text that others wrote is treated: `open` shows it to the model, `guarded` keeps it in variables until the
    /// model asks for it, `strict` never shows it [default: run.mode]
    #[arg(long, value_name = "MODE")]
    mode: Option<RunMode>,
    /// Stop after this many model turns
    #[arg(long, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    max_turns: Option<u32>,
    /// Stop after this many tool calls
    #[arg(long, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    max_tool_calls: Option<u32>,
    /// Stop after this many seconds of work; time spent waiting for you does not count
    #[arg(long, value_name = "SECONDS", value_parser = numbers::at_least::<u64>(1))]
    wall_clock: Option<u64>,
    /// What must be achieved before the run may end: a judge checks each answer, and the run continues until it is met
    #[arg(long, value_name = "TEXT", value_parser = clap::builder::NonEmptyStringValueParser::new())]
    objective: Option<String>,
    /// How many answers are judged before the last one is accepted as it is [default: 3]
    #[arg(long, value_name = "COUNT", requires = "objective", value_parser = numbers::between::<u32>(1, 10))]
    max_attempts: Option<u32>,
    /// Only start the run and print its id
    #[arg(short, long, conflicts_with_all = ["wait", "on_approval"])]
    detach: bool,
    #[command(flatten)]
    questions: QuestionArguments,
}

pub(super) async fn execute(arguments: RunArguments, context: &Context) -> Result<ExitCode, CliError> {
    let questions = arguments.questions.policy(&context.console)?;
    let task::Task { prompt, beside } = task::read(&arguments.task, &context.console).await?;
    let mut attached = attach::read(&arguments.attachments, &context.environment)?;
    attached.extend(beside.map(attach::standard_input).transpose()?);
    let here = task::workspace(arguments.workspace.as_deref(), &context.environment)?;
    let (client, health, started) = launcher::ensure(context).await?;
    if started == launcher::Started::Already {
        not_seen_by_the_daemon(&health, context).iter().for_each(|note| context.console.remark(note));
    }
    if let Some(warning) = unwell(&health) {
        context.console.remark(&context.console.styled(Style::Ask, &warning));
    }
    let (session_id, session_key) = session(&client, arguments.session).await?;
    let workspace = match (&arguments.workspace, &arguments.agent) {
        (None, Some(agent)) if agents::works_elsewhere(&client, agent).await? => String::new(),
        _ => here,
    };
    if !arguments.detach {
        files::offer_instructions(&client, &workspace, context).await?;
    }
    let params = CreateRunParams {
        attachments: attach::hand_over(&client, attached).await?,
        objective: arguments.objective,
        max_attempts: arguments.max_attempts,
        binding: None,
        client_tools: Vec::new(),
        history: Vec::new(),
        session_id,
        session_key,
        prompt,
        workspace,
        model: arguments.model,
        agent: arguments.agent,
        mode: arguments.mode,
        limits: limits(arguments.max_turns, arguments.max_tool_calls, arguments.wall_clock),
        // Makes it safe to ask again after a broken connection.
        idempotency_key: Some(RequestId::generate().to_string()),
    };
    if arguments.detach {
        return detached(&client.create_run(&params).await?, context);
    }
    let signals = Signals::listen()?;
    let run = client.create_run(&params).await?;
    introduce(&client, &run, params.agent, &health.provider, context).await;
    let options = FollowOptions { questions, on_interrupt: OnInterrupt::Cancel, history_until: 0 };
    follow_and_conclude(&client, &run, options, signals, context).await
}

/// Follows a run and prints how it ended: the same for a run that was just made and for one that is attached to.
pub(super) async fn follow_and_conclude(
    client: &Client,
    run: &RunView,
    options: FollowOptions,
    signals: Signals,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let followed = match follow::to_the_end(client, run.run_id, options, signals, context).await {
        Err(CliError::Output { source }) if source.kind() == ErrorKind::BrokenPipe => {
            return unread(client, run, context).await;
        }
        followed => followed?,
    };
    match followed {
        Ending::Left => Ok(ExitCode::Precondition),
        Ending::Over(said) => conclude(client, run, &said, context).await,
        Ending::Unanswered(detail) => unanswered(*detail, context),
    }
}

/// Whoever read the output reads no more. Of a run that is not over nobody knows yet how it ends, so that is no success.
async fn unread(client: &Client, run: &RunView, context: &Context) -> Result<ExitCode, CliError> {
    let now = client.run(run.run_id).await?.run;
    if now.phase.is_terminal() {
        return Ok(render::runs::exit_code(&now));
    }
    let id = run.run_id;
    context.console.remark(&format!("nobody reads the output any more; the run continues: palyra runs attach {id}"));
    Ok(ExitCode::Precondition)
}

/// Leaves a run that needs an answer which nobody gives here, with the commands that give it.
fn unanswered(detail: RunDetail, context: &Context) -> Result<ExitCode, CliError> {
    match context.console.output() {
        OutputFormat::Json => context.console.document(&detail)?,
        // The question was one of the events.
        OutputFormat::Ndjson => {}
        OutputFormat::Text => {
            for approval in detail.pending_approvals {
                context.console.remark(&question::elsewhere(&Question::from(approval)).join("\n"));
            }
        }
    }
    Ok(ExitCode::Policy)
}

/// Says which run this is and where its conversation goes.
pub(super) async fn introduce(
    client: &Client,
    run: &RunView,
    agent: Option<String>,
    provider: &ProviderView,
    context: &Context,
) {
    if !context.console.is_text() {
        return;
    }
    // The offline planner sends nothing anywhere; that it answers is told with the very first run.
    let destination = if run.model.starts_with("offline/") && !is_first(client).await {
        None
    } else {
        Some(destination::told(client, run, agent, provider).await)
    };
    announce(run, destination.as_deref(), context);
}

/// What the person set here and a daemon that was started earlier does not know.
fn not_seen_by_the_daemon(health: &HealthResponse, context: &Context) -> Vec<String> {
    let mut notes = Vec::new();
    let named = [env_vars::OPENAI_BASE_URL, env_vars::OPENAI_API_KEY];
    if health.provider.name == "offline"
        && let Some(variable) = named.iter().find(|name| context.environment.get(name).is_some())
    {
        notes.push(format!(
            "note: {variable} is set, but the daemon was started without it; to use it, run `palyra daemon stop` and try again"
        ));
    }
    if let Err(error) = config::load(&context.environment) {
        let message = one_line(&error.to_string());
        notes.push(format!("note: the daemon keeps the settings it was started with, because the configuration is invalid now: {message}"));
    }
    notes
}

/// One line about the parts of the daemon that do not work as they should.
fn unwell(health: &HealthResponse) -> Option<String> {
    let parts = health.components.iter().filter(|part| part.status != HealthStatus::Ok);
    let parts: Vec<String> = parts.map(|part| one_line(&format!("{}: {}", part.component, part.summary))).collect();
    let status = health.status;
    match (status, parts.is_empty()) {
        (HealthStatus::Ok, _) => None,
        (_, true) => Some(format!("warning: the daemon is {status}; see `palyra daemon status`")),
        (_, false) => {
            Some(format!("warning: the daemon is {status} ({}); see `palyra daemon status`", parts.join("; ")))
        }
    }
}

fn limits(max_turns: Option<u32>, max_tool_calls: Option<u32>, seconds: Option<u64>) -> Option<RunLimitsParams> {
    let limits = RunLimitsParams { max_turns, max_tool_calls, wall_clock_seconds: seconds };
    (limits != RunLimitsParams::default()).then_some(limits)
}

/// A session by id or by name; `last` is the one with the newest activity.
async fn session(client: &Client, wanted: Option<String>) -> Result<(Option<SessionId>, Option<String>), CliError> {
    let Some(wanted) = wanted else { return Ok((None, None)) };
    if let Ok(id) = wanted.parse() {
        return Ok((Some(id), None));
    }
    if !wanted.eq_ignore_ascii_case("last") {
        return Ok((None, Some(wanted)));
    }
    let newest = client.sessions(&ListSessionsParams { limit: Some(1), before: None, archived: None }).await?;
    match newest.sessions.first() {
        Some(session) => Ok((Some(session.session_id), None)),
        None => Err(CliError::NoMatch { kind: "session", wanted }),
    }
}

fn detached(run: &RunView, context: &Context) -> Result<ExitCode, CliError> {
    if context.console.is_text() {
        context.console.line(&run.run_id.to_string())?;
        context.console.remark(&format!("to follow it: palyra runs attach {}", run.run_id));
    } else {
        context.console.document(run)?;
    }
    Ok(ExitCode::Ok)
}

fn announce(run: &RunView, destination: Option<&str>, context: &Context) {
    let destination = destination.map(|place| format!("\n  {}", shortened(place, 400))).unwrap_or_default();
    let text = format!("run {} · session {} · {}{destination}", run.run_id, run.session_id, one_line(&run.model));
    context.console.remark(&context.console.styled(Style::Dim, &text));
}

async fn conclude(client: &Client, run: &RunView, said: &str, context: &Context) -> Result<ExitCode, CliError> {
    let detail = client.run(run.run_id).await?;
    let code = render::runs::exit_code(&detail.run);
    match context.console.output() {
        OutputFormat::Json => context.console.document(&detail)?,
        // The events were the output.
        OutputFormat::Ndjson => {}
        OutputFormat::Text => {
            // The model may have answered with references to text that it never saw; the person sees that text.
            let refers = |answer: &&str| said.contains("${v") && answer.trim() != said.trim();
            if let Some(answer) = detail.answer.as_deref().filter(refers) {
                context.console.remark("the answer with its references filled in:");
                context.console.piece(&format!("{}\n", plain(answer).trim_end()))?;
            }
            // Whoever has seen it once knows.
            let advice =
                if is_first(client).await { render::runs::Advice::WhereToLook } else { render::runs::Advice::None };
            let columns = console::columns();
            let fit = |line: String| fitted(&line, columns);
            let mut lines =
                render::runs::summary(&detail, advice).into_iter().chain(going_on(&detail.run)).flat_map(fit);
            if let Some(first) = lines.next() {
                let style = match code {
                    ExitCode::Ok if render::runs::ended_well(&detail.run) => Style::Good,
                    ExitCode::Ok => Style::Ask,
                    _ => Style::Bad,
                };
                context.console.remark(&context.console.styled(style, &first));
            }
            lines.for_each(|line| context.console.remark(&line));
        }
    }
    Ok(code)
}

/// Whether there was no run before: then a newcomer is told more.
async fn is_first(client: &Client) -> bool {
    let newest = ListRunsParams { limit: Some(2), ..ListRunsParams::default() };
    client.runs(&newest).await.is_ok_and(|page| page.runs.len() < 2)
}

/// How a run goes on that did not end by itself.
fn going_on(run: &RunView) -> Option<String> {
    let id = run.run_id;
    match run.reason? {
        TerminationReason::ProviderError => Some(format!(
            "nothing is lost; once that is fixed: palyra runs resume {id} (add --model NAME to use another model)"
        )),
        TerminationReason::BudgetExceeded => Some(format!(
            "nothing is lost; when the budget allows: palyra runs resume {id} (add --over-budget AMOUNT to go on now)"
        )),
        _ => None,
    }
}

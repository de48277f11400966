//! Where the work on a message stands, and what comes next.
//!
//! The planner remembers nothing. It reads the last user message, walks through its requests in order and hands each call
//! that the conversation shows as made to the step that must have made it; the first call that is not there yet is the next
//! one. The same messages always give the same answer, so a run goes on after a crash as if nothing had happened.
//!
//! - Requests that only read go together in one turn until one comes that changes something; that one waits for them.
//! - After a failure, and when part of the message was not understood, nothing is changed any more: a condition or an
//!   exception may have been in the part that failed.
//! - Files that were attached to the message are not the person's words and are never read as requests.
//! - When part of the work has been replaced by a summary, the plan stops: doing a step again because its call is no longer
//!   in sight could change something twice.

use serde_json::Value;

use super::request::{Attachment, Request, parse};
use super::steps::{Finished, Next, Outcome, Verdict, next};
use crate::message::{ATTACHMENT_MARK, Message, Role};
use crate::request::ModelRequest;

/// Most requests in one message. More is a list of something else, not a plan.
const MAX_REQUESTS: usize = 32;

/// Words for what came with the message. A request that speaks of it and would not use it is not carried out.
const NAMES_INPUT: &[&str] = &["stdin", "standard input", "the input", "piped", "attachment", "attached"];

/// A call to make now.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct PlannedCall {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) aim: String,
}

/// What to do in this turn.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Decision {
    /// Make these calls.
    Calls(Vec<PlannedCall>),
    /// Everything has ended one way or another.
    Answer(Vec<Outcome>),
    /// Nothing in the message was understood: the person's words.
    NotUnderstood(String),
}

/// Decides the next turn.
pub(super) fn decide(request: &ModelRequest) -> Decision {
    let message = request.last_user().and_then(|at| request.messages.get(at)).map_or("", |message| &message.content);
    let own_words = message.split(ATTACHMENT_MARK).next().unwrap_or_default();
    let attachment = Attachment::first_of(message);
    let requests = parse(own_words, attachment.as_ref());
    let unknown = requests.iter().filter(|request| matches!(request, Request::Unknown(_))).count();
    if unknown == requests.len() {
        return Decision::NotUnderstood(own_words.to_owned());
    }
    if let Some(attachment) = &attachment
        && requests.iter().any(Request::changes)
        && NAMES_INPUT.iter().any(|name| own_words.to_lowercase().contains(name))
        && !requests.iter().any(Request::reads_attachment)
    {
        let headline = format!("cannot write {} to a file; it can be shown, counted and summarised", attachment.name);
        return Decision::Answer(vec![Outcome::failed(headline)]);
    }
    if requests.len() > MAX_REQUESTS {
        let headline =
            format!("{} requests in one message are too many; I take at most {MAX_REQUESTS}", requests.len());
        return Decision::Answer(vec![Outcome::failed(headline)]);
    }
    if request.since_last_user().iter().any(|message| message.role == Role::System) {
        let headline =
            "stopped: part of the work has been summarised, and a summary does not tell me which steps are done";
        return Decision::Answer(vec![Outcome::failed(headline.to_owned())]);
    }
    let mut made = made_calls(request.since_last_user()).into_iter();
    let mut calls = Vec::new();
    let mut outcomes: Vec<Outcome> = Vec::new();
    for step in &requests {
        if step.changes() {
            if !calls.is_empty() {
                break;
            }
            let failed = outcomes.iter().any(|outcome| outcome.verdict != Verdict::Done);
            if failed || unknown > 0 {
                let why = if unknown > 0 { "I did not understand everything" } else { "an earlier step failed" };
                outcomes.push(Outcome::skipped(format!("did not {}, because {why}", describe(step))));
                continue;
            }
        }
        let mut results = Vec::new();
        loop {
            match next(step, &results, &request.tools) {
                Next::Done(outcome) => {
                    outcomes.push(outcome);
                    break;
                }
                Next::Call { tool, arguments, aim } => match made.next() {
                    Some(call) if call.tool == tool => results.push(call.result),
                    Some(call) => {
                        let headline =
                            format!("stopped: the conversation shows `{}` where I asked for `{tool}`", call.tool);
                        outcomes.push(Outcome::failed(headline));
                        return Decision::Answer(outcomes);
                    }
                    None => {
                        calls.push(PlannedCall { tool, arguments, aim });
                        break;
                    }
                },
            }
        }
        // The second half of a change also waits for nothing and lets nothing overtake it.
        if step.changes() && !calls.is_empty() {
            break;
        }
    }
    if calls.is_empty() { Decision::Answer(outcomes) } else { Decision::Calls(calls) }
}

/// A call that the conversation shows, with its result.
struct MadeCall<'a> {
    tool: &'a str,
    result: Finished<'a>,
}

fn made_calls(messages: &[Message]) -> Vec<MadeCall<'_>> {
    let mut made = Vec::new();
    for (position, message) in messages.iter().enumerate().filter(|(_, message)| message.role == Role::Assistant) {
        let after = messages.get(position + 1..).unwrap_or_default();
        for call in &message.tool_calls {
            let answer = after
                .iter()
                .find(|later| later.role == Role::Tool && later.tool_call_id.as_deref() == Some(call.id.as_str()));
            let result = match answer {
                Some(answer) => Finished { content: &answer.content, failed: answer.failed },
                None => Finished { content: "the conversation holds no result of this call", failed: true },
            };
            made.push(MadeCall { tool: &call.name, result });
        }
    }
    made
}

/// What a changing request would have done.
fn describe(request: &Request) -> String {
    match request {
        Request::Create { path, .. } | Request::MakeDirectory { path } => format!("create `{path}`"),
        Request::Write { path, .. } => format!("write `{path}`"),
        Request::Copy { from, to } => format!("copy `{from}` to `{to}`"),
        Request::Move { from, to } => format!("move `{from}` to `{to}`"),
        Request::Append { path, .. } => format!("append to `{path}`"),
        Request::Replace { path, .. } => format!("change `{path}`"),
        Request::Delete { spellings } => format!("delete `{}`", spellings.first().map_or("", String::as_str)),
        Request::Run { command } => format!("run `{command}`"),
        Request::List { .. }
        | Request::Read { .. }
        | Request::Search { .. }
        | Request::FindFile { .. }
        | Request::Summarise { .. }
        | Request::Count { .. }
        | Request::CountFiles { .. }
        | Request::Time
        | Request::Help
        | Request::Thanks
        | Request::Unknown(_) => "go on".to_owned(),
    }
}

//! A short conversation with one tool call, to see whether a model works as runs use it.
//!
//! Whoever asks says what is sent: the instructions and tools that a run begins with, or every tool there is. A model has to call a tool, gets
//! a result and answers. When the server refuses and does not say over which tool, the tool is found by asking again with halves of the list.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use palyra_common::{RunId, StableErrorEnvelope, ToStableError as _};
use serde::Serialize;

use super::policy::RoutePolicy;
use super::router::{Router, RouterOptions};
use crate::accounts::{Account, AccountKey, Accounts, AccountsError, ModelName};
use crate::assembler::{AssembledTurn, TurnAssembler};
use crate::attempt::{Answering, Attempt};
use crate::error::{ModelError, ModelErrorClass};
use crate::event::{ModelEvent, Usage};
use crate::message::{Message, ToolSpec};
use crate::provider::{ModelProvider, ProviderInfo};
use crate::request::{ModelRequest, Purpose, ToolChoice};

/// What is asked. It says nothing about anybody, and the tool is one that every run has.
const QUESTION: &str = "Which files are there? Call the tool palyra.fs.list and then answer in one short sentence.";
/// What the tool is said to have given.
const RESULT: &str = r#"{"entries":[{"name":"notes.md","kind":"file","size":120}]}"#;
/// The agent of runs that name no other.
const MAIN_AGENT: &str = "main";
/// Room for a call, and for models that think before it.
const ROOM: u32 = 512;

/// What a model is sent along with the question.
#[derive(Debug, Clone, Default)]
pub struct ProbePrompt {
    /// Instructions to the model.
    pub system: Option<String>,
    /// The tools that it is told about.
    pub tools: Vec<ToolSpec>,
    /// Why nothing is sent, if it does not fit into the model's window.
    pub too_long: Option<StableErrorEnvelope>,
}

/// Chooses what a model is sent, once it is known how much it can read.
pub type PromptChoice<'a> = &'a (dyn Fn(&ProviderInfo) -> ProbePrompt + Send + Sync);

/// Stands between a conversation and the provider that it is held with, such as to count what its calls cost.
pub type ProviderWrapper<'a> = &'a (dyn Fn(Arc<dyn ModelProvider>) -> Arc<dyn ModelProvider> + Send + Sync);

/// What came of a short conversation.
#[derive(Debug, Clone, Serialize)]
pub struct TryOut {
    /// Who answered or was asked last.
    pub answering: Option<Answering>,
    /// What it said last, shortened.
    pub text: String,
    /// Tokens used.
    pub usage: Usage,
    /// How long it took.
    pub duration_ms: u64,
    /// Tries that failed before.
    pub attempts: Vec<Attempt>,
    /// How many tools it was told of.
    pub tools: usize,
    /// How many tokens it can read, as the server or the configuration says.
    pub context_tokens: u32,
    /// The tool that it called, if it called one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub called: Option<String>,
    /// Why it failed and what to do, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<StableErrorEnvelope>,
}

/// Has a model call a tool and answer. A failure is part of the result.
pub async fn try_out(provider: &dyn ModelProvider, model: &str, prompt: PromptChoice<'_>, limit: Duration) -> TryOut {
    let began = Instant::now();
    let wanted = Some(model).filter(|model| !model.is_empty());
    // What is refused before a run begins is refused here.
    let (info, unknown) = match provider.resolve(MAIN_AGENT, wanted).await {
        Ok(info) => (info, None),
        Err(unknown) => (provider.describe_for(MAIN_AGENT, wanted), Some(unknown.to_stable())),
    };
    let ProbePrompt { system, tools, too_long } = prompt(&info);
    let mut probe = Probe {
        provider,
        model,
        system,
        answering: None,
        attempts: Vec::new(),
        usage: Usage::default(),
        called: None,
        text: String::new(),
    };
    let error = match unknown.or(too_long) {
        Some(error) => Some(error),
        None => probe.outcome(&tools, limit).await.err().map(|error| error.to_stable()),
    };
    TryOut {
        answering: probe.answering,
        text: probe.text.trim().chars().take(80).collect(),
        usage: probe.usage,
        duration_ms: u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX),
        attempts: probe.attempts,
        tools: tools.len(),
        context_tokens: info.context_tokens,
        called: probe.called,
        error,
    }
}

/// A conversation under way.
struct Probe<'a> {
    provider: &'a dyn ModelProvider,
    model: &'a str,
    system: Option<String>,
    answering: Option<Answering>,
    attempts: Vec<Attempt>,
    usage: Usage,
    called: Option<String>,
    text: String,
}

impl Probe<'_> {
    /// The conversation within its time, with the tool that a refusal is over.
    async fn outcome(&mut self, tools: &[ToolSpec], limit: Duration) -> Result<(), ModelError> {
        let asked = tokio::time::timeout(limit, self.converse(tools)).await.unwrap_or_else(|_| {
            let message = format!("no answer within {} s", limit.as_secs());
            Err(ModelError::new(ModelErrorClass::Timeout, message))
        });
        match asked {
            Ok(()) => Ok(()),
            Err(error) => Err(tokio::time::timeout(limit, self.blamed(tools, error.clone())).await.unwrap_or(error)),
        }
    }

    /// A question with tools, a call, its result, an answer.
    async fn converse(&mut self, tools: &[ToolSpec]) -> Result<(), ModelError> {
        let mut messages: Vec<Message> = self.system.iter().map(Message::system).collect();
        messages.push(Message::user(QUESTION));
        let first = self.ask(messages.clone(), tools, ToolChoice::Required, ROOM).await?;
        let calls = first.tool_calls.clone();
        let Some(call) = calls.first() else {
            // Some models cannot be made to call; that they answer is enough to go on with them.
            return if first.text.trim().is_empty() && first.reasoning.is_empty() {
                Err(ModelError::malformed("the model answered with nothing"))
            } else {
                Ok(())
            };
        };
        self.called = Some(call.name.clone());
        messages.push(Message::assistant(&first.text, calls.clone()).with_reasoning(first.reasoning));
        messages.extend(calls.iter().map(|call| Message::tool_result(&call.id, &call.name, RESULT)));
        let second = self.ask(messages, tools, ToolChoice::Auto, ROOM).await?;
        if second.text.trim().is_empty() && second.tool_calls.is_empty() && second.reasoning.is_empty() {
            return Err(ModelError::malformed("the model answered the result of a tool with nothing"));
        }
        Ok(())
    }

    async fn ask(
        &mut self,
        messages: Vec<Message>,
        tools: &[ToolSpec],
        tool_choice: ToolChoice,
        room: u32,
    ) -> Result<AssembledTurn, ModelError> {
        let request = ModelRequest {
            model: self.model.to_owned(),
            max_output_tokens: Some(room),
            tools: tools.into(),
            tool_choice,
            ..ModelRequest::new(RunId::generate(), 1, Purpose::Turn, messages)
        };
        let mut stream = self.provider.stream(request).await?;
        let mut heard = TurnAssembler::new();
        while let Some(event) = stream.next().await {
            let event = event?;
            match &event {
                ModelEvent::Answering(who) => self.answering = Some(who.clone()),
                ModelEvent::Attempted(attempt) => self.attempts.push(attempt.clone()),
                _ => {}
            }
            heard.push(&event)?;
        }
        let turn = heard.finish();
        self.usage = self.usage.plus(turn.usage);
        if !turn.text.trim().is_empty() {
            self.text.clone_from(&turn.text);
        }
        Ok(turn)
    }

    /// The refusal with the tool that it is over, found by asking with halves of the list, if the server does not say. A server that refuses
    /// without tools as well is not asked further.
    async fn blamed(&mut self, tools: &[ToolSpec], error: ModelError) -> ModelError {
        let refused = error.class == ModelErrorClass::Permanent && matches!(error.status, Some(400 | 422 | 500));
        if !refused || error.tools.len() == 1 || self.refuses(&[]).await {
            return error;
        }
        let mut suspects = match error.tools.as_slice() {
            [] => tools.to_vec(),
            some => tools.iter().filter(|tool| some.contains(&tool.name)).cloned().collect(),
        };
        while suspects.len() > 1 {
            let second = suspects.split_off(suspects.len() / 2);
            if !self.refuses(&suspects).await {
                suspects = second;
            }
        }
        match suspects.as_slice() {
            [only] if self.refuses(std::slice::from_ref(only)).await => error.about_tools(vec![only.name.clone()]),
            _ => error,
        }
    }

    /// Whether a request with these tools is refused.
    async fn refuses(&mut self, tools: &[ToolSpec]) -> bool {
        let asked = self.ask(vec![Message::user("Hello.")], tools, ToolChoice::Auto, 1).await;
        asked.is_err_and(|error| error.class == ModelErrorClass::Permanent)
    }
}

/// Has a model call a tool and answer with each key of its account, one after the other: a key that fails is not hidden by one that works.
/// One try each.
pub async fn try_account(
    accounts: &Accounts,
    name: &ModelName,
    options: &RouterOptions,
    prompt: PromptChoice<'_>,
    wrap: ProviderWrapper<'_>,
    limit: Duration,
) -> Result<Vec<TryOut>, AccountsError> {
    let account =
        accounts.providers.get(&name.provider).ok_or_else(|| AccountsError::unknown(&name.provider, accounts))?;
    let keys: Vec<Vec<AccountKey>> = match account.keys.as_slice() {
        [] => vec![Vec::new()],
        keys => keys.iter().map(|key| vec![key.clone()]).collect(),
    };
    let configured = accounts.routes.lists().any(|(_, list)| list.contains(name));
    let mut results = Vec::new();
    for keys in keys {
        let account = Account { keys, ..account.clone() };
        let policy = RoutePolicy { most_tries: 1, ..RoutePolicy::default() };
        let options = RouterOptions { policy, ..options.clone() };
        // A model that nobody configured is looked up in the provider's list, as for a run that asks for it by name.
        let (model, asked) = if configured { (Some(name.model.clone()), "") } else { (None, name.model.as_str()) };
        let router = Router::single(&name.provider, account, model, None, options);
        results.push(try_out(&*wrap(Arc::new(router)), asked, prompt, limit).await);
    }
    Ok(results)
}

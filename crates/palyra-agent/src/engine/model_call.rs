//! One model call: from request to finished turn.
//!
//! Text is gathered for a moment before it becomes a record, so that a fast model does not cost one commit per token; what a person sees is still what
//! the journal holds. Dropping a call closes its connection.

use std::task::Poll;
use std::time::{Duration, Instant};

use futures::StreamExt as _;
use palyra_common::ToStableError as _;
use palyra_models::{
    Attempt, ModelError, ModelErrorClass, ModelEvent, ModelRequest, ModelStream, Purpose, TurnAssembler, Usage,
};
use palyra_safety::StreamScanner;
use palyra_tools::ToolProgress;
use tracing::field::Empty;
use tracing::{Instrument as _, Level, Span};

use super::images::Images;
use super::safety::Safety;
use super::spending::{Metered, MeteredCall, Payer};
use super::tool_offer::ToolOffer;
use super::{EngineOptions, request_size};
use crate::context;
use crate::machine::{Cost, Input, Machine, ModelFailure, ModelTurn, Remedy};

/// How long text is gathered before it is recorded.
const GATHER: Duration = Duration::from_millis(30);
/// What separates an answer that broke off from the one that replaces it. Whoever reads along is told why as progress; text is the model's alone.
/// The turn as it is kept holds the second answer alone.
const BROKEN_OFF: &str = "\n";
/// The target of events that carry what was written. No log shows them; an operator may export them.
pub(super) const CONTENT: &str = "palyra_content";

/// What a model call has to report.
pub(super) enum ModelNews {
    /// Some text.
    Text(Box<Input>),
    /// The call is over: what is left of the text, then the turn or the failure.
    Over(Vec<Input>),
}

/// A model call under way.
pub(super) struct ModelCall {
    turn: u32,
    attempt: u32,
    began: Instant,
    /// Why it is not made, if the model's window cannot hold it.
    too_long: Option<ModelError>,
    call: MeteredCall,
    assembler: TurnAssembler,
    safety: Safety,
    scanner: Option<StreamScanner>,
    gathered: String,
    provider_tries_again: bool,
    gather_until: Option<tokio::time::Instant>,
    /// Tells followers about attempts that failed.
    progress: ToolProgress,
    failed_attempts: u32,
    /// How long the run may work: how long it waits for a provider that is away.
    working_time: Duration,
}

impl ModelCall {
    pub(super) fn begin(
        options: &EngineOptions,
        machine: &Machine,
        images: &Images,
        turn: u32,
        attempt: u32,
        delay: Duration,
        progress: ToolProgress,
    ) -> Self {
        let spec = machine.spec();
        let mut messages = context::messages(spec, machine.items());
        images.attach(spec, &mut messages);
        let ToolOffer { tools, .. } = ToolOffer::to(options, spec, machine.tools_in_use());
        let too_long = request_size::too_long(options, spec, &messages, &tools);
        let request = ModelRequest {
            model: spec.model.name.clone(),
            tools: tools.into(),
            max_output_tokens: options.max_output_tokens,
            stable_messages: context::stable_messages(spec),
            agent: spec.agent.clone(),
            ..ModelRequest::new(spec.run_id, turn, Purpose::Turn, messages)
        };
        Self {
            turn,
            attempt,
            began: Instant::now(),
            too_long,
            call: MeteredCall::begin(options, Payer::of(spec, format!("t{turn}a{attempt}")), request, delay),
            assembler: TurnAssembler::new(),
            safety: options.safety.clone(),
            scanner: Some(options.safety.stream()),
            gathered: String::new(),
            provider_tries_again: options.provider.tries_again(),
            gather_until: None,
            progress,
            failed_attempts: 0,
            working_time: Duration::from_millis(spec.limits.wall_clock_ms),
        }
    }

    /// The next news of the call, if there is one. Cancel-safe: nothing read from the stream is lost.
    pub(super) async fn next(call: &mut Option<Self>) -> ModelNews {
        match call {
            Some(call) => call.news().await,
            None => std::future::pending().await,
        }
    }

    async fn news(&mut self) -> ModelNews {
        if let Some(error) = self.too_long.take() {
            return ModelNews::Over(self.failed(&error, Usage::default(), Cost::default()));
        }
        loop {
            let news = match self.gather_until {
                Some(until) => match tokio::time::timeout_at(until, self.call.next()).await {
                    Ok(news) => news,
                    Err(_) => {
                        self.gather_until = None;
                        return ModelNews::Text(Box::new(self.delta()));
                    }
                },
                None => self.call.next().await,
            };
            match news {
                Metered::Event(event) => {
                    match &event {
                        ModelEvent::TextDelta(text) => self.gather(text),
                        ModelEvent::Attempted(attempt) => {
                            self.failed_attempts += 1;
                            self.progress.step(None, &retrying(attempt, self.failed_attempts, self.has_shown_text()));
                            self.begin_anew();
                        }
                        ModelEvent::Waiting(wait) => self.progress.step(None, &waiting(wait, self.working_time)),
                        _ => {}
                    }
                    if let Err(error) = self.assembler.push(&event) {
                        return ModelNews::Over(self.failed(&error, Usage::default(), Cost::default()));
                    }
                }
                Metered::Finished { usage, cost } => return ModelNews::Over(self.finished(usage, cost)),
                Metered::Failed { error, usage, cost } => return ModelNews::Over(self.failed(&error, usage, cost)),
                Metered::Refused { error, cost } => {
                    let mut inputs = self.rest();
                    inputs.push(Input::BudgetRefused { turn: self.turn, attempt: self.attempt, error, cost });
                    return ModelNews::Over(inputs);
                }
            }
        }
    }

    /// Takes in text as it comes; what could still turn out to be part of a secret is held back.
    fn gather(&mut self, text: &str) {
        let Some(scanner) = &mut self.scanner else { return };
        let released = scanner.push(text.as_bytes());
        self.gathered.push_str(&String::from_utf8_lossy(&released.bytes));
        if !self.gathered.is_empty() {
            self.gather_until.get_or_insert_with(|| tokio::time::Instant::now() + GATHER);
        }
    }

    /// Whether people have read part of an answer that is now taken back.
    fn has_shown_text(&self) -> Shown {
        if self.assembler.text().is_empty() { Shown::Nothing } else { Shown::Text }
    }

    /// A try broke off and another begins: what was not shown yet is forgotten, what was shown is marked.
    fn begin_anew(&mut self) {
        self.gathered.clear();
        self.scanner = Some(self.safety.stream());
        if !self.assembler.text().is_empty() {
            self.gather(BROKEN_OFF);
        }
    }

    fn delta(&mut self) -> Input {
        Input::ModelDelta { turn: self.turn, text: std::mem::take(&mut self.gathered) }
    }

    fn rest(&mut self) -> Vec<Input> {
        if let Some(scanner) = self.scanner.take() {
            let (released, _) = scanner.finish();
            self.gathered.push_str(&String::from_utf8_lossy(&released.bytes));
        }
        if self.gathered.is_empty() { Vec::new() } else { vec![self.delta()] }
    }

    fn failed(&mut self, error: &ModelError, usage: Usage, cost: Cost) -> Vec<Input> {
        let mut inputs = self.rest();
        let turn = std::mem::take(&mut self.assembler).finish();
        inputs.push(Input::ModelFailed(ModelFailure {
            turn: self.turn,
            attempt: self.attempt,
            remedy: self.remedy(error),
            error: error.to_stable(),
            answering: turn.answering,
            attempts: turn.attempts,
            usage,
            cost,
        }));
        inputs
    }

    fn remedy(&self, error: &ModelError) -> Remedy {
        match error.class {
            ModelErrorClass::ContextTooLong => Remedy::Compact,
            ModelErrorClass::RateLimit
            | ModelErrorClass::Transient
            | ModelErrorClass::Network
            | ModelErrorClass::Timeout
            | ModelErrorClass::Malformed
                if !self.provider_tries_again =>
            {
                Remedy::Retry
            }
            _ => Remedy::Nothing,
        }
    }

    fn finished(&mut self, usage: Usage, cost: Cost) -> Vec<Input> {
        let mut inputs = self.rest();
        let turn = std::mem::take(&mut self.assembler).finish();
        inputs.push(Input::ModelTurnFinished(ModelTurn {
            turn: self.turn,
            attempt: self.attempt,
            text: self.safety.before_export(turn.text),
            tool_calls: turn.tool_calls,
            usage,
            stop_reason: turn.stop_reason,
            reasoning: self.safety.without_secrets(turn.reasoning),
            answering: turn.answering,
            attempts: turn.attempts,
            repairs: turn.repairs,
            cost,
            duration_ms: u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX),
        }));
        inputs
    }
}

/// What people read while a call that failed is made again: `work/large: rate limit; retrying in 12 s (attempt 2): …`.
fn retrying(failed: &Attempt, failures: u32, shown: Shown) -> String {
    let Attempt { asked, error, wait_ms, .. } = failed;
    let class = error.class.as_str().replace('_', " ");
    let when = match wait_ms.div_ceil(1000) {
        0 => "now".to_owned(),
        seconds => format!("in {seconds} s"),
    };
    let start_over = match shown {
        Shown::Nothing => "",
        Shown::Text => "the answer was cut off; starting over: ",
    };
    format!("{start_over}{asked}: {class}; retrying {when} (attempt {}): {}", failures.saturating_add(1), error.message)
}

/// Whether part of an answer was shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Nothing,
    Text,
}

/// What people read while a call waits for a provider that is away: `waiting for work/large to come back, for as long as the run may work (900 s): …`.
fn waiting(wait: &Attempt, working_time: Duration) -> String {
    let seconds = working_time.as_secs();
    format!(
        "waiting for {} to come back, for as long as the run may work ({seconds} s): {}",
        wait.asked, wait.error.message
    )
}

/// The stream of a call that is opened when it is first polled. It is one span of work, from the request to the end of the answer.
pub(super) fn open(options: &EngineOptions, request: ModelRequest) -> ModelStream {
    let provider = options.provider.clone();
    let opened = async move {
        let traced = Traced::begin(provider.name(), &request);
        let stream = match provider.stream(request).instrument(traced.span.clone()).await {
            Ok(stream) => stream,
            Err(error) => futures::stream::once(async move { Err(error) }).boxed(),
        };
        traced.around(stream)
    };
    futures::stream::once(opened).flatten().boxed()
}

/// What a call's span gets to know. Dropped before the stream ends, it leaves a span without an outcome: the call was given up.
struct Traced {
    span: Span,
    /// What the model writes, gathered only where somebody exports it.
    answer: Option<String>,
}

impl Traced {
    fn begin(provider: &str, request: &ModelRequest) -> Self {
        let span = tracing::error_span!(
            "model_call",
            provider,
            model = request.model.as_str(),
            turn = request.turn,
            outcome = Empty,
            error = Empty,
            input_tokens = Empty,
            output_tokens = Empty,
        );
        let captured = tracing::enabled!(target: CONTENT, Level::TRACE);
        if captured {
            let input = serde_json::to_string(&request.messages).unwrap_or_default();
            span.in_scope(|| tracing::trace!(target: CONTENT, input));
        }
        Self { span, answer: captured.then(String::new) }
    }

    fn around(mut self, mut stream: ModelStream) -> ModelStream {
        futures::stream::poll_fn(move |context| {
            let polled = self.span.in_scope(|| stream.poll_next_unpin(context));
            if let Poll::Ready(news) = &polled {
                self.hear(news.as_ref());
            }
            polled
        })
        .boxed()
    }

    fn hear(&mut self, news: Option<&Result<ModelEvent, ModelError>>) {
        match news {
            Some(Ok(ModelEvent::TextDelta(text))) => {
                if let Some(answer) = &mut self.answer {
                    answer.push_str(text);
                }
            }
            Some(Ok(ModelEvent::Usage(usage))) => {
                self.span.record("input_tokens", usage.input_tokens);
                self.span.record("output_tokens", usage.output_tokens);
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                self.span.record("outcome", "error");
                self.span.record("error", error.to_stable().code.as_str());
            }
            None => {
                self.span.record("outcome", "ok");
                if let Some(output) = self.answer.take() {
                    self.span.in_scope(|| tracing::trace!(target: CONTENT, output));
                }
            }
        }
    }
}

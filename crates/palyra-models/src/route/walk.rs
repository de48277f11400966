//! One call on its way: try after try until somebody answers or nobody is left.
//!
//! Before each try the stream says who is asked ([`ModelEvent::Answering`]); after each that failed and is followed by another, that it
//! failed ([`ModelEvent::Attempted`]), which takes back everything between the two. The last failure ends the stream as its error.
//! A tool call is acted on only when its turn is whole, so no try repeats an effect. While a provider is away the stream says from time to time
//! that it waits ([`ModelEvent::Waiting`]).
//!
//! Waiting is part of the stream: dropping it ends the wait, the try and the connection at once, and a probe that ends this way is
//! left to the next caller.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};
use palyra_common::Timestamp;

use super::gates::{Gates, Insist, Pass};
use super::lanes::{Lanes, Next, Outage};
use super::pace::Pace;
use super::policy::{AfterOutput, RoutePolicy, is_outage};
use super::pool::Pool;
use crate::attempt::{AnswerEnd, Answering, Attempt};
use crate::chat::empty_answer;
use crate::error::{ModelError, ModelErrorClass};
use crate::event::{ModelEvent, StopReason, Usage};
use crate::provider::ModelStream;
use crate::request::ModelRequest;

/// What all calls share.
#[derive(Clone)]
pub(super) struct Ground {
    pub(super) pool: Arc<Pool>,
    pub(super) gates: Arc<Gates>,
    pub(super) pace: Arc<dyn Pace>,
    pub(super) policy: Arc<RoutePolicy>,
}

/// The stream of a call.
pub(super) fn walk(ground: Ground, lanes: Lanes, request: ModelRequest) -> ModelStream {
    let walk = Walk {
        ground,
        lanes,
        request,
        phase: Phase::Begin,
        ready: VecDeque::new(),
        waited: Duration::ZERO,
        tries: 0,
        restarts: 0,
        trail: Vec::new(),
        waiting_told: None,
    };
    let events = stream::unfold(walk, |mut walk| async move {
        let item = walk.next().await?;
        Some((item, walk))
    });
    Box::pin(events.fuse())
}

struct Walk {
    ground: Ground,
    lanes: Lanes,
    request: ModelRequest,
    phase: Phase,
    ready: VecDeque<ModelEvent>,
    waited: Duration,
    tries: u32,
    restarts: u32,
    /// Who was asked and what came of it, for the last message.
    trail: Vec<String>,
    /// When it was last said that the call waits.
    waiting_told: Option<Timestamp>,
}

/// How often it is said that a call waits.
const WAITING_INTERVAL: Duration = Duration::from_secs(15);

enum Phase {
    /// Nothing was tried.
    Begin,
    /// This way comes next, after a wait.
    Towards { lane: usize, key: usize, after: Duration, insist: Insist },
    /// Somebody was asked and has not begun to answer.
    Asking(Box<Try>),
    /// Somebody answers.
    Hearing(Box<Try>, ModelStream),
    /// All is said.
    Over,
}

/// A try under way.
struct Try {
    lane: usize,
    key: usize,
    pass: Pass,
    asked: Answering,
    usage: Option<Usage>,
    /// Whether part of an answer was passed on.
    heard: Heard,
    /// Whether there was anything in it that a run can use.
    content: Content,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Content {
    None,
    Some,
}

/// Whether a run can use this: text that is not blank, or a call. Thoughts alone are no answer.
fn has_content(event: &ModelEvent) -> bool {
    match event {
        ModelEvent::TextDelta(text) => !text.trim().is_empty(),
        ModelEvent::ToolCallDelta { .. } => true,
        _ => false,
    }
}

/// Whether an answer that ended like this and holds nothing is a failure. One that was cut off or withheld says why it is empty.
const fn may_not_be_empty(reason: StopReason) -> bool {
    match reason {
        StopReason::EndTurn | StopReason::ToolUse | StopReason::Other => true,
        StopReason::MaxTokens | StopReason::NotDone | StopReason::ContentFilter => false,
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Heard {
    Nothing,
    Something,
}

impl Walk {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            match std::mem::replace(&mut self.phase, Phase::Over) {
                Phase::Begin => {
                    if let Some(error) = self.go_on(None) {
                        return Some(Err(error));
                    }
                }
                Phase::Towards { lane, key, after, insist } => self.set_out(lane, key, after, insist).await,
                Phase::Asking(asking) => {
                    match ask(&self.ground.pool.clone(), self.request.clone(), &asking.asked).await {
                        Ok(stream) => self.phase = Phase::Hearing(asking, stream),
                        Err(error) => {
                            if let Some(error) = self.after_failure(*asking, error) {
                                return Some(Err(error));
                            }
                        }
                    }
                }
                Phase::Hearing(hearing, stream) => match self.hear(hearing, stream).await {
                    Ok(Some(event)) => return Some(Ok(event)),
                    Ok(None) => {}
                    Err(error) => return Some(Err(error)),
                },
                Phase::Over => return None,
            }
        }
    }

    /// Chooses what comes next, or says why nothing does.
    fn go_on(&mut self, last: Option<usize>) -> Option<ModelError> {
        let Ground { gates, pace, policy, .. } = &self.ground;
        match self.lanes.next(last, gates, pace.now(), policy, self.waited) {
            Next::Try { lane, key, after, insist } => {
                if !after.is_zero() {
                    self.tell_rest(lane, key, after);
                }
                self.phase = Phase::Towards { lane, key, after, insist };
                None
            }
            Next::Nobody(error) => {
                let none = || ModelError::new(ModelErrorClass::Permanent, "there is no model to ask");
                Some(error.unwrap_or_else(none))
            }
        }
    }

    /// Says that the call waits for something that rests.
    fn tell_rest(&mut self, lane: usize, key: usize, after: Duration) {
        let Some((target, way)) = self.lanes.lane(lane).and_then(|lane| Some((&lane.target, lane.way(key)?))) else {
            return;
        };
        let Some(error) = self.ground.gates.trouble(way, self.ground.pace.now()).and_then(|trouble| trouble.last)
        else {
            return;
        };
        let asked = Answering {
            provider: target.name.provider.clone(),
            model: target.name.model.clone(),
            credential: way.credential.clone(),
        };
        self.tell_waiting(asked, error, after);
    }

    fn tell_waiting(&mut self, asked: Answering, error: ModelError, after: Duration) {
        let now = self.ground.pace.now();
        if self.waiting_told.is_some_and(|told| now.since(told) < WAITING_INTERVAL) {
            return;
        }
        self.waiting_told = Some(now);
        let wait_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.ready.push_back(ModelEvent::Waiting(Attempt {
            asked,
            error,
            wait_ms,
            usage: None,
            end: AnswerEnd::Missing,
        }));
    }

    /// Waits, then asks; if somebody else got there first, chooses anew.
    async fn set_out(&mut self, lane: usize, key: usize, after: Duration, insist: Insist) {
        if !after.is_zero() {
            self.ground.pace.sleep(after).await;
            self.waited = self.waited.saturating_add(after);
        }
        let Some((target, way)) = self.lanes.lane(lane).and_then(|lane| Some((&lane.target, lane.way(key)?))) else {
            return;
        };
        let Some(pass) = Pass::take(&self.ground.gates, &self.ground.pace, way, insist) else {
            self.phase = Phase::Begin;
            return;
        };
        let asked = Answering {
            provider: target.name.provider.clone(),
            model: target.name.model.clone(),
            credential: way.credential.clone(),
        };
        self.tries = self.tries.saturating_add(1);
        self.ready.push_back(ModelEvent::Answering(asked.clone()));
        self.phase = Phase::Asking(Box::new(Try {
            lane,
            key,
            pass,
            asked,
            usage: None,
            heard: Heard::Nothing,
            content: Content::None,
        }));
    }

    /// The next event of an answer. `None`: it was swallowed, or the try failed and another follows.
    async fn hear(&mut self, mut hearing: Box<Try>, mut stream: ModelStream) -> Result<Option<ModelEvent>, ModelError> {
        let broke_off = || ModelError::new(ModelErrorClass::Network, "the answer ended before it was complete");
        let event = match stream.next().await.unwrap_or_else(|| Err(broke_off())) {
            Ok(event) => event,
            Err(error) => {
                drop(stream);
                return self.after_failure(*hearing, error).map_or(Ok(None), Err);
            }
        };
        match &event {
            ModelEvent::Answering(answering) => {
                let known = hearing.asked == *answering;
                hearing.asked = answering.clone();
                self.phase = Phase::Hearing(hearing, stream);
                return Ok((!known).then_some(event));
            }
            ModelEvent::Finished(reason) => {
                if hearing.content == Content::None && may_not_be_empty(*reason) {
                    return Ok(self.after_empty(*hearing, event));
                }
                hearing.pass.succeeded();
                return Ok(Some(event));
            }
            ModelEvent::Usage(usage) => hearing.usage = Some(*usage),
            ModelEvent::TextDelta(_)
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::ToolCallDelta { .. } => {
                if has_content(&event) {
                    hearing.content = Content::Some;
                }
                if hearing.heard == Heard::Nothing {
                    hearing.heard = Heard::Something;
                    hearing.pass.answers();
                }
            }
            ModelEvent::Attempted(_) | ModelEvent::Waiting(_) | ModelEvent::Repaired(_) => {}
        }
        self.phase = Phase::Hearing(hearing, stream);
        Ok(Some(event))
    }

    /// Settles a failed try; gives the error if nothing follows it.
    fn after_failure(&mut self, failed: Try, error: ModelError) -> Option<ModelError> {
        let Try { lane, key, pass, asked, usage, heard, content: _ } = failed;
        let Ground { pool, gates, pace, policy } = self.ground.clone();
        pass.failed(&error, &policy);
        if error.class == ModelErrorClass::Auth {
            pool.forget(&asked.provider, asked.credential.as_deref());
        }
        let tries = self.lanes.lane(lane).map_or(0, super::lanes::Lane::tries).saturating_add(1);
        let asked_for = error.retry_after_ms.map(Duration::from_millis);
        let is_away = is_outage(&error);
        let waited_out = is_away && self.waited < policy.outage_patience && gates.has_answered(&asked.provider);
        let outage = if waited_out { Outage::Yes } else { Outage::No };
        let wait = asked_for.unwrap_or_else(|| match (is_away, outage) {
            (_, Outage::Yes) => policy.outage_wait(1, pace.chance()),
            (true, Outage::No) => policy.outage_wait(tries, pace.chance()),
            (false, Outage::No) => policy.spread_wait(tries, pace.chance()),
        });
        let now = pace.now();
        self.lanes.failed(lane, key, &error, now.plus(wait), outage);
        if outage == Outage::Yes {
            return self.wait_out(lane, asked, error);
        }
        self.trail.push(told(&asked, &error));
        if heard == Heard::Something {
            self.restarts = self.restarts.saturating_add(1);
            if policy.after_output == AfterOutput::GiveUp || self.restarts > policy.most_restarts {
                return Some(self.last_word(error));
            }
        }
        if self.tries >= policy.most_tries {
            return Some(self.last_word(error));
        }
        match self.lanes.next(Some(lane), &gates, now, &policy, self.waited) {
            Next::Try { lane, key, after, insist } => {
                let wait_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
                self.ready.push_back(ModelEvent::Attempted(Attempt {
                    asked,
                    error,
                    wait_ms,
                    usage,
                    end: AnswerEnd::Missing,
                }));
                self.phase = Phase::Towards { lane, key, after, insist };
                None
            }
            Next::Nobody(_) => Some(self.last_word(error)),
        }
    }

    /// An answer ended without anything in it: somebody else is asked. If there is nobody, whoever made the call decides what that means.
    fn after_empty(&mut self, empty: Try, end: ModelEvent) -> Option<ModelEvent> {
        let Try { lane, pass, asked, usage, .. } = empty;
        self.lanes.give_up(lane);
        let Ground { gates, pace, policy, .. } = self.ground.clone();
        let next = self.lanes.next(None, &gates, pace.now(), &policy, self.waited);
        let Next::Try { lane, key, after, insist } = next else {
            pass.succeeded();
            return Some(end);
        };
        let error = empty_answer();
        pass.failed(&error, &policy);
        self.trail.push(told(&asked, &error));
        let wait_ms = u64::try_from(after.as_millis()).unwrap_or(u64::MAX);
        self.ready.push_back(ModelEvent::Attempted(Attempt { asked, error, wait_ms, usage, end: AnswerEnd::Arrived }));
        self.phase = Phase::Towards { lane, key, after, insist };
        None
    }

    /// Goes on after a provider was found to be away: nothing was used up, and nothing of an answer has to be taken back.
    fn wait_out(&mut self, lane: usize, asked: Answering, error: ModelError) -> Option<ModelError> {
        self.tries = self.tries.saturating_sub(1);
        let Ground { gates, pace, policy, .. } = self.ground.clone();
        match self.lanes.next(Some(lane), &gates, pace.now(), &policy, self.waited) {
            Next::Try { lane, key, after, insist } => {
                self.tell_waiting(asked, error, after);
                self.phase = Phase::Towards { lane, key, after, insist };
                None
            }
            Next::Nobody(_) => Some(self.last_word(error)),
        }
    }

    /// The error that ends the call, with what was tried before.
    fn last_word(&self, mut error: ModelError) -> ModelError {
        if self.trail.len() > 1 {
            let all = ModelError::new(error.class, format!("{error} (tried: {})", in_short(&self.trail)));
            error.message = all.message;
        }
        error
    }
}

async fn ask(pool: &Arc<Pool>, request: ModelRequest, asked: &Answering) -> Result<ModelStream, ModelError> {
    let provider = pool.get(&asked.provider, asked.credential.as_deref()).await?;
    provider.stream(ModelRequest { model: asked.model.clone(), ..request }).await
}

fn told(asked: &Answering, error: &ModelError) -> String {
    let model = crate::accounts::ModelName::new(asked.provider.as_str(), asked.model.as_str());
    let key = asked.credential.as_ref().map(|key| format!(" with key {key}")).unwrap_or_default();
    format!("{model}{key}: {}", error.class)
}

/// The tries in order, those that repeat themselves with how often.
fn in_short(trail: &[String]) -> String {
    let parts: Vec<String> = trail
        .chunk_by(|one, next| one == next)
        .filter_map(|same| {
            let one = same.first()?;
            Some(if same.len() == 1 { one.clone() } else { format!("{one}, {} times", same.len()) })
        })
        .collect();
    parts.join("; ")
}

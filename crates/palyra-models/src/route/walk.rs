//! One call on its way: try after try until somebody answers or nobody is left.
//!
//! Before each try the stream says who is asked ([`ModelEvent::Answering`]); after each that failed and is followed by another, that it
//! failed ([`ModelEvent::Attempted`]), which takes back everything between the two. The last failure ends the stream as its error.
//! A tool call is acted on only when its turn is whole, so no try repeats an effect.
//!
//! Waiting is part of the stream: dropping it ends the wait, the try and the connection at once, and a probe that ends this way is
//! left to the next caller.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt as _, stream};

use super::gates::{Gates, Insist, Pass};
use super::lanes::{Lanes, Next};
use super::pace::Pace;
use super::policy::{AfterOutput, RoutePolicy};
use super::pool::Pool;
use crate::attempt::{Answering, Attempt};
use crate::error::{ModelError, ModelErrorClass};
use crate::event::{ModelEvent, Usage};
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
}

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
                self.phase = Phase::Towards { lane, key, after, insist };
                None
            }
            Next::Nobody(error) => {
                let none = || ModelError::new(ModelErrorClass::Permanent, "there is no model to ask");
                Some(error.unwrap_or_else(none))
            }
        }
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
        self.phase = Phase::Asking(Box::new(Try { lane, key, pass, asked, usage: None, heard: Heard::Nothing }));
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
            ModelEvent::Finished(_) => {
                hearing.pass.succeeded();
                return Ok(Some(event));
            }
            ModelEvent::Usage(usage) => hearing.usage = Some(*usage),
            ModelEvent::TextDelta(_)
            | ModelEvent::ReasoningDelta(_)
            | ModelEvent::Reasoning(_)
            | ModelEvent::ToolCallDelta { .. } => {
                if hearing.heard == Heard::Nothing {
                    hearing.heard = Heard::Something;
                    hearing.pass.answers();
                }
            }
            ModelEvent::Attempted(_) | ModelEvent::Repaired(_) => {}
        }
        self.phase = Phase::Hearing(hearing, stream);
        Ok(Some(event))
    }

    /// Settles a failed try; gives the error if nothing follows it.
    fn after_failure(&mut self, failed: Try, error: ModelError) -> Option<ModelError> {
        let Try { lane, key, pass, asked, usage, heard } = failed;
        let Ground { pool, gates, pace, policy } = self.ground.clone();
        pass.failed(&error, &policy);
        if error.class == ModelErrorClass::Auth {
            pool.forget(&asked.provider, asked.credential.as_deref());
        }
        let tries = self.lanes.lane(lane).map_or(0, super::lanes::Lane::tries).saturating_add(1);
        let asked_for = error.retry_after_ms.map(Duration::from_millis);
        let wait = asked_for.unwrap_or_else(|| policy.spread_wait(tries, pace.chance()));
        let now = pace.now();
        self.lanes.failed(lane, key, &error, now.plus(wait));
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
                self.ready.push_back(ModelEvent::Attempted(Attempt { asked, error, wait_ms, usage }));
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

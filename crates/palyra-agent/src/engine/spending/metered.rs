//! One model call with its bill.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use palyra_common::{StableErrorEnvelope, ToStableError as _};
use palyra_models::{
    AnswerEnd, AttemptCost, ModelError, ModelErrorClass, ModelEvent, ModelRequest, ModelStream, Usage,
};

use super::bill::{Answered, Billed};
use super::{EngineOptions, Meter, NotMade, Payer, reserve};
use crate::engine::driver::{is_unavailable, wait_for_journal};
use crate::engine::model_call::open;
use crate::machine::{Cost, LostTry};

/// What a call reports.
#[derive(Debug)]
pub(in crate::engine) enum Metered {
    /// More of the answer.
    Event(ModelEvent),
    /// The answer is complete.
    Finished {
        /// Tokens used, by the provider's own numbers where it gave any.
        usage: Usage,
        /// What it cost.
        cost: Cost,
    },
    /// The call failed.
    Failed {
        /// Why.
        error: ModelError,
        /// Tokens used all the same.
        usage: Usage,
        /// What it cost all the same.
        cost: Cost,
    },
    /// The call was not made, because it could cost more than a budget leaves.
    Refused {
        /// Which budget.
        error: Box<StableErrorEnvelope>,
        /// What earlier tries at it cost.
        cost: Cost,
    },
}

type Reserving = Pin<Box<dyn Future<Output = Result<Meter, NotMade>> + Send>>;

/// A model call under way. Dropping it closes the connection; what it reserved then counts as spent.
pub(in crate::engine) struct MeteredCall {
    options: EngineOptions,
    payer: Payer,
    request: Arc<ModelRequest>,
    /// Money is being reserved, for the call or for another try at it.
    reserving: Option<Reserving>,
    meter: Option<Meter>,
    stream: ModelStream,
    answered: Answered,
    /// What all tries so far cost.
    sums: (Usage, Cost),
    tries: u32,
    finished: bool,
}

impl MeteredCall {
    /// Begins a call after `delay`. Nothing is reserved or sent before it is first polled.
    pub(in crate::engine) fn begin(
        options: &EngineOptions,
        payer: Payer,
        request: ModelRequest,
        delay: Duration,
    ) -> Self {
        let mut options = options.clone();
        // The call, what is reserved for it and its bill are of one provider, whatever takes its place meanwhile.
        if let Some(present) = options.provider.present() {
            options.provider = present;
        }
        let mut call = Self {
            stream: open(&options, request.clone()),
            options,
            payer,
            request: Arc::new(request),
            reserving: None,
            meter: None,
            answered: Answered::default(),
            sums: (Usage::default(), Cost::default()),
            tries: 0,
            finished: false,
        };
        call.reserve(delay);
        call
    }

    fn reserve(&mut self, delay: Duration) {
        self.tries += 1;
        let (options, request) = (self.options.clone(), Arc::clone(&self.request));
        let payer = Payer { call: format!("{}.{}", self.payer.call, self.tries), ..self.payer.clone() };
        self.reserving = Some(Box::pin(async move {
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            loop {
                match reserve(&options, &payer, &request).await {
                    // Nothing was sent, so nothing is lost by waiting; a failed call might be the end of its run.
                    Err(NotMade::NotRecorded(error)) if is_unavailable(&error) => {
                        wait_for_journal(payer.run_id, &error).await;
                    }
                    reserved => return reserved,
                }
            }
        }));
    }

    /// The next news. Cancel-safe; not to be asked again after the last.
    pub(in crate::engine) async fn next(&mut self) -> Metered {
        if let Some(reserving) = &mut self.reserving {
            let reserved = reserving.as_mut().await;
            self.reserving = None;
            match reserved {
                Ok(meter) => self.meter = Some(meter),
                Err(NotMade::Exceeded(exceeded)) => {
                    return Metered::Refused { error: Box::new(exceeded.to_stable()), cost: self.sums.1.clone() };
                }
                Err(NotMade::NotRecorded(error)) => {
                    let message = format!("the reservation could not be recorded: {}", error.to_stable().message);
                    return self.failed(ModelError::new(ModelErrorClass::Transient, message));
                }
            }
        }
        match self.stream.next().await {
            Some(Ok(event)) => {
                self.hear(&event);
                Metered::Event(event)
            }
            Some(Err(error)) => {
                self.answered.may_have_cost |= AttemptCost::of(&error) == AttemptCost::Unknown;
                self.failed(error)
            }
            None if self.finished => {
                self.close();
                let (usage, cost) = self.sums.clone();
                Metered::Finished { usage, cost }
            }
            None => {
                self.answered.may_have_cost = true;
                self.failed(ModelError::new(ModelErrorClass::Malformed, "the answer ended without an end"))
            }
        }
    }

    fn failed(&mut self, error: ModelError) -> Metered {
        self.close();
        let (usage, cost) = self.sums.clone();
        Metered::Failed { error, usage, cost }
    }

    /// Makes the bill of the present try.
    fn close(&mut self) {
        if let Some(Billed { usage, cost, .. }) = self.bill() {
            self.add(usage, cost);
        }
    }

    /// Makes the bill of a try that is followed by another; it stays with the model that was asked.
    fn close_lost(&mut self) {
        if let Some(Billed { asked, usage, mut cost }) = self.bill() {
            let (micro_usd, assumed) = (cost.micro_usd, cost.assumed);
            cost.lost.extend(asked.map(|asked| LostTry { asked, usage, micro_usd, assumed }));
            self.add(usage, cost);
        }
    }

    fn bill(&mut self) -> Option<Billed> {
        let answered = std::mem::take(&mut self.answered);
        let meter = self.meter.take()?;
        Some(meter.settle(&self.options, &self.request, &answered))
    }

    fn add(&mut self, usage: Usage, cost: Cost) {
        self.sums.0 = self.sums.0.plus(usage);
        self.sums.1 = std::mem::take(&mut self.sums.1).plus(cost);
    }

    fn hear(&mut self, event: &ModelEvent) {
        match event {
            ModelEvent::Answering(answering) => self.answered.answering = Some(answering.clone()),
            ModelEvent::TextDelta(text) => self.answered.wrote(text),
            ModelEvent::ReasoningDelta(text) => self.answered.thought(text),
            ModelEvent::ToolCallDelta { arguments, .. } => self.answered.wrote(arguments),
            ModelEvent::Reasoning(_) => self.answered.may_have_cost = true,
            ModelEvent::Usage(usage) => self.answered.usage = Some(*usage),
            ModelEvent::Finished(_) => {
                self.answered.may_have_cost = true;
                self.answered.complete = true;
                self.finished = true;
            }
            // A try that had begun is paid for; the next one needs money of its own before it is made.
            ModelEvent::Attempted(attempt) => {
                self.answered.may_have_cost |= AttemptCost::of(&attempt.error) == AttemptCost::Unknown;
                self.answered.answering = Some(attempt.asked.clone());
                self.answered.complete = attempt.end == AnswerEnd::Arrived;
                if attempt.usage.is_some() {
                    self.answered.usage = attempt.usage;
                    self.answered.may_have_cost = true;
                }
                if self.answered.may_have_cost {
                    self.close_lost();
                    self.reserve(Duration::ZERO);
                }
            }
            ModelEvent::Waiting(_) | ModelEvent::Repaired(_) => {}
        }
    }
}

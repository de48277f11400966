//! Model calls that try a model out: they belong to no run, are held to the budgets and entered into the books like all others.
//!
//! They are booked on a session of their own for each principal. What costs nothing is asked directly and leaves no record.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream;
use palyra_budget::MicroUsd;
use palyra_common::{RunId, SessionId, StableErrorEnvelope, ToStableError as _};
use palyra_journal::NewRecord;
use palyra_models::{
    Answering, ModelError, ModelErrorClass, ModelEvent, ModelProvider, ModelRequest, ModelStream, ProviderInfo, Seller,
    UnknownModel, Usage,
};
use serde::{Deserialize, Serialize};

use super::spending::{Metered, MeteredCall, Payer, Reserved, is_free};
use super::{Engine, EngineOptions};
use crate::error::AgentError;
use crate::machine::Cost;
use crate::spec::MAIN_AGENT;

/// Kind of the record of a call.
pub(crate) const TESTED: &str = "models.tested";
/// Names the call in its reservation.
pub(crate) const CALL: &str = "model-test";
/// Names the session that a principal's calls are booked on.
const SESSION_KEY: &str = "model tests";
const SESSION_TITLE: &str = "Model tests";

/// Payload of a `models.tested` record.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ModelTested {
    /// Stands for the call in the books.
    pub(crate) run_id: RunId,
    pub(crate) session_id: SessionId,
    /// Who answered, or was asked.
    pub(crate) asked: Answering,
    pub(crate) usage: Usage,
    pub(crate) cost: Cost,
}

impl ModelTested {
    /// A call that the last process did not live to see the end of, in full.
    pub(super) fn interrupted(reserved: Reserved) -> Option<Self> {
        let Reserved { reservation, charge, asked } = reserved;
        let cost = Cost { micro_usd: charge.worst, assumed: true, closes: vec![reservation], ..Cost::default() };
        let (run_id, session_id) = (charge.run_id, charge.session_id);
        Some(Self { run_id, session_id, asked: asked?, usage: Usage::default(), cost })
    }
}

/// Trying models out for one principal.
#[derive(Clone)]
pub struct ModelTests {
    engine: Engine,
    owner: String,
    refused: Arc<Mutex<Option<StableErrorEnvelope>>>,
}

impl Engine {
    /// Tries models out for this principal.
    #[must_use]
    pub fn model_tests(&self, owner: &str) -> ModelTests {
        ModelTests { engine: self.clone(), owner: owner.to_owned(), refused: Arc::default() }
    }
}

impl EngineOptions {
    pub(super) fn model_test_record(&self, tested: &ModelTested) -> Result<NewRecord, AgentError> {
        let payload = serde_json::to_vec(tested).map_err(|error| AgentError::Internal(error.to_string()))?;
        Ok(NewRecord::new(TESTED, self.clock.now(), payload).in_session(tested.session_id))
    }
}

impl ModelTests {
    /// The same provider, whose calls are held to the budgets and entered into the books.
    #[must_use]
    pub fn provider(&self, inner: Arc<dyn ModelProvider>) -> Arc<dyn ModelProvider> {
        Arc::new(MeteredProvider { tests: self.clone(), inner })
    }

    /// Why a budget did not allow the last call, if it did not.
    #[must_use]
    pub fn take_refusal(&self) -> Option<StableErrorEnvelope> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// A provider whose calls are paid for by nobody's run.
struct MeteredProvider {
    tests: ModelTests,
    inner: Arc<dyn ModelProvider>,
}

/// A call under way.
struct TestCall {
    tests: ModelTests,
    call: MeteredCall,
    run_id: RunId,
    session_id: SessionId,
    asked: Option<Answering>,
}

#[async_trait]
impl ModelProvider for MeteredProvider {
    fn name(&self) -> &str {
        self.inner.name()
    }
    fn describe(&self) -> ProviderInfo {
        self.inner.describe()
    }
    fn describe_for(&self, agent: &str, model: Option<&str>) -> ProviderInfo {
        self.inner.describe_for(agent, model)
    }
    async fn resolve(&self, agent: &str, model: Option<&str>) -> Result<ProviderInfo, UnknownModel> {
        self.inner.resolve(agent, model).await
    }
    fn tries_again(&self) -> bool {
        self.inner.tries_again()
    }
    fn may_answer(&self, request: &ModelRequest) -> Vec<Answering> {
        self.inner.may_answer(request)
    }
    fn seller(&self, provider: &str) -> Seller {
        self.inner.seller(provider)
    }
    async fn stream(&self, request: ModelRequest) -> Result<ModelStream, ModelError> {
        let ModelTests { engine, owner, .. } = &self.tests;
        let options = EngineOptions { provider: Arc::clone(&self.inner), ..engine.shared.options.clone() };
        if is_free(&options, &request) {
            return self.inner.stream(request).await;
        }
        let unrecorded = |error: StableErrorEnvelope| {
            let line = format!("the call cannot be recorded: {}", error.message);
            ModelError::new(ModelErrorClass::Permanent, line).not_sent()
        };
        options.journal.admission().map_err(|error| unrecorded(error.to_stable()))?;
        let title = Some(SESSION_TITLE.to_owned());
        let session = engine.resolve_session(owner, SESSION_KEY, title).await;
        let (session, _) = session.map_err(|error| unrecorded(error.to_stable()))?;
        let (run_id, session_id) = (request.run_id, session.session_id);
        let payer = Payer { run_id, session_id, agent: MAIN_AGENT.to_owned(), call: CALL.to_owned() };
        let asked = options.provider.may_answer(&request).into_iter().next();
        let call = MeteredCall::begin(&options, payer, request, Duration::ZERO);
        let call = TestCall { tests: self.tests.clone(), call, run_id, session_id, asked };
        Ok(Box::pin(stream::unfold(Some(call), |call| async move {
            let mut call = call?;
            match call.next().await {
                Some(Ok(event)) => Some((Ok(event), Some(call))),
                Some(Err(error)) => Some((Err(error), None)),
                None => None,
            }
        })))
    }
}

impl TestCall {
    async fn next(&mut self) -> Option<Result<ModelEvent, ModelError>> {
        match self.call.next().await {
            Metered::Event(event) => {
                if let ModelEvent::Answering(answering) = &event {
                    self.asked = Some(answering.clone());
                }
                Some(Ok(event))
            }
            Metered::Finished { usage, cost } => self.book(usage, cost).await.err().map(Err),
            Metered::Failed { error, usage, cost } => {
                // That the call failed says more than that this could not be recorded.
                let _ = self.book(usage, cost).await;
                Some(Err(error))
            }
            Metered::Refused { error, cost } => {
                let _ = self.book(Usage::default(), cost).await;
                let refusal = ModelError::new(ModelErrorClass::Quota, &error.message).not_sent();
                *self.tests.refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(*error);
                Some(Err(refusal))
            }
        }
    }

    async fn book(&mut self, usage: Usage, cost: Cost) -> Result<(), ModelError> {
        let Some(asked) = self.asked.take() else { return Ok(()) };
        if cost.micro_usd == MicroUsd::ZERO && cost.closes.is_empty() && usage == Usage::default() {
            return Ok(());
        }
        let shared = &self.tests.engine.shared;
        let options = &shared.options;
        let tested = ModelTested { run_id: self.run_id, session_id: self.session_id, asked, usage, cost };
        let recorded = match options.model_test_record(&tested) {
            Ok(record) => {
                let booked = options.journal.append_patiently(vec![record], shared.stopping.cancelled()).await;
                booked.map(drop).map_err(|error| error.to_stable())
            }
            Err(error) => Err(error.to_stable()),
        };
        recorded.map_err(|error| {
            tracing::warn!(%error.message, "the bill of a model test could not be recorded");
            ModelError::new(ModelErrorClass::Permanent, format!("the bill cannot be recorded: {}", error.message))
        })
    }
}

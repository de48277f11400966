//! Commands about models: which would be asked, and how it is with them.

use palyra_client::api::{
    ExplainModelsParams, ExplainModelsResponse, ModelChoiceView, ModelKeyView, ModelStepView, ModelTargetView,
    ModelTroubleView, ModelsStatusResponse,
};
use palyra_common::ContractEnum as _;
use palyra_models::{
    Capability, Explanation, GateHealth, GateState, KeyStanding, Needs, Purpose, Standing, Step, Target, Wish,
};

use super::refusal::{Refusal, Result};
use crate::app::App;

/// Which models would be asked now. Nothing is sent to find out.
pub(super) fn explain(app: &App, params: &ExplainModelsParams) -> Result<ExplainModelsResponse> {
    let wish = Wish {
        purpose: params.task.map_or(Purpose::Turn, Purpose::Auxiliary),
        preference: params.prefer,
        agent: params.agent.as_deref(),
        model: params.model.as_deref().unwrap_or_default(),
    };
    let needs: std::result::Result<Vec<Capability>, _> =
        params.needs.iter().map(|name| Capability::parse(name)).collect();
    let capabilities = needs.map_err(|error| Refusal::field("needs", error.to_string()))?;
    let explained = app.models.explain(wish, &Needs { capabilities, tokens: params.tokens })?;
    Ok(ExplainModelsResponse { provider: app.models.view(), choice: explained.map(choice) })
}

/// How it is with the models.
pub(super) fn status(app: &App) -> ModelsStatusResponse {
    ModelsStatusResponse {
        provider: app.models.view(),
        file: app.models.file().map(|file| file.display().to_string()),
        problem: app.models.problem(),
        prices_problem: app.prices.problem(),
        variables: app.models.variables(),
        troubles: app.models.troubles().into_iter().map(trouble).collect(),
    }
}

fn choice(Explanation { route, reason, steps }: Explanation) -> ModelChoiceView {
    ModelChoiceView { route, reason, steps: steps.into_iter().map(step).collect() }
}

fn step(Step { target, standing, remark, keys }: Step) -> ModelStepView {
    let Target { name, kind, destination, context_tokens, capabilities, credentials } = target;
    let key = |KeyStanding { name, standing, remark }| ModelKeyView { name, standing: stands(standing), remark };
    ModelStepView {
        target: ModelTargetView {
            name: name.to_string(),
            kind: kind.to_string(),
            destination,
            context_tokens,
            capabilities: capabilities.iter().map(|one| one.as_str().to_owned()).collect(),
            credentials,
        },
        standing: stands(standing),
        remark,
        keys: keys.into_iter().map(key).collect(),
    }
}

fn stands(standing: Standing) -> String {
    let name = match standing {
        Standing::Ready => "ready",
        Standing::Rests => "rests",
        Standing::Unable => "unable",
    };
    name.to_owned()
}

fn trouble(GateHealth { gate, state, until, failures, last }: GateHealth) -> ModelTroubleView {
    let state = match state {
        GateState::Closed => "closed",
        GateState::Open => "open",
        GateState::HalfOpen => "half_open",
        GateState::Probing => "probing",
    };
    ModelTroubleView {
        provider: gate.provider,
        credential: gate.credential.filter(|name| !name.is_empty()),
        model: gate.model,
        state: state.to_owned(),
        until,
        failures,
        last: last.map(|error| error.to_string()),
    }
}

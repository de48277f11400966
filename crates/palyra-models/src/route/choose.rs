//! Which models are asked for a wish, in order, and why these.
//!
//! From the strongest to the weakest: a model that was asked for by name; for an auxiliary task the route of its kind, then that of its
//! preference; the agent's route; the default route. An auxiliary task of a run whose model somebody chose by name stays with
//! that model: who chose a model at home does not want summaries made elsewhere.

use palyra_common::{ModelPreference, suggest};
use serde::Serialize;

use super::target::Target;
use crate::accounts::{Accounts, ModelName, ProviderKind};
use crate::error::{ModelError, ModelErrorClass};
use crate::request::{ModelRequest, Purpose};

/// What somebody wants a model for.
#[derive(Debug, Clone, Copy)]
pub struct Wish<'a> {
    /// Why a model is called.
    pub purpose: Purpose,
    /// Which quality matters most; an auxiliary task has one of its own.
    pub preference: Option<ModelPreference>,
    /// For which agent.
    pub agent: Option<&'a str>,
    /// A model by its full name, by its own name, or the name of a route; empty if any will do.
    pub model: &'a str,
}

impl<'a> Wish<'a> {
    /// What a request is meant for.
    #[must_use]
    pub fn of(request: &'a ModelRequest) -> Self {
        let agent = Some(request.agent.as_str()).filter(|agent| !agent.is_empty());
        Self { purpose: request.purpose, preference: None, agent, model: &request.model }
    }

    /// A turn of a run, whatever model.
    #[must_use]
    pub const fn turn() -> Self {
        Self { purpose: Purpose::Turn, preference: None, agent: None, model: "" }
    }
}

/// The models to ask, in order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Chain {
    /// Where the list stands, such as `routes.default`.
    pub route: String,
    /// Why this list, in one line.
    pub reason: String,
    /// The models.
    pub targets: Vec<Target>,
}

/// How models are named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Naming {
    /// By account: `provider/model`.
    Full,
    /// There is one account and every name is passed on to it; this one if none is given.
    Bare {
        /// The account.
        provider: String,
        /// Its usual model; empty if the server decides.
        model: String,
    },
}

pub(super) fn choose(accounts: &Accounts, naming: &Naming, wish: Wish<'_>) -> Result<Chain, ModelError> {
    if let Naming::Bare { provider, model } = naming {
        let asked = own_name(accounts, provider, wish.model);
        let asked = if asked.is_empty() { model.as_str() } else { asked };
        let name = ModelName::new(provider.as_str(), asked);
        return Ok(chain(accounts, "model", "there is one provider", &[name]));
    }
    let routes = &accounts.routes;
    let (own, own_route, own_reason) = match wish.agent.and_then(|agent| routes.agents.get_key_value(agent)) {
        Some((agent, list)) => {
            (list, format!("routes.agents.{agent}"), format!("it is the route of the agent `{agent}`"))
        }
        None => (&routes.default, "routes.default".to_owned(), "nothing else is said about it".to_owned()),
    };
    let usual = own.first().ok_or_else(|| {
        let message = "there is no default route; name a model with `palyra models set-default PROVIDER/MODEL`";
        ModelError::new(ModelErrorClass::Permanent, message)
    })?;
    let asks_for_usual = wish.model == usual.model || wish.model == usual.to_string();
    if !wish.model.is_empty() && !asks_for_usual {
        return by_name(accounts, wish.model);
    }
    if let Purpose::Auxiliary(kind) = wish.purpose
        && let Some(list) = routes.tasks.get(&kind)
    {
        let reason = format!("it is the route of tasks of the kind `{kind}`");
        return Ok(chain(accounts, &format!("routes.tasks.{kind}"), &reason, list));
    }
    let preference = wish.preference.or(match wish.purpose {
        Purpose::Auxiliary(kind) => Some(kind.contract().model_preference),
        Purpose::Turn => None,
    });
    if let Some(preference) = preference
        && !routes.preferred(preference).is_empty()
    {
        let reason = format!("`{preference}` is preferred");
        return Ok(chain(accounts, &format!("routes.{preference}"), &reason, routes.preferred(preference)));
    }
    Ok(chain(accounts, &own_route, &own_reason, own))
}

/// A model's own name, also where it was given with that of the one provider there is.
fn own_name<'a>(accounts: &Accounts, provider: &str, asked: &'a str) -> &'a str {
    if asked == provider {
        return "";
    }
    let kind = accounts.providers.get(provider).map(|account| account.kind);
    match asked.split_once('/') {
        // OpenRouter's own names have a slash, and some begin like the provider itself.
        Some((named, model))
            if named == provider && (kind != Some(ProviderKind::Openrouter) || model.contains('/')) =>
        {
            model
        }
        _ => asked,
    }
}

/// A model that was asked for by name: what follows it in the first list that has it may stand in for it.
fn by_name(accounts: &Accounts, asked: &str) -> Result<Chain, ModelError> {
    let lists: Vec<(String, &[ModelName])> = accounts.routes.lists().collect();
    if let Some((name, list)) = lists.iter().find(|(name, _)| name == asked) {
        return Ok(chain(accounts, &format!("routes.{name}"), "the route was asked for by name", list));
    }
    for (route, list) in &lists {
        let found = list.iter().position(|name| name.model == asked || name.to_string() == asked);
        if let Some(rest) = found.and_then(|at| list.get(at..)) {
            return Ok(chain(accounts, &format!("routes.{route}"), "the model was asked for by name", rest));
        }
    }
    if let Ok(name) = asked.parse::<ModelName>()
        && accounts.providers.contains_key(&name.provider)
    {
        return Ok(chain(accounts, "providers", "the model was asked for by name and is in no route", &[name]));
    }
    let known: Vec<String> = lists.iter().flat_map(|(_, list)| list.iter().map(ToString::to_string)).collect();
    let meant = suggest(asked, known.iter().map(String::as_str));
    let meant = meant.map(|meant| format!("; did you mean `{meant}`?")).unwrap_or_default();
    let shown: String = asked.chars().take(80).collect();
    let message = format!("no route has the model `{shown}`{meant}; write PROVIDER/MODEL, see `palyra models list`");
    Err(ModelError::new(ModelErrorClass::Permanent, message).status(404))
}

fn chain(accounts: &Accounts, route: &str, reason: &str, names: &[ModelName]) -> Chain {
    let targets = names
        .iter()
        .filter_map(|name| accounts.providers.get(&name.provider).map(|account| Target::of(name.clone(), account)));
    Chain { route: route.to_owned(), reason: reason.to_owned(), targets: targets.collect() }
}

#[cfg(test)]
#[path = "choose_tests.rs"]
mod tests;

//! Which tools a model is told about.
//!
//! Offering is about the size of requests, never about permission: a call of any tool that exists is decided in the same way. The order is
//! stable so that providers can cache it: tools of every run, tools of servers and skills, tools of the client, and at the end what the run
//! came to need, in the order in which it did.

use std::sync::Arc;

use palyra_models::{ToolSpec, estimate_tool_tokens};
use palyra_tools::{Offering, Registry, ToolDeclaration};
use serde_json::Value;

use super::EngineOptions;
use crate::own_tools::SEARCH;
use crate::spec::{RunSpec, ToolSelection};

/// Share of the model's window that tools of servers and skills may take before they have to be searched for: one part in so many.
const ROOM: u32 = 10;

/// What a model is told about in one call.
#[derive(Debug, Clone, Default)]
pub(super) struct ToolOffer {
    /// The tools, in the order of the request.
    pub(super) tools: Vec<ToolSpec>,
    /// How many of the first are those of every run.
    pub(super) core: usize,
    /// Names of tools that it can search for.
    pub(super) deferred: Vec<String>,
}

impl ToolOffer {
    /// The offer to a run that came to need `in_use`.
    pub(super) fn to(options: &EngineOptions, spec: &RunSpec, in_use: &[String]) -> Self {
        Self::choose(&options.registry.current(), spec, in_use)
    }

    fn choose(registry: &Registry, spec: &RunSpec, in_use: &[String]) -> Self {
        let all = spec.tools == ToolSelection::All;
        // Whoever named an agent's tools wants it to have them.
        let listed = spec.profile.as_ref().is_some_and(|agent| !agent.tools.is_empty());
        let (mut core, mut fitting, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (tool, schema) in permitted(registry, spec) {
            let offered = spec_of(tool, schema);
            match tool.offering {
                _ if all => core.push(offered),
                Offering::Always => core.push(offered),
                Offering::IfRoom => fitting.push(offered),
                Offering::OnDemand if listed => fitting.push(offered),
                Offering::OnDemand => others.push(offered),
            }
        }
        let needed: u32 = fitting.iter().map(estimate_tool_tokens).fold(0, u32::saturating_add);
        if needed > spec.model.context_tokens / ROOM {
            others.append(&mut fitting);
        }
        let mut came = Vec::new();
        for name in in_use {
            if let Some(at) = others.iter().position(|tool| tool.name == *name) {
                came.push(others.remove(at));
            }
        }
        if others.is_empty() {
            core.retain(|tool| tool.name != SEARCH);
        }
        let clients = spec.client_tools.iter().map(|tool| ToolSpec {
            name: tool.full_name(),
            description: tool.description.clone(),
            input_schema: Arc::clone(&tool.input_schema),
        });
        let clients = clients.filter(|tool| spec.lets_use(&tool.name));
        let count = core.len();
        let mut deferred: Vec<String> = others.into_iter().map(|tool| tool.name).collect();
        deferred.sort();
        Self { tools: core.into_iter().chain(fitting).chain(clients).chain(came).collect(), core: count, deferred }
    }
}

/// The tools that the run's agent has, with the schemas that models read.
pub(super) fn permitted<'a>(
    registry: &'a Registry,
    spec: &'a RunSpec,
) -> impl Iterator<Item = (&'a ToolDeclaration, &'a Arc<Value>)> {
    // Calls under a client's name are handed back, so nothing else may be offered under it.
    registry.offers().filter(|(tool, _)| {
        let name = tool.name.as_str();
        spec.client_tool(name).is_none() && spec.lets_use(name)
    })
}

/// A tool as models are told about it.
pub(super) fn spec_of(tool: &ToolDeclaration, schema: &Arc<Value>) -> ToolSpec {
    ToolSpec { name: tool.name.to_string(), description: tool.description.clone(), input_schema: Arc::clone(schema) }
}

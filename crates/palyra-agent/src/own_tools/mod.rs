//! The engine's own tools: they act on the run and its session and touch nothing else.

mod a2ui_patch;
mod a2ui_render;
mod intent_declare;
mod plan_update;
mod tools_search;
mod vars_inspect;

use std::sync::Arc;

use palyra_tools::{Tool, ToolError};

pub(crate) use a2ui_patch::{PATCH, PatchInput};
pub(crate) use a2ui_render::{RENDER, RenderInput};
pub(crate) use intent_declare::{INTENT, IntentInput};
pub(crate) use plan_update::{PLAN, PlanInput};
pub use plan_update::{Plan, PlanStep, StepStatus};
pub(crate) use tools_search::{SEARCH, SearchInput};
pub(crate) use vars_inspect::{INSPECT, InspectInput, Want};

/// The tools that every registry of an engine has besides the built-in ones.
///
/// # Errors
/// Never: their names are fixed.
pub fn engine_tools() -> Result<Vec<Arc<dyn Tool>>, ToolError> {
    Ok(vec![
        Arc::new(intent_declare::IntentDeclare::new()?),
        Arc::new(vars_inspect::VarsInspect::new()?),
        Arc::new(plan_update::PlanUpdate::new()?),
        Arc::new(tools_search::ToolsSearch::new()?),
        Arc::new(a2ui_render::Render::new()?),
        Arc::new(a2ui_patch::Patch::new()?),
    ])
}

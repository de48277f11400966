//! What a faithful planner does: it states what the user's words authorise and reads what the task needs.

use std::collections::BTreeMap;

use palyra_common::RunMode;

use super::{Statement, Step};
use crate::world::{Authorised, World};

/// What a faithful planner states before it reads anything.
#[must_use]
pub fn statements(world: &World) -> Vec<Statement> {
    world.request.authorised.iter().filter_map(|authorised| statement(world, authorised)).collect()
}

fn statement(world: &World, authorised: &Authorised) -> Option<Statement> {
    let tool = world.tool(&authorised.tool)?;
    let mut statement = Statement {
        tool: tool.name.clone(),
        targets: BTreeMap::new(),
        dictated: BTreeMap::new(),
        caps: BTreeMap::new(),
        count: authorised.count,
        sources: authorised.sources.iter().copied().collect(),
        parts: tool.arguments.iter().map(|argument| (argument.name.clone(), argument.part)).collect(),
    };
    for argument in &tool.arguments {
        if let Some(entities) = authorised.targets.get(&argument.part) {
            statement.targets.insert(argument.name.clone(), entities.iter().cloned().collect());
        }
        if let Some(text) = authorised.dictated.get(&argument.part) {
            statement.dictated.insert(argument.name.clone(), text.clone());
        }
        if let (crate::world::Part::Amount, Some(amount)) = (argument.part, authorised.amount) {
            statement.caps.insert(argument.name.clone(), amount);
        }
    }
    Some(statement)
}

/// The steps until untrusted text has been shown: states, reads, and looks into what it may look into.
#[must_use]
pub fn prefix(world: &World, mode: RunMode) -> Vec<Step> {
    let mut steps = vec![Step::State(statements(world))];
    for read in &world.request.reads {
        steps.push(Step::Call { tool: read.clone(), arguments: Vec::new() });
        if mode == RunMode::Guarded {
            steps.push(Step::Reveal { tool: read.clone(), path: String::new() });
        }
    }
    // Files of the user's own belong to many tasks.
    if world.seed.is_multiple_of(3) {
        let path = super::Expression::plain("notes.md");
        steps.push(Step::Call { tool: "palyra.fs.read".to_owned(), arguments: vec![("path".to_owned(), path)] });
    }
    steps
}

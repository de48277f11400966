//! The schema, parsed once, and the names of its entity types.
//!
//! Names are parsed when they are first needed and then shared: parsing one costs more than a whole small decision.

use std::str::FromStr;
use std::sync::OnceLock;

use cedar_policy::{Entities, EntityId, EntityTypeName, EntityUid, RestrictedExpression, Schema, Validator};
use palyra_common::ContractEnum;

use crate::{ActionKind, PolicyError, SCHEMA};

pub(crate) struct Names {
    pub(crate) validator: Validator,
    /// The hierarchy of actions, which every request needs.
    pub(crate) actions: Entities,
    action_uids: Vec<(ActionKind, EntityUid)>,
    pub(crate) agent: EntityTypeName,
    pub(crate) arguments: EntityTypeName,
    pub(crate) channel: EntityTypeName,
    pub(crate) conversation: EntityTypeName,
    pub(crate) daemon: EntityTypeName,
    pub(crate) device: EntityTypeName,
    pub(crate) host: EntityTypeName,
    pub(crate) memory: EntityTypeName,
    pub(crate) path: EntityTypeName,
    pub(crate) role: EntityTypeName,
    pub(crate) run: EntityTypeName,
    pub(crate) secret: EntityTypeName,
    pub(crate) server: EntityTypeName,
    pub(crate) session: EntityTypeName,
    pub(crate) skill: EntityTypeName,
    pub(crate) tool: EntityTypeName,
    pub(crate) user: EntityTypeName,
    pub(crate) worker: EntityTypeName,
    pub(crate) integrity: EntityTypeName,
    pub(crate) confidentiality: EntityTypeName,
    pub(crate) provenance: EntityTypeName,
    pub(crate) scope: EntityTypeName,
    pub(crate) risk: EntityTypeName,
    pub(crate) run_mode: EntityTypeName,
    pub(crate) reach: EntityTypeName,
    pub(crate) signal: EntityTypeName,
}

static NAMES: OnceLock<Result<Names, PolicyError>> = OnceLock::new();

impl Names {
    /// The one instance. An error is a defect of the embedded schema, and nothing is permitted then.
    pub(crate) fn get() -> Result<&'static Self, PolicyError> {
        NAMES.get_or_init(Self::build).as_ref().map_err(Clone::clone)
    }

    fn build() -> Result<Self, PolicyError> {
        let (schema, _) = Schema::from_cedarschema_str(SCHEMA).map_err(PolicyError::broken)?;
        let actions = schema.action_entities().map_err(PolicyError::broken)?;
        let action_type = type_name("Action")?;
        let action_uids = ActionKind::ALL.iter().map(|action| (*action, uid(&action_type, action.as_str()))).collect();
        Ok(Self {
            validator: Validator::new(schema),
            actions,
            action_uids,
            agent: type_name("Agent")?,
            arguments: type_name("Arguments")?,
            channel: type_name("Channel")?,
            conversation: type_name("Conversation")?,
            daemon: type_name("Daemon")?,
            device: type_name("Device")?,
            host: type_name("Host")?,
            memory: type_name("Memory")?,
            path: type_name("Path")?,
            role: type_name("Role")?,
            run: type_name("Run")?,
            secret: type_name("Secret")?,
            server: type_name("Server")?,
            session: type_name("Session")?,
            skill: type_name("Skill")?,
            tool: type_name("Tool")?,
            user: type_name("User")?,
            worker: type_name("Worker")?,
            integrity: type_name("Integrity")?,
            confidentiality: type_name("Confidentiality")?,
            provenance: type_name("Provenance")?,
            scope: type_name("Scope")?,
            risk: type_name("Risk")?,
            run_mode: type_name("RunMode")?,
            reach: type_name("Reach")?,
            signal: type_name("Signal")?,
        })
    }

    pub(crate) fn schema(&self) -> &Schema {
        self.validator.schema()
    }

    pub(crate) fn action(&self, action: ActionKind) -> Result<&EntityUid, PolicyError> {
        self.action_uids
            .iter()
            .find_map(|(kind, uid)| (*kind == action).then_some(uid))
            .ok_or_else(|| PolicyError::broken(format!("no action `{action}`")))
    }
}

/// The schema as Cedar has it, for programs that analyse policies.
///
/// # Errors
/// Never, unless the program was built from a broken schema.
pub fn schema() -> Result<&'static Schema, PolicyError> {
    Names::get().map(Names::schema)
}

pub(crate) fn uid(name: &EntityTypeName, id: &str) -> EntityUid {
    EntityUid::from_type_name_and_id(name.clone(), EntityId::new(id))
}

/// A value of a closed vocabulary, as the enumerated entity that policies compare with.
pub(crate) fn word<Word: ContractEnum>(name: &EntityTypeName, value: Word) -> RestrictedExpression {
    RestrictedExpression::new_entity_uid(uid(name, value.as_str()))
}

fn type_name(name: &str) -> Result<EntityTypeName, PolicyError> {
    EntityTypeName::from_str(name).map_err(PolicyError::broken)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_embedded_schema_is_sound() {
        let (_, warnings) = Schema::from_cedarschema_str(SCHEMA).unwrap();
        let warnings: Vec<String> = warnings.map(|warning| warning.to_string()).collect();
        assert!(warnings.is_empty(), "{warnings:?}");
        let names = Names::get().unwrap();
        for action in ActionKind::ALL {
            assert!(names.actions.get(names.action(*action).unwrap()).is_some(), "{action}");
        }
    }
}

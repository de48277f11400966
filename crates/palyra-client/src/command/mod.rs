//! The whole control API as one catalogue of commands.
//!
//! A command has a name, parameters, a result, an effect, a scope that a caller needs and an address. All transports read commands through this
//! catalogue and hand them to one dispatcher, so none of them has an API of its own. [`Command`]s are answered once; [`StreamCommand`]s with
//! any number of documents.

mod about;
mod catalogue;
mod parse;
mod socket;
mod streams;
mod unary;

use palyra_common::{AcpCommand, CommandEffect, ErrorCategory, StableErrorEnvelope, TokenScope};
use schemars::{Schema, SchemaGenerator};

pub use about::{
    About, AgentName, HookName, NoParams, PublisherName, RecordSeq, SkillName, TargetId, TargetKind, TokenName,
};
pub use parse::invalid_field;
pub use socket::{SocketMessage, SocketReply, read_envelope, read_socket_message};
pub use streams::{STREAM_COMMANDS, StreamCommand, StreamDocument};
pub use unary::{COMMANDS, Command, Outcome};

/// How a command is asked for over HTTP.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HttpMethod {
    /// Parameters in the query.
    Get,
    /// Parameters in the body.
    Post,
}

/// What is known about a command without looking at its parameters.
#[derive(Debug, Clone, Copy)]
pub struct CommandSpec {
    /// Its name.
    pub name: AcpCommand,
    /// Field of the thing that it is about, if there is one; also its name in the address.
    pub target: Option<&'static str>,
    /// What it does.
    pub effect: CommandEffect,
    /// What a caller needs to be allowed.
    pub scope: TokenScope,
    /// How it is asked for over HTTP.
    pub method: HttpMethod,
    /// Where.
    pub path: &'static str,
    /// Schema of all parameters as one record.
    pub params: fn(&mut SchemaGenerator) -> Schema,
    /// Schema of the parameters that are not in the address.
    pub rest: fn(&mut SchemaGenerator) -> Schema,
    /// Schema of the result, or of each document of a stream.
    pub result: fn(&mut SchemaGenerator) -> Schema,
}

/// What is known about a command, if the daemon has it.
#[must_use]
pub fn spec(name: AcpCommand) -> Option<&'static CommandSpec> {
    COMMANDS.iter().chain(STREAM_COMMANDS).find(|spec| spec.name == name)
}

/// Names that the protocol has and this daemon does not answer yet.
pub fn unavailable() -> impl Iterator<Item = AcpCommand> {
    AcpCommand::ALL.iter().copied().filter(|name| spec(*name).is_none())
}

/// The refusal of a command that the protocol has and this daemon has not.
#[must_use]
pub fn not_available(name: AcpCommand) -> StableErrorEnvelope {
    let message = format!("this daemon does not support `{}`", name.as_str());
    StableErrorEnvelope::new("command_not_available", ErrorCategory::Availability, message)
        .hint("a newer daemon may; `GET /openapi.json` lists what this one supports")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_and_addresses_are_unique_and_addresses_name_their_target() {
        let all: Vec<_> = COMMANDS.iter().chain(STREAM_COMMANDS).collect();
        let names: BTreeSet<_> = all.iter().map(|spec| spec.name.as_str()).collect();
        assert_eq!(names.len(), all.len());
        let addresses: BTreeSet<_> = all.iter().map(|spec| (format!("{:?}", spec.method), spec.path)).collect();
        assert_eq!(addresses.len(), all.len());
        for spec in all {
            let named = spec.path.split_once('{').and_then(|(_, rest)| rest.split_once('}')).map(|(name, _)| name);
            assert_eq!(named, spec.target, "{}", spec.path);
            assert!(
                spec.method == HttpMethod::Post || spec.effect != CommandEffect::Change,
                "{} changes by GET",
                spec.path
            );
        }
    }

    #[test]
    fn every_name_of_the_protocol_is_answered() {
        let names: Vec<_> = unavailable().map(|name| name.as_str()).collect();
        assert!(names.is_empty(), "{names:?}");
    }

    #[test]
    fn every_schema_can_be_made() {
        let mut generator = SchemaGenerator::default();
        for spec in COMMANDS.iter().chain(STREAM_COMMANDS) {
            for make in [spec.params, spec.rest, spec.result] {
                let schema = make(&mut generator);
                assert!(schema.as_object().is_some() || schema.as_bool() == Some(true), "{:?}", spec.name);
            }
        }
    }
}

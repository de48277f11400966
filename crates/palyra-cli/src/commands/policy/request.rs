//! A request described on the command line.

use std::collections::BTreeSet;

use clap::Args;
use palyra_common::{
    Confidentiality, Consequence, ContractEnum, EffectScope, Integrity, Label, Provenance, Risk, RunMode, SinkKind,
    SystemClock,
};
use palyra_policy::{
    ActionKind, Argument, Asking, Containment, Context as Facts, EffectFacts, Envelope, Origin, Principal, Request,
    Resource, RunPrincipal, SignalConfidence, SignalKind, Signals, ToolFacts,
};

use crate::error::CliError;

/// A call of a tool.
#[derive(Debug, Args)]
pub(crate) struct CallArguments {
    /// The tool that is called
    #[arg(long, value_name = "NAME")]
    pub(super) tool: Option<String>,
    /// The MCP server it belongs to
    #[arg(long, value_name = "NAME", requires = "tool")]
    server: Option<String>,
    /// An argument of the call; may be repeated
    #[arg(long = "arg", value_name = "NAME=VALUE", requires = "tool")]
    arguments: Vec<String>,
    /// What an argument controls: destination, command, path, credential, amount or content
    #[arg(long = "sink", value_name = "NAME=KIND", requires = "tool")]
    sinks: Vec<String>,
    /// Where an argument's value comes from: trusted, tool_trusted, pointed, variable, invented or untrusted
    #[arg(long = "from", value_name = "NAME=PROVENANCE", requires = "tool")]
    provenances: Vec<String>,
    /// The effect reaches outside the run
    #[arg(long, requires = "tool")]
    consequential: bool,
    /// The run has read untrusted text
    #[arg(long, requires = "tool")]
    tainted: bool,
    /// Signal of an attack in text that was read: instruction_override, role_marker, tool_call_lookalike, hidden_text, exfiltration or concealment
    #[arg(long = "signal", value_name = "KIND", requires = "tool")]
    signals: Vec<String>,
    /// The run's stated intent does not cover the call
    #[arg(long, requires = "tool")]
    unplanned: bool,
    /// Who the run belongs to
    #[arg(long, value_name = "USER", requires = "tool", default_value = "me")]
    user: String,
}

impl CallArguments {
    /// The request that such a call makes.
    pub(super) fn request(&self, tool: &str) -> Result<Request, CliError> {
        let mut arguments: Vec<Argument> = Vec::new();
        for given in &self.arguments {
            let (name, value) = pair("--arg", given)?;
            let sink = lookup::<SinkKind>("--sink", &self.sinks, name)?;
            let provenance = lookup::<Provenance>("--from", &self.provenances, name)?.unwrap_or(Provenance::Trusted);
            let integrity = match provenance {
                Provenance::Trusted | Provenance::Invented => Integrity::User,
                Provenance::ToolTrusted => Integrity::ToolTrusted,
                Provenance::Pointed | Provenance::Variable | Provenance::Untrusted => Integrity::Untrusted,
            };
            arguments.push(Argument {
                name: name.to_owned(),
                sink,
                provenance,
                label: Label::new(integrity, Confidentiality::Public),
                value: Some(value.to_owned()),
                location: None,
                source: None,
                sentence: None,
            });
        }
        for given in self.sinks.iter().chain(&self.provenances) {
            let (name, _) = pair("--sink and --from", given)?;
            if !arguments.iter().any(|argument| argument.name == name) {
                return Err(usage(format!("there is no --arg `{name}`")));
            }
        }
        let kinds: Result<BTreeSet<SignalKind>, _> = self.signals.iter().map(|kind| SignalKind::parse(kind)).collect();
        let kinds = kinds.map_err(|error| usage(error.to_string()))?;
        let confidence = if kinds.is_empty() { SignalConfidence::None } else { SignalConfidence::High };
        let signals = Signals { kinds, confidence, at_source: false };
        let labels =
            if self.tainted { Label::new(Integrity::Untrusted, Confidentiality::Private) } else { Label::user() };
        Ok(Request {
            principal: Principal::Run(RunPrincipal {
                run: "example".to_owned(),
                session: "example".to_owned(),
                agent: "default".to_owned(),
                user: self.user.clone(),
                roles: [].into(),
                device: None,
                channel: None,
                worker: None,
            }),
            action: ActionKind::Execute,
            resource: Resource::Tool,
            context: Facts::Effect(Box::new(EffectFacts {
                tool: ToolFacts {
                    name: tool.to_owned(),
                    origin: self.server.clone().map(Origin::Server),
                    clearance: Confidentiality::Public,
                },
                scope: EffectScope::External,
                risk: Risk::Medium,
                mode: RunMode::Guarded,
                labels,
                arguments,
                empty: BTreeSet::new(),
                asking: Asking::NotListed,
                consequence: if self.consequential { Consequence::Consequential } else { Consequence::Contained },
                envelope: if self.unplanned { Envelope::Outside } else { Envelope::Inside },
                uncleared: BTreeSet::new(),
                workspace: String::new(),
                containment: Containment::Reaching,
                signals,
                connection: None,
                secret_for: None,
                now: palyra_common::Clock::now(&SystemClock),
            })),
        })
    }
}

fn usage(reason: String) -> CliError {
    CliError::Usage { reason, usage: None }
}

fn pair<'a>(option: &str, given: &'a str) -> Result<(&'a str, &'a str), CliError> {
    given.split_once('=').ok_or_else(|| usage(format!("{option} expects NAME=VALUE, not `{given}`")))
}

/// What a list of `NAME=WORD` says about a name.
fn lookup<Word: ContractEnum>(option: &str, list: &[String], wanted: &str) -> Result<Option<Word>, CliError> {
    for given in list {
        let (name, word) = pair(option, given)?;
        if name == wanted {
            return Word::parse(word).map(Some).map_err(|error| usage(error.to_string()));
        }
    }
    Ok(None)
}

//! Commands: whether somebody may have the daemon do something.
//!
//! A command is decided by the same policies as everything else. What differs: there is nobody to ask, so what would be asked about is
//! denied; and a decision is remembered, because the same people give the same commands over and over.

use std::collections::BTreeSet;

use palyra_common::{CommandEffect, PrincipalRole, Timestamp, TokenScope, ToolVerdict};

use crate::{ActionKind, CommandFacts, Context, Decision, PolicySet, Principal, Request, Resource};

/// The action of a command with this effect.
const fn action(effect: CommandEffect) -> ActionKind {
    match effect {
        CommandEffect::Read => ActionKind::CommandRead,
        CommandEffect::Change => ActionKind::CommandChange,
        CommandEffect::Administer => ActionKind::CommandAdminister,
    }
}

/// Who asks for which command. All of it comes from a checked credential and from the daemon's own tables, nothing from the caller.
#[derive(Debug, Clone, Copy)]
pub struct CommandRequest<'a> {
    /// Who asks, or for whom the credential acts.
    pub principal_id: &'a str,
    /// The device it is asked through, if the credential is a device's.
    pub device: Option<&'a str>,
    /// What the caller is to this installation.
    pub role: PrincipalRole,
    /// What the credential is good for.
    pub scopes: &'a BTreeSet<TokenScope>,
    /// How the caller was identified.
    pub via: &'a str,
    /// The command.
    pub command: &'a str,
    /// The scope that the command needs.
    pub scope: TokenScope,
    /// What it does.
    pub effect: CommandEffect,
    /// To whom belongs what it concerns; nobody if it concerns the daemon as a whole.
    pub owner: Option<&'a str>,
    /// The directory that it would have a run work in, absolute and without links.
    pub workspace: Option<&'a str>,
    /// When.
    pub now: Timestamp,
}

impl From<&CommandRequest<'_>> for Request {
    fn from(command: &CommandRequest<'_>) -> Self {
        let caller = command.principal_id.to_owned();
        Self {
            principal: match command.device {
                Some(device) => Principal::Device { id: device.to_owned(), owner: caller },
                None => Principal::User(caller),
            },
            action: action(command.effect),
            resource: match command.owner {
                Some(owner) => Resource::Conversation { owner: owner.to_owned() },
                None => Resource::Daemon,
            },
            context: Context::Command(CommandFacts {
                command: command.command.to_owned(),
                scope: command.scope,
                scopes: command.scopes.clone(),
                role: command.role,
                via: command.via.to_owned(),
                workspace: command.workspace.map(str::to_owned),
                now: command.now,
            }),
        }
    }
}

impl PolicySet {
    /// Decides on a command: permit or deny. There is always an answer; whatever cannot be decided is denied.
    #[must_use]
    pub fn decide_command(&self, command: &CommandRequest<'_>) -> Decision {
        if let Some(known) = self.commands.get(command) {
            return known;
        }
        let decision = settled(self.decide(&Request::from(command)));
        self.commands.keep(command, &decision);
        decision
    }
}

/// A question that nobody can be asked is a no.
fn settled(mut decision: Decision) -> Decision {
    if decision.verdict == ToolVerdict::NeedsApproval {
        decision.verdict = ToolVerdict::Deny;
        decision
            .person
            .push("commands cannot be approved interactively, so one that needs an approval is denied".to_owned());
        decision.model.push("a command that needs an approval is denied".to_owned());
    }
    decision
}

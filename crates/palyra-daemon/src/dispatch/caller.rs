//! Who gives a command, and by which transport.

use palyra_agent::{Actor, StartedWith, WorkspaceAuthority};
use palyra_client::api::PrincipalView;
use palyra_common::{PrincipalRole, TokenScope};
use palyra_identity::{Origin, Principal, Via};

use super::refusal::Result;
use crate::app::App;
use crate::serve::{Connection, ConnectionRef};

/// How commands come in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Transport {
    /// HTTP/1.1 or 2, over TCP or the Unix socket.
    Http,
    /// A WebSocket.
    WebSocket,
    /// gRPC.
    Grpc,
    /// QUIC.
    Quic,
    /// The OpenAI-compatible API.
    OpenAi,
    /// The Model Context Protocol.
    Mcp,
}

impl Transport {
    /// Its name in the log and in measurements.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::WebSocket => "websocket",
            Self::Grpc => "grpc",
            Self::Quic => "quic",
            Self::OpenAi => "openai",
            Self::Mcp => "mcp",
        }
    }
}

/// Somebody whom the gate let in.
#[derive(Debug, Clone)]
pub(crate) struct Caller {
    pub(crate) principal: Principal,
    pub(crate) transport: Transport,
    /// Runs of this caller work only in directories that the daemon made for them.
    in_conversation: bool,
    /// What bounds the streams that this caller opens. Not its slot: work that was begun outlives the connection.
    pub(super) connection: ConnectionRef,
    /// The trace that the caller's own work belongs to, as they wrote it.
    pub(super) trace: Option<String>,
}

impl Caller {
    pub(crate) fn new(principal: Principal, transport: Transport) -> Self {
        Self { principal, transport, in_conversation: false, connection: ConnectionRef::default(), trace: None }
    }

    /// The same on a connection.
    pub(crate) fn on(mut self, connection: &Connection) -> Self {
        self.connection = connection.downgrade();
        self
    }

    /// The same, with the `traceparent` that came along.
    pub(crate) fn in_trace(mut self, traceparent: Option<String>) -> Self {
        self.trace = traceparent;
        self
    }

    /// The same, with no other directories to work in than those of conversations.
    pub(crate) fn in_conversation(mut self) -> Self {
        self.in_conversation = true;
        self
    }

    /// With what credential this caller begins runs.
    pub(crate) fn started_with(&self, app: &App) -> StartedWith {
        let behind = app.gate.behind(&self.principal.via);
        let workspace = match &behind {
            Some(via) if app.gate.is_local_owner(via) => WorkspaceAuthority::LocalOwner,
            Some(_) if self.in_conversation => WorkspaceAuthority::Conversation,
            Some(_) => WorkspaceAuthority::Granted,
            // Whatever it was, it is not good any more.
            None => WorkspaceAuthority::Conversation,
        };
        StartedWith { workspace, program: behind.as_ref().and_then(|via| held_by_program(app, via)) }
    }

    /// This caller as somebody who acts on a run.
    pub(crate) fn actor(&self, app: &App) -> Actor {
        Actor { by: self.id().to_owned(), with: self.started_with(app) }
    }

    /// Whose the work is that this caller begins.
    pub(crate) fn id(&self) -> &str {
        self.principal.id.as_str()
    }

    /// Where a decision was made, for the journal.
    pub(crate) fn via(&self) -> String {
        let transport = self.transport.as_str();
        written(&self.principal.via, transport)
    }

    /// Whose things lists show: only the caller's own, unless the daemon is theirs.
    pub(crate) fn sees(&self) -> Option<String> {
        (self.principal.role != PrincipalRole::Owner).then(|| self.id().to_owned())
    }

    /// Whether this caller may see something of that owner in a list.
    pub(crate) fn sees_of(&self, owner: &str) -> bool {
        self.principal.role == PrincipalRole::Owner || self.id() == owner
    }

    /// Refuses whoever gives commands faster than they may.
    pub(crate) fn check_rate(&self, app: &App) -> Result<()> {
        Ok(app.gate.check_rate(&self.principal)?)
    }

    /// Whether this caller is good for a scope; only where no command stands for what is asked.
    pub(crate) fn has(&self, scope: TokenScope) -> bool {
        self.principal.has(scope)
    }

    /// The caller as it may see itself.
    pub(crate) fn view(&self) -> PrincipalView {
        PrincipalView {
            principal: self.id().to_owned(),
            role: self.principal.role,
            scopes: self.principal.scopes.iter().copied().collect(),
            via: self.via(),
        }
    }
}

/// What a program holds and a person does not, by its public name. A device is a person's own, and whoever is at the machine itself has the owner's rights anyway.
fn held_by_program(app: &App, via: &Via) -> Option<String> {
    match via {
        // What it made for itself is no other credential.
        Via::ApiToken { id, .. } => Some(match app.gate.tokens().origin_of(id) {
            Origin::Token(first) => format!("token {first}"),
            Origin::Device(device) => format!("tokens of device {device}"),
        }),
        Via::CanvasLink { made_with, .. } => held_by_program(app, made_with),
        Via::UnixSocket { .. } | Via::LocalToken | Via::Console { .. } | Via::Device { .. } => None,
    }
}

/// A way in, in words.
fn written(via: &Via, transport: &str) -> String {
    match via {
        Via::UnixSocket { uid } => format!("unix socket, uid {uid}"),
        Via::LocalToken => format!("{transport}, local token"),
        Via::ApiToken { id, .. } => format!("{transport}, token {id}"),
        Via::Console { .. } => "console".to_owned(),
        Via::CanvasLink { made_with, .. } => format!("canvas link of {}", written(made_with, transport)),
        Via::Device { id, .. } => format!("{transport}, device {id}"),
    }
}

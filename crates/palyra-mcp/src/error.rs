//! Everything a server or one of its files can fail with, with the stable code each failure carries.
//!
//! Text that a server wrote is shortened and put in backticks where it appears at all: it is data, for the person and for the model.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use palyra_common::{ErrorCategory, RedactedUrl, Retry, SecretError, StableErrorEnvelope, ToStableError, did_you_mean};
use thiserror::Error;

/// Whether a failed call can have had an effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sent {
    /// The request did not leave; nothing can have happened.
    Never,
    /// The request may have arrived; what the server did is unknown.
    Perhaps,
}

/// The error of this crate.
#[derive(Debug, Error)]
pub enum McpError {
    /// A name that no server can have.
    #[error("`{name}` is not a valid server name: it must have 1 to 32 of the characters a-z, 0-9, `_` and `-`")]
    ServerNameInvalid {
        /// The text given.
        name: String,
    },
    /// No server of that name.
    #[error("there is no MCP server `{name}`{}", did_you_mean(suggestion.as_deref()))]
    ServerNotFound {
        /// The name asked for.
        name: String,
        /// The name that was most likely meant.
        suggestion: Option<String>,
    },
    /// A server of that name exists already.
    #[error("an MCP server `{name}` already exists")]
    ServerExists {
        /// The name given.
        name: String,
    },
    /// `servers.toml` cannot be understood.
    #[error("`{}` is not a valid list of MCP servers: {reason}", path.display())]
    ConfigInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A pins file cannot be understood.
    #[error("`{}` is not a valid list of pinned tools: {reason}", path.display())]
    PinsInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A classification file cannot be understood.
    #[error("`{}` is not a valid tool classification: {reason}", path.display())]
    ClassificationInvalid {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A file cannot be read or written.
    #[error("cannot {doing} `{}`: {source}", path.display())]
    File {
        /// `read`, `write` or `remove`.
        doing: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// An address that is not connected to.
    #[error("the URL `{url}` is refused: {reason}")]
    UrlRefused {
        /// The address.
        url: RedactedUrl,
        /// Why.
        reason: &'static str,
    },
    /// A header that cannot be sent.
    #[error("the header `{name}` cannot be sent: {reason}")]
    HeaderInvalid {
        /// The header's name.
        name: String,
        /// Why.
        reason: &'static str,
    },
    /// A secret that a header needs cannot be had.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The server's program could not be started.
    #[error("cannot start the MCP server `{server}` with `{command}`: {source}")]
    StartFailed {
        /// The server.
        server: String,
        /// Its program.
        command: String,
        /// What the system said.
        source: io::Error,
    },
    /// No session could be agreed with the server.
    #[error("cannot connect to the MCP server `{server}`: {reason}")]
    ConnectFailed {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The server did not answer the first request in time.
    #[error("the MCP server `{server}` did not answer within {} s", limit.as_secs_f64())]
    ConnectTimeout {
        /// The server.
        server: String,
        /// How long was waited.
        limit: Duration,
    },
    /// The server failed a moment ago and is left alone for a while.
    #[error("the MCP server `{server}` failed ({last}); next attempt in {} s", wait.as_secs().max(1))]
    Unavailable {
        /// The server.
        server: String,
        /// How it failed.
        last: String,
        /// When it will be tried again.
        wait: Duration,
    },
    /// The connection ended while an answer was awaited.
    #[error("lost the connection to the MCP server `{server}`: {reason}")]
    Disconnected {
        /// The server.
        server: String,
        /// What is known about it.
        reason: String,
    },
    /// The call did not end in time.
    #[error("`{tool}` of the MCP server `{server}` did not answer within {} s", limit.as_secs_f64())]
    CallTimeout {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// How long was waited.
        limit: Duration,
        /// Whether the request had left.
        sent: Sent,
    },
    /// The call was cancelled.
    #[error("the call to `{tool}` of the MCP server `{server}` was cancelled")]
    Cancelled {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// Whether the request had left.
        sent: Sent,
    },
    /// The answer is larger than allowed.
    #[error("the MCP server `{server}` answered with more than {limit} bytes")]
    OutputTooLarge {
        /// The server.
        server: String,
        /// The limit.
        limit: usize,
    },
    /// The answer is not what the protocol asks for.
    #[error("invalid answer from the MCP server `{server}`: {reason}")]
    AnswerMalformed {
        /// The server.
        server: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The server answered with an error of the protocol.
    #[error("the MCP server `{server}` refused: `{message}` ({code})")]
    ServerRefused {
        /// The server.
        server: String,
        /// The protocol's error code.
        code: i32,
        /// The server's words, shortened.
        message: String,
    },
    /// The server wants something of the client that it does not get.
    #[error("`{tool}` of the MCP server `{server}` asked for {wanted}, which is not offered to MCP servers")]
    InputRefused {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What was asked for.
        wanted: &'static str,
    },
    /// The server lists more tools than are looked at.
    #[error("the MCP server `{server}` lists more than {limit} tools")]
    TooManyTools {
        /// The server.
        server: String,
        /// The limit.
        limit: usize,
    },
    /// The server has no such tool.
    #[error("the MCP server `{server}` has no tool `{tool}`")]
    ToolNotFound {
        /// The server.
        server: String,
        /// The tool asked for.
        tool: String,
    },
    /// The tool is there but the operator has not accepted it as it is now.
    #[error("`{tool}` of the MCP server `{server}` is withheld: {reason}")]
    ToolWithheld {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// Why.
        reason: String,
    },
    /// Arguments that the tool's schema does not name.
    #[error("invalid arguments for `{tool}` of the MCP server `{server}`: {reason}")]
    ArgumentsInvalid {
        /// The server.
        server: String,
        /// The tool.
        tool: String,
        /// What is wrong with them.
        reason: String,
    },
    /// A task of this crate ended in a way that it should not.
    #[error("internal error in the MCP client: {reason}")]
    Internal {
        /// What happened.
        reason: String,
    },
}

impl McpError {
    /// Whether the call that failed this way can have had an effect.
    #[must_use]
    pub const fn sent(&self) -> Sent {
        match self {
            Self::CallTimeout { sent, .. } | Self::Cancelled { sent, .. } => *sent,
            Self::Disconnected { .. }
            | Self::OutputTooLarge { .. }
            | Self::AnswerMalformed { .. }
            | Self::ServerRefused { .. }
            | Self::InputRefused { .. }
            | Self::Internal { .. } => Sent::Perhaps,
            _ => Sent::Never,
        }
    }

    /// The stable code of this failure.
    #[must_use]
    pub fn code(&self) -> String {
        self.to_stable().code
    }
}

impl ToStableError for McpError {
    fn to_stable(&self) -> StableErrorEnvelope {
        use ErrorCategory::{Availability, Conflict, Dependency, Internal, NotFound, Policy, Validation};
        let (code, category, retry, hint) = match self {
            Self::Secret(error) => return error.to_stable(),
            Self::ServerNameInvalid { .. } => (
                "mcp_server_name_invalid",
                Validation,
                Retry::Pointless,
                "choose a name such as `files` or `issue-tracker`",
            ),
            Self::ServerNotFound { .. } => {
                ("mcp_server_not_found", NotFound, Retry::Pointless, "see `palyra mcp list`")
            }
            Self::ServerExists { .. } => (
                "mcp_server_exists",
                Conflict,
                Retry::Pointless,
                "choose another name, or remove it first with `palyra mcp remove NAME`",
            ),
            Self::ConfigInvalid { .. } => {
                ("mcp_config_invalid", Validation, Retry::Pointless, "fix the file; `docs/mcp.md` shows its format")
            }
            Self::PinsInvalid { .. } => (
                "mcp_pins_invalid",
                Validation,
                Retry::Pointless,
                "remove the file and pin the tools again with `palyra mcp test NAME --accept`",
            ),
            Self::ClassificationInvalid { .. } => (
                "mcp_classification_invalid",
                Validation,
                Retry::Pointless,
                "fix the file, or rewrite it with `palyra mcp classify NAME --replace`",
            ),
            Self::File { .. } => (
                "mcp_file_unusable",
                Validation,
                Retry::Pointless,
                "check the path, its permissions and the free space",
            ),
            Self::UrlRefused { .. } => {
                ("mcp_url_refused", Validation, Retry::Pointless, "use an https:// URL, or http:// on this machine")
            }
            Self::HeaderInvalid { .. } => (
                "mcp_header_invalid",
                Validation,
                Retry::Pointless,
                "use `--header NAME=REFERENCE` with a reference such as env:TOKEN",
            ),
            Self::StartFailed { .. } => (
                "mcp_server_start_failed",
                Dependency,
                Retry::MayHelp,
                "check the command; the server gets only the environment variables listed in its entry",
            ),
            Self::ConnectFailed { .. } => {
                ("mcp_connect_failed", Dependency, Retry::MayHelp, "`palyra mcp test NAME` shows the server's output")
            }
            Self::ConnectTimeout { .. } => (
                "mcp_connect_timeout",
                Dependency,
                Retry::MayHelp,
                "`palyra mcp test NAME` shows the server's output; it may still be downloading on its first start",
            ),
            Self::Unavailable { .. } => {
                ("mcp_server_unavailable", Availability, Retry::MayHelp, "`palyra mcp test NAME` retries at once")
            }
            Self::Disconnected { .. } => (
                "mcp_server_disconnected",
                Dependency,
                Retry::MayHelp,
                "the call may have taken effect; check before repeating it",
            ),
            Self::CallTimeout { .. } => (
                "mcp_call_timeout",
                Dependency,
                Retry::MayHelp,
                "the call may have taken effect; check before repeating it",
            ),
            Self::Cancelled { .. } => (
                "mcp_call_cancelled",
                Conflict,
                Retry::Pointless,
                "the server was asked to stop; the call may already have taken effect",
            ),
            Self::OutputTooLarge { .. } => {
                ("mcp_output_too_large", Dependency, Retry::Pointless, "ask for less, for example with a limit")
            }
            Self::AnswerMalformed { .. } => (
                "mcp_answer_malformed",
                Dependency,
                Retry::Pointless,
                "the server violates the protocol; report it to its authors",
            ),
            Self::ServerRefused { .. } => (
                "mcp_server_refused",
                Dependency,
                Retry::Pointless,
                "the text in backticks is the server's own message",
            ),
            Self::InputRefused { .. } => {
                ("mcp_input_refused", Policy, Retry::Pointless, "pass everything the tool needs in its arguments")
            }
            Self::TooManyTools { .. } => {
                ("mcp_too_many_tools", Dependency, Retry::Pointless, "use a server that offers fewer tools")
            }
            Self::ToolNotFound { .. } => {
                ("mcp_tool_not_found", NotFound, Retry::Pointless, "see `palyra mcp test NAME`")
            }
            Self::ToolWithheld { .. } => (
                "mcp_tool_withheld",
                Policy,
                Retry::Pointless,
                "review it with `palyra mcp test NAME`, then accept it with `palyra mcp test NAME --accept`",
            ),
            Self::ArgumentsInvalid { .. } => {
                ("mcp_arguments_invalid", Validation, Retry::Pointless, "use the arguments listed in the tool's schema")
            }
            Self::Internal { .. } => ("mcp_internal_error", Internal, Retry::Pointless, "please report this as a bug"),
        };
        StableErrorEnvelope::new(code, category, self.to_string()).retryable(retry).hint(hint)
    }
}

/// A server's own words, on one line and short, so that they can stand in a message.
pub(crate) fn quoted(text: &str) -> String {
    const LIMIT: usize = 300;
    let mut short: String =
        text.chars().map(|c| if c.is_control() || c == '`' { ' ' } else { c }).take(LIMIT).collect();
    if text.chars().nth(LIMIT).is_some() {
        short.push('…');
    }
    short
}

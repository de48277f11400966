//! The values that labels can take. Each is an enum, so that no input from outside can grow the number of series.

use palyra_common::{ErrorCategory, runtime_contract_enum};

runtime_contract_enum! {
    /// The way a request came in.
    pub enum Transport("transport") {
        /// The local Unix socket.
        Unix = "unix",
        /// HTTP, with or without TLS.
        Http = "http",
        /// A WebSocket.
        WebSocket = "websocket" | "ws",
        /// gRPC.
        Grpc = "grpc",
        /// QUIC.
        Quic = "quic",
        /// The OpenAI-compatible interface.
        OpenAi = "openai",
        /// Standard input and output.
        Stdio = "stdio",
    }
}

runtime_contract_enum! {
    /// How a command ended: well, or with an error of some category.
    pub enum CommandOutcome("command_outcome") {
        /// It did what was asked.
        Ok = "ok",
        /// The stored result of an earlier one was given again.
        Replayed = "replayed",
        /// The caller left or its deadline passed.
        Cancelled = "cancelled",
        /// Who the caller is could not be established.
        Auth = "auth",
        /// The request itself was wrong.
        Validation = "validation",
        /// A policy refused.
        Policy = "policy",
        /// The named thing does not exist.
        NotFound = "not_found",
        /// The request contradicted the present state.
        Conflict = "conflict",
        /// Something outside failed.
        Dependency = "dependency",
        /// It could not be served then.
        Availability = "availability",
        /// A defect.
        Internal = "internal",
    }
}

impl From<ErrorCategory> for CommandOutcome {
    fn from(category: ErrorCategory) -> Self {
        match category {
            ErrorCategory::Auth => Self::Auth,
            ErrorCategory::Validation => Self::Validation,
            ErrorCategory::Policy => Self::Policy,
            ErrorCategory::NotFound => Self::NotFound,
            ErrorCategory::Conflict => Self::Conflict,
            ErrorCategory::Dependency => Self::Dependency,
            ErrorCategory::Availability => Self::Availability,
            ErrorCategory::Internal => Self::Internal,
        }
    }
}

runtime_contract_enum! {
    /// How a call of a model ended.
    pub enum ModelOutcome("model_outcome") {
        /// With a whole turn.
        Ok = "ok",
        /// With an error of the provider.
        Error = "error",
        /// The run was stopped meanwhile.
        Cancelled = "cancelled",
    }
}

runtime_contract_enum! {
    /// What tokens were for.
    pub enum TokenKind("token_kind") {
        /// Read by the model.
        Input = "input",
        /// Written by the model.
        Output = "output",
    }
}

runtime_contract_enum! {
    /// What family a tool belongs to. Single tools of outside servers and skills have no series of their own.
    pub enum ToolClass("tool_class") {
        /// `palyra.fs.*`.
        Files = "files",
        /// `palyra.process.*`.
        Process = "process",
        /// `palyra.http.*`.
        Http = "http",
        /// `palyra.memory.*`.
        Memory = "memory",
        /// `palyra.browser.*`.
        Browser = "browser",
        /// Every other `palyra.*`.
        Palyra = "palyra",
        /// Tools of MCP servers.
        Mcp = "mcp",
        /// Tools of skills.
        Skill = "skill",
    }
}

impl ToolClass {
    /// The class of a tool by its full name.
    #[must_use]
    pub fn of(tool: &str) -> Self {
        match tool.split_once('.') {
            Some(("mcp", _)) => Self::Mcp,
            Some(("palyra", rest)) => match rest.split('.').next() {
                Some("fs") => Self::Files,
                Some("process") => Self::Process,
                Some("http") => Self::Http,
                Some("memory") => Self::Memory,
                Some("browser") => Self::Browser,
                _ => Self::Palyra,
            },
            _ => Self::Skill,
        }
    }
}

runtime_contract_enum! {
    /// How a tool call ended.
    pub enum ToolOutcome("tool_outcome") {
        /// With a result.
        Ok = "ok",
        /// With an error.
        Error = "error",
        /// The policies refused it, so it never ran.
        Denied = "denied",
        /// It took too long.
        Timeout = "timeout",
        /// The run was stopped meanwhile.
        Cancelled = "cancelled",
        /// Nobody knows whether it took effect.
        Unknown = "unknown",
    }
}

runtime_contract_enum! {
    /// Which limit turned a request away.
    pub enum RateLimit("rate_limit") {
        /// Requests of one principal.
        Principal = "principal",
        /// Requests with one API token.
        Token = "token",
        /// Attempts to log in.
        Login = "login",
        /// Connections of one peer, or all of them together.
        Connection = "connection",
    }
}

runtime_contract_enum! {
    /// Why a caller was turned away.
    pub enum AuthFailure("auth_failure") {
        /// No credential was given.
        Missing = "missing",
        /// The credential could not be read.
        Malformed = "malformed",
        /// Nobody has this credential.
        Unknown = "unknown",
        /// The credential is too old.
        Expired = "expired",
        /// The credential was revoked.
        Revoked = "revoked",
        /// The credential is not for this.
        Scope = "scope",
        /// The request came from another site.
        Origin = "origin",
        /// The request named a host that this is not.
        Host = "host",
        /// The token against forged requests was missing or wrong.
        Csrf = "csrf",
        /// The process at the other end of the socket belongs to somebody else.
        Peer = "peer",
        /// The client's certificate was refused.
        Certificate = "certificate",
    }
}

runtime_contract_enum! {
    /// What was to be sent to a collector.
    pub enum Signal("signal") {
        /// Spans.
        Traces = "traces",
        /// Numbers.
        Metrics = "metrics",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_name_has_a_class() {
        let table = [
            ("palyra.fs.read", ToolClass::Files),
            ("palyra.process.run", ToolClass::Process),
            ("palyra.http.fetch", ToolClass::Http),
            ("palyra.memory.recall", ToolClass::Memory),
            ("palyra.browser.click", ToolClass::Browser),
            ("palyra.time.now", ToolClass::Palyra),
            ("mcp.github.create_issue", ToolClass::Mcp),
            ("weather.forecast", ToolClass::Skill),
            ("palyra", ToolClass::Skill),
            ("", ToolClass::Skill),
        ];
        for (name, class) in table {
            assert_eq!(ToolClass::of(name), class, "{name}");
        }
    }

    #[test]
    fn every_error_category_is_an_outcome_of_the_same_name() {
        for category in ErrorCategory::ALL {
            assert_eq!(CommandOutcome::from(*category).as_str(), category.as_str());
        }
    }
}

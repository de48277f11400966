//! What can go wrong on the way out, and how a refusal says what would have allowed it.
//!
//! Two kinds of failure are kept apart: a [`Refusal`] is a decision of this crate (the grant does not cover the request), every other
//! [`EgressError`] is something that happened (a dead server, a full limit, a wrong certificate). No message carries a secret, a query
//! value or user information of an address.

use std::time::Duration;

use palyra_common::{ErrorCategory, Retry, StableErrorEnvelope, ToStableError, runtime_contract_enum};
use serde_json::json;
use thiserror::Error;

use crate::rules::GrantLine;

runtime_contract_enum! {
    /// Why a request was refused.
    pub enum RefusalReason("egress_refusal_reason") {
        /// No rule names the host.
        HostNotGranted = "host_not_granted",
        /// The host is granted, with another scheme.
        SchemeNotGranted = "scheme_not_granted",
        /// The host is granted, on another port.
        PortNotGranted = "port_not_granted",
        /// The host is granted, for other methods.
        MethodNotGranted = "method_not_granted",
        /// The host is granted, for other paths.
        PathNotGranted = "path_not_granted",
        /// The host is written in a way that programs read differently.
        HostSpelling = "host_spelling",
        /// The path is written in a way that servers read differently.
        PathSpelling = "path_spelling",
        /// The name leads to an address that is not on the public network.
        AddressNotPublic = "address_not_public",
        /// A tunnel to a name whose TLS greeting names no server.
        ServerNameMissing = "server_name_missing",
        /// The TLS greeting names another server than the one asked for.
        ServerNameMismatch = "server_name_mismatch",
        /// The TLS greeting hides the name of the server.
        ServerNameHidden = "server_name_hidden",
        /// What went into a tunnel is neither TLS nor HTTP.
        NotTls = "not_tls",
        /// The `Host` header names another host than the one asked for.
        HostHeaderMismatch = "host_header_mismatch",
        /// The rule limits methods or paths, which cannot be seen inside TLS.
        InspectionNeeded = "inspection_needed",
        /// The request can be read in two ways.
        AmbiguousRequest = "ambiguous_request",
        /// The head of the request is larger than the grant allows.
        HeaderLimit = "header_limit",
        /// The answer cannot be searched for the secret that the request carried.
        AnswerNotSearchable = "answer_not_searchable",
        /// The caller did not show the proxy's access token.
        AccessDenied = "access_denied",
        /// A command or protocol that the proxy does not speak.
        Unsupported = "unsupported",
        /// The grant was withdrawn.
        Revoked = "revoked",
    }
}

/// A decision against a request, with the line of the grant that is missing where one would help.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct Refusal {
    /// Which check refused.
    pub reason: RefusalReason,
    /// What was refused, for a person.
    pub message: String,
    /// The line that would have to be added to the grant; `None` where no grant allows this.
    pub missing: Option<Box<GrantLine>>,
}

impl Refusal {
    /// A refusal that no line of a grant would change.
    #[must_use]
    pub fn new(reason: RefusalReason, message: impl Into<String>) -> Self {
        Self { reason, message: message.into(), missing: None }
    }

    /// Names the line that would have to be added.
    #[must_use]
    pub fn missing(mut self, line: GrantLine) -> Self {
        self.missing = Some(Box::new(line));
        self
    }

    /// The missing line as it is written in a grant, such as `rules = ["GET https://api.example/"]`.
    #[must_use]
    pub fn missing_line(&self) -> Option<String> {
        self.missing.as_deref().map(ToString::to_string)
    }
}

/// Why a rule, a request or a transfer failed.
#[derive(Debug, Error)]
pub enum EgressError {
    /// The text of a rule cannot be read.
    #[error("the egress rule `{rule}` is invalid: {reason}")]
    RuleInvalid {
        /// The text.
        rule: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A grant contradicts itself or has a limit of nothing.
    #[error("the egress grant `{grant}` is invalid: {reason}")]
    GrantInvalid {
        /// The grant.
        grant: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The text is no address that can be requested.
    #[error("the address `{url}` is invalid: {reason}")]
    UrlInvalid {
        /// The address, without user information and query values.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// A request with a method or header that cannot be sent.
    #[error("the request is invalid: {reason}")]
    RequestInvalid {
        /// What is wrong with it.
        reason: String,
    },
    /// The grant does not cover the request.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// The name could not be resolved.
    #[error("the name `{host}` cannot be resolved: {reason}")]
    ResolveFailed {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// No address of the host accepts a connection.
    #[error("cannot connect to `{host}` port {port}: {source}")]
    ConnectFailed {
        /// The host.
        host: String,
        /// The port.
        port: u16,
        /// What the last address answered.
        source: std::io::Error,
    },
    /// The host's certificate or handshake is not acceptable.
    #[error("no trusted TLS connection to `{host}`: {reason}")]
    TlsFailed {
        /// The host.
        host: String,
        /// What the handshake said.
        reason: String,
    },
    /// A time limit ran out.
    #[error("{what} took longer than {} ms", limit.as_millis())]
    TimedOut {
        /// What was being waited for.
        what: &'static str,
        /// The limit.
        limit: Duration,
    },
    /// A size limit was reached.
    #[error("{what} is larger than {limit} bytes")]
    TooLarge {
        /// What grew too large.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// Redirected too often.
    #[error("more than {limit} redirects")]
    TooManyRedirects {
        /// The limit.
        limit: usize,
    },
    /// The other side does not keep to HTTP.
    #[error("the exchange with `{host}` failed: {reason}")]
    Protocol {
        /// The host.
        host: String,
        /// What went wrong.
        reason: String,
    },
    /// A bound secret is not to be had, or cannot be used.
    #[error("the secret `{reference}` cannot be used: {reason}")]
    SecretUnavailable {
        /// The reference, never the value.
        reference: String,
        /// Why.
        reason: String,
    },
    /// The certificates to trust cannot be had.
    #[error("the certificates in `{place}` cannot be used: {reason}")]
    TrustUnusable {
        /// A file, or the system's store.
        place: String,
        /// Why.
        reason: String,
    },
    /// The proxy has no place to listen.
    #[error("the egress proxy cannot listen on `{address}`: {source}")]
    ListenFailed {
        /// Where it should have listened.
        address: String,
        /// Why not.
        source: std::io::Error,
    },
    /// All connections that the grant allows are in use.
    #[error("all {limit} connections allowed by the grant are in use")]
    Busy {
        /// The limit.
        limit: usize,
    },
    /// The body's content coding is damaged or unknown.
    #[error("cannot decode the response's content coding `{coding}`: {reason}")]
    CodingInvalid {
        /// The coding.
        coding: String,
        /// Why.
        reason: String,
    },
}

impl EgressError {
    /// The stable code, with a page in `docs/errors/`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::RuleInvalid { .. } => "egress_rule_invalid",
            Self::GrantInvalid { .. } => "egress_grant_invalid",
            Self::UrlInvalid { .. } => "egress_url_invalid",
            Self::RequestInvalid { .. } => "egress_request_invalid",
            Self::Refused(_) => "egress_refused",
            Self::ResolveFailed { .. } => "egress_resolve_failed",
            Self::ConnectFailed { .. } => "egress_connect_failed",
            Self::TlsFailed { .. } => "egress_tls_failed",
            Self::TimedOut { .. } => "egress_timed_out",
            Self::TooLarge { .. } => "egress_too_large",
            Self::TooManyRedirects { .. } => "egress_too_many_redirects",
            Self::Protocol { .. } => "egress_protocol_failed",
            Self::SecretUnavailable { .. } => "egress_secret_unavailable",
            Self::TrustUnusable { .. } => "egress_trust_unusable",
            Self::ListenFailed { .. } => "egress_listen_failed",
            Self::Busy { .. } => "egress_busy",
            Self::CodingInvalid { .. } => "egress_coding_invalid",
        }
    }

    fn category(&self) -> ErrorCategory {
        match self {
            Self::RuleInvalid { .. } | Self::GrantInvalid { .. } | Self::UrlInvalid { .. } => ErrorCategory::Validation,
            Self::RequestInvalid { .. } => ErrorCategory::Validation,
            Self::Refused(_) => ErrorCategory::Policy,
            Self::TooLarge { .. } | Self::TooManyRedirects { .. } => ErrorCategory::Policy,
            Self::SecretUnavailable { .. } | Self::TrustUnusable { .. } => ErrorCategory::Validation,
            Self::ListenFailed { .. } => ErrorCategory::Conflict,
            Self::Busy { .. } => ErrorCategory::Availability,
            Self::ResolveFailed { .. }
            | Self::ConnectFailed { .. }
            | Self::TlsFailed { .. }
            | Self::TimedOut { .. }
            | Self::Protocol { .. }
            | Self::CodingInvalid { .. } => ErrorCategory::Dependency,
        }
    }

    fn hint(&self) -> String {
        match self {
            Self::RuleInvalid { .. } => {
                "write a rule as `[METHODS] scheme://host[:port][/path]`, for example `GET,HEAD https://api.example/v1`"
                    .into()
            }
            Self::GrantInvalid { .. } => {
                "set every limit above zero, and bind each credential to a host that a rule names".into()
            }
            Self::UrlInvalid { .. } => {
                "write the address as `https://host/path`, without user name and password".into()
            }
            Self::RequestInvalid { .. } => {
                "use a method such as `GET`, and no headers that are set by the connection".into()
            }
            Self::Refused(refusal) => match refusal.missing_line() {
                Some(line) => format!("to allow it, add to the grant: {line}"),
                None => "no grant can allow this; change the request".into(),
            },
            Self::ResolveFailed { .. } => "check the name, and that the machine's name server answers".into(),
            Self::ConnectFailed { .. } => "check that the server is running and that the port is correct".into(),
            Self::TlsFailed { .. } => {
                "check the host's certificate; a private certificate authority can be set with `egress.ca_file`".into()
            }
            Self::TimedOut { .. } => "try again later, or raise the limit in the grant".into(),
            Self::TooLarge { .. } => "request less, or raise the limit in the grant".into(),
            Self::TooManyRedirects { .. } => "request the final URL directly".into(),
            Self::Protocol { .. } => "try again; if the error persists, the server violates HTTP/1.1".into(),
            Self::SecretUnavailable { .. } => "check the reference, and that the secret has at least 8 bytes".into(),
            Self::TrustUnusable { .. } => "use a PEM file with at least one certificate".into(),
            Self::ListenFailed { .. } => "free the port, or use port 0 to let the system choose one".into(),
            Self::Busy { .. } => "close a connection first, or raise `concurrent` in the grant".into(),
            Self::CodingInvalid { .. } => "request the response without a content coding".into(),
        }
    }
}

impl ToStableError for EgressError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let envelope = StableErrorEnvelope::new(self.code(), self.category(), self.to_string())
            .hint(self.hint())
            .retryable(match self {
                Self::ResolveFailed { .. }
                | Self::ConnectFailed { .. }
                | Self::TimedOut { .. }
                | Self::Protocol { .. }
                | Self::ListenFailed { .. }
                | Self::Busy { .. } => Retry::MayHelp,
                _ => Retry::Pointless,
            });
        match self {
            Self::Refused(refusal) => {
                envelope.details(json!({ "reason": refusal.reason, "missing_line": refusal.missing_line() }))
            }
            _ => envelope,
        }
    }
}

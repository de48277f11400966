//! What a scan reports: kinds, places, confidence, and previews that cannot give the secret away.
//!
//! INVARIANT: nothing in a [`Finding`] holds bytes of the secret beyond its public prefix (such as `ghp_`), so findings may
//! be logged, journaled and shown.

use std::fmt;

use palyra_common::runtime_contract_enum;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::normalise::Layer;

runtime_contract_enum! {
    /// What was found.
    pub enum FindingKind("safety_finding_kind") {
        /// A GitHub token.
        GithubToken = "github_token",
        /// An AWS access key id.
        AwsAccessKey = "aws_access_key",
        /// An AWS secret access key.
        AwsSecretKey = "aws_secret_key",
        /// A Google API key or OAuth token.
        GcpKey = "gcp_key",
        /// The private key of a Google service account file.
        GcpServiceAccount = "gcp_service_account",
        /// An Azure storage key, shared access key or client secret.
        AzureKey = "azure_key",
        /// A Slack token or webhook.
        SlackToken = "slack_token",
        /// A Stripe key.
        StripeKey = "stripe_key",
        /// A key of a model provider.
        ModelApiKey = "model_api_key",
        /// A token of a package registry.
        RegistryToken = "registry_token",
        /// A token of another provider with a known shape.
        ProviderToken = "provider_token",
        /// A signed JSON web token.
        Jwt = "jwt",
        /// A private key in PEM form.
        PrivateKey = "private_key",
        /// An address with a password in it.
        ConnectionString = "connection_string",
        /// An HTTP `Authorization` value.
        AuthorizationHeader = "authorization_header",
        /// A value of high entropy assigned to a telling name.
        AssignedSecret = "assigned_secret",
        /// A value of the vault, in whatever encoding.
        VaultValue = "vault_value",
        /// A phrase that tries to replace earlier instructions.
        InstructionOverride = "instruction_override",
        /// Text dressed up as another role of the conversation.
        RoleMarker = "role_marker",
        /// Text dressed up as a tool call or its result.
        ToolCallLookalike = "tool_call_lookalike",
        /// Text a person does not see.
        HiddenText = "hidden_text",
        /// A request or device to send data away.
        Exfiltration = "exfiltration",
        /// A request to keep something from the user.
        Concealment = "concealment",
    }
}

runtime_contract_enum! {
    /// The three families of findings, which policy treats differently.
    pub enum FindingClass("safety_finding_class") {
        /// A token of known shape or a telling assignment.
        Secret = "secret",
        /// An exact value of the vault.
        Vault = "vault",
        /// A signal of prompt injection.
        Injection = "injection",
    }
}

runtime_contract_enum! {
    /// How sure a detector is.
    pub enum Confidence("safety_confidence") {
        /// Worth a note.
        Low = "low",
        /// The shape fits and the value looks random.
        Medium = "medium",
        /// A checksum, an inner structure or the exact value fits.
        High = "high",
    }
}

runtime_contract_enum! {
    /// Whether everything was looked at.
    pub enum Coverage("safety_coverage") {
        /// All layers were unwrapped.
        Complete = "complete",
        /// The limits on depth or size were reached; something may be hidden deeper.
        Partial = "partial",
    }
}

impl FindingKind {
    /// The family of this kind.
    #[must_use]
    pub const fn class(self) -> FindingClass {
        match self {
            Self::VaultValue => FindingClass::Vault,
            Self::InstructionOverride
            | Self::RoleMarker
            | Self::ToolCallLookalike
            | Self::HiddenText
            | Self::Exfiltration
            | Self::Concealment => FindingClass::Injection,
            _ => FindingClass::Secret,
        }
    }
}

/// A half-open range of bytes in the original text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Span {
    /// First byte.
    pub start: usize,
    /// One past the last byte.
    pub end: usize,
}

impl Span {
    /// The range `start..end`; an end before the start counts as empty.
    #[must_use]
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end: if end < start { start } else { end } }
    }

    /// How many bytes it covers.
    #[must_use]
    pub const fn len(self) -> usize {
        self.end - self.start
    }

    /// Whether it covers nothing.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.end == self.start
    }

    /// Whether the two share a byte.
    #[must_use]
    pub const fn overlaps(self, other: Self) -> bool {
        self.start < other.end && other.start < self.end
    }

    /// The same range, `by` bytes further on.
    #[must_use]
    pub const fn shifted(self, by: usize) -> Self {
        Self { start: self.start + by, end: self.end + by }
    }
}

/// What may be shown of a finding: the public prefix and the length.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Preview(String);

impl Preview {
    /// A preview from a prefix that says nothing about the value.
    pub(crate) fn masked(public_prefix: &str, bytes: usize) -> Self {
        Self(format!("{public_prefix}… ({bytes} bytes)"))
    }

    /// The text to show.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Preview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// One thing a scan found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// What it is.
    pub kind: FindingKind,
    /// Which row of the detector table found it, such as `gitlab_pat`.
    pub detector: &'static str,
    /// Where, in bytes of the original text; encoded material is covered as a whole.
    pub span: Span,
    /// How sure the detector is.
    pub confidence: Confidence,
    /// The encodings it was wrapped in, outermost first.
    pub layers: Vec<Layer>,
    /// Name of the vault entry, for [`FindingKind::VaultValue`].
    pub vault_name: Option<String>,
    /// What may be shown of it.
    pub preview: Preview,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}..{}: {}", self.kind, self.span.start, self.span.end, self.preview)
    }
}

/// What a scan of one text found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Scan {
    /// Findings by position; none lies inside another of the same or a stronger confidence.
    pub findings: Vec<Finding>,
    /// Whether every layer was looked at.
    pub coverage: Coverage,
}

//! A whole grant: rules, private hosts, limits, credentials.
//!
//! A grant is plain data in TOML or JSON, unknown fields refused, and says nothing about whom it is for: policy decides that. A name never
//! reaches a network that is not public unless `private_hosts` says so for that name, and the metadata service and other special addresses are
//! reached only where the address itself stands there.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use palyra_common::{SecretRef, runtime_contract_enum};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::rule::Rule;
use crate::address::{AddressClass, classify};
use crate::error::EgressError;
use crate::host::Host;

/// What one sandbox, tool or run may reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EgressGrant {
    /// Name in logs and the journal.
    pub id: String,
    /// What may be requested. None: nothing.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// Names that may lead to networks that are not public.
    #[serde(default)]
    pub private_hosts: Vec<PrivateHost>,
    /// How much and how long.
    #[serde(default)]
    pub limits: EgressLimits,
    /// Secrets that are put into requests on the way out.
    #[serde(default)]
    pub credentials: Vec<CredentialBinding>,
    /// Whether the proxy may look into TLS where a rule or a credential needs it.
    #[serde(default)]
    pub intercept: Intercept,
}

impl EgressGrant {
    /// A grant of nothing, to add rules to.
    #[must_use]
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            rules: Vec::new(),
            private_hosts: Vec::new(),
            limits: EgressLimits::default(),
            credentials: Vec::new(),
            intercept: Intercept::Never,
        }
    }

    /// Adds a rule by its text.
    pub fn rule(mut self, text: &str) -> Result<Self, EgressError> {
        self.rules.push(Rule::parse(text)?);
        Ok(self)
    }

    /// Adds a private host by its text.
    pub fn private_host(mut self, text: &str) -> Result<Self, EgressError> {
        self.private_hosts.push(PrivateHost::parse(text)?);
        Ok(self)
    }

    /// Refuses a grant that contradicts itself: a limit of nothing, a credential for a host that no rule names.
    pub fn validate(&self) -> Result<(), EgressError> {
        let invalid = |reason: String| Err(EgressError::GrantInvalid { grant: self.id.clone(), reason });
        if self.id.is_empty() || self.id.len() > 200 || self.id.chars().any(char::is_control) {
            return invalid("its id must have 1 to 200 characters".to_owned());
        }
        if let Some(name) = self.limits.zero() {
            return invalid(format!("the limit `{name}` is zero"));
        }
        for credential in &self.credentials {
            if !self.rules.iter().any(|rule| rule.host.matches(&credential.host)) {
                return invalid(format!("no rule matches the credential for `{}`", credential.host));
            }
            if credential.placeholder.len() < 8 || !credential.placeholder.bytes().all(|b| b.is_ascii_graphic()) {
                return invalid(format!(
                    "the placeholder for `{}` must have at least 8 visible ASCII characters",
                    credential.host
                ));
            }
            if credential.template.matches("{}").count() != 1 {
                return invalid(format!("the template for `{}` must contain `{{}}` once", credential.host));
            }
            let name = match &credential.place {
                CredentialPlace::Header(name) => name,
                CredentialPlace::Query(name) => name,
            };
            if name.is_empty() || !name.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_')) {
                return invalid(format!("`{name}` is not a name of a header or query field"));
            }
            if matches!(&credential.place, CredentialPlace::Header(name) if is_framing(name)) {
                return invalid(format!("the header `{name}` is set by the connection and cannot carry a secret"));
            }
        }
        Ok(())
    }
}

/// Headers that decide how a message is read; a value from outside may not choose them.
fn is_framing(name: &str) -> bool {
    const FRAMING: [&str; 8] =
        ["host", "content-length", "transfer-encoding", "connection", "te", "trailer", "upgrade", "expect"];
    FRAMING.iter().any(|framing| name.eq_ignore_ascii_case(framing))
}

/// Limits of one grant. The byte and time limits are per request or tunnel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct EgressLimits {
    /// Most bytes sent in one request or tunnel.
    pub upload_bytes: u64,
    /// Most bytes received in one request or tunnel, before and after undoing a content coding.
    pub download_bytes: u64,
    /// Longest life of one request or tunnel.
    pub time_ms: u64,
    /// Longest silence inside one. Stops peers that hold a connection with a byte now and then, or with none.
    pub idle_ms: u64,
    /// Longest wait for a name server, a connection and a TLS handshake.
    pub connect_ms: u64,
    /// Most connections at once.
    pub concurrent: usize,
    /// Largest head of a request or an answer. Stops headers that grow until memory is gone.
    pub header_bytes: usize,
}

impl Default for EgressLimits {
    fn default() -> Self {
        Self {
            upload_bytes: 64 << 20,
            download_bytes: 1 << 30,
            time_ms: 600_000,
            idle_ms: 60_000,
            connect_ms: 10_000,
            concurrent: 64,
            header_bytes: 64 << 10,
        }
    }
}

impl EgressLimits {
    /// The limits of `http.fetch`: 4 MiB and 30 s.
    #[must_use]
    pub fn fetch() -> Self {
        Self { upload_bytes: 4 << 20, download_bytes: 4 << 20, time_ms: 30_000, idle_ms: 15_000, ..Self::default() }
    }

    /// Longest life of one request or tunnel.
    #[must_use]
    pub const fn time(&self) -> Duration {
        Duration::from_millis(self.time_ms)
    }

    /// Longest silence.
    #[must_use]
    pub const fn idle(&self) -> Duration {
        Duration::from_millis(self.idle_ms)
    }

    /// Longest wait for a connection.
    #[must_use]
    pub const fn connect(&self) -> Duration {
        Duration::from_millis(self.connect_ms)
    }

    fn zero(&self) -> Option<&'static str> {
        [
            ("upload_bytes", self.upload_bytes == 0),
            ("download_bytes", self.download_bytes == 0),
            ("time_ms", self.time_ms == 0),
            ("idle_ms", self.idle_ms == 0),
            ("connect_ms", self.connect_ms == 0),
            ("concurrent", self.concurrent == 0),
            ("header_bytes", self.header_bytes == 0),
        ]
        .into_iter()
        .find_map(|(name, zero)| zero.then_some(name))
    }
}

runtime_contract_enum! {
    #[derive(Default)]
    /// Whether the proxy may end TLS itself, with a certificate authority that exists only for one sandbox.
    pub enum Intercept("egress_intercept") {
        /// Tunnels are passed on unseen; a rule with methods or a path then allows no tunnel.
        #[default]
        Never = "never",
        /// Tunnels are opened where a rule names methods or a path, or a credential is bound to the host.
        WhenGranted = "when_granted",
    }
}

runtime_contract_enum! {
    #[derive(Default)]
    /// Over what a secret may travel.
    pub enum CredentialTransport("egress_credential_transport") {
        /// TLS only.
        #[default]
        Tls = "tls",
        /// Also HTTP in the clear, for servers on the same machine.
        Plain = "plain",
    }
}

/// Where in a request a secret goes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum CredentialPlace {
    /// This header.
    Header(String),
    /// This field of the query.
    Query(String),
}

/// A secret bound to one host and one place in a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CredentialBinding {
    /// The only host that gets it.
    #[serde(with = "host_text")]
    pub host: Host,
    /// The only place it is put.
    pub place: CredentialPlace,
    /// Where the secret is.
    pub secret: SecretRef,
    /// What the guest holds instead. Wherever it stands in the named place, the secret takes its place.
    pub placeholder: String,
    /// What the place gets when the request leaves it empty; `{}` stands for the secret, as in `Bearer {}`.
    #[serde(default = "bare_secret")]
    pub template: String,
    /// Over what it may travel.
    #[serde(default)]
    pub transport: CredentialTransport,
}

fn bare_secret() -> String {
    "{}".to_owned()
}

impl CredentialBinding {
    /// A binding to a header, over TLS only.
    pub fn header(host: &str, name: &str, secret: SecretRef, placeholder: &str) -> Result<Self, EgressError> {
        let parsed = Host::parse(host).map_err(|problem| EgressError::RuleInvalid {
            rule: host.escape_debug().to_string(),
            reason: problem.to_string(),
        })?;
        Ok(Self {
            host: parsed,
            place: CredentialPlace::Header(name.to_owned()),
            secret,
            placeholder: placeholder.to_owned(),
            template: bare_secret(),
            transport: CredentialTransport::Tls,
        })
    }
}

/// A host as text in a grant.
mod host_text {
    use super::{Deserialize, Deserializer, Host, Serializer};

    pub(super) fn serialize<S: Serializer>(host: &Host, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(host)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Host, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Host::parse(&text).map_err(serde::de::Error::custom)
    }
}

/// A host that may lead to a network that is not public: `db.internal`, `loopback:build.test`, `169.254.169.254`.
///
/// A name without a class reaches private networks (`private`, `shared`). `loopback`, `link_local` and `benchmarking` are written before the
/// name. Every other class is reached by writing the address itself, and so no answer of a name server can lead there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateHost {
    /// The host.
    pub host: Host,
    /// The class that its name may lead to; an address is its own.
    pub class: AddressClass,
}

impl PrivateHost {
    /// Reads a private host.
    pub fn parse(text: &str) -> Result<Self, EgressError> {
        let invalid = |reason: String| EgressError::RuleInvalid { rule: text.escape_debug().to_string(), reason };
        if let Ok(Host::Address(address)) = Host::parse_bare(text) {
            return Ok(Self { host: Host::Address(address), class: classify(address) });
        }
        let (class, name) = match text.split_once(':') {
            Some((class, name)) => {
                (class.parse().map_err(|error: palyra_common::UnknownContractValue| invalid(error.to_string()))?, name)
            }
            None => (AddressClass::Private, text),
        };
        let host = Host::parse(name).map_err(|problem| invalid(problem.to_string()))?;
        let by_name = matches!(
            class,
            AddressClass::Private | AddressClass::Loopback | AddressClass::LinkLocal | AddressClass::Benchmarking
        );
        if !by_name || host.address().is_some() {
            return Err(invalid(format!("addresses of the class `{class}` are granted by writing the address itself")));
        }
        Ok(Self { host, class })
    }

    /// Whether this line lets `host` lead to `address`, which is of this class.
    #[must_use]
    pub fn allows(&self, host: &Host, address: IpAddr, class: AddressClass) -> bool {
        if &self.host != host {
            return false;
        }
        match &self.host {
            Host::Address(named) => *named == address,
            Host::Name(_) => match (self.class, class) {
                (AddressClass::Private, AddressClass::Private | AddressClass::Shared) => true,
                (AddressClass::Private, _) => false,
                (granted, class) => granted == class,
            },
        }
    }
}

impl fmt::Display for PrivateHost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.host, self.class) {
            (Host::Address(address), _) => write!(f, "{address}"),
            (Host::Name(name), AddressClass::Private) => f.write_str(name),
            (Host::Name(name), class) => write!(f, "{class}:{name}"),
        }
    }
}

impl FromStr for PrivateHost {
    type Err = EgressError;
    fn from_str(text: &str) -> Result<Self, EgressError> {
        Self::parse(text)
    }
}

impl Serialize for PrivateHost {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for PrivateHost {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A line that is missing from a grant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GrantLine {
    /// A rule.
    Rule(Rule),
    /// A private host.
    PrivateHost(PrivateHost),
    /// Looking into TLS.
    Intercept(Intercept),
}

impl fmt::Display for GrantLine {
    /// As it stands in the grant.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rule(rule) => write!(f, "rules = [\"{rule}\"]"),
            Self::PrivateHost(host) => write!(f, "private_hosts = [\"{host}\"]"),
            Self::Intercept(intercept) => write!(f, "intercept = \"{intercept}\""),
        }
    }
}

#[cfg(test)]
#[path = "grant_tests.rs"]
mod tests;

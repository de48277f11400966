//! What a plugin may really do, once the runtime has found the grant behind its handle.
//!
//! Requests go out through the egress rules with a grant of exactly the one rule, secrets are put in on the way out and cut out of what comes back, storage
//! is the skill's own. The guest names a grant; this file knows whose it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_common::SecretRef;
use palyra_egress::{
    CacheMode, CredentialBinding, CredentialTransport, EgressClient, EgressError, EgressGrant, EgressLimits,
    FetchRequest, Host, PrivateHost, Rule, Scheme, SecretSource, Target,
};
use palyra_plugins_runtime::{
    Change, ChannelGrant, Credential, HostFailure, HostServices, HttpGrant, HttpRequest, HttpResponse, LogLevel,
    Placement, SecretBytes, SecretGrant, StorageAnswer, StorageGrant, StorageRequest,
};
use palyra_tools::ToolProgress;

use super::channels::{ChannelFailure, SkillChannels};
use super::storage::{SkillStorage, Space, StorageError};

/// Largest answer of one request.
const DOWNLOAD_BYTES: u64 = 4 << 20;
/// Longest request.
const REQUEST_TIME: Duration = Duration::from_secs(30);

/// The header of most credentials.
const AUTHORIZATION: &str = "authorization";

type Headers = Vec<(String, String)>;

/// What all skills share.
#[derive(Clone)]
pub struct SkillServices {
    /// The way out.
    pub client: EgressClient,
    /// Where secrets are read.
    pub secrets: Arc<dyn SecretSource>,
    /// What skills keep.
    pub storage: Arc<SkillStorage>,
    /// Messages to people.
    pub channels: Arc<dyn SkillChannels>,
    /// Hosts with private addresses that may be reached.
    pub private_hosts: Vec<PrivateHost>,
}

/// What the operator set for one skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillSettings {
    /// Settings by key.
    pub config: BTreeMap<String, String>,
    /// Where secrets are, by their names in the manifest.
    pub secrets: BTreeMap<String, SecretRef>,
}

/// The services of one skill in one call.
pub struct SkillHost {
    skill_id: String,
    /// Names the call in the record of its connections.
    call: String,
    services: SkillServices,
    settings: Arc<SkillSettings>,
    progress: Option<ToolProgress>,
    bindings: AtomicU32,
}

impl SkillHost {
    /// The services of a skill for one call.
    #[must_use]
    pub fn new(skill_id: &str, call: &str, services: SkillServices, settings: Arc<SkillSettings>) -> Self {
        Self {
            skill_id: skill_id.to_owned(),
            call: call.to_owned(),
            services,
            settings,
            progress: None,
            bindings: AtomicU32::new(0),
        }
    }

    /// Reports of the call go here.
    #[must_use]
    pub fn with_progress(mut self, progress: ToolProgress) -> Self {
        self.progress = Some(progress);
        self
    }

    fn reference(&self, secret: &SecretGrant) -> Result<&SecretRef, HostFailure> {
        self.settings
            .secrets
            .get(&secret.name)
            .ok_or_else(|| HostFailure::Denied(format!("the operator has not configured the secret `{}`", secret.name)))
    }

    /// Binds a secret to the host of this very request and to one header of it, which the request must have left free.
    fn bind(
        &self,
        credential: &Credential,
        target: &Target,
        headers: &mut Headers,
    ) -> Result<CredentialBinding, HostFailure> {
        let (name, host) = (&credential.secret.name, target.host.to_string());
        let hosts = &credential.secret.hosts;
        if !hosts.is_empty() && !hosts.iter().any(|allowed| allowed.eq_ignore_ascii_case(&host)) {
            return Err(HostFailure::Denied(format!("the secret `{name}` is not for `{host}`")));
        }
        let transport = match target.scheme {
            Scheme::Https => CredentialTransport::Tls,
            _ if is_this_machine(&target.host) => CredentialTransport::Plain,
            _ => return Err(HostFailure::Denied(format!("the secret `{name}` may only be sent over https"))),
        };
        let header = match &credential.placement {
            Placement::Bearer | Placement::Basic(_) => AUTHORIZATION,
            Placement::Header(header) => header.as_str(),
        };
        if headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(header)) {
            return Err(HostFailure::Invalid(format!("the header `{header}` is set already")));
        }
        let reference = self.reference(&credential.secret)?.clone();
        let placeholder = format!("palyra-skill-secret-{}", self.bindings.fetch_add(1, Ordering::Relaxed));
        let mut binding = CredentialBinding::header(&host, header, reference, &placeholder)
            .map_err(|error| HostFailure::Invalid(error.to_string()))?;
        binding.transport = transport;
        match &credential.placement {
            Placement::Bearer => binding.template = "Bearer {}".to_owned(),
            Placement::Header(_) => {}
            Placement::Basic(user) if user.contains(':') || user.contains(char::is_control) => {
                return Err(HostFailure::Invalid("a user name may not contain `:` or control characters".to_owned()));
            }
            // The secret goes inside the encoded text, so the placeholder has to stand there.
            Placement::Basic(user) => {
                let encoded = STANDARD.encode(format!("{user}:{placeholder}"));
                headers.push((AUTHORIZATION.to_owned(), format!("Basic {encoded}")));
            }
        }
        Ok(binding)
    }

    fn space(&self, grant: &StorageGrant) -> Space {
        Space {
            skill_id: self.skill_id.clone(),
            name: grant.name.clone(),
            max_bytes: grant.max_bytes,
            max_keys: grant.max_keys,
        }
    }
}

#[async_trait]
impl HostServices for SkillHost {
    async fn http(&self, grant: &HttpGrant, request: HttpRequest) -> Result<HttpResponse, HostFailure> {
        let target = Target::parse(&request.url).map_err(|error| HostFailure::Invalid(error.to_string()))?;
        let rule = Rule::parse(&grant.rule).map_err(|error| HostFailure::Denied(error.to_string()))?;
        let mut out = EgressGrant::new(format!("skill {} in {}", self.skill_id, self.call));
        out.rules.push(rule);
        out.private_hosts.clone_from(&self.services.private_hosts);
        out.limits = EgressLimits {
            download_bytes: DOWNLOAD_BYTES,
            time_ms: u64::try_from(REQUEST_TIME.as_millis()).unwrap_or(u64::MAX),
            ..EgressLimits::fetch()
        };
        let mut headers = Headers::new();
        for (name, value) in request.headers {
            let value = String::from_utf8(value)
                .map_err(|_| HostFailure::Invalid(format!("the header `{name}` is not text")))?;
            headers.push((name, value));
        }
        for credential in &request.credentials {
            out.credentials.push(self.bind(credential, &target, &mut headers)?);
        }
        let mut fetch = FetchRequest::new(&request.method, request.url).body(request.body);
        fetch.headers = headers;
        // What one skill reads must not come out of what another one asked, and a skill that asks again means it.
        fetch.cache = CacheMode::Bypass;
        let answer = self.services.client.send(&out, fetch).await.map_err(|error| failure(&error))?;
        Ok(HttpResponse {
            status: answer.status,
            headers: answer.headers.into_iter().map(|(name, value)| (name, value.into_bytes())).collect(),
            body: answer.body.to_vec(),
        })
    }

    async fn reveal(&self, secret: &SecretGrant) -> Result<SecretBytes, HostFailure> {
        let reference = self.reference(secret)?;
        let value = self.services.secrets.resolve(reference).await.map_err(HostFailure::Unreachable)?;
        Ok(SecretBytes::new(value.expose().as_bytes().to_vec()))
    }

    async fn storage(&self, grant: &StorageGrant, request: StorageRequest) -> Result<StorageAnswer, HostFailure> {
        let (storage, space) = (Arc::clone(&self.services.storage), self.space(grant));
        let carried_out = tokio::task::spawn_blocking(move || carry_out(&storage, &space, request)).await;
        carried_out.map_err(|error| HostFailure::Unreachable(error.to_string()))?.map_err(|error| match error {
            StorageError::Invalid(why) => HostFailure::Invalid(why),
            full @ StorageError::Full { .. } => HostFailure::Exhausted(full.to_string()),
            StorageError::File(error) => {
                tracing::error!(%error, "the storage of skills cannot be used");
                HostFailure::Unreachable("the storage cannot be used".to_owned())
            }
        })
    }

    async fn channel_send(&self, grant: &ChannelGrant, text: String) -> Result<String, HostFailure> {
        let sent = self.services.channels.send(&self.skill_id, &grant.name, &text).await;
        sent.map_err(|failure| match failure {
            ChannelFailure::Unknown(_) => HostFailure::Denied(failure.to_string()),
            ChannelFailure::Invalid(why) => HostFailure::Invalid(why),
            ChannelFailure::Unreachable(why) => HostFailure::Unreachable(why),
        })
    }

    fn log(&self, level: LogLevel, message: &str) {
        let (skill, call) = (self.skill_id.as_str(), self.call.as_str());
        match level {
            LogLevel::Debug => tracing::debug!(skill, call, "{message}"),
            LogLevel::Info => tracing::info!(skill, call, "{message}"),
            LogLevel::Warn => tracing::warn!(skill, call, "{message}"),
            LogLevel::Error => tracing::error!(skill, call, "{message}"),
        }
    }

    fn progress(&self, percent: Option<u8>, message: &str) {
        if let Some(progress) = &self.progress {
            progress.step(percent.map(|percent| percent.min(100)), message);
        }
    }

    fn config(&self) -> &BTreeMap<String, String> {
        &self.settings.config
    }
}

fn carry_out(storage: &SkillStorage, space: &Space, request: StorageRequest) -> Result<StorageAnswer, StorageError> {
    Ok(match request {
        StorageRequest::Get { key } => StorageAnswer::Entry(storage.get(space, &key)?),
        StorageRequest::Set { key, value } => {
            storage.apply(space, &[], &[Change { key, value: Some(value) }])?;
            StorageAnswer::Done
        }
        StorageRequest::Delete { key } => {
            storage.apply(space, &[], &[Change { key, value: None }])?;
            StorageAnswer::Done
        }
        StorageRequest::Keys { prefix, after, limit } => {
            StorageAnswer::Keys(storage.keys(space, &prefix, after.as_deref(), limit)?)
        }
        StorageRequest::Apply { expectations, changes } => {
            StorageAnswer::Outcome(storage.apply(space, &expectations, &changes)?)
        }
    })
}

/// Whether the host can only be this machine, so that nobody on the way could listen.
fn is_this_machine(host: &Host) -> bool {
    match host {
        Host::Address(address) => address.is_loopback(),
        Host::Name(name) => name == "localhost",
    }
}

/// What a plugin is told about a request that failed; nothing in it is a secret.
fn failure(error: &EgressError) -> HostFailure {
    match error {
        EgressError::Refused(refusal) => HostFailure::Denied(refusal.to_string()),
        EgressError::SecretUnavailable { .. } => HostFailure::Denied("a secret cannot be read".to_owned()),
        other => HostFailure::Unreachable(other.to_string()),
    }
}

#[cfg(test)]
#[path = "host_tests.rs"]
mod tests;

//! Skills from registries: visited through the egress rules, remembered between visits.
//!
//! What is remembered of a registry (its root, the newest versions seen) lies in a file of its own; losing it costs the protection against going back, never more.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{ErrorCategory, StableErrorEnvelope};
use palyra_egress::{CacheMode, EgressClient, EgressError, EgressGrant, EgressLimits, FetchRequest, PrivateHost};
use palyra_skills::{
    ArchiveLimits, DirectoryRegistry, Fetched, Origin, RegistryFetch, RegistryIndex, RegistryLocation, RegistryName,
    RegistryState, RootPin, SkillId, SkillVersion, download,
};

use super::{Changed, Skills};
use crate::dispatch::{Refusal, Result};

/// Longest visit.
const VISIT_MS: u64 = 120_000;

impl Skills {
    /// The archive that a registry has under `REGISTRY/SKILL` or `REGISTRY/SKILL@VERSION`, and what the visit changed besides: what the registry takes back is taken back
    /// even where it does not have what was wanted.
    pub(crate) async fn from_registry(
        self: &Arc<Self>,
        wanted: &str,
        by: &str,
    ) -> Result<(Result<(Vec<u8>, Origin)>, Changed)> {
        let unreadable = || Refusal::field("from_registry", "expected `REGISTRY/SKILL` or `REGISTRY/SKILL@VERSION`");
        let (registry, skill) = wanted.split_once('/').ok_or_else(unreadable)?;
        let (skill, version) = skill.split_once('@').map_or((skill, None), |(skill, version)| (skill, Some(version)));
        let (name, skill): (RegistryName, SkillId) = (registry.parse()?, skill.parse()?);
        let version: Option<SkillVersion> = version.map(str::parse).transpose()?;
        let (fetch, index, changed) = self.visit(&name, by).await?;
        let found = async {
            let artifact = index.find(&skill, version.as_ref())?;
            let (bytes, _) = download(fetch.as_ref(), artifact, &ArchiveLimits::default()).await?;
            Ok((bytes, Origin::Registry { name }))
        };
        Ok((found.await, changed))
    }

    /// Visits every registry that an installed skill came from, for what they take back. One that does not answer does not keep the others from being heard.
    pub(crate) async fn visit_registries(self: &Arc<Self>, by: &str) -> Vec<Changed> {
        let mut names: Vec<RegistryName> = self.with_index(|index| {
            let origins = index.skills().map(|skill| &skill.artifact.origin);
            origins
                .filter_map(|origin| if let Origin::Registry { name } = origin { Some(name.clone()) } else { None })
                .collect()
        });
        names.sort();
        names.dedup();
        let mut all = Vec::new();
        for name in names {
            match self.visit(&name, by).await {
                Ok((_, _, changed)) => all.push(changed),
                Err(refusal) => {
                    tracing::warn!(registry = %name, error = %refusal.envelope().message, "a registry could not be checked for revocations");
                }
            }
        }
        all
    }

    /// Reads a registry's index and takes in what it takes back.
    async fn visit(
        self: &Arc<Self>,
        name: &RegistryName,
        by: &str,
    ) -> Result<(Box<dyn RegistryFetch>, RegistryIndex, Changed)> {
        let fetch = self.registry(name)?;
        let path = self.directory.join("registries").join(format!("{name}.json"));
        let _turn = self.visiting.lock().await;
        let mut state = match self.remembered(&path)? {
            Some(state) => state,
            None => RegistryState::begin(fetch.as_ref(), 1, RootPin::FirstUse).await?,
        };
        let visited = state.refresh(fetch.as_ref(), self.clock.now()).await;
        // Kept even if the visit failed: it may have come forward.
        self.remember(&path, &state)?;
        let index = visited?;
        let changed = self.change(by, |skills| Ok(skills.plan_visit(name, &index))).await?;
        Ok((fetch, index, changed))
    }

    fn registry(&self, name: &RegistryName) -> Result<Box<dyn RegistryFetch>> {
        let mut lines = self.registries.iter().filter_map(|line| line.trim().split_once(char::is_whitespace));
        let (_, location) = lines.find(|(known, _)| *known == name.as_str()).ok_or_else(|| {
            let message = format!("there is no registry `{name}`");
            Refusal::from(
                StableErrorEnvelope::new("skill_registry_unknown", ErrorCategory::NotFound, message)
                    .hint("add it to `skills.registries` in palyra.toml, as `NAME ADDRESS`"),
            )
        })?;
        Ok(match location.trim().parse()? {
            RegistryLocation::Directory(path) => Box::new(DirectoryRegistry::new(path)),
            RegistryLocation::Https(base) => Box::new(HttpsRegistry {
                client: self.egress.client(),
                private_hosts: self.services.private_hosts.clone(),
                base,
            }),
        })
    }

    fn remembered(&self, path: &PathBuf) -> Result<Option<RegistryState>> {
        match fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map(Some).map_err(|error| {
                Refusal::internal(format!("a registry's saved state in `{}` cannot be read: {error}", path.display()))
            }),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(Refusal::internal(error.to_string())),
        }
    }

    fn remember(&self, path: &PathBuf, state: &RegistryState) -> Result<()> {
        let written = || -> std::io::Result<()> {
            if let Some(directory) = path.parent() {
                fs::create_dir_all(directory)?;
            }
            let temporary = path.with_extension("new");
            fs::write(&temporary, serde_json::to_vec(state)?)?;
            fs::rename(&temporary, path)
        };
        written().map_err(|error| Refusal::internal(format!("a registry's state cannot be saved: {error}")))
    }
}

/// A registry behind an address.
struct HttpsRegistry {
    client: EgressClient,
    private_hosts: Vec<PrivateHost>,
    /// With a slash at its end.
    base: String,
}

#[async_trait]
impl RegistryFetch for HttpsRegistry {
    async fn fetch(&self, path: &str, limit: u64) -> std::result::Result<Fetched, String> {
        let mut grant = EgressGrant::new("skill registry")
            .rule(&format!("GET {}", self.base))
            .map_err(|error| error.to_string())?;
        grant.private_hosts.clone_from(&self.private_hosts);
        grant.limits = EgressLimits { download_bytes: limit.max(1), time_ms: VISIT_MS, ..EgressLimits::fetch() };
        let mut request = FetchRequest::get(format!("{}{path}", self.base));
        request.cache = CacheMode::Bypass;
        request.max_redirects = 0;
        match self.client.send(&grant, request).await {
            Ok(answer) if answer.status == 200 => Ok(Fetched::Bytes(answer.body.to_vec())),
            Ok(answer) if answer.status == 404 || answer.status == 410 => Ok(Fetched::Missing),
            Ok(answer) => Err(format!("the registry answered {} for `{path}`", answer.status)),
            Err(EgressError::TooLarge { .. }) => Ok(Fetched::TooLarge),
            // Followed, it would be another registry than the one that was named.
            Err(EgressError::TooManyRedirects { .. }) => {
                Err("it redirects elsewhere, which is not followed; use the registry's final address".to_owned())
            }
            Err(error @ EgressError::TlsFailed { .. }) => {
                Err(format!("{error}; a private certificate authority can be set with `egress.ca_file`"))
            }
            Err(error) => Err(error.to_string()),
        }
    }
}

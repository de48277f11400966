//! Layering: environment over file over deployment profile over default, with the source of every value kept.
//!
//! INVARIANT: a [`LoadedConfig`] exists only if no layer had a problem, so whoever holds one need not check again.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::bind::{BindGuards, Guard, check_bind};
use super::error::{ConfigError, ConfigProblem, Origin};
use super::file::{self, FileLayer, anchor};
use super::key::{EnvNames, KEYS, KeySpec, Restart, find_key, suggest};
use super::schema::{BudgetConfig, Config, ModelProviderChoice, SECTIONS};
use super::value::{ConfigValue, Mismatch, shown};
use crate::{DeploymentProfile, Environment, SecretRef, env_vars, micro_dollars, paths};

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "layer", rename_all = "snake_case")]
pub enum ConfigSource {
    /// An environment variable.
    Env {
        /// Its name.
        variable: String,
    },
    /// The configuration file.
    File {
        /// Its path.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The deployment profile.
    Profile {
        /// Its name.
        profile: DeploymentProfile,
    },
    /// Nothing set it.
    Default,
}

impl fmt::Display for ConfigSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env { variable } => write!(f, "env {variable}"),
            Self::File { path, line } => write!(f, "file {}:{line}", path.display()),
            Self::Profile { profile } => write!(f, "profile {profile}"),
            Self::Default => f.write_str("default"),
        }
    }
}

/// Everything there is to say about one key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Explanation {
    /// The key.
    pub key: &'static str,
    /// Its present value.
    pub value: ConfigValue,
    /// Where that came from.
    pub source: ConfigSource,
    /// Its value when no layer gives one.
    pub default: ConfigValue,
    /// What values it takes.
    pub expected: String,
    /// The variables that set it, strongest first.
    pub environment_variables: Vec<String>,
    /// Whether a change needs a restart of the daemon.
    pub restart: Restart,
    /// What it does.
    pub doc: &'static str,
}

/// A configuration that is in order, with the source of every value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoadedConfig {
    config: Config,
    entries: BTreeMap<&'static str, (ConfigValue, ConfigSource)>,
    file: Option<PathBuf>,
    warnings: Vec<String>,
}

impl LoadedConfig {
    /// The typed values.
    #[must_use]
    pub const fn config(&self) -> &Config {
        &self.config
    }

    /// The file that was read, if there is one.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// What is not wrong but probably not meant either, such as a misspelt environment variable.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Everything about one key.
    pub fn explain(&self, key: &str) -> Result<Explanation, ConfigError> {
        let spec = find_key(key).ok_or_else(|| unknown_argument(key))?;
        Ok(self.explanation(spec))
    }

    /// Everything about every key, in the order of the reference page.
    #[must_use]
    pub fn list(&self) -> Vec<Explanation> {
        KEYS.iter().map(|key| self.explanation(key)).collect()
    }

    fn explanation(&self, key: &'static KeySpec) -> Explanation {
        let (value, source) =
            self.entries.get(key.name).cloned().unwrap_or_else(|| (key.default(), ConfigSource::Default));
        Explanation {
            key: key.name,
            value,
            source,
            default: key.default(),
            expected: key.value_type.describe(),
            environment_variables: key.env_vars(),
            restart: key.restart(),
            doc: key.doc(),
        }
    }
}

pub(super) fn unknown_argument(key: &str) -> ConfigError {
    ConfigProblem::UnknownKey { origin: Origin::Argument, key: shown(key), suggestion: suggest(key) }.into()
}

/// Finds, reads and layers the configuration of a process with this environment.
pub fn load(environment: &Environment) -> Result<LoadedConfig, ConfigError> {
    let layer = match paths::config_search(environment) {
        paths::ConfigSearch::Named(path) => match file::read(&path)? {
            Some(text) => Some(file::parse_collecting(&path, &text)?),
            None => return Err(ConfigProblem::Missing { path }.into()),
        },
        paths::ConfigSearch::Places(places) => first_existing(&places)?,
    };
    let (layer, problems) = match layer {
        Some((layer, problems)) => (Some(layer), problems),
        None => (None, Vec::new()),
    };
    finish(layer.as_ref(), environment, problems)
}

fn first_existing(places: &[PathBuf]) -> Result<Option<(FileLayer, Vec<ConfigProblem>)>, ConfigError> {
    for path in places {
        if let Some(text) = file::read(path)? {
            return file::parse_collecting(path, &text).map(Some);
        }
    }
    Ok(None)
}

/// Layers a file that was already read, or none, with an environment.
pub fn resolve(file: Option<&FileLayer>, environment: &Environment) -> Result<LoadedConfig, ConfigError> {
    finish(file, environment, Vec::new())
}

fn finish(
    file: Option<&FileLayer>,
    environment: &Environment,
    mut problems: Vec<ConfigProblem>,
) -> Result<LoadedConfig, ConfigError> {
    let layered = Layered::of(file, environment);
    problems.extend(layered.problems);
    let config = typed(&layered.entries);
    if let Ok(config) = &config {
        problems.extend(cross_check(config, environment));
    }
    ConfigError::from_problems(problems)?;
    Ok(LoadedConfig {
        config: config?,
        entries: layered.entries,
        file: file.map(|file| file.path.clone()),
        warnings: misspelt_variables(environment),
    })
}

/// Every problem of a file with an environment, for judging an edit before it is written.
pub(super) fn problems_of(file: &FileLayer, environment: &Environment) -> Vec<ConfigProblem> {
    match finish(Some(file), environment, Vec::new()) {
        Ok(_) => Vec::new(),
        Err(error) => error.problems().cloned().collect(),
    }
}

struct Layered {
    entries: BTreeMap<&'static str, (ConfigValue, ConfigSource)>,
    problems: Vec<ConfigProblem>,
}

impl Layered {
    fn of(file: Option<&FileLayer>, environment: &Environment) -> Self {
        let mut layered = Self { entries: BTreeMap::new(), problems: Vec::new() };
        for key in KEYS {
            if let Some(entry) = layered.above_profile(key, file, environment) {
                layered.entries.insert(key.name, entry);
            }
        }
        layered.forget_what_speaks_to_another_provider(file);
        // The profile lies below file and environment, and these say which profile it is.
        let profile = match layered.entries.get("deployment.profile") {
            Some((ConfigValue::Text(name), _)) => name.parse().unwrap_or(DeploymentProfile::Local),
            _ => DeploymentProfile::Local,
        };
        for key in KEYS {
            if !layered.entries.contains_key(key.name) {
                let entry = match profile.spec().config_default(key.name) {
                    Some(value) => (value, ConfigSource::Profile { profile }),
                    None => (key.default(), ConfigSource::Default),
                };
                layered.entries.insert(key.name, entry);
            }
        }
        layered
    }

    /// The variables of one vendor say nothing about another: a key for OpenAI is never sent to anybody else because somebody
    /// happens to have it in the environment.
    fn forget_what_speaks_to_another_provider(&mut self, file: Option<&FileLayer>) {
        let provider = match self.entries.get("model.provider") {
            Some((ConfigValue::Text(name), _)) => name.parse().unwrap_or(ModelProviderChoice::Auto),
            _ => ModelProviderChoice::Auto,
        };
        if provider.reads_openai_variables() {
            return;
        }
        for key in KEYS {
            let (EnvNames::Also(other) | EnvNames::AlsoSecret(other)) = key.env else { continue };
            let is_theirs = other.starts_with("OPENAI_");
            let from_it = |source: &ConfigSource| matches!(source, ConfigSource::Env { variable } if variable == other);
            if is_theirs && self.entries.get(key.name).is_some_and(|(_, source)| from_it(source)) {
                self.entries.remove(key.name);
                if let Some(entry) = file.and_then(|file| in_file(key, file)) {
                    self.entries.insert(key.name, entry);
                }
            }
        }
    }

    fn above_profile(
        &mut self,
        key: &'static KeySpec,
        file: Option<&FileLayer>,
        environment: &Environment,
    ) -> Option<(ConfigValue, ConfigSource)> {
        if let Some((variable, value)) = self.environment_value(key, environment) {
            return Some((value, ConfigSource::Env { variable }));
        }
        in_file(key, file?)
    }

    fn environment_value(&mut self, key: &'static KeySpec, environment: &Environment) -> Option<(String, ConfigValue)> {
        let standard = key.standard_env_var();
        if key.env == EnvNames::FileOnly {
            if environment.get(&standard).is_some() {
                self.problems.push(ConfigProblem::EnvNotAllowed { variable: standard, key: key.name });
            }
            return None;
        }
        if let Some(given) = environment.get(&standard) {
            return self.checked(key, standard, given, environment);
        }
        match key.env {
            EnvNames::Also(other) => self.checked(key, other.to_owned(), environment.get(other)?, environment),
            EnvNames::AlsoSecret(other) => {
                environment.get(other)?;
                let reference = SecretRef::Env(other.to_owned()).to_string();
                Some((other.to_owned(), ConfigValue::Text(reference)))
            }
            EnvNames::Standard | EnvNames::FileOnly => None,
        }
    }

    /// A variable's value, or the problem with it put on the list.
    fn checked(
        &mut self,
        key: &KeySpec,
        variable: String,
        given: &OsStr,
        environment: &Environment,
    ) -> Option<(String, ConfigValue)> {
        let checked = match given.to_str() {
            Some(text) => key.value_type.check_text(text),
            None => Err(Mismatch::Type("bytes that are not valid UTF-8".to_owned())),
        };
        let directory = environment.absolute(Path::new(""));
        match checked.and_then(|value| anchor(&directory, &key.value_type, value)) {
            Ok(value) => Some((variable, value)),
            Err(mismatch) => {
                self.problems.push(mismatch.at(Origin::Env(variable), key));
                None
            }
        }
    }
}

fn in_file(key: &KeySpec, file: &FileLayer) -> Option<(ConfigValue, ConfigSource)> {
    let (value, line) = file.values.get(key.name)?;
    Some((value.clone(), ConfigSource::File { path: file.path.clone(), line: *line }))
}

/// The flat values as the typed schema.
fn typed(entries: &BTreeMap<&'static str, (ConfigValue, ConfigSource)>) -> Result<Config, ConfigError> {
    let mut root = serde_json::Map::new();
    for (key, (value, _)) in entries {
        let Some((section, name)) = key.split_once('.') else { continue };
        let section =
            root.entry(section).or_insert_with(|| serde_json::Value::Object(serde_json::Map::new())).as_object_mut();
        if let Some(section) = section {
            section.insert(name.to_owned(), value.to_json());
        }
    }
    serde_json::from_value(serde_json::Value::Object(root))
        .map_err(|error| ConfigProblem::Inconsistent { key: "version".to_owned(), reason: error.to_string() }.into())
}

/// Soft limits above the hard limit of the same name. A daemon would not start with one.
fn warnings_that_never_come(budget: &BudgetConfig) -> Vec<ConfigProblem> {
    let pairs = [
        ("run", &budget.run, &budget.run_warn),
        ("session", &budget.session, &budget.session_warn),
        ("agent", &budget.agent, &budget.agent_warn),
        ("day", &budget.day, &budget.day_warn),
        ("month", &budget.month, &budget.month_warn),
        ("global", &budget.global, &budget.global_warn),
    ];
    let amount = |text: &Option<String>| text.as_deref().and_then(|text| micro_dollars(text).ok());
    let above = pairs
        .into_iter()
        .filter(|(_, hard, soft)| matches!((amount(hard), amount(soft)), (Some(hard), Some(soft)) if soft > hard));
    above
        .map(|(name, _, _)| ConfigProblem::Inconsistent {
            key: format!("budget.{name}_warn"),
            reason: format!("it is above the hard limit `budget.{name}`, so it would never warn"),
        })
        .collect()
}

/// Rules over several keys.
fn cross_check(config: &Config, environment: &Environment) -> Vec<ConfigProblem> {
    let mut problems = Vec::new();
    if config.model.provider == ModelProviderChoice::Scripted && config.model.script.is_none() {
        problems.push(ConfigProblem::Inconsistent {
            key: "model.script".to_owned(),
            reason: "`model.provider` is `scripted`, which needs a script".to_owned(),
        });
    }
    if config.model.max_output_tokens >= config.model.context_tokens {
        problems.push(ConfigProblem::Inconsistent {
            key: "model.max_output_tokens".to_owned(),
            reason: "it must be smaller than `model.context_tokens`, or no room is left for the prompt".to_owned(),
        });
    }
    problems.extend(warnings_that_never_come(&config.budget));
    let own_files = [config.http.tls_certificate.is_some(), config.http.tls_key.is_some()];
    if own_files == [true, false] || own_files == [false, true] {
        problems.push(ConfigProblem::Inconsistent {
            key: "http.tls_key".to_owned(),
            reason: "`http.tls_certificate` and `http.tls_key` must be set together".to_owned(),
        });
    }
    if own_files.contains(&true) && !config.http.tls && !config.grpc.tls {
        problems.push(ConfigProblem::Inconsistent {
            key: "http.tls".to_owned(),
            reason: "a certificate is configured, but TLS is off".to_owned(),
        });
    }
    if let Some(name) = config.http.allowed_hosts.iter().find(|name| !is_host(name)) {
        problems.push(ConfigProblem::Inconsistent {
            key: "http.allowed_hosts".to_owned(),
            reason: format!("`{}` is not a host name or an address without a port", shown(name)),
        });
    }
    if let Some(origin) = config.http.public_origins.iter().find(|origin| !is_origin(origin)) {
        problems.push(ConfigProblem::Inconsistent {
            key: "http.public_origins".to_owned(),
            reason: format!("`{}` is not an origin such as `https://agents.example`, without a path", shown(origin)),
        });
    }
    if let Some(proxy) = config.http.trusted_proxies.iter().find(|proxy| proxy.parse::<IpAddr>().is_err()) {
        problems.push(ConfigProblem::Inconsistent {
            key: "http.trusted_proxies".to_owned(),
            reason: format!("`{}` is not an IP address", shown(proxy)),
        });
    }
    let acknowledged = environment
        .text(env_vars::PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK)
        .is_some_and(|value| value.trim().eq_ignore_ascii_case("true"));
    let guards = |tls| BindGuards {
        tls,
        // No interface lets strangers do anything.
        authentication: Guard::Present,
        file_acknowledgement: Guard::when(config.deployment.dangerous_remote_bind_ack),
        environment_acknowledgement: Guard::when(acknowledged),
    };
    if config.daemon.http_enabled {
        let guards = guards(Guard::when(config.http.tls));
        problems.extend(check_bind("daemon.http_bind", config.daemon.http_bind, guards).err());
    }
    if config.grpc.enabled {
        let guards = guards(Guard::when(config.grpc.tls));
        problems.extend(check_bind("grpc.bind", config.grpc.bind, guards).err());
    }
    if config.quic.enabled {
        // QUIC has no form without TLS.
        problems.extend(check_bind("quic.bind", config.quic.bind, guards(Guard::Present)).err());
    }
    problems
}

/// A name as it stands in a `Host` header and in a certificate: letters, digits, dots and hyphens, or an address.
fn is_host(name: &str) -> bool {
    let inside = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    if let Some(inside) = inside {
        return inside.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let label = |label: &str| {
        let plain = label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        plain && !label.is_empty() && label.len() <= 63 && !label.starts_with('-') && !label.ends_with('-')
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// A scheme, a host and perhaps a port, and nothing after them.
fn is_origin(text: &str) -> bool {
    let Some(authority) = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://")) else { return false };
    match authority.rsplit_once(':') {
        // A colon inside brackets belongs to an IPv6 address.
        Some((host, port)) if !port.contains(']') => is_host(host) && port.parse::<u16>().is_ok(),
        _ => is_host(authority),
    }
}

/// Variables that look like ours and are none. They cannot be refused: the environment belongs to others too.
fn misspelt_variables(environment: &Environment) -> Vec<String> {
    let known: Vec<String> = KEYS
        .iter()
        .flat_map(KeySpec::env_vars)
        .chain(env_vars::VARIABLES.iter().map(|variable| variable.name.to_owned()))
        .collect();
    environment
        .names()
        .filter(|name| {
            SECTIONS.iter().any(|(section, _)| name.starts_with(&format!("{}_", env_vars::standard_name(section))))
        })
        .filter(|name| !known.iter().any(|known| known == name))
        .map(|name| {
            let nearest = known
                .iter()
                .map(|known| (strsim::jaro_winkler(known, name), known))
                .max_by(|left, right| left.0.total_cmp(&right.0))
                .filter(|(likeness, _)| *likeness >= 0.8)
                .map(|(_, known)| format!("; did you mean `{known}`?"))
                .unwrap_or_default();
            format!("the environment variable `{}` is not recognized{nearest}", shown(name))
        })
        .collect()
}

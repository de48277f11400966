//! What tools may reach beyond the workspace: sandboxed processes and the network, as the operator configured them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use palyra_common::config::Config;
use palyra_common::{Clock, Environment, MissingIsolation, SandboxTier, ToStableError as _};
use palyra_egress::{
    ConnectionLog, ConnectionRecord, Egress, EgressError, EgressOptions, PrivateHost, Rule, SecretSource, Trust,
};
use palyra_executors::{FetchOptions, HttpFetch, ProcessOptions, Processes, SkillInstructions, process_tools};
use palyra_journal::{Journal, NewRecord};
use palyra_sandbox::Fallback;
use palyra_secrets::DaemonSecrets;
use palyra_tools::Tool;

use crate::credentials::{self, Secrets};
use crate::error::DaemonError;

/// The kind of the record that every connection leaves.
const CONNECTION: &str = "egress.connection";

/// The tools that reach out, and what they share.
pub(crate) struct Reach {
    pub(crate) processes: Arc<Processes>,
    pub(crate) tools: Vec<Arc<dyn Tool>>,
    pub(crate) egress: Egress,
    pub(crate) secrets: Arc<dyn SecretSource>,
    /// Hosts with private addresses that may be reached.
    pub(crate) private_hosts: Vec<PrivateHost>,
}

impl Reach {
    /// Resolves what the operator wrote; nothing is started.
    pub(crate) fn new(
        config: &Config,
        environment: &Environment,
        state_root: &Path,
        protected: Vec<PathBuf>,
        journal: &Journal,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, DaemonError> {
        let private_hosts = parsed("egress.private_hosts", &config.egress.private_hosts, PrivateHost::parse)?;
        let secrets: Arc<dyn SecretSource> = Arc::new(Secrets(DaemonSecrets::new(environment.clone())));
        let egress = Egress::new(EgressOptions {
            log: Arc::new(JournalLog(journal.clone())),
            secrets: Arc::clone(&secrets),
            trust: config.egress.ca_file.clone().map_or(Trust::System, Trust::SystemAnd),
            clock: Arc::clone(clock),
            ..EgressOptions::default()
        })
        .map_err(|error| DaemonError::config("egress.ca_file", &error.to_stable()))?;
        let process = ProcessOptions {
            launcher: PathBuf::from("/proc/self/exe"),
            state: state_root.join("processes"),
            tier: SandboxTier::C,
            fallback: fallback(config),
            cpu: Duration::from_secs(config.process.cpu_seconds),
            memory_bytes: config.process.memory_bytes,
            processes: config.process.max_processes,
            output_bytes: usize::try_from(config.process.output_bytes).unwrap_or(usize::MAX),
            // Scripts of instructions may be run like any other program, so processes may read them.
            read_only: config
                .process
                .read_only
                .iter()
                .chain(&config.skills.directories)
                .filter_map(|path| expanded(path, environment))
                .collect(),
            environment: inherited(config, environment),
            protected,
            network: parsed("process.network", &config.process.network, Rule::parse)?,
            credentials: credentials::parsed(&config.process.credentials)?,
            private_hosts: private_hosts.clone(),
        };
        let fetch = FetchOptions {
            max_bytes: config.fetch.max_bytes,
            timeout: Duration::from_secs(config.fetch.timeout_seconds),
            max_redirects: config.fetch.max_redirects as usize,
            private_hosts: private_hosts.clone(),
        };
        let processes = Processes::new(process, egress.clone())?;
        let mut tools = process_tools(&processes);
        tools.push(Arc::new(HttpFetch::new(&egress, fetch)));
        let instructions: Vec<PathBuf> =
            config.skills.directories.iter().filter_map(|path| expanded(path, environment)).collect();
        if let Some(tool) = SkillInstructions::find(&instructions) {
            tools.push(Arc::new(tool));
        }
        Ok(Self { processes, tools, egress, secrets, private_hosts })
    }
}

/// A profile that only asks for tier B, and says so when there is no more, lets processes run there.
fn fallback(config: &Config) -> Fallback {
    let asked = config.deployment.profile.spec().sandbox;
    let weaker = asked.minimum_process_tier == SandboxTier::B && asked.when_missing == MissingIsolation::Report;
    if weaker { Fallback::TierB } else { Fallback::Never }
}

fn parsed<T>(
    key: &str,
    lines: &[String],
    parse: impl Fn(&str) -> Result<T, EgressError>,
) -> Result<Vec<T>, DaemonError> {
    lines.iter().map(|line| parse(line).map_err(|error| DaemonError::config(key, &error.to_stable()))).collect()
}

/// A path as the operator wrote it; `~/` needs a home directory to mean something.
fn expanded(path: &str, environment: &Environment) -> Option<PathBuf> {
    match path.strip_prefix("~/") {
        Some(rest) => Some(Path::new(environment.get("HOME")?).join(rest)),
        None => Some(environment.absolute(Path::new(path))),
    }
}

fn inherited(config: &Config, environment: &Environment) -> Vec<(String, Option<String>)> {
    config.process.env.iter().map(|name| (name.clone(), environment.text(name).map(str::to_owned))).collect()
}

/// Connections go on the journal like everything else that happens.
struct JournalLog(Journal);

impl ConnectionLog for JournalLog {
    fn record(&self, record: ConnectionRecord) {
        let recorded = serde_json::to_vec(&record).map_err(|error| error.to_string()).and_then(|payload| {
            // Not waited for: the connection is over, and its record follows what was recorded before.
            let line = self.0.append_detached(vec![NewRecord::new(CONNECTION, record.at, payload)]);
            line.map_err(|error| error.to_string())
        });
        if let Err(error) = recorded {
            tracing::error!(error, "a connection could not be recorded");
        }
    }
}

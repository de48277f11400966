//! Every configuration key, declared once.
//!
//! One line gives a key's name, Rust type, default, rule and environment variables; its doc comment is what
//! `palyra config explain` and the reference page say about it.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::key::{EnvNames, KeySpec};
use super::value::ValueType;
use crate::{DeploymentProfile, RunMode, SecretRef, runtime_contract_enum};

runtime_contract_enum! {
    /// Which model provider to use.
    pub enum ModelProviderChoice("model_provider") {
        /// The accounts and routes of `models.toml` if it has a default route, then an OpenAI-compatible server if one is
        /// configured, otherwise the offline planner.
        Auto = "auto",
        /// The built-in planner, which is not a language model and needs no network.
        Offline = "offline",
        /// A server that speaks OpenAI's chat completions.
        OpenaiCompatible = "openai_compatible",
        /// OpenAI itself; with another server in `model.base_url` the same as `openai_compatible`.
        Openai = "openai",
        /// Anthropic.
        Anthropic = "anthropic" | "claude",
        /// Google Gemini.
        Gemini = "gemini" | "google",
        /// OpenRouter.
        Openrouter = "openrouter" | "open_router",
        /// Ollama, on this machine unless `model.base_url` says otherwise.
        Ollama = "ollama",
        /// Answers read from a file.
        Scripted = "scripted",
    }
}

impl ModelProviderChoice {
    /// Whether `OPENAI_BASE_URL`, `OPENAI_API_KEY` and `OPENAI_MODEL` are meant for it.
    #[must_use]
    pub const fn reads_openai_variables(self) -> bool {
        match self {
            Self::Auto | Self::Offline | Self::Scripted | Self::OpenaiCompatible | Self::Openai => true,
            Self::Anthropic | Self::Gemini | Self::Openrouter | Self::Ollama => false,
        }
    }
}

runtime_contract_enum! {
    /// How much the daemon logs.
    pub enum LogLevel("log_level") {
        /// Only what failed.
        Error = "error",
        /// Also what looks wrong.
        Warn = "warn" | "warning",
        /// Also what happened.
        Info = "info",
        /// Also how it happened.
        Debug = "debug",
        /// Everything.
        Trace = "trace",
    }
}

runtime_contract_enum! {
    /// How the daemon logs.
    pub enum LogFormat("log_format") {
        /// Lines for people.
        Text = "text" | "plain",
        /// One JSON object per line.
        Json = "json",
    }
}

runtime_contract_enum! {
    /// What a person can want to agree to before a run may do it, although its task says so.
    pub enum MandateClass("mandate_class") {
        /// It pays: a tool whose classification names an argument that is an amount.
        Paying = "paying",
        /// It reaches others: a tool that acts on a destination of its own, or data of one place that another is to be given.
        Outward = "outward",
    }
}

const MAX: i64 = i64::MAX;
/// A day of seconds; longer single waits are a mistake in the unit.
const DAY: i64 = 86_400;

macro_rules! config_schema {
    ($(
        $(#[doc = $section_doc:literal])+
        $section:ident: $name:ident {
            $( $(#[doc = $doc:literal])+ $field:ident: $type:ty = $default:expr, $value_type:expr, $env:expr; )+
        }
    )+) => {
        /// The whole configuration, every value with its type.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields, default)]
        pub struct Config {
            $( $(#[doc = $section_doc])+ pub $section: $name, )+
        }

        $(
            $(#[doc = $section_doc])+
            #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
            #[serde(deny_unknown_fields, default)]
            pub struct $name {
                $( $(#[doc = $doc])+ pub $field: $type, )+
            }

            impl Default for $name {
                fn default() -> Self {
                    Self { $( $field: $default, )+ }
                }
            }
        )+

        /// Every key in the order of the reference page.
        pub const KEYS: &[KeySpec] = &[$($(
            KeySpec {
                name: concat!(stringify!($section), ".", stringify!($field)),
                value_type: $value_type,
                env: $env,
                raw_doc: concat!($($doc),+),
            },
        )+)+];

        /// Every section with what it is about, in the order of the reference page.
        pub(super) const SECTIONS: &[(&str, &str)] = &[$( (stringify!($section), concat!($($section_doc),+)), )+];
    };
}

config_schema! {
    /// What kind of installation this is.
    deployment: DeploymentConfig {
        /// Deployment profile; it changes the defaults of other keys.
        profile: DeploymentProfile = DeploymentProfile::Local,
            ValueType::choice::<DeploymentProfile>(), EnvNames::Standard;
        /// First of the two acknowledgements that a bind reachable from other machines needs; it must be written in the
        /// file, and the environment variable PALYRA_GATEWAY_DANGEROUS_REMOTE_BIND_ACK must be `true` as well.
        dangerous_remote_bind_ack: bool = false, ValueType::Bool, EnvNames::FileOnly;
    }
    /// The daemon's HTTP listener.
    daemon: DaemonConfig {
        /// Address of the HTTP interface; port 0 takes a free one.
        http_bind: SocketAddr = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 7142),
            ValueType::Address, EnvNames::Standard;
        /// Whether the HTTP interface is opened at all; the Unix socket always is.
        http_enabled: bool = true, ValueType::Bool, EnvNames::Standard;
        /// Seconds without a request after which an authenticated connection of any interface is closed. One on which nobody has authenticated is
        /// closed after 30 seconds, or after this if it is less.
        idle_timeout_seconds: u64 = 300, ValueType::integer(1, 86_400), EnvNames::Standard;
    }
    /// The gRPC interface.
    grpc: GrpcConfig {
        /// Address of the gRPC interface; port 0 takes a free one.
        bind: SocketAddr = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 7443),
            ValueType::Address, EnvNames::Standard;
        /// Whether the gRPC interface is opened at all.
        enabled: bool = true, ValueType::Bool, EnvNames::Standard;
        /// Whether the gRPC interface speaks TLS, with the same certificate as HTTP. Callers may then present a device certificate instead of a
        /// token.
        tls: bool = false, ValueType::Bool, EnvNames::Standard;
    }
    /// What the HTTP interface speaks and to whom.
    http: HttpConfig {
        /// Whether the HTTP interface speaks TLS. Callers may then present a device certificate instead of a token.
        tls: bool = false, ValueType::Bool, EnvNames::Standard;
        /// File with the certificate to present (PEM, with the chain), instead of one that the daemon issues itself; it is reread every hour.
        tls_certificate: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
        /// File with the key of that certificate (PEM).
        tls_key: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
        /// Names besides `localhost` and the addresses of this machine under which callers may address the HTTP interface, without a port. The
        /// daemon's own certificate names them too.
        allowed_hosts: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
        /// Origins under which browsers and other clients reach the HTTP and gRPC interfaces by a reverse proxy or a forwarded port, such as
        /// `https://agents.example`. The proxy must pass `Host` on. One of `https` counts only over TLS or from a trusted proxy.
        public_origins: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
        /// Addresses of reverse proxies whose `X-Forwarded-For` or `Forwarded` is believed.
        trusted_proxies: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
    }
    /// Rate limits. The owner on the machine itself, over the Unix socket or with the local token, is not limited.
    rate: RateConfig {
        /// Commands per minute that one principal may send on average, across all its credentials. A token may be given a lower limit when it is created.
        per_minute: u32 = 600, ValueType::integer(1, 10_000_000), EnvNames::Standard;
        /// Burst size: commands that may be sent at once after a pause.
        burst: u32 = 200, ValueType::integer(1, 1_000_000), EnvNames::Standard;
    }
    /// The QUIC interface. It always speaks TLS 1.3, and callers always present a device certificate.
    quic: QuicConfig {
        /// Whether it is opened.
        enabled: bool = true, ValueType::Bool, EnvNames::Standard;
        /// Its address (UDP); port 0 takes a free one.
        bind: SocketAddr = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 7444),
            ValueType::Address, EnvNames::Standard;
        /// Connections that are open at the same time; more are refused.
        max_connections: u32 = 256, ValueType::integer(1, 100_000), EnvNames::Standard;
        /// Commands of one connection that run at the same time; further ones wait on the client's side.
        max_streams: u32 = 64, ValueType::integer(1, 10_000), EnvNames::Standard;
        /// Seconds of silence after which a connection is closed.
        idle_timeout_seconds: u64 = 60, ValueType::integer(5, 3_600), EnvNames::Standard;
    }
    /// How runs work and when they end.
    run: RunConfig {
        /// How untrusted tool results are treated: `open` puts them into the context, `guarded` holds them in variables that the
        /// model can ask to read, `strict` never shows them.
        mode: RunMode = RunMode::Guarded, ValueType::choice::<RunMode>(), EnvNames::Standard;
        /// Model turns after which a run ends with `max_turns`.
        max_turns: u32 = 64, ValueType::integer(1, 100_000), EnvNames::Standard;
        /// Tool calls after which a run ends with `max_tool_calls`.
        max_tool_calls: u32 = 128, ValueType::integer(1, 1_000_000), EnvNames::Standard;
        /// Working time in seconds after which a run ends with `wall_clock`; waiting for a person does not count.
        wall_clock_seconds: u64 = 900, ValueType::integer(1, 30 * DAY), EnvNames::Standard;
        /// Seconds after which a run that is still queued, paused or waiting expires; 0 means never.
        expire_after_seconds: u64 = 604_800, ValueType::integer(0, 3650 * DAY), EnvNames::Standard;
        /// How many times in a row the same call may return the same result before the run is
        /// stopped as a loop.
        loop_repeats: u32 = 4, ValueType::integer(2, 1_000), EnvNames::Standard;
        /// Tools, by full name, that require approval before each call.
        ask_before: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
        /// What a run says it will do that counts only once a person has accepted it: `paying` for amounts, `outward` for what
        /// reaches others.
        confirm_mandates: Vec<MandateClass> = Vec::new(), ValueType::choices::<MandateClass>(), EnvNames::Standard;
        /// Runs that work at the same time; more wait in the queue.
        max_concurrent: u32 = 64, ValueType::integer(1, 10_000), EnvNames::Standard;
        /// Auxiliary model tasks, such as summaries, that work at the same time; more wait in a separate queue.
        auxiliary_concurrent: u32 = 2, ValueType::integer(1, 256), EnvNames::Standard;
    }
    /// Limits of single tool calls.
    tool: ToolConfig {
        /// Seconds a tool call may take unless its tool says otherwise.
        timeout_seconds: u64 = 120, ValueType::integer(1, 600), EnvNames::Standard;
        /// Read-only calls of one run that work at the same time.
        max_parallel: u32 = 8, ValueType::integer(1, 256), EnvNames::Standard;
    }
    /// Limits of patches.
    patch: PatchConfig {
        /// Largest patch in bytes.
        max_bytes: u64 = 1_048_576, ValueType::integer(1, 1_073_741_824), EnvNames::Standard;
        /// Most files that one patch may touch.
        max_files: u32 = 256, ValueType::integer(1, 100_000), EnvNames::Standard;
    }
    /// The language model.
    model: ModelConfig {
        /// Which provider to use; `auto` takes the routes of `models.toml` if it has a default one, then an OpenAI-compatible
        /// server if one is configured, otherwise the offline planner.
        provider: ModelProviderChoice = ModelProviderChoice::Auto,
            ValueType::choice::<ModelProviderChoice>(), EnvNames::Standard;
        /// Name of the model to ask for; without one the server's first model is taken.
        name: Option<String> = None, ValueType::Text, EnvNames::Also(crate::env_vars::OPENAI_MODEL);
        /// Base address of the model server; without one the provider's own.
        base_url: Option<String> = None, ValueType::HttpUrl, EnvNames::Also(crate::env_vars::OPENAI_BASE_URL);
        /// Where the key for the server is; the key itself is never written here. Without one the variable that the provider
        /// itself documents is read, such as ANTHROPIC_API_KEY.
        api_key: Option<SecretRef> = None, ValueType::Secret, EnvNames::AlsoSecret(crate::env_vars::OPENAI_API_KEY);
        /// Tokens that fit the model's context window.
        context_tokens: u32 = 32_768, ValueType::integer(1_024, 100_000_000), EnvNames::Standard;
        /// Most tokens the model may write in one turn.
        max_output_tokens: u32 = 4_096, ValueType::integer(16, 10_000_000), EnvNames::Standard;
        /// Seconds to wait for a connection to the server.
        connect_timeout_seconds: u64 = 10, ValueType::integer(1, DAY), EnvNames::Standard;
        /// Seconds without data after which a response is treated as interrupted.
        idle_timeout_seconds: u64 = 120, ValueType::integer(1, DAY), EnvNames::Standard;
        /// File with the answers of the `scripted` provider.
        script: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
    }
    /// What model calls may cost, as amounts such as `$5` or `0.50 USD`. Each call reserves its worst-case cost before it is made.
    budget: BudgetConfig {
        /// Hard limit for one run: a run whose next call could exceed it stops with `budget_exceeded`.
        run: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Soft limit for one run: exceeding it causes one warning.
        run_warn: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Hard limit for one session: a run whose next call could exceed it stops with `budget_exceeded`.
        session: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Soft limit for one session: exceeding it causes one warning.
        session_warn: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Hard limit for one agent, across all its runs: a run whose next call could exceed it stops with `budget_exceeded`.
        agent: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Soft limit for one agent, across all its runs: exceeding it causes one warning.
        agent_warn: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Hard limit for one day (UTC): a run whose next call could exceed it stops with `budget_exceeded`.
        day: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Soft limit for one day (UTC): exceeding it causes one warning.
        day_warn: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Hard limit for one month (UTC): a run whose next call could exceed it stops with `budget_exceeded`.
        month: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Soft limit for one month (UTC): exceeding it causes one warning.
        month_warn: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Hard limit for all spending: a run whose next call could exceed it stops with `budget_exceeded`.
        global: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// Soft limit for all spending: exceeding it causes one warning.
        global_warn: Option<String> = None, ValueType::Amount, EnvNames::Standard;
        /// File with prices that override the built-in table; without one, `prices.toml` next to this file is used if it exists.
        prices: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
    }
    /// What the model gets to see.
    context: ContextConfig {
        /// How full the context window may become, in percent, before older history is summarised.
        compact_at_percent: u32 = 80, ValueType::integer(10, 95), EnvNames::Standard;
        /// Files of the workspace that are given to the model as instructions, in this order.
        project_files: Vec<String> = vec!["PALYRA.md".to_owned(), "AGENTS.md".to_owned()],
            ValueType::List, EnvNames::Standard;
    }
    /// The journal.
    journal: JournalConfig {
        /// Records between two signed checkpoints.
        checkpoint_every: u64 = 1_024, ValueType::integer(1, 1_000_000), EnvNames::Standard;
        /// Records in one segment before a new one is started.
        segment_records: u64 = 250_000, ValueType::integer(1_000, 100_000_000), EnvNames::Standard;
        /// Largest payload in bytes that is kept inside its record; a larger one becomes an artifact.
        inline_payload_bytes: u64 = 262_144, ValueType::integer(1_024, 16_777_216), EnvNames::Standard;
        /// Free bytes on the disk below which new work is refused.
        min_free_bytes: u64 = 33_554_432, ValueType::integer(0, MAX), EnvNames::Standard;
    }
    /// What principals may store.
    storage: StorageConfig {
        /// Bytes that one principal may store: records of their runs, sessions and commands, files that they uploaded, and long outputs of their tools. The
        /// owner at the machine itself has no quota.
        per_principal_bytes: u64 = 10_737_418_240, ValueType::integer(65_536, MAX), EnvNames::Standard;
    }
    /// The daemon's log.
    log: LogConfig {
        /// How much is logged.
        level: LogLevel = LogLevel::Info, ValueType::choice::<LogLevel>(), EnvNames::Standard;
        /// Whether lines are for people or for programs.
        format: LogFormat = LogFormat::Text, ValueType::choice::<LogFormat>(), EnvNames::Standard;
        /// Whether lines also go to `logs/palyrad.log` in the state directory, besides standard error.
        file: bool = true, ValueType::Bool, EnvNames::Standard;
        /// Bytes after which that file is rotated to `palyrad.log.1`.
        file_max_bytes: u64 = 16_777_216, ValueType::integer(65_536, 1_099_511_627_776), EnvNames::Standard;
        /// How many rotated files are kept.
        file_keep: u32 = 5, ValueType::integer(1, 1_000), EnvNames::Standard;
    }
    /// Metrics and traces for other systems. Nothing leaves the machine unless a collector is named.
    telemetry: TelemetryConfig {
        /// OpenTelemetry collector that traces and metrics are exported to, over OTLP and gRPC, such as `http://127.0.0.1:4317`; none when left
        /// out.
        otlp_endpoint: Option<String> = None, ValueType::HttpUrl, EnvNames::Standard;
        /// Headers for the collector, each as `NAME: TEXT {REFERENCE}`, such as `authorization: Bearer {env:COLLECTOR_TOKEN}`.
        otlp_headers: Vec<String> = Vec::new(), ValueType::List, EnvNames::FileOnly;
        /// File of certificate authorities (PEM) to trust for the collector in addition to the system's.
        otlp_ca_file: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
        /// Seconds that the collector may take for one batch.
        otlp_timeout_seconds: u64 = 10, ValueType::integer(1, 600), EnvNames::Standard;
        /// Seconds between two exports of metrics.
        metric_interval_seconds: u64 = 60, ValueType::integer(1, DAY), EnvNames::Standard;
        /// Percentage of traces that are exported.
        sample_percent: u8 = 100, ValueType::integer(0, 100), EnvNames::Standard;
        /// Whether prompts, answers, arguments and results are exported with the traces.
        capture_content: bool = false, ValueType::Bool, EnvNames::Standard;
    }
    /// Questions to people.
    approval: ApprovalConfig {
        /// Seconds after which an unanswered approval counts as refused; 0 means never.
        timeout_seconds: u64 = 0, ValueType::integer(0, 3650 * DAY), EnvNames::Standard;
    }
    /// What may happen.
    policy: PolicyConfig {
        /// Directory of the operator's own policies (`*.cedar`), which apply in addition to the shipped ones; none when left out.
        directory: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
    }
    /// Processes that tools start, each in a sandbox of its own.
    process: ProcessConfig {
        /// Seconds of processor time that a process and its children may use.
        cpu_seconds: u64 = 60, ValueType::integer(1, DAY), EnvNames::Standard;
        /// Bytes of memory that they may use.
        memory_bytes: u64 = 536_870_912, ValueType::integer(16_777_216, MAX), EnvNames::Standard;
        /// Most processes and threads at the same time.
        max_processes: u32 = 256, ValueType::integer(1, 100_000), EnvNames::Standard;
        /// Bytes of each output stream that the model gets to see, half from the beginning and half from the end; all of it is kept as an artifact.
        output_bytes: u64 = 1_048_576, ValueType::integer(1_024, 67_108_864), EnvNames::Standard;
        /// Directories outside the workspace that processes may read, such as toolchains; those that do not exist are skipped. `~/` is the
        /// home directory.
        read_only: Vec<String> = own(&["~/.cargo/bin", "~/.cargo/registry", "~/.rustup", "~/.local/bin", "~/.nvm"]),
            ValueType::List, EnvNames::Standard;
        /// Environment variables that processes inherit, by name; everything else is cleared.
        env: Vec<String> = own(&["LANG", "LC_ALL", "TERM", "TZ"]), ValueType::List, EnvNames::Standard;
        /// Hosts that processes may reach through the egress proxy, one rule each, such as `https://crates.io` or `GET https://*.example.org/api`;
        /// none when empty.
        network: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
        /// Secrets that the proxy puts into requests of processes to one host, which never see them, such as
        /// `api.example.org Authorization: Bearer {env:API_TOKEN}`.
        credentials: Vec<String> = Vec::new(), ValueType::List, EnvNames::FileOnly;
    }
    /// Outbound connections of tools.
    egress: EgressConfig {
        /// Hosts with private or loopback addresses that tools may reach although such addresses are refused, by name.
        private_hosts: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
        /// File of certificate authorities (PEM) to trust in addition to the built-in ones.
        ca_file: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
    }
    /// The fetch tool.
    fetch: FetchConfig {
        /// Largest response in bytes, after decompression.
        max_bytes: u64 = 4_194_304, ValueType::integer(1_024, 1_073_741_824), EnvNames::Standard;
        /// Seconds that a fetch may take, redirects included.
        timeout_seconds: u64 = 30, ValueType::integer(1, 600), EnvNames::Standard;
        /// Redirects that are followed, each checked like the first address.
        max_redirects: u32 = 5, ValueType::integer(0, 20), EnvNames::Standard;
    }
    /// Ceilings for WebAssembly plugins; a skill's manifest may ask for less, never for more.
    plugins: PluginsConfig {
        /// Whether `skill.call` may carry its own module instead of naming an installed skill.
        allow_inline_modules: bool = false, ValueType::Bool, EnvNames::FileOnly;
        /// Largest module in bytes.
        max_module_bytes: u64 = 33_554_432, ValueType::integer(1_024, 268_435_456), EnvNames::Standard;
        /// Units of work that one call may use; about one per instruction.
        fuel_budget: u64 = 1_000_000_000, ValueType::integer(1_000, MAX), EnvNames::Standard;
        /// Bytes of memory that one call may use.
        max_memory_bytes: u64 = 268_435_456, ValueType::integer(65_536, 4_294_967_296), EnvNames::Standard;
        /// Milliseconds that one call may take, including waiting.
        wall_clock_ms: u64 = 120_000, ValueType::integer(10, 600_000), EnvNames::Standard;
        /// Bytes that one call may return.
        max_output_bytes: u64 = 1_048_576, ValueType::integer(1_024, 67_108_864), EnvNames::Standard;
        /// Calls that work at the same time; more wait.
        max_concurrent: u32 = 64, ValueType::integer(1, 1_000), EnvNames::Standard;
    }
    /// Skills: where they come from and how they are checked.
    skills: SkillsConfig {
        /// Whether a person who installs a skill may accept a publisher that is not trusted yet.
        trust_on_first_use: bool = true, ValueType::Bool, EnvNames::Standard;
        /// Seconds after which installed skills are audited again, and their registries are checked for revocations.
        audit_interval_seconds: u64 = 86_400, ValueType::integer(1, 365 * DAY), EnvNames::Standard;
        /// Directories of `SKILL.md` folders whose instructions runs may read. `~/` is the home directory.
        directories: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
        /// Registries that skills are installed from, each as `NAME ADDRESS`, such as `team https://skills.example.org/` or `local file:/srv/skills`.
        registries: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
    }
    /// Where tokens and devices may work. The local owner works in any directory; everybody else needs a root, from here or by `palyra workspaces grant`.
    workspaces: WorkspacesConfig {
        /// Directories below which principals may work, each as `PRINCIPAL DIRECTORY`, such as `user:ci /srv/ci`; `*` stands for every principal.
        roots: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
        /// What is yours although it lies in a clone or a repository of its own: directories such as `~/src`, and remotes such as `github.com/me`. Files of other clones, and of dependencies and downloads, are treated as text that anyone may have written.
        trusted: Vec<String> = Vec::new(), ValueType::List, EnvNames::Standard;
    }
    /// The OpenAI-compatible interface.
    openai: OpenaiConfig {
        /// Directory in which its runs work unless a request names another; without one each conversation gets an empty directory of its own.
        workspace: Option<PathBuf> = None, ValueType::Path, EnvNames::Standard;
        /// Seconds for which a request that does not stream waits for an approval before it is answered with `run_waits_for_person`.
        approval_wait_seconds: u64 = 60, ValueType::integer(1, DAY), EnvNames::Standard;
    }
}

fn own(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

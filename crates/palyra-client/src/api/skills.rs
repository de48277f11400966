//! Skills: signed packages of WebAssembly tools and hooks, and how far each is trusted.

use std::collections::BTreeMap;

use palyra_common::{Digest, SkillStatus, SkillTrust, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All installed skills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListSkillsResponse {
    /// By id.
    pub skills: Vec<SkillView>,
}

/// One installed skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillView {
    /// What it is found by; its tools are called `<skill_id>.<tool>`.
    pub skill_id: String,
    /// A few words for people.
    pub name: String,
    /// Installed version.
    pub version: String,
    /// Who signed it.
    pub publisher: String,
    /// The key it was signed with.
    pub key_id: String,
    /// How far its publisher is trusted.
    pub trust: SkillTrust,
    /// Whether it may run.
    pub status: SkillStatus,
    /// Why it has that status.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub reason: String,
    /// What the last audit said: `pass`, `warn` or `fail`.
    pub audit: String,
    /// Digest of its archive.
    pub digest: Digest,
    /// The registry that it came from, if it came from one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub registry: Option<String>,
    /// Since when it is installed.
    pub installed_at: Timestamp,
    /// Its tools, by their full names.
    pub tools: Vec<String>,
    /// Ids of its hooks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hooks: Vec<String>,
}

/// One skill with everything there is to know about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillDetail {
    /// The skill.
    #[serde(flatten)]
    pub skill: SkillView,
    /// What it may reach at most, as its manifest says.
    pub capabilities: SkillPowersView,
    /// What it is really granted: the manifest, narrowed by the operator.
    pub granted: SkillPowersView,
    /// Settings by key.
    pub config: BTreeMap<String, String>,
    /// What the last audit found.
    pub findings: Vec<SkillFindingView>,
    /// When the last audit was that found something new, or that a person asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub audited_at: Option<Timestamp>,
}

/// What a skill may reach.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillPowersView {
    /// Rules such as `GET https://api.example.org`.
    #[serde(default)]
    pub http: Vec<String>,
    /// Secrets, by name.
    #[serde(default)]
    pub secrets: Vec<SkillSecretView>,
    /// Storage spaces, by name.
    #[serde(default)]
    pub storage: Vec<String>,
    /// Channels it may write to.
    #[serde(default)]
    pub channels: Vec<String>,
}

/// A secret that a skill may use.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillSecretView {
    /// Its name in the manifest.
    pub name: String,
    /// Whether the skill may read its value, and not only have it put into requests.
    pub reveal: bool,
    /// Where the secret is, such as `env:TOKEN`, once the operator said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
}

/// One thing that an audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SkillFindingView {
    /// A stable name.
    pub code: String,
    /// `pass`, `warn` or `fail`.
    pub severity: String,
    /// A sentence for people.
    pub message: String,
}

/// A piece of an archive. Pieces are handed over in order; the first has offset 0 and begins anew.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UploadSkillParams {
    /// SHA-256 of the whole archive.
    pub digest: Digest,
    /// Bytes of the whole archive.
    #[schemars(range(min = 1, max = 67_108_864))]
    pub size: u64,
    /// Where this piece begins.
    pub offset: u64,
    /// The piece, as base64; at most 1 MiB of bytes.
    #[schemars(length(max = 1_398_104))]
    pub data: String,
}

/// How much of an archive the daemon has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct UploadSkillResponse {
    /// Bytes it has.
    pub received: u64,
    /// Whether that is all of it, and it has the digest that was announced.
    pub complete: bool,
}

/// Installs what was handed over, or what a registry has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InstallSkillParams {
    /// The archive, handed over before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub archive: Option<Digest>,
    /// Or a skill of a configured registry, as `REGISTRY/SKILL` or `REGISTRY/SKILL@VERSION`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from_registry: Option<String>,
    /// Id of the publisher's key, if a person has looked at it and accepts a publisher that nobody has trusted before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accept_key: Option<String>,
    /// Whether it stays switched off for now.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keep_disabled: bool,
}

/// Why something about a skill or a publisher is changed.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChangeSkillParams {
    /// The reason, for the journal; needed where a skill leaves quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 500))]
    pub reason: Option<String>,
}

/// What a skill may use from now on. What is left out stays as it is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ConfigureSkillParams {
    /// Settings by key; an empty text takes one back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, String>,
    /// Where secrets are, by their names in the manifest, such as `env:TOKEN`; an empty text takes one back.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub secrets: BTreeMap<String, String>,
    /// Secrets whose value the skill may read; only those for which its manifest asks that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reveal: Option<Vec<String>>,
    /// The only rules of its manifest that hold; `[]` for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http: Option<Vec<String>>,
    /// The only channels of its manifest that it may write to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<Vec<String>>,
}

/// Calls a tool of a skill outside a run, as its operator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CallSkillParams {
    /// Id of the tool in the skill.
    pub tool: String,
    /// Its input.
    #[serde(default)]
    pub input: Value,
    /// A module to use instead of the installed one, as base64; refused unless `plugins.allow_inline_modules` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 6_000_000))]
    pub module: Option<String>,
}

/// What a call gave.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CallSkillResponse {
    /// Its output.
    pub output: Value,
    /// Units of work it used.
    pub fuel: u64,
    /// Bytes of memory it used at most.
    pub memory_bytes: u64,
    /// Microseconds it took.
    pub micros: u64,
    /// How often it asked the host for something, by interface.
    pub host_calls: BTreeMap<String, u32>,
}

/// Everybody who signed something here, or whom the operator trusts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ListPublishersResponse {
    /// By name.
    pub publishers: Vec<PublisherView>,
}

/// One publisher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PublisherView {
    /// The name that skills give.
    pub publisher: String,
    /// The key that counts for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key_id: Option<String>,
    /// How far it is trusted.
    pub trust: SkillTrust,
    /// Keys that count no more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked_keys: Vec<String>,
}

/// Trusts a publisher's key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TrustPublisherParams {
    /// The name that skills give.
    pub publisher: String,
    /// Its public key, as `palyra skills keygen` prints it.
    pub public_key: String,
    /// Why, for the journal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// What a publisher signed about itself, for the daemon to check and take in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ImportStatementParams {
    /// The file as it is, a signed envelope in JSON: a change of keys or a list of revocations.
    #[schemars(length(max = 4_000_000))]
    pub statement: String,
}

/// What a publisher's word came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportStatementResponse {
    /// The publisher as it is now.
    pub publisher: PublisherView,
    /// The key that took the place of another, if keys were changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub new_key: Option<String>,
    /// Keys that were taken back and had not been before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked_keys: Vec<String>,
    /// Digests of the contents of archives that were taken back and had not been before.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked_archives: Vec<Digest>,
    /// Skills that are in quarantine because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

/// Revokes a key for good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeKeyParams {
    /// Its id, `key:` and 32 hexadecimal digits.
    pub key_id: String,
    /// Why, for the journal.
    #[schemars(length(min = 1, max = 500))]
    pub reason: String,
}

/// What revoking a key came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RevokeKeyResponse {
    /// The key.
    pub key_id: String,
    /// Skills that are in quarantine because of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<String>,
}

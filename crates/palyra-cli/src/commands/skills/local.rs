//! `palyra skills run --local` and `palyra skills test`: plugins here and now, without a daemon.
//!
//! A call gets what its manifest asks for, and every request to the host is shown. Cases answer requests from their own file, so they reach nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use palyra_client::api::CallSkillParams;
use palyra_client::command::{About, Command, SkillName};
use palyra_common::{ExitCode, HookEvent, SecretRef, SystemClock, ToStableError as _};
use palyra_egress::{Egress, EgressOptions, PrivateHost};
use palyra_executors::{NoChannels, SECRET_SETTING, SkillHost, SkillServices, SkillStorage, grant_set, skill_settings};
use palyra_plugins_build::{Reuse, SkillCases};
use palyra_plugins_runtime::{
    CallOptions, ExecutionMode, HookCall, HostServices, Plugin, PluginRuntime, PluginUsage, RuntimeLimits,
    RuntimeOptions, ToolCall,
};
use palyra_skills::{ArchiveInput, ArchiveLimits, SkillArchive, pack};

use super::cases::CaseHost;
use super::make;
use super::shown::{LocalSecrets, Shown};
use crate::context::Context;
use crate::error::CliError;

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Run it in this program, without a daemon
    #[arg(long)]
    local: bool,
    /// With --local a folder or an archive, otherwise the id of an installed skill
    #[arg(value_name = "SKILL")]
    subject: String,
    /// Id of the tool
    tool: String,
    /// Its input, as JSON
    #[arg(default_value = "{}")]
    input: String,
    /// A setting, as KEY=VALUE
    #[arg(long = "config", value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Where a secret is, as NAME=env:VARIABLE or NAME=file:PATH
    #[arg(long = "secret", value_name = "NAME=REFERENCE")]
    secrets: Vec<String>,
    /// Let it reach this host although its address is private, such as loopback:localhost
    #[arg(long = "private-host", value_name = "HOST")]
    private_hosts: Vec<String>,
    /// Make time and randomness the same every time, from this number
    #[arg(long, value_name = "SEED")]
    deterministic: Option<u64>,
}

/// What to test.
#[derive(Debug, Args)]
pub(crate) struct TestArguments {
    /// Folder of the skill; it is built first
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

pub(super) async fn run(given: RunArguments, context: &Context) -> Result<ExitCode, CliError> {
    let input: serde_json::Value = serde_json::from_str(&given.input).map_err(|error| CliError::Usage {
        reason: format!("the input is no JSON: {error}"),
        usage: Some("palyra skills run --local FOLDER TOOL '{\"key\": \"value\"}'".to_owned()),
    })?;
    if !given.local {
        let params = CallSkillParams { tool: given.tool, input, module: None };
        let about = About { target: SkillName(given.subject), params };
        let answer = context.client()?.execute(&Command::SkillCall(about)).await?;
        return super::call::show(&answer, context);
    }
    let skill = LocalSkill::open(Path::new(&given.subject))?;
    let manifest = skill.archive.manifest();
    let tool = manifest.tools.iter().find(|tool| tool.id == given.tool).ok_or_else(|| CliError::Usage {
        reason: format!("`{}` has no tool `{}`", manifest.skill_id, given.tool),
        usage: Some(format!("one of {}", names(manifest.tools.iter().map(|tool| tool.id.as_str())))),
    })?;
    let mut set: BTreeMap<String, String> = super::configure::pairs("--config", &given.config)?;
    for (name, reference) in super::configure::pairs("--secret", &given.secrets)? {
        reference.parse::<SecretRef>().map_err(|error| CliError::Usage { reason: error.to_string(), usage: None })?;
        set.insert(format!("{SECRET_SETTING}{name}"), reference);
    }
    let plugin = skill.plugin(&tool.id, tool.module.as_deref())?;
    let host = SkillHost::new(
        manifest.skill_id.as_str(),
        "a local run",
        services(&given.private_hosts, context)?,
        Arc::new(skill_settings(manifest, &set)),
    );
    let shown = Shown::new(host, context.console.clone());
    let mut options = skill.options(Arc::new(shown));
    if let Some(seed) = given.deterministic {
        options.mode = ExecutionMode::Deterministic { now: palyra_common::Timestamp(0), seed };
    }
    let call = ToolCall { tool: tool.id.clone(), input: input.to_string(), options };
    match skill.runtime.call_tool(&plugin, call).await {
        Ok(finished) => {
            let value: serde_json::Value =
                serde_json::from_str(&finished.value).unwrap_or(serde_json::Value::String(finished.value));
            if context.console.is_text() {
                context.console.line(&serde_json::to_string_pretty(&value).unwrap_or_default())?;
            } else {
                let document = serde_json::json!({
                    "output": value, "fuel": finished.usage.fuel, "memory_bytes": finished.usage.memory_bytes,
                    "host_calls": finished.usage.host_calls,
                });
                context.console.document(&document)?;
            }
            context.console.remark(&used(&finished.usage));
            Ok(ExitCode::Ok)
        }
        Err(failed) => {
            context.console.remark(&used(&failed.usage));
            Err(CliError::Plugin(Box::new(failed.to_stable())))
        }
    }
}

pub(super) async fn test(given: &TestArguments, context: &Context) -> Result<ExitCode, CliError> {
    let skill = LocalSkill::open(&given.folder)?;
    let (mut passed, mut failed) = (0_usize, 0_usize);
    for file in SkillCases::read_all(&given.folder)? {
        for case in &file.cases {
            let host = Arc::new(CaseHost::new(case, skill.archive.manifest()));
            let outcome = skill.case(case, Arc::clone(&host)).await?;
            let told = outcome.as_ref().map(String::as_str).map_err(String::as_str);
            let verdict = host.complaint().map_or_else(|| case.check(told, host.requests(), &host.stored()), Err);
            match verdict {
                Ok(()) => {
                    passed += 1;
                    context.console.line(&format!("ok    {}", case.name))?;
                }
                Err(failure) => {
                    failed += 1;
                    context.console.line(&format!("FAIL  {}: {failure}", case.name))?;
                }
            }
        }
    }
    context.console.line(&format!("{passed} passed, {failed} failed"))?;
    if passed + failed == 0 {
        context.console.remark("there are no cases; put some into tests/*.json");
    }
    Ok(if failed == 0 { ExitCode::Ok } else { ExitCode::Precondition })
}

/// A skill in a folder or an archive, ready to be called.
struct LocalSkill {
    archive: SkillArchive,
    runtime: PluginRuntime,
}

impl LocalSkill {
    /// Reads an archive, or builds and packs a folder in memory.
    fn open(path: &Path) -> Result<Self, CliError> {
        let bytes = if path.is_dir() {
            make::built(path, Reuse::Cached)?;
            pack(ArchiveInput::from_folder(path, &ArchiveLimits::default())?)?
        } else {
            std::fs::read(path).map_err(super::file("read", path))?
        };
        let runtime = PluginRuntime::new(RuntimeOptions {
            allocation: palyra_plugins_runtime::Allocation::OnDemand { calls: 1 },
            ..RuntimeOptions::default()
        });
        let runtime = runtime.map_err(|error| CliError::Plugin(Box::new(error.to_stable())))?;
        Ok(Self { archive: SkillArchive::read(&bytes)?, runtime })
    }

    fn plugin(&self, entrypoint: &str, module: Option<&str>) -> Result<Arc<Plugin>, CliError> {
        let (_, wasm) = self.archive.module_of(entrypoint, module)?;
        self.runtime.prepare(wasm).map_err(|error| CliError::Plugin(Box::new(error.to_stable())))
    }

    /// What the manifest asks for, as if it were all granted.
    fn options(&self, services: Arc<dyn HostServices>) -> CallOptions {
        let manifest = self.archive.manifest();
        let limits = RuntimeLimits {
            fuel_budget: manifest.quotas.fuel_budget,
            max_memory_bytes: manifest.quotas.max_memory_bytes,
            wall_clock: std::time::Duration::from_millis(manifest.quotas.wall_clock_timeout_ms),
            ..RuntimeLimits::default()
        };
        CallOptions { limits, grants: grant_set(&manifest.capabilities), services, ..CallOptions::default() }
    }

    /// Runs one case: what it gave as a JSON text, or the error in words.
    async fn case(
        &self,
        case: &palyra_plugins_build::Case,
        host: Arc<CaseHost>,
    ) -> Result<Result<String, String>, CliError> {
        let manifest = self.archive.manifest();
        let options = self.options(host);
        if let Some(tool) = &case.tool {
            let entry = manifest.tools.iter().find(|entry| entry.id == *tool);
            let plugin = self.plugin(tool, entry.and_then(|entry| entry.module.as_deref()))?;
            let call = ToolCall { tool: tool.clone(), input: case.input_text(), options };
            let ended = self.runtime.call_tool(&plugin, call).await;
            return Ok(ended.map(|finished| finished.value).map_err(|failed| failed.to_string()));
        }
        let Some(hook) = &case.hook else { return Ok(Err("the case names neither tool nor hook".to_owned())) };
        let event: HookEvent = match hook.event.parse() {
            Ok(event) => event,
            Err(error) => return Ok(Err(format!("{error}"))),
        };
        let entry = manifest.hooks.iter().find(|entry| entry.events.contains(&event));
        let plugin = self.plugin(&hook.event, entry.and_then(|entry| entry.module.as_deref()))?;
        let asked = HookCall {
            event,
            at: palyra_common::Clock::now(&SystemClock),
            run_id: hook.run_id.clone(),
            payload: hook.payload.to_string(),
            options,
        };
        let ended = self.runtime.call_hook(&plugin, asked).await;
        Ok(ended
            .map(|finished| {
                let answer = finished.value;
                serde_json::json!({"verdict": answer.verdict, "reason": answer.reason, "text": answer.text}).to_string()
            })
            .map_err(|failed| failed.to_string()))
    }
}

fn services(private_hosts: &[String], context: &Context) -> Result<SkillServices, CliError> {
    let wrong = |error: palyra_egress::EgressError| CliError::Plugin(Box::new(error.to_stable()));
    let secrets = Arc::new(LocalSecrets(context.environment.clone()));
    let options = EgressOptions { secrets: secrets.clone(), ..EgressOptions::default() };
    let storage =
        SkillStorage::in_memory().map_err(|error| CliError::Usage { reason: error.to_string(), usage: None })?;
    Ok(SkillServices {
        client: Egress::new(options).map_err(wrong)?.client(),
        secrets,
        storage: Arc::new(storage),
        channels: Arc::new(NoChannels),
        private_hosts: private_hosts
            .iter()
            .map(|host| PrivateHost::parse(host))
            .collect::<Result<_, _>>()
            .map_err(wrong)?,
    })
}

fn used(usage: &PluginUsage) -> String {
    let calls: Vec<String> = usage.host_calls.iter().map(|(name, count)| format!("{name} {count}×")).collect();
    let calls = if calls.is_empty() { "no host calls".to_owned() } else { calls.join(", ") };
    format!("{} fuel, {} KiB of memory, {} µs; {calls}", usage.fuel, usage.memory_bytes / 1024, usage.wall.as_micros())
}

fn names<'a>(names: impl Iterator<Item = &'a str>) -> String {
    names.collect::<Vec<_>>().join(", ")
}

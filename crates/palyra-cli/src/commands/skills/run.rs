//! `palyra skills run`: one call of a tool, in this program with `--local`, in the daemon without.
//!
//! Locally every request to the host is shown, with what the call used.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use clap::Args;
use palyra_client::api::CallSkillParams;
use palyra_client::command::{About, Command, SkillName, invalid_field};
use palyra_common::{ExitCode, SecretRef, StableErrorEnvelope, ToStableError as _};
use palyra_egress::{Egress, EgressOptions, PrivateHost};
use palyra_executors::{
    NoChannels, SECRET_SETTING, SkillHost, SkillServices, SkillStorage, output_invalid, skill_settings,
};
use palyra_plugins_runtime::{ExecutionMode, PluginUsage, ToolCall};
use palyra_skills::{SkillManifest, ToolEntrypoint};

use super::local::{LocalSkill, schemas};
use super::shown::{LocalSecrets, Shown};
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;
use crate::numbers;

/// How the command is written.
pub(super) const USAGE: &str = "palyra skills run --local [FOLDER|ARCHIVE] TOOL ['{\"key\": \"value\"}']\n       \
                                palyra skills run SKILL TOOL ['{\"key\": \"value\"}']";

/// What to run.
#[derive(Debug, Args)]
pub(crate) struct RunArguments {
    /// Run it in this program, without a daemon
    #[arg(long)]
    local: bool,
    /// The skill, the id of its tool, and the input as JSON. With --local the skill is a folder or an archive [default: the current folder]; otherwise it is
    /// the id of an installed one
    #[arg(value_name = "[SKILL] TOOL [INPUT]", num_args = 1..=3, required = true)]
    words: Vec<String>,
    /// A setting, as KEY=VALUE
    #[arg(long = "config", value_name = "KEY=VALUE")]
    config: Vec<String>,
    /// Where to find a secret, as NAME=env:VARIABLE or NAME=file:PATH
    #[arg(long = "secret", value_name = "NAME=REFERENCE")]
    secrets: Vec<String>,
    /// Allow this host although its address is private, such as loopback:localhost
    #[arg(long = "private-host", value_name = "HOST")]
    private_hosts: Vec<String>,
    /// Seed for reproducible time and randomness
    #[arg(long, value_name = "SEED", value_parser = numbers::at_least::<u64>(0))]
    deterministic: Option<u64>,
}

/// What the words mean.
#[derive(Debug, PartialEq)]
struct Wanted<'a> {
    skill: &'a str,
    tool: &'a str,
    input: &'a str,
}

impl RunArguments {
    /// The skill may be left out where it can be told: inputs are records, and no tool's id begins like one.
    fn wanted(&self) -> Option<Wanted<'_>> {
        let is_input = |word: &str| word.trim_start().starts_with('{');
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        match (words.as_slice(), self.local) {
            ([tool], true) => Some(Wanted { skill: ".", tool, input: "{}" }),
            ([tool, input], true) if is_input(input) => Some(Wanted { skill: ".", tool, input }),
            ([skill, tool], _) if !is_input(tool) => Some(Wanted { skill, tool, input: "{}" }),
            ([skill, tool, input], _) => Some(Wanted { skill, tool, input }),
            _ => None,
        }
    }
}

pub(super) async fn execute(given: RunArguments, context: &Context) -> Result<ExitCode, CliError> {
    let wrong = |reason: String| CliError::Usage {
        reason,
        usage: Some("palyra skills run [--local] [SKILL] TOOL ['{\"key\": \"value\"}']".to_owned()),
    };
    let wanted = given.wanted().ok_or_else(|| wrong("expected a skill and a tool".to_owned()))?;
    let input: serde_json::Value =
        serde_json::from_str(wanted.input).map_err(|error| wrong(format!("the input is not valid JSON: {error}")))?;
    if !given.local {
        let params = CallSkillParams { tool: wanted.tool.to_owned(), input, module: None };
        let about = About { target: SkillName(wanted.skill.to_owned()), params };
        let answer = launcher::connect(context).await?.execute(&Command::SkillCall(about)).await?;
        return super::call::show(&answer, context);
    }
    let skill = LocalSkill::open(Path::new(wanted.skill))?;
    let manifest = skill.manifest();
    let tool = skill.tool(wanted.tool).ok_or_else(|| no_tool(manifest, wanted.tool))?;
    let schemas = schemas(tool).map_err(|reason| refused(invalid_field("skill.toml", reason)))?;
    schemas.input.check(&input).map_err(|errors| refused(invalid_field("input", errors.join("; "))))?;
    let plugin = skill.plugin(&tool.id, tool.module.as_deref())?;
    let call = ToolCall { tool: tool.id.clone(), input: input.to_string(), options: options(&given, &skill, context)? };
    match skill.runtime.call_tool(&plugin, call).await {
        Ok(finished) => {
            context.console.remark(&used(&finished.usage));
            let name = manifest.tool_name(tool);
            let value = schemas.read_output(&finished.value).map_err(|why| refused(output_invalid(&name, &why)))?;
            if context.console.is_text() {
                context.console.line(&serde_json::to_string_pretty(&value).unwrap_or_default())?;
            } else {
                let document = serde_json::json!({
                    "output": value, "fuel": finished.usage.fuel, "memory_bytes": finished.usage.memory_bytes,
                    "host_calls": finished.usage.host_calls,
                });
                context.console.document(&document)?;
            }
            Ok(ExitCode::Ok)
        }
        Err(failed) => {
            context.console.remark(&used(&failed.usage));
            Err(refused(failed.to_stable()))
        }
    }
}

/// What a local call gets: all that the manifest asks for, and what was given on the command line.
fn options(
    given: &RunArguments,
    skill: &LocalSkill,
    context: &Context,
) -> Result<palyra_plugins_runtime::CallOptions, CliError> {
    let mut set: BTreeMap<String, String> = super::configure::pairs("--config", &given.config)?;
    for (name, reference) in super::configure::pairs("--secret", &given.secrets)? {
        reference.parse::<SecretRef>().map_err(|error| CliError::Usage { reason: error.to_string(), usage: None })?;
        set.insert(format!("{SECRET_SETTING}{name}"), reference);
    }
    let manifest = skill.manifest();
    let host = SkillHost::new(
        manifest.skill_id.as_str(),
        "a local run",
        services(&given.private_hosts, context)?,
        Arc::new(skill_settings(manifest, &set)),
    );
    let mut options = skill.options(Arc::new(Shown::new(host, context.console.clone())));
    if let Some(seed) = given.deterministic {
        options.mode = ExecutionMode::Deterministic { now: palyra_common::Timestamp(0), seed };
    }
    Ok(options)
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

fn no_tool(manifest: &SkillManifest, wanted: &str) -> CliError {
    let there: Vec<&str> = manifest.tools.iter().map(|tool: &ToolEntrypoint| tool.id.as_str()).collect();
    let usage = match there.as_slice() {
        [] => "it has only hooks; test them with `palyra skills test`".to_owned(),
        there => format!("its tools are {}", there.join(", ")),
    };
    CliError::Usage { reason: format!("`{}` has no tool `{wanted}`", manifest.skill_id), usage: Some(usage) }
}

fn refused(envelope: StableErrorEnvelope) -> CliError {
    CliError::Plugin(Box::new(envelope))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Typed {
        #[command(flatten)]
        run: RunArguments,
    }

    /// Skill, tool and input of a command line.
    fn meant(words: &[&str]) -> Option<[String; 3]> {
        let typed = Typed::parse_from(std::iter::once(&"run").chain(words));
        typed.run.wanted().map(|wanted| [wanted.skill, wanted.tool, wanted.input].map(str::to_owned))
    }

    #[test]
    fn the_skill_may_be_left_out_in_its_own_folder() {
        let is = |skill: &str, tool: &str, input: &str| Some([skill, tool, input].map(str::to_owned));
        assert_eq!(meant(&["--local", "greet", "{}"]), is(".", "greet", "{}"));
        assert_eq!(meant(&["--local", "greet"]), is(".", "greet", "{}"));
        assert_eq!(meant(&["--local", "hello", "greet"]), is("hello", "greet", "{}"));
        assert_eq!(meant(&["--local", "hello", "greet", "[1]"]), is("hello", "greet", "[1]"));
        assert_eq!(meant(&["acme.hello", "greet", " {}"]), is("acme.hello", "greet", " {}"));
        assert_eq!(meant(&["acme.hello", "greet"]), is("acme.hello", "greet", "{}"));
        assert_eq!(meant(&["greet"]), None);
        assert_eq!(meant(&["greet", "{}"]), None);
    }
}

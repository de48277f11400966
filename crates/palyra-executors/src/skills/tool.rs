//! One tool of a skill, as the engine calls it.
//!
//! The declaration says what the manifest says; limits and grants were narrowed before they came here. Input was checked against the schema by the registry,
//! output is checked here. What a plugin returns carries the label of its manifest and never more trust than the operator gave the skill.

use std::sync::Arc;

use async_trait::async_trait;
use palyra_common::{Digest, ErrorCategory, Label, SandboxTier, StableErrorEnvelope, ToStableError as _};
use palyra_plugins_runtime::{
    CallOptions, CapabilityGrantSet, ExecutionMode, Failed, Finished, Plugin, PluginError, PluginRuntime, PluginUsage,
    Revocation, RuntimeLimits, ToolCall,
};
use palyra_skills::SchemaValidator;
use palyra_tools::{CallResource, ExecutionFacts, Invocation, Tool, ToolDeclaration, ToolError, ToolOutput, Workspace};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::host::{SkillHost, SkillServices, SkillSettings};

/// Everything that the calls of one skill share.
#[derive(Clone)]
pub struct SkillRuntime {
    /// Runs plugins.
    pub runtime: PluginRuntime,
    /// What the host does for them.
    pub services: SkillServices,
}

/// A skill's module with what it may do.
#[derive(Clone)]
pub struct BoundPlugin {
    /// The skill.
    pub skill_id: String,
    /// Its module.
    pub plugin: Arc<Plugin>,
    /// What a call may use up.
    pub limits: RuntimeLimits,
    /// What it may reach.
    pub grants: CapabilityGrantSet,
    /// What the operator set.
    pub settings: Arc<SkillSettings>,
    /// Fires when the skill is switched off, changed or removed.
    pub revocation: Revocation,
}

impl BoundPlugin {
    /// The conditions of a call, with services of the skill's own.
    #[must_use]
    pub fn options(&self, services: SkillHost, cancel: CancellationToken) -> CallOptions {
        CallOptions {
            limits: self.limits.clone(),
            grants: self.grants.clone(),
            revocation: self.revocation.clone(),
            services: Arc::new(services),
            mode: ExecutionMode::Live,
            cancel,
        }
    }
}

/// What a tool takes and gives, compiled once.
pub struct ToolSchemas {
    /// Of the input.
    pub input: SchemaValidator,
    /// Of the output.
    pub output: SchemaValidator,
}

impl ToolSchemas {
    /// Compiles both; the error says what is wrong with which.
    pub fn compile(input: &Value, output: &Value) -> Result<Self, String> {
        let compiled =
            |which, schema| SchemaValidator::compile(schema).map_err(|reason| format!("the {which} schema: {reason}"));
        Ok(Self { input: compiled("input", input)?, output: compiled("output", output)? })
    }

    /// Reads what a tool gave and holds it against its schema; the error says what is wrong with it.
    pub fn read_output(&self, text: &str) -> Result<Value, String> {
        let value: Value = serde_json::from_str(text).map_err(|error| format!("it is not valid JSON: {error}"))?;
        self.output.check(&value).map_err(|errors| errors.join("; "))?;
        Ok(value)
    }
}

/// A tool gave what it must not, in words for whoever tries a skill. A model is not told why: that would be the skill's own words.
#[must_use]
pub fn output_invalid(tool: &str, why: &str) -> StableErrorEnvelope {
    let message = format!("`{tool}` returned what its manifest does not allow: {why}");
    StableErrorEnvelope::new("skill_output_invalid", ErrorCategory::Dependency, message)
        .hint("this is a bug in the skill; report it to its author")
}

/// One tool of a skill.
pub struct SkillTool {
    declaration: ToolDeclaration,
    /// Its id within the skill.
    tool: String,
    schemas: Arc<ToolSchemas>,
    bound: BoundPlugin,
    shared: SkillRuntime,
}

impl SkillTool {
    /// A tool with this declaration.
    #[must_use]
    pub fn new(
        declaration: ToolDeclaration,
        tool: &str,
        schemas: Arc<ToolSchemas>,
        bound: BoundPlugin,
        shared: SkillRuntime,
    ) -> Self {
        Self { declaration, tool: tool.to_owned(), schemas, bound, shared }
    }

    fn label(&self) -> Label {
        self.declaration.output.clone().from_source(format!("skill:{}", self.bound.skill_id))
    }
}

#[async_trait]
impl Tool for SkillTool {
    fn declaration(&self) -> &ToolDeclaration {
        &self.declaration
    }

    /// The call itself, of this very module: an approval does not hold for another version of the skill.
    fn resource(&self, arguments: &Value, _: &Workspace) -> Result<CallResource, ToolError> {
        let arguments = Digest::of(arguments.to_string().as_bytes());
        let key = format!("{}@{}#{arguments}", self.declaration.name, self.bound.plugin.digest());
        Ok(CallResource::tool(key))
    }

    fn summarise(&self, arguments: &Value) -> String {
        self.declaration.call_line(arguments)
    }

    async fn call(&self, invocation: Invocation) -> Result<ToolOutput, ToolError> {
        let tool = self.declaration.name.as_str();
        if let Err(errors) = self.schemas.input.check(&invocation.arguments) {
            return Err(ToolError::argument(tool, "arguments", "invalid", errors.join("; ")));
        }
        let call = format!("{} of run {}", invocation.effect_id, invocation.run_id);
        let services = self.shared.services.clone();
        let host = SkillHost::new(&self.bound.skill_id, &call, services, Arc::clone(&self.bound.settings))
            .with_progress(invocation.progress.clone());
        let mut options = self.bound.options(host, invocation.cancel.clone());
        options.limits.wall_clock = options.limits.wall_clock.min(invocation.time_limit);
        let call = ToolCall { tool: self.tool.clone(), input: invocation.arguments.to_string(), options };
        invocation.begin.record().await?;
        let ended = self.shared.runtime.call_tool(&self.bound.plugin, call).await;
        match ended {
            Ok(Finished { value, usage }) => self.output(&value, &usage, invocation.limits.inline_bytes),
            Err(Failed { error: PluginError::Cancelled, .. }) => Err(ToolError::Cancelled),
            Err(Failed { error, usage }) => Err(self.failed(&error, &usage)),
        }
    }
}

impl SkillTool {
    fn output(&self, text: &str, usage: &PluginUsage, inline_bytes: usize) -> Result<ToolOutput, ToolError> {
        let data = self.schemas.read_output(text).map_err(|why| self.bad_output(&why))?;
        let plain = data.as_str().unwrap_or(text);
        let mut output = ToolOutput::within(inline_bytes, plain, self.label());
        if !output.truncated {
            output.data = Some(data);
        }
        output.execution = Some(ExecutionFacts {
            executor: format!("skill {}", self.bound.skill_id),
            tier: Some(SandboxTier::A),
            fallback_reasons: Vec::new(),
            cpu_ms: None,
            memory_bytes: Some(usage.memory_bytes),
            output_bytes: Some(usage.output_bytes),
            timed_out: false,
        });
        Ok(output)
    }

    fn bad_output(&self, why: &str) -> ToolError {
        tracing::warn!(tool = %self.declaration.name, why, "a skill returned what it must not");
        let message = format!("`{}` returned what its manifest does not allow", self.declaration.name);
        let envelope = StableErrorEnvelope::new("skill_output_invalid", ErrorCategory::Dependency, message)
            .hint("this is a bug in the skill; report it to its author");
        ToolError::Custom(Box::new(envelope))
    }

    /// Code and category are ours; what the plugin itself said is untrusted and goes to the log, apart from what it says about its input.
    fn failed(&self, error: &PluginError, usage: &PluginUsage) -> ToolError {
        let mut envelope = error.to_stable();
        tracing::warn!(tool = %self.declaration.name, error = %envelope, fuel = usage.fuel, "a skill's tool failed");
        envelope.message = match error {
            PluginError::InvalidInput(_) => format!("`{}` cannot work with this input", self.declaration.name),
            PluginError::GuestFailed(_) => format!("`{}` failed", self.declaration.name),
            _ => format!("`{}`: {}", self.declaration.name, envelope.message),
        };
        let used = serde_json::json!({
            "fuel": usage.fuel,
            "memory_bytes": usage.memory_bytes,
            "host_calls": usage.host_calls,
        });
        ToolError::Custom(Box::new(envelope.details(used)))
    }
}

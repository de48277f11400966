//! `palyra sandbox prove`: every denial tried for real, and a failure if one does not hold.

use palyra_common::{ExitCode, SandboxTier};
use palyra_sandbox::{Sandbox, missing_for, prove};
use serde_json::json;

use super::launcher;
use crate::context::Context;
use crate::error::CliError;

pub(super) fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let sandbox = Sandbox::start(launcher())?;
    let host = sandbox.host_facts()?;
    let mut documents = Vec::new();
    let mut failed = None;
    for tier in [SandboxTier::B, SandboxTier::C] {
        let missing = missing_for(tier, &host);
        if !missing.is_empty() {
            context.console.line(&format!("tier {}: not available: {}", tier.as_str(), missing.join("; ")))?;
            continue;
        }
        context.console.progress(&format!("trying to break out of tier {}…", tier.as_str()));
        let report = prove(&sandbox, &host, tier, &std::env::temp_dir())?;
        context.console.wipe_progress();
        let held = report.checks.iter().filter(|check| check.held).count();
        if context.console.is_text() {
            context.console.line(&format!(
                "tier {}: {held} of {} checks passed",
                tier.as_str(),
                report.checks.len()
            ))?;
            for check in report.checks.iter().filter(|check| !check.held) {
                context.console.line(&format!("  FAILED {}: {}", check.name, check.detail))?;
            }
        }
        documents.push(json!({ "tier": tier, "held": held, "checks": report.checks }));
        failed = failed.or(report.require().err());
    }
    if !context.console.is_text() {
        context.console.list(&documents, &documents)?;
    }
    failed.map_or(Ok(ExitCode::Ok), |error| Err(error.into()))
}

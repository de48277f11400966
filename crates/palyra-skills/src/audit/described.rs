//! What a module says about its tools when asked, against what its manifest says.
//!
//! The manifest is what people read and what was audited, so it is what counts; a module that says otherwise is careless or wants to be taken for something else.
//! Asking a module means running it, which is the caller's: here its answer is compared.

use serde_json::Value;

use super::report::{AuditCode, AuditReport, Findings};
use crate::SkillManifest;
use crate::error::shown;

/// A tool as its module describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DescribedTool {
    /// Its id.
    pub id: String,
    /// What the model is to read.
    pub description: String,
    /// JSON Schema of the input, as a text.
    pub input_schema: String,
    /// JSON Schema of the output, as a text.
    pub output_schema: String,
}

/// Compares the tools that a module describes with those that the manifest gives to that module.
#[must_use]
pub fn audit_described_tools(manifest: &SkillManifest, module: &str, described: &[DescribedTool]) -> AuditReport {
    let mut found = Findings::default();
    let at = Some(module);
    let declared: Vec<_> =
        manifest.tools.iter().filter(|tool| tool.module.as_deref().is_none_or(|named| named == module)).collect();
    for tool in &declared {
        let Some(own) = described.iter().find(|own| own.id == tool.id) else {
            found.fail(
                AuditCode::DescriptionMismatch,
                at,
                format!("`{module}` does not implement the tool `{}`", tool.id),
            );
            continue;
        };
        if own.description.trim() != tool.description.trim() {
            found.warn(
                AuditCode::DescriptionMismatch,
                at,
                format!("`{module}` and the manifest describe the tool `{}` differently", tool.id),
            );
        }
        for (what, own, declared) in
            [("input", &own.input_schema, &tool.input_schema), ("output", &own.output_schema, &tool.output_schema)]
        {
            if serde_json::from_str::<Value>(own).ok().as_ref() != Some(declared) {
                let message =
                    format!("`{module}` and the manifest have different {what} schemas for the tool `{}`", tool.id);
                found.warn(AuditCode::DescriptionMismatch, at, message);
            }
        }
    }
    for own in described.iter().filter(|own| !declared.iter().any(|tool| tool.id == own.id)).take(8) {
        let message = format!("`{module}` describes a tool `{}` that is not in the manifest", shown(&own.id));
        found.warn(AuditCode::DescriptionMismatch, at, message);
    }
    found.into_report()
}

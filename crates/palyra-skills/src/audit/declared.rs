//! The manifest by itself: what it asks for, and what it says to the model.

use std::net::{Ipv4Addr, Ipv6Addr};

use palyra_common::Integrity;
use palyra_safety::{Confidence, assess};
use serde_json::Value;

use super::report::{AuditCode, AuditSeverity, Findings};
use crate::manifest::{HostPattern, HttpRule, HttpScheme, Quotas, SecretUse};
use crate::{SkillArchive, SkillManifest};

/// Checks the manifest.
pub(super) fn check(archive: &SkillArchive, found: &mut Findings) {
    let manifest = archive.manifest();
    check_capabilities(manifest, found);
    check_quotas(manifest, found);
    check_tools(manifest, found);
    if manifest.integrity.is_empty() {
        found.warn(
            AuditCode::IntegrityMissing,
            Some(archive.manifest_path()),
            "the manifest does not list the skill's files",
        );
    }
}

fn check_capabilities(manifest: &SkillManifest, found: &mut Findings) {
    let asked = &manifest.capabilities;
    for rule in &asked.http {
        if rule.host.is_wildcard() {
            found.fail(
                AuditCode::CapabilityWildcard,
                None,
                format!("the rule `{rule}` allows every host or a whole top-level domain"),
            );
        } else if rule.scheme == HttpScheme::Http {
            found.warn(AuditCode::CapabilityRisky, None, format!("the rule `{rule}` allows unencrypted requests"));
        }
        if is_local(rule) {
            found.warn(
                AuditCode::CapabilityRisky,
                None,
                format!("the rule `{rule}` allows this machine, its network or a bare IP address"),
            );
        }
    }
    for secret in &asked.secrets {
        if secret.usage == SecretUse::Reveal {
            found.warn(
                AuditCode::SecretRevealed,
                None,
                format!("the skill asks to read the value of the secret `{}`", secret.name),
            );
        }
        for host in &secret.hosts {
            let reachable = asked.http.iter().any(|rule| rule.host.matches(host) || rule.host.to_string() == *host);
            if !reachable {
                found.warn(
                    AuditCode::SecretUnreachable,
                    None,
                    format!("the secret `{}` is for `{host}`, which no HTTP rule allows", secret.name),
                );
            }
        }
    }
}

/// Whether a rule leads to a bare address or a name of this machine or network.
fn is_local(rule: &HttpRule) -> bool {
    match &rule.host {
        HostPattern::Any => false,
        HostPattern::Exact(host) | HostPattern::Below(host) => {
            let bare = host.trim_start_matches('[').trim_end_matches(']');
            bare.parse::<Ipv4Addr>().is_ok()
                || bare.parse::<Ipv6Addr>().is_ok()
                || ["localhost", "local", "internal", "lan", "home.arpa", "localdomain"]
                    .iter()
                    .any(|name| host == name || host.ends_with(&format!(".{name}")))
                || (matches!(rule.host, HostPattern::Exact(_)) && !host.contains('.'))
        }
    }
}

fn check_quotas(manifest: &SkillManifest, found: &mut Findings) {
    let (asked, usual) = (manifest.quotas, Quotas::default());
    for (name, asked, usual) in [
        ("wall_clock_timeout_ms", asked.wall_clock_timeout_ms, usual.wall_clock_timeout_ms),
        ("fuel_budget", asked.fuel_budget, usual.fuel_budget),
        ("max_memory_bytes", asked.max_memory_bytes, usual.max_memory_bytes),
    ] {
        if asked > usual {
            found.note(AuditCode::QuotaRaised, None, format!("`{name}` is {asked}; {usual} is usual"));
        }
    }
}

fn check_tools(manifest: &SkillManifest, found: &mut Findings) {
    for tool in &manifest.tools {
        let open = tool.input_schema.get("properties").is_none()
            || tool.input_schema.get("additionalProperties").is_none_or(|more| more == &Value::Bool(true));
        if open {
            found.note(
                AuditCode::SchemaLoose,
                None,
                format!("the input schema of `{}` allows additional fields", tool.id),
            );
        }
        if tool.output_schema.as_object().is_some_and(serde_json::Map::is_empty) {
            found.note(AuditCode::SchemaLoose, None, format!("`{}` has no output schema", tool.id));
        }
        if tool.labels.integrity < Integrity::Untrusted && !manifest.capabilities.http.is_empty() {
            found.warn(
                AuditCode::LabelsLenient,
                None,
                format!("`{}` labels its results as trusted, but the skill reads from the network", tool.id),
            );
        }
        let schemas = format!("{} {}", tool.input_schema, tool.output_schema);
        for (what, text) in [("name", &tool.name), ("description", &tool.description), ("schemas", &schemas)] {
            check_words(&format!("the {what} of `{}`", tool.id), text, found);
        }
    }
    check_words("the name of the skill", &manifest.name, found);
    check_words("the description of the skill", &manifest.description, found);
}

/// Text that reaches the model must not be an instruction to it.
fn check_words(what: &str, text: &str, found: &mut Findings) {
    let severity = match assess(text.as_bytes()).confidence() {
        None => return,
        Some(Confidence::Low) => AuditSeverity::Note,
        Some(Confidence::Medium) => AuditSeverity::Warn,
        Some(Confidence::High) => AuditSeverity::Fail,
    };
    found.push(severity, AuditCode::InstructionsSuspicious, None, format!("{what} looks like a prompt injection"));
}

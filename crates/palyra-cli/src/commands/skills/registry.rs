//! `palyra skills registry …`: a directory that others install skills from.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use palyra_common::{Clock as _, ExitCode, SystemClock};
use palyra_skills::{
    ArchiveLimits, Envelope, PublisherKey, RegistryArtifact, RegistryIndex, RegistryLifetimes, RegistryRoles,
    RegistryWriter, SkillId, SkillVersion,
};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

/// What to do with a registry.
#[derive(Debug, Subcommand)]
pub(crate) enum RegistryCommand {
    /// Create a registry in a directory
    Create(RegistryArguments),
    /// Publish a signed archive or a publisher's revocation list
    Publish {
        #[command(flatten)]
        registry: RegistryArguments,
        /// The archive, or a list written by `palyra skills revoke`
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Revoke a version
    Revoke {
        #[command(flatten)]
        registry: RegistryArguments,
        /// The skill
        skill: SkillId,
        /// Its version
        version: SkillVersion,
        /// Reason
        #[arg(long)]
        reason: String,
    },
    /// Sign the index and timestamp again before they expire
    Renew(RegistryArguments),
    /// List the skills in a registry
    List {
        /// The directory
        directory: PathBuf,
    },
}

/// Which registry, and the key that speaks for it.
#[derive(Debug, Args)]
pub(crate) struct RegistryArguments {
    /// The directory
    directory: PathBuf,
    /// The registry's private key (`palyra skills keygen` creates one)
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
}

pub(super) fn execute(command: RegistryCommand, context: &Context) -> Result<ExitCode, CliError> {
    let now = SystemClock.now();
    match command {
        RegistryCommand::Create(given) => {
            let key = PublisherKey::load(&given.key)?;
            let lifetimes = RegistryLifetimes::default();
            let mut root = RegistryWriter::draft_first_root(RegistryRoles::of_one(key.public()), lifetimes, now)?;
            root.countersign(&key)?;
            let writer = RegistryWriter::create(&given.directory, &root, lifetimes, &[&key], now)?;
            let digest = writer.first_root_digest();
            let text = format!("Created registry {}; its first root is {digest}", given.directory.display());
            tell(context, &text, &json!({"directory": given.directory, "first_root": digest}))
        }
        RegistryCommand::Publish { registry, file } => {
            let (mut writer, key) = open(&registry)?;
            let bytes = std::fs::read(&file).map_err(super::file("read", &file))?;
            // An archive never begins like JSON.
            if bytes.trim_ascii_start().starts_with(b"{") {
                let list = writer.announce(&Envelope::parse(&bytes)?, &[&key], now)?;
                let text = format!("Published revocation list {} of {}", list.number, list.publisher);
                let document = json!({"publisher": list.publisher.to_string(), "number": list.number});
                return tell(context, &text, &document);
            }
            let artifact = writer.publish(&bytes, &ArchiveLimits::default(), &[&key], now)?;
            let text = format!("Published {} {}", artifact.skill_id, artifact.version);
            tell(context, &text, &json!(artifact))
        }
        RegistryCommand::Revoke { registry, skill, version, reason } => {
            let (mut writer, key) = open(&registry)?;
            writer.revoke(&skill, &version, &reason, &[&key], now)?;
            let text = format!("Revoked {skill} {version}");
            tell(context, &text, &json!({"skill_id": skill, "version": version, "reason": reason}))
        }
        RegistryCommand::Renew(given) => {
            let (mut writer, key) = open(&given)?;
            writer.renew(&[&key], now)?;
            let text = format!("Signed {} again", given.directory.display());
            tell(context, &text, &json!({"directory": given.directory, "version": writer.index().version}))
        }
        RegistryCommand::List { directory } => list(&directory, context),
    }
}

fn open(given: &RegistryArguments) -> Result<(RegistryWriter, PublisherKey), CliError> {
    let writer = RegistryWriter::open(&given.directory, RegistryLifetimes::default())?;
    Ok((writer, PublisherKey::load(&given.key)?))
}

fn list(directory: &Path, context: &Context) -> Result<ExitCode, CliError> {
    let writer = RegistryWriter::open(directory, RegistryLifetimes::default())?;
    let index = writer.index();
    if !context.console.is_text() {
        let listed: Vec<_> = index.artifacts.iter().map(|artifact| listed(index, artifact)).collect();
        context.console.list(&json!({"artifacts": listed}), &listed)?;
        return Ok(ExitCode::Ok);
    }
    for artifact in &index.artifacts {
        let mut line = format!("{} {}  {}  {}", artifact.skill_id, artifact.version, artifact.publisher, artifact.name);
        if let Some(reason) = index.revocation_reason(artifact) {
            line += &format!("  revoked: {reason}");
        }
        context.console.line(&line)?;
    }
    Ok(ExitCode::Ok)
}

/// A version with the reason why it was revoked, if it was.
fn listed(index: &RegistryIndex, artifact: &RegistryArtifact) -> serde_json::Value {
    let mut document = json!(artifact);
    if let (Some(reason), Some(fields)) = (index.revocation_reason(artifact), document.as_object_mut()) {
        fields.insert("revoked".to_owned(), json!(reason));
    }
    document
}

fn tell(context: &Context, text: &str, document: &serde_json::Value) -> Result<ExitCode, CliError> {
    if context.console.is_text() {
        context.console.line(text)?;
    } else {
        context.console.document(document)?;
    }
    Ok(ExitCode::Ok)
}

//! `palyra skills pack|sign|verify|audit`: archives on disk, without a daemon.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::Args;
use palyra_common::{Clock as _, ExitCode, SystemClock};
use palyra_skills::{
    ArchiveInput, ArchiveLimits, AuditPolicy, AuditReport, AuditVerdict, PublisherKey, SkillArchive,
    audit_skill_artifact_security, pack, sign, verify,
};
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;

/// What to pack.
#[derive(Debug, Args)]
pub(crate) struct PackArguments {
    /// Folder of the skill, already built
    #[arg(value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
    /// Where to write the archive [default: SKILL-VERSION.palyra-skill]
    #[arg(long, short, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Sign it with this key (`palyra skills keygen` creates one)
    #[arg(long, value_name = "KEY")]
    key: Option<PathBuf>,
}

/// What to sign.
#[derive(Debug, Args)]
pub(crate) struct SignArguments {
    /// The archive; it is signed in place
    archive: PathBuf,
    /// The private key
    #[arg(long, value_name = "KEY")]
    key: PathBuf,
}

pub(super) fn pack_folder(given: &PackArguments, context: &Context) -> Result<ExitCode, CliError> {
    let input = ArchiveInput::from_folder(&given.folder, &ArchiveLimits::default())?;
    let mut bytes = pack(input)?;
    if let Some(key) = &given.key {
        bytes = sign(&SkillArchive::read(&bytes)?, &PublisherKey::load(key)?, SystemClock.now())?;
    }
    let archive = SkillArchive::read(&bytes)?;
    let out = given.out.clone().unwrap_or_else(|| PathBuf::from(archive.manifest().file_name()));
    std::fs::write(&out, &bytes).map_err(super::file("write", &out))?;
    tell(&out, &archive, given.key.as_deref(), context)
}

pub(super) fn sign_archive(given: &SignArguments, context: &Context) -> Result<ExitCode, CliError> {
    let archive = read(&given.archive)?;
    let bytes = sign(&archive, &PublisherKey::load(&given.key)?, SystemClock.now())?;
    std::fs::write(&given.archive, &bytes).map_err(super::file("write", &given.archive))?;
    tell(&given.archive, &SkillArchive::read(&bytes)?, Some(&given.key), context)
}

fn tell(
    path: &Path,
    archive: &SkillArchive,
    private_key: Option<&Path>,
    context: &Context,
) -> Result<ExitCode, CliError> {
    let signed = archive.signature().map(|signature| signature.key_id.to_string());
    let console = &context.console;
    if !console.is_text() {
        console.document(&json!({
            "file": path,
            "skill_id": archive.manifest().skill_id.to_string(),
            "version": archive.manifest().version.to_string(),
            "digest": archive.digest(),
            "key_id": signed,
        }))?;
        return Ok(ExitCode::Ok);
    }
    match signed {
        Some(key) => {
            console.line(&format!("Packed {}, signed with {key}", path.display()))?;
            let publisher = &archive.manifest().publisher;
            let public = private_key.map(super::next::public_half).filter(|public| public.exists());
            let trust = public.map(|public| format!("palyra skills trust {publisher} {}", super::next::path(&public)));
            let install = format!("palyra skills install {}", super::next::path(path));
            super::next::show(console, trust.into_iter().chain([install]));
        }
        None => {
            console.line(&format!("Packed {}", path.display()))?;
            console.remark(&format!("to sign it: palyra skills sign {} --key KEY", super::next::path(path)));
        }
    }
    Ok(ExitCode::Ok)
}

/// Whether an archive is whole and who signed it.
pub(super) fn verify_archive(path: &Path, context: &Context) -> Result<ExitCode, CliError> {
    let archive = read(path)?;
    let verified = verify(&archive)?;
    let manifest = archive.manifest();
    if context.console.is_text() {
        let by = format!("{} with {}", verified.publisher, verified.key_id);
        context.console.line(&format!("OK: {} {}, signed by {by}", manifest.skill_id, manifest.version))?;
    } else {
        context.console.document(&json!({
            "skill_id": manifest.skill_id.to_string(),
            "version": manifest.version.to_string(),
            "publisher": verified.publisher.to_string(),
            "key_id": verified.key_id.to_string(),
            "public_key": verified.public_key.to_string(),
            "signed_at": verified.signed_at,
            "digest": archive.digest(),
        }))?;
    }
    Ok(ExitCode::Ok)
}

/// What an audit thinks of an archive; a failing one ends with the exit code for policy.
pub(super) fn audit_archive(path: &Path, context: &Context) -> Result<ExitCode, CliError> {
    let report = audit_skill_artifact_security(&read(path)?, &AuditPolicy::default());
    show_report(&report, context)?;
    Ok(if report.verdict == AuditVerdict::Fail { ExitCode::Policy } else { ExitCode::Ok })
}

fn show_report(report: &AuditReport, context: &Context) -> Result<(), CliError> {
    let console = &context.console;
    if !console.is_text() {
        return console.document(report);
    }
    for finding in &report.findings {
        let place = finding.path.as_deref().map(|path| format!(" ({path})")).unwrap_or_default();
        console.line(&format!("{:5} {}{place}", finding.severity, finding.message))?;
    }
    console.line(&format!("audit: {}", report.verdict))
}

/// Whether a word means a file and not an installed skill: it is there, or no skill could be called so.
pub(super) fn names_archive(word: &str) -> bool {
    Path::new(word).is_file() || word.contains('/') || word.ends_with(".palyra-skill")
}

pub(super) fn read(path: &Path) -> Result<SkillArchive, CliError> {
    Ok(SkillArchive::read(&archive_bytes(path)?)?)
}

/// The bytes of an archive, and of a file without end only as many as show that it is none.
pub(super) fn archive_bytes(path: &Path) -> Result<Vec<u8>, CliError> {
    if path.is_dir() {
        let shown = path.display();
        return Err(CliError::Usage {
            reason: format!("`{shown}` is a folder, not an archive"),
            usage: Some(format!("palyra skills pack {shown}")),
        });
    }
    let mut bytes = Vec::new();
    let limit = ArchiveLimits::default().archive_bytes.saturating_add(1);
    let read = std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes));
    read.map_err(super::file("read", path))?;
    Ok(bytes)
}

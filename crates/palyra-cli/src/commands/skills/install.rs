//! `palyra skills install|update`: from a file or a registry into the daemon.

use std::io::IsTerminal as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::Args;
use palyra_client::Client;
use palyra_client::api::{InstallSkillParams, SkillDetail, UploadSkillParams, UploadSkillResponse};
use palyra_client::command::{About, Command, SkillName};
use palyra_common::{ExitCode, ToStableError as _};
use palyra_skills::{SkillArchive, verify};

use super::info;
use crate::context::Context;
use crate::error::CliError;

/// Bytes of one piece.
const PIECE: usize = 512 << 10;

/// What to install.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// An archive, REGISTRY/SKILL or REGISTRY/SKILL@VERSION
    #[arg(value_name = "FILE")]
    source: String,
    /// Trust a new publisher if its key has this id
    #[arg(long, value_name = "KEY-ID")]
    accept_key: Option<String>,
    /// Install it disabled
    #[arg(long)]
    disabled: bool,
}

/// What to update.
#[derive(Debug, Args)]
pub(crate) struct UpdateArguments {
    /// Id of an installed skill, to get the newest version from its registry; or an archive, REGISTRY/SKILL or REGISTRY/SKILL@VERSION
    #[arg(value_name = "SKILL|FILE")]
    source: String,
}

/// Brings a skill to the newest version of its registry, or to the one in a file.
pub(super) async fn update(client: &Client, given: UpdateArguments, context: &Context) -> Result<ExitCode, CliError> {
    let source = given.source;
    let install = |source| InstallArguments { source, accept_key: None, disabled: false };
    if super::pack::names_archive(&source) {
        return execute(client, install(source), context).await;
    }
    let about = About::only(SkillName(source.clone()));
    let detail: SkillDetail = client.execute(&Command::SkillGet(about)).await?;
    let Some(registry) = detail.skill.registry.clone() else {
        return Err(CliError::Usage {
            reason: format!("`{source}` was installed from a file, so it has no registry to update from"),
            usage: Some("palyra skills update FILE".to_owned()),
        });
    };
    match execute(client, install(format!("{registry}/{source}")), context).await {
        Err(CliError::Client(error)) if error.to_stable().code == "skill_already_installed" => {
            info::show(&detail, context)?;
            context.console.remark(&format!("already up to date with {registry}"));
            Ok(ExitCode::Ok)
        }
        other => other,
    }
}

pub(super) async fn execute(client: &Client, given: InstallArguments, context: &Context) -> Result<ExitCode, CliError> {
    let path = Path::new(&given.source);
    let mut params = InstallSkillParams {
        accept_key: given.accept_key,
        keep_disabled: given.disabled,
        ..InstallSkillParams::default()
    };
    let offered = if path.is_file() || !given.source.contains('/') {
        let bytes = super::pack::archive_bytes(path)?;
        let archive = SkillArchive::read(&bytes)?;
        params.archive = Some(archive.digest());
        upload(client, &archive, &bytes, context).await?;
        Some(archive)
    } else {
        params.from_registry = Some(given.source);
        None
    };
    let detail = match client.execute::<SkillDetail>(&Command::SkillInstall(params.clone())).await {
        Err(error) if error.to_stable().code == "skill_publisher_unknown" && params.accept_key.is_none() => {
            let Some(key) = offered.as_ref().map(|archive| ask(archive, context)).transpose()?.flatten() else {
                return Err(error.into());
            };
            params.accept_key = Some(key);
            client.execute(&Command::SkillInstall(params)).await?
        }
        other => other?,
    };
    info::show(&detail, context)?;
    if context.console.is_text() {
        let manifest = offered.as_ref().map(SkillArchive::manifest);
        super::next::show(&context.console, super::next::after_installation(&detail, manifest));
    }
    Ok(ExitCode::Ok)
}

/// Hands an archive over in pieces, over whatever transport the client has.
async fn upload(client: &Client, archive: &SkillArchive, bytes: &[u8], context: &Context) -> Result<(), CliError> {
    let (digest, size) = (archive.digest(), bytes.len() as u64);
    let mut offset = 0;
    for piece in bytes.chunks(PIECE) {
        let params = UploadSkillParams { digest, size, offset, data: STANDARD.encode(piece) };
        let taken: UploadSkillResponse = client.execute(&Command::SkillUpload(params)).await?;
        offset = taken.received;
        context.console.progress(&format!("uploading {} of {} KiB", offset / 1024, size.div_ceil(1024)));
    }
    context.console.wipe_progress();
    Ok(())
}

/// Shows a person who signed the archive and what it wants; returns the key's id if they accept it.
fn ask(archive: &SkillArchive, context: &Context) -> Result<Option<String>, CliError> {
    if !context.console.is_text() || !std::io::stdin().is_terminal() {
        return Ok(None);
    }
    let verified = verify(archive)?;
    let manifest = archive.manifest();
    let console = &context.console;
    console.line(&format!(
        "{} {} is signed by `{}`, which is not trusted yet",
        manifest.skill_id, manifest.version, verified.publisher
    ))?;
    console.line(&format!("  key      {}", verified.key_id))?;
    for rule in &manifest.capabilities.http {
        console.line(&format!("  wants    requests to {rule}"))?;
    }
    for secret in &manifest.capabilities.secrets {
        console.line(&format!("  wants    the secret {}", secret.name))?;
    }
    for space in &manifest.capabilities.storage {
        console.line(&format!("  wants    storage {} of {} KiB", space.name, space.max_bytes / 1024))?;
    }
    console.prompt("Compare the key with the one the publisher announces. Trust it from now on? [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).map_err(|source| CliError::Output { source })?;
    let yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes");
    Ok(yes.then(|| verified.key_id.to_string()))
}

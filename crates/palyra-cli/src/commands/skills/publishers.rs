//! `palyra skills trust|untrust|publishers`.

use clap::Args;
use palyra_client::Client;
use palyra_client::api::{ChangeSkillParams, ListPublishersResponse, PublisherView, TrustPublisherParams};
use palyra_client::command::{About, Command, NoParams, PublisherName};
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::render::table;

/// Whom to trust.
#[derive(Debug, Args)]
pub(crate) struct TrustArguments {
    /// The publisher's name, as in its skills' manifests
    publisher: String,
    /// Its public key, or a file that contains it
    #[arg(value_name = "KEY")]
    key: String,
    /// Reason, recorded in the journal
    #[arg(long)]
    reason: Option<String>,
}

/// Whom to trust no more.
#[derive(Debug, Args)]
pub(crate) struct UntrustArguments {
    /// The publisher's name, as in its skills' manifests
    publisher: String,
    /// Reason, recorded in the journal
    #[arg(long)]
    reason: Option<String>,
}

pub(super) async fn trust(client: &Client, given: TrustArguments, context: &Context) -> Result<ExitCode, CliError> {
    // Read here, so that a private key that was named by mistake stays on this machine.
    let public_key = super::keys::public_key(&given.key)?.to_string();
    let params = TrustPublisherParams { publisher: given.publisher, public_key, reason: given.reason };
    let publisher: PublisherView = client.execute(&Command::PublisherTrust(params)).await?;
    tell(&publisher, "is now trusted", context)
}

pub(super) async fn untrust(client: &Client, given: UntrustArguments, context: &Context) -> Result<ExitCode, CliError> {
    let params = ChangeSkillParams { reason: given.reason };
    let about = About { target: PublisherName(given.publisher), params };
    let publisher: PublisherView = client.execute(&Command::PublisherUntrust(about)).await?;
    let what = if publisher.key_id.is_none() && publisher.revoked_keys.is_empty() {
        "was not known, and is not trusted: its skills are refused"
    } else {
        "is no longer trusted; its skills are quarantined"
    };
    tell(&publisher, what, context)
}

pub(super) async fn list(client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let page: ListPublishersResponse = client.execute(&Command::PublisherList(NoParams {})).await?;
    let console = &context.console;
    if !console.is_text() {
        console.list(&page, &page.publishers)?;
    } else if page.publishers.is_empty() {
        console.remark("no trusted publishers; add one with: palyra skills trust PUBLISHER KEY");
    } else {
        let rows: Vec<[String; 4]> = page
            .publishers
            .iter()
            .map(|one| {
                let key = one.key_id.clone().unwrap_or_else(|| "-".to_owned());
                [one.publisher.clone(), one.trust.to_string(), key, one.revoked_keys.join(", ")]
            })
            .collect();
        let lines = table::lines(["PUBLISHER", "TRUST", "KEY", "REVOKED"], &rows);
        lines.iter().try_for_each(|line| console.line(line))?;
    }
    Ok(ExitCode::Ok)
}

fn tell(publisher: &PublisherView, what: &str, context: &Context) -> Result<ExitCode, CliError> {
    if context.console.is_text() {
        let key = publisher.key_id.as_deref().map(|key| format!(" ({key})")).unwrap_or_default();
        context.console.line(&format!("{}{key} {what}", publisher.publisher))?;
    } else {
        context.console.document(publisher)?;
    }
    Ok(ExitCode::Ok)
}

//! `palyra journal accept-loss` and `palyra journal accept-restore`: the words of a person that nothing else may say.

use palyra_common::{Clock as _, ExitCode, SystemClock};

use crate::commands::files::ask;
use crate::console::StandardInput;
use crate::context::Context;
use crate::error::CliError;

/// Gives up the records of a damaged journal.
pub(super) fn loss(context: &Context) -> Result<ExitCode, CliError> {
    // Whoever types this without a terminal has said so by typing it.
    let console = &context.console;
    if console.is_text() && console.input() == StandardInput::Terminal {
        console.remark(
            "this gives up the whole journal, not only what is damaged: the next start begins an empty one without sessions, runs and answers",
        );
        if !ask("Give it up? [y/N] ", context)? {
            console.remark("nothing was changed");
            return Ok(ExitCode::Precondition);
        }
    }
    let remains = palyra_journal::accept_loss(context.state_root()?, SystemClock.now())?;
    if context.console.is_text() {
        context.console.line(&format!("Moved what is left of the journal to `{}`", remains.display()))?;
        context.console.remark("the next start begins a new journal; `palyra journal salvage` reads the old records");
    } else {
        context.console.document(&serde_json::json!({ "remains": remains }))?;
    }
    Ok(ExitCode::Ok)
}

/// Lets the work of a restored state go on, and acknowledges the signing key that the restore led to.
pub(super) fn restore(context: &Context) -> Result<ExitCode, CliError> {
    let accepted = palyra_journal::accept_restore(context.state_root()?)?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&accepted)?;
        return Ok(ExitCode::Ok);
    }
    match accepted.records {
        Some(records) => console.line(&format!("Accepted the restore of {records} records"))?,
        None => console.line("Acknowledged the restores on the journal")?,
    }
    let former = accepted.former_key_id.map_or_else(|| "unknown".to_owned(), |key| key.to_string());
    console.line(&format!("Signing key before  {former}"))?;
    console.line(&format!("Signing key now     {}", accepted.key_id))?;
    if accepted.records.is_some() {
        console.remark("queued work continues when the daemon is restarted; paused runs wait for `palyra runs resume`");
    }
    if accepted.acknowledged {
        console.remark("the next start of the daemon puts this on the journal; if you do not know the key, restore a backup instead");
    } else {
        console.remark("the first start puts the restore on the journal and warns until you run this command again");
    }
    Ok(ExitCode::Ok)
}

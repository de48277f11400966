//! `palyra journal accept-loss` and `palyra journal accept-restore`: the words of a person that nothing else may say.

use palyra_common::{Clock as _, ExitCode, SystemClock};

use crate::context::Context;
use crate::error::CliError;

/// Gives up the records of a damaged journal.
pub(super) fn loss(context: &Context) -> Result<ExitCode, CliError> {
    let remains = palyra_journal::accept_loss(context.state_root()?, SystemClock.now())?;
    if context.console.is_text() {
        context.console.line(&format!("Moved what is left of the journal to `{}`", remains.display()))?;
        context.console.remark("the next start begins a new journal; `palyra journal salvage` reads the old records");
    } else {
        context.console.document(&serde_json::json!({ "remains": remains }))?;
    }
    Ok(ExitCode::Ok)
}

/// Lets the work of a restored state go on.
pub(super) fn restore(context: &Context) -> Result<ExitCode, CliError> {
    let note = palyra_journal::accept_restore(context.state_root()?)?;
    if context.console.is_text() {
        context.console.line(&format!("Accepted the restore of {} records", note.records))?;
        context
            .console
            .remark("queued work continues when the daemon is restarted; paused runs wait for `palyra runs resume`");
    } else {
        context.console.document(&note)?;
    }
    Ok(ExitCode::Ok)
}

//! `palyra journal backup DIR`.

use std::path::PathBuf;

use clap::Args;
use palyra_client::api::BackupJournalParams;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher;
use crate::render::text::counted;

/// Where to.
#[derive(Debug, Args)]
pub(crate) struct BackupArguments {
    /// A directory that is empty or does not exist yet
    #[arg(value_name = "DIR")]
    dest: PathBuf,
}

pub(super) async fn execute(arguments: &BackupArguments, context: &Context) -> Result<ExitCode, CliError> {
    let dest = context.environment.absolute(&arguments.dest);
    let Some(dest) = dest.to_str() else {
        let source = std::io::Error::new(std::io::ErrorKind::InvalidInput, "its name is not UTF-8");
        return Err(CliError::File { doing: "write", path: dest, source });
    };
    context.console.progress("copying the journal …");
    let done = launcher::connect(context).await?.journal_backup(&BackupJournalParams { dest: dest.to_owned() }).await?;
    if context.console.is_text() {
        let records = counted(usize::try_from(done.records).unwrap_or(usize::MAX), "record");
        context.console.line(&format!(
            "Backed up {records}, {} segments and {} artifacts ({} bytes) to `{}`",
            done.segments, done.artifacts, done.bytes, done.dest
        ))?;
        if !done.left_out.is_empty() {
            context.console.remark(&format!("not in the backup: {}", done.left_out.join(", ")));
        }
        context.console.remark(&format!(
            "next: PALYRA_STATE_ROOT={} palyra journal verify; derived tables are not verified without the private key and are rebuilt when the backup is restored",
            done.dest
        ));
    } else {
        context.console.document(&done)?;
    }
    Ok(ExitCode::Ok)
}

//! `palyra journal …`: the record of everything.
//!
//! Reading works beside a running daemon and without one, straight from the files: evidence must be readable even when the
//! daemon is not. Only a backup needs the daemon, which owns the signing key.

mod accept;
mod backup;
mod export;
mod offline;
mod prove;
mod restore;
mod salvage;
mod tail;
mod verify;

use clap::Subcommand;
use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;

const EXAMPLES: &str = "\
Examples:
  palyra journal tail -n 5
  palyra journal verify                      exit code 7 if it finds a problem
  palyra journal prove 42 > record-42.json   a self-contained proof
  palyra journal backup /mnt/backup/palyra";

/// What to do with the journal.
#[derive(Debug, Subcommand)]
#[command(after_help = EXAMPLES)]
pub(crate) enum JournalCommand {
    /// Print the newest records
    Tail(tail::TailArguments),
    /// Check every record, signature and derived table, and report the position of each problem
    Verify(verify::VerifyArguments),
    /// Print a proof that one record is in the journal, or check such a proof
    Prove(prove::ProveArguments),
    /// Print all records, one JSON document per line
    Export(export::ExportArguments),
    /// Back up the journal while it is in use
    Backup(backup::BackupArguments),
    /// Restore a backup; refuses to overwrite a journal
    Restore(restore::RestoreArguments),
    /// Let the work in progress of a restored backup continue, and acknowledge the signing key that the restore led to
    AcceptRestore,
    /// Print every record of a damaged journal that can still be read, one JSON document per line
    Salvage,
    /// Give up a damaged journal; its files are kept and the next start begins a new one
    AcceptLoss,
}

pub(super) async fn execute(command: JournalCommand, context: &Context) -> Result<ExitCode, CliError> {
    match command {
        JournalCommand::Tail(arguments) => tail::execute(&arguments, context).await,
        JournalCommand::Verify(arguments) => verify::execute(arguments, context).await,
        JournalCommand::Prove(arguments) => prove::execute(&arguments, context),
        JournalCommand::Export(arguments) => export::execute(&arguments, context),
        JournalCommand::Backup(arguments) => backup::execute(&arguments, context).await,
        JournalCommand::Restore(arguments) => restore::execute(&arguments, context),
        JournalCommand::AcceptRestore => accept::restore(context),
        JournalCommand::Salvage => salvage::execute(context),
        JournalCommand::AcceptLoss => accept::loss(context),
    }
}

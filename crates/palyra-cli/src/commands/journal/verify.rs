//! `palyra journal verify`.
//!
//! Asks the daemon when one runs, because it also knows how to rebuild the derived tables; otherwise, and when told to trust
//! nobody, reads the files itself and says which tables it could not compare.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;
use palyra_client::Client;
use palyra_client::ClientError;
use palyra_client::api::{VerifyLine, VerifyProgress, VerifyReport};
use palyra_common::ExitCode;
use palyra_journal::VerifyOptions;

use super::offline::report_view;
use crate::console::{Console, Style};
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::{counted, shortened};

/// How to verify.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// Also compare with an anchor or checkpoint kept elsewhere; detects a rollback to an older copy
    #[arg(long, value_name = "FILE")]
    anchor: Option<PathBuf>,
    /// Read the files directly, even if a daemon is running
    #[arg(long)]
    offline: bool,
}

pub(super) async fn execute(arguments: VerifyArguments, context: &Context) -> Result<ExitCode, CliError> {
    if let Some(anchor) = &arguments.anchor {
        let unreadable = |source| CliError::File { doing: "read", path: anchor.clone(), source };
        std::fs::File::open(anchor).map_err(unreadable)?;
    }
    let report = if arguments.offline || arguments.anchor.is_some() {
        directly(context.state_root()?, arguments.anchor, &context.console).await?
    } else {
        match by_daemon(&context.client()?, &context.console).await {
            Err(CliError::Client(error)) if error.is_unreachable() => {
                directly(context.state_root()?, None, &context.console).await?
            }
            other => other?,
        }
    };
    context.console.wipe_progress();
    if context.console.is_text() {
        lines(&report, &context.console).iter().try_for_each(|line| context.console.line(line))?;
    } else {
        context.console.document(&report)?;
    }
    Ok(exit_code(&report))
}

/// A report that left something out is not one of a sound journal.
fn exit_code(report: &VerifyReport) -> ExitCode {
    if report.problems.is_empty() && is_complete(report) { ExitCode::Ok } else { ExitCode::Precondition }
}

/// Whether everything was looked at.
fn is_complete(report: &VerifyReport) -> bool {
    report.unchecked_projections.is_empty() && report.unverified.is_empty()
}

async fn by_daemon(client: &Client, console: &Console) -> Result<VerifyReport, CliError> {
    let mut answer = client.journal_verify().await?;
    while let Some(line) = answer.next().await? {
        match line {
            VerifyLine::Progress(progress) => show(progress, console),
            VerifyLine::Report(report) => return Ok(report),
        }
    }
    // A stream that ends in good order without a report must not pass for a sound journal.
    let (doing, message) = ("verifying the journal", "the daemon sent no report".to_owned());
    Err(ClientError::Malformed { doing, message }.into())
}

async fn directly(root: &Path, anchor: Option<PathBuf>, console: &Console) -> Result<VerifyReport, CliError> {
    let (root, console) = (root.to_owned(), console.clone());
    let progress = move |progress: palyra_journal::VerifyProgress| {
        show(VerifyProgress { done: progress.records, total: progress.total }, &console);
    };
    let options = VerifyOptions { anchor, progress: Some(Arc::new(progress)), ..VerifyOptions::default() };
    let work = tokio::task::spawn_blocking(move || palyra_journal::verify(&root, options));
    let report = work.await.map_err(|source| CliError::Runtime { source: source.into() })?;
    Ok(report_view(report?))
}

fn show(progress: VerifyProgress, console: &Console) {
    let percent = progress.done.saturating_mul(100) / progress.total.max(1);
    console.progress(&format!("verifying… {} of {} records, {percent} %", progress.done, progress.total));
}

fn lines(report: &VerifyReport, console: &Console) -> Vec<String> {
    let mut lines: Vec<String> = report
        .problems
        .iter()
        .map(|problem| {
            let place = console.styled(Style::Bad, &shortened(&problem.position, 200));
            format!("{place}: {} [{}]", shortened(&problem.message, 400), problem.code)
        })
        .collect();
    if report.more_problems {
        lines.push("… and more problems".to_owned());
    }
    let records = counted(usize::try_from(report.records).unwrap_or(usize::MAX), "record");
    let checked = format!(
        "{}, {}, {}",
        counted(usize::try_from(report.checkpoints).unwrap_or(usize::MAX), "signed checkpoint"),
        counted(usize::try_from(report.segments).unwrap_or(usize::MAX), "archived segment"),
        counted(report.projections.len() + report.projections_by_digest.len(), "derived table family")
            .replace("familys", "families"),
    );
    lines.push(match report.problems.len() {
        0 if !is_complete(report) => {
            format!("{}: no problem found in {records} ({checked})", console.styled(Style::Bad, "INCOMPLETE"))
        }
        0 => format!("{}: {records} verified ({checked})", console.styled(Style::Good, "OK")),
        found => {
            let found = counted(found, "problem");
            let place =
                if report.records == 0 { "; no record could be read".to_owned() } else { format!(" in {records}") };
            format!("{}: {found}{place} ({checked})", console.styled(Style::Bad, "FAILED"))
        }
    });
    if !report.unchecked_projections.is_empty() {
        let names = shortened(&report.unchecked_projections.join(", "), 200);
        lines.push(format!("not verified: {names}: that needs a running daemon and an intact log"));
    }
    for what in &report.unverified {
        lines.push(format!("not verified: {}", shortened(what, 300)));
    }
    if !report.projections_by_digest.is_empty() {
        let families = counted(report.projections_by_digest.len(), "family").replace("familys", "families");
        lines.push(format!(
            "{families} of tables compared with their digests; a running daemon also rebuilds them from the log"
        ));
    }
    for what in &report.remarks {
        lines.push(format!("note: {}", shortened(what, 400)));
    }
    if report.quarantined > 0 {
        let records = counted(usize::try_from(report.quarantined).unwrap_or(usize::MAX), "record");
        lines.push(format!("{records} quarantined: derived tables go on without them"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use palyra_client::api::ProblemView;

    use super::*;

    #[test]
    fn a_report_names_positions() {
        let sound = VerifyReport {
            records: 20,
            segments: 0,
            checkpoints: 1,
            artifacts: 0,
            projections: vec!["runs".to_owned()],
            unchecked_projections: Vec::new(),
            projections_by_digest: Vec::new(),
            unverified: Vec::new(),
            quarantined: 0,
            remarks: Vec::new(),
            more_problems: false,
            problems: Vec::new(),
        };
        let console = Console::for_tests();
        assert_eq!(
            lines(&sound, &console),
            ["OK: 20 records verified (1 signed checkpoint, 0 archived segments, 1 derived table family)"]
        );
        assert_eq!(exit_code(&sound), ExitCode::Ok);
        let partial = VerifyReport { unverified: vec!["digests of tables: no key".to_owned()], ..sound.clone() };
        assert_eq!(
            lines(&partial, &console),
            [
                "INCOMPLETE: no problem found in 20 records (1 signed checkpoint, 0 archived segments, 1 derived table family)",
                "not verified: digests of tables: no key",
            ]
        );
        assert_eq!(exit_code(&partial), ExitCode::Precondition);
        let problem = ProblemView {
            position: "record 4".to_owned(),
            code: "hash_mismatch".to_owned(),
            message: "the payload was changed".to_owned(),
        };
        let broken = VerifyReport {
            problems: vec![problem],
            projections: Vec::new(),
            unchecked_projections: vec!["runs".to_owned()],
            ..sound
        };
        assert_eq!(
            lines(&broken, &console),
            [
                "record 4: the payload was changed [hash_mismatch]",
                "FAILED: 1 problem in 20 records (1 signed checkpoint, 0 archived segments, 0 derived table families)",
                "not verified: runs: that needs a running daemon and an intact log",
            ]
        );
    }
}

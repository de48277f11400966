//! `palyra journal prove SEQ`, and `--check FILE` for whoever receives a proof.

use std::path::{Path, PathBuf};

use clap::Args;
use palyra_common::ExitCode;
use palyra_journal::InclusionProof;

use crate::context::Context;
use crate::error::CliError;
use crate::numbers;

/// Which record, or which proof.
#[derive(Debug, Args)]
pub(crate) struct ProveArguments {
    /// The record's position in the journal
    #[arg(value_name = "SEQ", required_unless_present = "check", value_parser = numbers::at_least::<u64>(1))]
    seq: Option<u64>,
    /// Check a printed proof, without the journal
    #[arg(long, value_name = "FILE", conflicts_with = "seq")]
    check: Option<PathBuf>,
}

pub(super) fn execute(arguments: &ProveArguments, context: &Context) -> Result<ExitCode, CliError> {
    if let Some(file) = &arguments.check {
        return check(file, context);
    }
    let reader = palyra_journal::open_read_only(context.state_root()?)?;
    // A proof is a document in every output format; there is no shorter form that would still prove anything.
    context.console.document(&reader.prove(arguments.seq.unwrap_or_default())?)?;
    Ok(ExitCode::Ok)
}

fn check(file: &Path, context: &Context) -> Result<ExitCode, CliError> {
    let unreadable = |source| CliError::File { doing: "read", path: file.to_owned(), source };
    let text = std::fs::read(file).map_err(unreadable)?;
    let proof: InclusionProof = serde_json::from_slice(&text).map_err(|error| CliError::File {
        doing: "read a proof from",
        path: file.to_owned(),
        source: error.into(),
    })?;
    proof.verify()?;
    if context.console.is_text() {
        context.console.line(&format!(
            "OK: record {} ({}) is one of the {} records signed with key {}",
            proof.record.seq,
            crate::console::one_line(&proof.record.kind),
            proof.checkpoint.count,
            proof.public_key.id()
        ))?;
    } else {
        let seq = proof.record.seq;
        context
            .console
            .document(&serde_json::json!({ "proven": true, "seq": seq, "count": proof.checkpoint.count }))?;
    }
    Ok(ExitCode::Ok)
}

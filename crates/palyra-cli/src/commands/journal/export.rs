//! `palyra journal export`: a stream of records, one JSON document per line in every output format.

use clap::Args;
use palyra_common::ExitCode;

use super::offline::record_view;
use crate::context::Context;
use crate::error::CliError;
use crate::numbers;

/// Records that are read at a time.
const PAGE: usize = 1_000;
/// Bytes of records that are held at once, unless a single one has more.
const PAGE_BYTES: usize = 1 << 20;

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct ExportArguments {
    /// Start at this position
    #[arg(long, default_value_t = 1, value_name = "SEQ", value_parser = numbers::at_least::<u64>(1))]
    from_seq: u64,
}

pub(super) fn execute(arguments: &ExportArguments, context: &Context) -> Result<ExitCode, CliError> {
    let reader = palyra_journal::open_read_only(context.state_root()?)?;
    let total = reader.head()?.count;
    let mut from = arguments.from_seq.max(1);
    loop {
        let page = reader.page(from, PAGE, PAGE_BYTES)?;
        for record in &page {
            let line = serde_json::to_string(&record_view(record))
                .map_err(|source| CliError::Output { source: source.into() })?;
            context.console.line(&line)?;
            from = record.seq + 1;
        }
        if page.is_empty() {
            context.console.wipe_progress();
            return Ok(ExitCode::Ok);
        }
        context.console.progress(&format!("exporting… {} of {total} records", from - 1));
    }
}

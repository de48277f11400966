//! `palyra journal tail`.

use clap::Args;
use palyra_client::api::{JournalRecordView, TailJournalParams};
use palyra_common::ExitCode;

use super::offline::record_view;
use crate::console::OutputFormat;
use crate::context::Context;
use crate::error::CliError;
use crate::launcher;
use crate::numbers;
use crate::render::text::{instant, shortened};

/// Which records.
#[derive(Debug, Args)]
pub(crate) struct TailArguments {
    /// How many of the newest records
    #[arg(short = 'n', long, alias = "limit", default_value_t = 10, value_name = "COUNT", value_parser = numbers::at_least::<u32>(1))]
    count: u32,
    /// Follow new records; needs the daemon
    #[arg(short, long)]
    follow: bool,
}

pub(super) async fn execute(arguments: &TailArguments, context: &Context) -> Result<ExitCode, CliError> {
    if !arguments.follow {
        let reader = palyra_journal::open_read_only(context.state_root()?)?;
        let records: Vec<_> = reader.tail(arguments.count as usize)?.iter().map(record_view).collect();
        if context.console.output() == OutputFormat::Json {
            context.console.document(&records)?;
        } else {
            records.iter().try_for_each(|record| print(record, context))?;
        }
        return Ok(ExitCode::Ok);
    }
    let params = TailJournalParams { n: Some(arguments.count.into()), from_seq: None, follow: Some(true) };
    let mut records = launcher::connect(context).await?.journal_tail(&params).await?;
    while let Some(record) = records.next().await? {
        print(&record, context)?;
    }
    Ok(ExitCode::Ok)
}

fn print(record: &JournalRecordView, context: &Context) -> Result<(), CliError> {
    if context.console.is_text() { context.console.line(&line(record)) } else { context.console.document(record) }
}

fn line(record: &JournalRecordView) -> String {
    let run = record.run_id.map(|id| id.to_string());
    let place = match (run, record.run_seq) {
        (Some(run), Some(seq)) => format!("{}#{seq}", run.get(20..).unwrap_or(&run)),
        _ => "–".to_owned(),
    };
    format!(
        "{:>8}  {}  {:<24}  {:<12}  {}",
        record.seq,
        instant(record.at),
        shortened(&record.kind, 24),
        place,
        shortened(&record.payload.to_string(), 100)
    )
    .trim_end()
    .to_owned()
}

#[cfg(test)]
mod tests {
    use palyra_common::{Digest, RunId, Timestamp};

    use super::*;

    #[test]
    fn a_record_is_one_line() {
        let record = JournalRecordView {
            seq: 42,
            at: Timestamp(1_794_700_000_123),
            kind: "run.status".to_owned(),
            session_id: None,
            run_id: Some(RunId::from_u128(7)),
            run_seq: Some(3),
            hash: Digest::of(b"x"),
            payload: serde_json::json!({ "phase": "running", "text": "a\nb" }),
        };
        assert_eq!(
            line(&record),
            "      42  2026-11-14 23:46:40  run.status                000007#3      {\"phase\":\"running\",\"text\":\"a\\nb\"}"
        );
    }
}

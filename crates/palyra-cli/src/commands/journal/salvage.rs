//! `palyra journal salvage`: the records of a damaged journal, one JSON document per line, as far as they can be read.

use palyra_common::ExitCode;

use super::offline::record_view;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::counted;

pub(super) fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let mut failed = None;
    let report = palyra_journal::salvage(context.state_root()?, &mut |salvaged| {
        let mut document = serde_json::to_value(record_view(&salvaged.record)).unwrap_or_default();
        if let Some(fields) = document.as_object_mut() {
            fields.insert("intact".to_owned(), salvaged.intact.into());
        }
        if failed.is_none() {
            failed = context.console.line(&document.to_string()).err();
        }
        Ok(())
    })?;
    if let Some(error) = failed {
        return Err(error);
    }
    let count = |number: u64, what: &str| counted(usize::try_from(number).unwrap_or(usize::MAX), what);
    context.console.remark(&format!(
        "{} intact, {} doubtful, {} unreadable",
        count(report.records, "record"),
        report.doubtful,
        count(report.unreadable, "place"),
    ));
    Ok(if report.doubtful + report.unreadable == 0 { ExitCode::Ok } else { ExitCode::Precondition })
}

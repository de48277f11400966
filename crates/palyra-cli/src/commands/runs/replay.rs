//! `palyra runs replay RUN`.

use palyra_client::Client;
use palyra_common::ExitCode;

use super::RunArgument;
use crate::context::Context;
use crate::error::CliError;
use crate::render::text::shortened;

pub(super) async fn execute(run: &RunArgument, client: &Client, context: &Context) -> Result<ExitCode, CliError> {
    let id = run.resolve(client).await?;
    let report = client.replay_run(id).await?;
    let console = &context.console;
    if !console.is_text() {
        console.document(&report)?;
    } else if report.identical {
        console.line(&format!(
            "run {id}: replayed {} inputs; all {} actions are identical",
            report.steps, report.actions
        ))?;
    } else {
        let place = report.first_difference.as_ref().map_or(0, |difference| difference.seq);
        console.line(&format!("run {id}: the replay differs from the record at position {place}"))?;
        if let Some(difference) = &report.first_difference {
            let shown =
                |side: &Option<String>| side.as_deref().map_or("(nothing)".to_owned(), |text| shortened(text, 400));
            console.line(&format!("  recorded: {}", shown(&difference.recorded)))?;
            console.line(&format!("  replayed: {}", shown(&difference.replayed)))?;
        }
    }
    Ok(if report.identical { ExitCode::Ok } else { ExitCode::Precondition })
}

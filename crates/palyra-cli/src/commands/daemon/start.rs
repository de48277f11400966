//! `palyra daemon start`.

use palyra_common::ExitCode;

use crate::context::Context;
use crate::error::CliError;
use crate::launcher::{self, Started};

pub(super) async fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let (_, health, started) = launcher::ensure(context).await?;
    if context.console.is_text() {
        context.console.remark(match started {
            Started::Already => "the daemon is already running",
            Started::Now => "started the daemon",
        });
        super::lines(&health).iter().try_for_each(|line| context.console.line(line))?;
    } else {
        context.console.document(&health)?;
    }
    Ok(ExitCode::Ok)
}

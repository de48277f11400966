//! `palyra daemon status`.

use palyra_common::{ExitCode, HealthStatus};

use crate::context::Context;
use crate::error::CliError;

pub(super) async fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let health = context.client()?.health().await?;
    if context.console.is_text() {
        super::lines(&health).iter().try_for_each(|line| context.console.line(line))?;
    } else {
        context.console.document(&health)?;
    }
    Ok(match health.status {
        HealthStatus::Ok => ExitCode::Ok,
        HealthStatus::Degraded | HealthStatus::Failing => ExitCode::Precondition,
    })
}

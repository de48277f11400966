//! `palyra daemon logs`.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::time::Duration;

use clap::Args;
use palyra_common::ExitCode;

use crate::console::plain;
use crate::context::Context;
use crate::error::CliError;
use crate::launcher::last_lines;
use crate::numbers;

/// Nobody reads faster; a file cannot be waited for without polling or a watcher.
const POLL: Duration = Duration::from_millis(200);

/// How much of the log.
#[derive(Debug, Args)]
pub(crate) struct LogsArguments {
    /// How many lines to print
    #[arg(short = 'n', long, default_value_t = 50, value_name = "COUNT", value_parser = numbers::at_least::<usize>(0))]
    lines: usize,
    /// Keep printing lines as they are written
    #[arg(short, long)]
    follow: bool,
}

pub(super) async fn execute(arguments: &LogsArguments, context: &Context) -> Result<ExitCode, CliError> {
    let path = context.log_file()?;
    let failed = |source| CliError::File { doing: "read", path: path.clone(), source };
    let mut file = File::open(&path).map_err(failed)?;
    let mut position = file.metadata().map_err(failed)?.len();
    for line in last_lines(&path, 0, arguments.lines).map_err(failed)? {
        context.console.line(&plain(&line))?;
    }
    if !arguments.follow {
        return Ok(ExitCode::Ok);
    }
    loop {
        let length = std::fs::metadata(&path).map_err(failed)?.len();
        if length < position {
            // The log was rotated.
            file = File::open(&path).map_err(failed)?;
            position = 0;
        }
        if length > position {
            file.seek(SeekFrom::Start(position)).map_err(failed)?;
            let mut bytes = Vec::new();
            let read = file.by_ref().take(length - position).read_to_end(&mut bytes).map_err(failed)?;
            position += read as u64;
            context.console.piece(&plain(&String::from_utf8_lossy(&bytes)))?;
        }
        tokio::time::sleep(POLL).await;
    }
}

//! `palyra daemon stop`: asks, and then waits until the process is really gone.

use std::time::{Duration, Instant};

use palyra_common::ExitCode;
use serde_json::json;

use crate::context::Context;
use crate::error::CliError;
use crate::render::text::counted;

/// A stop drains the journal; anything longer than this is worth a person's attention.
const PATIENCE: Duration = Duration::from_secs(30);
const POLL: Duration = Duration::from_millis(20);

pub(super) async fn execute(context: &Context) -> Result<ExitCode, CliError> {
    let console = &context.console;
    let client = context.client()?;
    let stopping = match client.stop_daemon().await {
        Ok(stopping) => stopping,
        Err(error) if error.is_unreachable() => {
            // What was asked for is the case.
            if console.is_text() {
                console.remark("the daemon is not running");
            } else {
                console.document(&json!({ "stopped": false, "reason": "the daemon is not running" }))?;
            }
            return Ok(ExitCode::Ok);
        }
        Err(error) => return Err(error.into()),
    };
    let began = Instant::now();
    while is_alive(stopping.pid) {
        if began.elapsed() > PATIENCE {
            return Err(CliError::DaemonLingers { pid: stopping.pid, seconds: PATIENCE.as_secs() });
        }
        if began.elapsed() > Duration::from_secs(1) {
            console.progress(&format!("stopping … {} s", began.elapsed().as_secs()));
        }
        tokio::time::sleep(POLL).await;
    }
    if console.is_text() {
        let unfinished = usize::try_from(stopping.unfinished_runs).unwrap_or(usize::MAX);
        let note = match unfinished {
            0 => String::new(),
            _ => format!("; {} kept for the next start", counted(unfinished, "unfinished run")),
        };
        console.line(&format!("stopped the daemon (process {}){note}", stopping.pid))?;
    } else {
        console
            .document(&json!({ "stopped": true, "pid": stopping.pid, "unfinished_runs": stopping.unfinished_runs }))?;
    }
    Ok(ExitCode::Ok)
}

/// Whether a process still runs. One that has ended but was not yet collected by its parent does not count.
fn is_alive(pid: u32) -> bool {
    let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { return false };
    // The state follows the name, which is in parentheses and may itself contain any character.
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.trim_start().chars().next());
    !matches!(state, Some('Z' | 'X') | None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_that_ended_is_not_alive() {
        assert!(is_alive(std::process::id()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        while is_alive(pid) {
            std::thread::yield_now();
        }
        assert!(std::path::Path::new(&format!("/proc/{pid}")).exists(), "it was not collected yet");
        child.wait().unwrap();
        assert!(!is_alive(pid));
    }
}

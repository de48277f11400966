//! Starting the daemon for a command that needs it.
//!
//! The daemon gets a session of its own, so that closing the terminal or pressing Ctrl-C does not reach it. Making a session
//! between fork and exec would need `unsafe`; instead this program is started again as `palyra daemon run --new-session`,
//! which makes the session and then becomes `palyrad`. It begins in the caller's directory, because variables such as
//! `PALYRA_CONFIG` may be relative to it, and leaves that directory once it has read them.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use palyra_client::Client;
use palyra_client::api::HealthResponse;
use palyra_common::{ErrorCategory, ExitCode, config, env_vars};

use crate::console::Style;
use crate::context::Context;
use crate::error::CliError;

/// Time until healthy before a start counts as failed.
const START_PATIENCE: Duration = Duration::from_secs(10);
/// A daemon that lost the race against another one exits at once; the winner is healthy soon after.
const RACE_PATIENCE: Duration = Duration::from_secs(3);
const POLL: Duration = Duration::from_millis(20);
/// A log beyond this size is set aside at the next start; one older log is kept.
const LARGEST_LOG: u64 = 16 * 1024 * 1024;
const LINES_SHOWN: usize = 10;

/// Whether the daemon was there already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Started {
    /// It was.
    Already,
    /// It was started now.
    Now,
}

/// A client of a daemon that runs, which is started if none does.
pub(crate) async fn ensure(context: &Context) -> Result<(Client, HealthResponse, Started), CliError> {
    let client = context.client()?;
    match client.health().await {
        Ok(health) => return Ok((client, health, Started::Already)),
        Err(error) if error.is_unreachable() && context.address().is_none() => {}
        Err(error) => return Err(error.into()),
    }
    // The daemon would refuse the same configuration, but its answer would have to be dug out of a log.
    config::load(&context.environment)?;
    palyra_journal::check_writable(context.state_root()?)?;
    let health = start(context, &client).await?;
    Ok((client, health, Started::Now))
}

/// A client for a command that needs no more of the daemon than its answers. A daemon that was named is never started.
pub(crate) async fn connect(context: &Context) -> Result<Client, CliError> {
    if context.address().is_some() {
        return context.client();
    }
    let (client, _, started) = ensure(context).await?;
    if started == Started::Now && context.console.is_text() {
        context.console.remark(&context.console.styled(Style::Dim, "the daemon was not running; started it"));
    }
    Ok(client)
}

async fn start(context: &Context, client: &Client) -> Result<HealthResponse, CliError> {
    let log = context.log_file()?;
    let (log_file, log_start) =
        open_log(&log).map_err(|source| CliError::File { doing: "write", path: log.clone(), source })?;
    let mut child = spawn(context, log_file)?;
    let began = Instant::now();
    let mut deadline = began + START_PATIENCE;
    let mut exited: Option<ExitStatus> = None;
    loop {
        if let Ok(health) = client.health().await {
            context.console.wipe_progress();
            return Ok(health);
        }
        if exited.is_none()
            && let Ok(Some(status)) = child.try_wait()
        {
            exited = Some(status);
            let lost_the_race = status.code() == Some(ExitCode::Precondition as i32);
            let more = if lost_the_race { RACE_PATIENCE } else { Duration::ZERO };
            deadline = deadline.min(Instant::now() + more);
        }
        if Instant::now() >= deadline {
            return Err(failed(context, exited, &log, log_start));
        }
        if began.elapsed() > Duration::from_secs(1) {
            context.console.progress(&format!("starting the daemon … {} s", began.elapsed().as_secs()));
        }
        tokio::time::sleep(POLL).await;
    }
}

fn spawn(context: &Context, log: File) -> Result<Child, CliError> {
    // Found here rather than in the child, so that its absence is an error of this command.
    daemon_program(context)?;
    let own = own_program()?;
    let failed = |source: io::Error| CliError::DaemonStart {
        reason: source.to_string(),
        category: ErrorCategory::Internal,
        log: Vec::new(),
    };
    let second_handle = log.try_clone().map_err(failed)?;
    Command::new(own)
        .args(["daemon", "run", "--new-session"])
        .env(env_vars::PALYRA_STATE_ROOT, context.state_root()?)
        .stdin(Stdio::null())
        .stdout(log)
        .stderr(second_handle)
        .spawn()
        .map_err(failed)
}

fn own_program() -> Result<PathBuf, CliError> {
    std::env::current_exe().map_err(|source| CliError::DaemonStart {
        reason: format!("cannot find the path of this program: {source}"),
        category: ErrorCategory::Internal,
        log: Vec::new(),
    })
}

/// `palyrad` beside this program, or else the first one on `PATH`.
pub(crate) fn daemon_program(context: &Context) -> Result<PathBuf, CliError> {
    let own = own_program()?;
    let beside = own.parent().unwrap_or(Path::new("/"));
    let on_path = context.environment.get("PATH").unwrap_or_default().to_owned();
    std::iter::once(beside.to_owned())
        .chain(std::env::split_paths(&on_path))
        .map(|directory| directory.join("palyrad"))
        .find(|candidate| candidate.is_file())
        .ok_or_else(|| CliError::DaemonMissing { beside: format!("`{}`", beside.display()) })
}

fn open_log(path: &Path) -> io::Result<(File, u64)> {
    if let Some(directory) = path.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    }
    if fs::metadata(path).is_ok_and(|log| log.len() > LARGEST_LOG) {
        fs::rename(path, path.with_extension("log.1"))?;
    }
    let file = OpenOptions::new().create(true).append(true).mode(0o600).open(path)?;
    let length = file.metadata()?.len();
    Ok((file, length))
}

fn failed(context: &Context, exited: Option<ExitStatus>, log: &Path, log_start: u64) -> CliError {
    let lines = last_lines(log, log_start, LINES_SHOWN).unwrap_or_default();
    if context.console.is_text() {
        for line in &lines {
            context.console.remark(&format!("  palyrad: {}", crate::console::one_line(line)));
        }
    }
    let (reason, category) = match exited {
        None => {
            (format!("it did not become healthy within {} s", START_PATIENCE.as_secs()), ErrorCategory::Availability)
        }
        Some(status) => (format!("it exited at once ({status})"), category_of(status)),
    };
    CliError::DaemonStart { reason, category, log: lines }
}

/// The daemon ends with the same exit codes as this program.
fn category_of(status: ExitStatus) -> ErrorCategory {
    match status.code() {
        Some(1) => ErrorCategory::Internal,
        Some(2) => ErrorCategory::Validation,
        Some(3) => ErrorCategory::Auth,
        Some(6) => ErrorCategory::Policy,
        Some(7) => ErrorCategory::Conflict,
        Some(8) => ErrorCategory::NotFound,
        _ => ErrorCategory::Availability,
    }
}

/// The last lines of a file, looking at no more than its last 64 KiB and at nothing before `start`.
pub(crate) fn last_lines(path: &Path, start: u64, count: usize) -> io::Result<Vec<String>> {
    const WINDOW: u64 = 64 * 1024;
    let mut file = File::open(path)?;
    let length = file.metadata()?.len();
    let from = start.max(length.saturating_sub(WINDOW));
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if from > start && !lines.is_empty() {
        lines.remove(0);
    }
    Ok(lines.split_off(lines.len().saturating_sub(count)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn the_log_is_private_and_does_not_grow_for_ever() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state/logs/palyrad.log");
        let (file, start) = open_log(&path).unwrap();
        assert_eq!((start, file.metadata().unwrap().permissions().mode() & 0o777), (0, 0o600));
        assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().permissions().mode() & 0o777, 0o700);
        file.set_len(LARGEST_LOG + 1).unwrap();
        assert_eq!(open_log(&path).unwrap().1, 0);
        assert!(directory.path().join("state/logs/palyrad.log.1").exists());
    }

    #[test]
    fn last_lines_come_whole_and_only_from_the_start_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "old\none\ntwo\nthree\n").unwrap();
        assert_eq!(last_lines(&path, 4, 10).unwrap(), ["one", "two", "three"]);
        assert_eq!(last_lines(&path, 0, 2).unwrap(), ["two", "three"]);
        fs::write(&path, "x".repeat(70_000) + "\nlast\n").unwrap();
        assert_eq!(last_lines(&path, 0, 5).unwrap(), ["last"]);
    }
}

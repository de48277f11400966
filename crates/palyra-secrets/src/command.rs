//! What a command prints, taken as a secret: `exec:pass show work/openai`.
//!
//! No shell is involved: the line is cut into words as a shell would and the first one is run. The command has no input, its standard
//! error goes nowhere (it may hold half a secret), it gets a time and a size, and it stands alone in its process group, so that what
//! it leaves behind is ended with it. Everything it printed is overwritten in memory.
//!
//! INVARIANT: when [`secret_of_command`] returns, nothing of the group is left running.

use std::io::Read as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use palyra_common::{Environment, SecretError, SecretString};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use zeroize::Zeroizing;

/// How often a command that has closed its output is asked whether it has ended.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// What a command may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLimits {
    /// Longest time. A password manager that waits for a person is not answered by a daemon.
    pub time: Duration,
    /// Most bytes of output; more is not a secret.
    pub bytes: usize,
}

impl Default for CommandLimits {
    fn default() -> Self {
        Self { time: Duration::from_secs(10), bytes: 64 * 1024 }
    }
}

/// Runs a command and takes the text it prints, without the white space around it. Blocks for up to the limit.
pub fn secret_of_command(
    line: &str,
    environment: &Environment,
    limits: CommandLimits,
) -> Result<SecretString, SecretError> {
    let words = shlex::split(line).filter(|words| words.first().is_some_and(|word| !word.is_empty()));
    let Some((program, arguments)) = words.as_deref().and_then(<[String]>::split_first) else {
        // The line is not repeated: somebody may have pasted a secret behind `exec:`.
        return Err(failed("", "its quotes are unbalanced, or it is empty"));
    };
    let deadline = Instant::now() + limits.time;
    let mut running = Running::start(program, arguments, environment)?;
    let printed = running.output(limits, deadline).map_err(|reason| failed(program, reason))?;
    // Not waited for: it may want to print for ever.
    if printed.len() > limits.bytes {
        return Err(failed(program, format!("it printed more than {} bytes", limits.bytes)));
    }
    let status = running.end(deadline).map_err(|reason| failed(program, reason))?;
    if !status.success() {
        return Err(failed(program, format!("it exited with {status}")));
    }
    match std::str::from_utf8(&printed).map(str::trim) {
        Err(_) => Err(failed(program, "its output is not valid UTF-8")),
        Ok("") => Err(failed(program, "it printed nothing")),
        Ok(secret) => Ok(SecretString::from(secret.to_owned())),
    }
}

fn failed(program: &str, reason: impl Into<String>) -> SecretError {
    let name = Path::new(program).file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    SecretError::CommandFailed { program: name, reason: reason.into() }
}

/// A command that runs. Dropping it ends its whole group.
struct Running {
    child: Child,
    group: Option<Pid>,
}

impl Running {
    fn start(program: &str, arguments: &[String], environment: &Environment) -> Result<Self, SecretError> {
        let variables = environment.names().filter_map(|name| environment.get(name).map(|value| (name, value)));
        // A program named by a relative path is looked for from the directory it runs in.
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(variables)
            .current_dir(environment.absolute(Path::new(".")))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0);
        palyra_common::restore_file_limit(&mut command);
        let child = command.spawn().map_err(|error| failed(program, format!("it cannot be started: {error}")))?;
        let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(Self { child, group })
    }

    /// All that it prints, up to one byte more than allowed.
    fn output(&mut self, limits: CommandLimits, deadline: Instant) -> Result<Zeroizing<Vec<u8>>, String> {
        let Some(stdout) = self.child.stdout.take() else { return Err("its output is not available".to_owned()) };
        let (sender, receiver) = mpsc::sync_channel(1);
        let most = limits.bytes.saturating_add(1);
        let reader = move || {
            // Room for everything from the start: a vector that grows would leave copies behind.
            let mut bytes = Zeroizing::new(Vec::with_capacity(most));
            let read = stdout.take(most as u64).read_to_end(&mut bytes);
            // The other side is gone if time is up; the bytes are then overwritten here.
            let _ = sender.send(read.map(|_| bytes));
        };
        let spawned = std::thread::Builder::new().name("secret-command".to_owned()).spawn(reader);
        spawned.map_err(|error| format!("its output cannot be read: {error}"))?;
        match receiver.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
            Ok(Ok(bytes)) => Ok(bytes),
            Ok(Err(error)) => Err(format!("its output cannot be read: {error}")),
            // The thread ends with the group, which holds the other end of the pipe.
            Err(_) => Err(format!("it took longer than {} s", limits.time.as_secs_f32())),
        }
    }

    /// How it ended.
    fn end(&mut self, deadline: Instant) -> Result<ExitStatus, String> {
        while !self.has_ended()? {
            if Instant::now() >= deadline {
                return Err("it did not exit in time".to_owned());
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        self.kill_group();
        self.child.wait().map_err(|error| format!("it cannot be waited for: {error}"))
    }

    /// Looks without reaping: until it is reaped its number is nobody else's, and the group can be ended safely.
    fn has_ended(&self) -> Result<bool, String> {
        let Some(leader) = self.group else { return Ok(true) };
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        let looked = waitid(WaitId::Pid(leader), options);
        looked.map(|status| status.is_some()).map_err(|error| format!("it cannot be waited for: {error}"))
    }

    /// Ends the group, once.
    fn kill_group(&mut self) {
        if let Some(group) = self.group.take() {
            let _ = kill_process_group(group, Signal::KILL);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill_group();
        let _ = self.child.wait();
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;

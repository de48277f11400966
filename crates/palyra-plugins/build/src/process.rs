//! Runs compilers: with an end, and with their words kept.

use std::io::Read;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::{BuildError, Language};

/// A first build fetches and compiles a language kit; nothing that works takes longer than this.
pub(crate) const LIMIT: Duration = Duration::from_secs(900);

/// How often an unfinished compiler is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// Most of a compiler's output that is read; the rest is thrown away.
const READ: u64 = 4 * 1024 * 1024;

/// What a compiler said.
pub(crate) struct Said {
    /// Whether it reports success.
    pub(crate) success: bool,
    /// Standard output, then standard error.
    pub(crate) all: String,
}

/// Runs a compiler to its end and fails when it does.
pub(crate) fn compile(language: Language, command: &mut Command) -> Result<Said, BuildError> {
    let said = run(language, command)?;
    if said.success { Ok(said) } else { Err(BuildError::compiler(language, &said.all)) }
}

/// Runs a compiler to its end.
pub(crate) fn run(language: Language, command: &mut Command) -> Result<Said, BuildError> {
    let program = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(BuildError::io(program))?;
    let out = collect(child.stdout.take());
    let error = collect(child.stderr.take());
    let success = wait(language, &mut child)?;
    let out = out.join().unwrap_or_default();
    let error = error.join().unwrap_or_default();
    Ok(Said { all: format!("{out}\n{error}"), success })
}

fn wait(language: Language, child: &mut Child) -> Result<bool, BuildError> {
    let start = Instant::now();
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Ok(status.success()),
            Ok(None) if start.elapsed() < LIMIT => thread::sleep(LOOK),
            outcome => {
                // The compiler is stopped whether it hangs or cannot be asked; what it left is in a folder that is thrown away.
                let _ = child.kill();
                let _ = child.wait();
                return match outcome {
                    Err(error) => Err(BuildError::compiler(language, &error.to_string())),
                    Ok(_) => Err(BuildError::CompileTimedOut { language, limit: LIMIT }),
                };
            }
        }
    }
}

fn collect(pipe: Option<impl Read + Send + 'static>) -> thread::JoinHandle<String> {
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(mut pipe) = pipe {
            // A compiler that says too much, or not UTF-8, still has its exit code.
            let _ = pipe.by_ref().take(READ).read_to_end(&mut bytes);
            let _ = std::io::copy(&mut pipe, &mut std::io::sink());
        }
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// The first line that a program prints about its version, if it starts.
pub(crate) fn version(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok()?;
    if !output.status.success() {
        return None;
    }
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().next().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty())
}

/// Why a program that is there does not do what it is asked: the first line of its error output.
pub(crate) fn complaint(command: &mut Command) -> Option<String> {
    let output = command.stdin(Stdio::null()).output().ok().filter(|output| !output.status.success())?;
    let text = String::from_utf8_lossy(&output.stderr);
    let line =
        text.lines().next().map(|line| line.trim().trim_start_matches("error: ").trim_end_matches('.').to_owned());
    line.filter(|line| !line.is_empty())
}

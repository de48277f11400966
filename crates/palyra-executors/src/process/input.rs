//! What a model writes to start a process, and the checks that do not need the host.

use std::collections::BTreeMap;
use std::time::Duration;

use palyra_common::command_line;
use palyra_tools::ToolError;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

/// Longest time a process may be given in one call (contracts: tool, at most 600 s).
pub(super) const MAX_SECONDS: u64 = 600;
/// How long a process may take unless the call says otherwise.
pub(super) const DEFAULT_SECONDS: u64 = 120;

/// Runs a program in a sandbox (workspace, system programs, private /tmp, no network) and returns its output and exit code. No shell:
/// quotes, pipes, globs and `$` have no meaning.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessRunInput {
    /// Program and arguments, such as `["cargo", "test"]`.
    pub(super) argv: Vec<String>,
    /// Working directory; the workspace by default.
    #[serde(default)]
    pub(super) cwd: Option<String>,
    /// Required if the program is a shell such as `sh`.
    #[serde(default)]
    pub(super) shell: bool,
    /// Environment variables; only names that the operator allows.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
    /// Standard input.
    #[serde(default)]
    pub(super) stdin: Option<String>,
    /// 1 to 600; 120 by default.
    #[serde(default)]
    pub(super) timeout_seconds: Option<u64>,
    /// Gives the program a terminal of this many columns instead of pipes; its output is then one stream.
    #[serde(default)]
    #[schemars(extend("x-rare" = true))]
    pub(super) terminal_columns: Option<u16>,
}

/// Starts a program in a sandbox in the background, for servers and watchers, and returns its id. It runs until it ends, is stopped with
/// palyra.process.stop, or the run ends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ProcessStartInput {
    /// Program and arguments, such as `["python3", "-m", "http.server"]`.
    pub(super) argv: Vec<String>,
    /// Working directory; the workspace by default.
    #[serde(default)]
    pub(super) cwd: Option<String>,
    /// Required if the program is a shell such as `sh`.
    #[serde(default)]
    pub(super) shell: bool,
    /// Environment variables; only names that the operator allows.
    #[serde(default)]
    pub(super) env: BTreeMap<String, String>,
}

/// A process to start, whichever tool asked.
#[derive(Debug, Clone)]
pub(super) struct Wanted {
    pub(super) argv: Vec<String>,
    pub(super) cwd: Option<String>,
    pub(super) env: BTreeMap<String, String>,
    pub(super) wall: Duration,
    pub(super) terminal_columns: Option<u16>,
}

impl ProcessRunInput {
    /// The time that the call may take, within what the engine gives it.
    pub(super) fn wanted(&self, tool: &str, limit: Duration) -> Result<Wanted, ToolError> {
        let seconds = self.timeout_seconds.unwrap_or(DEFAULT_SECONDS);
        if seconds == 0 || seconds > MAX_SECONDS {
            let message = format!("{seconds} s; give 1 to {MAX_SECONDS}");
            return Err(ToolError::argument(tool, "timeout_seconds", "out_of_range", message));
        }
        if self.terminal_columns == Some(0) {
            return Err(ToolError::argument(tool, "terminal_columns", "out_of_range", "a terminal has columns"));
        }
        check_argv(tool, &self.argv, self.shell)?;
        Ok(Wanted {
            argv: self.argv.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            // The engine's own limit comes last, so that output and exit status are there to be returned.
            wall: Duration::from_secs(seconds).min(limit.saturating_sub(Duration::from_secs(2))),
            terminal_columns: self.terminal_columns,
        })
    }
}

impl ProcessStartInput {
    pub(super) fn wanted(&self, tool: &str, longest: Duration) -> Result<Wanted, ToolError> {
        check_argv(tool, &self.argv, self.shell)?;
        Ok(Wanted {
            argv: self.argv.clone(),
            cwd: self.cwd.clone(),
            env: self.env.clone(),
            wall: longest,
            terminal_columns: None,
        })
    }
}

/// Arguments as the tool takes them.
pub(super) fn parsed<Input: serde::de::DeserializeOwned>(tool: &str, arguments: &Value) -> Result<Input, ToolError> {
    serde_json::from_value(arguments.clone())
        .map_err(|error| ToolError::argument(tool, "arguments", "invalid", error.to_string()))
}

fn check_argv(tool: &str, argv: &[String], shell: bool) -> Result<(), ToolError> {
    let empty = |message| Err(ToolError::argument(tool, "argv", "empty", message));
    match argv.first() {
        None => empty("there is no program to run"),
        Some(program) if program.trim().is_empty() => empty("the program has no name"),
        Some(_) if is_shell(argv) && !shell => Err(ToolError::argument(
            tool,
            "shell",
            "required",
            "this is a shell; name the program and its arguments instead, or set `shell` to true",
        )),
        Some(_) => Ok(()),
    }
}

/// Programs that run whatever text they are given.
const SHELLS: [&str; 9] = ["sh", "bash", "dash", "zsh", "ksh", "ash", "fish", "csh", "tcsh"];
/// Programs that run another program, which may be a shell.
const WRAPPERS: [&str; 10] =
    ["env", "nice", "nohup", "timeout", "setsid", "stdbuf", "time", "xargs", "busybox", "sudo"];

/// Whether a command line starts a shell, as far as its words say.
fn is_shell(argv: &[String]) -> bool {
    let named = |word: &String, names: &[&str]| word.rsplit('/').next().is_some_and(|name| names.contains(&name));
    let Some((program, rest)) = argv.split_first() else { return false };
    named(program, &SHELLS) || (named(program, &WRAPPERS) && rest.iter().any(|word| named(word, &SHELLS)))
}

/// The command line in arguments that may not be valid yet, for summaries and resources.
pub(super) fn shown(arguments: &Value) -> String {
    let entries = arguments.get("argv").and_then(Value::as_array);
    let argv: Vec<String> =
        entries.into_iter().flatten().filter_map(|entry| entry.as_str().map(str::to_owned)).collect();
    command_line(argv.iter().map(String::as_str))
}

/// The directory in such arguments, in one spelling.
pub(super) fn shown_cwd(arguments: &Value) -> &str {
    match arguments.get("cwd").and_then(Value::as_str) {
        None | Some("" | "." | "./") => ".",
        Some(cwd) => cwd,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_are_recognised_also_behind_wrappers() {
        let argv = |line: &str| -> Vec<String> { line.split(' ').map(str::to_owned).collect() };
        for line in ["sh -c ls", "/bin/bash x", "env bash -c ls", "/usr/bin/env -i sh", "timeout 5 dash", "busybox sh"]
        {
            assert!(is_shell(&argv(line)), "{line}");
            assert!(check_argv("t", &argv(line), false).is_err() && check_argv("t", &argv(line), true).is_ok());
        }
        for line in ["cargo test", "fresh", "python3 sh", "env cargo test", "ls /bin/sh"] {
            assert!(!is_shell(&argv(line)), "{line}");
            assert!(check_argv("t", &argv(line), false).is_ok(), "{line}");
        }
    }
}

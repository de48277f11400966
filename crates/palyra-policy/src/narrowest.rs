//! The narrowest pattern that covers a call and those that were approved before it.
//!
//! What was equal in all of them stays exact. Commands that begin with the same words may become a beginning, if those words say
//! what is run; everything else becomes the list of what was seen. Nothing is ever guessed wider than that.

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::Confidentiality;

use crate::pattern::{COVERED, NEVER_IN_THE_REST};
use crate::{ObservedCall, Pattern, PolicyError, SinkKind, ValuePattern};

/// How many words commands must share before the rest may vary: a program and what it is to do.
const SHARED_WORDS: usize = 2;

/// Programs that run what their arguments, or what they read, say: sharing their first words says nothing about what is run.
const LAUNCHERS: [&str; 106] = [
    "R",
    "Rscript",
    "ash",
    "at",
    "awk",
    "bash",
    "batch",
    "bun",
    "bunx",
    "busybox",
    "bwrap",
    "capsh",
    "chroot",
    "cron",
    "csh",
    "curl",
    "dash",
    "deno",
    "doas",
    "docker",
    "dotnet",
    "emacs",
    "env",
    "eval",
    "exec",
    "expect",
    "fakeroot",
    "find",
    "firejail",
    "fish",
    "flatpak",
    "flock",
    "gawk",
    "gdb",
    "ionice",
    "java",
    "just",
    "ksh",
    "kubectl",
    "ld",
    "ld-linux",
    "less",
    "lldb",
    "ltrace",
    "lua",
    "make",
    "man",
    "mawk",
    "nice",
    "nix",
    "node",
    "nohup",
    "npm",
    "npx",
    "nsenter",
    "numactl",
    "osascript",
    "parallel",
    "pdb",
    "perl",
    "php",
    "pip",
    "pipx",
    "pnpm",
    "podman",
    "poetry",
    "pwsh",
    "python",
    "rsync",
    "ruby",
    "runuser",
    "rust-gdb",
    "scp",
    "screen",
    "script",
    "sed",
    "setsid",
    "sh",
    "socat",
    "source",
    "sqlite",
    "ssh",
    "stdbuf",
    "strace",
    "su",
    "sudo",
    "systemd-run",
    "tar",
    "taskset",
    "tclsh",
    "tcsh",
    "time",
    "timeout",
    "tmux",
    "tsx",
    "unshare",
    "uv",
    "uvx",
    "valgrind",
    "vi",
    "vim",
    "watch",
    "wget",
    "xargs",
    "yarn",
    "zsh",
];

/// The narrowest pattern that covers the first of these calls and those of the others that are calls of the same tool steered by the
/// same arguments.
///
/// # Errors
/// When no pattern can cover the call: it brings a credential, or a steering argument without a value that may be looked at.
pub fn narrowest_pattern(calls: &[ObservedCall]) -> Result<Pattern, PolicyError> {
    let Some(call) = calls.first() else { return Err(PolicyError::bad_pattern("there is no call to cover")) };
    let steering = steering(call)?;
    let mut seen: BTreeMap<&str, (SinkKind, BTreeSet<&str>)> =
        steering.iter().map(|(name, (kind, value))| (*name, (*kind, BTreeSet::from([*value])))).collect();
    let mut content_up_to = content(call);
    let alike = |other: &&ObservedCall| {
        (&other.tool, &other.workspace, &other.method) == (&call.tool, &call.workspace, &call.method)
    };
    for other in calls.iter().skip(1).filter(alike) {
        let Ok(values) = self::steering(other) else { continue };
        let same = values.len() == steering.len()
            && values.iter().all(|(name, (kind, _))| steering.get(name).is_some_and(|(expected, _)| expected == kind));
        if same {
            content_up_to = content_up_to.max(content(other));
            for (name, (_, value)) in values {
                if let Some((_, seen)) = seen.get_mut(name) {
                    seen.insert(value);
                }
            }
        }
    }
    let arguments =
        seen.into_iter().map(|(name, (kind, values))| (name.to_owned(), narrowest(kind, &values))).collect();
    let (tool, workspace, method) = (call.tool.clone(), call.workspace.clone(), call.method.clone());
    Ok(Pattern { tool, arguments, content_up_to, workspace, method })
}

/// The arguments that a pattern must cover, with their values.
fn steering(call: &ObservedCall) -> Result<BTreeMap<&str, (SinkKind, &str)>, PolicyError> {
    let mut found = BTreeMap::new();
    for (argument, kind) in call.sinks() {
        if kind == SinkKind::Credential {
            return Err(PolicyError::bad_pattern(format!("`{}` is a credential", argument.name)));
        }
        if COVERED.contains(&kind) {
            let value = argument.value.as_deref();
            let value =
                value.ok_or_else(|| PolicyError::bad_pattern(format!("`{}` has no value to cover", argument.name)))?;
            found.insert(argument.name.as_str(), (kind, value));
        }
    }
    Ok(found)
}

fn content(call: &ObservedCall) -> Confidentiality {
    let contents = call.sinks().filter(|(_, kind)| *kind == SinkKind::Content);
    contents.map(|(argument, _)| argument.label.confidentiality).max().unwrap_or(Confidentiality::Public)
}

fn narrowest(kind: SinkKind, values: &BTreeSet<&str>) -> ValuePattern {
    let mut each = values.iter();
    if let (Some(only), None) = (each.next(), each.next()) {
        return ValuePattern::Exact((*only).to_owned());
    }
    let shared = if kind == SinkKind::Command { shared_beginning(values) } else { None };
    shared.map_or_else(
        || ValuePattern::OneOf(values.iter().map(|value| (*value).to_owned()).collect()),
        ValuePattern::Prefix,
    )
}

/// The words that all commands begin with, if they say what is run.
fn shared_beginning(values: &BTreeSet<&str>) -> Option<String> {
    let mut words: Option<Vec<&str>> = None;
    for value in values {
        if NEVER_IN_THE_REST.iter().any(|piece| value.contains(piece)) {
            return None;
        }
        let these: Vec<&str> = value.split(' ').collect();
        words = Some(match words {
            None => these,
            Some(earlier) => {
                earlier.into_iter().zip(these).take_while(|(left, right)| left == right).map(|(word, _)| word).collect()
            }
        });
    }
    let words = words?;
    let (program, task) = (words.first()?, words.get(1)?);
    let program = program.rsplit('/').next().unwrap_or_default();
    let vague = words.len() < SHARED_WORDS
        || words.iter().any(|word| runs_others(word))
        || task.starts_with('-')
        || task.is_empty();
    (!vague && !program.is_empty() && !program.contains('=')).then(|| format!("{} ", words.join(" ")))
}

/// Whether a word names a program that runs others: whichever version, wherever it lies.
fn runs_others(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or_default();
    let name = name.trim_end_matches(|letter: char| letter.is_ascii_digit() || letter == '.' || letter == '-');
    LAUNCHERS.contains(&name)
}

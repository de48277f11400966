//! The narrowest pattern that covers a call and those that were approved before it.
//!
//! INVARIANT: what a pattern leaves open is content that somebody reviewed, and its sentence names that. Every other value is shown in the sentence exactly as it is; a
//! call with a value that cannot be shown so has no pattern.
//!
//! What was equal in all of them stays exact. Commands that begin with the same words may become a beginning, if those words say
//! what is run; everything else becomes the list of what was seen. Nothing is ever guessed wider than that.

use std::collections::{BTreeMap, BTreeSet};

use palyra_common::Confidentiality;

use crate::pattern::NEVER_IN_THE_REST;
use crate::reasons::shown;
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

/// Longest value that is part of a pattern, in characters. Nobody agrees to what does not fit into a sentence.
const MAX_SHOWN: usize = 100;

/// The narrowest pattern that covers the first of these calls and those of the others that are calls of the same tool with the same
/// arguments, and answers these policies. What it clears is what the first call may carry.
///
/// # Errors
/// When no pattern can cover the call: it brings a credential, an argument without a value that may be looked at, or one that a sentence cannot show exactly.
pub fn narrowest_pattern(calls: &[ObservedCall], answers: BTreeSet<String>) -> Result<Pattern, PolicyError> {
    let Some(call) = calls.first() else { return Err(PolicyError::bad_pattern("there is no call to cover")) };
    let steering = steering(call)?;
    let mut seen: BTreeMap<&str, (Option<SinkKind>, BTreeSet<&str>)> =
        steering.iter().map(|(name, (kind, value))| (*name, (*kind, BTreeSet::from([*value])))).collect();
    let mut content_up_to = content(call);
    let alike = |other: &&ObservedCall| {
        (&other.tool, &other.workspace, &other.method) == (&call.tool, &call.workspace, &call.method)
            && (&other.empty, &other.destination) == (&call.empty, &call.destination)
            && contents(other) == contents(call)
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
    let pattern = Pattern {
        tool: call.tool.clone(),
        arguments,
        empty: call.empty.clone(),
        content: contents(call).into_iter().map(str::to_owned).collect(),
        content_up_to,
        workspace: call.workspace.clone(),
        method: call.method.clone(),
        destination: call.destination.clone(),
        cleared: call.uncleared.clone(),
        answers,
    };
    pattern.check()?;
    Ok(pattern)
}

/// All arguments but reviewed content, with their values. What nobody reviewed may steer the call.
fn steering(call: &ObservedCall) -> Result<BTreeMap<&str, (Option<SinkKind>, &str)>, PolicyError> {
    let mut found = BTreeMap::new();
    let names =
        call.arguments.iter().map(|argument| argument.name.as_str()).chain(call.empty.iter().map(String::as_str));
    if let Some(name) = names.into_iter().find(|name| !is_shown_exactly(name)) {
        return Err(PolicyError::bad_pattern(format!("the name `{}` cannot be shown as it is", shown(name))));
    }
    for argument in call.arguments.iter().filter(|argument| argument.sink != Some(SinkKind::Content)) {
        let bad = |reason: &str| PolicyError::bad_pattern(format!("`{}` {reason}", argument.name));
        if argument.sink == Some(SinkKind::Credential) {
            return Err(bad("is a credential"));
        }
        let value = argument.value.as_deref().ok_or_else(|| bad("has no value to cover"))?;
        if !is_shown_exactly(value) {
            return Err(bad("cannot be shown as it is"));
        }
        found.insert(argument.name.as_str(), (argument.sink, value));
    }
    Ok(found)
}

/// Whether a person who reads the sentence sees every character.
fn is_shown_exactly(text: &str) -> bool {
    text.chars().count() <= MAX_SHOWN && shown(text) == text
}

/// The names of the arguments with reviewed content.
fn contents(call: &ObservedCall) -> BTreeSet<&str> {
    let contents = call.arguments.iter().filter(|argument| argument.sink == Some(SinkKind::Content));
    contents.map(|argument| argument.name.as_str()).collect()
}

fn content(call: &ObservedCall) -> Confidentiality {
    let contents = call.arguments.iter().filter(|argument| argument.sink == Some(SinkKind::Content));
    contents.map(|argument| argument.label.confidentiality).max().unwrap_or(Confidentiality::Public)
}

fn narrowest(kind: Option<SinkKind>, values: &BTreeSet<&str>) -> ValuePattern {
    let mut each = values.iter();
    if let (Some(only), None) = (each.next(), each.next()) {
        return ValuePattern::Exact((*only).to_owned());
    }
    let shared = if kind == Some(SinkKind::Command) { shared_beginning(values) } else { None };
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

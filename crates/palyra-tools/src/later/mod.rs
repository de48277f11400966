//! Changes that take effect later, outside of any sandbox: files that a trusted tool executes, and files that instruct agents.
//!
//! What a program does in the workspace is contained until somebody's git, shell, editor or build runs what it left there. So such changes are collected over a run and accepted by a
//! person at its end. [`later_change`] says of one change whether it is such a one; it is pure, and what it cannot read counts. [`belongs`] says whether a person has to be asked about it.

mod git_config;
mod manifests;
mod table;

use std::path::Path;

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

pub use table::{LaterExecuted, later_executed};

runtime_contract_enum! {
    /// When a person is asked about a change that takes effect later.
    pub enum Standing("later_standing") {
        /// Whoever made it.
        Always = "always",
        /// If it was made from untrusted text, or by a program that was not told to.
        IfSteered = "if_steered",
    }
}

/// A change that takes effect later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaterChange {
    /// The file.
    pub path: String,
    /// Who will execute or follow it.
    pub by: LaterExecuted,
    /// When a person is asked.
    pub standing: Standing,
    /// What is different, for a person: lines that went, and lines that came.
    pub difference: String,
}

/// Who made a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WrittenBy {
    /// A file tool, which wrote what the planner gave it.
    FileTool,
    /// A program, whatever it was told.
    Program,
}

/// What stands at a path, as far as it can be looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Held<'a> {
    /// Nothing.
    Nothing,
    /// A file with this content.
    File(&'a [u8]),
    /// Something that cannot be looked at: a link, or a file that is too long.
    Unknown,
}

impl<'a> Held<'a> {
    fn of(side: Option<Option<&'a [u8]>>) -> Self {
        match side {
            None => Self::Nothing,
            Some(None) => Self::Unknown,
            Some(Some(bytes)) => Self::File(bytes),
        }
    }
}

/// Most bytes of a difference that a person is shown.
const SHOWN: usize = 4 << 10;

/// What a change of a file means for later, if anything: `before` and `after` are its contents, `None` where there is no file, and `Some(None)` where its content cannot be looked at.
#[must_use]
pub fn later_change(path: &str, before: Option<Option<&[u8]>>, after: Option<Option<&[u8]>>) -> Option<LaterChange> {
    let by = later_executed(Path::new(path))?;
    let (before, after) = (Held::of(before), Held::of(after));
    if after == Held::Nothing {
        // What is gone executes nothing.
        return None;
    }
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let takes_effect = match by {
        LaterExecuted::GitConfiguration if name == "config" || name == "config.worktree" || name == ".gitconfig" => {
            git_config::takes_effect(before, after)
        }
        LaterExecuted::Build => manifests::takes_effect(&name, before, after),
        LaterExecuted::GitConfiguration
        | LaterExecuted::Hook
        | LaterExecuted::Git
        | LaterExecuted::DirectoryEnvironment
        | LaterExecuted::EditorTask
        | LaterExecuted::Editor
        | LaterExecuted::Automation
        | LaterExecuted::Toolchain
        | LaterExecuted::Instructions => true,
    };
    takes_effect.then(|| LaterChange {
        path: path.to_owned(),
        by,
        standing: by.standing(),
        difference: difference(before, after),
    })
}

/// Whether a person is asked about a change. `tainted` says whether the run had seen untrusted text when it was made, `words` are the texts of the user and the operator.
#[must_use]
pub fn belongs<'a>(
    change: &LaterChange,
    tainted: bool,
    written_by: WrittenBy,
    words: impl Iterator<Item = &'a str>,
) -> bool {
    match (change.standing, written_by) {
        (Standing::Always, _) => true,
        (Standing::IfSteered, _) if tainted => true,
        (Standing::IfSteered, WrittenBy::FileTool) => false,
        (Standing::IfSteered, WrittenBy::Program) => !words.into_iter().any(|text| names(text, &change.path)),
    }
}

/// Whether a text names a file: a word of it is its path or its name, exactly.
fn names(text: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let is_end = |letter: char| letter.is_whitespace() || "`'\"()[]{}<>,;:!?".contains(letter);
    text.split(is_end)
        .map(|word| word.trim_end_matches('.').trim_start_matches("./"))
        .any(|word| word == path || word == name)
}

/// The lines that went and those that came, without what is the same at the beginning and the end.
fn difference(before: Held<'_>, after: Held<'_>) -> String {
    let text = |held| match held {
        Held::Nothing => Some(String::new()),
        Held::File(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Held::Unknown => None,
    };
    let (Some(before), Some(after)) = (text(before), text(after)) else {
        return "(its content cannot be shown)".to_owned();
    };
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let first = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(first..).unwrap_or_default(), new.get(first..).unwrap_or_default());
    let last = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    let went = old.iter().take(old.len().saturating_sub(last)).map(|line| format!("-{line}"));
    let came = new.iter().take(new.len().saturating_sub(last)).map(|line| format!("+{line}"));
    let mut shown = format!("@@ line {}\n", first + 1);
    for line in went.chain(came) {
        if shown.len() + line.len() > SHOWN {
            shown.push_str("… (there is more)\n");
            break;
        }
        shown.push_str(&line);
        shown.push('\n');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(path: &str, before: Option<&str>, after: Option<&str>) -> Option<LaterChange> {
        later_change(path, before.map(|text| Some(text.as_bytes())), after.map(|text| Some(text.as_bytes())))
    }

    #[test]
    fn what_is_gone_or_ordinary_has_no_effect_later() {
        assert_eq!(changed("src/main.rs", None, Some("x")), None);
        assert_eq!(changed(".git/hooks/pre-commit", Some("x"), None), None);
        let hook = changed(".git/hooks/pre-commit", None, Some("#!/bin/sh\nevil\n")).unwrap();
        assert_eq!((hook.by, hook.standing), (LaterExecuted::Hook, Standing::Always));
        assert_eq!(hook.difference, "@@ line 1\n+#!/bin/sh\n+evil\n");
        let unknown = later_change(".envrc", Some(Some(b"a")), Some(None)).unwrap();
        assert_eq!(unknown.difference, "(its content cannot be shown)");
    }

    #[test]
    fn a_difference_shows_what_went_and_what_came() {
        let made = changed("Makefile", Some("all:\n\ttrue\nend\n"), Some("all:\n\tfalse\n\tevil\nend\n")).unwrap();
        assert_eq!(made.difference, "@@ line 2\n-\ttrue\n+\tfalse\n+\tevil\n");
        let long = "x".repeat(80) + "\n";
        let made = changed("Makefile", None, Some(&long.repeat(100))).unwrap();
        assert!(made.difference.len() < SHOWN + 40 && made.difference.ends_with("(there is more)\n"));
    }

    #[test]
    fn a_person_is_asked_about_what_nobody_wanted() {
        let build = changed("sub/build.rs", None, Some("fn main() {}")).unwrap();
        let asked = |tainted, by, words: &[&str]| belongs(&build, tainted, by, words.iter().copied());
        assert!(!asked(false, WrittenBy::FileTool, &[]), "the planner wrote it, and had read nothing untrusted");
        assert!(asked(true, WrittenBy::FileTool, &["write build.rs"]));
        assert!(asked(false, WrittenBy::Program, &["build it"]));
        for words in ["generate `sub/build.rs`.", "run the generator, which makes build.rs", "make ./sub/build.rs!"] {
            assert!(!asked(false, WrittenBy::Program, &[words]), "{words}");
        }
        assert!(asked(false, WrittenBy::Program, &["rebuild.rs other/build.rs"]));
        let hook = changed(".husky/pre-push", None, Some("x")).unwrap();
        assert!(belongs(&hook, false, WrittenBy::FileTool, ["write .husky/pre-push"].into_iter()));
    }
}

//! Changes that take effect later, outside of any sandbox: files that a trusted tool executes, and files that instruct agents.
//!
//! What a program does in the workspace is contained until somebody's git, shell, editor or build runs what it left there. So such changes are collected over a run and accepted by a
//! person at its end. A [`LaterSurvey`] of the workspace says which changes are such ones: by the table of known names, under every path by which a file is reached, and by what git's
//! configuration and the manifests of the workspace name. [`belongs`] says whether a person has to be asked about one.
//!
//! A run that has seen untrusted text is asked about everything that is not known to be harmless; any other run is asked about what is known to be executed. What cannot be read counts.

mod difference;
mod git_config;
mod git_directory;
mod inert;
mod links;
mod manifests;
mod mentions;
mod named_by_git;
mod pattern;
mod survey;
mod table;

use std::path::{Path, PathBuf};

use palyra_common::runtime_contract_enum;
use serde::{Deserialize, Serialize};

use self::difference::Difference;
pub use survey::LaterSurvey;
pub use table::{LaterExecuted, later_executed};

runtime_contract_enum! {
    /// When a person is asked about a change that takes effect later; the first asks most often.
    pub enum Standing("later_standing") {
        /// Whoever made it.
        Always = "always",
        /// If it was made from untrusted text, or by a program that was not told to.
        IfSteered = "if_steered",
        /// If it was made from untrusted text.
        IfTainted = "if_tainted",
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
    /// Under which other path it is executed, if links lead there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executed_as: Option<String>,
    /// What is different, for a person: lines that went, and lines that came.
    pub difference: String,
    /// What of the difference is not shown, for a person; nothing if it is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_shown: Option<String>,
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

/// What somebody's tools make of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Role {
    by: LaterExecuted,
    /// The path under which they find it.
    path: PathBuf,
    /// Whether git reads it as its configuration, whatever it is called.
    is_git_configuration: bool,
}

impl Role {
    fn of(by: LaterExecuted, path: &Path) -> Self {
        Self { by, path: path.to_owned(), is_git_configuration: false }
    }

    /// When a person is asked about a change of it, if it has an effect at all.
    fn standing(&self, before: Held<'_>, after: Held<'_>) -> Option<Standing> {
        let name = self.path.file_name().map(|name| name.to_string_lossy().to_lowercase()).unwrap_or_default();
        let always = self.by.standing();
        let takes_effect = match self.by {
            LaterExecuted::GitConfiguration
                if self.is_git_configuration
                    || ["config", "config.worktree"].contains(&name.as_str())
                    || name.starts_with(".gitconfig") =>
            {
                git_config::takes_effect(before, after)
            }
            LaterExecuted::Hook if git_directory::is_todo(&name) => match after {
                Held::File(bytes) => git_directory::executes(bytes),
                Held::Nothing | Held::Unknown => true,
            },
            LaterExecuted::Build | LaterExecuted::Dependencies => {
                return manifests::standing(&name, before, after).map(|found| found.max(always));
            }
            LaterExecuted::GitConfiguration
            | LaterExecuted::Hook
            | LaterExecuted::Git
            | LaterExecuted::DirectoryEnvironment
            | LaterExecuted::Session
            | LaterExecuted::Service
            | LaterExecuted::EditorTask
            | LaterExecuted::Editor
            | LaterExecuted::Automation
            | LaterExecuted::Toolchain
            | LaterExecuted::AgentConfiguration
            | LaterExecuted::Instructions
            | LaterExecuted::Unreviewed => true,
        };
        takes_effect.then_some(always)
    }
}

/// What a change of a file means for later, if anything.
fn later_change(path: &Path, role: &Role, before: Held<'_>, after: Held<'_>) -> Option<LaterChange> {
    if after == Held::Nothing {
        // What is gone executes nothing.
        return None;
    }
    let standing = role.standing(before, after)?;
    Some(described(path, role, standing, Difference::of(before, after)))
}

fn described(path: &Path, role: &Role, standing: Standing, difference: Difference) -> LaterChange {
    let shown = |path: &Path| crate::workspace_path::escape(path.as_os_str());
    LaterChange {
        path: shown(path),
        by: role.by,
        standing,
        executed_as: (role.path != path).then(|| shown(&role.path)),
        difference: difference.text,
        not_shown: difference.not_shown,
    }
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
        (Standing::IfSteered | Standing::IfTainted, _) if tainted => true,
        (Standing::IfTainted, _) | (Standing::IfSteered, WrittenBy::FileTool) => false,
        (Standing::IfSteered, WrittenBy::Program) => {
            let paths = [Some(change.path.as_str()), change.executed_as.as_deref()];
            !words.into_iter().any(|text| paths.into_iter().flatten().any(|path| names(text, path)))
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(path: &str, before: Option<&str>, after: Option<&str>) -> Option<LaterChange> {
        let held = |side: Option<&'static str>| side.map_or(Held::Nothing, |text| Held::File(text.as_bytes()));
        let path = Path::new(path);
        let leak = |text: Option<&str>| text.map(|text| &*text.to_owned().leak());
        later_change(path, &Role::of(later_executed(path)?, path), held(leak(before)), held(leak(after)))
    }

    #[test]
    fn what_is_gone_or_ordinary_has_no_effect_later() {
        assert_eq!(changed("src/main.rs", None, Some("x")), None);
        assert_eq!(changed(".git/hooks/pre-commit", Some("x"), None), None);
        let hook = changed(".git/hooks/pre-commit", None, Some("#!/bin/sh\nevil\n")).unwrap();
        assert_eq!((hook.by, hook.standing), (LaterExecuted::Hook, Standing::Always));
        assert_eq!(hook.difference, "@@ line 1\n+#!/bin/sh\n+evil\n");
    }

    #[test]
    fn what_a_file_says_decides_where_it_can_be_read() {
        let standing = |path, text| changed(path, None, Some(text)).map(|change| change.standing);
        assert_eq!(standing(".git/rebase-merge/git-rebase-todo", "pick 1 a\n"), None);
        assert_eq!(standing(".git/rebase-merge/git-rebase-todo", "exec evil\n"), Some(Standing::Always));
        assert_eq!(standing("Cargo.toml", "[dependencies]\na = \"1\"\n"), Some(Standing::IfTainted));
        assert_eq!(standing("Cargo.toml", "[package]\nbuild = \"a.rs\"\n"), Some(Standing::IfSteered));
        assert_eq!(standing("Cargo.lock", "[broken"), Some(Standing::IfTainted));
        assert_eq!(standing(".git/config", "[user]\n\tname = Ada\n"), None);
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
        let lock = changed("yarn.lock", None, Some("x")).unwrap();
        assert!(!belongs(&lock, false, WrittenBy::Program, ["install it"].into_iter()));
        assert!(belongs(&lock, true, WrittenBy::FileTool, ["install it"].into_iter()));
    }
}

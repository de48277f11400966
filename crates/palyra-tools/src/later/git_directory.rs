//! The inside of a git directory: what git executes there, and what it only keeps.
//!
//! Only the part directly inside of the directory says what a file is: a branch, a submodule or a directory around the repository may have any name.

use super::table::LaterExecuted;

/// What a file in a git directory is to git.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GitFile {
    /// Git executes it, or does what it says.
    Executed(LaterExecuted),
    /// Git keeps it: objects, references, messages, the index.
    Data,
    /// Nobody reviewed it.
    Unreviewed,
}

/// Files directly inside of a git directory that git only keeps.
const DATA: [&str; 30] = [
    "auto_merge",
    "bisect_ancestors_ok",
    "bisect_expected_rev",
    "bisect_first_parent",
    "bisect_log",
    "bisect_start",
    "bisect_terms",
    "cherry_pick_head",
    "commit_editmsg",
    "description",
    "fetch_head",
    "gc.log",
    "gc.pid",
    "head",
    "head.lock",
    "index",
    "index.lock",
    "locked",
    "merge_head",
    "merge_mode",
    "merge_msg",
    "merge_rr",
    "orig_head",
    "packed-refs",
    "rebase_head",
    "revert_head",
    "shallow",
    "sharedindex",
    "squash_msg",
    "tag_editmsg",
];

/// Directories directly inside of a git directory in which git only keeps data.
const DATA_DIRECTORIES: [&str; 5] = ["logs", "objects", "refs", "reftable", "rr-cache"];

/// Lists of commands that `git rebase --continue` and its like carry out.
const TODO: [&str; 3] = ["git-rebase-todo", "git-rebase-todo.backup", "todo"];

/// What a file is, by its path inside of the git directory, in small letters.
pub(super) fn git_file(parts: &[&str]) -> GitFile {
    match parts {
        // What a working tree of its own and a submodule have is a git directory again.
        ["worktrees", _, rest @ ..] if !rest.is_empty() => git_file(rest),
        ["modules", rest @ ..] if !rest.is_empty() => in_modules(rest),
        // Git executes none with this ending.
        ["hooks", .., name] if name.ends_with(".sample") => GitFile::Data,
        ["hooks", ..] => GitFile::Executed(LaterExecuted::Hook),
        ["config" | "config.worktree" | "commondir" | "gitdir"] => GitFile::Executed(LaterExecuted::GitConfiguration),
        // The old form of remotes, in files.
        ["remotes" | "branches", ..] => GitFile::Executed(LaterExecuted::GitConfiguration),
        ["info", "attributes"] => GitFile::Executed(LaterExecuted::Git),
        ["info", "exclude" | "refs" | "sparse-checkout" | "grafts"] => GitFile::Data,
        ["rebase-merge" | "rebase-apply" | "sequencer", name] if TODO.contains(name) => {
            GitFile::Executed(LaterExecuted::Hook)
        }
        ["rebase-merge" | "rebase-apply" | "sequencer", ..] => GitFile::Unreviewed,
        [name] if DATA.contains(name) || name.starts_with("sharedindex.") => GitFile::Data,
        [directory, _, ..] if DATA_DIRECTORIES.contains(directory) => GitFile::Data,
        _ => GitFile::Unreviewed,
    }
}

/// The same below `modules`. The name of a submodule may have any parts, so nothing there is exempt for the sake of one of them.
fn in_modules(parts: &[&str]) -> GitFile {
    let Some((name, above)) = parts.split_last() else { return GitFile::Unreviewed };
    if (*name == "hooks" || above.contains(&"hooks")) && !name.ends_with(".sample") {
        return GitFile::Executed(LaterExecuted::Hook);
    }
    match *name {
        "config" | "config.worktree" | "commondir" | "gitdir" => GitFile::Executed(LaterExecuted::GitConfiguration),
        "attributes" => GitFile::Executed(LaterExecuted::Git),
        name if TODO.contains(&name) => GitFile::Executed(LaterExecuted::Hook),
        _ if above.iter().any(|part| matches!(*part, "remotes" | "branches")) => {
            GitFile::Executed(LaterExecuted::GitConfiguration)
        }
        name if DATA.contains(&name) || name == "exclude" || name.ends_with(".sample") => GitFile::Data,
        _ if above.iter().any(|part| DATA_DIRECTORIES.contains(part)) => GitFile::Data,
        _ => GitFile::Unreviewed,
    }
}

/// Whether a list of commands of a rebase has git execute a program.
pub(super) fn executes(todo: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(todo) else { return true };
    // What a merge merges with is a program by its name; no other command names one.
    text.lines().any(|line| matches!(line.split_whitespace().next(), Some("x" | "exec")))
}

/// Whether a file of this name is such a list.
pub(super) fn is_todo(name: &str) -> bool {
    TODO.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOOK: GitFile = GitFile::Executed(LaterExecuted::Hook);
    const CONFIGURATION: GitFile = GitFile::Executed(LaterExecuted::GitConfiguration);

    #[test]
    fn only_the_part_directly_inside_says_what_a_file_is() {
        for (path, expected) in [
            ("hooks/pre-commit", HOOK),
            ("hooks", HOOK),
            ("hooks/refs/pre-commit", HOOK),
            ("hooks/pre-commit.sample", GitFile::Data),
            ("config", CONFIGURATION),
            ("refs/heads/config", GitFile::Data),
            ("refs/heads/hooks/x", GitFile::Data),
            ("logs/refs/heads/hooks", GitFile::Data),
            ("modules/logs/hooks/post-checkout", HOOK),
            ("modules/a/refs/hooks/post-checkout", HOOK),
            ("modules/objects/config", CONFIGURATION),
            ("modules/a/refs/heads/main", GitFile::Data),
            ("worktrees/refs/config.worktree", CONFIGURATION),
            ("worktrees/w/gitdir", CONFIGURATION),
            ("worktrees/w/HEAD", GitFile::Unreviewed),
            ("worktrees/w/head", GitFile::Data),
            ("remotes/origin", CONFIGURATION),
            ("branches/origin", CONFIGURATION),
            ("info/attributes", GitFile::Executed(LaterExecuted::Git)),
            ("rebase-merge/git-rebase-todo", HOOK),
            ("sequencer/todo", HOOK),
            ("index", GitFile::Data),
            ("something-new", GitFile::Unreviewed),
        ] {
            assert_eq!(git_file(&path.split('/').collect::<Vec<_>>()), expected, "{path}");
        }
    }

    #[test]
    fn a_rebase_executes_only_what_its_list_says() {
        assert!(!executes(b"pick 123 subject\nfixup 456 exec is no command here\n# x comment\n"));
        assert!(executes(b"pick 123 subject\n  exec make evil\n"));
        assert!(executes(b"x evil"));
        assert!(executes(b"\xff"));
    }
}

//! The files in `.git` that decide what git executes: hooks, configuration, attributes, and those of submodules and worktrees.
//!
//! Whoever writes one of them has a program run the next time that somebody uses git. The rest of `.git` is git's own data.

use std::ffi::OsStr;

use crate::WorkspacePath;

/// Where a path lies with respect to `.git`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Not in any `.git`.
    Outside,
    /// A directory on the way to such files if it is one, else nothing.
    OnTheWay,
    /// Such a file, or a directory that holds nothing else.
    Deciding,
    /// Git's own data.
    Data,
}

impl Place {
    /// Whether an entry of this kind is such a file or leads to some.
    pub(crate) fn decides(self, is_directory: bool) -> bool {
        match self {
            Self::Outside | Self::Data => false,
            Self::OnTheWay => is_directory,
            Self::Deciding => true,
        }
    }
}

/// Where a path lies.
pub(crate) fn place_of(path: &WorkspacePath) -> Place {
    let mut names = path.as_path().iter();
    if !names.any(|name| name == ".git") {
        return Place::Outside;
    }
    // A file of this name points to the directory that git takes instead.
    within(names)
}

/// The same for what follows the name of a git directory.
fn within<'a>(mut names: impl Iterator<Item = &'a OsStr>) -> Place {
    let Some(name) = names.next() else { return Place::Deciding };
    let Some(name) = name.to_str() else { return Place::Data };
    match name {
        "hooks" => Place::Deciding,
        "config" | "config.worktree" | "commondir" | "gitdir" => last(names, Place::Deciding),
        "info" => match names.next().and_then(OsStr::to_str) {
            None => Place::OnTheWay,
            Some("attributes" | "exclude") => last(names, Place::Deciding),
            Some(_) => Place::Data,
        },
        // Names of submodules may have several parts; below, everything but git's data is looked at as if it were a git directory.
        "modules" | "worktrees" => match names.next() {
            None => Place::OnTheWay,
            Some(_) => below(names),
        },
        _ => Place::Data,
    }
}

/// A path below a submodule's or worktree's first name.
fn below<'a>(names: impl Iterator<Item = &'a OsStr>) -> Place {
    let rest: Vec<_> = names.collect();
    for (index, name) in rest.iter().enumerate() {
        if ["objects", "refs", "logs"].iter().any(|data| name == data) {
            return Place::Data;
        }
        let place = within(rest.iter().skip(index).copied());
        if place != Place::Data {
            return place;
        }
    }
    // Either another part of the name or data that is no directory.
    Place::OnTheWay
}

fn last<'a>(mut names: impl Iterator<Item = &'a OsStr>, place: Place) -> Place {
    if names.next().is_none() { place } else { Place::Data }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn hooks_and_configuration_are_told_from_data() {
        let of = |text: &str| place_of(&WorkspacePath::found(Path::new(text)));
        for text in [
            ".git",
            "sub/.git",
            ".git/hooks",
            ".git/hooks/pre-commit",
            ".git/hooks/deep/er",
            ".git/config",
            ".git/config.worktree",
            ".git/info/attributes",
            ".git/modules/a/hooks/post-checkout",
            ".git/modules/a/b/config",
            ".git/worktrees/w/gitdir",
        ] {
            assert_eq!(of(text), Place::Deciding, "{text}");
        }
        for text in [".git/info", ".git/modules", ".git/modules/a", ".git/modules/a/b", ".git/worktrees/w"] {
            assert_eq!(of(text), Place::OnTheWay, "{text}");
        }
        for text in [".git/objects/aa/bb", ".git/index", ".git/refs/heads/config", ".git/modules/a/objects/hooks"] {
            assert_eq!(of(text), Place::Data, "{text}");
        }
        assert_eq!(of("src/.gitignore"), Place::Outside);
    }
}

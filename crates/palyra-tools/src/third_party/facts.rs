//! The facts that the rule goes by, as the file system has them.
//!
//! Nothing of a repository is executed, and nothing is hashed. What was read of a directory or a configuration is kept as long as the inode's change time stays the
//! same, which programs cannot set.

use std::collections::HashMap;
use std::fs::Metadata;
use std::io::{self, Read as _};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::OFlags;

use super::remote::Remote;
use super::{Repository, RepositoryOrigin, git_config};

/// Extended attributes that say that a file was downloaded.
const DOWNLOAD_MARKS: [&str; 3] = ["user.xdg.origin.url", "user.xdg.referrer.url", "com.apple.quarantine"];
/// What makes a directory the working tree of a repository.
pub(super) const REPOSITORY_MARKS: [&str; 5] = [".git", ".hg", ".svn", ".jj", ".bzr"];
/// A configuration beyond this size was not written for one repository.
const MAX_CONFIG: u64 = 1 << 20;
/// Repositories on this machine that were cloned from each other; a chain that is longer is a circle.
const MAX_CHAIN: usize = 8;
/// A directory that changed more recently may change again without another time to show for it.
const SETTLED: Duration = Duration::from_secs(2);

/// What the rule is told about a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Facts<'a> {
    /// The workspace, absolute and free of links.
    pub(crate) root: &'a Path,
    /// The directory that it lies in, likewise.
    pub(crate) directory: &'a Path,
    /// Whether it belongs to the user, to root, or to whoever owns the workspace.
    pub(crate) is_ours: bool,
    /// Whether it has the mark of a download.
    pub(crate) is_marked: bool,
    /// The repositories that it lies in and that count.
    pub(crate) repositories: &'a [Repository],
}

/// Tells whether something is as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    changed: (i64, i64),
    bytes: u64,
}

impl Stamp {
    /// The stamp of something that did not change just now.
    pub(super) fn settled(inode: u64, changed: (i64, i64), bytes: u64) -> Option<Self> {
        let seconds = u64::try_from(changed.0).ok()?;
        let at = UNIX_EPOCH.checked_add(Duration::from_secs(seconds))?;
        let is_settled = SystemTime::now().duration_since(at).is_ok_and(|passed| passed >= SETTLED);
        is_settled.then_some(Self { inode, changed, bytes })
    }

    fn of(metadata: &Metadata) -> Option<Self> {
        Self::settled(metadata.ino(), (metadata.ctime(), metadata.ctime_nsec()), metadata.len())
    }
}

/// Whether an open file has the mark of a download. A file system without extended attributes marks nothing.
pub(crate) fn is_marked(file: impl AsFd) -> bool {
    let mut value = [0_u8; 1];
    DOWNLOAD_MARKS.iter().any(|mark| match rustix::fs::fgetxattr(&file, *mark, value.as_mut_slice()) {
        Ok(_) | Err(rustix::io::Errno::RANGE) => true,
        Err(_) => false,
    })
}

/// The same for a file by its path, which is not opened.
pub(super) fn is_path_marked(path: &Path) -> bool {
    let mut value = [0_u8; 1];
    DOWNLOAD_MARKS.iter().any(|mark| match rustix::fs::lgetxattr(path, *mark, value.as_mut_slice()) {
        Ok(_) | Err(rustix::io::Errno::RANGE) => true,
        Err(_) => false,
    })
}

/// The repository that a workspace is the working tree of, or lies in: the nearest one.
pub(super) fn enclosing(root: &Path, origins: &Origins) -> Option<Repository> {
    root.ancestors().find(|directory| origins.is_repository(directory)).map(|directory| Repository {
        directory: directory.to_owned(),
        nested: false,
        origin: origins.of(directory),
    })
}

fn is_repository(directory: &Path) -> bool {
    REPOSITORY_MARKS.iter().any(|mark| match directory.join(mark).symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
    })
}

/// Where repositories came from, as far as it was looked up.
#[derive(Debug, Default)]
pub(super) struct Origins {
    /// By configuration.
    origins: Mutex<HashMap<PathBuf, (Stamp, RepositoryOrigin)>>,
    /// By directory: whether it is the working tree of one.
    trees: Mutex<HashMap<PathBuf, (Stamp, bool)>>,
}

impl Origins {
    fn is_repository(&self, directory: &Path) -> bool {
        let stamp = directory.symlink_metadata().ok().as_ref().and_then(Stamp::of);
        let Some(stamp) = stamp else { return is_repository(directory) };
        let mut known = self.trees.lock().unwrap_or_else(PoisonError::into_inner);
        match known.get(directory) {
            Some((seen, is_one)) if *seen == stamp => *is_one,
            _ => {
                let is_one = is_repository(directory);
                known.insert(directory.to_owned(), (stamp, is_one));
                is_one
            }
        }
    }

    /// Where the repository with this working tree came from.
    pub(super) fn of(&self, directory: &Path) -> RepositoryOrigin {
        let git = directory.join(".git");
        if git.symlink_metadata().is_err() {
            return other_kind(directory);
        }
        let Some(config) = config_of(&git) else { return RepositoryOrigin::Unknown };
        let stamp = config.metadata().ok().as_ref().and_then(Stamp::of);
        let mut known = self.origins.lock().unwrap_or_else(PoisonError::into_inner);
        if let (Some(stamp), Some((seen, origin))) = (stamp, known.get(&config))
            && stamp == *seen
        {
            return origin.clone();
        }
        let origin = read_origin(&config, directory, MAX_CHAIN);
        match stamp {
            Some(stamp) => drop(known.insert(config, (stamp, origin.clone()))),
            None => drop(known.remove(&config)),
        }
        origin
    }
}

/// Repositories of other kinds: those that are always checked out of somewhere, and those that may have been begun here.
fn other_kind(directory: &Path) -> RepositoryOrigin {
    if directory.join(".hg").symlink_metadata().is_err() {
        return RepositoryOrigin::Unknown;
    }
    match small_text(&directory.join(".hg/hgrc")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => RepositoryOrigin::Local,
        Ok(_) | Err(_) => RepositoryOrigin::Unknown,
    }
}

/// The configuration of a repository whose `.git` this is: a directory, or a file that names one.
fn config_of(git: &Path) -> Option<PathBuf> {
    if git.is_dir() {
        return Some(git.join("config"));
    }
    let text = small_text(git).ok()?;
    let named = text.strip_prefix("gitdir:")?.trim();
    let directory = git.parent()?.join(named);
    match small_text(&directory.join("commondir")) {
        Ok(common) => Some(directory.join(common.trim()).join("config")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Some(directory.join("config")),
        Err(_) => None,
    }
}

fn read_origin(config: &Path, directory: &Path, left: usize) -> RepositoryOrigin {
    let text = match small_text(config) {
        // Git does without one; a repository that is not there at all is another matter.
        Err(error) if error.kind() == io::ErrorKind::NotFound && config.parent().is_some_and(Path::is_dir) => {
            String::new()
        }
        Err(_) => return RepositoryOrigin::Unknown,
        Ok(text) => text,
    };
    let Some(remotes) = git_config::remotes(&text) else { return RepositoryOrigin::Unknown };
    // Old versions of git kept remotes in files of their own.
    let kept_apart = ["remotes", "branches"].iter().any(|name| {
        let entries = config.parent().map(|git| git.join(name)).and_then(|path| path.read_dir().ok());
        entries.is_some_and(|mut entries| entries.next().is_some())
    });
    if kept_apart {
        return RepositoryOrigin::Unknown;
    }
    let mut found = Vec::new();
    for remote in remotes {
        match remote {
            Remote::Host { .. } => found.push(remote),
            Remote::Directory(path) => match origin_of_directory(&directory.join(path), left) {
                RepositoryOrigin::Local => {}
                RepositoryOrigin::Remotes(remotes) => found.extend(remotes),
                RepositoryOrigin::Unknown => return RepositoryOrigin::Unknown,
            },
        }
    }
    if found.is_empty() { RepositoryOrigin::Local } else { RepositoryOrigin::Remotes(found) }
}

/// A clone of a repository on this machine is as good as that one.
fn origin_of_directory(directory: &Path, left: usize) -> RepositoryOrigin {
    let Some(left) = left.checked_sub(1) else { return RepositoryOrigin::Unknown };
    let git = directory.join(".git");
    let config = if git.symlink_metadata().is_ok() { config_of(&git) } else { Some(directory.join("config")) };
    config.map_or(RepositoryOrigin::Unknown, |config| read_origin(&config, directory, left))
}

/// A small text file, whatever lies at its place: opening it never blocks.
fn small_text(path: &Path) -> io::Result<String> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.len() > MAX_CONFIG {
        return Err(io::ErrorKind::InvalidData.into());
    }
    let mut text = String::new();
    file.take(MAX_CONFIG).read_to_string(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn origin(directory: &Path) -> String {
        match Origins::default().of(directory) {
            RepositoryOrigin::Local => "local".into(),
            RepositoryOrigin::Unknown => "unknown".into(),
            RepositoryOrigin::Remotes(remotes) => remotes.iter().map(Remote::to_string).collect::<Vec<_>>().join(" "),
        }
    }

    #[test]
    fn a_repository_says_where_it_came_from() {
        let home = tempfile::tempdir().unwrap();
        let at = |name: &str| home.path().join(name);
        write(&at("own/.git/config"), "[core]\n\tbare = false\n");
        write(&at("theirs/.git/config"), "[remote \"origin\"]\n\turl = https://github.com/eve/x\n");
        write(&at("again/.git/config"), "[remote \"origin\"]\n\turl = ../theirs\n");
        write(&at("mine-again/.git/config"), &format!("[remote \"o\"]\n\turl = {}\n", at("own").display()));
        write(&at("gone/.git/config"), "[remote \"origin\"]\n\turl = /nowhere/at/all\n");
        write(&at("circle/.git/config"), "[remote \"origin\"]\n\turl = .\n");
        write(&at("theirs/.git/worktrees/w/commondir"), "../..\n");
        write(&at("tree/.git"), "gitdir: ../theirs/.git/worktrees/w\n");
        write(&at("lost/.git"), "gitdir: ../nothing\n");
        write(&at("old/.git/config"), "[core]\n");
        write(&at("old/.git/remotes/origin"), "URL: https://x.example/y\n");
        write(&at("svn/.svn/entries"), "12");
        write(&at("hg/.hg/requires"), "");
        write(&at("hg-clone/.hg/hgrc"), "[paths]\ndefault = https://x.example/y\n");
        for (name, expected) in [
            ("own", "local"),
            ("theirs", "github.com/eve/x"),
            ("again", "github.com/eve/x"),
            ("mine-again", "local"),
            ("gone", "unknown"),
            ("circle", "unknown"),
            ("tree", "github.com/eve/x"),
            ("lost", "unknown"),
            ("old", "unknown"),
            ("svn", "unknown"),
            ("hg", "local"),
            ("hg-clone", "unknown"),
        ] {
            assert_eq!(origin(&at(name)), expected, "{name}");
        }
        let inside = at("theirs/src/deep");
        std::fs::create_dir_all(&inside).unwrap();
        assert_eq!(enclosing(&inside, &Origins::default()).unwrap().directory, at("theirs"));
    }
}

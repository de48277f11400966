//! Files of the workspace that git's configuration names: hooks in a directory of their own, programs in commands, further configuration.
//!
//! The configurations of the workspace's repositories are read, that of a repository around the workspace, and the user's own: `core.hooksPath = tools/hooks` makes every file of
//! `tools/hooks` a hook, wherever it says so.

use std::io::Read as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use super::Role;
use super::git_config::{Named, named};
use super::links::Links;
use super::table::LaterExecuted;

/// Longest configuration that is read.
pub(super) const CONFIGURATION: usize = 1 << 20;
/// Most configurations that are read, those that others include among them.
const READ: usize = 1_000;
/// The user's own configuration, from the home, and that of the machine.
const OF_USER: [&str; 2] = [".gitconfig", ".config/git/config"];
const OF_MACHINE: &str = "/etc/gitconfig";

/// Something that a configuration names, by its path in the workspace, without links.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A directory of programs.
    Hooks,
    /// A program.
    Program,
    /// Another configuration.
    Configuration,
}

/// All that configurations name.
#[derive(Debug, Clone, Default)]
pub(super) struct NamedByGit(Vec<Entry>);

/// A configuration to be read, by absolute paths.
pub(super) struct Configuration {
    /// The file.
    pub(super) file: PathBuf,
    /// The directories that relative paths in it may be meant from, beside its own.
    pub(super) bases: Vec<PathBuf>,
}

impl NamedByGit {
    /// What somebody's git makes of a file, if a configuration names it.
    pub(super) fn role(&self, path: &Path) -> Option<Role> {
        let entry = self.0.iter().find(|entry| match entry.kind {
            Kind::Hooks => path.starts_with(&entry.path) && !path.as_os_str().as_encoded_bytes().ends_with(b".sample"),
            Kind::Program | Kind::Configuration => path == entry.path,
        })?;
        Some(match entry.kind {
            Kind::Hooks | Kind::Program => Role::of(LaterExecuted::Hook, path),
            Kind::Configuration => {
                Role { is_git_configuration: true, ..Role::of(LaterExecuted::GitConfiguration, path) }
            }
        })
    }

    /// Takes over what another survey found: a run that removes a variable, writes a file and puts the variable back, has written a hook.
    pub(super) fn join(&mut self, other: &Self) {
        for entry in &other.0 {
            if !self.0.contains(entry) {
                self.0.push(entry.clone());
            }
        }
    }

    /// Reads configurations, and those that they include. `read` reads a file of the workspace.
    pub(super) fn add(
        &mut self,
        all: Vec<Configuration>,
        root: &Path,
        links: &Links,
        read: &dyn Fn(&Path) -> Option<Vec<u8>>,
    ) {
        let mut left = all;
        let mut seen = Vec::new();
        while let Some(configuration) = left.pop() {
            if seen.contains(&configuration.file) || seen.len() == READ {
                continue;
            }
            seen.push(configuration.file.clone());
            let bytes = match configuration.file.strip_prefix(root) {
                Ok(inside) => read(inside),
                Err(_) => read_outside(&configuration.file),
            };
            let Some(bytes) = bytes else { continue };
            left.extend(self.add_one(&configuration, &bytes, root, links));
        }
    }

    /// What one configuration names; gives the ones that it includes.
    pub(super) fn add_one(
        &mut self,
        configuration: &Configuration,
        bytes: &[u8],
        root: &Path,
        links: &Links,
    ) -> Vec<Configuration> {
        let all = named(bytes);
        let own = configuration.file.parent().unwrap_or(root);
        let mut bases = configuration.bases.clone();
        bases.push(own.to_owned());
        bases.extend(all.iter().filter_map(|named| match named {
            Named::WorkingTree(path) => absolute(path, own),
            Named::Configuration(_) | Named::Hooks(_) | Named::Command(_) => None,
        }));
        let inside =
            |path: PathBuf| links.resolved(path.strip_prefix(root).ok()?).filter(|path| !path.as_os_str().is_empty());
        let mut included = Vec::new();
        for named in all {
            match named {
                Named::WorkingTree(_) => {}
                Named::Configuration(path) => {
                    let Some(file) = absolute(&path, own) else { continue };
                    self.push(inside(file.clone()), Kind::Configuration);
                    // A configuration of the workspace has nothing outside of it read.
                    if file.starts_with(root) || !configuration.file.starts_with(root) {
                        included.push(Configuration { file, bases: bases.clone() });
                    }
                }
                Named::Hooks(path) => {
                    for base in &bases {
                        self.push(absolute(&path, base).and_then(inside), Kind::Hooks);
                    }
                }
                Named::Command(command) => {
                    // The first word is looked up among the programs of the system unless it is a path.
                    let files = words(&command).enumerate().filter(|(at, word)| *at > 0 || word.contains('/'));
                    for (word, base) in files.flat_map(|(_, word)| bases.iter().map(move |base| (word, base))) {
                        self.push(absolute(word, base).and_then(inside), Kind::Program);
                    }
                }
            }
        }
        included
    }

    fn push(&mut self, path: Option<PathBuf>, kind: Kind) {
        let entry = path.map(|path| Entry { path, kind });
        self.0.extend(entry.filter(|entry| !self.0.contains(entry)));
    }
}

/// The words of a command that may be files.
pub(super) fn words(command: &str) -> impl Iterator<Item = &str> {
    let is_end = |letter: char| letter.is_whitespace() || "`'\"()[]{}<>,;|&!=$".contains(letter);
    command.split(is_end).filter(|word| !word.is_empty())
}

/// A path as git takes it, from a directory on; `None` if it leads above the root.
fn absolute(path: &str, base: &Path) -> Option<PathBuf> {
    let path = path.strip_prefix("%(prefix)/").unwrap_or(path);
    let path = match path.strip_prefix("~/") {
        Some(rest) => std::env::home_dir()?.join(rest),
        None => base.join(path),
    };
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(normal.pop()),
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => normal.push(part),
        }
    }
    Some(normal)
}

/// Configurations that hold in the workspace and do not lie in it.
pub(super) fn outside(root: &Path) -> Vec<Configuration> {
    let mut found = Vec::new();
    let around = root.ancestors().find(|directory| directory.join(".git").symlink_metadata().is_ok());
    if let Some(tree) = around {
        let directory = git_directory(&tree.join(".git"));
        // A working tree of its own shares the configuration of the repository.
        let shared = read_outside(&directory.join("commondir"))
            .map(|path| directory.join(String::from_utf8_lossy(&path).trim_end()));
        for directory in [Some(directory), shared].into_iter().flatten() {
            for name in ["config", "config.worktree"] {
                found.push(Configuration { file: directory.join(name), bases: vec![tree.to_owned()] });
            }
        }
    }
    let home = std::env::home_dir();
    let of_user = OF_USER.iter().filter_map(|name| Some(home.as_ref()?.join(name)));
    let trees: Vec<PathBuf> = around.map(Path::to_owned).into_iter().chain([root.to_owned()]).collect();
    found.extend(of_user.chain([PathBuf::from(OF_MACHINE)]).map(|file| Configuration { file, bases: trees.clone() }));
    found
}

/// Where the git directory is: a file of its name says so.
fn git_directory(path: &Path) -> PathBuf {
    let said = path.is_file().then(|| read_outside(path)).flatten();
    let said = said.and_then(|bytes| String::from_utf8(bytes).ok());
    match said.as_deref().and_then(|text| text.strip_prefix("gitdir:")) {
        Some(target) => path.parent().unwrap_or(path).join(target.trim()),
        None => path.to_owned(),
    }
}

/// A regular file that is not too long.
fn read_outside(path: &Path) -> Option<Vec<u8>> {
    let flags = i32::try_from(rustix::fs::OFlags::NONBLOCK.bits()).ok()?;
    let file = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    file.take(CONFIGURATION as u64).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hooks_programs_and_included_configurations_have_their_roles() {
        let mut found = NamedByGit::default();
        let configuration = Configuration { file: PathBuf::from("/w/.git/config"), bases: vec![PathBuf::from("/w")] };
        let text = "[core]\n\thooksPath = tools/hooks\n[filter \"x\"]\n\tclean = \"'tools/clean.sh' %f\"\n[alias]\n\tst = !sh ./tools/status\n\
                    [include]\n\tpath = ../team.gitconfig\n[remote \"o\"]\n\turl = docs/a.md\n[diff]\n\texternal = /w/diff\n[core]\n\teditor = vi\n";
        let included = found.add_one(&configuration, text.as_bytes(), Path::new("/w"), &Links::default());
        assert_eq!(included.len(), 1);
        assert_eq!(included[0].file, Path::new("/w/team.gitconfig"));
        let by = |path: &str| found.role(Path::new(path)).map(|role| (role.by, role.is_git_configuration));
        let (hook, read) = (Some((LaterExecuted::Hook, false)), Some((LaterExecuted::GitConfiguration, true)));
        for (path, expected) in [
            ("tools/hooks/pre-commit", hook),
            ("tools/hooks/pre-commit.sample", None),
            ("tools/clean.sh", hook),
            ("tools/status", hook),
            ("diff", hook),
            ("team.gitconfig", read),
            ("docs/a.md", None),
            ("tools/other.sh", None),
            ("vi", None),
        ] {
            assert_eq!(by(path), expected, "{path}");
        }
    }
}

//! What of a workspace decides which files take effect later, and which changes do.
//!
//! The survey walks the workspace for symbolic links, git configurations and directories that are repositories, as `git` would take them for. It is made after a call and joined with the
//! ones before it in the run: what was a link or a directory of hooks when the run began is one, whatever the run made of it since.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::AsFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use cap_std::fs::MetadataExt as _;
use palyra_common::{Digest, Integrity};

use super::difference::Difference;
use super::git_directory::{GitFile, git_file};
use super::inert::Mode;
use super::links::{Links, Paths, normal};
use super::mentions::{Manifests, Mentions};
use super::named_by_git::{CONFIGURATION, Configuration, NamedByGit, outside};
use super::table::{LaterExecuted, executed_below, is_harmless, later_executed, parts_of};
use super::{Held, LaterChange, Role, Standing, described, git_config, later_change};
use crate::cancel::Cancel;
use crate::checkpoint::is_rebuilt;
use crate::walk::{Flow, Found, Walk};
use crate::workspace_path::escape;
use crate::{Artifacts, EntryKind, FileChange, ToolError, Workspace, WorkspacePath};

/// Longest file whose content is looked at.
const LOOKED_AT: u64 = 1 << 20;
/// Longest file that is read for the scripts it names.
const MANIFEST: u64 = 256 << 10;
/// Most hooks of one directory that are read for the scripts they name.
const HOOKS: usize = 64;
/// Bytes of all differences of one call: a question is read by a person.
const DIFFERENCES: usize = 256 << 10;
/// Most files behind a link that are looked at, and most that are shown.
const BEHIND: usize = 2_000;
const SHOWN_BEHIND: usize = 20;

/// What of a workspace decides which files take effect later.
#[derive(Debug, Clone, Default)]
pub struct LaterSurvey {
    links: Links,
    /// What each link says, as it says it.
    targets: BTreeMap<PathBuf, PathBuf>,
    named_by_git: NamedByGit,
    /// Directories that git takes for repositories, beside those called `.git`.
    repositories: BTreeSet<PathBuf>,
}

/// What a walk has found.
#[derive(Default)]
struct Entries {
    links: BTreeMap<PathBuf, PathBuf>,
    configurations: Vec<PathBuf>,
    /// Directories that hold a part of a repository, and how many parts.
    parts: BTreeMap<PathBuf, usize>,
}

impl LaterSurvey {
    /// Looks through the workspace; blocks.
    ///
    /// # Errors
    /// When the workspace cannot be walked.
    pub fn of(workspace: &Workspace) -> Result<Self, ToolError> {
        let entries = Mutex::new(Entries::default());
        let cancel = Cancel::never();
        let enters = |found: &Found| !is_rebuilt(found);
        Walk::whole(workspace, &cancel).covering_all(&enters).run(|| {
            |found: &Found| {
                let mut entries = entries.lock().unwrap_or_else(PoisonError::into_inner);
                entries.add(found);
                Flow::Continue
            }
        })?;
        let entries = entries.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(Self::from_entries(entries, workspace))
    }

    fn from_entries(entries: Entries, workspace: &Workspace) -> Self {
        let root = workspace.root();
        let mut links = Links::default();
        for (link, target) in &entries.links {
            links.add(link.clone(), target, root);
        }
        links.resolve_all();
        let has_git = |path: &Path| path.iter().any(|part| part == ".git");
        let whole = entries.parts.into_iter().filter(|(path, parts)| *parts == 3 && !has_git(path));
        let repositories: BTreeSet<PathBuf> = whole.map(|(path, _)| path).collect();
        let is_read =
            |path: &&PathBuf| has_git(path) || path.parent().is_some_and(|directory| repositories.contains(directory));
        let mut all: Vec<Configuration> = entries
            .configurations
            .iter()
            .filter(is_read)
            .map(|path| Configuration { file: root.join(path), bases: vec![root.join(working_tree(path))] })
            .collect();
        all.extend(outside(root));
        let mut named_by_git = NamedByGit::default();
        let read = |path: &Path| read(workspace, path, CONFIGURATION as u64);
        named_by_git.add(all, root, &links, &read);
        Self { links, targets: entries.links, named_by_git, repositories }
    }

    /// Takes over what an earlier survey of the run found.
    pub fn join(&mut self, earlier: &Self) {
        self.links.join(&earlier.links);
        self.links.resolve_all();
        self.named_by_git.join(&earlier.named_by_git);
    }

    /// Which of the changes of a call take effect later; blocks. `given` is the integrity of what the call was made from: what only counts in a run that has seen untrusted text is left
    /// out if it has not.
    pub fn later_changes(
        &mut self,
        changes: &[FileChange],
        workspace: &Workspace,
        artifacts: &dyn Artifacts,
        given: Integrity,
    ) -> Vec<LaterChange> {
        self.remember(changes, workspace, artifacts);
        let reader = Reader(workspace);
        let mut examination = Examination {
            survey: self,
            workspace,
            artifacts,
            is_tainted: given == Integrity::Untrusted,
            mentions: Mentions::new(&reader),
        };
        let mut later: Vec<LaterChange> = changes.iter().filter_map(|change| examination.change(change)).collect();
        for change in examination.new_repositories(changes) {
            later.retain(|other| other.path != change.path);
            later.push(change);
        }
        limit(&mut later);
        later
    }

    /// Whether a call whose changes are these may have changed what the survey found.
    #[must_use]
    pub fn is_outdated_by(changes: &[FileChange], later: &[LaterChange]) -> bool {
        let is_programs = changes.iter().any(|change| !change.attribution.is_written() || !change.entry.is_plain());
        is_programs || later.iter().any(|change| change.by == LaterExecuted::GitConfiguration)
    }

    /// What is said of a call's changes where nobody can look: all that it left counts.
    #[must_use]
    pub fn unexamined(changes: &[FileChange]) -> Vec<LaterChange> {
        let is_left = |change: &&FileChange| {
            let kind = change.entry.after;
            change.after.is_some() && !change.entry.rebuilt && matches!(kind, EntryKind::File | EntryKind::Link)
        };
        let unexamined = changes.iter().filter(is_left).map(|change| {
            let by = later_executed(Path::new(&change.path)).unwrap_or(LaterExecuted::Unreviewed);
            let hidden = Difference::hidden("a change that could not be examined".to_owned());
            let (difference, not_shown) = (hidden.text, hidden.not_shown);
            let path = change.path.clone();
            LaterChange { path, by, standing: Standing::Always, executed_as: None, difference, not_shown }
        });
        unexamined.collect()
    }

    /// Takes in what changes of the run replaced: links, and what the configurations named.
    pub fn remember(&mut self, changes: &[FileChange], workspace: &Workspace, artifacts: &dyn Artifacts) {
        let root = workspace.root();
        let mut is_new = false;
        for change in changes {
            let (Some(before), Ok(path)) = (change.before, workspace.path(&change.path)) else { continue };
            let path = path.as_path().to_owned();
            if change.entry.before == EntryKind::Link {
                let Some(target) = whole(artifacts, &before) else { continue };
                self.links.add(path, Path::new(std::ffi::OsStr::from_bytes(&target)), root);
                is_new = true;
            } else if later_executed(&path) == Some(LaterExecuted::GitConfiguration) {
                let Some(bytes) = whole(artifacts, &before) else { continue };
                let bases = vec![root.join(working_tree(&path))];
                let configuration = Configuration { file: root.join(&path), bases };
                self.named_by_git.add_one(&configuration, &bytes, root, &self.links);
            }
        }
        if is_new {
            self.links.resolve_all();
        }
    }

    /// What somebody's tools make of a file, if any are known to.
    fn role(&self, path: &Path) -> Option<Role> {
        let Paths::All(paths) = self.links.paths_of(path) else {
            // Nobody can say how the file is reached.
            return Some(Role::of(LaterExecuted::Hook, path));
        };
        let roles = paths.iter().filter_map(|path| self.role_at(path));
        roles.min_by_key(|role| role.by.standing())
    }

    fn role_at(&self, path: &Path) -> Option<Role> {
        if let Some(role) = self.named_by_git.role(path) {
            return Some(role);
        }
        let repository = path.ancestors().skip(1).find(|above| self.repositories.contains(*above));
        let inside = repository.and_then(|repository| path.strip_prefix(repository).ok());
        let file = inside.map(|inside| {
            let parts = parts_of(inside);
            git_file(&parts.iter().map(String::as_str).collect::<Vec<_>>())
        });
        match file {
            Some(GitFile::Executed(by)) => Some(Role::of(by, path)),
            Some(GitFile::Data | GitFile::Unreviewed) | None => Some(Role::of(later_executed(path)?, path)),
        }
    }

    /// Whether a file lies in a repository that is not called `.git`, where git only keeps it.
    fn is_kept_by_git(&self, path: &Path) -> bool {
        path.ancestors().skip(1).any(|above| {
            let inside = path.strip_prefix(above).ok().filter(|_| self.repositories.contains(above)).map(parts_of);
            inside.is_some_and(|parts| git_file(&parts.iter().map(String::as_str).collect::<Vec<_>>()) == GitFile::Data)
        })
    }
}

impl Entries {
    fn add(&mut self, found: &Found) {
        let path = found.path.as_path();
        if found.kind.is_symlink()
            && let Ok(target) = rustix::fs::readlinkat(found.directory.as_fd(), &found.name, Vec::new())
        {
            let target = PathBuf::from(std::ffi::OsStr::from_bytes(target.as_bytes()));
            self.links.insert(path.to_owned(), target);
        }
        let directory = path.parent().unwrap_or_else(|| Path::new(""));
        // What makes a repository may be a link.
        let is_link = found.kind.is_symlink();
        match found.name.as_bytes() {
            b"config" | b"config.worktree" if !found.kind.is_dir() => self.configurations.push(path.to_owned()),
            b"HEAD" if !found.kind.is_dir() => *self.parts.entry(directory.to_owned()).or_default() += 1,
            b"objects" | b"refs" if found.kind.is_dir() || is_link => {
                *self.parts.entry(directory.to_owned()).or_default() += 1;
            }
            _ => {}
        }
    }
}

/// The directory that a configuration's relative paths are meant from: the one that `.git` is in, or that of the repository itself.
fn working_tree(configuration: &Path) -> PathBuf {
    let parts: Vec<_> = configuration.iter().collect();
    match parts.iter().position(|part| *part == ".git") {
        Some(at) => parts.iter().take(at).collect(),
        None => configuration.parent().unwrap_or_else(|| Path::new("")).to_owned(),
    }
}

/// One look at the changes of a call.
struct Examination<'a> {
    survey: &'a LaterSurvey,
    workspace: &'a Workspace,
    artifacts: &'a dyn Artifacts,
    is_tainted: bool,
    mentions: Mentions<'a, Reader<'a>>,
}

impl Examination<'_> {
    fn change(&mut self, change: &FileChange) -> Option<LaterChange> {
        change.after?;
        let path = self.workspace.path(&change.path).ok()?.as_path().to_owned();
        match change.entry.after {
            EntryKind::File => self.file(change, &path),
            EntryKind::Link => self.link(change, &path),
            // What is in a directory is told by itself.
            EntryKind::Directory | EntryKind::Tree | EntryKind::Other => None,
        }
    }

    fn file(&mut self, change: &FileChange, path: &Path) -> Option<LaterChange> {
        let role = match self.survey.role(path) {
            Some(role) => role,
            None => self.tainted_role(change, path)?,
        };
        // Among build products and packages the files of builds are as many as there are packages.
        let matters =
            (role.by.standing() == Standing::Always && role.by != LaterExecuted::Unreviewed) || !change.entry.rebuilt;
        let matters = matters && (self.is_tainted || role.by.standing() != Standing::IfTainted);
        if !matters {
            return None;
        }
        let before = self.before(change);
        let after = change.after.and_then(|digest| self.present(path, &digest));
        let later = later_change(path, &role, held(&before), after.as_deref().map_or(Held::Unknown, Held::File))?;
        (self.is_tainted || later.standing != Standing::IfTainted).then_some(later)
    }

    /// What a file is in a run that has seen untrusted text, where nothing known executes it.
    fn tainted_role(&mut self, change: &FileChange, path: &Path) -> Option<Role> {
        if !self.is_tainted || change.entry.rebuilt {
            return None;
        }
        if let Some(by) = self.mentions.executed_by(path) {
            return Some(Role::of(by, path));
        }
        let harmless = is_harmless(path, self.mode(path)) || self.survey.is_kept_by_git(path);
        (!harmless).then(|| Role::of(LaterExecuted::Unreviewed, path))
    }

    /// A link, by what it makes of the files that it leads to, and by where it leads.
    fn link(&mut self, change: &FileChange, path: &Path) -> Option<LaterChange> {
        let survey = self.survey;
        let target = survey.targets.get(path);
        let leads_to = target.map(|target| match target.is_absolute() {
            true => target.strip_prefix(self.workspace.root()).unwrap_or(target).to_owned(),
            false => {
                normal(&path.parent().unwrap_or_else(|| Path::new("")).join(target)).unwrap_or_else(|| target.clone())
            }
        });
        let real = survey.links.resolved(path).filter(|real| real != path);
        let by_name = survey.role(path).or_else(|| Some(Role::of(executed_below(path)?, path)));
        let by_target = || {
            let places = leads_to.iter().chain(&real);
            places.clone().find_map(|place| {
                let by = later_executed(place).or_else(|| executed_below(place))?;
                Some(Role::of(by, path))
            })
        };
        let role = by_name.or_else(by_target).or_else(|| {
            let inside =
                real.as_deref().is_some_and(|real| is_harmless(real, self.mode(real)) || self.is_directory(real));
            let harmless = inside && is_harmless(path, Mode::Plain);
            (self.is_tainted && !harmless && !change.entry.rebuilt).then(|| Role::of(LaterExecuted::Unreviewed, path))
        })?;
        let standing = role.by.standing();
        if (standing == Standing::IfTainted && !self.is_tainted)
            || (change.entry.rebuilt && standing != Standing::Always)
        {
            return None;
        }
        let mut difference = match (target, &change.before) {
            (Some(target), _) => {
                Difference { text: format!("+link to `{}`\n", escape(target.as_os_str())), not_shown: None }
            }
            (None, _) => Difference::hidden("a link whose target cannot be read".to_owned()),
        };
        if let (EntryKind::Link, Some(was)) = (change.entry.before, self.before(change).flatten()) {
            let was = escape(std::ffi::OsStr::from_bytes(&was));
            difference.text = format!("-link to `{was}`\n{}", difference.text);
        }
        self.show_behind(&mut difference, path, real.as_deref());
        Some(described(path, &role, standing, difference))
    }

    /// Shows the files that a link makes somebody execute: accepting the link accepts them.
    fn show_behind(&self, difference: &mut Difference, link: &Path, real: Option<&Path>) {
        let Some(real) = real else { return };
        let (files, all) = self.files_below(real);
        let executed = files.iter().filter_map(|file| {
            let rest = file.strip_prefix(real).ok()?;
            let name = if rest.as_os_str().is_empty() { link.to_owned() } else { link.join(rest) };
            let by = later_executed(&name).or_else(|| self.survey.role(file).map(|role| role.by))?;
            Some((file, name, by))
        });
        let executed: Vec<_> = executed.collect();
        for (file, name, by) in executed.iter().take(SHOWN_BEHIND) {
            let content = read(self.workspace, file, LOOKED_AT);
            let after = content.as_deref().map_or(Held::Unknown, Held::File);
            let heading = format!("`{}` behind it: {}", escape(name.as_os_str()), by.effect());
            difference.append(&heading, Difference::of(Held::Nothing, after));
        }
        let more = executed.len().saturating_sub(SHOWN_BEHIND);
        if more > 0 || all == All::No {
            let many = if all == All::No { format!("more than {BEHIND}") } else { more.to_string() };
            difference.append("behind it:", Difference::hidden(format!("{many} more files")));
        }
    }

    /// The regular files at and below a path.
    fn files_below(&self, path: &Path) -> (Vec<PathBuf>, All) {
        let (mut files, mut left, mut looked_at) = (Vec::new(), vec![path.to_owned()], 0);
        while let Some(here) = left.pop() {
            looked_at += 1;
            if looked_at > BEHIND {
                return (files, All::No);
            }
            let place = WorkspacePath::found(&here);
            let Ok(metadata) = self.workspace.dir().symlink_metadata(place.as_path()) else { continue };
            if metadata.is_file() {
                files.push(here);
            } else if metadata.is_dir()
                && let Ok(entries) = self.workspace.dir().read_dir(place.as_path())
            {
                left.extend(entries.flatten().take(BEHIND).map(|entry| here.join(entry.file_name())));
            }
        }
        files.sort();
        (files, All::Yes)
    }

    /// Directories that became repositories by these changes, where their configuration or their hooks have git execute something.
    fn new_repositories(&self, changes: &[FileChange]) -> Vec<LaterChange> {
        self.survey.repositories.iter().filter_map(|repository| self.new_repository(repository, changes)).collect()
    }

    fn new_repository(&self, repository: &Path, changes: &[FileChange]) -> Option<LaterChange> {
        let name = |part: &str| WorkspacePath::found(&repository.join(part)).to_string();
        let makes = |change: &&FileChange, part: &str| {
            change.after.is_some() && change.before.is_none() && change.path == name(part)
        };
        let makes_above = |change: &&FileChange| {
            let directories = ["objects", "refs"].map(name);
            change.after.is_some()
                && (directories.contains(&change.path)
                    || change.directories.iter().any(|made| directories.contains(made)))
        };
        // Without its `HEAD` it is no repository, so that is what is held and taken back, if it is new.
        let made_by = (changes.iter().find(|change| makes(change, "HEAD")))
            .or_else(|| changes.iter().find(|change| makes_above(change)))?;
        let configuration = repository.join("config");
        let content = match self.workspace.dir().symlink_metadata(&configuration) {
            Ok(_) => Some(read(self.workspace, &configuration, CONFIGURATION as u64)),
            Err(_) => None,
        };
        let after = held(&content);
        let (hooks, _) = self.files_below(&repository.join("hooks"));
        let hooks: Vec<&PathBuf> =
            hooks.iter().filter(|hook| !hook.as_os_str().as_bytes().ends_with(b".sample")).collect();
        if after == Held::Nothing && hooks.is_empty() {
            return None;
        }
        if !git_config::takes_effect(Held::Nothing, after) && hooks.is_empty() {
            return None;
        }
        let path = self.workspace.path(&made_by.path).ok()?.as_path().to_owned();
        let mut difference = Difference {
            text: format!("+makes `{}` a git repository\n", escape(repository.as_os_str())),
            not_shown: None,
        };
        difference.append("its configuration:", Difference::of(Held::Nothing, after));
        for hook in hooks.iter().take(SHOWN_BEHIND) {
            let content = read(self.workspace, hook, LOOKED_AT);
            let after = content.as_deref().map_or(Held::Unknown, Held::File);
            difference.append(&format!("`{}`:", escape(hook.as_os_str())), Difference::of(Held::Nothing, after));
        }
        if let Some(more) = hooks.len().checked_sub(SHOWN_BEHIND).filter(|more| *more > 0) {
            difference.append("its hooks:", Difference::hidden(format!("{more} more files")));
        }
        Some(described(&path, &Role::of(LaterExecuted::GitConfiguration, &path), Standing::Always, difference))
    }

    fn is_directory(&self, path: &Path) -> bool {
        self.workspace.metadata(&WorkspacePath::found(path)).is_ok_and(|metadata| metadata.is_dir())
    }

    fn mode(&self, path: &Path) -> Mode {
        match self.workspace.metadata(&WorkspacePath::found(path)) {
            Ok(metadata) if metadata.mode() & 0o111 == 0 => Mode::Plain,
            _ => Mode::Executable,
        }
    }

    #[expect(clippy::option_option, reason = "no file, or one whose content cannot be looked at")]
    fn before(&self, change: &FileChange) -> Option<Option<Vec<u8>>> {
        change.before.map(|digest| match change.entry.before {
            EntryKind::File | EntryKind::Link => whole(self.artifacts, &digest),
            EntryKind::Directory | EntryKind::Tree | EntryKind::Other => None,
        })
    }

    /// What the file holds now, if that is what the call left.
    fn present(&self, path: &Path, digest: &Digest) -> Option<Vec<u8>> {
        read(self.workspace, path, LOOKED_AT).filter(|bytes| Digest::of(bytes) == *digest)
    }
}

/// Whether all files were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum All {
    Yes,
    No,
}

#[expect(clippy::option_option, reason = "no file, or one whose content cannot be looked at")]
fn held(content: &Option<Option<Vec<u8>>>) -> Held<'_> {
    match content {
        None => Held::Nothing,
        Some(None) => Held::Unknown,
        Some(Some(bytes)) => Held::File(bytes),
    }
}

/// An artifact, if it is there and not too long.
fn whole(artifacts: &dyn Artifacts, digest: &Digest) -> Option<Vec<u8>> {
    let length = artifacts.len(digest).ok()??;
    let length = usize::try_from(length).ok().filter(|_| length <= LOOKED_AT)?;
    let bytes = artifacts.get_range(digest, 0, length).ok()?;
    (Digest::of(&bytes) == *digest).then_some(bytes)
}

/// A regular file of the workspace, if it is not too long.
fn read(workspace: &Workspace, path: &Path, limit: u64) -> Option<Vec<u8>> {
    workspace.open_file(&WorkspacePath::found(path)).ok()?.read_whole(limit).ok()
}

/// Reads the manifests of a workspace.
struct Reader<'a>(&'a Workspace);

impl Manifests for Reader<'_> {
    fn read(&self, path: &Path) -> Option<Vec<u8>> {
        read(self.0, path, MANIFEST)
    }

    fn names(&self, directory: &Path) -> Vec<PathBuf> {
        let Ok(entries) = self.0.dir().read_dir(directory) else { return Vec::new() };
        entries.flatten().take(HOOKS).map(|entry| PathBuf::from(entry.file_name())).collect()
    }
}

/// Bounds what the differences of one call take together, and says of each that is left out that it is.
fn limit(later: &mut [LaterChange]) {
    let mut left = DIFFERENCES;
    for change in later {
        match left.checked_sub(change.difference.len()) {
            Some(rest) => left = rest,
            None => {
                let hidden = Difference::hidden("one of too many changes".to_owned());
                (change.difference, change.not_shown) = (hidden.text, hidden.not_shown);
            }
        }
    }
}

#[cfg(test)]
#[path = "survey_tests.rs"]
mod tests;

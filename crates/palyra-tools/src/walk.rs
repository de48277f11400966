//! A parallel walk of the workspace by directory handles.
//!
//! Every directory is opened from the workspace's own handle and never through a link, so a walk cannot leave the workspace even
//! while somebody moves directories about. Each is opened by its own name in the one above it, so a path may be longer than the kernel takes at once. Links are
//! reported as links and not followed. `.git` is passed over, and so is what ignore files exclude, unless a walk covers everything. Order is up to the threads; callers
//! sort.

use std::ffi::{OsStr, OsString};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use cap_fs_ext::DirExt;
use cap_std::fs::{Dir, FileType};

use crate::cancel::Cancel;
use crate::ignore_rules::IgnoreRules;
use crate::{ToolError, Workspace, WorkspacePath};

/// Entries of one directory that are visited in one go.
const BATCH: usize = 128;
/// More threads than this do not make a walk faster.
const MAX_THREADS: usize = 8;

/// What to walk and what to pass over.
pub(crate) struct Walk<'a> {
    pub(crate) workspace: &'a Workspace,
    /// Where to begin: a directory, or one file.
    pub(crate) start: WorkspacePath,
    /// How many levels below `start`; `None` is all.
    pub(crate) depth: Option<usize>,
    pub(crate) hidden: Include,
    pub(crate) ignored: Include,
    /// Whether `.git` and what ignore files exclude are part of it; which of the excluded directories are entered, this says.
    pub(crate) everything: Option<&'a Enters<'a>>,
    pub(crate) cancel: &'a Cancel,
}

/// Whether a directory that ignore files exclude is entered.
pub(crate) type Enters<'a> = dyn Fn(&Found) -> bool + Sync + 'a;

/// Whether a kind of entry is part of the walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Include {
    Yes,
    No,
}

impl From<Option<bool>> for Include {
    /// An optional flag of a call; absent means no.
    fn from(flag: Option<bool>) -> Self {
        if flag == Some(true) { Self::Yes } else { Self::No }
    }
}

/// Whether the walk goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Flow {
    Continue,
    Stop,
}

/// An entry, with the handle of the directory it is in.
pub(crate) struct Found {
    pub(crate) path: WorkspacePath,
    pub(crate) kind: FileType,
    pub(crate) directory: Arc<Dir>,
    pub(crate) name: OsString,
    /// Whether ignore files exclude it, or a directory that it is in; reported only if the walk covers everything.
    pub(crate) excluded: bool,
    /// Whether it is a directory that was not entered because ignore files exclude it.
    pub(crate) skipped: bool,
}

/// In what kind of directory an entry lies.
#[derive(Debug, Clone, Copy, Default)]
struct Inside {
    excluded: bool,
    git: bool,
}

/// Directories that could not be read.
#[derive(Debug, Default)]
pub(crate) struct Unreadable {
    pub(crate) count: usize,
    /// The first of them.
    pub(crate) paths: Vec<WorkspacePath>,
}

impl Unreadable {
    /// How many are named: a program can make any number of them.
    const NAMED: usize = 100;

    fn add(&mut self, path: &WorkspacePath) {
        self.count += 1;
        if self.paths.len() < Self::NAMED {
            self.paths.push(path.clone());
        }
    }
}

/// How a walk ended.
#[derive(Debug, Default)]
pub(crate) struct WalkEnd {
    pub(crate) unreadable: Unreadable,
    /// Whether ignore files exclude the very place to begin at.
    pub(crate) start_excluded: bool,
}

enum Job {
    /// Read the directory of this name in another; the rules are those of that one.
    Directory { path: WorkspacePath, parent: Arc<Dir>, name: OsString, rules: Option<Arc<IgnoreRules>>, inside: Inside },
    /// Visit entries of a large directory, so that one such directory keeps all threads busy.
    Entries(Vec<Found>),
}

#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    /// Threads that may still add jobs.
    busy: usize,
    stopped: bool,
}

struct Shared<'a> {
    walk: &'a Walk<'a>,
    queue: Mutex<Queue>,
    changed: Condvar,
    unreadable: Mutex<Unreadable>,
}

impl<'a> Walk<'a> {
    /// The whole workspace, hidden files too, without what ignore files exclude.
    pub(crate) fn whole(workspace: &'a Workspace, cancel: &'a Cancel) -> Self {
        Self {
            workspace,
            start: WorkspacePath::root(),
            depth: None,
            hidden: Include::Yes,
            ignored: Include::No,
            everything: None,
            cancel,
        }
    }

    /// With `.git` and what ignore files exclude; of the directories among that, those are entered that `enters` says.
    pub(crate) fn covering_all(self, enters: &'a Enters<'a>) -> Self {
        Self { everything: Some(enters), ..self }
    }

    /// Visits every entry below the start; `make_visitor` is called once per thread.
    pub(crate) fn run<V>(&self, make_visitor: impl Fn() -> V + Sync) -> Result<WalkEnd, ToolError>
    where
        V: FnMut(&Found) -> Flow,
    {
        let metadata = self.workspace.metadata(&self.start)?;
        let Some((parent, rules)) = self.rules_of_start(metadata.is_dir())? else {
            return Ok(WalkEnd { start_excluded: true, ..WalkEnd::default() });
        };
        if !metadata.is_dir() {
            let name = self.start.file_name().unwrap_or_default().to_owned();
            let found = Found {
                path: self.start.clone(),
                kind: metadata.file_type(),
                directory: Arc::new(parent),
                name,
                excluded: false,
                skipped: false,
            };
            make_visitor()(&found);
            return Ok(WalkEnd::default());
        }
        let name = self.start.file_name().map_or_else(|| OsString::from("."), OsStr::to_owned);
        let inside = Inside::default();
        let jobs = vec![Job::Directory { path: self.start.clone(), parent: Arc::new(parent), name, rules, inside }];
        let shared = Shared {
            walk: self,
            queue: Mutex::new(Queue { jobs, ..Queue::default() }),
            changed: Condvar::new(),
            unreadable: Mutex::default(),
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MAX_THREADS);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                scope.spawn(|| shared.work(&mut make_visitor()));
            }
            shared.work(&mut make_visitor());
        });
        self.cancel.check()?;
        let unreadable = shared.unreadable.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok(WalkEnd { unreadable, start_excluded: false })
    }

    /// The rules that hold for the place the walk begins at, and the directory it lies in; `None` if they exclude it.
    #[expect(clippy::type_complexity, reason = "two values for one caller")]
    fn rules_of_start(&self, is_directory: bool) -> Result<Option<(Dir, Option<Arc<IgnoreRules>>)>, ToolError> {
        let refuse = |error| self.workspace.refuse(&self.start, error);
        let mut directory = self.workspace.dir().try_clone().map_err(refuse)?;
        let mut here = WorkspacePath::root();
        let mut rules = None;
        let mut names = self.start.as_path().iter().filter(|_| !self.start.is_root()).peekable();
        while let Some(name) = names.next() {
            let loaded = IgnoreRules::load(self.workspace, &directory, &here, rules);
            here = here.join(name);
            let last = names.peek().is_none();
            if self.ignored == Include::No && loaded.excludes(&here, is_directory || !last) {
                return Ok(None);
            }
            if !last {
                directory = directory.open_dir_nofollow(name).map_err(refuse)?;
            }
            rules = Some(loaded);
        }
        Ok(Some((directory, rules)))
    }

    fn passes(&self, name: &OsStr) -> bool {
        self.everything.is_some()
            || ((name != ".git") && (self.hidden == Include::Yes || !name.as_encoded_bytes().starts_with(b".")))
    }
}

impl Shared<'_> {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        // The queue is whole between any two statements.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work<V: FnMut(&Found) -> Flow>(&self, visit: &mut V) {
        while let Some(job) = self.next() {
            let done = Done(self);
            let flow = match job {
                Job::Directory { path, parent, name, rules, inside } => {
                    self.directory(&path, parent, &name, rules, inside, visit)
                }
                Job::Entries(entries) => self.visit_all(&entries, visit),
            };
            if flow == Flow::Stop || self.walk.cancel.is_set() {
                self.lock().stopped = true;
            }
            drop(done);
        }
    }

    /// The next directory; `None` when there will be none.
    fn next(&self) -> Option<Job> {
        let mut queue = self.lock();
        loop {
            if queue.stopped {
                return None;
            }
            if let Some(job) = queue.jobs.pop() {
                queue.busy += 1;
                return Some(job);
            }
            if queue.busy == 0 {
                return None;
            }
            queue = self.changed.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn directory<V: FnMut(&Found) -> Flow>(
        &self,
        path: &WorkspacePath,
        parent: Arc<Dir>,
        name: &OsStr,
        rules: Option<Arc<IgnoreRules>>,
        inside: Inside,
        visit: &mut V,
    ) -> Flow {
        let walk = self.walk;
        let opened = parent.open_dir_nofollow(name);
        // Before anything below is read: a deep tree must not hold a descriptor per level.
        drop(parent);
        let Ok((entries, directory)) = opened.and_then(|dir| Ok((dir.entries()?, Arc::new(dir)))) else {
            self.cannot_read(path);
            return Flow::Continue;
        };
        // Ignore files say nothing about what is in `.git`, and no more about what they exclude.
        let rules = match rules {
            Some(rules) if inside.excluded || inside.git => rules,
            rules => IgnoreRules::load(walk.workspace, &directory, path, rules),
        };
        let mut batch = Vec::new();
        for entry in entries {
            if walk.cancel.is_set() {
                return Flow::Stop;
            }
            let Ok((name, kind)) = entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?))) else {
                self.cannot_read(path);
                continue;
            };
            let path = path.join(&name);
            if walk.workspace.guard(&path).is_err() || !walk.passes(&name) {
                continue;
            }
            let git = inside.git || name == ".git";
            let excluded =
                inside.excluded || (walk.ignored == Include::No && !git && rules.excludes(&path, kind.is_dir()));
            if excluded && walk.everything.is_none() {
                continue;
            }
            let deeper = path.depth().saturating_sub(walk.start.depth());
            let mut found = Found { path, kind, directory: Arc::clone(&directory), name, excluded, skipped: false };
            found.skipped = excluded && kind.is_dir() && walk.everything.is_some_and(|enters| !enters(&found));
            if kind.is_dir() && !found.skipped && walk.depth.is_none_or(|depth| deeper < depth) {
                self.push(Job::Directory {
                    path: found.path.clone(),
                    parent: Arc::clone(&directory),
                    name: found.name.clone(),
                    rules: Some(Arc::clone(&rules)),
                    inside: Inside { excluded, git },
                });
            }
            batch.push(found);
            if batch.len() == BATCH {
                self.push(Job::Entries(std::mem::take(&mut batch)));
            }
        }
        self.visit_all(&batch, visit)
    }

    fn cannot_read(&self, path: &WorkspacePath) {
        self.unreadable.lock().unwrap_or_else(PoisonError::into_inner).add(path);
    }

    fn visit_all<V: FnMut(&Found) -> Flow>(&self, entries: &[Found], visit: &mut V) -> Flow {
        let stops = |found: &Found| self.walk.cancel.is_set() || visit(found) == Flow::Stop;
        if entries.iter().any(stops) { Flow::Stop } else { Flow::Continue }
    }

    fn push(&self, job: Job) {
        self.lock().jobs.push(job);
        self.changed.notify_one();
    }
}

/// Says that a thread is through with its directory, even if the visitor panicked: the others must not wait for ever.
struct Done<'a, 'b>(&'a Shared<'b>);

impl Drop for Done<'_, '_> {
    fn drop(&mut self) {
        let mut queue = self.0.lock();
        queue.busy -= 1;
        queue.stopped |= std::thread::panicking();
        drop(queue);
        self.0.changed.notify_all();
    }
}

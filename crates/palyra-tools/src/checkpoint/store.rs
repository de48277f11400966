//! Where the copies lie, and how a checkpoint is taken.
//!
//! Below the store's directory every workspace has a shelf, and a copy is named by its digest. Copies are a cache, not a record: they are thrown away when
//! the daemon starts, they are not synced, and a copy is hashed again before anybody relies on it. What a run really changed goes into the
//! durable artifacts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Instant, SystemTime};

use palyra_common::{Digest, RunId};
use tokio_util::sync::CancellationToken;

use super::activity::WorkspaceActivity;
use super::look::{DirectoryStamp, describe};
use super::stamp::Stamp;
use super::{Checkpoint, CheckpointCost, CheckpointLimits, Kept, attributes};
use crate::cancel::Cancel;
use crate::walk::{Flow, Found, Walk};
use crate::{ToolError, Workspace, WorkspacePath};

/// The copies of all workspaces.
#[derive(Debug)]
pub struct CheckpointStore {
    root: PathBuf,
    shelves: Mutex<HashMap<PathBuf, Arc<Shelf>>>,
    activity: Arc<WorkspaceActivity>,
}

/// The copies of one workspace.
#[derive(Debug)]
pub(super) struct Shelf {
    directory: PathBuf,
    known: Mutex<HashMap<WorkspacePath, Kept>>,
    bytes: AtomicU64,
    temporary: AtomicUsize,
}

impl CheckpointStore {
    /// Opens the store and empties it: copies serve only while the daemon that made them runs; blocks.
    pub fn open(root: impl Into<PathBuf>) -> Result<Self, ToolError> {
        let root = root.into();
        let failed = |error| ToolError::io(&root.display().to_string(), error);
        let old = root.with_extension("old");
        // Two leftovers at once are rare; then the first is waited for. Removing many files must not hold a start up.
        if root.exists() && fs::rename(&root, &old).is_err() {
            fs::remove_dir_all(&old).and_then(|()| fs::rename(&root, &old)).map_err(failed)?;
        }
        if old.exists() {
            std::thread::spawn(move || drop(fs::remove_dir_all(&old)));
        }
        make_private(&root).map_err(failed)?;
        Ok(Self { root, shelves: Mutex::default(), activity: Arc::default() })
    }

    /// Who writes to the workspaces meanwhile; tools that report their own writes tell it.
    #[must_use]
    pub fn activity(&self) -> Arc<WorkspaceActivity> {
        Arc::clone(&self.activity)
    }

    /// Takes a checkpoint of a workspace for a call of a run; blocks.
    pub fn take(
        &self,
        workspace: &Workspace,
        limits: CheckpointLimits,
        run: RunId,
        token: &CancellationToken,
    ) -> Result<Checkpoint, ToolError> {
        let (began, begun) = (Instant::now(), SystemTime::now());
        let call = self.activity.begin(workspace.root(), run);
        let shelf = self.shelf(workspace)?;
        let cancel = Cancel::of(token);
        let taking = Mutex::new(Taking::default());
        let end = Walk::whole(workspace, &cancel).naming_excluded().with_git_control().run(|| {
            |found: &Found| match shelf.visit(workspace, found, limits, &taking) {
                Ok(()) => Flow::Continue,
                Err(error) => {
                    locked(&taking).failure.get_or_insert(error);
                    Flow::Stop
                }
            }
        })?;
        let mut taken = taking.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = taken.failure {
            return Err(error);
        }
        cancel.check()?;
        taken.unseen.extend(end.unreadable.paths);
        // The program starts after this, so what changed until now it did not change.
        call.idle.add(begun, SystemTime::now());
        let covered = |kept: &&Kept| kept.content.is_some();
        let files = taken.files.values().filter(covered).count();
        *locked(&shelf.known) = taken.files.iter().map(|(path, kept)| (path.clone(), *kept)).collect();
        Ok(Checkpoint {
            begun,
            hashed_bytes: limits.hashed_bytes,
            uncounted: taken.uncounted,
            files: taken.files,
            directories: taken.directories,
            others: taken.others,
            unseen: taken.unseen,
            cost: CheckpointCost {
                files,
                copied: taken.copied,
                copied_bytes: taken.copied_bytes,
                took: began.elapsed(),
            },
            store: shelf,
            call,
        })
    }

    fn shelf(&self, workspace: &Workspace) -> Result<Arc<Shelf>, ToolError> {
        let mut shelves = locked(&self.shelves);
        if let Some(shelf) = shelves.get(workspace.root()) {
            return Ok(Arc::clone(shelf));
        }
        let directory = self.root.join(shelves.len().to_string());
        make_private(&directory).map_err(|error| ToolError::io(&directory.display().to_string(), error))?;
        let shelf = Arc::new(Shelf {
            directory,
            known: Mutex::default(),
            bytes: AtomicU64::new(0),
            temporary: AtomicUsize::new(0),
        });
        shelves.insert(workspace.root().to_owned(), Arc::clone(&shelf));
        Ok(shelf)
    }
}

/// What the threads of one walk gather.
#[derive(Default)]
struct Taking {
    files: BTreeMap<WorkspacePath, Kept>,
    directories: BTreeMap<WorkspacePath, DirectoryStamp>,
    others: BTreeMap<WorkspacePath, String>,
    unseen: BTreeSet<WorkspacePath>,
    uncounted: usize,
    copied: usize,
    copied_bytes: u64,
    failure: Option<ToolError>,
}

impl Shelf {
    fn visit(
        &self,
        workspace: &Workspace,
        found: &Found,
        limits: CheckpointLimits,
        taking: &Mutex<Taking>,
    ) -> Result<(), ToolError> {
        if found.excluded {
            locked(taking).unseen.insert(found.path.clone());
            return Ok(());
        }
        if found.kind.is_dir() {
            let stamp = DirectoryStamp::of(found);
            locked(taking).directories.insert(found.path.clone(), stamp);
            return Ok(());
        }
        if !found.kind.is_file() {
            let what = describe(found);
            locked(taking).others.insert(found.path.clone(), what);
            return Ok(());
        }
        {
            let mut taking = locked(taking);
            if taking.files.len() >= limits.files {
                taking.uncounted += 1;
                taking.unseen.insert(found.path.clone());
                return Ok(());
            }
        }
        let now = SystemTime::now();
        let stamp = match found.directory.symlink_metadata(&found.name) {
            Ok(metadata) => Stamp::of(&metadata, now),
            // Gone since the directory was read.
            Err(_) => return Ok(()),
        };
        let known = locked(&self.known).get(&found.path).copied();
        if let Some(kept) = known.filter(|kept| kept.content.is_some() && stamp.proves_unchanged_since(&kept.stamp)) {
            locked(taking).files.insert(found.path.clone(), kept);
            return Ok(());
        }
        let fits = stamp.size <= limits.file_bytes
            && self.bytes.load(Ordering::Relaxed).saturating_add(stamp.size) <= limits.total_bytes;
        // A file that cannot be read by us cannot be changed by a process with fewer rights either.
        let copied = if fits { self.copy(workspace, found)? } else { None };
        let (content, attributes) = copied.map_or((None, None), |(content, attributes)| (Some(content), attributes));
        let mut taking = locked(taking);
        taking.files.insert(found.path.clone(), Kept { stamp, content, attributes });
        if content.is_some() {
            taking.copied += 1;
            taking.copied_bytes += stamp.size;
        }
        Ok(())
    }

    /// Copies a file aside, and says what its extended attributes are; `None` if it may not be read or is no longer there.
    fn copy(&self, workspace: &Workspace, found: &Found) -> Result<Option<(Digest, Option<Digest>)>, ToolError> {
        let Ok(mut source) = workspace.open_here(&found.directory, &found.name, &found.path) else { return Ok(None) };
        let attributes = attributes::of(&source.file);
        let name = format!("new-{}", self.temporary.fetch_add(1, Ordering::Relaxed));
        let temporary = self.directory.join(name);
        let mut kept = || -> io::Result<(Digest, u64)> {
            let mut target = File::options().read(true).write(true).create_new(true).open(&temporary)?;
            // The library lets the kernel copy, and the kernel shares blocks where the file system can.
            let bytes = io::copy(&mut source.file, &mut target)?;
            drop(target);
            // The copy is hashed, not the file: somebody may write to it at this moment.
            Ok((Digest::of_reader(File::open(&temporary)?)?, bytes))
        };
        let (digest, bytes) = kept().map_err(|error| {
            let _ = fs::remove_file(&temporary);
            ToolError::io(&temporary.display().to_string(), error)
        })?;
        let path = self.path(&digest);
        if !path.exists() {
            self.bytes.fetch_add(bytes, Ordering::Relaxed);
        }
        fs::rename(&temporary, &path).map_err(|error| ToolError::io(&path.display().to_string(), error))?;
        Ok(Some((digest, attributes)))
    }

    fn path(&self, digest: &Digest) -> PathBuf {
        self.directory.join(digest.to_string().replace(':', "-"))
    }

    /// The bytes of a copy; a copy that is not what its name says is not there.
    pub(super) fn read(&self, digest: &Digest) -> Result<Vec<u8>, ToolError> {
        let bytes = fs::read(self.path(digest)).unwrap_or_default();
        if Digest::of(&bytes) == *digest { Ok(bytes) } else { Err(ToolError::ArtifactNotFound { digest: *digest }) }
    }
}

fn make_private(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // What is behind these locks is whole between any two statements.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

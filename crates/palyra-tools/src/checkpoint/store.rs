//! Where the copies lie, and how a checkpoint is taken.
//!
//! Below the store's directory every workspace has a shelf, and a copy is named by its digest. Copies are a cache, not a record: they are thrown away when
//! the daemon starts, they are not synced, and a copy is hashed again before anybody relies on it. What a run really changed goes into the
//! durable artifacts.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use palyra_common::{Digest, RunId};
use tokio_util::sync::CancellationToken;

use super::activity::WorkspaceActivity;
use super::coverage::{Findings, is_rebuilt, is_small, look_through, may_be_read};
use super::look::{DirectoryStamp, Other};
use super::stamp::Stamp;
use super::{Checkpoint, CheckpointCost, CheckpointLimits, Kept, WriterVisibility, attributes};
use crate::cancel::Cancel;
use crate::walk::{Flow, Found, Walk};
use crate::{Reach, ToolError, Workspace, WorkspacePath};

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
    /// Whether a copy was seen to share its blocks with the file.
    shares_blocks: AtomicBool,
    /// What was found in directories that are not copied, and when.
    trees: Mutex<HashMap<WorkspacePath, (Instant, Findings)>>,
}

/// How long a directory that is not copied counts as looked through: from a decision to the beginning of what was decided. Nobody can say more of it for any moment but
/// the one at which it was looked at.
const LOOKED: Duration = Duration::from_secs(5);

/// Whether files are copied, or only asked whether they would be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copying {
    Yes,
    No,
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
        let shelf = self.shelf(workspace, limits)?;
        let taken = shelf.go_through(workspace, limits, Copying::Yes, &Cancel::of(token))?;
        // The program starts after this, so what changed until now it did not change.
        call.idle.add(begun, SystemTime::now());
        let covered = |kept: &&Kept| kept.content.is_some();
        let files = taken.files.values().filter(covered).count();
        *locked(&shelf.known) = taken.files.iter().map(|(path, kept)| (path.clone(), *kept)).collect();
        Ok(Checkpoint {
            begun,
            limits,
            uncounted: taken.uncounted,
            files: taken.files,
            directories: taken.directories,
            others: taken.others,
            unseen: taken.unseen,
            findings: taken.findings,
            cost: CheckpointCost {
                files,
                copied: taken.copied,
                copied_bytes: taken.copied_bytes,
                took: began.elapsed(),
            },
            store: shelf,
            call,
            writers: WriterVisibility::Complete,
        })
    }

    /// What a checkpoint that is taken now would say speaks against a program's being contained. Nothing is copied; blocks.
    ///
    /// # Errors
    /// When the workspace cannot be read.
    pub fn survey(&self, workspace: &Workspace, limits: CheckpointLimits) -> Result<Vec<Reach>, ToolError> {
        let shelf = self.shelf(workspace, limits)?;
        let taken = shelf.go_through(workspace, limits, Copying::No, &Cancel::never())?;
        Ok(taken.findings.reaches())
    }

    fn shelf(&self, workspace: &Workspace, limits: CheckpointLimits) -> Result<Arc<Shelf>, ToolError> {
        let mut shelves = locked(&self.shelves);
        if let Some(shelf) = shelves.get(workspace.root()) {
            // Nobody else holds it, so no checkpoint needs a copy of anything but the newest.
            if Arc::strong_count(shelf) == 1 && shelf.bytes.load(Ordering::Relaxed) > limits.total_bytes / 2 {
                shelf.remove_old_copies();
            }
            return Ok(Arc::clone(shelf));
        }
        let directory = self.root.join(shelves.len().to_string());
        make_private(&directory).map_err(|error| ToolError::io(&directory.display().to_string(), error))?;
        let shelf = Arc::new(Shelf {
            directory,
            known: Mutex::default(),
            bytes: AtomicU64::new(0),
            temporary: AtomicUsize::new(0),
            shares_blocks: AtomicBool::new(false),
            trees: Mutex::default(),
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
    others: BTreeMap<WorkspacePath, Other>,
    unseen: BTreeSet<WorkspacePath>,
    /// Directories that are not copied because they are filled again.
    trees: Vec<WorkspacePath>,
    findings: Findings,
    uncounted: usize,
    copied: usize,
    copied_bytes: u64,
    /// Bytes that would be copied.
    wanted_bytes: u64,
    failure: Option<ToolError>,
}

impl Shelf {
    /// Walks the workspace, and copies what is new if it is to.
    fn go_through(
        &self,
        workspace: &Workspace,
        limits: CheckpointLimits,
        copying: Copying,
        cancel: &Cancel,
    ) -> Result<Taking, ToolError> {
        let taking = Mutex::new(Taking::default());
        let enters = |found: &Found| !is_rebuilt(found) || is_small(found, limits);
        let end = Walk::whole(workspace, cancel).covering_all(&enters).run(|| {
            |found: &Found| match self.visit(workspace, found, limits, copying, &taking) {
                Ok(()) => Flow::Continue,
                Err(error) => {
                    locked(&taking).failure.get_or_insert(error);
                    Flow::Stop
                }
            }
        })?;
        let mut taken = taking.into_inner().unwrap_or_else(PoisonError::into_inner);
        taken.directories.insert(WorkspacePath::root(), DirectoryStamp::of_workspace(workspace)?);
        if let Some(error) = taken.failure.take() {
            return Err(error);
        }
        cancel.check()?;
        for path in &end.unreadable.paths {
            taken.findings.leave_out(|| format!("`{path}` cannot be read"));
        }
        taken.unseen.extend(end.unreadable.paths);
        if taken.uncounted > 0 {
            let uncounted = taken.uncounted;
            taken.findings.leave_out(|| format!("{uncounted} files are too many"));
        }
        for tree in std::mem::take(&mut taken.trees) {
            let findings = self.looked_through(workspace, &tree, limits, cancel)?;
            taken.findings.names.join(&findings.names);
            taken.findings.doors.extend(findings.doors);
            taken.findings.more += findings.more;
            for line in findings.uncovered {
                taken.findings.leave_out(|| line);
            }
        }
        Ok(taken)
    }

    /// What is known of a directory that is not copied.
    fn looked_through(
        &self,
        workspace: &Workspace,
        tree: &WorkspacePath,
        limits: CheckpointLimits,
        cancel: &Cancel,
    ) -> Result<Findings, ToolError> {
        if let Some((at, known)) = locked(&self.trees).get(tree)
            && at.elapsed() < LOOKED
        {
            return Ok(known.clone());
        }
        let at = Instant::now();
        let findings = look_through(workspace, tree, limits, cancel)?;
        let mut trees = locked(&self.trees);
        trees.retain(|_, (at, _)| at.elapsed() < LOOKED);
        trees.insert(tree.clone(), (at, findings.clone()));
        Ok(findings)
    }

    fn visit(
        &self,
        workspace: &Workspace,
        found: &Found,
        limits: CheckpointLimits,
        copying: Copying,
        taking: &Mutex<Taking>,
    ) -> Result<(), ToolError> {
        if found.skipped {
            let mut taking = locked(taking);
            taking.unseen.insert(found.path.clone());
            taking.trees.push(found.path.clone());
            return Ok(());
        }
        if found.kind.is_dir() {
            let stamp = DirectoryStamp::of(found);
            locked(taking).directories.insert(found.path.clone(), stamp);
            return Ok(());
        }
        if !found.kind.is_file() {
            let other = Other::of(found);
            let mut taking = locked(taking);
            taking.findings.note_other(found);
            taking.others.insert(found.path.clone(), other);
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
        let excluded = found.excluded;
        let known = locked(&self.known).get(&found.path).copied();
        if let Some(kept) = known.filter(|kept| kept.content.is_some() && stamp.proves_unchanged_since(&kept.stamp)) {
            let mut taking = locked(taking);
            taking.findings.names.note(stamp.inode(), stamp.links, &found.path);
            taking.files.insert(found.path.clone(), Kept { excluded, ..kept });
            return Ok(());
        }
        let fits = self.fits(stamp.size, limits, locked(taking).wanted_bytes);
        let copied = match copying {
            Copying::No => (fits && may_be_read(found)).then(|| (Digest::of(b""), None)),
            // A file that cannot be read by us cannot be changed by a process with fewer rights either, but it can be removed.
            Copying::Yes if fits => self.copy(workspace, found)?,
            Copying::Yes => None,
        };
        let (content, attributes) = copied.map_or((None, None), |(content, attributes)| (Some(content), attributes));
        let mut taking = locked(taking);
        taking.findings.names.note(stamp.inode(), stamp.links, &found.path);
        taking.files.insert(found.path.clone(), Kept { stamp, content, attributes, excluded });
        match (content, copying) {
            (Some(_), Copying::Yes) => {
                taking.copied += 1;
                taking.copied_bytes += stamp.size;
            }
            (Some(_), Copying::No) => taking.wanted_bytes += stamp.size,
            (None, _) if fits => taking.findings.leave_out(|| format!("`{}` cannot be read", found.path)),
            (None, _) => {
                taking.findings.leave_out(|| format!("`{}` with {} bytes is not copied", found.path, stamp.size));
            }
        }
        Ok(())
    }

    /// Whether a file may be copied beside what is there already.
    fn fits(&self, size: u64, limits: CheckpointLimits, wanted: u64) -> bool {
        let together = self.bytes.load(Ordering::Relaxed).saturating_add(wanted).saturating_add(size);
        size <= limits.file_bytes && (together <= limits.total_bytes || self.shares_blocks.load(Ordering::Relaxed))
    }

    /// Copies a file aside, and says what its extended attributes are; `None` if it may not be read or is no longer there.
    fn copy(&self, workspace: &Workspace, found: &Found) -> Result<Option<(Digest, Option<Digest>)>, ToolError> {
        let Ok(mut source) = workspace.open_here(&found.directory, &found.name, &found.path) else { return Ok(None) };
        let attributes = attributes::of(&source.file);
        let name = format!("new-{}", self.temporary.fetch_add(1, Ordering::Relaxed));
        let temporary = self.directory.join(name);
        let mut kept = || -> io::Result<(Digest, u64)> {
            let mut target = File::options().read(true).write(true).create_new(true).open(&temporary)?;
            let bytes = if rustix::fs::ioctl_ficlone(target.as_fd(), source.file.as_fd()).is_ok() {
                self.shares_blocks.store(true, Ordering::Relaxed);
                0
            } else {
                io::copy(&mut source.file, &mut target)?
            };
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

    /// Removes the copies of what files held before the newest checkpoint.
    fn remove_old_copies(&self) {
        let known = locked(&self.known);
        let wanted: BTreeSet<PathBuf> =
            known.values().filter_map(|kept| kept.content).map(|digest| self.path(&digest)).collect();
        let mut left = 0;
        for entry in fs::read_dir(&self.directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if wanted.contains(&path) || fs::remove_file(&path).is_err() {
                left += entry.metadata().map_or(0, |metadata| metadata.len());
            }
        }
        self.bytes.store(left, Ordering::Relaxed);
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

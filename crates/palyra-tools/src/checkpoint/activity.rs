//! Who else writes to a workspace while the changes of a call are found by comparison.
//!
//! Comparing tells what changed and not who did it. Two things are known here without asking the kernel: which other calls are compared at the same time, each with
//! the run it belongs to, and exactly which files the file tools of any run wrote meanwhile. Entries live no longer than the calls that could need them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use palyra_common::{Digest, RunId};

use super::idle::{IdlePeriods, TICK};
use crate::{FileChange, WorkspacePath};

/// The writers of all workspaces of a daemon.
#[derive(Debug, Default)]
pub struct WorkspaceActivity(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    /// Orders calls and writes.
    next: u64,
    calls: BTreeMap<u64, Call>,
    writes: BTreeMap<u64, Write>,
}

#[derive(Debug)]
struct Call {
    root: PathBuf,
    run: RunId,
    begun: SystemTime,
    /// When its program was over; `None` while it runs.
    ended: Option<SystemTime>,
    idle: IdlePeriods,
    /// Whether its changes are still to be looked for.
    open: bool,
}

/// A file that a tool wrote, from and to what.
#[derive(Debug)]
struct Write {
    path: PathBuf,
    before: Option<Digest>,
    after: Option<Digest>,
}

/// What tools that report their own writes did to a file during a call.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Reported {
    Nothing,
    /// They made of the first content the last.
    Wrote {
        before: Option<Digest>,
        after: Option<Digest>,
    },
}

impl WorkspaceActivity {
    /// Notes that a call begins whose changes will be found by comparison.
    pub(super) fn begin(self: &Arc<Self>, root: &Path, run: RunId) -> TrackedCall {
        let idle = IdlePeriods::default();
        let mut state = self.lock();
        let id = state.number();
        let begun = SystemTime::now();
        state.calls.insert(id, Call { root: root.to_owned(), run, begun, ended: None, idle: idle.clone(), open: true });
        drop(state);
        TrackedCall { activity: Arc::clone(self), id, run, root: root.to_owned(), idle }
    }

    /// Notes what a tool is about to write.
    pub(crate) fn writing(&self, root: &Path, changes: &[FileChange]) {
        let mut state = self.lock();
        if !state.calls.values().any(|call| call.open) {
            return;
        }
        for change in changes {
            let id = state.number();
            let write = Write { path: root.join(&change.path), before: change.before, after: change.after };
            state.writes.insert(id, write);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn number(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    /// Forgets what no open call can ask for any more.
    fn forget(&mut self) {
        let oldest = self.calls.iter().find(|(_, call)| call.open).map(|(id, call)| (*id, call.begun));
        let Some((id, begun)) = oldest else {
            self.calls.clear();
            self.writes.clear();
            return;
        };
        self.calls.retain(|_, call| call.open || call.ended.is_none_or(|ended| ended + TICK >= begun));
        self.writes = self.writes.split_off(&id);
    }
}

/// A call whose changes are found by comparison. Dropping it ends that.
#[derive(Debug)]
pub(super) struct TrackedCall {
    activity: Arc<WorkspaceActivity>,
    id: u64,
    run: RunId,
    root: PathBuf,
    pub(super) idle: IdlePeriods,
}

impl TrackedCall {
    /// Notes that its program is over, or as good as over.
    pub(super) fn ended(&self) {
        if let Some(call) = self.activity.lock().calls.get_mut(&self.id) {
            call.ended.get_or_insert_with(SystemTime::now);
        }
    }

    /// Whether a call of another run may have changed the path when the change got its stamp.
    pub(super) fn is_shared(&self, path: &Path, stamp: SystemTime) -> bool {
        let path = self.root.join(path);
        self.activity.lock().calls.iter().any(|(id, call)| {
            *id != self.id
                && call.run != self.run
                && path.starts_with(&call.root)
                && stamp + TICK >= call.begun
                && call.ended.is_none_or(|ended| stamp <= ended)
                && !call.idle.cover(stamp, stamp)
        })
    }

    /// What tools wrote to the path since the call began.
    pub(super) fn reported(&self, path: &WorkspacePath) -> Reported {
        let path = self.root.join(path.to_string());
        let state = self.activity.lock();
        let mut writes = state.writes.range(self.id..).map(|(_, write)| write).filter(|write| write.path == path);
        let Some(first) = writes.next() else { return Reported::Nothing };
        Reported::Wrote { before: first.before, after: writes.next_back().unwrap_or(first).after }
    }
}

impl Drop for TrackedCall {
    fn drop(&mut self) {
        self.ended();
        let mut state = self.activity.lock();
        if let Some(call) = state.calls.get_mut(&self.id) {
            call.open = false;
        }
        state.forget();
    }
}

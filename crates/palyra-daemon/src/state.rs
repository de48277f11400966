//! The state root: one directory, one daemon.
//!
//! Owns the directory itself and the small files that tell others about the daemon: `palyrad.lock`, `palyrad.pid`,
//! `http.addr`, `grpc.addr`, `quic.addr`. The journal, the effects and the keys below it belong to the crates that write them.
//!
//! INVARIANT: a [`StateRoot`] exists only while this process holds the lock, so whoever has one may remove what an earlier
//! daemon left behind. The kernel drops the lock when the process dies, however it dies.

use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use palyra_client::SOCKET_NAME;
use palyra_client::quic::QUIC_ADDRESS_NAME;
use palyra_common::ExitCode;
use palyra_journal::check_writable;
use rustix::io::Errno;
use rustix::process::Pid;
use tokio_util::sync::CancellationToken;

use crate::error::DaemonError;
use crate::reserve::Reserve;

const LOCK_NAME: &str = "palyrad.lock";
const PID_NAME: &str = "palyrad.pid";
/// How long a start waits for the lock of a daemon that is gone. A child that it was starting when it was killed has the lock, too, until the child runs its own program.
const RELEASED_WITHIN: Duration = Duration::from_secs(5);
/// How often it looks.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// How often a daemon looks whether its state root is still there.
const LOOK_FOR_ROOT_EVERY: Duration = Duration::from_secs(1);
/// Where HTTP is served.
pub(crate) const HTTP_ADDRESS: &str = "http.addr";
/// Where gRPC is served.
pub(crate) const GRPC_ADDRESS: &str = "grpc.addr";
/// Files that say where the daemon is served; gone when it is not.
const ADDRESSES: [&str; 3] = [HTTP_ADDRESS, GRPC_ADDRESS, QUIC_ADDRESS_NAME];
const EFFECTS_NAME: &str = "effects";

/// A state root that this process owns.
#[derive(Debug)]
pub(crate) struct StateRoot {
    path: PathBuf,
    lock: File,
    /// Set when the socket belongs to the service manager, which keeps it open while no daemon runs.
    socket_is_lent: AtomicBool,
}

impl StateRoot {
    /// Makes the directory if need be, checks who may write to it, and takes the lock.
    pub(crate) fn claim(path: PathBuf) -> Result<Self, DaemonError> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&path);
        made.map_err(DaemonError::file("create", &path))?;
        check_owner(&path)?;
        // Before anything is tried, so that it is not told as the failure of whichever file comes first.
        check_writable(&path)?;
        let lock = take_lock(&path)?;
        // Before anything is written that a full disk would refuse.
        Reserve::of(&path).settle();
        let root = Self { path, lock, socket_is_lent: AtomicBool::new(false) };
        // Left by a daemon that was killed; they would send clients to ports that may be anybody's by now.
        for name in ADDRESSES {
            root.forget(name)?;
        }
        root.replace(PID_NAME, &format!("{}\n", std::process::id()))?;
        Ok(root)
    }

    /// The directory.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Where writes are staged.
    pub(crate) fn effects(&self) -> PathBuf {
        self.path.join(EFFECTS_NAME)
    }

    /// Tells others where something is served.
    pub(crate) fn note_address(&self, name: &str, address: SocketAddr) -> Result<(), DaemonError> {
        self.replace(name, &format!("{address}\n"))
    }

    /// The socket is not this daemon's to remove.
    pub(crate) fn leave_socket(&self) {
        self.socket_is_lent.store(true, Ordering::Relaxed);
    }

    /// Replaces a small file as a whole, readable by its owner alone.
    pub(crate) fn replace(&self, name: &str, text: &str) -> Result<(), DaemonError> {
        let path = self.path.join(name);
        let temporary = self.path.join(format!(".{name}.new"));
        let written = (|| {
            remove(&temporary)?;
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&temporary)?;
            file.write_all(text.as_bytes())?;
            fs::rename(&temporary, &path)
        })();
        written.map_err(DaemonError::file("write", path))
    }

    /// Removes a file if it is there.
    pub(crate) fn forget(&self, name: &str) -> Result<(), DaemonError> {
        let path = self.path.join(name);
        remove(&path).map_err(DaemonError::file("remove", path))
    }

    /// What tells whether the directory is still the one that this daemon serves.
    pub(crate) fn presence(&self) -> Result<Presence, DaemonError> {
        let path = self.path.join(LOCK_NAME);
        let lock = self.lock.metadata().map_err(DaemonError::file("read", &path))?;
        Ok(Presence { path, device: lock.dev(), inode: lock.ino() })
    }

    /// Takes back everything that says a daemon is here, then gives up the lock.
    pub(crate) fn release(self) {
        let own_socket = (!self.socket_is_lent.load(Ordering::Relaxed)).then_some(SOCKET_NAME);
        for name in own_socket.into_iter().chain([PID_NAME]).chain(ADDRESSES) {
            if let Err(error) = self.forget(name) {
                tracing::warn!(%error, "a file of the stopped daemon could not be removed");
            }
        }
    }
}

/// The lock file of a state root, by which it is recognised: whoever removes the directory removes the lock with it.
#[derive(Debug)]
pub(crate) struct Presence {
    path: PathBuf,
    device: u64,
    inode: u64,
}

impl Presence {
    /// Ends this process once the state root is gone or another one stands in its place.
    ///
    /// At once and not in good order: whatever is written from now on would be lost with the directory, or end up in that of another daemon.
    pub(crate) async fn keep_watched(self, closing: CancellationToken) {
        loop {
            tokio::select! {
                () = closing.cancelled() => return,
                () = tokio::time::sleep(LOOK_FOR_ROOT_EVERY) => {}
            }
            if self.is_lost() {
                let root = self.path.parent().unwrap_or(&self.path).display();
                tracing::error!(state_root = %root, "the state directory was removed; this daemon ends, since it could keep nothing");
                std::process::exit(ExitCode::Precondition as i32);
            }
        }
    }

    /// Whether the lock file is another one or none. A directory that cannot be looked at for another reason is still there.
    fn is_lost(&self) -> bool {
        match fs::symlink_metadata(&self.path) {
            Ok(found) => (found.dev(), found.ino()) != (self.device, self.inode),
            Err(error) => matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory),
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// Whoever may write here could put another socket or another token in place.
fn check_owner(path: &Path) -> Result<(), DaemonError> {
    let metadata = fs::metadata(path).map_err(DaemonError::file("inspect", path))?;
    if !metadata.is_dir() {
        return Err(DaemonError::file("use", path)(io::ErrorKind::NotADirectory.into()));
    }
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err(DaemonError::StateRootForeign { root: path.to_owned(), uid: metadata.uid() });
    }
    let mode = metadata.mode() & 0o7777;
    if mode & 0o022 != 0 {
        return Err(DaemonError::StateRootExposed { root: path.to_owned(), mode });
    }
    Ok(())
}

fn is_running(pid: Pid) -> bool {
    !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH))
}

fn take_lock(root: &Path) -> Result<File, DaemonError> {
    let path = root.join(LOCK_NAME);
    let opened = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(&path);
    let mut file = opened.map_err(DaemonError::file("open", &path))?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(source)) => return Err(DaemonError::StateFile { action: "lock", path, source }),
        }
        let holder =
            fs::read_to_string(&path).ok().and_then(|text| text.trim().parse::<i32>().ok()).and_then(Pid::from_raw);
        if holder.is_some_and(is_running) || began.elapsed() > RELEASED_WITHIN {
            let pid = holder.map(|pid| format!("process {}", pid.as_raw_nonzero()));
            let holder = pid.unwrap_or_else(|| "another process".to_owned());
            return Err(DaemonError::StateInUse { root: root.to_owned(), holder });
        }
        std::thread::sleep(LOOK_EVERY);
    }
    // The number is for people; the lock is what excludes. A full disk must not keep a daemon from starting.
    if let Err(error) = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id())) {
        tracing::debug!(%error, "could not write the process id to the lock file");
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use palyra_common::ToStableError as _;

    use super::*;

    #[test]
    fn a_state_root_has_one_owner_at_a_time() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/state");
        let first = StateRoot::claim(path.clone()).unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o700);
        let second = StateRoot::claim(path.clone()).unwrap_err().to_stable();
        assert_eq!(second.code, "state_in_use");
        assert!(second.message.contains(&std::process::id().to_string()), "{}", second.message);
        first.release();
        assert!(!path.join(PID_NAME).exists());
        StateRoot::claim(path).unwrap();
    }

    #[test]
    fn a_lock_that_outlives_its_process_is_waited_for() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(LOCK_NAME);
        let mut gone = std::process::Command::new("true").spawn().unwrap();
        let pid = gone.id();
        gone.wait().unwrap();
        fs::write(&path, format!("{pid}\n")).unwrap();
        // As a child has it that was forked and does not run its own program yet.
        let inherited = File::open(&path).unwrap();
        inherited.lock().unwrap();
        let child = std::thread::spawn(move || {
            std::thread::sleep(Duration::from_millis(200));
            drop(inherited);
        });
        take_lock(directory.path()).unwrap();
        child.join().unwrap();
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o777)).unwrap();
        let error = StateRoot::claim(directory.path().to_owned()).unwrap_err().to_stable();
        assert_eq!(error.code, "state_root_exposed");
        assert!(!directory.path().join(LOCK_NAME).exists());
    }

    #[test]
    fn a_stale_address_does_not_survive_a_start() {
        let directory = tempfile::tempdir().unwrap();
        for name in ADDRESSES {
            fs::write(directory.path().join(name), "127.0.0.1:1\n").unwrap();
        }
        let root = StateRoot::claim(directory.path().to_owned()).unwrap();
        for name in ADDRESSES {
            assert!(!directory.path().join(name).exists());
            root.note_address(name, "127.0.0.1:7142".parse().unwrap()).unwrap();
            assert_eq!(fs::metadata(directory.path().join(name)).unwrap().mode() & 0o777, 0o600);
        }
    }
}

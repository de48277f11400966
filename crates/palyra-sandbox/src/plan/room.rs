//! The root that a tier C guest lives in.
//!
//! An empty file system in memory gets the system's directories (read-only), a short `/etc`, a handful of devices, private `/tmp`, home and
//! shared memory, a new `/proc`, and the shared places at their own paths; then it becomes the root, read-only at the top.
//!
//! INVARIANT: until it becomes the root, the new root is mounted over the host's `/proc`. Nothing below that is ever shared, so paths of the host
//! keep their meaning while the shared places are taken hold of.

use std::path::{Path, PathBuf};

use super::step::{InotifyLimits, Step};
use crate::grant::{Access, Grant, Network, Owner, PlaceKind};
use crate::host::{HostFacts, SystemPathKind};

/// Home of every tier C guest.
pub(crate) const GUEST_HOME: &str = "/home/agent";
/// The guest's user id as it sees itself.
pub(crate) const GUEST_USER: u32 = 1000;
/// The guest's group id as it sees itself.
pub(crate) const GUEST_GROUP: u32 = 1000;

/// Enough for a build tool, a test runner and a development server that each watch a source tree; four such sandboxes leave half of the user's instances.
pub(crate) const INOTIFY: InotifyLimits = InotifyLimits { instances: 16, watches: 65_536 };

/// The default identity of commits.
pub(super) const GIT_CONFIG: &str = "/etc/gitconfig";

/// Without an identity git refuses to commit. The configuration of a repository is stronger than this.
pub(super) const GIT_IDENTITY: &str = "[user]\n\tname = Palyra agent\n\temail = agent@localhost\n";

const HOSTNAME: &str = "sandbox";
const DEVICES: [&str; 6] = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// Written by us in tier C, never the host's: they name people and machines.
const TEXTS: [(&str, &str); 6] = [
    (
        "/etc/passwd",
        "root:x:0:0:root:/nonexistent:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/sh\n\
         nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    ),
    ("/etc/group", "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"),
    ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files\nservices: files\nprotocols: files\n"),
    ("/etc/hosts", "127.0.0.1 localhost sandbox\n::1 localhost\n"),
    ("/etc/hostname", "sandbox\n"),
    (GIT_CONFIG, GIT_IDENTITY),
];

const LINKS: [(&str, &str); 5] = [
    ("/dev/ptmx", "pts/ptmx"),
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
];

/// The devices, for rules that name them.
pub(super) fn devices() -> impl Iterator<Item = PathBuf> {
    DEVICES.iter().map(PathBuf::from)
}

/// Private file systems with the mode of their top directory.
pub(super) fn scratches() -> [(&'static str, u32); 3] {
    [("/tmp", 0o1777), (GUEST_HOME, 0o700), ("/dev/shm", 0o1777)]
}

/// Whether tier C writes this file itself.
pub(super) fn is_synthetic(path: &Path) -> bool {
    TEXTS.iter().any(|(own, _)| Path::new(own) == path)
}

/// Whose files appear as the guest's own, given that the daemon is root.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mapping {
    /// Owners stay as they are; the guest is the caller.
    None,
    /// The owner of each place becomes the guest, inside that place.
    Owner,
}

impl Mapping {
    pub(super) fn of(self, owner: Owner) -> Option<Owner> {
        (self == Self::Owner).then_some(owner)
    }
}

/// The steps of the room, and how many of the first do not depend on what is shared, so that they can be taken before anyone asks.
pub(super) fn room(grant: &Grant, host: &HostFacts, mapping: Mapping) -> (Vec<Step>, usize) {
    let mut slot = 0..;
    let mut next = move || slot.next().unwrap_or(usize::MAX);
    let mut steps = vec![Step::Hostname(HOSTNAME.to_owned()), Step::LoopbackUp, Step::PrivateMounts];
    let mut contents: Vec<Step> = Vec::new();
    for system in host.system.iter().filter(|system| !is_synthetic(&system.path)) {
        let path = system.path.clone();
        let kind = match &system.kind {
            SystemPathKind::Link(target) => {
                contents.push(Step::Link { path, target: target.clone() });
                continue;
            }
            SystemPathKind::Directory => PlaceKind::Directory,
            SystemPathKind::File => PlaceKind::File,
        };
        let slot = next();
        steps.push(Step::Source { slot, path: path.clone(), access: Access::ReadOnly, mapped: None });
        contents.push(Step::Attach { slot, path, kind });
    }
    for path in devices() {
        let slot = next();
        steps.push(Step::Device { slot, path: path.clone() });
        contents.push(Step::Attach { slot, path, kind: PlaceKind::File });
    }
    contents.extend(LINKS.map(|(path, target)| Step::Link { path: path.into(), target: target.into() }));
    contents.extend(TEXTS.map(|(path, content)| Step::Text { path: path.into(), content: content.to_owned() }));
    contents.extend(scratches().map(|(path, mode)| Step::Scratch {
        path: path.into(),
        bytes: grant.limits.scratch_bytes,
        mode,
    }));
    steps.push(Step::Root);
    steps.extend(contents);
    steps.extend([Step::Terminals, Step::Proc]);
    let ahead = steps.len();
    if let Network::Proxy(ports) = grant.network {
        steps.extend([Step::Listen(ports.http), Step::Listen(ports.socks)]);
    }
    // Parents before children, so that a place inside another is mounted on top of it; all taken hold of before the first is mounted, because
    // one may lie inside another.
    let mut shares: Vec<_> = grant.shares().map(|(place, access)| (next(), place, access)).collect();
    shares.sort_by(|(_, left, _), (_, right, _)| left.path.cmp(&right.path));
    for (slot, place, access) in &shares {
        let mapped = mapping.of(place.owner);
        steps.push(Step::Source { slot: *slot, path: place.path.clone(), access: *access, mapped });
    }
    let directories = |wanted: Access| {
        let shares = shares.iter().filter(|(_, place, access)| *access == wanted && place.kind == PlaceKind::Directory);
        shares.map(|(_, place, _)| place.path.clone()).collect()
    };
    let (writable, read_only) = (directories(Access::ReadWrite), directories(Access::ReadOnly));
    for (slot, place, _) in shares {
        steps.push(Step::Attach { slot, path: place.path.clone(), kind: place.kind });
    }
    steps.push(Step::HideSockets { writable, read_only });
    steps.extend([Step::Pivot, Step::Undumpable]);
    (steps, ahead)
}

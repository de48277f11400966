//! Sockets of the host that lie in shared directories.
//!
//! A network namespace confines no socket that has a path, a read-only mount does not keep anybody from connecting, and Landlock has no right for it. So each socket
//! that exists when a sandbox starts is covered by an empty file. Sockets are found in two ways: by name, in the kernel's list of the host's network
//! namespace, and by a search, which also finds those of other namespaces such as containers. The search reads names only and is bounded. Writable places are
//! searched in full or the guest gets no Unix sockets; read-only ones are often toolchains with very many files, of which only the small are searched.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::fd::{AsFd as _, BorrowedFd};
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::mount::{MountAttrFlags, MoveMountFlags, OpenTreeFlags};

use crate::report::HiddenSockets;
use crate::sys;

/// Most names that are read in all writable places; reading them takes about as long as a checkpoint does.
const WRITABLE_ENTRIES: usize = 200_000;
/// Most names that are read in each read-only place.
const READ_ONLY_ENTRIES: usize = 2_000;
/// Most covered sockets that are named.
const NAMED: usize = 8;
/// Most sockets that are covered: each takes a mount.
const MOST: usize = 1_000;
/// What covers a socket, while it has a name.
const COVER: &str = ".cover";

/// Where to look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Search<'a> {
    /// Places that the guest may write to, as the guest sees them.
    pub(crate) writable: &'a [PathBuf],
    /// Places that it may read.
    pub(crate) read_only: &'a [PathBuf],
    /// Sockets that are known to be there.
    pub(crate) known: &'a [PathBuf],
}

/// The sockets of this network namespace that lie in the given places.
pub(super) fn known_below<'a>(places: impl Iterator<Item = &'a Path>) -> Vec<PathBuf> {
    let places: Vec<_> = places.collect();
    let text = fs::read("/proc/net/unix").unwrap_or_default();
    // Each connection that a socket accepted has its name too, and resolving one takes longer than reading it.
    let names: BTreeSet<_> = text.split(|byte| *byte == b'\n').filter_map(name_of).collect();
    let real = names.into_iter().filter_map(|name| fs::canonicalize(name).ok());
    let mut found: Vec<_> = real.filter(|path| places.iter().any(|place| path.starts_with(place))).collect();
    found.sort();
    found.dedup();
    found.truncate(MOST);
    found
}

/// The path in a line of the kernel's list: the eighth field and everything after it.
fn name_of(line: &[u8]) -> Option<&Path> {
    let at = line.windows(2).position(|pair| pair == b" /")?;
    line.get(at + 1..).map(|name| Path::new(OsStr::from_bytes(name)))
}

/// Covers every socket that is found below the new root.
pub(super) fn hide(root: BorrowedFd<'_>, search: Search<'_>) -> io::Result<HiddenSockets> {
    let mut found: Vec<PathBuf> = search.known.to_vec();
    let mut left = WRITABLE_ENTRIES;
    let mut complete = true;
    for place in search.writable {
        complete &= search_below(root, place, &mut left, &mut found);
    }
    for place in search.read_only {
        search_below(root, place, &mut READ_ONLY_ENTRIES.clone(), &mut found);
    }
    found.sort();
    found.dedup();
    if found.len() > MOST {
        complete = false;
        found.truncate(MOST);
    }
    if !found.is_empty() {
        cover(root, &found)?;
    }
    let more = found.len().saturating_sub(NAMED);
    found.truncate(NAMED);
    Ok(HiddenSockets { paths: found, more, unix_sockets_refused: !complete })
}

/// Adds the sockets below a place; false if not everything was seen.
fn search_below(root: BorrowedFd<'_>, place: &Path, left: &mut usize, found: &mut Vec<PathBuf>) -> bool {
    let mut ahead = vec![place.to_owned()];
    while let Some(path) = ahead.pop() {
        let directory = match open(root, &path, OFlags::RDONLY | OFlags::DIRECTORY) {
            Ok(directory) => directory,
            // A file, something that went away, or something that the guest, with fewer rights than we have, cannot enter either.
            Err(Errno::NOTDIR | Errno::NOENT | Errno::LOOP | Errno::ACCESS | Errno::PERM) => continue,
            Err(_) => return false,
        };
        let Ok(entries) = Dir::read_from(&directory) else { return false };
        for entry in entries {
            let Ok(entry) = entry else { return false };
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            if *left == 0 || found.len() > MOST {
                return false;
            }
            *left -= 1;
            let kind = match entry.file_type() {
                FileType::Unknown => match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                    Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                    Err(_) => continue,
                },
                known => known,
            };
            match kind {
                FileType::Directory => ahead.push(path.join(OsStr::from_bytes(name.to_bytes()))),
                FileType::Socket => found.push(path.join(OsStr::from_bytes(name.to_bytes()))),
                _ => {}
            }
        }
    }
    true
}

/// Opens a path of the new root without following links, which an earlier guest may have put there.
fn open(root: BorrowedFd<'_>, path: &Path, flags: OFlags) -> rustix::io::Result<std::os::fd::OwnedFd> {
    let inside = path.strip_prefix("/").unwrap_or(path);
    let resolve = ResolveFlags::NO_SYMLINKS | ResolveFlags::BENEATH;
    rustix::fs::openat2(root, inside, flags | OFlags::NOFOLLOW | OFlags::CLOEXEC, Mode::empty(), resolve)
}

fn cover(root: BorrowedFd<'_>, sockets: &[PathBuf]) -> io::Result<()> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
    let empty = rustix::fs::openat(root, COVER, flags, Mode::RUSR | Mode::RGRP | Mode::ROTH)?;
    let covered = sockets.iter().try_for_each(|path| cover_one(root, empty.as_fd(), path));
    rustix::fs::unlinkat(root, COVER, AtFlags::empty())?;
    covered
}

fn cover_one(root: BorrowedFd<'_>, empty: BorrowedFd<'_>, path: &Path) -> io::Result<()> {
    let target = match open(root, path, OFlags::PATH) {
        // It went away.
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => return Ok(()),
        found => found?,
    };
    if FileType::from_raw_mode(rustix::fs::fstat(&target)?.st_mode) != FileType::Socket {
        return Ok(());
    }
    let flags = OpenTreeFlags::OPEN_TREE_CLONE | OpenTreeFlags::OPEN_TREE_CLOEXEC | OpenTreeFlags::AT_EMPTY_PATH;
    let mount = rustix::mount::open_tree(empty, c"", flags)?;
    sys::mount_setattr(mount.as_fd(), u64::from(MountAttrFlags::MOUNT_ATTR_RDONLY.bits()), None, sys::Reach::Top)?;
    let flags = MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH | MoveMountFlags::MOVE_MOUNT_T_EMPTY_PATH;
    Ok(rustix::mount::move_mount(mount.as_fd(), c"", target.as_fd(), c"", flags)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    #[test]
    fn the_kernels_list_is_read_to_the_end_of_the_name() {
        let line = b"ffff8880: 00000002 00000000 00010000 0001 01 12345 /run/with space/x.sock";
        assert_eq!(name_of(line), Some(Path::new("/run/with space/x.sock")));
        assert_eq!(name_of(b"ffff8880: 00000002 00000000 00010000 0001 01 12345 @abstract"), None);
        assert_eq!(name_of(b"ffff8880: 00000002 00000000 00000000 0001 03 12345"), None);
    }

    #[test]
    fn sockets_are_found_by_name_and_by_search_but_not_behind_links() {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().canonicalize().unwrap();
        fs::create_dir_all(place.join("share/deep/er")).unwrap();
        let path = place.join("share/deep/er/x.sock");
        let _kept = UnixListener::bind(&path).unwrap();
        let _other = UnixListener::bind(place.join("outside.sock")).unwrap();
        std::os::unix::fs::symlink("..", place.join("share/deep/up")).unwrap();
        assert_eq!(known_below([place.join("share").as_path()].into_iter()), std::slice::from_ref(&path));
        let root = fs::File::open("/").unwrap();
        let mut found = Vec::new();
        assert!(search_below(root.as_fd(), &place.join("share"), &mut 100, &mut found));
        assert_eq!(found, [path]);
        assert!(!search_below(root.as_fd(), &place.join("share"), &mut 1, &mut found), "the bound is told");
    }
}

//! What a file has besides its name, content and mode: owner, group, access control list and other extended attributes.
//!
//! A file is replaced by renaming a new one over it. Without more, that one would belong to this process and have no attributes: a daemon that runs as root would
//! take people's files away from them. So the new file gets those of the file it replaces. One that replaces nothing gets, if this process is root, the
//! owner of its directory, as files that programs make in the sandbox do.
//!
//! What this process may not give is left out. Capabilities of a program and hashes that the kernel keeps of a content do not survive a change of it.

use std::io;
use std::os::fd::AsFd;

use rustix::fs::{Gid, Mode, OFlags, Uid, XattrFlags};
use rustix::io::Errno;

/// The kernel's own bound for a list of names, and for a value.
const LARGEST: usize = 64 << 10;
const ACCESS_LIST: &[u8] = b"system.posix_acl_access";
/// Attributes that belong to a file and not to its content.
const KEPT: [&[u8]; 4] = [b"user.", ACCESS_LIST, b"security.selinux", b"security.SMACK64"];

/// The attributes of one file.
#[derive(Debug, Default)]
pub(crate) struct Attributes {
    owner: Option<(Uid, Gid)>,
    /// Name and value; `None` for a file that is new and keeps what its directory gives it.
    extended: Option<Vec<(Vec<u8>, Vec<u8>)>>,
}

impl Attributes {
    /// Those of a file that is to be replaced.
    pub(crate) fn of(file: impl AsFd) -> io::Result<Self> {
        let status = rustix::fs::fstat(&file)?;
        let owner = Some((Uid::from_raw(status.st_uid), Gid::from_raw(status.st_gid)));
        Ok(Self { owner, extended: Some(extended(&file)?) })
    }

    /// Those of a file or directory that is new in a directory.
    pub(crate) fn inherited(directory: impl AsFd) -> io::Result<Self> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self::default());
        }
        let status = rustix::fs::fstat(directory)?;
        Ok(Self { owner: Some((Uid::from_raw(status.st_uid), Gid::from_raw(status.st_gid))), extended: None })
    }

    /// Gives them to a file of ours. Its mode has to be set after: both changing the owner and an access control list change it.
    pub(crate) fn give_to(&self, file: impl AsFd) -> io::Result<()> {
        if let Some(wanted) = &self.extended {
            // Its directory may have given it an access control list.
            if !wanted.iter().any(|(name, _)| name == ACCESS_LIST) {
                permitted(rustix::fs::fremovexattr(&file, ACCESS_LIST))?;
            }
            for (name, value) in wanted {
                permitted(rustix::fs::fsetxattr(&file, name.as_slice(), value, XattrFlags::empty()))?;
            }
        }
        let Some((uid, gid)) = self.owner else { return Ok(()) };
        let status = rustix::fs::fstat(&file)?;
        if (status.st_uid, status.st_gid) == (uid.as_raw(), gid.as_raw()) {
            return Ok(());
        }
        match rustix::fs::fchown(&file, Some(uid), Some(gid)) {
            // An owner may give a file to a group of its own, though to no other user.
            Err(Errno::PERM) => permitted(rustix::fs::fchown(&file, None, Some(gid))),
            result => permitted(result),
        }
    }

    /// Gives them to a directory that was made just now. One that is not empty was put there by somebody else meanwhile.
    pub(crate) fn give_to_directory(&self, parent: impl AsFd, name: &std::ffi::OsStr) -> io::Result<()> {
        if self.owner.is_none() {
            return Ok(());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(parent, name, flags, Mode::empty())?;
        let mut entries = rustix::fs::Dir::read_from(&directory)?;
        let is_empty =
            entries.all(|entry| entry.is_ok_and(|entry| matches!(entry.file_name().to_bytes(), b"." | b"..")));
        if is_empty { self.give_to(&directory) } else { Ok(()) }
    }
}

fn extended(file: impl AsFd) -> io::Result<Vec<(Vec<u8>, Vec<u8>)>> {
    let mut names = vec![0; LARGEST];
    let length = match rustix::fs::flistxattr(&file, names.as_mut_slice()) {
        // The file system has none.
        Err(Errno::NOTSUP | Errno::NOSYS) => 0,
        result => result?,
    };
    names.truncate(length);
    let mut found = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| KEPT.iter().any(|kept| name.starts_with(kept))) {
        let mut value = vec![0; LARGEST];
        match rustix::fs::fgetxattr(&file, name, value.as_mut_slice()) {
            // Gone since, or not ours to read.
            Err(Errno::NODATA | Errno::PERM | Errno::ACCESS) => {}
            result => {
                value.truncate(result?);
                found.push((name.to_vec(), value));
            }
        }
    }
    Ok(found)
}

/// What this process may not do, or the file system cannot, is left undone; a full disk is an error.
fn permitted(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(Errno::PERM | Errno::ACCESS | Errno::NOTSUP | Errno::NODATA | Errno::NOSYS | Errno::INVAL) => Ok(()),
        result => Ok(result?),
    }
}

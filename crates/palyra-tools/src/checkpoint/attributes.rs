//! Extended attributes of a file, in one value that changes when they do.

use std::os::fd::AsFd;

use palyra_common::Digest;

/// Names and values together; the kernel allows no longer list of names, and no longer value.
const LONGEST: usize = 64 << 10;

/// What the extended attributes are; `None` if there are none or the file system has none.
pub(super) fn of(file: impl AsFd) -> Option<Digest> {
    let file = file.as_fd();
    let mut names = Vec::with_capacity(LONGEST);
    rustix::fs::flistxattr(file, rustix::buffer::spare_capacity(&mut names)).ok()?;
    let mut names: Vec<_> = names.split(|byte| *byte == 0).filter(|name| !name.is_empty()).collect();
    if names.is_empty() {
        return None;
    }
    names.sort_unstable();
    let mut parts = Vec::new();
    for name in names {
        let mut value = Vec::with_capacity(LONGEST);
        // One that may not be read counts by its name.
        let _ = rustix::fs::fgetxattr(file, name, rustix::buffer::spare_capacity(&mut value));
        parts.push(Digest::of_parts(&[name, &value]).to_hex().into_bytes());
    }
    Some(Digest::of_parts(&parts.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}

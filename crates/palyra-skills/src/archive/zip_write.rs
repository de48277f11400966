//! Writes ZIP in the one form that [`zip_read`](super::zip_read) takes.
//!
//! The same files give the same bytes: sorted by path, one date for all, a fixed level, the packed form only where it is smaller. The bytes depend on the
//! version of the packer nevertheless, which is why signatures are over contents and not over the archive.

use std::collections::BTreeMap;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::DeflateEncoder;

use super::ArchiveLimits;
use super::path::{self, Taken};
use crate::SkillError;

/// 1 January 1980, the first date that ZIP knows.
pub(super) const DATE: u16 = 1 << 5 | 1;
/// Version 2.0: deflate.
pub(super) const VERSION: u16 = 20;
/// Made on Unix, by the same version.
pub(super) const MADE_BY: u16 = 3 << 8 | VERSION;
pub(super) const FLAG_UTF8: u16 = 1 << 11;
/// A regular file that its owner writes and everybody reads.
pub(super) const ATTRIBUTES: u32 = 0o100_644 << 16;
const LEVEL: u32 = 9;

/// Packs files.
pub(crate) fn write(files: &BTreeMap<String, Vec<u8>>, limits: &ArchiveLimits) -> Result<Vec<u8>, SkillError> {
    limits.check("the number of files", files.len() as u64, limits.entries)?;
    let mut archive = Vec::new();
    let mut directory = Vec::new();
    let mut taken = Taken::default();
    let mut total = 0;
    for (name, bytes) in files {
        path::check(name)?;
        taken.take(name)?;
        limits.check(&format!("`{name}`"), bytes.len() as u64, limits.entry_bytes)?;
        total += bytes.len() as u64;
        limits.check("the total unpacked size", total, limits.unpacked_bytes)?;
        let offset = archive.len() as u64;
        let (method, data) = pack(bytes, limits)?;

        let mut shared = Vec::new();
        put16(&mut shared, VERSION);
        put16(&mut shared, FLAG_UTF8);
        put16(&mut shared, method);
        put16(&mut shared, 0);
        put16(&mut shared, DATE);
        put32(&mut shared, u64::from(crc32fast::hash(bytes)))?;
        put32(&mut shared, data.len() as u64)?;
        put32(&mut shared, bytes.len() as u64)?;
        put16(&mut shared, u16::try_from(name.len()).map_err(|_| SkillError::path(name, "it is too long"))?);
        put16(&mut shared, 0);

        archive.extend_from_slice(b"PK\x03\x04");
        archive.extend_from_slice(&shared);
        archive.extend_from_slice(name.as_bytes());
        archive.extend_from_slice(&data);

        directory.extend_from_slice(b"PK\x01\x02");
        put16(&mut directory, MADE_BY);
        directory.extend_from_slice(&shared);
        for _comment_disk_internal in 0..3 {
            put16(&mut directory, 0);
        }
        put32(&mut directory, u64::from(ATTRIBUTES))?;
        put32(&mut directory, offset)?;
        directory.extend_from_slice(name.as_bytes());
    }
    let (start, length) = (archive.len() as u64, directory.len() as u64);
    archive.append(&mut directory);
    archive.extend_from_slice(b"PK\x05\x06\0\0\0\0");
    let count = u16::try_from(files.len()).map_err(|_| SkillError::archive("it has too many files"))?;
    put16(&mut archive, count);
    put16(&mut archive, count);
    put32(&mut archive, length)?;
    put32(&mut archive, start)?;
    put16(&mut archive, 0);
    limits.check("the archive", archive.len() as u64, limits.archive_bytes)?;
    Ok(archive)
}

/// The data and the method: packed where that is smaller and a reader would not take it for a bomb.
fn pack(bytes: &[u8], limits: &ArchiveLimits) -> Result<(u16, Vec<u8>), SkillError> {
    let failed = |error: std::io::Error| SkillError::archive(format!("packing failed: {error}"));
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(LEVEL));
    encoder.write_all(bytes).map_err(failed)?;
    let packed = encoder.finish().map_err(failed)?;
    let suspicious = bytes.len() as u64 > limits.ratio_from_bytes
        && bytes.len() as u64 > (packed.len() as u64).saturating_mul(limits.ratio);
    if packed.len() < bytes.len() && !suspicious { Ok((8, packed)) } else { Ok((0, bytes.to_vec())) }
}

fn put16(to: &mut Vec<u8>, value: u16) {
    to.extend_from_slice(&value.to_le_bytes());
}

fn put32(to: &mut Vec<u8>, value: u64) -> Result<(), SkillError> {
    let value = u32::try_from(value).map_err(|_| SkillError::archive("it does not fit into 4 GiB"))?;
    to.extend_from_slice(&value.to_le_bytes());
    Ok(())
}

//! A strict reader of ZIP.
//!
//! ZIP says most things twice: each entry has a header of its own and a line in the central directory, and readers differ in which of the two they
//! believe. Here they have to agree in every field, and the bytes have to be exactly: entry after entry from the first byte on, then the central directory,
//! then its end record, then nothing. That leaves no room for overlapping entries, bytes before, between or behind, a second directory, ZIP64,
//! data descriptors, encryption, extra fields or comments, each of which has served to show one archive to a checker and another to a user. Fields that mean
//! nothing here, such as dates, permissions and the packer's name, decide about the [`Form`]: a signed archive has the canonical one, so that no bit of its headers can
//! be changed unnoticed.
//!
//! Nothing is unpacked before its declared size has been checked, and nothing is unpacked beyond it.

use std::io::Read as _;

use flate2::read::DeflateDecoder;

use super::ArchiveLimits;
use super::path::{self, Taken};
use super::zip_write::{ATTRIBUTES, DATE, FLAG_UTF8, MADE_BY, VERSION};
use crate::SkillError;
use crate::error::shown;

const LOCAL: u32 = 0x0403_4b50;
const CENTRAL: u32 = 0x0201_4b50;
const END: u32 = 0x0605_4b50;
const END_LENGTH: usize = 22;
/// How hard the packer tried; means nothing to a reader.
const FLAG_LEVEL: u16 = 0b110;
const FLAG_ENCRYPTED: u16 = 1;
const FLAG_DESCRIPTOR: u16 = 1 << 3;
/// Kinds of file in the upper half of the external attributes, as on Unix.
const KIND_MASK: u32 = 0o170_000;
const KIND_FILE: u32 = 0o100_000;
const KIND_LINK: u32 = 0o120_000;
/// The directory bit of the lower half.
const DOS_DIRECTORY: u32 = 0x10;

/// One file of an archive.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) bytes: Vec<u8>,
}

/// Whether all headers are as [`zip_write`](super::zip_write) writes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    Canonical,
    /// Another packer made it.
    Foreign,
}

/// What both headers of an entry say.
#[derive(Debug, PartialEq, Eq)]
struct Header<'a> {
    version: u16,
    flags: u16,
    method: u16,
    time: u32,
    crc: u32,
    packed: u32,
    unpacked: u32,
    name: &'a [u8],
}

impl Header<'_> {
    fn is_canonical(&self) -> bool {
        (self.version, self.flags, self.time) == (VERSION, FLAG_UTF8, u32::from(DATE) << 16)
    }
}

/// What only the central directory says and nobody needs: by what it was made, internal and external attributes.
type Own = (u16, u16, u32);
const OWN: Own = (MADE_BY, 0, ATTRIBUTES);

/// Reads integers and names off the front of some bytes.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn bytes(&mut self, count: usize) -> Result<&'a [u8], SkillError> {
        let (taken, rest) =
            self.0.split_at_checked(count).ok_or_else(|| SkillError::archive("it ends in the middle of a header"))?;
        self.0 = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, SkillError> {
        Ok(self.bytes(2)?.iter().rev().fold(0, |value, byte| value << 8 | u16::from(*byte)))
    }

    fn u32(&mut self) -> Result<u32, SkillError> {
        Ok(self.bytes(4)?.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte)))
    }
}

/// Reads all files of an archive.
pub(crate) fn read(archive: &[u8], limits: &ArchiveLimits) -> Result<(Vec<Entry>, Form), SkillError> {
    limits.check("the archive", archive.len() as u64, limits.archive_bytes)?;
    let (directory, count) = central_directory(archive)?;
    limits.check("the number of files", u64::from(count), limits.entries)?;

    let mut central = Cursor(directory);
    let body_length = archive.len() - END_LENGTH - directory.len();
    let mut body = Cursor(archive.get(..body_length).unwrap_or_default());
    let mut taken = Taken::default();
    let mut entries = Vec::new();
    let mut total = 0;
    let mut form = Form::Canonical;
    for _ in 0..count {
        let expected_offset = body_length - body.0.len();
        let (header, own) = central_header(&mut central, expected_offset)?;
        let name = name_of(&header)?;
        if own != OWN || !header.is_canonical() {
            form = Form::Foreign;
        }
        path::check(&name)?;
        taken.take(&name)?;
        check_sizes(&name, &header, &mut total, limits)?;
        if local_header(&mut body)? != header {
            return Err(SkillError::archive(format!("the two headers of `{name}` differ")));
        }
        let packed = body.bytes(header.packed as usize)?;
        entries.push(Entry { bytes: unpack(&name, packed, &header)?, path: name });
    }
    if !central.0.is_empty() {
        return Err(SkillError::archive("the central directory is longer than its entries"));
    }
    if !body.0.is_empty() {
        return Err(SkillError::archive("it contains bytes that belong to no file"));
    }
    Ok((entries, form))
}

/// The central directory and how many entries it says it has.
fn central_directory(archive: &[u8]) -> Result<(&[u8], u16), SkillError> {
    let end_at = archive
        .len()
        .checked_sub(END_LENGTH)
        .ok_or_else(|| SkillError::archive("it is shorter than an empty archive"))?;
    let mut end = Cursor(archive.get(end_at..).unwrap_or_default());
    if end.u32()? != END {
        return Err(SkillError::archive("it does not end with an end-of-central-directory record"));
    }
    let (disk, directory_disk, on_disk, count) = (end.u16()?, end.u16()?, end.u16()?, end.u16()?);
    let (length, offset, comment) = (end.u32()?, end.u32()?, end.u16()?);
    if (disk, directory_disk) != (0, 0) || on_disk != count {
        return Err(SkillError::archive("it claims to span several disks"));
    }
    if comment != 0 {
        return Err(SkillError::archive("it has a comment"));
    }
    let (start, length) = (offset as usize, length as usize);
    match start.checked_add(length) {
        Some(after) if after == end_at => Ok((archive.get(start..after).unwrap_or_default(), count)),
        _ => Err(SkillError::archive("the central directory is not directly before the end record")),
    }
}

fn central_header<'a>(central: &mut Cursor<'a>, expected_offset: usize) -> Result<(Header<'a>, Own), SkillError> {
    if central.u32()? != CENTRAL {
        return Err(SkillError::archive("an entry of the central directory has the wrong signature"));
    }
    let made_by = central.u16()?;
    let (version, flags, method, time) = (central.u16()?, central.u16()?, central.u16()?, central.u32()?);
    let (crc, packed, unpacked) = (central.u32()?, central.u32()?, central.u32()?);
    let (name_length, extra, comment) = (central.u16()?, central.u16()?, central.u16()?);
    let (disk, internal, attributes, offset) = (central.u16()?, central.u16()?, central.u32()?, central.u32()?);
    let name = central.bytes(usize::from(name_length))?;
    let about = shown(&String::from_utf8_lossy(name));
    if extra != 0 || comment != 0 || disk != 0 {
        return Err(SkillError::archive(format!("the entry `{about}` has extra fields, a comment or another disk")));
    }
    match attributes >> 16 & KIND_MASK {
        0 | KIND_FILE if attributes & DOS_DIRECTORY == 0 => {}
        KIND_LINK => return Err(SkillError::archive(format!("the entry `{about}` is a symbolic link"))),
        _ => return Err(SkillError::archive(format!("the entry `{about}` is not a regular file"))),
    }
    if offset as usize != expected_offset {
        return Err(SkillError::archive(format!("the entry `{about}` does not start where the previous one ends")));
    }
    Ok((Header { version, flags, method, time, crc, packed, unpacked, name }, (made_by, internal, attributes)))
}

fn local_header<'a>(body: &mut Cursor<'a>) -> Result<Header<'a>, SkillError> {
    if body.u32()? != LOCAL {
        return Err(SkillError::archive("a file header has the wrong signature"));
    }
    let (version, flags, method, time) = (body.u16()?, body.u16()?, body.u16()?, body.u32()?);
    let (crc, packed, unpacked) = (body.u32()?, body.u32()?, body.u32()?);
    let (name_length, extra) = (body.u16()?, body.u16()?);
    let name = body.bytes(usize::from(name_length))?;
    if extra != 0 {
        return Err(SkillError::archive("a file header has extra fields"));
    }
    Ok(Header { version, flags, method, time, crc, packed, unpacked, name })
}

fn name_of(header: &Header<'_>) -> Result<String, SkillError> {
    let name = std::str::from_utf8(header.name)
        .map_err(|_| SkillError::path(&String::from_utf8_lossy(header.name), "it is not UTF-8"))?;
    let about = shown(name);
    if header.flags & FLAG_ENCRYPTED != 0 {
        return Err(SkillError::archive(format!("the entry `{about}` is encrypted")));
    }
    if header.flags & FLAG_DESCRIPTOR != 0 {
        return Err(SkillError::archive(format!("the entry `{about}` gives its size only after its data")));
    }
    if header.flags & !(FLAG_UTF8 | FLAG_LEVEL) != 0 || header.version > VERSION {
        return Err(SkillError::archive(format!("the entry `{about}` uses an unsupported feature")));
    }
    if header.flags & FLAG_UTF8 == 0 && !name.is_ascii() {
        return Err(SkillError::path(name, "it is not marked as UTF-8, so its name is ambiguous"));
    }
    Ok(name.to_owned())
}

fn check_sizes(name: &str, header: &Header<'_>, total: &mut u64, limits: &ArchiveLimits) -> Result<(), SkillError> {
    let (packed, unpacked) = (u64::from(header.packed), u64::from(header.unpacked));
    limits.check(&format!("`{name}`"), unpacked, limits.entry_bytes)?;
    *total += unpacked;
    limits.check("the total unpacked size", *total, limits.unpacked_bytes)?;
    if unpacked > limits.ratio_from_bytes && unpacked > packed.saturating_mul(limits.ratio) {
        return Err(SkillError::ArchiveTooLarge {
            what: format!("the compression ratio of `{name}`"),
            limit: format!("{} to 1", limits.ratio),
        });
    }
    Ok(())
}

fn unpack(name: &str, packed: &[u8], header: &Header<'_>) -> Result<Vec<u8>, SkillError> {
    let declared = header.unpacked as usize;
    let bytes = match header.method {
        0 => packed.to_vec(),
        8 => inflate(name, packed, declared)?,
        _ => return Err(SkillError::archive(format!("`{name}` uses an unsupported compression method"))),
    };
    if bytes.len() != declared {
        return Err(SkillError::archive(format!("`{name}` does not have its declared size")));
    }
    if crc32fast::hash(&bytes) != header.crc {
        return Err(SkillError::archive(format!("the checksum of `{name}` is wrong")));
    }
    Ok(bytes)
}

fn inflate(name: &str, packed: &[u8], declared: usize) -> Result<Vec<u8>, SkillError> {
    let mut decoder = DeflateDecoder::new(packed);
    // Grows with what really comes out: a declared size alone costs nothing.
    let mut bytes = Vec::new();
    decoder
        .by_ref()
        .take(declared as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|_| SkillError::archive(format!("the compressed data of `{name}` is damaged")))?;
    if bytes.len() > declared {
        return Err(SkillError::archive(format!("`{name}` is larger than the archive says")));
    }
    // One more read lets the decoder see its end mark even when the last byte came out exactly at the limit.
    let more = decoder
        .read(&mut [0; 1])
        .map_err(|_| SkillError::archive(format!("the compressed data of `{name}` is damaged")))?;
    if more != 0 || decoder.total_in() != packed.len() as u64 {
        return Err(SkillError::archive(format!("there are extra bytes after the compressed data of `{name}`")));
    }
    Ok(bytes)
}

//! A packer without scruples: every field of a ZIP may be set to anything.

use std::io::Write as _;

/// One file, with whatever its headers are to say.
#[derive(Debug, Clone)]
pub(crate) struct RawEntry {
    pub(crate) name: Vec<u8>,
    pub(crate) local_name: Option<Vec<u8>>,
    pub(crate) data: Vec<u8>,
    pub(crate) method: u16,
    pub(crate) flags: u16,
    pub(crate) version: u16,
    pub(crate) crc: u32,
    pub(crate) unpacked: u32,
    pub(crate) local_unpacked: Option<u32>,
    pub(crate) attributes: u32,
    pub(crate) extra: Vec<u8>,
    pub(crate) offset: Option<u32>,
    pub(crate) gap: Vec<u8>,
}

impl RawEntry {
    pub(crate) fn stored(name: impl Into<Vec<u8>>, data: impl Into<Vec<u8>>) -> Self {
        let data = data.into();
        Self {
            name: name.into(),
            local_name: None,
            method: 0,
            flags: 1 << 11,
            version: 20,
            crc: crc(&data),
            unpacked: u32::try_from(data.len()).unwrap(),
            local_unpacked: None,
            attributes: 0o100_644 << 16,
            extra: Vec::new(),
            offset: None,
            gap: Vec::new(),
            data,
        }
    }

    pub(crate) fn deflated(name: impl Into<Vec<u8>>, data: &[u8]) -> Self {
        let mut encoder = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
        encoder.write_all(data).unwrap();
        let packed = encoder.finish().unwrap();
        Self { method: 8, data: packed, ..Self::stored(name, data) }
    }
}

pub(crate) fn crc(data: &[u8]) -> u32 {
    crc32fast::hash(data)
}

/// Packs entries in this order.
pub(crate) fn build(entries: &[RawEntry]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut directory = Vec::new();
    for entry in entries {
        let offset = u32::try_from(out.len()).unwrap();
        let name = entry.local_name.as_ref().unwrap_or(&entry.name);
        let header = |unpacked: u32, name: &[u8]| {
            let mut bytes = Vec::new();
            for value in [entry.version, entry.flags, entry.method, 0, 33] {
                bytes.extend(value.to_le_bytes());
            }
            for value in [entry.crc, u32::try_from(entry.data.len()).unwrap(), unpacked] {
                bytes.extend(value.to_le_bytes());
            }
            bytes.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
            bytes.extend(u16::try_from(entry.extra.len()).unwrap().to_le_bytes());
            bytes
        };
        out.extend(b"PK\x03\x04");
        out.extend(header(entry.local_unpacked.unwrap_or(entry.unpacked), name));
        out.extend(name);
        out.extend(&entry.extra);
        out.extend(&entry.data);
        out.extend(&entry.gap);
        directory.extend(b"PK\x01\x02");
        directory.extend((3_u16 << 8 | 20).to_le_bytes());
        directory.extend(header(entry.unpacked, &entry.name));
        directory.extend([0; 6]);
        directory.extend(entry.attributes.to_le_bytes());
        directory.extend(entry.offset.unwrap_or(offset).to_le_bytes());
        directory.extend(&entry.name);
        directory.extend(&entry.extra);
    }
    let start = u32::try_from(out.len()).unwrap();
    let length = u32::try_from(directory.len()).unwrap();
    out.extend(directory);
    out.extend(b"PK\x05\x06\0\0\0\0");
    let count = u16::try_from(entries.len()).unwrap().to_le_bytes();
    out.extend(count);
    out.extend(count);
    out.extend(length.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}

//! Undoing content codings, with an eye on bombs: a few bytes that unfold into gigabytes end at the limit, not at the end of memory.

use std::io::Read;

use brotli_decompressor::Decompressor;
use bytes::Bytes;
use flate2::read::{DeflateDecoder, MultiGzDecoder, ZlibDecoder};

use crate::error::EgressError;

/// What is offered to hosts.
pub(super) const ACCEPTED: &str = "gzip, deflate, br";
/// Codings on top of each other; more than one is already rare, and each multiplies a bomb.
const DEPTH: usize = 2;
const BUFFER: usize = 16 * 1024;

/// Undoes the codings in the order in which they were applied, the last one first.
pub(super) fn decode(body: Bytes, codings: &[String], limit: u64) -> Result<Bytes, EgressError> {
    if codings.len() > DEPTH {
        let reason = format!("there are more than {DEPTH}");
        return Err(EgressError::CodingInvalid { coding: codings.join(", "), reason });
    }
    let mut body = body;
    for coding in codings.iter().rev() {
        body = match coding.as_str() {
            "gzip" | "x-gzip" => unfold(MultiGzDecoder::new(&*body), coding, limit)?,
            "br" => unfold(Decompressor::new(&*body, BUFFER), coding, limit)?,
            // By the book it is zlib; some servers send the bare stream. The two differ in their first bytes.
            "deflate" if is_zlib(&body) => unfold(ZlibDecoder::new(&*body), coding, limit)?,
            "deflate" => unfold(DeflateDecoder::new(&*body), coding, limit)?,
            other => {
                let coding: String = other.chars().take(40).flat_map(char::escape_debug).collect();
                return Err(EgressError::CodingInvalid { coding, reason: "it is not supported".to_owned() });
            }
        };
    }
    Ok(body)
}

fn is_zlib(body: &[u8]) -> bool {
    matches!(body, [first, second, ..] if first & 0x0f == 8 && (u16::from(*first) << 8 | u16::from(*second)) % 31 == 0)
}

fn unfold(reader: impl Read, coding: &str, limit: u64) -> Result<Bytes, EgressError> {
    let mut unfolded = Vec::new();
    reader
        .take(limit.saturating_add(1))
        .read_to_end(&mut unfolded)
        .map_err(|error| EgressError::CodingInvalid { coding: coding.to_owned(), reason: error.to_string() })?;
    if unfolded.len() as u64 > limit {
        return Err(EgressError::TooLarge { what: "the decoded response", limit });
    }
    Ok(unfolded.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
    use std::io::Write as _;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn run(body: Vec<u8>, codings: &[&str], limit: u64) -> Result<Bytes, EgressError> {
        decode(body.into(), &codings.iter().map(|coding| (*coding).to_owned()).collect::<Vec<_>>(), limit)
    }

    #[test]
    fn every_offered_coding_is_undone() {
        let text = b"hello hello hello hello";
        assert_eq!(&run(gzip(text), &["gzip"], 100).unwrap()[..], text);
        let mut zlib = ZlibEncoder::new(Vec::new(), Compression::fast());
        zlib.write_all(text).unwrap();
        assert_eq!(&run(zlib.finish().unwrap(), &["deflate"], 100).unwrap()[..], text);
        let mut bare = DeflateEncoder::new(Vec::new(), Compression::fast());
        bare.write_all(text).unwrap();
        assert_eq!(&run(bare.finish().unwrap(), &["deflate"], 100).unwrap()[..], text);
        // `hello` as the reference encoder writes it, in one uncompressed block.
        assert_eq!(
            &run(vec![0x0b, 0x02, 0x80, b'h', b'e', b'l', b'l', b'o', 0x03], &["br"], 100).unwrap()[..],
            b"hello"
        );
        assert_eq!(&run(gzip(&gzip(text)), &["gzip", "gzip"], 100).unwrap()[..], text);
        assert_eq!(&run(text.to_vec(), &[], 100).unwrap()[..], text);
    }

    #[test]
    fn bombs_and_nonsense_end_early() {
        let bomb = gzip(&vec![0; 10 << 20]);
        assert!(bomb.len() < 20_000);
        assert!(matches!(run(bomb.clone(), &["gzip"], 1 << 20), Err(EgressError::TooLarge { .. })));
        assert!(matches!(run(gzip(&bomb), &["gzip", "gzip"], 1 << 20), Err(EgressError::TooLarge { .. })));
        for (body, codings) in [
            (vec![1, 2, 3], &["gzip"][..]),
            (vec![0xff; 9], &["br"]),
            (gzip(b"x")[..10].to_vec(), &["gzip"]),
            (vec![1], &["compress"]),
            (vec![1], &["zstd"]),
            (vec![1], &["gzip", "gzip", "gzip"]),
        ] {
            assert!(matches!(run(body, codings, 100), Err(EgressError::CodingInvalid { .. })), "{codings:?}");
        }
    }
}

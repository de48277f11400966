//! Signatures that no tool of ours makes.

use super::*;
use crate::archive::{ArchiveInput, pack};

const MANIFEST: &str = "manifest_version = 1\nskill_id = \"echo\"\nname = \"Echo\"\nversion = \"1.0.0\"\npublisher = \"acme\"\n\
    [[entrypoints.tools]]\nid = \"echo\"\ndescription = \"d\"\ninput_schema = { type = \"object\" }\n";

/// A publisher signs somebody else's manifest under its own name: key, list and signature all fit each other.
#[test]
fn the_publisher_of_the_signature_is_that_of_the_manifest() {
    let files = [("modules/echo.wasm".to_owned(), b"\0asm".to_vec())].into();
    let input = ArchiveInput { manifest: MANIFEST.to_owned(), files, sbom: None, provenance: None };
    let archive = SkillArchive::read(&pack(input).unwrap()).unwrap();
    let key = PublisherKey::from_seed(&[1; 32]);
    let forge = |name: &str| {
        let publisher: PublisherName = name.parse().unwrap();
        let message = message(&archive, &publisher, &key.public(), Timestamp(0));
        let signature = SignatureFile {
            format: FORMAT,
            algorithm: ALGORITHM.to_owned(),
            publisher,
            key_id: key.public().id(),
            public_key: key.public(),
            signed_at: Timestamp(0),
            files: files_of(&archive),
            signature: STANDARD.encode(key.sign(&message)),
        };
        let bytes = archive::repack_signed(&archive, &signature, &ArchiveLimits::default()).unwrap();
        verify(&SkillArchive::read(&bytes).unwrap())
    };
    assert!(forge("acme").is_ok());
    assert_eq!(forge("evil").unwrap_err().code(), "skill_signature_invalid");
}

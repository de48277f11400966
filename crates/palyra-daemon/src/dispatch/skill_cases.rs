//! A publisher and its skills, for tests of commands about them that are broken off.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use palyra_common::{Digest, Timestamp};
use palyra_skills::{ArchiveInput, BuiltModule, KeyRotation, Provenance, PublisherKey, SkillArchive, pack, sign};
use serde_json::{Value, json};

const AT: Timestamp = Timestamp(1_794_700_000_000);
/// Its input is its output.
const ECHO: &str = include_str!("../../../palyra-plugins/build/templates/wat/src/skill.wat");

/// The publisher of all skills here.
pub(super) const PUBLISHER: &str = "acme";

pub(super) fn key(number: u8) -> PublisherKey {
    PublisherKey::from_seed(&[number; 32])
}

/// A hook that has nothing to say.
const LISTENER: &str = include_str!("listener.wat");

/// A signed skill.
pub(super) struct Archive {
    pub(super) digest: Digest,
    bytes: Vec<u8>,
}

impl Archive {
    pub(super) fn of(skill_id: &str) -> Self {
        let tool = "[[entrypoints.tools]]\nid = \"echo\"\ndescription = \"Returns its input.\"\nmodule = \"modules/skill.wasm\"\n\
             input_schema = { type = \"object\" }\noutput_schema = { type = \"object\" }\n";
        Self::made_of(skill_id, tool, ECHO)
    }

    /// With a hook for the start of the daemon.
    pub(super) fn with_hook(skill_id: &str) -> Self {
        let hook = "[[entrypoints.hooks]]\nid = \"listener\"\nevents = [\"gateway:startup\"]\nmodule = \"modules/skill.wasm\"\n";
        Self::made_of(skill_id, hook, LISTENER)
    }

    fn made_of(skill_id: &str, entrypoints: &str, module: &str) -> Self {
        let manifest = format!(
            "manifest_version = 1\nskill_id = \"{skill_id}\"\nname = \"Echo\"\nversion = \"1.0.0\"\npublisher = \"{PUBLISHER}\"\n\n\
             {entrypoints}"
        );
        let (path, module) = ("modules/skill.wasm".to_owned(), wat::parse_str(module).unwrap());
        let built = BuiltModule { path: path.clone(), sha256: Digest::of(&module) };
        let provenance = Provenance {
            builder: "test".to_owned(),
            toolchain: "wat".to_owned(),
            source_digest: None,
            source: None,
            modules: vec![built],
        };
        let files = BTreeMap::from([(path, module)]);
        let packed = pack(ArchiveInput { manifest, files, sbom: None, provenance: Some(provenance) }).unwrap();
        let bytes = sign(&SkillArchive::read(&packed).unwrap(), &key(1), AT).unwrap();
        Self { digest: Digest::of(&bytes), bytes }
    }

    /// Parameters that hand it over in one piece.
    pub(super) fn upload(&self) -> Value {
        json!({ "digest": self.digest, "size": self.bytes.len(), "offset": 0, "data": STANDARD.encode(&self.bytes) })
    }
}

/// A publisher goes over to another key.
pub(super) fn rotation(publisher: &str, from: u8, to: u8) -> String {
    let envelope = KeyRotation::sign(publisher.parse().unwrap(), &key(from), &key(to), AT).unwrap();
    String::from_utf8(envelope.to_bytes().unwrap()).unwrap()
}

//! A skill to pack, whole and in order, for tests to spoil.

use std::collections::BTreeMap;

use palyra_common::{Digest, Timestamp};
use palyra_skills::{ArchiveInput, BuiltModule, Provenance, PublisherKey, SkillArchive, pack, sign};

pub(crate) const NOW: Timestamp = Timestamp(1_794_700_000_000);

/// A component that exports the tool interface and imports these interfaces.
pub(crate) fn component(imports: &[&str]) -> Vec<u8> {
    let imports: String = imports.iter().map(|import| format!("(import \"{import}\" (instance))\n")).collect();
    let text = format!(
        "(component {imports} (component $c) (instance $tool (instantiate $c))\n\
         (export \"palyra:plugin/tool@1.0.0\" (instance $tool)))"
    );
    wat::parse_str(text).unwrap()
}

pub(crate) fn key(number: u8) -> PublisherKey {
    PublisherKey::from_seed(&[number; 32])
}

/// A skill in parts.
#[derive(Debug, Clone)]
pub(crate) struct Skill {
    pub(crate) id: String,
    pub(crate) version: String,
    pub(crate) publisher: String,
    pub(crate) description: String,
    pub(crate) capabilities: String,
    pub(crate) more: String,
    pub(crate) files: BTreeMap<String, Vec<u8>>,
}

impl Default for Skill {
    fn default() -> Self {
        Self {
            id: "acme.echo".to_owned(),
            version: "1.0.0".to_owned(),
            publisher: "acme".to_owned(),
            description: "Gives back what it is given.".to_owned(),
            capabilities: String::new(),
            more: String::new(),
            files: [("modules/echo.wasm".to_owned(), component(&["palyra:host/log@1.0.0"]))].into(),
        }
    }
}

impl Skill {
    pub(crate) fn manifest(&self) -> String {
        format!(
            "manifest_version = 1\nskill_id = \"{}\"\nname = \"Echo\"\nversion = \"{}\"\npublisher = \"{}\"\n\n\
             [[entrypoints.tools]]\nid = \"echo\"\ndescription = \"{}\"\nmodule = \"modules/echo.wasm\"\n\
             input_schema = {{ type = \"object\", properties = {{ text = {{ type = \"string\" }} }}, additionalProperties = false }}\n\
             output_schema = {{ type = \"object\" }}\n\n[capabilities]\n{}\n{}\n",
            self.id, self.version, self.publisher, self.description, self.capabilities, self.more
        )
    }

    pub(crate) fn input(&self) -> ArchiveInput {
        let modules = self
            .files
            .iter()
            .filter(|(path, _)| path.starts_with("modules/"))
            .map(|(path, bytes)| BuiltModule { path: path.clone(), sha256: Digest::of(bytes) })
            .collect();
        ArchiveInput {
            manifest: self.manifest(),
            files: self.files.clone(),
            sbom: None,
            provenance: Some(Provenance {
                builder: "test".to_owned(),
                toolchain: "wat".to_owned(),
                source_digest: None,
                source: None,
                modules,
            }),
        }
    }

    pub(crate) fn packed(&self) -> Vec<u8> {
        pack(self.input()).unwrap()
    }

    pub(crate) fn signed_by(&self, signer: &PublisherKey) -> Vec<u8> {
        sign(&SkillArchive::read(&self.packed()).unwrap(), signer, NOW).unwrap()
    }

    pub(crate) fn signed(&self) -> Vec<u8> {
        self.signed_by(&key(1))
    }
}

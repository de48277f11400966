//! What strangers hand over to be installed: archives, manifests, signed statements and the files of registries.

use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use async_trait::async_trait;
use palyra_common::{Timestamp, ToStableError as _};
use palyra_skills::{
    ArchiveInput, ArchiveLimits, AuditPolicy, AuditVerdict, Envelope, Fetched, KeyRotation, PublisherKey,
    PublisherName, PublisherStatement, RegistryFetch, RegistryIndex, RegistryState, RevocationList, RootPin,
    SchemaValidator, SkillArchive, SkillError, SkillEvent, SkillIndex, SkillManifest, audit_skill_artifact_security,
    inspect, pack, sign, verify,
};

const NOW: Timestamp = Timestamp(1_794_700_000_000);
/// The publisher that is trusted here, and the seed of its key.
const PUBLISHER: &str = "acme";
const SEED: [u8; 32] = [7; 32];
const MANIFEST: &str = "manifest_version = 1\nskill_id = \"acme.fuzzed\"\nname = \"Fuzzed\"\nversion = \"1.0.0\"\npublisher = \"acme\"\n\
    [[entrypoints.tools]]\nid = \"t\"\ndescription = \"d\"\ninput_schema = { type = \"object\" }\n";

/// A refusal has a documented code of this part, and words that can be shown and stay small, whatever was sent.
fn refused(error: &SkillError, sent: usize) {
    let envelope = error.to_stable();
    assert!(envelope.code.starts_with("skill_") || envelope.code.starts_with("registry_"), "{envelope:?}");
    assert!(!envelope.message.is_empty() && envelope.recovery_hint.is_some(), "{envelope:?}");
    assert!(!envelope.message.chars().any(char::is_control), "{:?}", envelope.message);
    assert!(envelope.message.len() <= 16 * sent + 4096, "{sent} bytes were refused with {}", envelope.message.len());
}

/// An archive; and the same bytes as the one module of an archive that is otherwise right.
pub fn skill_archive(bytes: &[u8]) {
    match SkillArchive::read(bytes) {
        Ok(archive) => as_said(&archive, bytes),
        Err(error) => {
            refused(&error, bytes.len());
            assert!(inspect(bytes, &AuditPolicy::default()).is_err(), "an audit reads what installing does not");
        }
    }
    let files = BTreeMap::from([("modules/fuzzed.wasm".to_owned(), bytes.to_vec())]);
    match pack(ArchiveInput { manifest: MANIFEST.to_owned(), files, ..ArchiveInput::default() }) {
        Ok(packed) => {
            let archive = SkillArchive::read(&packed).expect("what is packed here can be read");
            as_said(&archive, &packed);
            assert_eq!(archive.module_of("t", None).expect("its only module").1, bytes);
        }
        Err(error) => refused(&error, bytes.len()),
    }
}

/// What was read keeps within the limits, is judged the same twice, and says the same when it is signed anew.
fn as_said(archive: &SkillArchive, bytes: &[u8]) {
    let limits = ArchiveLimits::default();
    assert!(bytes.len() as u64 <= limits.archive_bytes);
    let policy = AuditPolicy::default();
    let report = audit_skill_artifact_security(archive, &policy);
    assert_eq!(report, inspect(bytes, &policy).expect("it was read before"));
    assert!(!report.findings.iter().any(|finding| finding.message.chars().any(char::is_control)), "{report:?}");
    if archive.signature().is_none() {
        assert!(verify(archive).is_err());
        assert_eq!(report.verdict, AuditVerdict::Fail, "nobody has signed it");
    }
    let key = PublisherKey::from_seed(&SEED);
    let signed = match sign(archive, &key, NOW) {
        Ok(signed) => signed,
        // One more file may be one too many.
        Err(error) => return refused(&error, bytes.len()),
    };
    let again = SkillArchive::read(&signed).expect("what is signed here can be read");
    assert_eq!((again.content(), again.manifest()), (archive.content(), archive.manifest()));
    assert_eq!(verify(&again).expect("it was signed here").key_id, key.public().id());
}

/// A manifest.
pub fn skill_manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let manifest = match SkillManifest::parse(text) {
        Ok(manifest) => manifest,
        Err(error) => return refused(&error, bytes.len()),
    };
    let with_comment = SkillManifest::parse(&format!("# a comment\n{text}\n# another\n"));
    assert_eq!(with_comment.expect("comments say nothing"), manifest);
    assert!(!manifest.file_name().contains(['/', '\\', '\0']), "{}", manifest.file_name());
    assert!(!manifest.skill_id.as_str().starts_with("palyra."), "{}", manifest.skill_id);
    assert!(!manifest.tools.is_empty() || !manifest.hooks.is_empty(), "it offers nothing");
    let asked = &manifest.capabilities;
    assert!(asked.not_within(asked).is_empty(), "it asks for more than it asks for: {asked:?}");
    for tool in &manifest.tools {
        assert!(manifest.tool_name(tool).starts_with(&format!("{}.", manifest.skill_id)));
        for schema in [&tool.input_schema, &tool.output_schema] {
            SchemaValidator::compile(schema).expect("a schema that was read can be used");
        }
    }
}

/// A signed statement: a change of keys, a list of revocations, or a file of a registry, as envelopes and as what is inside of them.
pub fn skill_statement(bytes: &[u8]) {
    registry_index(bytes);
    registry_root(bytes);
    let envelope = match Envelope::parse(bytes) {
        Ok(envelope) => envelope,
        Err(error) => return refused(&error, bytes.len()),
    };
    let written = envelope.to_bytes().expect("what was read can be written");
    assert_eq!(Envelope::parse(&written).expect("and read again"), envelope);
    if let Err(error) = PublisherStatement::claimed(&envelope) {
        refused(&error, bytes.len());
    }
    assert!(SkillIndex::default().plan_statement(&envelope).is_err(), "nobody is trusted and somebody is heard");
    let key = PublisherKey::from_seed(&SEED).public();
    let publisher: PublisherName = PUBLISHER.parse().expect("a name");
    let mut index = SkillIndex::default();
    let by = "operator".to_owned();
    index.apply(&SkillEvent::PublisherTrusted { publisher: publisher.clone(), key, by }, NOW);
    match index.plan_statement(&envelope) {
        Ok(_) => {
            let claimed = PublisherStatement::claimed(&envelope).expect("it was planned");
            assert_eq!(claimed.publisher(), &publisher);
            match claimed {
                PublisherStatement::Rotation(rotation) => {
                    assert_eq!(rotation.from, key);
                    KeyRotation::open(&envelope).expect("both keys have signed it");
                }
                PublisherStatement::Revocations(list) => {
                    assert!(list.number > 0);
                    RevocationList::open(&envelope, &[key]).expect("the trusted key has signed it");
                }
            }
        }
        Err(error) => refused(&error, bytes.len()),
    }
}

/// What an index says inside of its envelope: nothing that was taken back is offered.
fn registry_index(bytes: &[u8]) {
    let Ok(index) = serde_json::from_slice::<RegistryIndex>(bytes) else { return };
    let written = serde_json::to_vec(&index).expect("what was read can be written");
    assert_eq!(serde_json::from_slice::<RegistryIndex>(&written).expect("and read again"), index);
    for artifact in index.search("").into_iter().chain(&index.artifacts) {
        if let Ok(found) = index.find(&artifact.skill_id, Some(&artifact.version)) {
            assert!(!index.revoked.iter().any(|revoked| revoked.content == found.content), "{found:?}");
        }
    }
}

/// A registry whose every file is these bytes.
struct Same<'a>(&'a [u8]);

#[async_trait]
impl RegistryFetch for Same<'_> {
    async fn fetch(&self, _: &str, _: u64) -> Result<Fetched, String> {
        Ok(Fetched::Bytes(self.0.to_vec()))
    }
}

/// Any bytes as the first root of a registry: at most they are one, and never a registry on their own.
fn registry_root(bytes: &[u8]) {
    let registry = Same(bytes);
    match at_once(RegistryState::begin(&registry, 1, RootPin::FirstUse)) {
        Ok(mut state) => {
            assert_eq!(state.root_version().expect("it was read"), 1);
            let visited = at_once(state.refresh(&registry, NOW));
            refused(&visited.expect_err("one file cannot be root, timestamp and index"), bytes.len());
        }
        Err(error) => refused(&error, bytes.len()),
    }
}

/// The outcome of work that never waits.
fn at_once<T>(work: impl Future<Output = T>) -> T {
    match pin!(work).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(done) => done,
        Poll::Pending => panic!("nothing here waits for anything"),
    }
}

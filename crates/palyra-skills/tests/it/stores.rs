//! Installed skills on disk, and what happens when somebody touches them.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use palyra_common::Digest;
use palyra_skills::{
    ArchiveLimits, AuditPolicy, InitialStatus, InstallRequest, Origin, SkillArchive, SkillIndex, SkillRecord,
    SkillStore, Tofu, examine,
};

use crate::skill::{NOW, Skill, key};

struct Place {
    _directory: tempfile::TempDir,
    store: SkillStore,
    index: SkillIndex,
}

fn installed() -> Place {
    let directory = tempfile::tempdir().unwrap();
    let store = SkillStore::open(&directory.path().join("skills"), ArchiveLimits::default()).unwrap();
    let archive = store.put(&Skill::default().signed()).unwrap();
    let mut index = SkillIndex::default();
    let examined = examine(&archive, &AuditPolicy::default()).unwrap();
    let request = InstallRequest {
        by: "ana".to_owned(),
        tofu: Tofu::Pin,
        origin: Origin::File { name: "echo".to_owned() },
        start: InitialStatus::Enabled,
        grants: None,
    };
    for event in index.plan_install(&examined, &request, NOW).unwrap() {
        index.apply(&event, NOW);
    }
    Place { _directory: directory, store, index }
}

fn record(place: &Place) -> &SkillRecord {
    place.index.runnable(&"acme.echo".parse().unwrap()).unwrap()
}

#[test]
fn what_was_installed_is_loaded_and_private() {
    let place = installed();
    let record = record(&place);
    let loaded = place.store.load(record, &AuditPolicy::default()).unwrap();
    assert_eq!(loaded.archive.digest(), record.artifact.archive);
    let (_, wasm) = loaded.archive.modules().next().unwrap();
    assert_eq!(place.store.module(&Digest::of(wasm)).unwrap(), wasm);
    let path = place.store.archive_path(&record.artifact.archive);
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
    assert_eq!(fs::metadata(path.parent().unwrap()).unwrap().mode() & 0o7777, 0o700);
    // Putting it again is no harm, and a second archive leaves the first alone.
    place.store.put(&Skill::default().signed()).unwrap();
    place.store.put(&Skill { version: "2.0.0".to_owned(), ..Skill::default() }.signed()).unwrap();
    place.store.load(record, &AuditPolicy::default()).unwrap();
    assert_eq!(place.store.put(b"PK").unwrap_err().code(), "skill_archive_malformed");
}

#[test]
fn a_changed_file_means_quarantine() {
    let place = installed();
    let record = record(&place);
    let path = place.store.archive_path(&record.artifact.archive);
    let mut bytes = fs::read(&path).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, &bytes).unwrap();
    let error = place.store.load(record, &AuditPolicy::default()).unwrap_err();
    assert_eq!(error.code(), "skill_tampered");
    assert_eq!(place.index.plan_load_failed(&record.skill_id, &error).unwrap().len(), 1);
    // Grown out of all bounds, replaced by a good archive of somebody else, or gone.
    let limits = ArchiveLimits { archive_bytes: 4, ..ArchiveLimits::default() };
    let small = SkillStore::open(path.parent().unwrap().parent().unwrap(), limits).unwrap();
    assert_eq!(small.get(&record.artifact.archive).unwrap_err().code(), "skill_tampered");
    fs::write(&path, Skill::default().signed_by(&key(2))).unwrap();
    assert_eq!(place.store.load(record, &AuditPolicy::default()).unwrap_err().code(), "skill_tampered");
    fs::remove_file(&path).unwrap();
    let gone = place.store.load(record, &AuditPolicy::default()).unwrap_err();
    assert_eq!(gone.code(), "skill_not_stored");
    assert!(place.index.plan_load_failed(&record.skill_id, &gone).unwrap().is_empty());
    // Installing again puts it right.
    place.store.put(&Skill::default().signed()).unwrap();
    place.store.load(record, &AuditPolicy::default()).unwrap();
}

#[test]
fn a_changed_module_is_noticed() {
    let place = installed();
    let archive = SkillArchive::read(&Skill::default().signed()).unwrap();
    let digest = Digest::of(archive.modules().next().unwrap().1);
    fs::write(place.store.module_path(&digest), b"\0asm").unwrap();
    assert_eq!(place.store.module(&digest).unwrap_err().code(), "skill_tampered");
}

#[test]
fn a_record_of_another_skill_does_not_pass() {
    let place = installed();
    let other = place.store.put(&Skill { id: "acme.other".to_owned(), ..Skill::default() }.signed()).unwrap();
    let mut record = record(&place).clone();
    record.artifact.archive = other.digest();
    assert_eq!(place.store.load(&record, &AuditPolicy::default()).unwrap_err().code(), "skill_tampered");
}

#[test]
fn sweeping_keeps_what_is_installed() {
    let place = installed();
    let mut second = Skill { version: "2.0.0".to_owned(), ..Skill::default() };
    second.files.insert("modules/echo.wasm".to_owned(), crate::skill::component(&[]));
    let other = place.store.put(&second.signed()).unwrap();
    let keep: BTreeSet<Digest> = [record(&place).artifact.archive].into();
    assert_eq!(place.store.sweep(&keep).unwrap().len(), 2);
    assert_eq!(place.store.get(&other.digest()).unwrap_err().code(), "skill_not_stored");
    place.store.load(record(&place), &AuditPolicy::default()).unwrap();
    assert!(place.store.sweep(&keep).unwrap().is_empty());
}

//! Signatures that do not hold, each with the error that it ends in.

use palyra_common::Timestamp;
use palyra_skills::{SkillArchive, sign, verify};
use serde_json::Value;

use crate::raw_zip::{RawEntry, build};
use crate::skill::{NOW, Skill, key};

/// A signed archive with some of its files replaced.
fn with_files(archive: &[u8], replace: &[(&str, Option<Vec<u8>>)]) -> Vec<u8> {
    let archive = SkillArchive::read(archive).unwrap();
    let mut files = archive.files().clone();
    for (path, bytes) in replace {
        match bytes {
            Some(bytes) => files.insert((*path).to_owned(), bytes.clone()),
            None => files.remove(*path),
        };
    }
    let entries: Vec<RawEntry> =
        files.iter().map(|(path, bytes)| RawEntry::stored(path.as_str(), bytes.clone())).collect();
    build(&entries)
}

fn signature_of(archive: &[u8]) -> Vec<u8> {
    SkillArchive::read(archive).unwrap().files()["signature.json"].clone()
}

/// The code of the error, whether reading or verifying finds it.
fn refused(bytes: &[u8]) -> &'static str {
    match SkillArchive::read(bytes) {
        Err(error) => error.code(),
        Ok(archive) => verify(&archive).unwrap_err().code(),
    }
}

/// A skill without `integrity`, so that the signature alone has to find the change.
fn bare() -> Vec<u8> {
    let skill = Skill::default();
    let entries = [
        RawEntry::stored("assets/a.txt", "a"),
        RawEntry::stored("modules/echo.wasm", skill.files["modules/echo.wasm"].clone()),
        RawEntry::stored("skill.toml", skill.manifest()),
    ];
    sign(&SkillArchive::read(&build(&entries)).unwrap(), &key(1), NOW).unwrap()
}

#[test]
fn a_good_signature_says_who_and_when() {
    let verified = verify(&SkillArchive::read(&Skill::default().signed()).unwrap()).unwrap();
    assert_eq!(verified.publisher.as_str(), "acme");
    assert_eq!(verified.public_key, key(1).public());
    assert_eq!(verified.signed_at, NOW);
    // However it is packed.
    verify(&SkillArchive::read(&with_files(&Skill::default().signed(), &[])).unwrap()).unwrap();
    assert_eq!(refused(&Skill::default().packed()), "skill_unsigned");
}

#[test]
fn changed_added_and_removed_files_are_named() {
    let signed = bare();
    verify(&SkillArchive::read(&signed).unwrap()).unwrap();
    for replace in [
        [("assets/a.txt", Some(b"b".to_vec()))],
        [("assets/a.txt", None)],
        [("assets/b.txt", Some(b"b".to_vec()))],
        [("modules/echo.wasm", Some(crate::skill::component(&[])))],
        [("provenance.json", Some(b"{}".to_vec()))],
        [(
            "skill.toml",
            Some(Skill { description: "Another.".to_owned(), ..Skill::default() }.manifest().into_bytes()),
        )],
    ] {
        assert_eq!(refused(&with_files(&signed, &replace)), "skill_signature_mismatch", "{}", replace[0].0);
    }
}

#[test]
fn a_signature_of_another_archive_or_manifest_is_refused() {
    let signed = Skill::default().signed();
    let other = Skill { version: "2.0.0".to_owned(), ..Skill::default() }.signed();
    let transplanted = with_files(&signed, &[("signature.json", Some(signature_of(&other)))]);
    assert_eq!(refused(&transplanted), "skill_signature_mismatch");
    // Even where its list of files is brought into line.
    let mut forged: Value = serde_json::from_slice(&signature_of(&other)).unwrap();
    let own: Value = serde_json::from_slice(&signature_of(&signed)).unwrap();
    forged["files"] = own["files"].clone();
    let forged = with_files(&signed, &[("signature.json", Some(forged.to_string().into_bytes()))]);
    assert_eq!(refused(&forged), "skill_signature_invalid");
}

#[test]
fn swapped_keys_names_and_times_are_refused() {
    let signed = Skill::default().signed();
    let change = |field: &str, value: Value| {
        let mut file: Value = serde_json::from_slice(&signature_of(&signed)).unwrap();
        file[field] = value;
        with_files(&signed, &[("signature.json", Some(file.to_string().into_bytes()))])
    };
    let other = key(2).public();
    assert_eq!(refused(&change("public_key", other.to_string().into())), "skill_signature_invalid");
    assert_eq!(refused(&change("key_id", other.id().to_string().into())), "skill_signature_invalid");
    assert_eq!(refused(&change("publisher", "evil".into())), "skill_signature_invalid");
    assert_eq!(refused(&change("signed_at", (NOW.0 + 1).into())), "skill_signature_invalid");
    assert_eq!(refused(&change("algorithm", "none".into())), "skill_signature_invalid");
    assert_eq!(refused(&change("format", 2.into())), "skill_signature_invalid");
    assert_eq!(refused(&change("signature", "".into())), "skill_signature_invalid");
    assert_eq!(refused(&change("extra", 1.into())), "skill_signature_invalid");
    // Key and id swapped together: the signature is still the other key's.
    let mut file: Value = serde_json::from_slice(&signature_of(&signed)).unwrap();
    file["public_key"] = other.to_string().into();
    file["key_id"] = other.id().to_string().into();
    let swapped = with_files(&signed, &[("signature.json", Some(file.to_string().into_bytes()))]);
    assert_eq!(refused(&swapped), "skill_signature_invalid");
    // A list with a file twice.
    let mut file: Value = serde_json::from_slice(&signature_of(&signed)).unwrap();
    let first = file["files"][0].clone();
    file["files"].as_array_mut().unwrap().push(first);
    let doubled = with_files(&signed, &[("signature.json", Some(file.to_string().into_bytes()))]);
    assert_eq!(refused(&doubled), "skill_signature_mismatch");
}

#[test]
fn signing_again_replaces_the_signature() {
    let first = SkillArchive::read(&Skill::default().signed()).unwrap();
    let second = SkillArchive::read(&sign(&first, &key(2), Timestamp(NOW.0 + 1)).unwrap()).unwrap();
    assert_eq!(verify(&second).unwrap().public_key, key(2).public());
    assert_eq!(first.content(), second.content());
}

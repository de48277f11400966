//! Packing and reading: the same bytes each time, and bytes that others read too.

use std::fs;
use std::io::{Cursor, Read as _, Write as _};

use palyra_skills::{ArchiveInput, ArchiveLimits, SkillArchive, pack};
use zip::CompressionMethod;
use zip::write::SimpleFileOptions;

use crate::skill::{NOW, Skill, key};

#[test]
fn the_same_input_gives_the_same_bytes() {
    let mut skill = Skill::default();
    skill.files.insert("assets/words.txt".to_owned(), b"one two three ".repeat(1_000));
    assert_eq!(skill.packed(), skill.packed());
    assert_eq!(skill.signed(), skill.signed());
    let archive = SkillArchive::read(&skill.packed()).unwrap();
    // Signing twice changes nothing but the signature; packing what was unpacked changes nothing at all.
    assert_eq!(SkillArchive::read(&skill.signed()).unwrap().content(), archive.content());
    let input = ArchiveInput {
        manifest: String::from_utf8(archive.files()["skill.toml"].clone()).unwrap(),
        files: skill.files.clone(),
        sbom: Some(archive.files()["sbom.cdx.json"].clone()),
        provenance: skill.input().provenance,
    };
    assert_eq!(pack(input).unwrap(), skill.packed());
}

#[test]
fn what_is_packed_comes_out_again() {
    let mut skill = Skill::default();
    skill.files.insert("assets/a/é.txt".to_owned(), b"accent".to_vec());
    let archive = SkillArchive::read(&skill.packed()).unwrap();
    assert_eq!(archive.files()["assets/a/é.txt"], b"accent");
    assert_eq!(archive.manifest().skill_id.as_str(), "acme.echo");
    // skill.toml and the signature aside, the manifest lists every file.
    assert_eq!(archive.manifest().integrity.len(), archive.files().len() - 1);
    assert_eq!(archive.modules().count(), 1);
    assert!(archive.signature().is_none());
}

#[test]
fn another_reader_agrees() {
    let bytes = Skill::default().signed();
    let ours = SkillArchive::read(&bytes).unwrap();
    let mut theirs = zip::ZipArchive::new(Cursor::new(&bytes)).unwrap();
    assert_eq!(theirs.len(), ours.files().len());
    for (path, contents) in ours.files() {
        let mut read = Vec::new();
        theirs.by_name(path).unwrap().read_to_end(&mut read).unwrap();
        assert_eq!(&read, contents, "{path}");
    }
}

#[test]
fn an_archive_of_another_packer_is_read_under_the_older_name_of_the_manifest() {
    let skill = Skill::default();
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(zip::DateTime::default());
    for (path, bytes) in [
        ("manifest.toml", skill.manifest().into_bytes()),
        ("modules/echo.wasm", skill.files["modules/echo.wasm"].clone()),
    ] {
        writer.start_file(path, options).unwrap();
        writer.write_all(&bytes).unwrap();
    }
    let bytes = writer.finish().unwrap().into_inner();
    let archive = SkillArchive::read(&bytes).unwrap();
    assert!(archive.manifest().integrity.is_empty());
    let signed = palyra_skills::sign(&archive, &key(1), NOW).unwrap();
    palyra_skills::verify(&SkillArchive::read(&signed).unwrap()).unwrap();
}

#[test]
fn a_folder_is_packed_without_links_and_hidden_files() {
    let skill = Skill::default();
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    fs::create_dir_all(folder.join("modules")).unwrap();
    fs::create_dir_all(folder.join("assets/deep")).unwrap();
    fs::write(folder.join("skill.toml"), skill.manifest()).unwrap();
    fs::write(folder.join("modules/echo.wasm"), &skill.files["modules/echo.wasm"]).unwrap();
    fs::write(folder.join("assets/deep/a.txt"), "a").unwrap();
    fs::write(folder.join("assets/.hidden"), "secret").unwrap();
    let input = ArchiveInput::from_folder(folder, &ArchiveLimits::default()).unwrap();
    assert_eq!(input.files.keys().collect::<Vec<_>>(), ["assets/deep/a.txt", "modules/echo.wasm"]);
    SkillArchive::read(&pack(input).unwrap()).unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.join("assets/link")).unwrap();
    let error = ArchiveInput::from_folder(folder, &ArchiveLimits::default()).unwrap_err();
    assert_eq!(error.code(), "skill_path_refused");
}

#[test]
fn packing_refuses_what_reading_would() {
    let mut stale = Skill {
        more: format!("[[integrity.files]]\npath = \"modules/echo.wasm\"\nsha256 = \"sha256:{}\"", "0".repeat(64)),
        ..Skill::default()
    };
    assert_eq!(pack(stale.input()).unwrap_err().code(), "skill_integrity_mismatch");
    stale = Skill::default();
    stale.files.insert("assets/../x".to_owned(), Vec::new());
    assert_eq!(pack(stale.input()).unwrap_err().code(), "skill_path_refused");
    let mut outside = Skill::default();
    outside.files.insert("signature.json".to_owned(), Vec::new());
    assert_eq!(pack(outside.input()).unwrap_err().code(), "skill_path_refused");
    let mut empty = Skill::default();
    empty.files.clear();
    assert_eq!(pack(empty.input()).unwrap_err().code(), "skill_module_missing");
    // Highly regular contents are stored rather than made to look like a bomb.
    let mut regular = Skill::default();
    regular.files.insert("assets/zeros".to_owned(), vec![0; 3 << 20]);
    SkillArchive::read(&regular.packed()).unwrap();
}

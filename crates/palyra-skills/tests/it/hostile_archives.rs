//! Archives that mean harm, each with the error that it ends in.

use palyra_skills::{ArchiveLimits, SkillArchive, SkillError};

use crate::raw_zip::{RawEntry, build, crc};
use crate::skill::Skill;

/// The files of a good archive.
fn good() -> Vec<RawEntry> {
    let skill = Skill::default();
    vec![
        RawEntry::stored("modules/echo.wasm", skill.files["modules/echo.wasm"].clone()),
        RawEntry::stored("skill.toml", skill.manifest()),
    ]
}

fn with(entry: RawEntry) -> Vec<u8> {
    let mut entries = good();
    entries.push(entry);
    build(&entries)
}

fn error(bytes: &[u8]) -> SkillError {
    SkillArchive::read(bytes).expect_err("it was taken")
}

#[track_caller]
fn malformed(bytes: &[u8], why: &str) {
    match error(bytes) {
        SkillError::ArchiveMalformed { reason } => assert!(reason.contains(why), "{reason:?} does not say {why:?}"),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn too_large(bytes: &[u8], what: &str) {
    match error(bytes) {
        SkillError::ArchiveTooLarge { what: found, .. } => assert!(found.contains(what), "{found:?}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_good_one_is_good() {
    SkillArchive::read(&build(&good())).unwrap();
    SkillArchive::read(&with(RawEntry::deflated("assets/a.txt", &b"abc ".repeat(100)))).unwrap();
    SkillArchive::read(&with(RawEntry::deflated("assets/empty", b""))).unwrap();
}

#[test]
fn zip_slip_in_all_its_forms() {
    for name in [
        "../skill.toml",
        "assets/../../etc/passwd",
        "assets/..",
        "/etc/passwd",
        "//server/share",
        "..\\windows",
        "assets\\..\\x",
        "C:\\x",
        "C:/x",
        "assets/./x",
        "./skill.toml",
        "assets//x",
        "assets/x/",
        "~/x",
        "assets/CON",
        "assets/aux.txt",
        "assets/COM1",
        "assets/nul\0.txt",
        "assets/a:stream",
        "assets/x.",
        "assets/x ",
        "assets/\u{202e}gpj.exe",
        "assets/e\u{301}",
        ".git/config",
        "elsewhere.txt",
        "modules/sub/x.wasm",
        "modules/x.dll",
    ] {
        let entry = RawEntry::stored(name, "x");
        assert_eq!(error(&with(entry)).code(), "skill_path_refused", "{name:?}");
    }
}

#[test]
fn names_that_are_not_utf8_or_not_marked_as_such() {
    assert_eq!(error(&with(RawEntry::stored(b"assets/\xff\xfe".to_vec(), "x"))).code(), "skill_path_refused");
    let mut unmarked = RawEntry::stored("assets/é", "x");
    unmarked.flags = 0;
    assert_eq!(error(&with(unmarked)).code(), "skill_path_refused");
    let long = format!("assets/{}", "a".repeat(300));
    assert_eq!(error(&with(RawEntry::stored(long, "x"))).code(), "skill_path_refused");
}

#[test]
fn doubles_of_every_kind() {
    for (first, second) in
        [("assets/a", "assets/a"), ("assets/a", "assets/A"), ("assets/ﬁ", "assets/fi"), ("assets/a", "assets/a/b")]
    {
        let mut entries = good();
        entries.push(RawEntry::stored(first, "1"));
        entries.push(RawEntry::stored(second, "2"));
        assert_eq!(error(&build(&entries)).code(), "skill_path_refused", "{first} {second}");
    }
    let mut entries = good();
    entries.push(RawEntry::stored("skill.toml", "other = 1"));
    assert_eq!(error(&build(&entries)).code(), "skill_path_refused");
    entries.pop();
    entries.push(RawEntry::stored("manifest.toml", Skill::default().manifest()));
    malformed(&build(&entries), "two manifests");
}

#[test]
fn links_directories_and_devices() {
    for (kind, why) in [
        (0o120_777_u32, "link"),
        (0o040_755, "not a regular file"),
        (0o060_644, "not a regular file"),
        (0o010_644, "not a regular file"),
    ] {
        let mut entry = RawEntry::stored("assets/x", "/etc/passwd");
        entry.attributes = kind << 16;
        malformed(&with(entry), why);
    }
    let mut directory = RawEntry::stored("assets/x", "");
    directory.attributes = 0x10;
    malformed(&with(directory), "not a regular file");
}

#[test]
fn encryption_descriptors_methods_and_extra_fields() {
    for (flags, why) in
        [(1, "encrypted"), (1 << 3, "only after its data"), (1 << 5, "unsupported"), (1 << 13, "unsupported")]
    {
        let mut entry = RawEntry::stored("assets/x", "x");
        entry.flags |= flags;
        malformed(&with(entry), why);
    }
    for method in [1, 9, 12, 14, 93, 95, 99] {
        let mut entry = RawEntry::stored("assets/x", "x");
        entry.method = method;
        malformed(&with(entry), "method");
    }
    let mut newer = RawEntry::stored("assets/x", "x");
    newer.version = 45;
    malformed(&with(newer), "unsupported");
    // A Unicode path field gives the file another name for those who read it.
    let mut extra = RawEntry::stored("assets/x", "x");
    extra.extra = b"\x75\x70\x08\x00\x01\0\0\0\0abc".to_vec();
    malformed(&with(extra), "extra fields");
}

#[test]
fn headers_that_contradict_each_other() {
    let mut renamed = RawEntry::stored("assets/harmless", "x");
    renamed.local_name = Some(b"assets/harmful!".to_vec());
    malformed(&with(renamed), "differ");
    let mut resized = RawEntry::stored("assets/x", "xyz");
    resized.local_unpacked = Some(2);
    malformed(&with(resized), "differ");
    let mut checksum = RawEntry::stored("assets/x", "xyz");
    checksum.crc ^= 1;
    malformed(&with(checksum), "checksum");
    let mut shorter = RawEntry::deflated("assets/x", b"abcabcabcabc");
    shorter.unpacked = 3;
    shorter.crc = crc(b"abc");
    malformed(&with(shorter), "is larger than the archive says");
    let mut longer = RawEntry::deflated("assets/x", b"abc");
    longer.unpacked = 12;
    malformed(&with(longer), "does not have its declared size");
}

#[test]
fn overlapping_entries_gaps_and_bytes_around() {
    let mut overlap = good();
    overlap.push(RawEntry::stored("assets/a", "abc"));
    let mut twin = RawEntry::stored("assets/b", "abc");
    twin.offset = Some(0);
    overlap.push(twin);
    malformed(&build(&overlap), "does not start where");
    let mut gap = good();
    gap[0].gap = b"hidden".to_vec();
    malformed(&build(&gap), "does not start where");
    let mut last_gap = good();
    last_gap[1].gap = b"hidden".to_vec();
    malformed(&build(&last_gap), "belong to no file");
    let archive = build(&good());
    malformed(&[archive.as_slice(), b"x"].concat(), "end-of-central-directory record");
    malformed(&[archive.as_slice(), archive.as_slice()].concat(), "central directory");
    malformed(&[b"#!/bin/sh\n", archive.as_slice()].concat(), "central directory");
    // Bytes behind the end mark of packed data.
    let mut tail = RawEntry::deflated("assets/x", b"abc");
    tail.data.extend(b"tail");
    malformed(&with(tail), "after the compressed data");
    // A comment, a second disk, a count that is not true.
    for (from_end, value) in [(2, 1), (18, 1), (12, 7), (14, 7)] {
        let mut bytes = archive.clone();
        let at = bytes.len() - from_end;
        bytes[at] = value;
        malformed(&bytes, "");
    }
    for length in 0..archive.len() {
        malformed(&archive[..length], "");
    }
}

#[test]
fn bombs() {
    too_large(&with(RawEntry::deflated("assets/bomb", &vec![0; 2 << 20])), "ratio");
    let mut declared = RawEntry::stored("assets/x", "x");
    declared.unpacked = 17 << 20;
    too_large(&with(declared), "assets/x");
    // Many files that each keep their limit; the limit is lowered so that the test need not pack 64 MiB.
    let entry = RawEntry::deflated("assets/x", &b"some words ".repeat(1_000));
    let mut entries = good();
    entries.extend((0..200).map(|n| RawEntry { name: format!("assets/{n}").into_bytes(), ..entry.clone() }));
    let limits = ArchiveLimits { unpacked_bytes: 1 << 20, ..ArchiveLimits::default() };
    match SkillArchive::read_with(&build(&entries), &limits).unwrap_err() {
        SkillError::ArchiveTooLarge { what, .. } => assert_eq!(what, "the total unpacked size"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn too_many_and_too_much() {
    let mut entries = good();
    entries.extend((0..300).map(|n| RawEntry::stored(format!("assets/{n}"), "")));
    too_large(&build(&entries), "number of files");
    too_large(&vec![0; (64 << 20) + 1], "the archive");
    let mut manifest = good();
    manifest[1] =
        RawEntry::stored("skill.toml", format!("{}\n# {}", Skill::default().manifest(), "x".repeat(300 << 10)));
    too_large(&build(&manifest), "manifest");
    let mut deep = good();
    deep[1] = RawEntry::stored("skill.toml", format!("x = {}{}", "[".repeat(50_000), "]".repeat(50_000)));
    assert_eq!(error(&build(&deep)).code(), "skill_manifest_invalid");
    let mut binary = good();
    binary[1] = RawEntry::stored("skill.toml", b"\xff\xfe".to_vec());
    assert_eq!(error(&build(&binary)).code(), "skill_manifest_invalid");
}

#[test]
fn manifest_and_files_that_do_not_fit() {
    let entries = good();
    malformed(&build(&entries[..1]), "no `skill.toml`");
    assert_eq!(error(&build(&entries[1..])).code(), "skill_module_missing");
    let mut several = good();
    several.push(RawEntry::stored("modules/other.wasm", "x"));
    several[1] =
        RawEntry::stored("skill.toml", Skill::default().manifest().replace("module = \"modules/echo.wasm\"\n", ""));
    assert_eq!(error(&build(&several)).code(), "skill_module_missing");
    // The manifest lists a file with another digest, a file that is not there, or not all files.
    let archive = SkillArchive::read(&Skill::default().packed()).unwrap();
    let mut files: Vec<RawEntry> =
        archive.files().iter().map(|(path, bytes)| RawEntry::stored(path.as_str(), bytes.clone())).collect();
    let module = files.iter().position(|file| file.name.ends_with(b".wasm")).unwrap();
    let original = std::mem::replace(&mut files[module], RawEntry::stored("modules/echo.wasm", b"\0asm".to_vec()));
    assert_eq!(error(&build(&files)).code(), "skill_integrity_mismatch");
    files[module] = original;
    files.retain(|file| file.name != b"provenance.json");
    assert_eq!(error(&build(&files)).code(), "skill_integrity_mismatch");
    let mut more: Vec<RawEntry> =
        archive.files().iter().map(|(path, bytes)| RawEntry::stored(path.as_str(), bytes.clone())).collect();
    more.push(RawEntry::stored("assets/extra", "x"));
    assert_eq!(error(&build(&more)).code(), "skill_integrity_mismatch");
}

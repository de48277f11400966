//! Manifests, good and bad.

use super::*;

const GOOD: &str = r#"
manifest_version = 1
skill_id = "acme.echo-http"
name = "Echo"
version = "1.2.3"
publisher = "acme"

[[entrypoints.tools]]
id = "fetch"
description = "Fetches a page."
input_schema = { type = "object", properties = { url = { type = "string" }, note = { type = "string" } } }
labels = { sinks = { note = "content" } }

[[entrypoints.hooks]]
id = "guard"
events = ["run:before_tool"]

[capabilities]
http_egress_allowlist = ["GET https://api.example.com"]
channels = ["team:chat"]
[[capabilities.secrets]]
name = "api_key"
hosts = ["api.example.com"]
[[capabilities.storage]]
name = "notes"
max_bytes = 4096

[[config]]
key = "language"
default = "en"

[compat]
min_palyra_version = "0.1.0"
abi = "1.0.0"
"#;

/// The field that is complained about.
fn complaint(text: &str) -> (String, String) {
    match SkillManifest::parse(text) {
        Err(SkillError::ManifestInvalid { field, reason }) => (field, reason),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_good_manifest_is_read_with_its_defaults() {
    let manifest = SkillManifest::parse(GOOD).unwrap();
    assert_eq!(manifest.file_name(), "acme.echo-http-1.2.3.palyra-skill");
    let tool = &manifest.tools[0];
    assert_eq!(manifest.tool_name(tool), "acme.echo-http.fetch");
    assert_eq!(tool.name, "fetch");
    let class = tool.classification();
    assert_eq!(class.sinks["url"], palyra_common::SinkKind::Destination);
    assert_eq!(class.sinks["note"], palyra_common::SinkKind::Content);
    assert_eq!(manifest.quotas, Quotas::default());
    assert_eq!(manifest.capabilities.secrets[0].usage, SecretUse::Bind);
    assert_eq!(manifest.capabilities.storage[0].max_keys, 1_000);
    manifest.check_compat(&"0.1.0".parse().unwrap()).unwrap();
    assert_eq!(manifest.check_compat(&"0.0.9".parse().unwrap()).unwrap_err().code(), "skill_incompatible");
}

#[test]
fn every_complaint_names_its_field() {
    for (from, to, field) in [
        ("manifest_version = 1", "manifest_version = 2", "manifest_version"),
        ("name = \"Echo\"", "nmae = \"Echo\"", "name"),
        ("version = \"1.2.3\"", "version = \"1.2\"", "version"),
        ("skill_id = \"acme.echo-http\"", "skill_id = \"palyra.fs\"", "skill_id"),
        ("publisher = \"acme\"", "publisher = \"Acme\"", "publisher"),
        ("id = \"fetch\"", "id = \"Fetch\"", "entrypoints.tools[0].id"),
        ("type = \"object\", properties", "type = \"array\", properties", "entrypoints.tools[0].input_schema"),
        ("url = { type = \"string\" }", "url = { type = \"strin\" }", "entrypoints.tools[0].input_schema"),
        ("note = \"content\"", "note = \"nowhere\"", "entrypoints.tools[0].labels.sinks.note"),
        ("labels = {", "labels = { integrity = \"system\",", "entrypoints.tools[0].labels.integrity"),
        ("run:before_tool", "run:before_lunch", "entrypoints.hooks[0].events[0]"),
        ("GET https://api.example.com", "GET gopher://api.example.com", "capabilities.http_egress_allowlist[0]"),
        ("[capabilities]", "[capabilities]\nfilesystem = [\"/\"]", "capabilities.filesystem"),
        ("hosts = [\"api.example.com\"]", "hosts = [\"*\"]", "capabilities.secrets[0].hosts[0]"),
        ("max_bytes = 4096", "max_bytes = -1", "capabilities.storage[0].max_bytes"),
        ("max_bytes = 4096", "max_bytes = \"4096\"", "capabilities.storage[0].max_bytes"),
        ("abi = \"1.0.0\"", "abi = \"one\"", "compat.abi"),
        ("name = \"Echo\"", "name = \"\\u001b[2J\"", "name"),
        ("name = \"Echo\"", "name = \"Echo\\u202ecod\"", "name"),
        ("name = \"Echo\"", "name = \"Echo\\U000e0049\"", "name"),
        ("key = \"language\"", "key = \"\"", "config[0].key"),
    ] {
        assert!(GOOD.contains(from), "{from}");
        assert_eq!(complaint(&GOOD.replacen(from, to, 1)).0, field, "{to}");
    }
}

#[test]
fn an_unknown_key_comes_with_a_suggestion() {
    let (field, reason) = complaint(&GOOD.replace("[compat]", "[compat]\nmin_palyra_versoin = \"1.0.0\""));
    assert_eq!(field, "compat.min_palyra_versoin");
    assert!(reason.contains("did you mean `min_palyra_version`?"), "{reason}");
    let (field, _) = complaint(&format!("zzz = 1\n{GOOD}"));
    assert_eq!(field, "zzz");
}

#[test]
fn broken_deep_and_huge_texts_are_refused() {
    assert!(complaint("manifest_version = ").0.starts_with("line "));
    let deep = format!("x = {}{}", "[".repeat(5_000), "]".repeat(5_000));
    assert!(SkillManifest::parse(&deep).is_err());
    let dotted = format!("{} = 1", vec!["a"; 5_000].join("."));
    assert!(SkillManifest::parse(&dotted).is_err());
    let huge = format!("{GOOD}\n# {}", "x".repeat(300 << 10));
    assert_eq!(SkillManifest::parse(&huge).unwrap_err().code(), "skill_archive_too_large");
}

#[test]
fn grants_stay_within_what_is_asked_for() {
    let asked = SkillManifest::parse(&GOOD.replace("name = \"api_key\"", "name = \"api_key\"\nreveal = true"))
        .unwrap()
        .capabilities;
    assert!(asked.not_within(&asked).is_empty());
    let granted = asked.granted_by_default();
    assert_eq!(granted.secrets[0].usage, SecretUse::Bind);
    assert!(granted.not_within(&asked).is_empty());
    assert_eq!(asked.not_within(&granted), ["the value of the secret `api_key`"]);
    assert_eq!(asked.not_within(&Capabilities::default()).len(), 4);
}

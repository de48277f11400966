//! References: what is read, what is refused, and that nothing refused is repeated.

use super::*;

#[test]
fn references_survive_text() {
    for text in [
        "vault:global/openai",
        "vault:principal:alice/key-1",
        "vault:channel:slack:team/bot.token",
        "vault:skill:echo/k_1",
        "env:OPENAI_API_KEY",
        "file:/run/secrets/key",
        "exec:pass show openai",
    ] {
        let reference: SecretRef = text.parse().unwrap();
        assert_eq!(reference.to_string(), text);
        let json = serde_json::to_string(&reference).unwrap();
        assert_eq!(serde_json::from_str::<SecretRef>(&json).unwrap(), reference);
    }
}

#[test]
fn everything_else_is_refused_without_being_repeated() {
    use InvalidSecretRef::{Empty, EnvName, PlainValue, VaultKey, VaultScope};
    for (text, wanted) in [
        ("sk-live-abcdef", PlainValue),
        ("", PlainValue),
        ("https://user:pass@host", PlainValue),
        ("ENV:NAME", PlainValue),
        ("vault:global", VaultScope),
        ("vault:elsewhere/key", VaultScope),
        ("vault:principal/key", VaultScope),
        ("vault:principal:/key", VaultScope),
        ("vault:channel:slack/key", VaultScope),
        ("vault:global:x/key", VaultScope),
        ("vault:global/", VaultKey),
        ("vault:global/Key", VaultKey),
        ("vault:global/a/b", VaultKey),
        ("env:", EnvName),
        ("env:1ABC", EnvName),
        ("env:A B", EnvName),
        ("file:", Empty),
        ("exec:  ", Empty),
    ] {
        let error = text.parse::<SecretRef>().unwrap_err();
        assert_eq!(error, wanted, "{text}");
        assert!(text.len() < 6 || !error.to_string().contains(text), "{text}");
    }
    assert!(
        "vault:global/"
            .to_owned()
            .chars()
            .chain("k".repeat(129).chars())
            .collect::<String>()
            .parse::<SecretRef>()
            .is_err()
    );
}

#[test]
fn a_variable_is_read_and_a_missing_one_is_an_error() {
    let environment = Environment::from_pairs([("KEY", "s3cret"), ("EMPTY", "")]);
    assert_eq!(SecretRef::Env("KEY".into()).resolve(&environment).unwrap().expose(), "s3cret");
    for name in ["OTHER", "EMPTY"] {
        let error = SecretRef::Env(name.into()).resolve(&environment).unwrap_err();
        assert_eq!(error.to_stable().code, "secret_missing");
    }
    let vault = "vault:global/k".parse::<SecretRef>().unwrap().resolve(&environment).unwrap_err();
    assert_eq!(vault.to_stable().code, "unsupported_secret_reference");
}

#[cfg(unix)]
#[test]
fn a_file_must_be_private_small_and_text() {
    use std::os::unix::fs::PermissionsExt as _;
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &[u8], mode: u32| {
        let path = directory.path().join(name);
        std::fs::write(&path, content).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        SecretRef::File(path).resolve(&Environment::default())
    };
    assert_eq!(write("good", b"s3cret\r\n", 0o600).unwrap().expose(), "s3cret");
    for (name, content, mode) in [
        ("shared", b"s3cret".as_slice(), 0o644),
        ("empty", b"\n", 0o600),
        ("binary", b"\xff\xfe", 0o600),
        ("large", vec![b'a'; 70_000].as_slice(), 0o600),
    ] {
        assert_eq!(write(name, content, mode).unwrap_err().to_stable().code, "secret_refused", "{name}");
    }
    let folder = SecretRef::File(directory.path().to_owned()).resolve(&Environment::default()).unwrap_err();
    assert_eq!(folder.to_stable().code, "secret_refused");
    let missing = SecretRef::File(directory.path().join("none")).resolve(&Environment::default()).unwrap_err();
    assert_eq!(missing.to_stable().code, "secret_unreadable");
}

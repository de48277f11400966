//! `palyra tokens`: one from its making to its end, and what it lets in meanwhile.

use std::os::unix::fs::PermissionsExt as _;

use palyra_testkit::{Run, TestContext};

/// A command that shows a token instead of coming by the socket.
fn with(context: &TestContext, secret: &str, arguments: &[&str]) -> Run {
    let address = std::fs::read_to_string(context.state_root().join("http.addr")).unwrap();
    let file = context.file("secret", secret).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    let (endpoint, token) = (format!("http://{}", address.trim()), format!("file:{}", file.display()));
    let all = arguments.iter().copied().chain(["--endpoint", &endpoint, "--token", &token]);
    context.run(all).unwrap()
}

#[test]
fn a_token_is_made_used_rotated_and_revoked() {
    let context = TestContext::new().unwrap();
    let run = context.run(["run", "list the files"]).unwrap();
    assert_eq!(run.code, 0, "{run}");
    let made = context.run(["tokens", "create", "--name", "ci", "--role", "viewer"]).unwrap();
    assert_eq!(made.code, 0, "{made}");
    let secret = made.stdout.trim().to_owned();
    let listed = context.run(["tokens", "list", "--output", "json"]).unwrap().json().unwrap();
    let id = listed["tokens"][0]["token_id"].as_str().unwrap_or_else(|| panic!("{listed}")).to_owned();
    assert!(!listed.to_string().contains(&secret), "the secret is told once");
    assert_eq!(with(&context, &secret, &["runs", "list"]).code, 0);
    let refused = with(&context, &secret, &["run", "list the files"]);
    assert!(refused.code == 3 || refused.code == 6, "a viewer looks: {refused}");
    // The same by the environment: nobody who gives a lesser token is taken for the owner.
    let address = std::fs::read_to_string(context.state_root().join("http.addr")).unwrap();
    let mut command = context.command(["tokens", "list"]).unwrap();
    command.env("PALYRA_ENDPOINT", format!("http://{}", address.trim())).env("PALYRA_TOKEN", &secret);
    let lesser = command.output().unwrap();
    assert!(!lesser.status.success(), "{lesser:?}");

    let rotated = context.run(["tokens", "rotate", &id]).unwrap();
    assert_eq!(rotated.code, 0, "{rotated}");
    let second = rotated.stdout.trim().to_owned();
    assert_ne!(second, secret);
    assert_eq!(with(&context, &secret, &["runs", "list"]).code, 3, "the old secret is worthless");
    assert_eq!(with(&context, &second, &["runs", "list"]).code, 0);

    let revoked = context.run(["tokens", "revoke", &id]).unwrap();
    assert_eq!((revoked.code, revoked.stdout.trim()), (0, format!("Revoked token {id}").as_str()), "{revoked}");
    assert_eq!(with(&context, &second, &["runs", "list"]).code, 3);
    let again = context.run(["tokens", "revoke", "nobody"]).unwrap();
    assert!(again.code == 8 && again.stderr.contains("[token_not_found]"), "{again}");
    context.finish().unwrap();
}

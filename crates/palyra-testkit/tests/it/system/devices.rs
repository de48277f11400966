//! `palyra devices`: what has a certificate, and that one which was taken back opens nothing any more.

use std::time::Instant;

use palyra_client::command::{Command, NoParams};
use palyra_client::quic::{LOCAL_IDENTITY, QuicClient};
use palyra_identity::ClientCredentials;
use palyra_testkit::TestContext;

use super::PATIENCE;

async fn credentials(context: &TestContext, not: Option<&ClientCredentials>) -> ClientCredentials {
    let start = Instant::now();
    loop {
        match ClientCredentials::read(&context.state_root().join(LOCAL_IDENTITY)) {
            Ok(Some(found)) if not.is_none_or(|not| not.identity.device != found.identity.device) => return found,
            _ => assert!(start.elapsed() < PATIENCE, "the daemon issues no certificate"),
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
}

async fn asked_with(context: &TestContext, credentials: &ClientCredentials) -> Result<serde_json::Value, String> {
    let address = std::fs::read_to_string(context.state_root().join("quic.addr")).unwrap();
    let address = address.trim().parse().unwrap();
    let client = QuicClient::connect(address, "localhost", credentials).await.map_err(|error| error.to_string())?;
    client.command(&Command::PrincipalShow(NoParams {})).await.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_revoked_device_is_listed_as_such_and_let_in_no_more() {
    let context = TestContext::new().unwrap();
    let context = context.env("PALYRA_QUIC_ENABLED", "true").env("PALYRA_QUIC_BIND", "127.0.0.1:0");
    let run = context.run(["run", "list the files"]).unwrap();
    assert_eq!(run.code, 0, "{run}");
    let before = credentials(&context, None).await;
    let device = before.identity.device.to_string();
    assert!(asked_with(&context, &before).await.is_ok());
    let listed = context.run(["devices", "list"]).unwrap();
    assert!(listed.code == 0 && listed.stdout.contains(&device) && listed.stdout.contains("owner"), "{listed}");
    assert!(listed.stdout.contains("until ") && !listed.stdout.contains("revoked"), "{listed}");

    let unknown = context.run(["devices", "revoke", "01JC0Q6F7Z8G9H0J1K2M3N4P5Q"]).unwrap();
    assert!(unknown.code == 8 && unknown.stderr.contains("[device_not_found]"), "{unknown}");
    let nonsense = context.run(["devices", "revoke", "mine"]).unwrap();
    assert_eq!(nonsense.code, 2, "{nonsense}");
    let revoked = context.run(["devices", "revoke", &device]).unwrap();
    assert_eq!((revoked.code, revoked.stdout.trim()), (0, format!("Revoked device {device}").as_str()), "{revoked}");
    let refused = asked_with(&context, &before).await.unwrap_err();
    assert!(refused.contains("certificate"), "{refused}");
    let listed = context.run(["devices", "list", "--output", "json"]).unwrap().json().unwrap();
    let of_device = listed["devices"].as_array().unwrap().iter().find(|entry| entry["device_id"] == device.as_str());
    assert!(of_device.unwrap()["certificates"][0]["revoked_at"].is_number(), "{listed}");

    // The owner is another device at once, without a restart.
    let after = credentials(&context, Some(&before)).await;
    assert!(asked_with(&context, &after).await.is_ok());
    let again = context.run(["devices", "revoke", &device]).unwrap();
    assert_eq!(again.code, 0, "{again}");
    let kept = credentials(&context, Some(&before)).await;
    assert_eq!(kept.identity.device, after.identity.device, "taking the same back twice changes nothing");
    context.finish().unwrap();
}

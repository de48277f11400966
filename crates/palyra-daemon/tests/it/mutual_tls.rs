//! Device certificates over HTTPS, shown by clients that are not ours: curl, and Python's own TLS.

use std::path::Path;
use std::process::{Command, Output};

use palyra_client::command::{About, Command as Asked};
use serde_json::Value;

use crate::quic_support::credentials;
use crate::support::{Daemon, Place};

/// Asks who it is, with the certificate in a directory or without one.
fn curl(daemon: &Daemon, identity: Option<&Path>) -> Output {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--show-error", "--max-time", "30", "--cacert"])
        .arg(daemon.state_root.join("identity/ca.pem"));
    if let Some(identity) = identity {
        curl.arg("--cert").arg(identity.join("client.pem")).arg("--key").arg(identity.join("client.key"));
    }
    curl.arg(format!("{}/api/v1/principal", url(daemon))).output().unwrap()
}

fn url(daemon: &Daemon) -> String {
    format!("https://localhost:{}", daemon.address().rsplit_once(':').unwrap().1)
}

fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| panic!("{error}: {output:?}"))
}

/// The same over HTTP/1.1 with what comes with Python, in the oldest version of TLS that is spoken.
const PROGRAM: &str = "
import http.client, json, ssl, sys
port, directory, authority = sys.argv[1:]
context = ssl.create_default_context(cafile=authority)
context.maximum_version = ssl.TLSVersion.TLSv1_2
context.load_cert_chain(directory + '/client.pem', directory + '/client.key')
connection = http.client.HTTPSConnection('localhost', int(port), context=context, timeout=30)
connection.request('GET', '/api/v1/principal')
print(json.dumps(json.load(connection.getresponse())))
";

#[tokio::test]
async fn a_device_shows_its_certificate_instead_of_a_token() {
    let place = Place::new().with("PALYRA_HTTP_TLS", "true");
    let daemon = place.start().await;
    let local = credentials(&daemon).await;
    // A copy, because the owner gets another certificate when this one is taken back.
    let device = place.path().join("device");
    std::fs::create_dir(&device).unwrap();
    for name in ["client.pem", "client.key"] {
        std::fs::copy(daemon.state_root.join("identity/local").join(name), device.join(name)).unwrap();
    }
    let via = format!("http, device {}", local.identity.device);
    let known = json(&curl(&daemon, Some(&device)));
    assert_eq!((&known["role"], &known["via"]), (&"owner".into(), &via.clone().into()), "{known}");
    assert_eq!(json(&curl(&daemon, None))["error"]["code"], "token_refused", "nobody without a certificate");

    let port = daemon.address().rsplit_once(':').unwrap().1.to_owned();
    let python = || {
        let authority = daemon.state_root.join("identity/ca.pem");
        Command::new("python3").args(["-c", PROGRAM, &port]).args([&device, &authority]).output().unwrap()
    };
    assert_eq!(json(&python())["via"], via);

    // A certificate that the device made for itself says nothing.
    let forged = place.path().join("forged");
    std::fs::create_dir(&forged).unwrap();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(forged.join("client.pem"), made.cert.pem()).unwrap();
    std::fs::write(forged.join("client.key"), made.signing_key.serialize_pem()).unwrap();
    let refused = curl(&daemon, Some(&forged));
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");

    let revoke = Asked::DeviceRevoke(About::only(local.identity.device));
    let _: Value = daemon.client.execute(&revoke).await.unwrap();
    let refused = curl(&daemon, Some(&device));
    assert!(!refused.status.success() && refused.stdout.is_empty(), "{refused:?}");
    let refused = python();
    assert!(!refused.status.success(), "{refused:?}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("REVOKED"), "{refused:?}");
}

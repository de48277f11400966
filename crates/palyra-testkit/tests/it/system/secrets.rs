//! Secrets that programs use without ever having them: bound to a host, put in by the proxy, found nowhere inside.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use palyra_common::RunStreamBody;
use palyra_testkit::{DaemonOptions, Model};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio_rustls::TlsAcceptor;

use super::{call, finish, task, workspace};

const SECRET: &str = "s3cr3t-of-the-operator-4711";

/// Asks the server twice, once with a header of its own, then writes everything it can see of itself into a file.
const GUEST: &str = r#"
import os, urllib.request as r
body = r.urlopen("https://localhost:PORT/").read()
print(body.decode())
request = r.Request("https://localhost:PORT/", headers={"Authorization": "Bearer palyra-placeholder-1"})
print(r.urlopen(request).read().decode())
with open("seen", "wb") as seen, open("/proc/self/mem", "rb", 0) as memory:
    seen.write(repr(dict(os.environ)).encode())
    for line in open("/proc/self/maps"):
        span, rights = line.split()[:2]
        start, end = (int(part, 16) for part in span.split("-"))
        if "r" in rights and end - start < 64 << 20:
            try:
                memory.seek(start)
                seen.write(memory.read(end - start))
            except (OSError, ValueError, OverflowError):
                pass
"#;

/// A TLS server that says back which authorisation it was shown, and counts the right ones.
async fn echo(certified: &CertifiedKey<rcgen::KeyPair>) -> (u16, Arc<AtomicUsize>) {
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(certified.signing_key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certified.cert.der().clone()], key)
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let right = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&right);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, counted) = (acceptor.clone(), Arc::clone(&counted));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut head = Vec::new();
                let mut buffer = [0; 1024];
                while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                    match stream.read(&mut buffer).await {
                        Ok(count) if count > 0 => head.extend_from_slice(&buffer[..count]),
                        _ => return,
                    }
                }
                let head = String::from_utf8_lossy(&head).into_owned();
                if head.to_lowercase().contains(&format!("authorization: bearer {SECRET}")) {
                    counted.fetch_add(1, Ordering::SeqCst);
                }
                let body = format!("you sent: {head}");
                let answer =
                    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (port, right)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_uses_a_secret_that_is_nowhere_in_its_sandbox() {
    let certified = generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (port, right) = echo(&certified).await;
    let place = workspace();
    let files = tempfile::TempDir::new().unwrap();
    let authorities = files.path().join("authorities.pem");
    std::fs::write(&authorities, certified.cert.pem()).unwrap();
    let config = files.path().join("palyra.toml");
    let text = format!(
        "version = 1\n[process]\nnetwork = [\"https://localhost:{port}\"]\n\
         credentials = [\"localhost Authorization: Bearer {{env:TEST_API_TOKEN}}\"]\n\
         [egress]\nprivate_hosts = [\"loopback:localhost\"]\nca_file = \"{}\"\n",
        authorities.display()
    );
    std::fs::write(&config, text).unwrap();
    let guest = GUEST.replace("PORT", &port.to_string());
    let script = json!({ "turn": [
        call("palyra.process.run", json!({ "argv": ["python3", "-c", guest] })),
        { "text": "done" },
    ] });
    let options = DaemonOptions::new(Model::Scripted(script)).env("PALYRA_CONFIG", &config);
    let daemon = options.env("TEST_API_TOKEN", SECRET).start().await.unwrap();
    let run = daemon.client().create_run(&task("go", place.path())).await.unwrap();
    let (_, events) = finish(&daemon.client(), run.run_id).await;
    let result = events.iter().find_map(|event| match &event.body {
        RunStreamBody::ToolResult(result) => Some(result.content.clone()),
        _ => None,
    });
    let result = result.unwrap();
    assert!(result.contains("you sent:"), "{result}");
    assert_eq!(right.load(Ordering::SeqCst), 2, "the server was shown the secret both times: {result}");
    assert!(!result.contains(SECRET), "{result}");
    let seen = std::fs::read(place.path().join("seen")).unwrap();
    assert!(seen.len() > 1 << 20, "the program wrote down what it could see: {} bytes", seen.len());
    let has = |wanted: &[u8]| seen.windows(wanted.len()).any(|window| window == wanted);
    assert!(has(b"you sent:"), "the dump holds what the program received");
    assert!(!has(SECRET.as_bytes()), "the secret is in the program's memory or environment");
    daemon.finish().await.unwrap();
}

//! An ordinary program behind the proxy: `curl`, by every door, as it is told by options that any user would write.

use std::path::Path;
use std::process::{Command, Output};

use palyra_common::SecretString;
use palyra_egress::{CredentialBinding, EgressGrant, Intercept, ProxyAccess};

use crate::harness::{SECRET, World, grant};

/// Runs `curl` off the runtime's threads, so that the proxy goes on.
async fn curl(arguments: Vec<String>) -> Output {
    tokio::task::spawn_blocking(move || {
        let mut command = Command::new("curl");
        command.env_clear().args(["--silent", "--show-error", "--max-time", "20"]).args(arguments);
        command.output().expect("`curl` is needed by this test")
    })
    .await
    .unwrap()
}

fn arguments(list: &[&str]) -> Vec<String> {
    list.iter().map(|argument| (*argument).to_owned()).collect()
}

fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

fn write(folder: &Path, name: &str, pem: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, pem).unwrap();
    path.display().to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_gets_out_by_every_door() {
    let world = World::on_loopback().await;
    world.dns.set("echo.example", &["127.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let (http, https) = (
        format!("http://echo.example:{}", world.servers.http.port()),
        format!("https://echo.example:{}", world.servers.https.port()),
    );
    let granted = || -> EgressGrant { grant(&[&http, &https]).private_host("loopback:echo.example").unwrap() };
    let host_authority = write(folder.path(), "host.pem", &world.authority.pem());

    let proxy = world.proxy_with(granted(), ProxyAccess::Token(SecretString::from("let-me-in".to_owned()))).await;
    let port = proxy.address().port();
    let (by_http, by_socks) =
        (format!("http://palyra:let-me-in@127.0.0.1:{port}"), format!("socks5h://palyra:let-me-in@127.0.0.1:{port}"));
    for (door, url) in [(&by_http, &http), (&by_http, &https), (&by_socks, &http), (&by_socks, &https)] {
        let output = curl(arguments(&["--cacert", &host_authority, "--proxy", door, &format!("{url}/some")])).await;
        assert_eq!(String::from_utf8_lossy(&output.stdout), "served by 127.0.0.1", "{door} {url}: {}", text(&output));
    }
    let body = "x".repeat(300_000);
    let upload = write(folder.path(), "upload", &body);
    let output =
        curl(arguments(&["--proxy", &by_http, "--data-binary", &format!("@{upload}"), &format!("{http}/echo")])).await;
    assert!(text(&output).ends_with(&body), "an upload arrives whole");
    let stranger = curl(arguments(&["--proxy", &format!("http://127.0.0.1:{port}"), &http])).await;
    assert!(text(&stranger).contains("access token is missing"), "{}", text(&stranger));
    let refused = curl(arguments(&["--proxy", &by_http, "http://other.example/x"])).await;
    assert!(text(&refused).contains(r#"rules = [\"GET http://other.example/x\"]"#), "{}", text(&refused));
    let refused = curl(arguments(&["--proxy", &by_http, "https://other.example/"])).await;
    assert!(!refused.status.success() && text(&refused).contains("403"), "{}", text(&refused));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn curl_uses_a_secret_it_does_not_know() {
    let world = World::on_loopback().await;
    world.dns.set("echo.example", &["127.0.0.1"]);
    let folder = tempfile::tempdir().unwrap();
    let https = format!("https://echo.example:{}", world.servers.https.port());
    let mut grant = grant(&[&format!("GET {https}/echo")]).private_host("loopback:echo.example").unwrap();
    grant.intercept = Intercept::WhenGranted;
    grant.credentials.push(
        CredentialBinding::header(
            "echo.example",
            "authorization",
            "env:TEST_TOKEN".parse().unwrap(),
            "palyra-placeholder",
        )
        .unwrap(),
    );
    let proxy = world.proxy(grant).await;
    let authority = write(folder.path(), "sandbox.pem", proxy.authority_pem().unwrap());
    let door = format!("http://{}", proxy.address());
    let ask = async |path: &str, authority: &str| {
        curl(arguments(&[
            "--cacert",
            authority,
            "--proxy",
            &door,
            "--user",
            "git:palyra-placeholder",
            "--verbose",
            &format!("{https}{path}"),
        ]))
        .await
    };
    let output = ask("/echo", &authority).await;
    assert!(output.status.success(), "{}", text(&output));
    let heard = text(&output);
    assert!(heard.contains("***") && !heard.contains(SECRET), "{heard}");
    let said = world.servers.visits().await;
    let expected = format!(
        "authorization: Basic {}",
        base64::Engine::encode(&base64::engine::general_purpose::STANDARD, format!("git:{SECRET}"))
    );
    let said = said.iter().map(|visit| String::from_utf8_lossy(&visit.said).into_owned()).collect::<String>();
    assert!(said.contains(&expected), "the host got the secret inside basic authentication: {said}");
    let outside = ask("/admin", &authority).await;
    assert!(text(&outside).contains("path_not_granted"), "{}", text(&outside));
    let host_authority = write(folder.path(), "host.pem", &world.authority.pem());
    assert!(
        !ask("/echo", &host_authority).await.status.success(),
        "only the sandbox's certificate authority vouches for the proxy"
    );
}

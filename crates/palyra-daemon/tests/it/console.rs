//! The console's way in: a token for a cookie, a proof for every change, and nothing for other sites. And guessing, which does not pay.

use serde_json::{Value, json};

use crate::raw::{exchange_with, loopback_json, unix};
use crate::support::{Daemon, Place};

/// Logs in and gives the cookie and the proof.
fn log_in(daemon: &Daemon, token: &str) -> (String, String) {
    let answer = exchange_with(daemon, "POST /console/v1/login", &[], &json!({ "token": token }).to_string());
    assert_eq!(answer.status, 200, "{answer:?}");
    let line = answer.head.lines().find(|line| line.starts_with("set-cookie:")).unwrap();
    // Names and attributes of a cookie are read without regard to case; its value was written in base 64.
    assert!(line.contains("httponly") && line.contains("samesite=strict"), "{line}");
    let csrf = answer.json()["csrf"].as_str().unwrap().to_owned();
    (answer.raw_header("set-cookie").split(';').next().unwrap().trim().to_owned(), csrf)
}

#[tokio::test]
async fn a_cookie_reads_and_a_proof_changes() {
    let place = Place::new();
    let daemon = place.start().await;
    let (cookie, csrf) = log_in(&daemon, &daemon.token());
    let cookie = ("Cookie", cookie.as_str());
    let origin = format!("http://{}", daemon.address());

    let session = exchange_with(&daemon, "GET /console/v1/session", &[cookie], "");
    assert_eq!(session.json()["principal"]["role"], "owner");
    assert_eq!(session.json()["csrf"], Value::String(csrf.clone()));
    assert_eq!(exchange_with(&daemon, "GET /console/v1/sessions", &[cookie], "").status, 200);
    // The cookie opens nothing of what programs use, and no token opens the console.
    assert_eq!(exchange_with(&daemon, "GET /api/v1/sessions", &[cookie], "").refusal(), (401, "token_refused".into()));
    let token = daemon.token();
    assert_eq!(loopback_json(&daemon, "GET /console/v1/sessions", Some(&token), "").status, 401);

    let change = "POST /console/v1/sessions";
    let new = r#"{"title":"from the console"}"#;
    assert_eq!(exchange_with(&daemon, change, &[cookie], new).refusal(), (403, "csrf_refused".into()));
    let wrong = ("X-Palyra-Csrf", "AAAA");
    assert_eq!(exchange_with(&daemon, change, &[cookie, wrong], new).refusal(), (403, "csrf_refused".into()));
    let proof = ("X-Palyra-Csrf", csrf.as_str());
    for elsewhere in ["https://evil.example", "null", "http://127.0.0.1:1"] {
        let answer = exchange_with(&daemon, change, &[cookie, proof, ("Origin", elsewhere)], new);
        assert_eq!(answer.refusal(), (403, "origin_refused".into()), "{elsewhere}");
    }
    let answer = exchange_with(&daemon, change, &[cookie, proof, ("Origin", &origin)], new);
    assert_eq!(answer.json()["title"], "from the console", "{answer:?}");

    assert_eq!(exchange_with(&daemon, "POST /console/v1/logout", &[cookie, proof], "").status, 204);
    assert_eq!(
        exchange_with(&daemon, "GET /console/v1/session", &[cookie], "").refusal(),
        (401, "credential_invalid".into())
    );
}

#[tokio::test]
async fn a_session_ends_with_the_token_that_opened_it() {
    let place = Place::new();
    let daemon = place.start().await;
    let made = unix(&daemon, "POST /api/v1/tokens", br#"{"name":"tablet","role":"viewer"}"#).json();
    let (cookie, csrf) = log_in(&daemon, made["secret"].as_str().unwrap());
    let headers = [("Cookie", cookie.as_str()), ("X-Palyra-Csrf", csrf.as_str())];
    assert_eq!(exchange_with(&daemon, "GET /console/v1/runs", &headers, "").status, 200);
    assert_eq!(exchange_with(&daemon, "POST /console/v1/sessions", &headers, "{}").refusal().1, "command_denied");
    let id = made["token"]["token_id"].as_str().unwrap();
    assert_eq!(unix(&daemon, &format!("POST /api/v1/tokens/{id}/revoke"), b"").status, 200);
    assert_eq!(exchange_with(&daemon, "GET /console/v1/runs", &headers, "").status, 401);
}

#[tokio::test]
async fn guessing_is_slowed_down_and_locks_nobody_out() {
    let place = Place::new();
    let daemon = place.start().await;
    let guess = || loopback_json(&daemon, "GET /api/v1/principal", Some("plyr_0000000000000000_guess"), "").refusal();
    let mut refusals: Vec<_> = (0..40).map(|_| guess()).collect();
    assert_eq!(refusals.remove(0), (401, "token_refused".to_owned()));
    assert_eq!(refusals.last().unwrap(), &(429, "login_throttled".to_owned()));
    // Whoever has a good token does not pay for those who have none.
    assert_eq!(loopback_json(&daemon, "GET /api/v1/principal", Some(&daemon.token()), "").status, 200);
}

//! Web services, played by a small one of our own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, Response, StatusCode};
use axum::routing::post;
use futures::StreamExt as _;
use palyra_mcp::{HttpConfig, McpServer, ServerConfig};
use serde_json::{Value, json};

use crate::place::{Place, call, call_of, echo_works, options, played};

/// How the service speaks.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    /// The newest revision, plain JSON.
    Newest,
    /// The older handshake with a session, answers as events.
    Session,
    /// The older handshake behind a gateway that refuses the probe with a page of text.
    Gateway,
}

#[derive(Clone)]
struct Service {
    manner: Manner,
    sessions: Arc<AtomicUsize>,
}

fn respond(status: StatusCode, kind: &str, body: impl Into<Body>) -> Response<Body> {
    Response::builder().status(status).header("content-type", kind).body(body.into()).unwrap()
}

async fn serve(State(service): State<Service>, headers: HeaderMap, body: String) -> Response<Body> {
    if headers.get("authorization").is_none_or(|value| value != "Bearer token-for-http") {
        return respond(StatusCode::UNAUTHORIZED, "text/plain", "who are you?");
    }
    let message: Value = serde_json::from_str(&body).unwrap();
    let id = &message["id"];
    if id.is_null() {
        return respond(StatusCode::ACCEPTED, "text/plain", "");
    }
    let method = message["method"].as_str().unwrap();
    let result = match (method, service.manner) {
        ("server/discover", Manner::Newest) => json!({
            "resultType": "complete", "supportedVersions": ["2026-07-28"], "ttlMs": 0, "cacheScope": "private",
            "capabilities": { "tools": {} },
        }),
        ("server/discover", Manner::Gateway) => {
            return respond(StatusCode::BAD_REQUEST, "text/html", "<h1>Bad Request</h1>");
        }
        ("initialize", Manner::Session | Manner::Gateway) => {
            service.sessions.fetch_add(1, Ordering::SeqCst);
            json!({ "protocolVersion": "2025-11-25", "capabilities": { "tools": {} }, "serverInfo": { "name": "web", "version": "2" } })
        }
        ("tools/list", _) => {
            let tool =
                |name: &str| json!({ "name": name, "inputSchema": { "type": "object", "properties": { "text": {} } } });
            let tools = ["echo", "huge", "redirect", "hang", "broken"].map(tool);
            json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" })
        }
        ("tools/call", manner) => match message["params"]["name"].as_str().unwrap() {
            "echo" => {
                json!({ "resultType": "complete", "content": [{ "type": "text", "text": message["params"]["arguments"]["text"] }] })
            }
            "huge" => return endless(id, manner),
            "redirect" => {
                let elsewhere = Response::builder().status(307).header("location", "http://127.0.0.1:9/stolen");
                return elsewhere.body(Body::empty()).unwrap();
            }
            "broken" => return respond(StatusCode::INTERNAL_SERVER_ERROR, "text/plain", "x".repeat(1 << 20)),
            _ => {
                let silence = futures::stream::pending::<Result<Vec<u8>, std::io::Error>>();
                return respond(StatusCode::OK, "text/event-stream", Body::from_stream(silence));
            }
        },
        _ => {
            let error =
                json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32601, "message": "Method not found" } });
            return respond(StatusCode::OK, "application/json", error.to_string());
        }
    };
    let answer = json!({ "jsonrpc": "2.0", "id": id, "result": result }).to_string();
    if service.manner != Manner::Session {
        return respond(StatusCode::OK, "application/json", answer);
    }
    let mut response = respond(StatusCode::OK, "text/event-stream", format!(": hello\n\ndata: {answer}\n\n"));
    if method == "initialize" {
        response.headers_mut().insert("mcp-session-id", "s1".parse().unwrap());
    }
    response
}

/// An answer that never ends; whoever reads it without a limit runs out of memory.
fn endless(id: &Value, manner: Manner) -> Response<Body> {
    let (kind, start) = match manner {
        Manner::Session => ("text/event-stream", format!("data: {{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"")),
        _ => ("application/json", format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":\"")),
    };
    let first = futures::stream::once(async move { Ok::<_, std::io::Error>(start.into_bytes()) });
    let rest = futures::stream::repeat_with(|| Ok(vec![b'x'; 64 << 10]));
    respond(StatusCode::OK, kind, Body::from_stream(first.chain(rest)))
}

async fn start(manner: Manner) -> (String, Service) {
    let service = Service { manner, sessions: Arc::default() };
    let router = Router::new().route("/mcp", post(serve)).with_state(service.clone());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, service)
}

async fn pinned(place: &Place, url: &str) -> Arc<McpServer> {
    let headers = BTreeMap::from([("Authorization".to_owned(), "env:PLAYED_TOKEN".parse().unwrap())]);
    let config = ServerConfig::http(HttpConfig { url: url.to_owned(), headers });
    let server = place.registry.add(&played(), &config).unwrap();
    place.registry.pin(&played(), &server.list_tools().await.unwrap()).unwrap();
    server
}

#[tokio::test]
async fn web_services_of_every_manner_are_spoken_to() {
    for (manner, revision) in
        [(Manner::Newest, "2026-07-28"), (Manner::Session, "2025-11-25"), (Manner::Gateway, "2025-11-25")]
    {
        let place = Place::new(options());
        let (url, service) = start(manner).await;
        let server = pinned(&place, &url).await;
        echo_works(&server).await;
        assert_eq!(server.status().protocol.as_deref(), Some(revision));
        assert_eq!(service.sessions.load(Ordering::SeqCst), usize::from(manner != Manner::Newest));
        server.shutdown().await;
    }
}

#[tokio::test]
async fn an_endless_answer_is_cut_at_the_limit() {
    for manner in [Manner::Newest, Manner::Session] {
        let place = Place::new(options());
        let (url, _) = start(manner).await;
        let server = pinned(&place, &url).await;
        let refused = call(&server, "huge", json!({})).await.unwrap_err();
        assert_eq!(refused.code(), "mcp_output_too_large", "{refused}");
        echo_works(&server).await;
    }
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let place = Place::new(options());
    let (url, _) = start(Manner::Newest).await;
    let server = pinned(&place, &url).await;
    let refused = call(&server, "redirect", json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("307"), "{refused}");
    let refused = call(&server, "broken", json!({})).await.unwrap_err();
    assert!(refused.to_string().contains("500"), "{refused}");
    echo_works(&server).await;
}

#[tokio::test]
async fn a_call_without_an_answer_ends_at_its_deadline() {
    for manner in [Manner::Newest, Manner::Session] {
        let place = Place::new(options());
        let (url, _) = start(manner).await;
        let server = pinned(&place, &url).await;
        let mut hanging = call_of("hang", json!({}));
        hanging.deadline = Duration::from_millis(500);
        assert_eq!(server.call(hanging).await.unwrap_err().code(), "mcp_call_timeout");
        echo_works(&server).await;
        let hanging = call_of("hang", json!({}));
        let cancel = hanging.cancel.clone();
        let task = tokio::spawn({
            let server = Arc::clone(&server);
            async move { server.call(hanging).await }
        });
        tokio::time::sleep(Duration::from_millis(200)).await;
        cancel.cancel();
        assert_eq!(task.await.unwrap().unwrap_err().code(), "mcp_call_cancelled");
    }
}

#[tokio::test]
async fn a_service_that_wants_a_key_or_is_not_there_says_so() {
    let place = Place::new(options());
    let (url, _) = start(Manner::Newest).await;
    let config = |url: &str, headers| ServerConfig::http(HttpConfig { url: url.to_owned(), headers });
    let server = place.registry.add(&played(), &config(&url, BTreeMap::new())).unwrap();
    let refused = server.tools().await.unwrap_err();
    assert!(refused.code() == "mcp_connect_failed" && refused.to_string().contains("authorization"), "{refused}");

    place.registry.remove(&played()).unwrap();
    let missing = BTreeMap::from([("Authorization".to_owned(), "env:PLAYED_NOWHERE".parse().unwrap())]);
    let server = place.registry.add(&played(), &config(&url, missing)).unwrap();
    assert_eq!(server.tools().await.unwrap_err().code(), "secret_missing");

    place.registry.remove(&played()).unwrap();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}/mcp", listener.local_addr().unwrap());
    drop(listener);
    let server = place.registry.add(&played(), &config(&nobody, BTreeMap::new())).unwrap();
    assert_eq!(server.tools().await.unwrap_err().code(), "mcp_connect_failed");
}

//! The scripted server itself.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use palyra_models::testing::{ModelServer, Reply};
use palyra_models::{Call, Echo, Message, ModelProvider, OpenAiCompatible, Script, Turn};
use serde_json::json;

use crate::support::{answer, options, request};

#[tokio::test]
async fn a_script_picks_its_turns_by_the_messages() {
    let script = Script::new(vec![Turn::text("whatever")]).when(
        "read a.txt",
        vec![
            Turn::calls(vec![Call::new("palyra.fs.read", json!({"path": "a.txt"}))]),
            Turn { echo: Some(Echo::LastResult), ..Turn::default() },
        ],
    );
    let server = ModelServer::with_script(script).unwrap();
    let provider = OpenAiCompatible::new(options(&server)).unwrap();
    let first = answer(&provider).await.unwrap();
    assert_eq!(first.tool_calls[0].name, "palyra.fs.read");
    // The same question gets the same answer: the server keeps no state of its own.
    assert_eq!(answer(&provider).await.unwrap(), first);

    let mut next = request();
    next.push(Message::assistant("", first.tool_calls.clone()));
    next.push(Message::tool_result(&first.tool_calls[0].id, "palyra.fs.read", "the content"));
    let mut stream = provider.stream(next).await.unwrap();
    futures::StreamExt::next(&mut stream).await.unwrap().unwrap();
    let event = futures::StreamExt::next(&mut stream).await.unwrap().unwrap();
    assert_eq!(event, palyra_models::ModelEvent::TextDelta("the content".to_owned()));
}

#[test]
fn it_speaks_plain_http_and_stops_with_open_connections() {
    let server = ModelServer::start(vec![Reply::text(&["hi"])]).unwrap();
    let address = server.base_url().trim_start_matches("http://").trim_end_matches("/v1").to_owned();
    let mut client = TcpStream::connect(&address).unwrap();
    client.write_all(b"POST /v1/chat/completions HTTP/1.1\r\ncontent-length: 15\r\n\r\n{\"stream\":false}").unwrap();
    let mut seen = String::new();
    let mut buffer = [0; 512];
    while !seen.contains("\r\n0\r\n\r\n") {
        let count = client.read(&mut buffer).unwrap();
        assert!(count > 0, "{seen}");
        seen.push_str(&String::from_utf8_lossy(&buffer[..count]));
    }
    assert!(seen.starts_with("HTTP/1.1 200 "), "{seen}");
    assert!(seen.contains("\"chat.completion\"") && seen.contains("\"hi\""), "{seen}");
    let _idle = TcpStream::connect(&address).unwrap();
    drop(server);
    assert!(TcpStream::connect(&address).is_err(), "the port is closed");
}

//! Images in chats and responses: they reach whoever looks at them, and their conversation is found again.

use serde_json::{Value, json};

use super::wire::{chat, post, runs};
use crate::support::Place;

const SCRIPT: &str = r#"
[[script]]
auxiliary = "vision"
turn = [{ text = '{"observations":["one red dot"],"answer":"It shows a dot.","confidence":0.8}' }]

[[script]]
when = "and now"
turn = [{ text = "still a dot" }]

[[script]]
turn = [{ echo = "user" }]
"#;
/// The beginning of a PNG file is all that anybody here looks at.
const DOT: &str = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAAB";

fn shown(text: &str) -> Value {
    let image = json!({ "type": "image_url", "image_url": { "url": DOT, "detail": "low" } });
    json!({ "role": "user", "content": [{ "type": "text", "text": text }, image] })
}

#[tokio::test]
async fn an_image_is_looked_at_and_its_conversation_goes_on() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    let first = post(&daemon, "chat/completions", &chat(json!([shown("what is it?")])));
    assert_eq!(first.status, 200, "{first:?}");
    let answer = first.json()["choices"][0]["message"]["content"].as_str().unwrap().to_owned();
    assert!(answer.contains("what is it?") && answer.contains("one red dot"), "{answer}");
    let story = json!([
        shown("what is it?"),
        { "role": "assistant", "content": answer },
        { "role": "user", "content": "and now?" },
    ]);
    let next = post(&daemon, "chat/completions", &chat(story)).json();
    assert_eq!(next["choices"][0]["message"]["content"], "still a dot", "{next}");
    let all = runs(&daemon).await;
    assert_eq!((all.len(), all[0].session_id), (2, all[1].session_id), "one conversation");

    let part = json!({ "type": "input_image", "image_url": DOT });
    let request = json!({ "model": "palyra", "input": [{ "role": "user", "content": [part] }] });
    let alone = post(&daemon, "responses", &request);
    assert!(alone.status == 200 && alone.body.contains("one red dot"), "{alone:?}");
}

#[tokio::test]
async fn nothing_is_fetched_and_what_is_no_image_is_refused() {
    let place = Place::new().with_script(SCRIPT);
    let daemon = place.start().await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let address = format!("http://{}/dot.png", listener.local_addr().unwrap());
    for (url, code) in [
        (address.as_str(), "unsupported_parameter"),
        ("data:image/png;base64,???", "request_invalid"),
        ("data:image/png,plain", "request_invalid"),
        ("data:image/png;base64,", "request_invalid"),
        // The bytes tell what it is, and these are no image and no text.
        ("data:image/png;base64,AAECAw==", "file_reference_invalid"),
    ] {
        let content = json!([{ "type": "image_url", "image_url": { "url": url } }]);
        let answer = post(&daemon, "chat/completions", &chat(json!([{ "role": "user", "content": content }])));
        assert!(answer.status >= 400 && answer.status < 500, "{url}: {answer:?}");
        assert_eq!(answer.json()["error"]["code"], code, "{url}: {answer:?}");
    }
    assert!(listener.accept().is_err(), "somebody came for the image");
    assert!(runs(&daemon).await.is_empty());
}

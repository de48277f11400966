//! Responses: at once and in parts, from one to the next, with functions.

use palyra_models::testing::{ModelServer, Reply};
use serde_json::{Value, json};

use super::chat::place;
use super::client_tools::{WEATHER, tools};
use super::wire::{documents, post, post_as, runs, token, unchunked, with};
use crate::raw::{Answer, loopback_json};
use crate::support::{Daemon, Place};

fn asking(input: Value) -> Value {
    let mut request = json!({ "model": "palyra" });
    request["input"] = input;
    request
}

fn get(daemon: &Daemon, path: &str) -> Answer {
    loopback_json(daemon, &format!("GET /v1/{path}"), Some(&daemon.token()), "")
}

/// The functions as responses write them.
fn functions() -> Value {
    let mut function = tools()[0]["function"].clone();
    function["type"] = json!("function");
    json!([function])
}

fn text(response: &Value) -> &str {
    response["output"][0]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{response}"))
}

#[tokio::test]
async fn one_response_goes_on_from_another() {
    let replies = ["first", "second", "other", "fourth"];
    let server = ModelServer::start(replies.iter().map(|text| Reply::text(&[*text])).collect()).unwrap();
    let place = place(&server);
    let daemon = place.start().await;
    let first = post(&daemon, "responses", &with(asking(json!("one")), json!({ "instructions": "be kind" }))).json();
    assert_eq!((first["status"].as_str(), text(&first)), (Some("completed"), "first"));
    assert_eq!(first["instructions"], "be kind");
    let after = |id: &Value, words: &str| with(asking(json!(words)), json!({ "previous_response_id": id }));
    let second = post(&daemon, "responses", &after(&first["id"], "two")).json();
    assert_eq!(text(&second), "second", "{second}");
    assert_eq!(second["previous_response_id"], first["id"]);
    // From an earlier one again: the conversation parts there.
    let other = post(&daemon, "responses", &after(&first["id"], "else")).json();
    assert_eq!(text(&other), "other");
    let all = runs(&daemon).await;
    assert_eq!(all[0].session_id, all[1].session_id);
    assert_ne!(all[0].session_id, all[2].session_id);
    let told: Vec<String> =
        server.requests().last().unwrap().messages().into_iter().map(|message| message.content).collect();
    assert!(told.iter().any(|text| text == "first") && !told.iter().any(|text| text == "second"), "{told:?}");

    let mallory = token(&daemon, &json!({ "name": "m", "role": "operator", "subject": "user:mallory" }));
    let refused = post_as(&daemon, &mallory, "responses", &after(&first["id"], "tell me"));
    assert_eq!(refused.refusal(), (404, "response_not_found".to_owned()));
    let refused = post(&daemon, "responses", &after(&json!("resp_68af4030"), "tell me"));
    assert_eq!(refused.refusal(), (404, "response_not_found".to_owned()));
}

#[tokio::test]
async fn a_response_is_announced_filled_and_closed_part_by_part() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let asked = with(asking(json!("how is the weather?")), json!({ "tools": functions(), "stream": true }));
    let stream = unchunked(&post(&daemon, "responses", &asked));
    let events = documents(&stream);
    let names: Vec<&str> = events.iter().map(|event| event["type"].as_str().unwrap()).collect();
    let call = [
        "response.output_item.added",
        "response.function_call_arguments.delta",
        "response.function_call_arguments.done",
        "response.output_item.done",
    ];
    let mut expected = vec![
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
    ];
    expected.extend(call.iter().chain(&call));
    expected.push("response.completed");
    assert_eq!(names, expected);
    assert!(events.iter().map(|event| event["sequence_number"].as_u64().unwrap()).eq(0..events.len() as u64));
    assert!(stream.lines().filter(|line| line.starts_with("event: ")).count() == events.len());
    let whole = &events.last().unwrap()["response"];
    let output = whole["output"].as_array().unwrap();
    assert_eq!(
        output.iter().map(|item| item["type"].as_str().unwrap()).collect::<Vec<_>>(),
        ["message", "function_call", "function_call"]
    );
    let added: Vec<u64> = events
        .iter()
        .filter(|event| event["type"] == "response.output_item.added")
        .map(|event| event["output_index"].as_u64().unwrap())
        .collect();
    assert_eq!(added, [0, 1, 2]);

    let output_of = |index: usize, text: &str| json!({ "type": "function_call_output", "call_id": output[index]["call_id"], "output": text });
    let results = asking(json!([output_of(1, "sunny"), output_of(2, "rain")]));
    let after = with(results, json!({ "previous_response_id": whole["id"], "tools": functions() }));
    let answer = post(&daemon, "responses", &after).json();
    assert_eq!(text(&answer), "Brno: sunny, Graz: rain.");
    assert_ne!(answer["id"], whole["id"]);
    assert_eq!(runs(&daemon).await.len(), 1);

    // Each of them is read again from the tape: the one that asked for calls, and the one that answered.
    let asked_again = get(&daemon, &format!("responses/{}", whole["id"].as_str().unwrap())).json();
    assert_eq!((&asked_again["status"], &asked_again["output"]), (&json!("completed"), &whole["output"]));
    let again = get(&daemon, &format!("responses/{}", answer["id"].as_str().unwrap())).json();
    assert_eq!((&again["output"], &again["usage"]), (&answer["output"], &answer["usage"]));
}

#[tokio::test]
async fn a_response_is_found_by_whoever_asked_for_it_and_by_nobody_else() {
    let place = Place::new()
        .with_script("[[turn]]\n[[turn.call]]\ntool = \"palyra.fs.write\"\narguments = { path = \"a\", content = \"\" }\n[[turn]]\ntext = \"done\"")
        .with("PALYRA_RUN_ASK_BEFORE", "palyra.fs.write")
        .with("PALYRA_OPENAI_APPROVAL_WAIT_SECONDS", "1");
    let daemon = place.start().await;
    assert_eq!(post(&daemon, "responses", &asking(json!("write it"))).status, 409, "a person is waited for");
    let run = runs(&daemon).await.remove(0);
    let name = format!("responses/resp_{}_1", run.run_id);
    let under_way = get(&daemon, &name).json();
    assert_eq!((&under_way["status"], &under_way["output"]), (&json!("in_progress"), &json!([])));
    daemon.client.abort_run(run.run_id, &palyra_client::api::AbortRunParams::default()).await.unwrap();
    daemon.follow(run.run_id, 1).await;
    let over = get(&daemon, &name).json();
    assert_eq!(over["status"], "failed");
    assert!(over["error"]["message"].as_str().unwrap().contains(&run.run_id.to_string()), "{over}");

    let mallory = token(&daemon, &json!({ "name": "m", "role": "operator", "subject": "mallory" }));
    let stranger = loopback_json(&daemon, &format!("GET /v1/{name}"), Some(&mallory), "");
    assert_eq!((stranger.status, stranger.json()["error"]["code"].clone()), (404, json!("response_not_found")));
    for unknown in ["x", "resp_x_1", &format!("resp_{}_0", run.run_id), &format!("resp_{}_99999", run.run_id), "%ff"] {
        let answer = get(&daemon, &format!("responses/{unknown}"));
        assert_eq!(
            (answer.status, answer.json()["error"]["code"].clone()),
            (404, json!("response_not_found")),
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn a_response_that_fails_says_so_in_its_stream() {
    let script = "[[turn]]\ntext = [\"half \"]\nerror = { class = \"permanent\", message = \"no such model\" }";
    let place = Place::new().with_script(script);
    let daemon = place.start().await;
    let events =
        documents(&unchunked(&post(&daemon, "responses", &with(asking(json!("x")), json!({ "stream": true })))));
    let last = events.last().unwrap();
    assert_eq!(last["type"], "response.failed");
    assert_eq!(last["response"]["status"], "failed");
    assert!(last["response"]["error"]["message"].as_str().unwrap().contains("no such model"), "{last}");
    let refused = post(&daemon, "responses", &asking(json!("x")));
    assert_eq!(refused.refusal(), (502, "run_without_answer".to_owned()));
}

#[tokio::test]
async fn items_of_ours_are_named_instead_of_sent_again() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let question = json!({ "role": "user", "content": "how is the weather?" });
    let asked = with(asking(json!([question])), json!({ "tools": functions() }));
    let first = post(&daemon, "responses", &asked).json();
    let mut input = vec![question];
    for item in first["output"].as_array().unwrap() {
        input.push(json!({ "type": "item_reference", "id": item["id"] }));
    }
    for (index, result) in [(1, "sunny"), (2, "rain")] {
        let call = &first["output"][index]["call_id"];
        input.push(json!({ "type": "function_call_output", "call_id": call, "output": result }));
    }
    let second = post(&daemon, "responses", &with(asking(json!(input)), json!({ "tools": functions() }))).json();
    assert_eq!(text(&second), "Brno: sunny, Graz: rain.", "{second}");
    assert_eq!(runs(&daemon).await.len(), 1);

    // The text of a message that is named is the text that was said: the conversation goes on in its session.
    let hello = post(&daemon, "responses", &asking(json!("hello"))).json();
    let named = json!([
        { "role": "user", "content": "hello" },
        { "type": "item_reference", "id": hello["output"][0]["id"] },
        { "role": "user", "content": "and now?" },
    ]);
    assert_eq!(text(&post(&daemon, "responses", &asking(named.clone())).json()), "something else");
    let all = runs(&daemon).await;
    assert_eq!(all[1].session_id, all[2].session_id);

    let mallory = token(&daemon, &json!({ "name": "m", "role": "operator", "subject": "mallory" }));
    let refused = post_as(&daemon, &mallory, "responses", &asking(named));
    assert_eq!(refused.refusal(), (404, "response_not_found".to_owned()));
    for unknown in ["msg_68af40305", "rs_1", "fc_1", "msg_01JC0Q6F7Z8G9H0J1K2M3N4P5Q_1"] {
        let item = json!([{ "type": "item_reference", "id": unknown }, { "role": "user", "content": "x" }]);
        assert_eq!(
            post(&daemon, "responses", &asking(item)).refusal(),
            (404, "response_not_found".to_owned()),
            "{unknown}"
        );
    }
}

#[tokio::test]
async fn a_response_of_before_is_read_again_in_parts() {
    let place = Place::new().with_script(WEATHER);
    let daemon = place.start().await;
    let asked = with(asking(json!("how is the weather?")), json!({ "tools": functions(), "stream": true }));
    let told = documents(&unchunked(&post(&daemon, "responses", &asked)));
    let id = told[0]["response"]["id"].as_str().unwrap();
    let again = documents(&unchunked(&get(&daemon, &format!("responses/{id}?stream=true&include_obfuscation=false"))));
    let last = |events: &[Value]| events.last().unwrap()["response"]["output"].clone();
    assert_eq!(again.last().unwrap()["type"], "response.completed");
    assert_eq!(last(&again), last(&told));
    assert_eq!(get(&daemon, &format!("responses/{id}?stream=false")).json()["id"], id);
    for (query, param) in
        [("starting_after=3", "starting_after"), ("stream=maybe", "stream"), ("include[]=x", "include[]")]
    {
        let refused = get(&daemon, &format!("responses/{id}?{query}"));
        assert_eq!(refused.status, 400, "{query}");
        assert_eq!(refused.json()["error"]["param"], param);
    }
}

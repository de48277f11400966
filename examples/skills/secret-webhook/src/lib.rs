//! A message to a webhook. The token is named, the host puts it in, and the component has no import that could read it.

use palyra_plugins_sdk::http::Request;
use palyra_plugins_sdk::secret::Secret;
use palyra_plugins_sdk::{Failure, serde_json, tool_plugin};
use serde::{Deserialize, Serialize};

mod tools;

tool_plugin! {
    tools::TOOLS;
    "post" => post,
}

const WEBHOOK: &str = "https://hooks.example.com/v1/messages";

#[derive(Deserialize, Serialize)]
struct Message {
    message: String,
}

#[derive(Deserialize, Serialize)]
struct Posted {
    id: String,
}

fn post(message: Message) -> Result<Posted, Failure> {
    let token = Secret::named("webhook-token")?;
    let body = serde_json::to_vec(&message).map_err(Failure::failed)?;
    let response =
        Request::post(WEBHOOK, body).header("content-type", "application/json").bearer(&token).send()?;
    match response.status {
        200..=299 => serde_json::from_slice(&response.body)
            .map_err(|error| Failure::failed(format!("the webhook answered something else: {error}"))),
        401 | 403 => Err(Failure::failed("the webhook does not accept the token; set another one")),
        status => Err(Failure::failed(format!("the webhook answered {status}"))),
    }
}

//! The tools of this skill, one function each.

use palyra_plugins_sdk::{Failure, tool_plugin};
use serde::{Deserialize, Serialize};

mod tools;

tool_plugin! {
    tools::TOOLS;
    "greet" => greet,
}

#[derive(Deserialize)]
struct Person {
    name: String,
}

#[derive(Serialize)]
struct Greeting {
    greeting: String,
}

fn greet(person: Person) -> Result<Greeting, Failure> {
    if person.name.is_empty() {
        return Err(Failure::invalid_input("the name is empty"));
    }
    Ok(Greeting { greeting: format!("Hello, {}!", person.name) })
}

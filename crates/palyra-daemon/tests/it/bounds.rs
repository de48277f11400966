//! The bounds in the description are the ones that are enforced: what lies on a bound is taken, what lies beyond it is refused by the name of its field, and where the
//! description gives no bound nothing is refused for its size.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::raw::{Answer, unix};
use crate::support::{Daemon, Place};

/// Fields that hold bytes.
const ENCODED: [&str; 2] = ["data", "module"];

/// A number or a text in a request.
struct Field {
    /// As it is written: a query parameter, or a property of the body with those around it.
    place: Spot,
    schema: Value,
    /// What has to be around it, for a field of a part of the body.
    part: Value,
}

enum Spot {
    Query(String),
    Body(Vec<String>),
}

impl Field {
    /// As refusals name it.
    fn name(&self) -> String {
        match &self.place {
            Spot::Query(name) => name.clone(),
            Spot::Body(path) => path.join("."),
        }
    }

    /// Values, and whether each is to be taken.
    fn probes(&self) -> Vec<(Value, bool)> {
        let bound = |name: &str| self.schema.get(name).and_then(Value::as_u64);
        let mut probes = Vec::new();
        if is(&self.schema, "integer") {
            let least = bound("minimum").unwrap_or_default();
            probes.push((json!(least), true));
            if let Some(below) = least.checked_sub(1) {
                probes.push((json!(below), false));
            }
            match bound("maximum") {
                Some(most) => probes.extend([(json!(most), true), (json!(most + 1), false)]),
                None if self.schema["format"] == "uint32" => probes.push((json!(u32::MAX), true)),
                None if self.schema["format"] == "int32" => probes.push((json!(i32::MAX), true)),
                None => probes.push((json!(i64::MAX), true)),
            }
        } else {
            let text = |length: u64| {
                let length = usize::try_from(length).unwrap();
                // What is bytes is written in Base64.
                json!(if ENCODED.contains(&self.name().as_str()) {
                    "A".repeat(length - 2) + "=="
                } else {
                    "x".repeat(length)
                })
            };
            if let Some(most) = bound("maxLength") {
                probes.extend([(text(most), true), (text(most + 1), false)]);
            }
            if bound("minLength") == Some(1) {
                probes.push((json!(""), false));
            }
        }
        probes
    }
}

fn is(schema: &Value, kind: &str) -> bool {
    match &schema["type"] {
        Value::Array(kinds) => kinds.iter().any(|found| found == kind),
        found => found == kind,
    }
}

/// The document, and things that there are.
struct Description {
    document: Value,
    run_id: String,
    session_id: String,
}

impl Description {
    fn resolved(&self, schema: &Value) -> Value {
        match schema["$ref"].as_str() {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap();
                self.resolved(&self.document["components"]["schemas"][name])
            }
            None => schema.clone(),
        }
    }

    /// Something that fits, with what is required and no more.
    fn sample(&self, schema: &Value) -> Value {
        let schema = self.resolved(schema);
        if let Some(choice) = schema.get("const").or_else(|| schema["enum"].get(0)) {
            return choice.clone();
        }
        for several in ["anyOf", "oneOf"] {
            if let Some(first) = schema[several].get(0) {
                return self.sample(first);
            }
        }
        if is(&schema, "object") {
            let required = schema["required"].as_array().cloned().unwrap_or_default();
            let names = required.iter().filter_map(Value::as_str);
            let sampled = names.map(|name| (name.to_owned(), self.sample_of(name, &schema["properties"][name])));
            return sampled.collect::<Map<_, _>>().into();
        }
        if is(&schema, "array") {
            return json!([]);
        }
        if is(&schema, "boolean") {
            return json!(false);
        }
        if is(&schema, "integer") {
            return schema.get("minimum").cloned().unwrap_or(json!(1));
        }
        match schema["pattern"].as_str() {
            Some(pattern) if pattern.contains("sha256") => json!(format!("sha256:{}", "0".repeat(64))),
            Some(pattern) if pattern.contains("{26}") => json!("01ARZ3NDEKTSV4RRFFQ69G5FAV"),
            _ => json!("x"),
        }
    }

    /// The same for a property, some of which are names of things.
    fn sample_of(&self, name: &str, schema: &Value) -> Value {
        match name {
            "run_id" => json!(self.run_id),
            "session_id" => json!(self.session_id),
            name if ENCODED.contains(&name) => json!(""),
            _ => self.sample(schema),
        }
    }

    /// The least that an operation takes.
    fn body(&self, operation: &Value) -> Option<Value> {
        let schema = &operation["requestBody"]["content"]["application/json"]["schema"];
        let mut body = schema.is_object().then(|| self.sample(schema))?;
        if operation["operationId"] == "run.create" {
            // The number of attempts needs one.
            body["objective"] = json!("it is done");
        }
        Some(body)
    }

    fn fields(&self, operation: &Value) -> Vec<Field> {
        let mut fields = Vec::new();
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let schema = self.resolved(&parameter["schema"]);
            if parameter["in"] == "query" && is(&schema, "integer") {
                let place = Spot::Query(parameter["name"].as_str().unwrap().to_owned());
                fields.push(Field { place, schema, part: Value::Null });
            }
        }
        let body = &operation["requestBody"]["content"]["application/json"]["schema"];
        self.properties(body, &[], &mut fields);
        fields
    }

    fn properties(&self, schema: &Value, inside: &[String], fields: &mut Vec<Field>) {
        let schema = self.resolved(schema);
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let mut resolved = self.resolved(property);
            // What may be absent is a choice between it and nothing.
            if let Some(first) = resolved["anyOf"].get(0) {
                resolved = self.resolved(first);
            }
            let path = [inside, std::slice::from_ref(name)].concat();
            if is(&resolved, "integer") || (is(&resolved, "string") && resolved.get("pattern").is_none()) {
                fields.push(Field { place: Spot::Body(path), schema: resolved, part: self.sample(&schema) });
            } else if is(&resolved, "object") && inside.is_empty() {
                self.properties(&resolved, &path, fields);
            }
        }
    }
}

/// Sends a request with one field set.
fn send(daemon: &Daemon, method: &str, path: &str, body: Option<&Value>, field: &Field, value: &Value) -> Answer {
    match &field.place {
        Spot::Query(name) => unix(daemon, &format!("{method} {path}?{name}={value}"), b""),
        Spot::Body(names) => {
            let mut body = body.cloned().unwrap_or_else(|| json!({}));
            match names.as_slice() {
                [part, name] => {
                    body[part] = field.part.clone();
                    body[part][name] = value.clone();
                }
                [name] => body[name] = value.clone(),
                other => panic!("too deep: {other:?}"),
            }
            unix(daemon, &format!("{method} {path}"), body.to_string().as_bytes())
        }
    }
}

/// Whether an answer refuses a field by its name.
fn refuses(answer: &Answer, name: &str) -> bool {
    if !(400..500).contains(&answer.status) {
        return false;
    }
    let error = answer.json()["error"].clone();
    // Refusals of whole things name the field in words, and those of a part by its name within the part.
    let named = error["message"].as_str().is_some_and(|message| message.starts_with(&format!("invalid `{name}` ")));
    let within = name.rsplit('.').next().unwrap();
    let mut fields = error["validation_errors"].as_array().into_iter().flatten().map(|error| &error["field"]);
    named || fields.any(|field| field == name || field == within)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bounds_of_the_description_are_those_that_are_enforced() {
    let place = Place::new().with_script("[[turn]]\ntext = \"done\"");
    let daemon = place.start().await;
    let run = daemon.create("hello").await;
    daemon.follow(run.run_id, 1).await;
    let (run_id, session_id) = (run.run_id.to_string(), run.session_id.to_string());
    let document = unix(&daemon, "GET /openapi.json", b"").json();
    let description = Description { document, run_id, session_id };
    let (mut wrong, mut compared, mut out_of_reach) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for (path, operations) in description.document["paths"].as_object().unwrap() {
        if !path.starts_with("/api/v1/") {
            continue;
        }
        let path = path.replace("{run_id}", &description.run_id).replace("{session_id}", &description.session_id);
        for (method, operation) in operations.as_object().unwrap() {
            let method = method.to_uppercase();
            let body = description.body(operation);
            for field in description.fields(operation) {
                let what = format!("{method} {path} {}", field.name());
                let probes = field.probes();
                if probes.is_empty() {
                    continue;
                }
                if path.contains('{') {
                    out_of_reach.insert(what);
                    continue;
                }
                let send = |value: &Value| send(&daemon, &method, &path, body.as_ref(), &field, value);
                let answers: Vec<_> = probes.iter().map(|(value, fits)| (value, *fits, send(value))).collect();
                // What is refused for something else says nothing about what lies beyond the bounds.
                let refused = |answer: &Answer| refuses(answer, &field.name());
                let reached = answers.iter().any(|(_, fits, answer)| *fits && answer.status < 400 || refused(answer));
                if !reached {
                    out_of_reach.insert(what);
                    continue;
                }
                for (value, fits, answer) in &answers {
                    if refused(answer) == *fits {
                        let (value, told) = (shortened(&value.to_string(), 40), shortened(&answer.body, 300));
                        wrong.push(format!("{what} = {value}: {} {told}", answer.status));
                    }
                }
                compared.insert(what);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared.len() >= 30, "{compared:#?}");
    // Fields of things that are not there; more of them would be a gap in this test.
    assert!(out_of_reach.len() <= compared.len(), "{out_of_reach:#?}");
}

fn shortened(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

//! The description of the HTTP API (OpenAPI 3.1), made from the catalogue of commands and the wire types themselves.
//!
//! Nothing is written twice: an address, a parameter or a field that changes in Rust changes here. The daemon serves it, the web console's types
//! are generated from it, and outside tools drive the daemon by it.

mod canvas;
mod openai;
mod operation;
mod parameters;

use palyra_common::{AcpCommandEnvelope, AcpCommandResultEnvelope, BuildInfo};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::api::{AddAttachmentsResponse, BriefHealthResponse, ErrorResponse, HealthResponse, ReadyResponse, paths};
use crate::command::{COMMANDS, STREAM_COMMANDS};

pub use operation::REFUSALS;

use self::operation::{Answer, Operation};

/// The whole description.
#[must_use]
pub fn document() -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .into_generator();
    let mut all = Paths::default();
    for spec in COMMANDS {
        let result = (spec.result)(&mut generator).into();
        all.add(spec.path, Operation::of(spec, &mut generator).build(Answer::Json(result)));
    }
    for spec in STREAM_COMMANDS {
        let document = (spec.result)(&mut generator).into();
        all.add(spec.path, Operation::of(spec, &mut generator).build(Answer::Lines(document)));
    }
    others(&mut all, &mut generator);
    let error: Value = generator.subschema_for::<ErrorResponse>().into();
    let schemas = generator.take_definitions(true);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Palyra",
            "version": BuildInfo::current().version,
            "description": "The control API of the Palyra daemon. Every operation is a command of the Agent Control Protocol.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "http://127.0.0.1:7142", "description": "the local daemon"}],
        "security": [{"bearer": []}],
        "paths": all.0,
        "components": {
            "schemas": schemas,
            "responses": {
                "Refusal": {"description": "Why the request failed.", "content": {"application/json": {"schema": error}}},
                "OpenAiRefusal": openai::refusal(),
            },
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer", "description": "The local token or an API token."},
            },
        },
    })
}

/// What is served and is no command of its own.
fn others(all: &mut Paths, generator: &mut SchemaGenerator) {
    let whole: Value = generator.subschema_for::<HealthResponse>().into();
    let brief: Value = generator.subschema_for::<BriefHealthResponse>().into();
    let summary = "Health of the daemon and of its parts; without a credential only whether it is healthy.";
    all.add(paths::HEALTH, ("get", operation::open("health", summary, &json!({"anyOf": [whole, brief]}))));
    let ready: Value = generator.subschema_for::<ReadyResponse>().into();
    all.add(paths::READY, ("get", operation::ready(&ready)));
    all.add(paths::METRICS, ("get", operation::metrics()));
    openai::add(all);
    canvas::add(all);
    let envelope: Value = generator.subschema_for::<AcpCommandEnvelope>().into();
    let result: Value = generator.subschema_for::<AcpCommandResultEnvelope>().into();
    all.add(paths::ACP_COMMAND, ("post", operation::envelope(&envelope, &result)));
    let stored: Value = generator.subschema_for::<AddAttachmentsResponse>().into();
    all.add(paths::ATTACHMENT_FORM, ("post", operation::form(&stored)));
    all.add(paths::RUN_EVENTS, ("get", operation::events(generator)));
}

/// Operations by address and method.
#[derive(Default)]
struct Paths(Map<String, Value>);

impl Paths {
    fn add(&mut self, path: &str, (method, operation): (&str, Value)) {
        let methods = self.0.entry(path).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(methods) = methods {
            methods.insert(method.to_owned(), operation);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_reference_leads_somewhere_and_ids_are_unique() {
        let document = document();
        let schemas = document["components"]["schemas"].as_object().unwrap();
        let mut references = Vec::new();
        collect(&document, &mut references);
        assert!(references.len() > 100);
        for reference in references {
            let Some(name) = reference.strip_prefix("#/components/schemas/") else {
                let responses = ["#/components/responses/Refusal", "#/components/responses/OpenAiRefusal"];
                assert!(responses.contains(&reference.as_str()), "{reference} leads nowhere");
                continue;
            };
            assert!(schemas.contains_key(name), "{reference} leads nowhere");
        }
        let mut ids = BTreeSet::new();
        for methods in document["paths"].as_object().unwrap().values() {
            for operation in methods.as_object().unwrap().values() {
                let id = operation["operationId"].as_str().unwrap();
                assert!(ids.insert(id.to_owned()), "{id} twice");
            }
        }
        assert_eq!(ids.len(), COMMANDS.len() + STREAM_COMMANDS.len() + 16);
    }

    fn collect(value: &Value, into: &mut Vec<String>) {
        match value {
            Value::Object(fields) => {
                if let Some(Value::String(reference)) = fields.get("$ref") {
                    into.push(reference.clone());
                }
                fields.values().for_each(|value| collect(value, into));
            }
            Value::Array(items) => items.iter().for_each(|value| collect(value, into)),
            _ => {}
        }
    }
}

use serde_json::json;

use super::*;

fn portable(schema: &Value) -> (Value, Vec<String>) {
    let Normalised { schema, losses } = input("t", schema, SchemaDialect::Portable);
    (schema, losses.iter().map(|loss| format!("{} {}", loss.pointer, loss.keyword)).collect())
}

/// A property of this schema, as a portable wire is told of it, and what is lost.
fn property(schema: &Value) -> (Value, Vec<String>) {
    let (written, losses) = portable(&json!({"type": "object", "properties": {"a": schema}}));
    (written["properties"]["a"].clone(), losses)
}

#[test]
fn every_keyword_that_converters_stumble_over_has_a_portable_form() {
    let any = json!(["string", "number", "boolean", "object", "array", "null"]);
    let table: Vec<(Value, Value, &[&str])> = vec![
        (json!(true), json!({}), &[]),
        (json!({}), json!({}), &[]),
        (json!({"description": "d"}), json!({"description": "d", "type": any}), &[]),
        (json!({"type": "array", "items": true}), json!({"type": "array", "items": {}}), &[]),
        (json!({"type": "array"}), json!({"type": "array", "items": {}}), &[]),
        (json!({"items": {"uniqueItems": true}}), json!({}), &["/properties/a/items uniqueItems"]),
        (json!({"type": ["string", "null"]}), json!({"type": ["string", "null"]}), &[]),
        (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]}), &[]),
        (json!({"type": []}), json!({}), &["/properties/a type"]),
        (json!({"type": "file"}), json!({}), &["/properties/a type"]),
        (json!({"const": "x"}), json!({"type": "string", "enum": ["x"]}), &[]),
        (json!({"const": "x", "additionalProperties": false}), json!({"type": "string", "enum": ["x"]}), &[]),
        (json!({"enum": [1, "x", null]}), json!({"enum": [1, "x", null]}), &[]),
        (json!({"enum": []}), json!({}), &["/properties/a enum"]),
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "integer"}]}, "maxItems": 2}),
            &["/properties/a prefixItems"],
        ),
        (
            json!({"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "null"}}),
            json!({"type": "array", "items": {"anyOf": [{"type": "string"}, {"type": "null"}]}}),
            &["/properties/a prefixItems"],
        ),
        (json!({"type": "string", "pattern": "^a$"}), json!({"type": "string"}), &["/properties/a pattern"]),
        (json!({"type": "string", "format": "uri"}), json!({"type": "string"}), &["/properties/a format"]),
        (json!({"type": "string", "maxLength": 80}), json!({"type": "string", "maxLength": 80}), &[]),
        (json!({"type": "string", "maxLength": 65536}), json!({"type": "string"}), &["/properties/a maxLength"]),
        (json!({"type": "string", "maxLength": 10.0}), json!({"type": "string", "maxLength": 10}), &[]),
        (json!({"type": "string", "maxLength": -1}), json!({"type": "string"}), &["/properties/a maxLength"]),
        (
            json!({"type": "integer", "exclusiveMinimum": 0, "maximum": u64::MAX}),
            json!({"type": "integer", "minimum": 1}),
            &["/properties/a maximum"],
        ),
        (
            json!({"type": "integer", "minimum": 9, "maximum": 1}),
            json!({"type": "integer"}),
            &["/properties/a maximum", "/properties/a minimum"],
        ),
        (json!({"type": "string", "not": {"const": "a"}}), json!({"type": "string"}), &["/properties/a not"]),
        (
            json!({"if": {"type": "string"}, "then": {"minLength": 1}}),
            json!({}),
            &["/properties/a if", "/properties/a then"],
        ),
        (
            json!({"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": false}),
            json!({"type": "object", "additionalProperties": {"type": "string"}}),
            &["/properties/a patternProperties"],
        ),
        (
            json!({"oneOf": [{"const": "a"}, {"type": "integer"}]}),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "integer"}]}),
            &["/properties/a oneOf"],
        ),
        (
            json!({"type": "string", "anyOf": [{"enum": ["a"]}, {"minLength": 3}]}),
            json!({"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "minLength": 3}]}),
            &[],
        ),
        (
            json!({"type": "object", "properties": {"b": {"type": "string"}}, "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}),
            json!({"type": "object", "properties": {"b": {"type": "string"}}}),
            &["/properties/a anyOf"],
        ),
        (
            json!({"allOf": [{"type": "object", "properties": {"b": {"type": "string"}}}, {"properties": {"c": true}, "required": ["c"]}]}),
            json!({"type": "object", "properties": {"b": {"type": "string"}, "c": {}}, "required": ["c"]}),
            &[],
        ),
        (json!({"$ref": "https://example.org/x"}), json!({}), &["/properties/a $ref"]),
        (json!(null), json!({}), &["/properties/a schema"]),
        (
            json!({"type": "array", "items": {"type": "string"}, "minItems": 5, "maxItems": 1}),
            json!({"type": "array", "items": {"type": "string"}}),
            &["/properties/a maxItems", "/properties/a minItems"],
        ),
    ];
    for (schema, written, lost) in table {
        assert_eq!(property(&schema), (written, lost.iter().map(|&one| one.to_owned()).collect()), "{schema}");
    }
}

#[test]
fn a_property_that_may_not_be_there_is_not_mentioned() {
    let (written, lost) = portable(&json!({"type": "object", "properties": {"a": false, "b": {"type": "null"}}}));
    assert_eq!(written, json!({"type": "object", "properties": {"b": {"type": "null"}}}));
    assert_eq!(lost, ["/properties/a false"]);
}

#[test]
fn references_are_put_in_place_and_circles_are_cut() {
    let (written, lost) = portable(&json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$defs": {
            "p": {"type": "string", "description": "old"},
            "q": {"$ref": "#/$defs/p"},
            "a/b": {"type": "integer"},
            "tree": {"type": "object", "properties": {"left": {"$ref": "#/$defs/tree"}}},
        },
        "type": "object",
        "properties": {
            "a": {"$ref": "#/$defs/q", "description": "new"},
            "b": {"$ref": "#/$defs/a~1b"},
            "definitions": {"type": "null"},
            "t": {"$ref": "#/$defs/tree"},
            "whole": {"$ref": "#"},
        },
    }));
    assert_eq!(written["properties"]["a"], json!({"type": "string", "description": "new"}));
    assert_eq!(written["properties"]["b"], json!({"type": "integer"}));
    assert_eq!(written["properties"]["definitions"], json!({"type": "null"}));
    assert_eq!(written["properties"]["t"], json!({"type": "object", "properties": {"left": {}}}));
    assert_eq!(written["properties"]["whole"]["properties"]["whole"], json!({}));
    assert!(lost.contains(&"/properties/t/properties/left $ref".to_owned()), "{lost:?}");
}

#[test]
fn definitions_that_grow_without_measure_end() {
    // Each definition holds the next one twice: small to write, 2^40 to spell out.
    let mut definitions = serde_json::Map::new();
    for n in 0..40 {
        let next = format!("#/$defs/d{}", n + 1);
        definitions.insert(
            format!("d{n}"),
            json!({"type": "object", "properties": {"l": {"$ref": next}, "r": {"$ref": next}}}),
        );
    }
    definitions.insert("d40".into(), json!({"type": "string"}));
    let (written, lost) = portable(&json!({"$defs": definitions, "$ref": "#/$defs/d0"}));
    assert!(written.to_string().len() < 200_000);
    assert!(lost.iter().any(|one| one.ends_with("depth")), "{}", lost.len());
    let mut deep = json!({"type": "string"});
    for _ in 0..100 {
        deep = json!({"type": "array", "items": deep});
    }
    portable(&json!({"type": "object", "properties": {"a": deep}}));
}

#[test]
fn arguments_are_an_object_whatever_the_schema_says() {
    let empty = json!({"type": "object", "properties": {}});
    for schema in [json!(true), json!({}), json!({"type": "string"}), json!(null), json!({"type": "object"})] {
        assert_eq!(portable(&schema).0, empty, "{schema}");
    }
    let (written, lost) = portable(&json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"const": "a"}, "x": {"type": "integer"}}, "required": ["kind", "x"], "additionalProperties": false},
        {"type": "object", "properties": {"kind": {"const": "b"}, "y": {"type": "string"}}, "required": ["kind"], "additionalProperties": false},
    ]}));
    assert_eq!(
        written,
        json!({
            "type": "object",
            "properties": {
                "kind": {"anyOf": [{"type": "string", "enum": ["a"]}, {"type": "string", "enum": ["b"]}]},
                "x": {"type": "integer"},
                "y": {"type": "string"},
            },
            "required": ["kind"],
            "additionalProperties": false,
        })
    );
    assert_eq!(lost, [" anyOf", " oneOf"]);
}

#[test]
fn vendors_of_their_own_get_what_they_know() {
    let schema = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["a"],
        "properties": {
            "a": {"type": "string", "pattern": "^a", "format": "uuid", "maxLength": 100_000},
            "b": {"type": "string", "pattern": "^(?=a)b$"},
            "c": {"const": 1, "examples": [1]},
            "list": {"type": "array", "items": {"type": ["integer", "null"], "multipleOf": 2}},
        },
    });
    let written = |dialect| input("t", &schema, dialect).schema;
    let openai = written(SchemaDialect::OpenAi);
    assert_eq!(openai["properties"]["a"], schema["properties"]["a"]);
    assert_eq!(openai["properties"]["b"], json!({"type": "string"}));
    assert_eq!(openai["properties"]["list"], schema["properties"]["list"]);
    assert_eq!(
        written(SchemaDialect::GeminiJson),
        json!({
            "type": "object",
            "additionalProperties": false,
            "required": ["a"],
            "properties": {
                "a": {"type": "string", "format": "uuid"},
                "b": {"type": "string"},
                "c": {"enum": [1]},
                "list": {"type": "array", "items": {"type": ["integer", "null"]}},
            },
        })
    );
    assert_eq!(SchemaDialect::of_host(Some("api.openai.com")), SchemaDialect::OpenAi);
    assert_eq!(SchemaDialect::of_host(Some("127.0.0.1")), SchemaDialect::Portable);
}

#[test]
fn older_gemini_models_get_the_open_api_subset() {
    let table = [
        (json!({"type": ["string", "null"], "format": "uri"}), json!({"type": "string", "nullable": true})),
        (json!({"const": "x"}), json!({"type": "string", "enum": ["x"]})),
        (
            json!({"type": "integer", "enum": [1, 2], "description": "How."}),
            json!({"type": "integer", "description": "How. One of [1,2]."}),
        ),
        (
            json!({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "d"}),
            json!({"type": "string", "nullable": true, "description": "d"}),
        ),
        (
            json!({"anyOf": [{"type": "string"}, {"type": "integer", "format": "int64"}]}),
            json!({"anyOf": [{"type": "string"}, {"type": "integer", "format": "int64"}]}),
        ),
        (
            json!({"type": ["string", "integer"], "maxLength": 3, "minimum": 1}),
            json!({"anyOf": [{"type": "string", "maxLength": 3}, {"type": "integer", "minimum": 1}]}),
        ),
        (
            json!({"type": "array", "items": {"type": "boolean"}}),
            json!({"type": "array", "items": {"type": "boolean"}}),
        ),
        (
            json!({"allOf": [{"properties": {"a": {"type": "number"}}, "required": ["a"]},
                             {"properties": {"b": {"type": "string"}}, "required": ["b", "c"]}], "additionalProperties": false}),
            json!({"type": "object", "required": ["a", "b"],
                   "properties": {"a": {"type": "number"}, "b": {"type": "string"}}}),
        ),
    ];
    for (schema, expected) in table {
        assert_eq!(answer(&schema, SchemaDialect::GeminiOpenApi), expected, "{schema}");
    }
}

#[test]
fn closed_answers_lose_their_bounds_and_nothing_else() {
    let schema = json!({
        "$schema": "x",
        "$defs": {"tag": {"type": "string", "maxLength": 5, "format": "uuid"}},
        "type": "object",
        "required": ["a"],
        "properties": {
            "a": {"type": ["integer", "null"], "minimum": 1, "description": "how many"},
            "b": {"type": "array", "items": {"$ref": "#/$defs/tag"}, "maxItems": 3},
            "c": {"oneOf": [{"const": 1}, {"enum": ["x"]}]},
            "d": {"type": "string", "format": "regex", "pattern": "^x"},
        },
    });
    assert_eq!(
        anthropic_answer(&schema).unwrap(),
        json!({
            "type": "object",
            "required": ["a"],
            "additionalProperties": false,
            "properties": {
                "a": {"type": ["integer", "null"], "description": "how many"},
                "b": {"type": "array", "items": {"type": "string", "format": "uuid"}},
                "c": {"anyOf": [{"enum": [1]}, {"type": "string", "enum": ["x"]}]},
                "d": {"type": "string"},
            },
        })
    );
}

#[test]
fn an_answer_whose_meaning_would_change_is_not_strict() {
    for schema in [
        json!({"type": "object"}),
        json!({"type": "object", "properties": {"a": {}}, "additionalProperties": {"type": "string"}}),
        json!({"type": "array", "items": {"type": "object", "properties": {}}}),
        json!({"type": "object", "properties": {"a": true}}),
        json!({"$defs": {"n": {"items": {"$ref": "#/$defs/n"}}}, "$ref": "#/$defs/n"}),
        json!({"not": {"type": "string"}}),
        json!(true),
    ] {
        assert_eq!(anthropic_answer(&schema), None, "{schema}");
        assert_eq!(openai_answer(&schema), None, "{schema}");
    }
}

#[test]
fn losses_name_tool_place_and_keyword() {
    let tool = ToolSpec {
        name: "mcp.box.put".to_owned(),
        description: String::new(),
        input_schema: json!({"type": "object", "properties": {"a/b": {"type": "string", "pattern": "^x"}}}).into(),
    };
    let losses = schema_losses(&[tool], SchemaDialect::Portable);
    assert_eq!(losses.len(), 1);
    assert_eq!(losses[0].to_string(), "mcp.box.put #/properties/a~1b: `pattern`");
}

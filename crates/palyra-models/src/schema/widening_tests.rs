//! Properties over generated schemas: whatever the original accepts, the written schema accepts; and whatever comes in, a portable schema
//! comes out.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

use super::*;

/// Any JSON value of a small world, so that values and schemas meet.
fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3_i64..4).prop_map(Value::from),
        select(&[0.5, -1.5, 2.0][..]).prop_map(Value::from),
        select(&["", "a", "b", "ab", "abc", "x1"][..]).prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            object_of(inner).prop_map(Value::Object),
        ]
    })
}

fn object_of(inner: impl Strategy<Value = Value>) -> impl Strategy<Value = Map<String, Value>> {
    prop::collection::vec((select(&["a", "b", "x1", "y"][..]), inner), 0..4)
        .prop_map(|fields| fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// Any schema, mostly valid. Every keyword is likely to meet every other.
fn any_schema() -> impl Strategy<Value = Value> {
    let types = select(&["null", "boolean", "integer", "number", "string", "array", "object"][..]);
    let leaf = prop_oneof![
        3 => types.prop_map(|name| json!({"type": name})),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(json!({})),
        1 => select(&["#/$defs/d0", "#/$defs/d1", "#", "#/$defs/none"][..]).prop_map(|to| json!({"$ref": to})),
        2 => any_value().prop_map(|value| json!({"const": value})),
    ];
    leaf.prop_recursive(4, 40, 6, |inner| {
        prop::collection::vec(keyword(inner), 1..6)
            .prop_map(|fields| Value::Object(fields.into_iter().flatten().collect()))
    })
}

fn keyword(inner: impl Strategy<Value = Value> + Clone + 'static) -> impl Strategy<Value = Vec<(String, Value)>> {
    let one = |name: &'static str, value: BoxedStrategy<Value>| {
        value.prop_map(move |value| vec![(name.to_owned(), value)]).boxed()
    };
    let many = |inner: BoxedStrategy<Value>| prop::collection::vec(inner, 1..4).prop_map(Value::from).boxed();
    let named = |inner: BoxedStrategy<Value>| object_of(inner).prop_map(Value::Object).boxed();
    let count = || (0_u64..4).prop_map(Value::from).boxed();
    let number = || (-3_i64..4).prop_map(Value::from).boxed();
    let types = || select(&["null", "boolean", "integer", "number", "string", "array", "object"][..]);
    let inner = inner.boxed();
    let patterns = prop::collection::vec((select(&["^a", "^x", "1$", ""][..]), inner.clone()), 1..3)
        .prop_map(|all| Value::Object(all.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()))
        .boxed();
    let names = || {
        prop::collection::btree_set(select(&["a", "b", "x1", "y", "z"][..]), 0..3)
            .prop_map(|names| json!(names))
            .boxed()
    };
    let dependent = object_of(names()).prop_map(Value::Object).boxed();
    prop_oneof![
        one("type", types().prop_map(Value::from).boxed()),
        one("type", prop::collection::btree_set(types(), 1..4).prop_map(|names| json!(names)).boxed()),
        one("properties", named(inner.clone())),
        one("properties", named(inner.clone())),
        one("required", names()),
        one("additionalProperties", inner.clone()),
        one("additionalProperties", Just(Value::Bool(false)).boxed()),
        one("patternProperties", patterns),
        one("propertyNames", inner.clone()),
        one("items", inner.clone()),
        one("prefixItems", many(inner.clone())),
        one("contains", inner.clone()),
        one("anyOf", many(inner.clone())),
        one("oneOf", many(inner.clone())),
        one("allOf", many(inner.clone())),
        one("not", inner.clone()),
        one("if", inner.clone()),
        one("then", inner.clone()),
        one("else", inner),
        one("minLength", count()),
        one("maxLength", count()),
        one("minItems", count()),
        one("maxItems", count()),
        one("minProperties", count()),
        one("uniqueItems", any::<bool>().prop_map(Value::from).boxed()),
        one("minimum", number()),
        one("maximum", number()),
        one("exclusiveMinimum", number()),
        one("exclusiveMaximum", number()),
        one("multipleOf", (1_i64..4).prop_map(Value::from).boxed()),
        one("pattern", select(&["^a", "b$", "^[a-c]+$"][..]).prop_map(Value::from).boxed()),
        one("format", select(&["date", "uuid", "what"][..]).prop_map(Value::from).boxed()),
        one("enum", prop::collection::vec(any_value(), 1..4).prop_map(Value::from).boxed()),
        one("description", Just(Value::from("d")).boxed()),
        one("default", any_value().boxed()),
        one("dependentRequired", dependent),
        one("unevaluatedProperties", any::<bool>().prop_map(Value::from).boxed()),
        one("$ref", select(&["#/$defs/d0", "#/$defs/d1", "#"][..]).prop_map(Value::from).boxed()),
    ]
}

/// A document: a schema with two definitions.
fn any_document() -> impl Strategy<Value = Value> {
    (any_schema(), any_schema(), any_schema()).prop_map(|(root, d0, d1)| {
        let Value::Object(mut fields) = root else { return root };
        fields.insert("$defs".to_owned(), json!({"d0": d0, "d1": d1}));
        Value::Object(fields)
    })
}

/// Any JSON whose keys are keywords: schemas that nobody in their right mind writes.
fn nonsense() -> impl Strategy<Value = Value> {
    crate::any_json::any_json(
        &[
            "type",
            "properties",
            "required",
            "items",
            "prefixItems",
            "additionalProperties",
            "anyOf",
            "oneOf",
            "allOf",
            "$ref",
            "$defs",
            "enum",
            "const",
            "pattern",
            "minLength",
            "maxItems",
            "minimum",
            "exclusiveMinimum",
            "description",
            "a",
            "",
        ],
        &["object", "array", "string", "#", "#/properties/a", "#/$defs/a", "^(", "a"],
    )
}

/// Everything that a portable schema may hold, said apart from how it is written.
fn check_portable(schema: &Value, place: &str) -> Result<(), String> {
    let fail = |why: &str| Err(format!("{place}: {why}: {schema}"));
    let Some(fields) = schema.as_object() else { return fail("is no object") };
    let plain = ["string", "number", "integer", "boolean", "object", "array", "null"];
    for (name, value) in fields {
        let good = match name.as_str() {
            "type" => match value {
                Value::String(one) => plain.contains(&one.as_str()),
                Value::Array(all) => {
                    all.len() > 1 && all.iter().all(|one| one.as_str().is_some_and(|one| plain.contains(&one)))
                }
                _ => false,
            },
            "description" => value.is_string(),
            "default" => true,
            "enum" => value.as_array().is_some_and(|all| !all.is_empty()),
            "properties" => {
                for (name, inner) in value.as_object().into_iter().flatten() {
                    check_portable(inner, &format!("{place}/{name}"))?;
                }
                value.is_object()
            }
            "required" => {
                let known = fields.get("properties").and_then(Value::as_object);
                value.as_array().is_some_and(|all| {
                    all.iter()
                        .all(|one| one.as_str().is_some_and(|one| known.is_some_and(|known| known.contains_key(one))))
                })
            }
            "additionalProperties" if value.is_boolean() => true,
            "items" | "additionalProperties" => {
                check_portable(value, &format!("{place}/{name}"))?;
                true
            }
            "anyOf" => {
                let branches = value.as_array().map(Vec::as_slice).unwrap_or_default();
                for branch in branches {
                    check_portable(branch, &format!("{place}/anyOf"))?;
                }
                branches.len() > 1
                    && fields.keys().all(|key| ["anyOf", "description", "default"].contains(&key.as_str()))
            }
            "minLength" | "maxLength" | "minItems" | "maxItems" => value.as_u64().is_some_and(|count| count <= 100),
            "minimum" | "maximum" => value.as_f64().is_some_and(|bound| bound.abs() <= 9_007_199_254_740_992.0),
            _ => false,
        };
        if !good {
            return fail(name);
        }
    }
    let said = |names: &[&str]| names.iter().any(|name| fields.contains_key(*name));
    if fields.is_empty() || said(&["type", "enum", "anyOf", "properties", "items", "additionalProperties"]) {
        Ok(())
    } else {
        fail("has no type")
    }
}

const WIDER: [SchemaDialect; 4] =
    [SchemaDialect::Portable, SchemaDialect::OpenAi, SchemaDialect::Anthropic, SchemaDialect::GeminiJson];

fn accepts(schema: &Value) -> Option<jsonschema::Validator> {
    jsonschema::draft202012::new(schema).ok()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn nothing_that_is_accepted_gets_refused(document in any_document(), values in prop::collection::vec(any_value(), 12)) {
        let Some(original) = accepts(&document) else { return Ok(()) };
        for dialect in WIDER {
            let written = answer(&document, dialect);
            let wider = accepts(&written).expect("what is written is a schema");
            let arguments = input("t", &document, dialect).schema;
            let wide_arguments = accepts(&arguments).expect("what is written is a schema");
            for value in values.iter().filter(|value| original.is_valid(value)) {
                prop_assert!(wider.is_valid(value), "{dialect:?}: {value} fits {document} but not {written}");
                if value.is_object() {
                    prop_assert!(wide_arguments.is_valid(value), "{dialect:?}: {value} fits {document} but not {arguments}");
                }
            }
        }
    }

    #[test]
    fn every_schema_comes_out_portable(document in prop_oneof![any_document(), nonsense()]) {
        let arguments = input("t", &document, SchemaDialect::Portable).schema;
        prop_assert_eq!(&arguments["type"], "object");
        check_portable(&arguments, "").map_err(TestCaseError::fail)?;
        check_portable(&answer(&document, SchemaDialect::Portable), "").map_err(TestCaseError::fail)?;
        for dialect in SchemaDialect::ALL {
            input("t", &document, dialect);
            answer(&document, dialect);
        }
        openai_answer(&document);
        anthropic_answer(&document);
    }

    #[test]
    fn what_is_portable_stays_as_it_is(document in any_document()) {
        let once = input("t", &document, SchemaDialect::Portable).schema;
        let twice = input("t", &once, SchemaDialect::Portable);
        prop_assert_eq!(&once, &twice.schema);
        prop_assert!(twice.losses.is_empty(), "{:?} of {once}", twice.losses);
    }
}

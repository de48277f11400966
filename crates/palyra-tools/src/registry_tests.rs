//! What the registry says to a model that got something wrong.

use palyra_common::ToStableError;
use serde_json::json;

use super::*;

#[test]
fn builtin_names_are_valid_and_sorted() {
    let registry = Registry::builtin().unwrap();
    let names: Vec<_> = registry.declarations().map(|tool| tool.name.to_string()).collect();
    assert!(names.is_sorted());
    for name in &names {
        assert_eq!(ToolName::new(name.clone()).unwrap().as_str(), name);
    }
}

#[test]
fn every_declaration_is_complete() {
    for tool in Registry::builtin().unwrap().declarations() {
        assert!(!tool.description.is_empty(), "{} has no description", tool.name);
        assert_eq!(tool.input_schema["additionalProperties"], json!(false), "{}", tool.name);
        for sink in &tool.sinks {
            assert!(tool.input_schema["properties"].get(&sink.argument).is_some(), "{}: {}", tool.name, sink.argument);
        }
        for (name, property) in tool.input_schema["properties"].as_object().unwrap() {
            assert!(property["description"].is_string(), "{}: {name} is not described", tool.name);
        }
    }
}

#[test]
fn a_name_used_twice_is_an_error() {
    let error = Registry::builder().with_all(builtin()).with_all(builtin()).build().err().unwrap();
    assert_eq!(error.code(), "duplicate_tool");
}

#[test]
fn names_are_checked() {
    for bad in ["", "Read", "a b", "ä", "a/b", &"x".repeat(129)] {
        assert_eq!(ToolName::new(bad).unwrap_err().code(), "invalid_tool_name", "{bad}");
    }
    assert!(ToolName::new("mcp.server-1.do_it").is_ok());
}

#[test]
fn an_unknown_tool_suggests_the_nearest() {
    let registry = Registry::builtin().unwrap();
    for (asked, meant) in [("palyra.time.nwo", "palyra.time.now"), ("palyra_fs_read", "palyra.fs.read")] {
        let stable = registry.get(asked).err().unwrap().to_stable();
        assert_eq!(stable.code, "unknown_tool");
        assert_eq!(stable.recovery_hint.unwrap(), format!("did you mean `{meant}`?"));
    }
    assert!(registry.get("zzzzzz").err().unwrap().to_stable().recovery_hint.unwrap().contains("offered"));
}

#[test]
fn wrong_arguments_are_named_one_by_one() {
    let registry = Registry::builtin().unwrap();
    let table = [
        (json!({}), vec![("path", "missing_argument", "argument `path` is missing")]),
        (
            json!({"pth": "x", "limit": "ten"}),
            vec![
                ("limit", "wrong_type", "`limit` must be an integer, not a string"),
                ("pth", "unknown_argument", "there is no argument `pth`; did you mean `path`?"),
                ("path", "missing_argument", "argument `path` is missing"),
            ],
        ),
        (json!({"path": 7}), vec![("path", "wrong_type", "`path` must be a string, not an integer")]),
        (json!({"path": "x", "offset": 0}), vec![("offset", "too_small", "`offset` must be at least 1")]),
        (json!({"path": "x", "limit": -1}), vec![("limit", "too_small", "`limit` must be at least 1")]),
        (json!([]), vec![("arguments", "wrong_type", "the arguments must be an object, not an array")]),
    ];
    for (arguments, expected) in table {
        let ToolError::InvalidArguments { errors, .. } = registry.validate("palyra.fs.read", &arguments).unwrap_err()
        else {
            panic!("{arguments}");
        };
        let mut found: Vec<_> =
            errors.iter().map(|error| (error.field.as_str(), error.code.as_str(), error.message.as_str())).collect();
        let mut expected = expected;
        found.sort_unstable();
        expected.sort_unstable();
        assert_eq!(found, expected, "{arguments}");
    }
    assert!(registry.validate("palyra.fs.read", &json!({"path": "a", "limit": null})).is_ok());
}

#[test]
fn hostile_nesting_is_refused_and_not_followed() {
    let mut value = json!(1);
    for _ in 0..120 {
        value = json!([value]);
    }
    let schema = json!({"$defs": {"x": {"items": {"$ref": "#/$defs/x"}}}, "$ref": "#/$defs/x"});
    let errors = crate::schema::check(&schema, &value);
    assert_eq!(errors.first().map(|error| error.code.as_str()), Some("too_deep"));
}

#[test]
fn summaries_are_one_line() {
    let registry = Registry::builtin().unwrap();
    let tool = registry.get("palyra.fs.read").unwrap();
    let line = tool.summarise(&json!({"path": format!("a\n\u{1b}[31m{}", "x".repeat(500))}));
    assert!(!line.contains(['\n', '\u{1b}']) && line.chars().count() < 160, "{line}");
}

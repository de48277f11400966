//! Slips of models, and texts that must not be touched.

use proptest::prelude::*;
use serde_json::json;

use super::*;

#[test]
fn slips_are_put_right_and_told() {
    let table: &[(&str, &str, &str)] = &[
        ("```json\n{\"a\":1}\n```", r#"{"a":1}"#, "a code fence was taken off"),
        ("{\"a\":1}\n</tool_call><|im_end|>", r#"{"a":1}"#, "a mark of the chat template was taken off"),
        (r#"{"a":1,}"#, r#"{"a":1}"#, "a trailing comma was dropped"),
        (r#"{"a":[1,2,],}"#, r#"{"a":[1,2]}"#, "a trailing comma was dropped"),
        ("{'a': 'it is \"so\"'}", r#"{"a":"it is \"so\""}"#, "single quotes became double quotes"),
        (r#"{path: "x", a-b: 1}"#, r#"{"path":"x","a-b":1}"#, "a bare key was quoted"),
        (r#"{"a": True, "b": None}"#, r#"{"a":true,"b":null}"#, "a Python word became its JSON word"),
        (
            "{\"a\":\"one\ntwo\tthree\"}",
            r#"{"a":"one\u000atwo\u0009three"}"#,
            "a control character in a string was escaped",
        ),
        (r#"{"a":"it\'s"}"#, r#"{"a":"it's"}"#, "a needless escape was dropped"),
        (r#"{"a":"b"#, r#"{"a":"b"}"#, "a missing closing quote was added; missing closing brackets were added"),
        (r#"{"a":{"b":[1"#, r#"{"a":{"b":[1]}}"#, "missing closing brackets were added"),
        (r#"{"a":1,"#, r#"{"a":1}"#, "a trailing comma was dropped; missing closing brackets were added"),
        (r#"{"a":1}}"#, r#"{"a":1}"#, "surplus closing brackets were dropped"),
        (r#"{"a":1}{"a":1}"#, r#"{"a":1}"#, "the same document came twice and was taken once"),
        ("{\"a\":1 // one\n, /* two */ \"b\":2}", r#"{"a":1,"b":2}"#, "comments were dropped"),
    ];
    for (text, repaired, what) in table {
        let repair = arguments(text, Cut::Impossible).unwrap_or_else(|| panic!("{text}"));
        assert_eq!((repair.text.as_str(), repair.what.as_str()), (*repaired, *what), "{text}");
    }
}

#[test]
fn what_no_rule_covers_stays_as_it_is() {
    for text in [
        "",
        "read the file a.txt",
        "{",
        "[1,]",
        "'a'",
        r#"{"a":}"#,
        r#"{"a" 1}"#,
        r#"{"a":1 "b":2}"#,
        r#"{"a":1}{"a":2}"#,
        r#"{"a":1} and more"#,
        r#"{"a":"C:\Users"}"#,
        r#"{"a":tru"#,
        r#"{"path":"a.txt}"#,
        r#"{"a":NaN}"#,
        r#"{"a":01}"#,
        r#"{"a":"\u12"}"#,
        r#"{1:2}"#,
        "{\"a\":1 /* no end",
    ] {
        let repair = arguments(text, Cut::Impossible);
        assert!(repair.is_none() || text == "{", "{text}: {repair:?}");
    }
    assert_eq!(arguments("{", Cut::Impossible).unwrap().text, "{}");
    assert_eq!(arguments(&"[".repeat(10_000), Cut::Impossible), None);
    assert_eq!(arguments(&"{\"a\":".repeat(10_000), Cut::Impossible), None);
}

#[test]
fn an_answer_that_was_cut_off_is_never_completed() {
    for text in [r#"{"a":"b"#, r#"{"a":{"b":[1"#, r#"{"a":1,"#, "{"] {
        assert_eq!(arguments(text, Cut::Possible), None, "{text}");
    }
    assert!(arguments(r#"{"a":1,}"#, Cut::Possible).is_some(), "this one is whole");
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        "\\PC{0,12}".prop_map(Value::from),
        "[\\x00-\\x7f]{0,6}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,6}", inner, 0..5).prop_map(|map| json!(map)),
        ]
    })
}

proptest! {
    #[test]
    fn valid_json_is_never_touched(value in any_json()) {
        for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
            prop_assert_eq!(arguments(&text, Cut::Impossible), None);
            prop_assert_eq!(arguments(&text, Cut::Possible), None);
        }
    }

    #[test]
    fn a_trailing_comma_and_missing_brackets_change_no_value(value in any_json()) {
        let whole = json!({ "a": { "b": value } });
        let text = whole.to_string();
        let comma = format!("{},}}", &text[..text.len() - 1]);
        let cut = &text[..text.len() - 2];
        for slip in [comma.as_str(), cut] {
            let repair = arguments(slip, Cut::Impossible).unwrap();
            prop_assert_eq!(&serde_json::from_str::<Value>(&repair.text).unwrap(), &whole);
        }
    }

    #[test]
    fn whatever_comes_out_is_an_object(text in "[\\[\\]{}:,'\"a-c0-9 \\\\/*\n]{0,30}") {
        if let Some(repair) = arguments(&text, Cut::Impossible) {
            prop_assert!(serde_json::from_str::<Value>(&repair.text).unwrap().is_object());
            prop_assert!(!repair.what.is_empty());
        }
    }

    #[test]
    fn no_text_makes_it_panic(text in "\\PC{0,60}") {
        let _ = arguments(&text, Cut::Impossible);
    }
}

//! Reading cases and comparing outcomes with them.

use super::*;

fn read(text: &str) -> Result<SkillCases, BuildError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.json");
    std::fs::write(&path, text).unwrap();
    SkillCases::read(&path)
}

fn case(text: &str) -> Case {
    read(&format!("{{\"cases\": [{text}]}}")).unwrap().cases.remove(0)
}

#[test]
fn a_faulty_file_is_refused_with_its_reason() {
    for (text, reason) in [
        ("{", "EOF"),
        (r#"{"cases": [{"name": "x", "tool": "t"}]}"#, "`expect`"),
        (r#"{"cases": [{"name": "x", "expect": 1}]}"#, "`tool`"),
        (r#"{"cases": [{"name": "x", "tool": "t", "hook": {"event": "e"}, "expect": 1}]}"#, "`tool`"),
        (r#"{"cases": [{"name": "x", "tool": "t", "expect": 1, "expect_error": "e"}]}"#, "`expect`"),
        (r#"{"cases": [{"name": "x", "tool": "t", "expct": 1}]}"#, "unknown field"),
    ] {
        let error = read(text).unwrap_err().to_string();
        assert!(error.contains(reason), "{error}");
    }
}

#[test]
fn outputs_are_compared_as_json_and_errors_by_a_part() {
    let none = Spaces::new();
    let expects = case(r#"{"name": "x", "tool": "t", "expect": {"a": 1, "b": [2]}}"#);
    assert_eq!(expects.check(Ok(r#"{ "b": [2], "a": 1 }"#), 0, &none), Ok(()));
    assert!(expects.check(Ok(r#"{"a": 1}"#), 0, &none).is_err());
    assert!(expects.check(Ok("no json"), 0, &none).is_err());
    assert!(expects.check(Err("failed"), 0, &none).is_err());
    assert!(expects.check(Ok(r#"{"a":1,"b":[2]}"#), 1, &none).is_err(), "a request nobody expected");
    let fails = case(r#"{"name": "x", "tool": "t", "expect_error": "is empty"}"#);
    assert_eq!(fails.check(Err("the name is empty"), 0, &none), Ok(()));
    assert!(fails.check(Err("the name is long"), 0, &none).is_err());
    assert!(fails.check(Ok("1"), 0, &none).is_err());
}

#[test]
fn of_a_decision_only_the_given_fields_count() {
    let blocks = case(r#"{"name": "x", "hook": {"event": "run:before_tool"}, "expect": {"verdict": "block"}}"#);
    assert_eq!(blocks.check(Ok(r#"{"verdict": "block", "reason": "no"}"#), 0, &Spaces::new()), Ok(()));
    assert!(blocks.check(Ok(r#"{"verdict": "continue"}"#), 0, &Spaces::new()).is_err());
}

#[test]
fn requests_are_answered_in_order_and_only_as_listed() {
    let case = case(
        r#"{"name": "x", "tool": "t", "expect": 1, "http": [
            {"method": "POST", "url": "https://a.example/", "expect_body": {"k": 1}, "expect_secrets": ["token"], "body": {"v": 2}}]}"#,
    );
    let sent = |method, url, body: &'static [u8], secrets: &[&str]| Sent {
        method,
        url,
        body,
        secrets: secrets.iter().map(|name| (*name).to_owned()).collect(),
    };
    let answer = case.answer(0, &sent("POST", "https://a.example/", b"{ \"k\": 1 }", &["token"])).unwrap();
    assert_eq!((answer.status, answer.body_bytes()), (200, b"{\"v\":2}".to_vec()));
    for wrong in [
        sent("GET", "https://a.example/", b"{\"k\":1}", &["token"]),
        sent("POST", "https://b.example/", b"{\"k\":1}", &["token"]),
        sent("POST", "https://a.example/", b"{\"k\":2}", &["token"]),
        sent("POST", "https://a.example/", b"{\"k\":1}", &[]),
    ] {
        assert!(case.answer(0, &wrong).is_err(), "{wrong:?}");
    }
    assert!(case.answer(1, &sent("POST", "https://a.example/", b"{\"k\":1}", &["token"])).is_err());
    assert!(case.check(Ok("1"), 0, &Spaces::new()).is_err(), "a request is missing");
}

#[test]
fn what_is_stored_is_compared_when_the_case_says_so() {
    let case = case(r#"{"name": "x", "tool": "t", "expect": 1, "expect_storage": {"notes": {"a": "b"}}}"#);
    let stored = Spaces::from([("notes".to_owned(), BTreeMap::from([("a".to_owned(), "b".to_owned())]))]);
    assert_eq!(case.check(Ok("1"), 0, &stored), Ok(()));
    assert!(case.check(Ok("1"), 0, &Spaces::new()).is_err());
}

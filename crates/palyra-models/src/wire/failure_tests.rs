//! Refusals of many servers, and what is made of them.

use serde_json::json;

use super::*;
use ModelErrorClass as Class;

const ASKED: Asked<'static> = Asked { server: "https://h/v1", model: "m" };

fn refused(status: u16, body: &[u8]) -> ModelError {
    from_status(ASKED, status, body, None, no_verdict)
}

#[test]
fn refusals_are_understood() {
    let table = [
        (401, json!({"error": {"message": "bad key", "code": "invalid_api_key"}}), Class::Auth),
        (400, json!({"error": {"message": "bad key", "code": "invalid_api_key"}}), Class::Auth),
        (403, json!({"error": {"message": "not yours"}}), Class::Permission),
        (402, json!({"error": "pay"}), Class::Quota),
        (
            429,
            json!({"error": {"message": "slow", "type": "requests", "code": "rate_limit_exceeded"}}),
            Class::RateLimit,
        ),
        (429, json!({"error": {"message": "x", "type": "insufficient_quota"}}), Class::Quota),
        (400, json!({"error": {"message": "x", "code": "context_length_exceeded"}}), Class::ContextTooLong),
        (
            400,
            json!({"error": {"message": "exceeds the available context size", "type": "exceed_context_size_error"}}),
            Class::ContextTooLong,
        ),
        (413, json!({}), Class::ContextTooLong),
        (400, json!({"error": {"message": "x", "code": "content_filter"}}), Class::ContentPolicy),
        (404, json!({"error": {"message": "no such model"}}), Class::Permanent),
        (400, json!({"detail": "what"}), Class::Permanent),
        (307, json!({}), Class::Permanent),
        (500, json!({"error": {"message": "oops", "type": "server_error"}}), Class::Transient),
        (
            500,
            json!({"error": {"message": "Grammar trigger word should not be empty", "type": "server_error"}}),
            Class::Permanent,
        ),
        (500, json!({"error": {"message": "JSON schema error at path: unrecognized schema"}}), Class::Permanent),
        (400, json!({"error": {"message": "failed to parse grammar"}}), Class::Permanent),
        (503, json!("down"), Class::Transient),
        (529, json!({"error": {"type": "overloaded_error"}}), Class::Transient),
        (408, json!({}), Class::Transient),
    ];
    for (status, body, class) in table {
        let error = refused(status, body.to_string().as_bytes());
        assert_eq!((error.class, error.status), (class, Some(status)), "{status} {body}");
    }
}

#[test]
fn messages_come_from_wherever_the_server_put_them() {
    for body in [
        r#"{"error":{"message":"why"}}"#,
        r#"{"error":"why"}"#,
        r#"{"detail":"why"}"#,
        "why",
        "\"why\"",
        "{\"message\":\"why\"}",
    ] {
        assert_eq!(refused(400, body.as_bytes()).message, "the model server answered 400: why", "{body}");
    }
    assert_eq!(refused(500, b"").message, "the model server answered 500: no explanation");
}

#[test]
fn the_mistakes_of_people_get_a_line_that_says_what_to_do() {
    let table: &[(u16, &str, Class, &str)] = &[
        (
            401,
            r#"{"error":{"message":"Incorrect API key provided"}}"#,
            Class::Auth,
            "`https://h/v1` does not accept the key (401): Incorrect API key provided",
        ),
        (
            404,
            r#"{"error":{"message":"The model `m` does not exist","code":"model_not_found"}}"#,
            Class::Permanent,
            "`https://h/v1` does not offer the model `m` (404): The model `m` does not exist; check its name",
        ),
        (
            400,
            r#"{"error":{"message":"m is not a valid model ID","code":400}}"#,
            Class::Permanent,
            "`https://h/v1` does not offer the model `m` (400): m is not a valid model ID; check its name",
        ),
        (
            404,
            r#"{"type":"error","error":{"type":"not_found_error","message":"model: m"}}"#,
            Class::Permanent,
            "`https://h/v1` does not offer the model `m` (404): model: m; check its name",
        ),
        (
            400,
            r#"{"error":{"message":"Unsupported parameter: 'x' is not supported with this model."}}"#,
            Class::Permanent,
            "the model server answered 400: Unsupported parameter: 'x' is not supported with this model.",
        ),
        (
            404,
            "<html><h1>Not Found</h1></html>",
            Class::Permanent,
            "`https://h/v1` is not a model server, or its path is wrong (404): a web page; check the base URL",
        ),
        (
            404,
            r#"{"detail":"Not Found"}"#,
            Class::Permanent,
            "`https://h/v1` is not a model server, or its path is wrong (404): Not Found; check the base URL",
        ),
        (502, "<html>\u{fffd}bad gateway", Class::Transient, "the model server answered 502: a web page"),
    ];
    for (status, body, class, line) in table {
        let error = refused(*status, body.as_bytes());
        assert_eq!((error.class, error.message.as_str()), (*class, *line));
    }
}

#[test]
fn a_vendor_is_asked_before_the_rules_for_all() {
    let judge: Judge = |refusal| Verdict {
        class: refusal.codes.contains("odd").then_some(Class::Quota),
        retry_after: Some(Duration::from_secs(7)),
    };
    let odd = br#"{"error":{"code":"odd"}}"#;
    let error = from_status(ASKED, 401, odd, Some(Duration::from_secs(1)), judge);
    assert_eq!((error.class, error.retry_after_ms), (Class::Quota, Some(7000)));
    let other = from_status(ASKED, 401, b"{}", Some(Duration::from_secs(1)), no_verdict);
    assert_eq!((other.class, other.retry_after_ms), (Class::Auth, Some(1000)));
}

#[test]
fn errors_inside_a_stream_are_transient_unless_they_say_more() {
    let class = |error: Value| from_stream(error, no_verdict).class;
    assert_eq!(class(json!({"message": "x"})), Class::Transient);
    assert_eq!(class(json!({"message": "x", "code": 429})), Class::RateLimit);
    assert_eq!(class(json!({"code": 401, "type": "overloaded_error"})), Class::Auth);
    assert_eq!(class(json!({"message": "x", "code": "context_length_exceeded"})), Class::ContextTooLong);
}

#[test]
fn words_do_not_turn_a_refusal_for_good_into_one_that_is_tried_again() {
    let asked = Asked { server: "s", model: "m" };
    for body in [
        r#"{"error":{"message":"slow down","code":"rate_limit_exceeded"}}"#,
        r#"{"error":{"message":"try again","type":"overloaded_error"}}"#,
        r#"{"error":{"message":"oops","type":"server_error"}}"#,
    ] {
        for (status, class) in
            [(401, ModelErrorClass::Auth), (400, ModelErrorClass::Permanent), (422, ModelErrorClass::Permanent)]
        {
            assert_eq!(from_status(asked, status, body.as_bytes(), None, no_verdict).class, class, "{status} {body}");
            // The same said inside a stream that began with 200.
            let mut error: Value = serde_json::from_str(body).unwrap();
            error["error"]["status"] = status.into();
            assert_eq!(from_stream(error["error"].clone(), no_verdict).class, class, "{status} {body}");
            error["error"]["status"] = status.to_string().into();
            assert_eq!(from_stream(error, no_verdict).class, class, "{status} {body}");
        }
    }
    let long = br#"{"error":{"message":"context window"}}"#;
    assert_eq!(from_status(asked, 401, long, None, no_verdict).class, ModelErrorClass::Auth);
    assert_eq!(from_status(asked, 400, long, None, no_verdict).class, ModelErrorClass::ContextTooLong);
}

//! Pages of canvases in the description: addresses for browsers, which answer with HTML and know a caller by the token in the address.

use serde_json::{Map, Value, json};

use super::Paths;
use crate::api::paths;

/// Every status that a page can be refused with; each comes as a page of its own.
const REFUSALS: &[(u16, &str)] = &[
    (404, "The link is unknown or expired; the answer does not say which."),
    (408, "The form did not arrive in time."),
    (409, "The canvas has changed in the meantime."),
    (413, "The form is too large."),
    (415, "The form's encoding is not supported."),
    (422, "A value is invalid for its field."),
    (429, "Too many requests."),
    (403, "The link does not permit it, or the request comes from another site."),
    (500, "An internal error of the daemon."),
    (503, "The daemon is not accepting work now."),
];

/// Adds the addresses.
pub(super) fn add(all: &mut Paths) {
    let page = json!({"text/html": {"schema": {"type": "string"}}});
    let show = operation("canvas.page", "A canvas as a page.", &("200", "The page.", &page), None);
    all.add(paths::CANVAS_PAGE, ("get", show));
    let stream = json!({"text/event-stream": {"schema": {"type": "string"}}});
    let mut events = operation(
        "canvas.page.events",
        "New versions of a canvas as Server-Sent Events; resumable by `Last-Event-ID`.",
        &("200", "Events of the name `version`, each with the version as its id.", &stream),
        None,
    );
    if let Some(Value::Array(parameters)) = events.get_mut("parameters") {
        parameters.push(json!({"name": "from", "in": "query", "schema": {"type": "integer", "minimum": 0}}));
    }
    all.add(paths::CANVAS_PAGE_EVENTS, ("get", events));
    let form = json!({
        "type": "object",
        "required": ["component", "version"],
        "properties": {
            "component": {"type": "string"},
            "version": {"type": "integer", "minimum": 1},
            "action": {"enum": ["submit", "allow", "deny"]},
            "approval": {"type": "string"},
            "once": {"type": "string"},
        },
        "additionalProperties": {"type": "string", "description": "`v.` and the name of a field."},
    });
    let nothing = json!({});
    let done = ("303", "Accepted; the page is at its previous address.", &nothing);
    let act = operation("canvas.page.act", "Submits a form of a canvas page.", &done, Some(form));
    all.add(paths::CANVAS_PAGE_ACTIONS, ("post", act));
    let back = ("303", "The page is at its previous address.", &nothing);
    let reload = operation("canvas.page.back", "Redirects from a form's address to its page.", &back, None);
    all.add(paths::CANVAS_PAGE_ACTIONS, ("get", reload));
}

fn operation(id: &str, summary: &str, success: &(&str, &str, &Value), body: Option<Value>) -> Value {
    let (status, description, content) = success;
    let mut responses = Map::new();
    responses.insert((*status).to_owned(), json!({"description": description, "content": content}));
    for (status, meaning) in REFUSALS {
        let page = json!({"description": meaning, "content": {"text/html": {"schema": {"type": "string"}}}});
        responses.insert(status.to_string(), page);
    }
    // Said before anybody looks at a link, and not as a page.
    responses.insert("405".to_owned(), json!({"$ref": "#/components/responses/Refusal"}));
    let token = json!({"name": "token", "in": "path", "required": true, "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]{43}$"}});
    let mut operation = json!({
        "operationId": id,
        "summary": summary,
        "tags": ["canvas"],
        "security": [],
        "parameters": [token],
        "responses": responses,
    });
    if let (Some(schema), Value::Object(fields)) = (body, &mut operation) {
        let body = json!({"required": true, "content": {"application/x-www-form-urlencoded": {"schema": schema}}});
        fields.insert("requestBody".to_owned(), body);
    }
    operation
}

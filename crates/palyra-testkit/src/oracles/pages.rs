//! Pages that agents draw: documents, patches of them, and what people enter into their forms.

use std::collections::BTreeSet;

use palyra_a2ui::html::{self, Acting, Entered, Frame, Notice, Origin, View};
use palyra_a2ui::{A2uiError, Component, Document, Form, apply, apply_recorded, check_values, text};
use palyra_common::ToStableError as _;
use serde_json::{Map, Value};

use super::refused;

/// Where the pages of this oracle are, and where their forms go.
const PAGE: &str = "/canvas/v1/token";
const ACTIONS: &str = "/canvas/v1/token/actions";
/// Names of attributes that act or load, whatever is in them, and those whose value says what is loaded.
const ACTING: &[&str] = &["style", "srcset", "srcdoc", "formaction", "http-equiv", "background", "ping"];
const ADDRESSES: &[&str] = &["href", "src", "action", "data-page", "data-events"];
const HARMLESS: &[&str] = &["https://", "http://", "mailto:", "data:image/", PAGE];
/// Elements that a page never has.
const FOREIGN: &[&str] = &["iframe", "object", "embed", "base", "link", "math", "template", "frame", "applet", "use"];

/// A document, then a patch of it, then what was entered into its first form; one JSON document after the other.
pub fn a2ui(bytes: &[u8]) {
    let mut given = serde_json::Deserializer::from_slice(bytes).into_iter::<Value>().map_while(Result::ok);
    let Some(document) = given.next() else { return };
    let (patch, values) = (given.next(), given.next());
    let document = match Document::parse(&document) {
        Ok(document) => document,
        Err(error) => return unfit(&error, "a2ui_document_invalid", bytes.len()),
    };
    let values = match &values {
        Some(Value::Object(values)) => values.clone(),
        _ => Map::new(),
    };
    looks_right(&document, &values);
    if let Some(form) = first_form(document.root()) {
        match check_values(form, &values) {
            Ok(_) => assert!(values.keys().all(|name| form.fields.iter().any(|field| field.name == *name))),
            Err(error) => unfit(&error, "canvas_values_invalid", bytes.len()),
        }
    }
    let Some(patch) = patch else { return };
    match apply(&document, document.version(), &patch) {
        Ok(after) => {
            assert_eq!(
                apply_recorded(&document.to_value(), &patch).unwrap(),
                after.to_value(),
                "recorded it is another"
            );
            looks_right(&after, &values);
        }
        Err(error) => unfit(&error, "a2ui_patch_invalid", bytes.len()),
    }
}

fn unfit(error: &A2uiError, code: &str, sent: usize) {
    refused(&error.to_stable(), &[code], sent);
}

fn first_form(component: &Component) -> Option<&Form> {
    match component {
        Component::Form(form) => Some(form),
        Component::List(list) => list.items.iter().find_map(first_form),
        _ => None,
    }
}

/// What was read reads again as the same, and neither a browser nor a terminal is made to do anything by it.
fn looks_right(document: &Document, values: &Map<String, Value>) {
    assert_eq!(Document::parse(&document.to_value()).as_ref(), Ok(document), "written and read it is another");
    let lines = text::render(document);
    assert!(!lines.chars().any(|c| c.is_control() && c != '\n'), "{lines:?}");
    let entered = first_form(document.root()).map(|form| Entered { form: &form.id, values });
    for acting in [Acting::Look, Acting::Act { address: ACTIONS, once: "once" }] {
        let notice = Some(Notice::Refused("<b>no</b>"));
        let view = View { title: "<i>", acting, notice, origin: Origin::Untrusted, questions: &[], entered };
        let page = html::page(document, &view, Frame { nonce: "nonce", page: PAGE, events: PAGE });
        does_nothing(&page);
    }
}

/// A look at a page that is too simple to be wrong: whatever stands between `<` and `>` is an element, and texts have neither.
fn does_nothing(page: &str) {
    let (before, after) = page.split_once("<script nonce=\"nonce\">").expect("the page's own script");
    let (script, end) = after.split_once("</script>").expect("its end");
    assert!(script.starts_with("\"use strict\";") && end == "</body></html>", "{page}");
    let (head, body) = before.split_once("</style>").expect("the page's own style");
    assert!(!head.contains("<script") && !body.contains("<style"), "{page}");
    for element in body.split('<').skip(1) {
        let (element, text) = element.split_once('>').unwrap_or_else(|| panic!("`<{element}` does not end"));
        assert!(!text.contains('>'), "`{text}` ends an element that did not begin");
        let name = element.split(' ').next().unwrap_or_default().trim_start_matches('/');
        assert!(!name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()), "`<{element}>`");
        assert!(name != "script" && !FOREIGN.contains(&name), "`<{element}>`");
        let mut seen = BTreeSet::new();
        // Values stand in double quotes and have none inside, so every other piece is a name.
        let pieces: Vec<_> = element.split('"').collect();
        assert!(pieces.len() % 2 == 1, "`<{element}>` has a quote too many");
        for pair in pieces.chunks_exact(2) {
            let [names, value] = pair else { continue };
            let name = names.trim_end_matches('=').rsplit(' ').next().unwrap_or_default();
            assert!(seen.insert(name), "`{name}` stands twice in `<{element}>`");
            assert!(!name.starts_with("on") && !ACTING.contains(&name), "`<{element}>`");
            if ADDRESSES.contains(&name) {
                let value = value.to_ascii_lowercase();
                assert!(HARMLESS.iter().any(|harmless| value.starts_with(harmless)), "`<{element}>`");
            }
        }
    }
}

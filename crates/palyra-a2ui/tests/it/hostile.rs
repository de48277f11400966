//! A battery of payloads in every text of every component, judged by what a browser's parser makes of the page.

use std::sync::LazyLock;

use palyra_a2ui::html::{Acting, Entered, Frame, Notice, Origin, Question, Questions, View, page};
use palyra_a2ui::{Document, text};
use serde_json::{Value, json};

use crate::oracle::{Structure, complaints, read};

/// What people have got scripts to run with, one way or another.
pub(crate) const PAYLOADS: &[&str] = &[
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "<svg onload=alert(1)>",
    "<svg><script>alert(1)</script></svg>",
    "\"><script>alert(1)</script>",
    "'><script>alert(1)</script>",
    "\" onmouseover=\"alert(1)",
    "' onfocus='alert(1)' autofocus='",
    "` onmouseover=`alert(1)",
    "javascript:alert(1)",
    "JaVaScRiPt:alert(1)",
    "java\tscript:alert(1)",
    "data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==",
    "vbscript:msgbox(1)",
    "<iframe src=javascript:alert(1)>",
    "<iframe srcdoc='<script>alert(1)</script>'>",
    "<object data=javascript:alert(1)>",
    "<embed src=javascript:alert(1)>",
    "<base href=https://evil.example/>",
    "<meta http-equiv=refresh content='0;url=https://evil.example'>",
    "<link rel=stylesheet href=https://evil.example/x.css>",
    "<style>@import url(https://evil.example/x.css)</style>",
    "<form action=https://evil.example><input name=password>",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "</style><script>alert(1)</script>",
    "</option></select><img src=x onerror=alert(1)>",
    "<!--><script>alert(1)</script>-->",
    "<![CDATA[<script>alert(1)</script>]]>",
    "<?xml version='1.0'?><script>alert(1)</script>",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "&#60;script&#62;alert(1)&#60;/script&#62;",
    "<a href=\"&#106;avascript:alert(1)\">x</a>",
    "[x](javascript:alert(1))",
    "![x](https://evil.example/pixel.png)",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)>",
    "<details open ontoggle=alert(1)>",
    "\u{202e}gnp.exe \u{2066}<b>\u{0}\u{8}</b>",
    "\u{feff}<scr\u{0}ipt>alert(1)</scr\u{0}ipt>",
];

/// A document in which every text is this one.
pub(crate) fn everywhere(text: &str) -> Value {
    // What stands on one line is bounded in bytes.
    let mut line = String::new();
    for c in text.chars() {
        if line.len() + c.len_utf8() <= 400 {
            line.push(c);
        }
    }
    // The option's value is a name that no generated text equals: entering it would select the option and so change the page.
    json!({"root": {"type": "list", "style": "numbers", "items": [
        {"type": "text", "text": text, "style": "heading"},
        {"type": "text", "text": text, "style": "note"},
        {"type": "text", "text": text, "style": "error"},
        {"type": "table", "caption": line, "columns": [line, "b"], "rows": [[text, 1], [null, true]]},
        {"type": "chart", "kind": "bar", "title": line, "labels": [line], "series": [{"name": line, "values": [-3]}]},
        {"type": "chart", "kind": "line", "labels": [line, line], "series": [{"name": line, "values": [0, 2.5]}]},
        {"type": "image", "alt": line, "src": "data:image/png;base64,iVBORw0KGgo="},
        {"type": "progress", "label": line, "value": 0.25},
        {"type": "progress"},
        {"type": "code", "text": text, "language": line},
        {"type": "diff", "text": format!("+{text}\n-{text}\n@{text}")},
        {"type": "approval", "id": "card"},
        {"type": "form", "id": "form", "title": line, "submit": line, "fields": [
            {"type": "text", "name": "text", "label": line, "help": line, "value": line, "required": true, "max_length": 8000},
            {"type": "email", "name": "email", "label": line},
            {"type": "number", "name": "number", "label": line, "min": 0, "max": 9, "value": 1.5},
            {"type": "select", "name": "select", "label": line, "options": [{"value": "the-only-one", "label": line}], "value": "the-only-one"},
            {"type": "checkbox", "name": "checkbox", "label": line, "value": true},
        ]},
    ]}})
}

fn shown(document: &Document, text: &str, acting: Acting<'_>) -> String {
    let question = Question {
        approval_id: text.to_owned(),
        asked_by: Some(text.to_owned()),
        summary: text.to_owned(),
        reason: format!("because {text}"),
        risk: text.to_owned(),
        arguments: Some(text.to_owned()),
        evidence: vec![text.to_owned()],
        answer: None,
    };
    let answered = Question { answer: Some(text.to_owned()), ..question.clone() };
    let questions = [Questions { card: "card".to_owned(), questions: vec![question, answered] }];
    let values = ["text", "email", "number", "select", "checkbox"].map(|name| (name.to_owned(), json!(text)));
    let values = serde_json::Map::from_iter(values);
    let view = View {
        title: text,
        acting,
        notice: Some(Notice::Refused(text)),
        origin: Origin::Untrusted,
        questions: &questions,
        entered: Some(Entered { form: "form", values: &values }),
    };
    page(document, &view, Frame { nonce: "n0nce", page: "/canvas/v1/token", events: "/canvas/v1/token/events" })
}

const ACT: Acting<'_> = Acting::Act { address: "/canvas/v1/token/actions", once: "o" };

/// The script of a harmless page, which is ours.
static OWN_SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let document = Document::parse(&json!({"root": {"type": "text", "text": "x"}})).unwrap();
    read(&shown(&document, "x", Acting::Look)).scripts.concat()
});

/// The structure of a harmless page, for one who acts and for one who looks.
static HARMLESS: LazyLock<[Structure; 2]> = LazyLock::new(|| {
    let document = Document::parse(&everywhere("x")).unwrap();
    [ACT, Acting::Look].map(|acting| read(&shown(&document, "x", acting)).structure())
});

pub(crate) fn check(text: &str) -> Result<(), String> {
    let document = Document::parse(&everywhere(text)).map_err(|error| error.to_string())?;
    for (acting, harmless) in [ACT, Acting::Look].into_iter().zip(HARMLESS.iter()) {
        let page = shown(&document, text, acting);
        let found = complaints(&page, &OWN_SCRIPT);
        if !found.is_empty() {
            return Err(format!("{text:?}: {found:?}"));
        }
        // Beyond what is forbidden: a text changes nothing but text. A diff has a line for each of its lines.
        if !text.contains(['\n', '\r']) && read(&page).structure() != *harmless {
            return Err(format!("{text:?} changed the page"));
        }
    }
    let markdown = json!({"root": {"type": "markdown", "text": text}});
    let page = shown(&Document::parse(&markdown).map_err(|error| error.to_string())?, "t", ACT);
    let found = complaints(&page, &OWN_SCRIPT);
    if found.is_empty() { Ok(()) } else { Err(format!("markdown {text:?}: {found:?}")) }
}

#[test]
fn no_payload_becomes_markup_anywhere() {
    for payload in PAYLOADS.iter().copied() {
        check(payload).unwrap();
        for wrapped in [
            format!("# {payload}\n\n> {payload}\n"),
            format!("```{payload}\n{payload}\n```"),
            format!("|{payload}|\n|-|\n|{payload}|"),
        ] {
            check(&wrapped).unwrap();
        }
        check(&format!("[x]({payload}) <{payload}> ![x]({payload}) [y]: {payload}")).unwrap();
    }
}

#[test]
fn the_oracle_sees_what_it_is_for() {
    for bad in [
        "<script>alert(1)</script>",
        "<p onclick=alert(1)>x</p>",
        "<a href=javascript:alert(1)>x</a>",
        "<img src=https://evil.example/x.png>",
        "<iframe></iframe>",
        "<p style=x>y</p>",
        "<form action=https://evil.example></form>",
        "<!-- x -->",
        "<p id=location>x</p>",
    ] {
        assert!(!complaints(bad, &OWN_SCRIPT).is_empty(), "{bad}");
    }
}

#[test]
fn text_arrives_as_it_was_written() {
    for payload in PAYLOADS.iter().filter(|payload| !payload.contains(['\0', '\u{8}', '\u{202e}'])) {
        let document = Document::parse(&json!({"root": {"type": "text", "text": payload}})).unwrap();
        let page = read(&shown(&document, "t", Acting::Look));
        assert!(page.text.contains(payload), "{payload:?} in {:?}", page.text);
    }
}

#[test]
fn a_terminal_gets_no_control_characters_either() {
    for payload in PAYLOADS.iter().copied().chain(["\u{1b}[2J\u{1b}]0;x\u{7}", "a\rb", "\u{9b}31m"]) {
        let document = Document::parse(&everywhere(payload)).unwrap();
        let lines = text::render(&document);
        let control = lines.chars().find(|c| (c.is_control() && *c != '\n') || ('\u{202a}'..='\u{202e}').contains(c));
        assert_eq!(control, None, "{payload:?}");
    }
}

#[test]
fn links_lead_where_they_say_and_pictures_are_not_loaded() {
    let markdown = "[bank](https://bank.example/x) [mail](mailto:a@example.org) [bad](javascript:alert(1)) ![p](https://evil.example/p.png)";
    let document = Document::parse(&json!({"root": {"type": "markdown", "text": markdown}})).unwrap();
    let page = read(&shown(&document, "t", Acting::Look));
    let links: Vec<_> = page.tags.iter().filter(|tag| tag.name == "a").map(|tag| tag.attributes[0].1.clone()).collect();
    assert_eq!(links, ["https://bank.example/x", "mailto:a@example.org"]);
    assert!(
        page.text.contains("(https://bank.example/x)") && page.text.contains("(javascript:alert(1))"),
        "{}",
        page.text
    );
    assert!(page.tags.iter().all(|tag| tag.name != "img"));
}

#[test]
fn only_a_link_that_acts_has_forms() {
    let document = Document::parse(&everywhere("x")).unwrap();
    let forms = |acting| read(&shown(&document, "x", acting)).tags.iter().filter(|tag| tag.name == "form").count();
    assert_eq!((forms(ACT), forms(Acting::Look)), (2, 0));
}

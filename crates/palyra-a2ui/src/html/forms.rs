//! Forms: plain HTML forms that a browser sends without any script.

use serde_json::{Map, Value};

use super::writer::Html;
use super::{Acting, View};
use crate::component::{Field, FieldKind, Form};

/// Before the name of every value, so that no field takes a name that the form itself uses.
pub(super) const VALUE_PREFIX: &str = "v.";

pub(super) fn write(html: &mut Html, form: &Form, attributes: &[(&'static str, &str)], version: u64, view: &View<'_>) {
    let acting = view.acting;
    let entered = view.entered.filter(|entered| entered.form == form.id).map(|entered| entered.values);
    let mut attributes = attributes.to_vec();
    match acting {
        Acting::Act { address, .. } => {
            attributes.extend([("method", "post"), ("action", address), ("autocomplete", "off")]);
            html.open("form", &attributes);
            hidden(html, &form.id, version, acting);
        }
        Acting::Look => {
            attributes.push(("class", "form"));
            html.open("div", &attributes);
        }
    }
    if let Some(title) = &form.title {
        html.literal("<h2>").text(title).literal("</h2>");
    }
    if acting == Acting::Look {
        html.literal("<fieldset disabled>");
    } else {
        html.literal("<fieldset>");
    }
    for field in &form.fields {
        one(html, form, field, entered);
    }
    html.literal("</fieldset>");
    match acting {
        Acting::Act { .. } => {
            html.literal("<button name=\"action\" value=\"submit\">")
                .text(form.submit.as_deref().unwrap_or("Submit"))
                .literal("</button>")
                .close("form");
        }
        Acting::Look => {
            html.literal("<p class=\"note\">This link is read-only; the form cannot be submitted.</p>").close("div");
        }
    }
}

/// What says which component of which version is acted on.
pub(super) fn hidden(html: &mut Html, component: &str, version: u64, acting: Acting<'_>) {
    let mut field = |name: &'static str, value: &str| {
        html.open("input", &[("type", "hidden"), ("name", name), ("value", value)]);
    };
    field("component", component);
    field("version", &version.to_string());
    if let Acting::Act { once, .. } = acting {
        field("once", once);
    }
}

fn one(html: &mut Html, form: &Form, field: &Field, entered: Option<&Map<String, Value>>) {
    let id = format!("f-{}-{}", form.id, field.name);
    let name = format!("{VALUE_PREFIX}{}", field.name);
    let mut attributes = vec![("id", id.as_str()), ("name", name.as_str())];
    attributes.extend(field.required.then_some(("required", "")));
    // The page's script keeps what is marked so, as it keeps what is typed now.
    attributes.extend(entered.map(|_| ("data-entered", "")));
    let written = entered.map(|values| values.get(&field.name).and_then(Value::as_str));
    html.literal("<div class=\"field\">");
    if let FieldKind::Checkbox { value } = field.kind {
        attributes.extend([("type", "checkbox"), ("value", "on")]);
        attributes.extend(written.map_or(value, |written| written.is_some()).then_some(("checked", "")));
        html.open("input", &attributes).literal(" ");
        label(html, field, &id);
    } else {
        label(html, field, &id);
        input(html, field, attributes, written.map(Option::unwrap_or_default));
    }
    if let Some(help) = &field.help {
        html.literal("<p class=\"note\">").text(help).literal("</p>");
    }
    html.literal("</div>");
}

fn label(html: &mut Html, field: &Field, id: &str) {
    html.open("label", &[("for", id)]).text(&field.label);
    if field.required {
        html.literal(" <span class=\"note\">(required)</span>");
    }
    html.close("label");
}

/// A field with what was written into it, or else what the document proposes.
fn input<'a>(
    html: &mut Html,
    field: &'a Field,
    mut attributes: Vec<(&'static str, &'a str)>,
    written: Option<&'a str>,
) {
    let shown = |proposed: &'a Option<String>| written.or(proposed.as_deref());
    match &field.kind {
        FieldKind::Text { value, max_length } => {
            let most = max_length.map(|most| most.to_string());
            let mut attributes: Vec<(&'static str, &str)> = attributes;
            attributes.extend(most.as_deref().map(|most| ("maxlength", most)));
            attributes.push(("rows", "2"));
            // A first line break after the tag would be dropped; ours is the one that is.
            html.open("textarea", &attributes).literal("\n").text(shown(value).unwrap_or_default());
            html.close("textarea");
        }
        FieldKind::Email { value } => {
            attributes.extend([("type", "email"), ("value", shown(value).unwrap_or_default())]);
            html.open("input", &attributes);
        }
        FieldKind::Number { value, min, max } => {
            let text = |number: &Option<f64>| number.map(|number| number.to_string());
            let (value, min, max) = (text(value), text(min), text(max));
            let mut attributes: Vec<(&'static str, &str)> = attributes;
            attributes.extend([("type", "number"), ("step", "any")]);
            attributes.extend(written.or(value.as_deref()).map(|value| ("value", value)));
            attributes.extend(min.as_deref().map(|min| ("min", min)));
            attributes.extend(max.as_deref().map(|max| ("max", max)));
            html.open("input", &attributes);
        }
        FieldKind::Select { value, options } => {
            let chosen = shown(value);
            html.open("select", &attributes);
            if value.is_none() {
                html.literal("<option value=\"\"></option>");
            }
            for option in options {
                let mut attributes = vec![("value", option.value.as_str())];
                attributes.extend((chosen == Some(option.value.as_str())).then_some(("selected", "")));
                html.open("option", &attributes).text(&option.label);
                // Whoever chooses sees what is chosen, and not only what the document calls it.
                if option.label != option.value {
                    html.text(&format!(" ({})", option.value));
                }
                html.close("option");
            }
            html.close("select");
        }
        FieldKind::Checkbox { .. } => {}
    }
}

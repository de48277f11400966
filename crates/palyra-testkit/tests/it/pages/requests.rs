//! Requests that the pages show, against the description of the API that the daemon serves.

use std::path::Path;

use serde_json::Value;

/// A request as a page shows it: `POST /api/v1/path   {"json": …}`, possibly over several lines.
struct Shown {
    place: String,
    method: String,
    path: String,
    body: Option<Value>,
}

fn shown(name: &str, text: &str) -> Vec<Shown> {
    let lines: Vec<&str> = text.lines().collect();
    let mut found = Vec::new();
    for (number, line) in lines.iter().enumerate() {
        let mut words = line.split_whitespace();
        let (Some(method @ ("GET" | "POST")), Some(path)) = (words.next(), words.next()) else { continue };
        if !path.starts_with("/api/v1/") {
            continue;
        }
        let place = format!("{name}:{}", number + 1);
        let body = line.find('{').filter(|at| *at > line.find(path).unwrap_or_default() + path.len()).map(|at| {
            let rest = lines[number + 1..].iter().take_while(|line| line.starts_with(' '));
            let text: String = std::iter::once(&line[at..]).chain(rest.copied()).collect();
            let mut documents = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
            documents.next().unwrap().unwrap_or_else(|error| panic!("{place}: {error}: {text}"))
        });
        found.push(Shown { place, method: method.to_lowercase(), path: path.to_owned(), body });
    }
    found
}

/// The operation of a path in the description, whatever stands for its ids.
fn operation<'a>(description: &'a Value, shown: &Shown) -> Option<&'a Value> {
    let path = shown.path.split('?').next().unwrap_or_default();
    let fits = |template: &str| {
        let (parts, given): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
        parts.len() == given.len()
            && parts.iter().zip(&given).all(|(part, given)| part.starts_with('{') || part == given)
    };
    let paths = description["paths"].as_object().unwrap();
    paths.iter().filter(|(template, _)| fits(template)).find_map(|(_, operations)| operations.get(&shown.method))
}

/// What a body does not have and must, or has and must not. Ids in the pages are shortened, so values are looked at only where they are one of a list.
fn complaints(description: &Value, schema: &Value, body: &Value, at: &str) -> Vec<String> {
    let schema = match schema.get("$ref").and_then(Value::as_str).and_then(|name| name.strip_prefix('#')) {
        Some(pointer) => description.pointer(pointer).unwrap(),
        None => schema,
    };
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        let tried: Vec<_> = choices.iter().map(|choice| complaints(description, choice, body, at)).collect();
        return tried.into_iter().min_by_key(Vec::len).unwrap_or_default();
    }
    if let Some(values) = schema.get("enum").and_then(Value::as_array)
        && !values.contains(body)
    {
        return vec![format!("`{at}` is {body}, not one of {values:?}")];
    }
    if let (Some(items), Some(entries)) = (schema.get("items"), body.as_array()) {
        return entries.iter().flat_map(|entry| complaints(description, items, entry, at)).collect();
    }
    let (Some(properties), Some(fields)) = (schema.get("properties").and_then(Value::as_object), body.as_object())
    else {
        return match (schema.get("type").and_then(Value::as_str), body) {
            (Some("string"), Value::String(_)) | (Some("null"), Value::Null) | (None | Some("object" | "array"), _) => {
                Vec::new()
            }
            (Some("integer" | "number"), Value::Number(_)) | (Some("boolean"), Value::Bool(_)) => Vec::new(),
            (Some(wanted), _) => vec![format!("`{at}` is {body}, not a {wanted}")],
        };
    };
    let required = schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    let missing = required.filter(|name| !fields.contains_key(*name)).map(|name| format!("`{at}.{name}` is missing"));
    let nested = fields.iter().flat_map(|(name, value)| match properties.get(name) {
        Some(schema) => complaints(description, schema, value, &format!("{at}.{name}")),
        None if schema.get("additionalProperties") == Some(&Value::Bool(false)) => {
            vec![format!("`{at}.{name}` is unknown")]
        }
        None => Vec::new(),
    });
    missing.chain(nested).collect()
}

#[test]
fn requests_on_the_pages_fit_the_api() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let description: Value =
        serde_json::from_str(&std::fs::read_to_string(root.join("schemas/openapi.json")).unwrap()).unwrap();
    let mut mistakes = Vec::new();
    let mut looked_at = 0;
    for folder in ["docs", "docs/flows"] {
        for entry in std::fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap) {
            if entry.path().extension().is_none_or(|ending| ending != "md") {
                continue;
            }
            let text = std::fs::read_to_string(entry.path()).unwrap();
            for request in shown(&entry.file_name().to_string_lossy(), &text) {
                looked_at += 1;
                let Some(operation) = operation(&description, &request) else {
                    mistakes.push(format!("{}: there is no {} {}", request.place, request.method, request.path));
                    continue;
                };
                let schema = operation.pointer("/requestBody/content/application~1json/schema");
                if let (Some(schema), Some(body)) = (schema, &request.body) {
                    let found = complaints(&description, schema, body, "body");
                    mistakes.extend(found.into_iter().map(|complaint| format!("{}: {complaint}", request.place)));
                }
            }
        }
    }
    assert!(looked_at >= 6, "only {looked_at} requests were found");
    assert!(mistakes.is_empty(), "{}", mistakes.join("\n"));
}

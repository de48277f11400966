//! Every shipped policy matters: removing it, turning it round or weakening any part of it makes a shipped case fail.
//!
//! Mutants are made on Cedar's own syntax tree. One that no longer passes validation is refused when it is loaded, which counts as
//! found; one that passes must fail a case.

use cedar_policy::{Policy, PolicyId, PolicySet as CedarSet, Template};
use palyra_policy::{
    PolicyError, PolicySet, PolicySource, PolicySources, SHIPPED_POLICIES, SHIPPED_TESTS, ShippedFile, run_test_text,
};
use serde_json::Value;

/// Mutants that mean the same as the original: in the schema only one action has such a resource or such a principal.
const EQUIVALENT: [&str; 3] = [
    "grants.cedar: send: action scope dropped",
    "grants.cedar: use_secret: action scope dropped",
    "people.cedar: widening_needs_owner: action scope dropped",
];

struct Mutant {
    what: String,
    text: String,
}

/// The policies of a file as JSON, with their text.
fn policies(text: &str) -> Vec<(Value, String)> {
    let set: CedarSet = text.parse().unwrap();
    let statics = set.policies().map(|policy| (policy.to_json().unwrap(), policy.to_string()));
    let templates = set.templates().map(|template| (template.to_json().unwrap(), template.to_string()));
    statics.chain(templates).collect()
}

fn rendered(json: &Value) -> Option<String> {
    let id = Some(PolicyId::new("m"));
    if let Ok(policy) = Policy::from_json(id.clone(), json.clone()) {
        return policy.to_cedar();
    }
    Template::from_json(id, json.clone()).ok().map(|template| template.to_cedar())
}

/// Every tree that differs from this expression in one place by something weaker or stronger.
fn weakened(expression: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let Value::Object(fields) = expression else { return found };
    for (operator, operands) in fields {
        match operator.as_str() {
            "&&" | "||" => {
                for side in ["left", "right"] {
                    found.push((format!("{operator} reduced to its {side}"), operands[side].clone()));
                }
                let other = if operator == "&&" { "||" } else { "&&" };
                found.push((format!("{operator} made {other}"), serde_json::json!({ other: operands })));
            }
            "==" => found.push(("== made !=".into(), serde_json::json!({ "!=": operands }))),
            "!=" => found.push(("!= made ==".into(), serde_json::json!({ "==": operands }))),
            ">" => found.push(("> made >=".into(), serde_json::json!({ ">=": operands }))),
            ">=" => found.push((">= made >".into(), serde_json::json!({ ">": operands }))),
            "!" => found.push(("! dropped".into(), operands["arg"].clone())),
            _ => {}
        }
        if let Value::Object(children) = operands {
            for (name, child) in children {
                for (what, changed) in weakened(child) {
                    let mut copy = expression.clone();
                    copy[operator][name] = changed;
                    found.push((what, copy));
                }
            }
        }
    }
    found
}

fn mutants_of(json: &Value) -> Vec<(String, Value)> {
    let mut found = Vec::new();
    let mut change = |what: String, edit: &dyn Fn(&mut Value)| {
        let mut copy = json.clone();
        edit(&mut copy);
        found.push((what, copy));
    };
    let flipped = if json["effect"] == "permit" { "forbid" } else { "permit" };
    change("effect turned round".into(), &|json| json["effect"] = flipped.into());
    for annotation in ["approval", "guard"] {
        if json["annotations"].get(annotation).is_some() {
            change(format!("@{annotation} dropped"), &|json| {
                json["annotations"].as_object_mut().unwrap().remove(annotation);
            });
        }
    }
    if json["annotations"].get("guard").is_some() {
        change("guard turned into a plain permit".into(), &|json| {
            json["annotations"].as_object_mut().unwrap().remove("guard");
            json["effect"] = "permit".into();
        });
    }
    for scope in ["principal", "action", "resource"] {
        if json[scope]["op"] != "All" {
            change(format!("{scope} scope dropped"), &|json| json[scope] = serde_json::json!({ "op": "All" }));
        }
    }
    if let Some(actions) = json["action"]["entities"].as_array() {
        for (index, action) in actions.iter().enumerate() {
            change(format!("action {} dropped", action["id"]), &|json| {
                json["action"]["entities"].as_array_mut().unwrap().remove(index);
            });
        }
    }
    for (index, condition) in json["conditions"].as_array().unwrap().iter().enumerate() {
        change(format!("condition {index} dropped"), &|json| {
            json["conditions"].as_array_mut().unwrap().remove(index);
        });
        let kind = if condition["kind"] == "when" { "unless" } else { "when" };
        change(format!("condition {index} turned round"), &|json| json["conditions"][index]["kind"] = kind.into());
        for (what, body) in weakened(&condition["body"]) {
            change(format!("condition {index}: {what}"), &|json| json["conditions"][index]["body"] = body.clone());
        }
    }
    found
}

fn all_mutants(text: &str) -> Vec<Mutant> {
    let all = policies(text);
    let mut mutants = Vec::new();
    for (position, (json, _)) in all.iter().enumerate() {
        let with = |replacement: &str| {
            let texts =
                all.iter().enumerate().map(|(n, (_, text))| if n == position { replacement } else { text.as_str() });
            texts.collect::<Vec<_>>().join("\n")
        };
        let name = json["annotations"]["id"].as_str().unwrap().to_owned();
        mutants.push(Mutant { what: format!("{name}: removed"), text: with("") });
        for (what, changed) in mutants_of(json) {
            if let Some(changed) = rendered(&changed) {
                mutants.push(Mutant { what: format!("{name}: {what}"), text: with(&changed) });
            }
        }
    }
    mutants
}

enum Held {
    Passes,
    Fails,
}

/// Runs the shipped cases until one fails, those of the changed file first.
fn held(set: &PolicySet, file: &str) -> Result<Held, PolicyError> {
    let own = file.replace(".cedar", ".policy-test.toml");
    let (first, rest): (Vec<&ShippedFile>, Vec<&ShippedFile>) = SHIPPED_TESTS.iter().partition(|test| test.name == own);
    for test in first.iter().chain(&rest) {
        match run_test_text(set, test.name, test.text) {
            Ok(report) if report.passed() => {}
            Ok(_) => return Ok(Held::Fails),
            Err(error @ PolicyError::BadTestFile { .. }) => panic!("{error}"),
            Err(error) => return Err(error),
        }
    }
    Ok(Held::Passes)
}

#[test]
fn every_part_of_every_shipped_policy_is_held_by_a_case() {
    assert!(
        matches!(held(&PolicySet::shipped().unwrap(), "workspace.cedar"), Ok(Held::Passes)),
        "unchanged, they pass"
    );
    let (mut failed, mut refused, mut survivors) = (0, 0, Vec::new());
    for file in SHIPPED_POLICIES {
        let others = SHIPPED_POLICIES.iter().filter(|other| other.name != file.name);
        let texts = others.map(|other| PolicySource::new(other.name, other.text)).collect();
        let others = PolicySet::load(&PolicySources { texts, ..PolicySources::default() }).unwrap();
        for mutant in all_mutants(file.text) {
            match others
                .extended(&[PolicySource::new(file.name, mutant.text)], Vec::new())
                .and_then(|set| held(&set, file.name))
            {
                Err(_) => refused += 1,
                Ok(Held::Passes) => survivors.push(format!("{}: {}", file.name, mutant.what)),
                Ok(Held::Fails) => failed += 1,
            }
        }
    }
    let total = failed + refused + survivors.len();
    let rate = 100.0 * (failed + refused) as f64 / total as f64;
    println!("{total} mutants: {failed} fail a case, {refused} are refused, {} survive: {rate:.1} %", survivors.len());
    for survivor in &survivors {
        println!("survives: {survivor}");
    }
    assert!(total >= 150, "only {total} mutants");
    assert!(failed >= 100, "only {failed} mutants reach a case");
    assert_eq!(survivors, EQUIVALENT, "only what changes no decision may survive");
}

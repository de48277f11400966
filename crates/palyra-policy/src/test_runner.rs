//! Test cases for policies: `*.policy-test.toml`.
//!
//! A file has a base request, optional policies and grants that exist only for its cases, and the cases. A case gives what differs
//! from the base, the verdict it expects and, if it says so, exactly the policies that determine it:
//!
//! ```toml
//! [request]
//! action = "tool.read"
//! # …
//! [[case]]
//! name = "reading outside the workspace is denied"
//! request.resource.path = { name = "/etc/passwd", location = "outside_workspace" }
//! expect = "deny"
//! policies = []
//! ```

use std::path::Path;

use palyra_common::ToolVerdict;
use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::one_line;
use crate::source::read_file;
use crate::{Decision, Grant, Place, PolicyError, PolicySet, PolicySource, Request, SHIPPED_TESTS};

/// Fields of a request that hold one of several alternatives: another alternative replaces the base, it is not merged into it.
const ALTERNATIVES: [&str; 3] = ["principal", "resource", "context"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TestFile {
    #[serde(default)]
    policies: Option<String>,
    #[serde(default)]
    grant: Vec<Grant>,
    #[serde(default)]
    request: Table,
    case: Vec<toml::Spanned<Case>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[serde(default)]
    request: Table,
    expect: ToolVerdict,
    policies: Option<Vec<String>>,
    #[serde(default)]
    person: Option<String>,
}

/// A case that did not come out as expected.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CaseFailure {
    /// Where the case stands.
    pub at: Place,
    /// Its name.
    pub case: String,
    /// What differs, for a person.
    pub difference: String,
    /// What was decided.
    pub decision: Decision,
}

/// The outcome of one or more files.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct TestReport {
    /// How many cases ran.
    pub cases: usize,
    /// Those that did not come out as expected.
    pub failures: Vec<CaseFailure>,
}

/// Runs the shipped cases and those of the operator's directory.
///
/// # Errors
/// When a file cannot be understood, or its own policies are faulty.
pub fn run_tests(set: &PolicySet) -> Result<TestReport, PolicyError> {
    let mut report = TestReport::default();
    let shipped = SHIPPED_TESTS.iter().map(|file| PolicySource::new(file.name, file.text));
    for source in shipped.chain(set.tests().iter().cloned()) {
        report.add(run_test_text(set, &source.file, &source.text)?);
    }
    Ok(report)
}

/// Runs the cases of one file.
///
/// # Errors
/// When it cannot be read or understood, or its own policies are faulty.
pub fn run_test_file(set: &PolicySet, path: &Path) -> Result<TestReport, PolicyError> {
    run_test_text(set, &path.display().to_string(), &read_file(path)?)
}

/// Runs the cases of a text.
///
/// # Errors
/// When it cannot be understood, or its own policies are faulty.
pub fn run_test_text(set: &PolicySet, file: &str, text: &str) -> Result<TestReport, PolicyError> {
    let parsed: TestFile = toml::from_str(text).map_err(|error| PolicyError::BadTestFile {
        at: Place::at_offset(file, text, error.span().map_or(0, |span| span.start)),
        reason: one_line(error.message()),
    })?;
    let extra: Vec<PolicySource> = parsed.policies.iter().map(|text| PolicySource::new("test", text)).collect();
    let extended;
    let set = if extra.is_empty() && parsed.grant.is_empty() {
        set
    } else {
        extended = set.extended(&extra, parsed.grant)?;
        &extended
    };
    let mut report = TestReport::default();
    for spanned in parsed.case {
        let at = Place::at_offset(file, text, spanned.span().start);
        let case = spanned.into_inner();
        let request = request(&parsed.request, &case).map_err(|error| PolicyError::BadTestFile {
            at: at.clone(),
            reason: format!("case `{}`: {}", case.name, one_line(error.message())),
        })?;
        let decision = set.decide(&request);
        report.cases += 1;
        if let Some(difference) = difference(&case, &decision) {
            report.failures.push(CaseFailure { at, case: case.name, difference, decision });
        }
    }
    Ok(report)
}

impl TestReport {
    /// Whether every case came out as expected, and there was at least one.
    #[must_use]
    pub fn passed(&self) -> bool {
        self.cases > 0 && self.failures.is_empty()
    }

    fn add(&mut self, other: Self) {
        self.cases += other.cases;
        self.failures.extend(other.failures);
    }
}

fn difference(case: &Case, decision: &Decision) -> Option<String> {
    if decision.verdict != case.expect {
        return Some(format!("expected {}, got {}", case.expect, decision.verdict));
    }
    if let Some(expected) = &case.policies {
        let mut expected = expected.clone();
        expected.sort();
        if expected != decision.policies {
            let list = |ids: &[String]| if ids.is_empty() { "none".to_owned() } else { ids.join(", ") };
            return Some(format!("expected the policies {}, got {}", list(&expected), list(&decision.policies)));
        }
    }
    match &case.person {
        Some(reason) if !decision.person.contains(reason) => {
            Some(format!("expected the reason `{reason}`, got `{}`", decision.person.join("; ")))
        }
        _ => None,
    }
}

fn request(base: &Table, case: &Case) -> Result<Request, toml::de::Error> {
    let mut merged = base.clone();
    for (key, value) in &case.request {
        match merged.get_mut(key) {
            Some(existing) if ALTERNATIVES.contains(&key.as_str()) => merge_alternative(existing, value),
            Some(existing) => merge(existing, value),
            None => {
                merged.insert(key.clone(), value.clone());
            }
        }
    }
    Value::Table(merged).try_into()
}

/// Merges if both are the same alternative, otherwise the new one stands alone.
fn merge_alternative(base: &mut Value, over: &Value) {
    let same = match (&*base, over) {
        (Value::Table(base), Value::Table(over)) => base.keys().eq(over.keys()),
        _ => false,
    };
    if same { merge(base, over) } else { *base = over.clone() }
}

fn merge(base: &mut Value, over: &Value) {
    match (base, over) {
        (Value::Table(base), Value::Table(over)) => {
            for (key, value) in over {
                match base.get_mut(key) {
                    Some(existing) => merge(existing, value),
                    None => {
                        base.insert(key.clone(), value.clone());
                    }
                }
            }
        }
        (base, over) => *base = over.clone(),
    }
}

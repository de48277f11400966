//! The cases of a skill, `tests/*.json`: inputs with the outputs they must give, and what the host pretends while they run.
//!
//! Here they are read and compared. Running a module is the runtime's business: whoever has one asks [`Case`] what the host shall answer and hands the
//! outcome to [`Case::check`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use crate::BuildError;

/// Storage by space and key.
type Spaces = BTreeMap<String, BTreeMap<String, String>>;

/// One file of cases.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkillCases {
    /// Where it was read from.
    #[serde(skip)]
    pub path: PathBuf,
    /// The cases, in order; each has a storage of its own.
    pub cases: Vec<Case>,
}

/// One case. It names either a tool with its input or an event for a hook, and either an output or an error.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Case {
    /// What it shows, in words.
    pub name: String,
    /// The tool that is called.
    pub tool: Option<String>,
    /// The input of the tool.
    pub input: Option<Value>,
    /// The event that a hook answers.
    pub hook: Option<HookCase>,
    /// The output, exactly; or of a hook's decision those fields that are given.
    pub expect: Option<Value>,
    /// A part of the error's text.
    pub expect_error: Option<String>,
    /// What the other side answers, in the order of requests. A request that is not listed is refused, and so is a case that makes fewer.
    #[serde(default)]
    pub http: Vec<CannedHttp>,
    /// What is stored before.
    #[serde(default)]
    pub storage: Spaces,
    /// What is stored afterwards, exactly.
    pub expect_storage: Option<Spaces>,
    /// What the operator set.
    #[serde(default)]
    pub config: BTreeMap<String, String>,
}

/// An event for a hook.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HookCase {
    /// Such as `run:before_tool`.
    pub event: String,
    /// What there is to know.
    #[serde(default)]
    pub payload: Value,
    /// The run it belongs to.
    pub run_id: Option<String>,
}

/// A request that is expected, and the answer to it.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CannedHttp {
    /// Such as `GET`.
    pub method: String,
    /// The whole address.
    pub url: String,
    /// The body that must be sent; JSON is compared as JSON.
    pub expect_body: Option<Value>,
    /// The names of secrets that the host must have been asked to put in.
    #[serde(default)]
    pub expect_secrets: Vec<String>,
    /// Such as 200.
    #[serde(default = "ok")]
    pub status: u16,
    /// Header lines of the answer.
    #[serde(default)]
    pub headers: BTreeMap<String, String>,
    /// The body of the answer: a text as it is, anything else as JSON.
    #[serde(default)]
    pub body: Value,
    /// The other side is not there, for this reason.
    pub unreachable: Option<String>,
}

fn ok() -> u16 {
    200
}

/// A request as a plugin made it.
#[derive(Debug, Clone)]
pub struct Sent<'a> {
    /// Such as `GET`.
    pub method: &'a str,
    /// The whole address.
    pub url: &'a str,
    /// What was sent along.
    pub body: &'a [u8],
    /// The names of secrets that the host is to put in.
    pub secrets: Vec<String>,
}

/// What a case expects.
#[derive(Debug, Clone, PartialEq)]
pub enum Expectation<'a> {
    /// This output, exactly; of a decision those fields that are given.
    Output(&'a Value),
    /// An error with this text in it.
    Error(&'a str),
}

/// How an outcome differs from what was expected.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct CaseFailure(
    /// In words.
    pub String,
);

impl SkillCases {
    /// All files of cases in a skill's folder, by name. A folder without any gives none.
    pub fn read_all(folder: &Path) -> Result<Vec<Self>, BuildError> {
        let tests = folder.join("tests");
        if !tests.is_dir() {
            return Ok(Vec::new());
        }
        let mut paths = Vec::new();
        for entry in tests.read_dir().map_err(BuildError::io(&tests))? {
            let path = entry.map_err(BuildError::io(&tests))?.path();
            if path.extension().is_some_and(|end| end == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        paths.into_iter().map(|path| Self::read(&path)).collect()
    }

    /// One file of cases.
    pub fn read(path: &Path) -> Result<Self, BuildError> {
        let text = std::fs::read_to_string(path).map_err(BuildError::io(path))?;
        let invalid = |reason: String| BuildError::CasesInvalid { path: path.to_owned(), reason };
        let mut cases: Self = serde_json::from_str(&text).map_err(|error| invalid(error.to_string()))?;
        for case in &cases.cases {
            case.consistent().map_err(|reason| invalid(format!("`{}`: {reason}", case.name)))?;
        }
        cases.path = path.to_owned();
        Ok(cases)
    }
}

impl Case {
    fn consistent(&self) -> Result<(), &'static str> {
        match (&self.tool, &self.hook) {
            (Some(_), None) | (None, Some(_)) => {}
            _ => return Err("it needs either `tool` or `hook`"),
        }
        match (&self.expect, &self.expect_error) {
            (Some(_), None) | (None, Some(_)) => Ok(()),
            _ => Err("it needs either `expect` or `expect_error`"),
        }
    }

    /// The input of the tool as a JSON text.
    #[must_use]
    pub fn input_text(&self) -> String {
        self.input.as_ref().map_or_else(|| "{}".to_owned(), Value::to_string)
    }

    /// What is expected.
    #[must_use]
    pub fn expectation(&self) -> Expectation<'_> {
        match (&self.expect, &self.expect_error) {
            (_, Some(error)) => Expectation::Error(error),
            (Some(output), None) => Expectation::Output(output),
            (None, None) => Expectation::Output(&Value::Null),
        }
    }

    /// The answer to the request that comes as number `index`, counted from 0.
    pub fn answer(&self, index: usize, sent: &Sent<'_>) -> Result<&CannedHttp, CaseFailure> {
        let canned = self.http.get(index).ok_or_else(|| {
            CaseFailure(format!(
                "expected {} requests, but got another one: {} {}",
                self.http.len(),
                sent.method,
                sent.url
            ))
        })?;
        canned.fits(sent)?;
        Ok(canned)
    }

    /// Compares what came of it: the output as a JSON text or the error in words, how many requests were made, and what is stored.
    pub fn check(&self, outcome: Result<&str, &str>, requests: usize, stored: &Spaces) -> Result<(), CaseFailure> {
        match (self.expectation(), outcome) {
            (Expectation::Error(part), Err(error)) if error.contains(part) => {}
            (Expectation::Error(part), Err(error)) => {
                return Err(CaseFailure(format!("expected an error containing `{part}`, got `{error}`")));
            }
            (Expectation::Error(part), Ok(output)) => {
                return Err(CaseFailure(format!("expected an error containing `{part}`, got the output {output}")));
            }
            (Expectation::Output(_), Err(error)) => return Err(CaseFailure(format!("it failed: {error}"))),
            (Expectation::Output(expected), Ok(output)) => self.compare(expected, output)?,
        }
        if requests != self.http.len() {
            return Err(CaseFailure(format!("expected {} requests, got {requests}", self.http.len())));
        }
        match &self.expect_storage {
            Some(expected) if expected != stored => {
                Err(CaseFailure(format!("expected {expected:?} to be stored, found {stored:?}")))
            }
            _ => Ok(()),
        }
    }

    fn compare(&self, expected: &Value, output: &str) -> Result<(), CaseFailure> {
        let actual: Value = serde_json::from_str(output)
            .map_err(|error| CaseFailure(format!("the output is not valid JSON: {error}")))?;
        let same = match (&self.hook, expected) {
            // Of a decision only those fields count that the case gives.
            (Some(_), Value::Object(fields)) => fields.iter().all(|(name, value)| actual.get(name) == Some(value)),
            _ => actual == *expected,
        };
        if same { Ok(()) } else { Err(CaseFailure(format!("expected {expected}, got {actual}"))) }
    }
}

impl CannedHttp {
    fn fits(&self, sent: &Sent<'_>) -> Result<(), CaseFailure> {
        if self.method != sent.method || self.url != sent.url {
            return Err(CaseFailure(format!(
                "expected the request {} {}, got {} {}",
                self.method, self.url, sent.method, sent.url
            )));
        }
        if self.expect_secrets != sent.secrets {
            return Err(CaseFailure(format!("expected the secrets {:?}, got {:?}", self.expect_secrets, sent.secrets)));
        }
        let fits = match &self.expect_body {
            None => true,
            Some(Value::String(text)) => text.as_bytes() == sent.body,
            Some(value) => serde_json::from_slice::<Value>(sent.body).is_ok_and(|body| body == *value),
        };
        if fits {
            Ok(())
        } else {
            Err(CaseFailure(format!("unexpected request body: {}", String::from_utf8_lossy(sent.body))))
        }
    }

    /// The bytes of the answer's body.
    #[must_use]
    pub fn body_bytes(&self) -> Vec<u8> {
        match &self.body {
            Value::Null => Vec::new(),
            Value::String(text) => text.as_bytes().to_vec(),
            value => value.to_string().into_bytes(),
        }
    }
}

#[cfg(test)]
#[path = "cases_tests.rs"]
mod tests;

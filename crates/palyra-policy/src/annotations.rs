//! What Palyra reads from the annotations of a policy.
//!
//! - `@id("name")`: required; with the name of the file it is the policy's stable id.
//! - `@approval("required")` on a permit: it permits only if a person agrees. `@approval("waived")`: it permits even where a guard
//!   would ask; this is how an operator's explicit trust is written down. `@approval("agreed")`: a person agreed to calls like these; it
//!   answers the questions of the policies that `@answers` names, and permits nothing by itself.
//! - `@answers("sinks.flow asking.outside_envelope")` on what was agreed: the ids of the policies whose questions it answers. It counts only where no other policy
//!   asks; without the annotation it answers none.
//! - `@guard("approval")` on a forbid: it forbids unless a person agrees. Read by plain Cedar it is a forbid, so a program that does
//!   not know the annotation errs on the safe side.
//! - `@reason_person`, `@reason_model`: why, in plain words. `@note`: for whoever reads the file.
//!
//! An unknown annotation is an error: a misspelt `@approval` must not turn a question into a permission.

use std::collections::BTreeSet;

use cedar_policy::Effect;
use serde::Serialize;

use crate::{Place, PolicyError};

const KNOWN: [&str; 7] = ["id", "approval", "answers", "guard", "reason_person", "reason_model", "note"];

/// Whether a permit asks a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Approval {
    /// It permits only if a person agrees.
    Required,
    /// It permits even where a guard would ask.
    Waived,
    /// A person agreed to calls like these; it permits nothing by itself.
    Agreed,
}

/// What part a policy has in a decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// It permits; guards may ask.
    Permit,
    /// It permits only if a person agrees.
    PermitIfApproved,
    /// It permits even where a guard would ask.
    PermitUnasked,
    /// It answers the questions of some policies, and permits nothing by itself.
    Agreed,
    /// It turns a permission into a question.
    Guard,
    /// It forbids, whatever else permits.
    Forbid,
}

/// The annotations of one policy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Annotations {
    /// The name inside its file.
    pub name: String,
    /// Its part in a decision.
    pub role: Role,
    /// What `@approval` says.
    pub approval: Option<Approval>,
    /// The policies whose questions it answers.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub answers: BTreeSet<String>,
    /// Why, for the person.
    pub reason_person: Option<String>,
    /// Why, for the model.
    pub reason_model: Option<String>,
}

impl Annotations {
    pub(crate) fn read<'a>(
        effect: Effect,
        at: &Place,
        pairs: impl Iterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, PolicyError> {
        let bad = |reason: String| PolicyError::BadAnnotation { at: at.clone(), reason };
        let (mut name, mut approval, mut guard) = (None, None, None);
        let (mut reason_person, mut reason_model) = (None, None);
        let mut answers = BTreeSet::new();
        for (key, value) in pairs {
            match key {
                "id" => name = Some(value.to_owned()),
                "approval" => {
                    approval = Some(match value {
                        "required" => Approval::Required,
                        "waived" => Approval::Waived,
                        "agreed" => Approval::Agreed,
                        other => {
                            let known = "\"required\", \"waived\" or \"agreed\"";
                            return Err(bad(format!("`@approval` must be {known}, not `{other}`")));
                        }
                    });
                }
                "answers" => answers = value.split_whitespace().map(str::to_owned).collect(),
                "guard" if value == "approval" => guard = Some(()),
                "guard" => return Err(bad(format!("`@guard` must be \"approval\", not `{value}`"))),
                "reason_person" => reason_person = Some(value.to_owned()),
                "reason_model" => reason_model = Some(value.to_owned()),
                "note" => {}
                "include" => return Err(PolicyError::Include { at: at.clone() }),
                other => return Err(bad(unknown(other))),
            }
        }
        let role = match (effect, approval, guard) {
            (Effect::Permit, None, None) => Role::Permit,
            (Effect::Permit, Some(Approval::Required), None) => Role::PermitIfApproved,
            (Effect::Permit, Some(Approval::Waived), None) => Role::PermitUnasked,
            (Effect::Permit, Some(Approval::Agreed), None) => Role::Agreed,
            (Effect::Permit, _, Some(())) => return Err(bad("`@guard` is only allowed on a forbid".to_owned())),
            // An approval cannot soften a forbid; the linter says that the annotation does nothing.
            (Effect::Forbid, _, None) => Role::Forbid,
            (Effect::Forbid, None, Some(())) => Role::Guard,
            (Effect::Forbid, Some(_), Some(())) => {
                return Err(bad("`@guard` and `@approval` cannot be combined".to_owned()));
            }
        };
        if !answers.is_empty() && role != Role::Agreed {
            return Err(bad("`@answers` is only allowed beside `@approval(\"agreed\")`".to_owned()));
        }
        let name =
            name.ok_or_else(|| PolicyError::BadId { at: at.clone(), reason: "a policy needs an `@id`".into() })?;
        if !is_plain(&name) {
            let reason = format!("`{name}` is not a valid id: use lower-case letters, digits, `_` and `-`");
            return Err(PolicyError::BadId { at: at.clone(), reason });
        }
        Ok(Self { name, role, approval, answers, reason_person, reason_model })
    }
}

/// Whether a text may be part of a policy's id.
pub(crate) fn is_plain(text: &str) -> bool {
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || "_-".contains(letter);
    !text.is_empty() && text.len() <= 64 && text.chars().all(plain)
}

fn unknown(key: &str) -> String {
    let near = KNOWN.iter().find(|known| strsim::damerau_levenshtein(known, key) <= 2);
    match near {
        Some(near) => format!("unknown annotation `@{key}`; did you mean `@{near}`?"),
        None => format!("unknown annotation `@{key}`"),
    }
}

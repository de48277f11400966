//! Grants: templates with their slots filled in, from a list.
//!
//! A grant names a template by its full id and gives an entity for each slot, written as in a policy: `User::"alice"`.

use std::collections::HashMap;
use std::str::FromStr;

use cedar_policy::{EntityUid, PolicyId, PolicySet as CedarSet, SlotId};
use serde::{Deserialize, Serialize};

use crate::annotations::is_plain;
use crate::error::one_line;
use crate::{Place, PolicyError};

/// One template with its slots filled in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Grant {
    /// Its name; the policy it makes has the id `grant.<name>`.
    pub id: String,
    /// Full id of the template, such as `grants.connect`.
    pub template: String,
    /// What `?principal` stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
    /// What `?resource` stands for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GrantsFile {
    #[serde(default)]
    grant: Vec<Grant>,
}

impl Grant {
    /// Reads a list of `[[grant]]` tables.
    ///
    /// # Errors
    /// When it is not such a list.
    pub fn read_list(file: &str, text: &str) -> Result<Vec<Self>, PolicyError> {
        let parsed: Result<GrantsFile, toml::de::Error> = toml::from_str(text);
        parsed.map(|list| list.grant).map_err(|error| PolicyError::BadGrantsFile {
            at: Place::at_offset(file, text, error.span().map_or(0, |span| span.start)),
            reason: one_line(error.message()),
        })
    }

    /// Id of the policy this grant makes.
    #[must_use]
    pub fn policy_id(&self) -> String {
        format!("grant.{}", self.id)
    }

    fn bad(&self, reason: &str) -> PolicyError {
        PolicyError::BadGrant { grant: self.id.clone(), reason: one_line(reason) }
    }

    /// Adds the grant's policy to a set that holds its template.
    pub(crate) fn link(&self, set: &mut CedarSet) -> Result<(), PolicyError> {
        if !is_plain(&self.id) {
            return Err(self.bad("the id may contain only lower-case letters, digits, `_` and `-`"));
        }
        let template = PolicyId::new(&self.template);
        if set.policy(&template).is_some() {
            return Err(PolicyError::TemplateWithoutSlot { grant: self.id.clone(), template: self.template.clone() });
        }
        if set.template(&template).is_none() {
            return Err(PolicyError::UnknownTemplate { grant: self.id.clone(), template: self.template.clone() });
        }
        let mut values = HashMap::new();
        for (slot, given) in [(SlotId::principal(), &self.principal), (SlotId::resource(), &self.resource)] {
            if let Some(given) = given {
                let entity = EntityUid::from_str(given).map_err(|error| self.bad(&format!("`{given}`: {error}")))?;
                values.insert(slot, entity);
            }
        }
        set.link(template, PolicyId::new(self.policy_id()), values).map_err(|error| self.bad(&error.to_string()))
    }
}

//! The JSON that answers are made of.

use serde_json::Value;

use crate::error::ModelError;

/// One document of an answer.
pub(crate) fn parse(data: &str) -> Result<Value, ModelError> {
    serde_json::from_str(data)
        .map_err(|error| ModelError::malformed(format!("the server sent something that is not JSON: {error}")))
}

/// The error for JSON that has nothing of what this kind of server sends: most likely it is another kind of server.
pub(crate) fn no_part_of(what: &str) -> ModelError {
    ModelError::malformed(format!("the server sent JSON that is not the expected {what}; check the base URL"))
}

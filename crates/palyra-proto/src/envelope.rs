//! The stable error envelope as a message.

use palyra_common::{FieldError, StableErrorEnvelope};

use crate::ProtoError;
use crate::common::v1 as wire;
use crate::value::{contract_from_wire, contract_to_wire, json_from_wire};

impl From<StableErrorEnvelope> for wire::StableErrorEnvelope {
    fn from(error: StableErrorEnvelope) -> Self {
        Self {
            code: error.code,
            message: error.message,
            category: contract_to_wire(error.category),
            retryable: error.retryable,
            recovery_hint: error.recovery_hint,
            details_json: error.details.map(|details| details.to_string()),
            validation_errors: error.validation_errors.into_iter().map(Into::into).collect(),
        }
    }
}

impl TryFrom<wire::StableErrorEnvelope> for StableErrorEnvelope {
    type Error = ProtoError;
    fn try_from(error: wire::StableErrorEnvelope) -> Result<Self, ProtoError> {
        Ok(Self {
            code: error.code,
            message: error.message,
            category: contract_from_wire(error.category, "category")?,
            retryable: error.retryable,
            recovery_hint: error.recovery_hint,
            details: error.details_json.map(|text| json_from_wire(&text, "details_json").map(Box::new)).transpose()?,
            validation_errors: error.validation_errors.into_iter().map(Into::into).collect(),
        })
    }
}

impl From<FieldError> for wire::FieldError {
    fn from(error: FieldError) -> Self {
        Self { field: error.field, code: error.code, message: error.message }
    }
}

impl From<wire::FieldError> for FieldError {
    fn from(error: wire::FieldError) -> Self {
        Self { field: error.field, code: error.code, message: error.message }
    }
}

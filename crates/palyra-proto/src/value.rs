//! The small values that messages are made of: times, contract enums, ids, digests, JSON text.
//!
//! Everything that is read comes from outside. Nothing here panics, wraps around or falls back to a default.

use std::fmt::Display;
use std::str::FromStr;

use palyra_common::{ContractEnum, Timestamp};
use serde_json::Value;

use crate::ProtoError;

/// An instant as a protobuf timestamp.
#[must_use]
pub fn timestamp_to_wire(at: Timestamp) -> prost_types::Timestamp {
    let nanos = at.0.rem_euclid(1000) * 1_000_000;
    prost_types::Timestamp { seconds: at.0.div_euclid(1000), nanos: i32::try_from(nanos).unwrap_or_default() }
}

/// Reads a protobuf timestamp; whatever is finer than a millisecond is dropped.
pub fn timestamp_from_wire(wire: &prost_types::Timestamp, field: &str) -> Result<Timestamp, ProtoError> {
    if !(0..1_000_000_000).contains(&wire.nanos) {
        return Err(ProtoError::invalid(field, format!("`{}` nanoseconds are not part of a second", wire.nanos)));
    }
    // In 128 bits no second is too far away to be multiplied.
    let millis = i128::from(wire.seconds) * 1000 + i128::from(wire.nanos / 1_000_000);
    i64::try_from(millis)
        .map(Timestamp)
        .map_err(|_| ProtoError::invalid(field, format!("`{}` seconds are out of range", wire.seconds)))
}

/// A contract value as its protobuf number.
#[must_use]
pub fn contract_to_wire<T: ContractEnum>(value: T) -> i32 {
    value.proto_number()
}

/// Reads a contract value from its protobuf number.
pub fn contract_from_wire<T: ContractEnum>(number: i32, field: &str) -> Result<T, ProtoError> {
    if number == 0 {
        return Err(ProtoError::missing(field));
    }
    number
        .checked_sub(1)
        .and_then(|position| usize::try_from(position).ok())
        .and_then(|position| T::ALL.get(position).copied())
        .ok_or_else(|| ProtoError::invalid(field, format!("`{number}` is not a valid {}", T::CONTRACT)))
}

/// Reads JSON text.
pub fn json_from_wire(text: &str, field: &str) -> Result<Value, ProtoError> {
    serde_json::from_str(text).map_err(|error| ProtoError::invalid(field, format!("not valid JSON: {error}")))
}

/// Reads an id, a digest or a name.
pub(crate) fn text_from_wire<T: FromStr<Err: Display>>(text: &str, field: &str) -> Result<T, ProtoError> {
    text.parse().map_err(|error: T::Err| ProtoError::invalid(field, error.to_string()))
}

/// Reads a contract value that may be absent.
pub(crate) fn optional_contract<T: ContractEnum>(number: Option<i32>, field: &str) -> Result<Option<T>, ProtoError> {
    number.map(|number| contract_from_wire(number, field)).transpose()
}

/// Reads a message that must be there.
pub(crate) fn required<W, T: TryFrom<W, Error = ProtoError>>(wire: Option<W>, field: &str) -> Result<T, ProtoError> {
    optional(wire, field)?.ok_or_else(|| ProtoError::missing(field))
}

/// Reads a message that may be absent.
pub(crate) fn optional<W, T: TryFrom<W, Error = ProtoError>>(
    wire: Option<W>,
    field: &str,
) -> Result<Option<T>, ProtoError> {
    wire.map(|wire| T::try_from(wire).map_err(|error| error.inside(field))).transpose()
}

/// Reads a list of messages.
pub(crate) fn all<W, T: TryFrom<W, Error = ProtoError>>(wire: Vec<W>, field: &str) -> Result<Vec<T>, ProtoError> {
    wire.into_iter()
        .enumerate()
        .map(|(index, wire)| T::try_from(wire).map_err(|error| error.inside(&format!("{field}[{index}]"))))
        .collect()
}

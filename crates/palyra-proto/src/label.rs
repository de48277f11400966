//! Labels. An absent list of readers and an empty one mean opposite things, so neither is ever read as the other.

use palyra_common::{DataOrigin, InvalidDataOrigin, Label};

use crate::ProtoError;
use crate::common::v1 as wire;
use crate::value::{contract_from_wire, contract_to_wire};

impl From<Label> for wire::Label {
    fn from(label: Label) -> Self {
        Self {
            integrity: contract_to_wire(label.integrity),
            confidentiality: contract_to_wire(label.confidentiality),
            readers: label.readers.map(|names| wire::Readers { names: names.into_iter().collect() }),
            sources: label.sources.into_iter().collect(),
            origins: label.origins.into_iter().map(String::from).collect(),
        }
    }
}

impl TryFrom<wire::Label> for Label {
    type Error = ProtoError;
    fn try_from(label: wire::Label) -> Result<Self, ProtoError> {
        Ok(Self {
            integrity: contract_from_wire(label.integrity, "integrity")?,
            confidentiality: contract_from_wire(label.confidentiality, "confidentiality")?,
            readers: label.readers.map(|readers| readers.names.into_iter().collect()),
            sources: label.sources.into_iter().collect(),
            origins: label.origins.into_iter().map(origin).collect::<Result<_, _>>()?,
        })
    }
}

fn origin(text: String) -> Result<DataOrigin, ProtoError> {
    text.try_into().map_err(|error: InvalidDataOrigin| ProtoError::invalid("origins", error.to_string()))
}

//! Components out of core modules.

use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

use crate::BuildError;
use crate::world::World;

/// WASI that refuses everything, for compilers whose libc wants one.
pub(crate) const REFUSING_WASI: &str = include_str!("../assets/refusing-wasi.wat");

/// Where such a libc looks for WASI.
const WASI_MODULE: &str = "wasi_snapshot_preview1";

/// Wraps a core module that describes itself, as those made with `wit-bindgen` do.
pub(crate) fn encode(module: &[u8]) -> Result<Vec<u8>, BuildError> {
    let reason = |error| BuildError::not_a_plugin(format!("{error:#}"));
    let adapter = wat::parse_str(REFUSING_WASI).map_err(BuildError::not_a_plugin)?;
    ComponentEncoder::default()
        .validate(true)
        .module(module)
        .map_err(reason)?
        .adapter(WASI_MODULE, &adapter)
        .map_err(reason)?
        .encode()
        .map_err(reason)
}

/// Wraps a core module of a world that only its source folder describes.
pub(crate) fn encode_in_world(mut module: Vec<u8>, world: &World) -> Result<Vec<u8>, BuildError> {
    embed_component_metadata(&mut module, &world.resolve, world.id, StringEncoding::UTF8)
        .map_err(|error| BuildError::not_a_plugin(format!("{error:#}")))?;
    encode(&module)
}

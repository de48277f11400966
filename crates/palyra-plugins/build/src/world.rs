//! The world of a skill: `wit/world.wit`, resolved together with Palyra's own packages.
//!
//! A skill carries its own world and nothing else of WIT; the packages it names are those of the Palyra that builds it.

use std::path::Path;

use palyra_plugins::{HOST_WIT, PLUGIN_WIT};
use wit_parser::{Resolve, WorldId};

use crate::BuildError;
use crate::source::{Sources, write};

/// Where a skill keeps its world.
pub(crate) const WORLD: &str = "wit/world.wit";

/// A world and everything it names.
pub(crate) struct World {
    pub(crate) resolve: Resolve,
    pub(crate) id: WorldId,
}

impl World {
    /// The world of a skill's sources.
    pub(crate) fn of(sources: &Sources) -> Result<Self, BuildError> {
        let text = sources.get(WORLD).ok_or_else(|| {
            BuildError::source(WORLD, "it is missing; a skill's world names what it exports and imports")
        })?;
        let text = std::str::from_utf8(text).map_err(|error| BuildError::source(WORLD, error))?;
        Self::parse(text).map_err(|reason| BuildError::source(WORLD, reason))
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut resolve = Resolve::default();
        for (name, package) in [("host.wit", HOST_WIT), ("plugin.wit", PLUGIN_WIT)] {
            resolve.push_source(name, package).map_err(|error| format!("{error:#}"))?;
        }
        let package = resolve.push_source(WORLD, text).map_err(|error| format!("{error:#}"))?;
        let id = resolve.select_world(&[package], None).map_err(|error| format!("{error:#}"))?;
        Ok(Self { resolve, id })
    }

    /// What the world is called.
    pub(crate) fn name(&self) -> Result<String, BuildError> {
        let world = self.resolve.worlds.get(self.id).ok_or_else(|| BuildError::source(WORLD, "it has no world"))?;
        Ok(world.name.clone())
    }
}

/// Writes Palyra's packages beside a skill's world, where compilers look for them.
pub(crate) fn write_packages(wit_folder: &Path) -> Result<(), BuildError> {
    write(&wit_folder.join("deps/palyra-host/host.wit"), HOST_WIT.as_bytes())?;
    write(&wit_folder.join("deps/palyra-plugin/plugin.wit"), PLUGIN_WIT.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_world_names_palyras_packages() {
        let world = World::parse(
            "package local:skill;\nworld skill {\n import palyra:host/log@1.0.0;\n export palyra:plugin/tool@1.0.0;\n}\n",
        )
        .unwrap();
        assert_eq!(world.name().unwrap(), "skill");
    }

    #[test]
    fn what_is_no_world_is_refused() {
        for text in [
            "",
            "package a:b;",
            "world x { import wasi:cli/environment@0.2.0; }",
            "package a:b; world x { import palyra:host/log@9.0.0; }",
        ] {
            assert!(World::parse(text).is_err(), "{text}");
        }
    }
}

//! What was built before: bytes of modules by everything that they depend on.
//!
//! An interpreter takes half a minute to wrap; the same sources with the same compiler give the same component, or one that does the same. A file is called
//! after its digest, so that one which was cut off is built anew. The cache belongs to the user, who could as well change the sources.

use std::fs;
use std::io::Write;
use std::path::PathBuf;

use palyra_common::Digest;

use crate::compile::{Modules, recipe};
use crate::toolchain::Toolchain;
use crate::{BuildError, GuestTools, component};

/// Part of every key; grows when what comes out of a compiler is treated in another way.
const GENERATION: &str = "2";

/// Builds that are kept; an interpreter's component is a dozen megabytes.
const KEPT: usize = 64;

/// Where the modules of one build are.
pub(crate) struct Slot {
    folder: PathBuf,
}

impl Slot {
    pub(crate) fn of(tools: &GuestTools, toolchain: &Toolchain, source: Digest) -> Self {
        let mut key =
            format!("{GENERATION} {} {} {}\n", env!("CARGO_PKG_VERSION"), toolchain.language(), source.to_hex());
        key.push_str(&format!("{}\n{}\n", recipe(toolchain.language()), component::REFUSING_WASI));
        for (name, version) in toolchain.versions() {
            key.push_str(&format!("{name} {version}\n"));
        }
        Self { folder: tools.root().join("built").join(Digest::of(key.as_bytes()).to_hex()) }
    }

    /// The modules, if all of them are there and whole.
    pub(crate) fn load(&self) -> Option<Modules> {
        let index = fs::read_to_string(self.folder.join("index")).ok()?;
        let mut modules = Modules::new();
        for line in index.lines() {
            let (digest, name) = line.split_once(' ')?;
            let bytes = fs::read(self.folder.join(digest)).ok()?;
            if Digest::of(&bytes).to_hex() != digest {
                return None;
            }
            modules.insert(name.to_owned(), bytes);
        }
        (!modules.is_empty()).then_some(modules)
    }

    /// Keeps modules; the index comes last, so that a half-written slot is none.
    pub(crate) fn store(&self, modules: &Modules) -> Result<(), BuildError> {
        fs::create_dir_all(&self.folder).map_err(BuildError::io(&self.folder))?;
        let mut index = String::new();
        for (name, bytes) in modules {
            let digest = Digest::of(bytes).to_hex();
            self.put(&digest, bytes)?;
            index.push_str(&format!("{digest} {name}\n"));
        }
        self.put("index", index.as_bytes())?;
        self.forget_oldest();
        Ok(())
    }

    /// Makes room. That something could not be removed is no reason to fail a build that is done.
    fn forget_oldest(&self) {
        let Some(Ok(entries)) = self.folder.parent().map(fs::read_dir) else { return };
        let age = |path: &PathBuf| fs::metadata(path.join("index")).and_then(|data| data.modified()).ok();
        let mut slots: Vec<_> = entries.flatten().map(|entry| entry.path()).map(|path| (age(&path), path)).collect();
        slots.sort();
        let surplus = slots.len().saturating_sub(KEPT);
        for (_, path) in slots.into_iter().take(surplus).filter(|(_, path)| *path != self.folder) {
            let _ = fs::remove_dir_all(path);
        }
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<(), BuildError> {
        let path = self.folder.join(name);
        let mut file = tempfile::NamedTempFile::new_in(&self.folder).map_err(BuildError::io(&path))?;
        file.write_all(bytes).map_err(BuildError::io(&path))?;
        file.persist(&path).map_err(|error| BuildError::Io { path, source: error.error })?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Language;

    #[test]
    fn what_is_kept_comes_back_whole_or_not_at_all() {
        let folder = tempfile::tempdir().unwrap();
        let tools = GuestTools::at(folder.path());
        let toolchain = tools.find(Language::Wat).unwrap();
        let slot = Slot::of(&tools, &toolchain, Digest::of(b"source"));
        assert!(slot.load().is_none());
        let modules = Modules::from([("a.b".to_owned(), b"one".to_vec()), ("c".to_owned(), b"two".to_vec())]);
        slot.store(&modules).unwrap();
        assert_eq!(slot.load().unwrap(), modules);
        assert!(Slot::of(&tools, &toolchain, Digest::of(b"other")).load().is_none());
        fs::write(slot.folder.join(Digest::of(b"one").to_hex()), "on").unwrap();
        assert!(slot.load().is_none());
    }

    #[test]
    fn only_the_newest_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let tools = GuestTools::at(folder.path());
        let toolchain = tools.find(Language::Wat).unwrap();
        let modules = Modules::from([("a".to_owned(), b"one".to_vec())]);
        let slot = |number: usize| Slot::of(&tools, &toolchain, Digest::of(&number.to_le_bytes()));
        for number in 0..KEPT + 3 {
            slot(number).store(&modules).unwrap();
        }
        let kept = folder.path().join("built").read_dir().unwrap().count();
        assert_eq!(kept, KEPT);
        assert!(slot(KEPT + 2).load().is_some(), "the newest is among them");
    }
}

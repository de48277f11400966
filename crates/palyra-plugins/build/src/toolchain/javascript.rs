//! JavaScript: Node.js and `@bytecodealliance/componentize-js` in the cache.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::{COMPONENTIZE_JS, MissingToolchain, Versions, versions};
use crate::Language;
use crate::process::version;

/// The library that makes components of JavaScript.
#[derive(Debug, Clone)]
pub(crate) struct Componentizer {
    /// Its entry file.
    pub(crate) library: PathBuf,
}

impl Componentizer {
    pub(super) fn find(root: &Path) -> Result<(Self, Versions), MissingToolchain> {
        let folder = root.join(format!("js-{COMPONENTIZE_JS}"));
        let install =
            format!("npm install --prefix {} @bytecodealliance/componentize-js@{COMPONENTIZE_JS}", folder.display());
        let missing = |what: &str, install: &str| MissingToolchain {
            language: Language::JavaScript,
            what: what.to_owned(),
            found: None,
            install: install.to_owned(),
        };
        let library = folder.join("node_modules/@bytecodealliance/componentize-js/src/componentize.js");
        if !library.is_file() {
            return Err(missing("componentize-js", &install));
        }
        let node = version(Command::new("node").arg("--version"))
            .ok_or_else(|| missing("Node.js", "sudo apt-get install -y nodejs npm"))?;
        Ok((Self { library }, versions([("componentize-js", COMPONENTIZE_JS.to_owned()), ("node", node)])))
    }
}

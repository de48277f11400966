//! Scripts that the manifests beside and above them name: `node scripts/x.js` in a `package.json` makes `scripts/x.js` part of every build.
//!
//! Sources are inert by their type, and most of them are: whoever executes one does so by their own choice. A script that a manifest, a hook or a directory environment names is
//! executed without anybody choosing it. Read are the files of a reviewed list in the directories above a changed file, each up to a bound, so the cost depends on how deep a file lies. This
//! is about runs that have seen untrusted text only: a formatter may rewrite a script that a manifest names.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use super::links::normal;
use super::manifests::programs;
use super::named_by_git::words;
use super::table::{LaterExecuted, later_executed};

/// Files that name scripts.
const MANIFESTS: [&str; 33] = [
    ".envrc",
    ".gitlab-ci.yml",
    ".justfile",
    ".lefthook.yml",
    ".pre-commit-config.yaml",
    "CMakeLists.txt",
    "Cargo.toml",
    "Dockerfile",
    "GNUmakefile",
    "Justfile",
    "Makefile",
    "Procfile",
    "Taskfile.yaml",
    "Taskfile.yml",
    "build.rs",
    "compose.yaml",
    "composer.json",
    "conftest.py",
    "default.nix",
    "docker-compose.yml",
    "flake.nix",
    "justfile",
    "lefthook.yml",
    "makefile",
    "meson.build",
    "mise.toml",
    "noxfile.py",
    "package.json",
    "pyproject.toml",
    "setup.cfg",
    "setup.py",
    "shell.nix",
    "tox.ini",
];

/// Directories of hooks, which name scripts as well.
const HOOKS: [&str; 3] = [".git/hooks", ".husky", ".githooks"];

/// Types of files that are executed as they are. A manifest that names another source has it compiled.
const SCRIPTS: [&str; 22] = [
    "awk", "bash", "cjs", "fish", "groovy", "js", "jsx", "lua", "mjs", "mk", "mts", "nix", "php", "pl", "ps1", "py",
    "rb", "sed", "sh", "ts", "tsx", "zsh",
];

/// Reads files of the workspace that name others.
pub(super) trait Manifests {
    /// The content of a regular file, if it is not too long.
    fn read(&self, path: &Path) -> Option<Vec<u8>>;
    /// The names in a directory.
    fn names(&self, directory: &Path) -> Vec<PathBuf>;
}

/// What the manifests of the directories name, as far as it was looked at.
pub(super) struct Mentions<'a, M> {
    manifests: &'a M,
    /// By directory: who executes which words.
    known: HashMap<PathBuf, Vec<Mention>>,
}

struct Mention {
    by: LaterExecuted,
    words: Vec<String>,
    /// Whether every word is a program: the file that says so says nothing else there.
    is_exact: bool,
}

impl<'a, M: Manifests> Mentions<'a, M> {
    pub(super) fn new(manifests: &'a M) -> Self {
        Self { manifests, known: HashMap::new() }
    }

    /// Who executes a file because a manifest above it names it.
    pub(super) fn executed_by(&mut self, path: &Path) -> Option<LaterExecuted> {
        let extension = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        let is_script = extension.is_none_or(|extension| SCRIPTS.contains(&extension.as_str()));
        let mut found = None;
        for directory in path.ancestors().skip(1) {
            let Ok(rest) = path.strip_prefix(directory) else { continue };
            let manifests = self.manifests;
            let mentions = self.known.entry(directory.to_owned()).or_insert_with(|| mentions(manifests, directory));
            let names = |mention: &&Mention| {
                (mention.is_exact || is_script) && mention.words.iter().any(|word| is_named(word, rest))
            };
            found = found.or(mentions.iter().find(names).map(|mention| mention.by));
        }
        found
    }
}

fn mentions<M: Manifests>(manifests: &M, directory: &Path) -> Vec<Mention> {
    let hooks = HOOKS.iter().flat_map(|hooks| {
        let hooks = directory.join(hooks);
        manifests.names(&hooks).into_iter().map(move |name| hooks.join(name))
    });
    let all = MANIFESTS.iter().map(|name| directory.join(name)).chain(hooks);
    all.filter_map(|path| {
        let by = later_executed(&path)?;
        let bytes = manifests.read(&path)?;
        let name = path.file_name()?.to_string_lossy().to_lowercase();
        let (texts, is_exact) = match programs(&name, &bytes) {
            Some(texts) => (texts, name == "cargo.toml"),
            None => (vec![String::from_utf8_lossy(&bytes).into_owned()], false),
        };
        let words = texts.iter().flat_map(|text| words(text)).map(str::to_owned).collect();
        Some(Mention { by, words, is_exact })
    })
    .collect()
}

/// Whether a word of a manifest is a file, relative to the manifest's directory; what is executed may go without its ending, and a directory stands for its first file.
fn is_named(word: &str, path: &Path) -> bool {
    let Some(word) = normal(Path::new(word.trim_end_matches([':', '.']))).filter(|word| !word.as_os_str().is_empty())
    else {
        return false;
    };
    let stem = path.file_stem().is_some_and(|stem| stem == "index" || stem == "__main__");
    word == *path || word == path.with_extension("") || (stem && path.parent() == Some(word.as_path()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    struct Files(BTreeMap<&'static str, &'static str>);

    impl Manifests for Files {
        fn read(&self, path: &Path) -> Option<Vec<u8>> {
            self.0.get(path.to_str()?).map(|text| text.as_bytes().to_vec())
        }

        fn names(&self, directory: &Path) -> Vec<PathBuf> {
            self.0.keys().filter_map(|path| Some(Path::new(path).strip_prefix(directory).ok()?.to_owned())).collect()
        }
    }

    #[test]
    fn scripts_that_manifests_name_are_executed_and_other_sources_are_not() {
        let files = Files(BTreeMap::from([
            ("package.json", r#"{"main": "lib/main.js", "scripts": {"build": "node ./scripts/x.js && node tools"}}"#),
            ("Makefile", "include rules/common.mk\nall: main.c\n\tpython3 tools/gen.py > out\n\tcc main.c\n"),
            ("crates/a/Cargo.toml", "[package]\nname = \"a\"\nbuild = \"gen/main.rs\"\n"),
            (".envrc", "source tools/env\n"),
            (".pre-commit-config.yaml", "- id: x\n  entry: tools/check.sh --all\n"),
            (".husky/pre-push", "sh ci/push.sh\n"),
        ]));
        let mut mentions = Mentions::new(&files);
        for (path, expected) in [
            ("scripts/x.js", Some(LaterExecuted::Build)),
            ("tools/index.js", Some(LaterExecuted::Build)),
            ("lib/main.js", None),
            ("rules/common.mk", Some(LaterExecuted::Build)),
            ("tools/gen.py", Some(LaterExecuted::Build)),
            ("main.c", None),
            ("crates/a/gen/main.rs", Some(LaterExecuted::Build)),
            ("crates/a/src/lib.rs", None),
            ("tools/env", Some(LaterExecuted::DirectoryEnvironment)),
            ("tools/check.sh", Some(LaterExecuted::Hook)),
            ("ci/push.sh", Some(LaterExecuted::Hook)),
            ("other/x.js", None),
            ("sub/scripts/x.js", None),
        ] {
            assert_eq!(mentions.executed_by(Path::new(path)), expected, "{path}");
        }
    }
}

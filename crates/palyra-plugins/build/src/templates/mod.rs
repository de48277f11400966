//! New skills: a folder per language and kind that builds and passes its own cases.

use std::path::Path;

use crate::descriptions::tool_list;
use crate::manifest::{SkillSummary, check_skill_id};
use crate::source::write;
use crate::{BuildError, Language, sdk};

const MANIFEST: &str = include_str!("../../templates/common/skill.toml");
const README: &str = include_str!("../../templates/common/README.md");
const GITIGNORE: &str = include_str!("../../templates/common/gitignore");
const WORLD: &str = include_str!("../../templates/common/wit/world.wit");
const CASES: &str = include_str!("../../templates/common/tests/greet.json");
const HOOK_MANIFEST: &str = include_str!("../../templates/hook/skill.toml");
const HOOK_WORLD: &str = include_str!("../../templates/hook/wit/world.wit");
const HOOK_CASES: &str = include_str!("../../templates/hook/tests/guard.json");

/// What a new skill begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillKind {
    /// A tool for the model.
    Tool,
    /// A hook that is asked before each tool call.
    Hook,
}

/// What a new skill is to be.
#[derive(Debug, Clone)]
pub struct NewSkill<'a> {
    /// The guest language.
    pub language: Language,
    /// What it begins with.
    pub kind: SkillKind,
    /// Its id, such as `acme.notes`.
    pub skill_id: &'a str,
    /// Who will sign it; without one, the first word of the id.
    pub publisher: Option<&'a str>,
}

/// Writes a new skill into a folder that is empty or does not exist, and says which files it has.
pub fn new_skill(new: &NewSkill<'_>, folder: &Path) -> Result<Vec<String>, BuildError> {
    let name =
        |name: &str| check_skill_id(name).map_err(|reason| BuildError::NameInvalid { name: name.to_owned(), reason });
    name(new.skill_id)?;
    let publisher = match new.publisher {
        Some(publisher) => publisher,
        None => new.skill_id.split('.').next().unwrap_or(new.skill_id),
    };
    name(publisher)?;
    let files = match new.kind {
        SkillKind::Tool => tool_files(new.language),
        SkillKind::Hook => hook_files(new.language).ok_or(BuildError::KindUnsupported { language: new.language })?,
    };
    if folder.read_dir().is_ok_and(|mut entries| entries.next().is_some()) || folder.is_file() {
        return Err(BuildError::FolderInUse { folder: folder.to_owned() });
    }
    let mut written = Vec::new();
    for (path, template) in [("README.md", README), (".gitignore", GITIGNORE)].into_iter().chain(files) {
        let text = fill(template, new, publisher);
        write(&folder.join(path), text.as_bytes())?;
        written.push(path.to_owned());
    }
    // So that editors find everything before the first build.
    sdk::write_kit(new.language, folder)?;
    if let Some((path, text)) = tool_list(new.language, &SkillSummary::read(folder)?) {
        write(&folder.join(path), text.as_bytes())?;
        written.push(path.to_owned());
    }
    written.sort();
    Ok(written)
}

/// Files with their templates.
type Files = Vec<(&'static str, &'static str)>;

/// A hook in a language. A core module answers no events, so text has none.
fn hook_files(language: Language) -> Option<Files> {
    let mut files = vec![("skill.toml", HOOK_MANIFEST), ("tests/guard.json", HOOK_CASES)];
    match language {
        Language::Rust => {
            files.push(("Cargo.toml", include_str!("../../templates/rust/Cargo.toml")));
            files.push(("src/lib.rs", include_str!("../../templates/rust/src/hook.rs")));
        }
        Language::JavaScript => files.push(("src/skill.js", include_str!("../../templates/javascript/src/hook.js"))),
        Language::Python => files.push(("src/skill.py", include_str!("../../templates/python/src/hook.py"))),
        Language::C => files.push(("src/skill.c", include_str!("../../templates/c/src/hook.c"))),
        Language::Wat => return None,
    }
    if language != Language::Rust {
        files.push(("wit/world.wit", HOOK_WORLD));
    }
    Some(files)
}

fn tool_files(language: Language) -> Files {
    let mut files = Vec::new();
    if language == Language::Wat {
        files.push(("skill.toml", include_str!("../../templates/wat/skill.toml")));
        files.push(("tests/echo.json", include_str!("../../templates/wat/echo.json")));
    } else {
        files.push(("skill.toml", MANIFEST));
        files.push(("tests/greet.json", CASES));
    }
    match language {
        Language::Rust => {
            files.push(("Cargo.toml", include_str!("../../templates/rust/Cargo.toml")));
            files.push(("src/lib.rs", include_str!("../../templates/rust/src/lib.rs")));
        }
        Language::JavaScript => {
            files.push(("src/skill.js", include_str!("../../templates/javascript/src/skill.js")));
            files.push(("wit/world.wit", WORLD));
        }
        Language::Python => {
            files.push(("src/skill.py", include_str!("../../templates/python/src/skill.py")));
            files.push(("wit/world.wit", WORLD));
        }
        Language::C => {
            files.push(("src/skill.c", include_str!("../../templates/c/src/skill.c")));
            files.push(("wit/world.wit", WORLD));
        }
        Language::Wat => files.push(("src/skill.wat", include_str!("../../templates/wat/src/skill.wat"))),
    }
    files
}

/// How a tool is tried in its folder, and used once it is installed.
fn tool_lines(call: &str) -> (String, String) {
    (format!("\n    palyra skills run --local {call}"), format!("call @skill_id@.{call}"))
}

fn fill(template: &str, new: &NewSkill<'_>, publisher: &str) -> String {
    let (language, toolchain, source) = match new.language {
        Language::Rust => ("Rust", "needs the target wasm32-unknown-unknown", "src/lib.rs"),
        Language::JavaScript => ("JavaScript", "needs Node.js and componentize-js", "src/skill.js"),
        Language::Python => ("Python", "needs componentize-py", "src/skill.py"),
        Language::C => ("C", "needs zig, or clang with wasi-libc", "src/skill.c"),
        Language::Wat => ("WebAssembly text", "needs nothing", "src/skill.wat"),
    };
    let (try_it, use_it) = match (new.kind, new.language) {
        (SkillKind::Hook, _) => (String::new(), "hooks bind run:before_tool @skill_id@".to_owned()),
        (SkillKind::Tool, Language::Wat) => tool_lines(r#"echo '{"text": "Hello"}'"#),
        (SkillKind::Tool, _) => tool_lines(r#"greet '{"name": "Ada"}'"#),
    };
    template
        .replace("@try@", &try_it)
        .replace("@use@", &use_it)
        .replace("@skill_id@", new.skill_id)
        .replace("@package@", &new.skill_id.replace('.', "-"))
        .replace("@publisher@", publisher)
        .replace("@title@", &title(new.skill_id))
        .replace("@language@", language)
        .replace("@toolchain@", toolchain)
        .replace("@source@", source)
}

/// `acme.todo-list` as a title: `Todo list`.
fn title(skill_id: &str) -> String {
    let words = skill_id.rsplit('.').next().unwrap_or(skill_id).replace('-', " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_ascii_uppercase().to_string() + letters.as_str(),
        None => words,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SkillCases;

    #[test]
    fn every_template_is_filled_and_says_what_it_is() {
        let kinds = [SkillKind::Tool, SkillKind::Hook];
        for (language, kind) in Language::ALL.iter().flat_map(|language| kinds.map(|kind| (*language, kind))) {
            let folder = tempfile::tempdir().unwrap();
            let place = folder.path().join("new");
            let new = NewSkill { language, kind, skill_id: "acme.todo-list", publisher: None };
            let written = match new_skill(&new, &place) {
                Err(BuildError::KindUnsupported { .. }) if language == Language::Wat && kind == SkillKind::Hook => {
                    assert!(!place.exists());
                    continue;
                }
                written => written.unwrap(),
            };
            for path in &written {
                let text = std::fs::read_to_string(place.join(path)).unwrap();
                let left: Vec<&str> = text.split('@').skip(1).step_by(2).collect();
                let filled =
                    ["skill_id", "title", "package", "publisher", "language", "toolchain", "source", "example"];
                assert!(!left.iter().any(|word| filled.contains(word)), "{path}: {left:?}");
            }
            assert_eq!(Language::of(&place).unwrap(), language);
            assert_eq!(SkillSummary::read(&place).unwrap().skill_id, "acme.todo-list");
            assert!(!SkillCases::read_all(&place).unwrap().is_empty());
            assert!(matches!(new_skill(&new, &place), Err(BuildError::FolderInUse { .. })));
        }
    }

    #[test]
    fn a_bad_name_writes_nothing() {
        let folder = tempfile::tempdir().unwrap();
        for skill_id in ["../evil", "Palyra", "palyra.fs", ""] {
            let new = NewSkill { language: Language::C, kind: SkillKind::Tool, skill_id, publisher: None };
            assert!(matches!(new_skill(&new, folder.path()), Err(BuildError::NameInvalid { .. })), "{skill_id}");
        }
        assert!(folder.path().read_dir().unwrap().next().is_none());
    }
}

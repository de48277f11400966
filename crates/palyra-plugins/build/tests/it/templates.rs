//! Every template builds, imports nothing, and describes itself in SBOM and provenance.

use std::path::Path;

use palyra_common::Digest;
use palyra_plugins_build::{Language, ModuleKind, NewSkill, Origin, Reuse, SkillKind, new_skill};
use serde_json::Value;

use crate::support::{available, build};

fn template(language: Language, folder: &Path) {
    let new = NewSkill { language, kind: SkillKind::Tool, skill_id: "acme.greeter", publisher: None };
    new_skill(&new, folder).unwrap();
}

fn builds(language: Language) {
    if !available(language) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    template(language, folder.path());
    let built = build(folder.path(), Reuse::Cached);
    let [module] = built.modules.as_slice() else { panic!("{} modules", built.modules.len()) };
    eprintln!("{language}: {} bytes, {:?}", module.bytes.len(), built.origin);
    assert_eq!(module.path, "modules/acme.greeter.wasm");
    assert_eq!(std::fs::read(&module.file).unwrap(), module.bytes);
    assert!(module.shape.imports.is_empty(), "a pure skill imports nothing: {:?}", module.shape.imports);
    if language == Language::Wat {
        assert_eq!(module.shape.kind, ModuleKind::CoreModule);
    } else {
        assert_eq!(module.shape.kind, ModuleKind::Component);
        // Python's kit leaves the interface that it was prepared through.
        let left = if language == Language::Python { vec!["exports"] } else { Vec::new() };
        assert_eq!(module.shape.exports, [left, vec!["palyra:plugin/tool@1.0.0"]].concat());
    }
    let read =
        |name: &str| -> Value { serde_json::from_slice(&std::fs::read(folder.path().join(name)).unwrap()).unwrap() };
    let provenance = read("provenance.json");
    assert_eq!(provenance["modules"][0]["path"], "modules/acme.greeter.wasm");
    let stated: Digest = serde_json::from_value(provenance["modules"][0]["sha256"].clone()).unwrap();
    assert_eq!(stated, Digest::of(&module.bytes));
    let sbom = read("sbom.cdx.json");
    assert_eq!(sbom["metadata"]["component"]["name"], "acme.greeter");
    assert_eq!(sbom["components"][0]["name"], "modules/acme.greeter.wasm");

    // The second build finds the first one's work, and says the same.
    let again = build(folder.path(), Reuse::Cached);
    assert_eq!(again.origin, Origin::Cached);
    assert_eq!(again.modules[0].digest, module.digest);
    assert_eq!(again.provenance, built.provenance);
}

/// A hook exports that and nothing else, and imports nothing.
#[test]
fn the_hooks_of_all_languages_build() {
    for language in [Language::Rust, Language::C, Language::JavaScript, Language::Python] {
        if !available(language) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let new = NewSkill { language, kind: SkillKind::Hook, skill_id: "acme.guard", publisher: None };
        new_skill(&new, folder.path()).unwrap();
        let module = build(folder.path(), Reuse::Cached).modules.remove(0);
        assert!(module.shape.imports.is_empty(), "{language}: {:?}", module.shape.imports);
        assert!(module.shape.exports.iter().any(|export| export == "palyra:plugin/hook@1.0.0"), "{language}");
        assert!(!module.shape.exports.iter().any(|export| export.contains("/tool@")), "{language}");
    }
}

#[test]
fn the_rust_template_builds() {
    builds(Language::Rust);
}

#[test]
fn the_javascript_template_builds() {
    builds(Language::JavaScript);
}

#[test]
fn the_python_template_builds() {
    builds(Language::Python);
}

#[test]
fn the_c_template_builds() {
    builds(Language::C);
}

#[test]
fn the_text_template_builds() {
    builds(Language::Wat);
}

#[test]
fn some_compiled_language_is_there() {
    let there = [Language::Rust, Language::C, Language::JavaScript].into_iter().filter(|language| available(*language));
    assert!(there.count() > 0, "scripts/guests.sh installs the compilers of guest languages");
}

/// The same sources give the same bytes wherever they lie, in the languages whose compilers do that.
fn reproduces(language: Language) {
    if !available(language) {
        return;
    }
    let built = ["here", "somewhere/else"].map(|place| {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().join(place);
        template(language, &folder);
        build(&folder, Reuse::Fresh)
    });
    assert_eq!(built[0].origin, Origin::Compiled);
    assert_eq!(built[0].provenance, built[1].provenance);
    let text = String::from_utf8_lossy(&built[0].modules[0].bytes);
    let home = std::env::var("HOME").unwrap();
    assert!(home.len() < 2 || !text.contains(&home), "the module names the home of whoever built it");
}

#[test]
fn rust_builds_are_reproducible() {
    reproduces(Language::Rust);
}

#[test]
fn c_builds_are_reproducible() {
    reproduces(Language::C);
}

#[test]
fn text_builds_are_reproducible() {
    reproduces(Language::Wat);
}

#[test]
fn a_lock_file_of_an_older_kit_is_brought_up_to_date() {
    if !available(Language::Rust) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    template(Language::Rust, folder.path());
    let first = build(folder.path(), Reuse::Cached);
    let path = folder.path().join("Cargo.lock");
    let fitting = std::fs::read_to_string(&path).unwrap();
    let own = format!("name = \"palyra-plugins-sdk\"\nversion = \"{}\"", env!("CARGO_PKG_VERSION"));
    let older = fitting.replace(&own, "name = \"palyra-plugins-sdk\"\nversion = \"0.0.1\"");
    assert_ne!(older, fitting);
    std::fs::write(&path, older).unwrap();
    let second = build(folder.path(), Reuse::Cached);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), fitting);
    assert_eq!(second.provenance, first.provenance);
}

#[test]
fn a_mistake_in_the_sources_is_reported_with_the_compilers_words() {
    for (language, file, mistake, word) in [
        (Language::C, "src/skill.c", "int broken( {", "skill.c"),
        (Language::Rust, "src/lib.rs", "fn broken( {", "lib.rs"),
        (Language::Wat, "src/skill.wat", "(module (func $broken", "skill.wat"),
    ] {
        if !available(language) {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        template(language, folder.path());
        std::fs::write(folder.path().join(file), mistake).unwrap();
        let options = crate::support::options(Reuse::Cached);
        let error = palyra_plugins_build::build_skill(folder.path(), &options).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
        assert!(!folder.path().join("modules").exists(), "nothing is left of a build that failed");
    }
}

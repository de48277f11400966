//! What becomes an import: exactly what the code calls, and never WASI.

use std::path::Path;

use palyra_plugins_build::{BuildError, Language, NewSkill, Reuse, SkillKind, build_skill, new_skill};

use crate::support::{available, build, host, options};

fn imports_of(language: Language, file: &str, change: impl Fn(&str) -> String, world: &[&str]) -> Option<Vec<String>> {
    if !available(language) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    new_skill(&NewSkill { language, kind: SkillKind::Tool, skill_id: "acme.imports", publisher: None }, folder.path())
        .unwrap();
    let path = folder.path().join(file);
    let source = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, change(&source)).unwrap();
    if language != Language::Rust {
        write_world(folder.path(), world);
    }
    Some(build(folder.path(), Reuse::Cached).modules.remove(0).shape.imports)
}

fn write_world(folder: &Path, imports: &[&str]) {
    let imports: String = imports.iter().map(|name| format!("  import palyra:host/{name}@1.0.0;\n")).collect();
    let world = format!("package local:skill;\nworld skill {{\n{imports}  export palyra:plugin/tool@1.0.0;\n}}\n");
    std::fs::write(folder.join("wit/world.wit"), world).unwrap();
}

/// In Rust nothing is declared: a call makes the import.
#[test]
fn each_module_of_the_rust_kit_is_an_import_of_its_own() {
    let body = |statement: &str| {
        let statement = statement.to_owned();
        move |source: &str| source.replace("    Ok(Greeting", &format!("    {statement}\n    Ok(Greeting"))
    };
    for (statement, expected) in [
        ("palyra_plugins_sdk::log::info(\"x\");", host(&["log"])),
        (
            "palyra_plugins_sdk::http::Request::get(\"https://a.example\").send()?;",
            host(&["capabilities", "failures", "http"]),
        ),
        (
            "palyra_plugins_sdk::storage::Space::named(\"a\")?.delete(\"b\")?;",
            host(&["capabilities", "failures", "storage"]),
        ),
        ("palyra_plugins_sdk::secret::Secret::named(\"a\")?;", host(&["capabilities"])),
        (
            "palyra_plugins_sdk::secret::Secret::named(\"a\")?.reveal()?;",
            host(&["capabilities", "failures", "secret-reveal"]),
        ),
        (
            "palyra_plugins_sdk::progress::percent(palyra_plugins_sdk::random::bytes(1)[0], \"x\");",
            host(&["progress", "random"]),
        ),
    ] {
        let Some(imports) = imports_of(Language::Rust, "src/lib.rs", body(statement), &[]) else { return };
        assert_eq!(imports, expected, "{statement}");
    }
}

/// In C a call makes the import, among those that the world names.
#[test]
fn c_imports_what_it_calls_and_refuses_wasi_by_itself() {
    let change = |source: &str| {
        source.replace("#include <string.h>", "#include <stdio.h>\n#include <string.h>").replace(
            "  palyra_buffer greeting",
            "  printf(\"%s\", name);\n  palyra_log(PALYRA_INFO, name);\n  palyra_buffer greeting",
        )
    };
    let Some(imports) = imports_of(Language::C, "src/skill.c", change, &["log", "http"]) else { return };
    assert_eq!(imports, host(&["log"]), "printing goes to an adapter that refuses");
}

#[test]
fn a_call_that_the_world_does_not_name_is_an_error() {
    if !available(Language::C) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    new_skill(
        &NewSkill { language: Language::C, kind: SkillKind::Tool, skill_id: "acme.undeclared", publisher: None },
        folder.path(),
    )
    .unwrap();
    let path = folder.path().join("src/skill.c");
    let source = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, source.replace("  palyra_buffer greeting", "  palyra_now();\n  palyra_buffer greeting"))
        .unwrap();
    let error = build_skill(folder.path(), &options(Reuse::Cached)).unwrap_err();
    assert!(matches!(&error, BuildError::NotAPlugin { .. }), "{error}");
    assert!(error.to_string().contains("clock"), "{error}");
}

#[test]
fn foreign_imports_and_exports_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    new_skill(
        &NewSkill { language: Language::Wat, kind: SkillKind::Tool, skill_id: "acme.foreign", publisher: None },
        folder.path(),
    )
    .unwrap();
    for (text, refused) in [
        ("(component (import \"wasi:cli/environment@0.2.0\" (instance)))", "wasi:cli/environment@0.2.0"),
        ("(component)", "exports neither"),
        ("(module)", "without the export `run`"),
    ] {
        std::fs::write(folder.path().join("src/skill.wat"), text).unwrap();
        let error = build_skill(folder.path(), &options(Reuse::Cached)).unwrap_err().to_string();
        assert!(error.contains(refused), "{error}");
    }
}

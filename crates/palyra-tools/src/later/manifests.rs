//! Manifests of packages: whether a change of one can have something executed.
//!
//! A manifest says much that executes nothing: names, versions, dependencies that a lock file pins. Only what names programs counts. What cannot be read counts.

use serde_json::Value;

use super::Held;

/// Whether a build may execute something after the change that it did not before; `name` in small letters.
pub(super) fn takes_effect(name: &str, before: Held<'_>, after: Held<'_>) -> bool {
    let executed: fn(&[u8]) -> Option<Value> = match name {
        "package.json" => of_package_json,
        "cargo.toml" => of_cargo_toml,
        "pyproject.toml" => of_pyproject,
        _ => return true,
    };
    let Held::File(after) = after else { return true };
    let Some(new) = executed(after) else { return true };
    let old = match before {
        Held::Nothing | Held::Unknown => None,
        Held::File(bytes) => executed(bytes),
    };
    new != old.unwrap_or_else(|| Value::Object(serde_json::Map::new()))
}

/// What of a table is there, under its name.
fn picked(table: &Value, names: &[&str]) -> Value {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), table.get(name)?.clone())));
    Value::Object(found.filter(|(_, value)| !is_empty(value)).collect())
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn of_package_json(bytes: &[u8]) -> Option<Value> {
    let manifest: Value = serde_json::from_slice(bytes).ok()?;
    manifest.is_object().then(|| {
        picked(
            &manifest,
            &["scripts", "gypfile", "bin", "husky", "lint-staged", "pre-commit", "simple-git-hooks", "config"],
        )
    })
}

fn parsed(bytes: &[u8]) -> Option<Value> {
    let table: toml::Table = toml::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    serde_json::to_value(table).ok()
}

fn of_cargo_toml(bytes: &[u8]) -> Option<Value> {
    let manifest = parsed(bytes)?;
    let package = manifest.get("package").map(|package| picked(package, &["build", "links", "metabuild"]));
    let mut executed = picked(&manifest, &["build-dependencies", "patch", "replace"]);
    if let (Some(package), Some(all)) = (package.filter(|package| !is_empty(package)), executed.as_object_mut()) {
        all.insert("package".to_owned(), package);
    }
    // A library of macros runs in the compiler, and so does a dependency that lies beside it.
    let is_macro = |lib: &Value| lib.get("proc-macro").or(lib.get("proc_macro")).is_some_and(|flag| flag == true);
    if let (true, Some(all)) = (manifest.get("lib").is_some_and(is_macro), executed.as_object_mut()) {
        all.insert("proc-macro".to_owned(), Value::Bool(true));
    }
    Some(executed)
}

fn of_pyproject(bytes: &[u8]) -> Option<Value> {
    let manifest = parsed(bytes)?;
    let mut executed = picked(&manifest, &["build-system"]);
    let project = manifest.get("project").map(|project| picked(project, &["scripts", "gui-scripts", "entry-points"]));
    let tool = manifest.get("tool").cloned().filter(|tool| !is_empty(tool));
    if let Some(all) = executed.as_object_mut() {
        all.extend(project.filter(|project| !is_empty(project)).map(|project| ("project".to_owned(), project)));
        // What a tool takes from its table, only the tool knows.
        all.extend(tool.map(|tool| ("tool".to_owned(), tool)));
    }
    Some(executed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(name: &str, before: Option<&str>, after: &str) -> bool {
        let before = before.map_or(Held::Nothing, |text| Held::File(text.as_bytes()));
        takes_effect(name, before, Held::File(after.as_bytes()))
    }

    #[test]
    fn names_and_dependencies_execute_nothing_and_scripts_do() {
        assert!(!effect("package.json", None, r#"{"name": "a", "dependencies": {"b": "1"}}"#));
        assert!(effect("package.json", None, r#"{"scripts": {"postinstall": "evil"}}"#));
        let before = r#"{"scripts": {"test": "jest"}}"#;
        assert!(!effect("package.json", Some(before), r#"{"version": "2", "scripts": {"test": "jest"}}"#));
        assert!(effect("package.json", Some(before), r#"{"scripts": {"test": "evil"}}"#));
        let cargo = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n";
        assert!(!effect("cargo.toml", None, cargo));
        assert!(!effect("cargo.toml", Some(cargo), &format!("{cargo}[dependencies]\nserde = \"1\"\n")));
        for executes in ["build = \"evil.rs\"\n", "[build-dependencies]\ncc = \"1\"\n", "[lib]\nproc-macro = true\n"] {
            assert!(effect("cargo.toml", Some(cargo), &format!("{cargo}{executes}")), "{executes}");
        }
        assert!(!effect("pyproject.toml", None, "[project]\nname = \"a\"\n"));
        assert!(effect("pyproject.toml", None, "[build-system]\nbuild-backend = \"evil\"\n"));
    }

    #[test]
    fn what_cannot_be_read_counts() {
        for name in ["package.json", "cargo.toml", "pyproject.toml", "makefile"] {
            assert!(effect(name, None, "{[ broken"), "{name}");
            assert!(takes_effect(name, Held::Nothing, Held::Unknown), "{name}");
        }
    }
}

//! Manifests of packages: whether a change of one can have something executed.
//!
//! A manifest says much that executes nothing: names, versions, files that belong to it. What names programs counts. What names packages counts if the run had seen untrusted text:
//! whoever installs them executes them, but a run cannot work without adding some. What cannot be read counts.

use serde_json::{Map, Value};

use super::{Held, Standing};

/// What of a manifest matters later.
#[derive(Debug, Default, PartialEq)]
struct Matters {
    /// What names programs.
    programs: Map<String, Value>,
    /// What names packages.
    packages: Map<String, Value>,
}

/// When a person is asked about a change of a manifest, if ever; `name` in small letters.
pub(super) fn standing(name: &str, before: Held<'_>, after: Held<'_>) -> Option<Standing> {
    let Some(read) = reader(name) else { return Some(Standing::IfSteered) };
    let Held::File(after) = after else { return Some(Standing::IfSteered) };
    let Some(new) = read(after) else { return Some(Standing::IfSteered) };
    let old = match before {
        Held::Nothing | Held::Unknown => None,
        Held::File(bytes) => read(bytes),
    };
    let old = old.unwrap_or_default();
    if new.programs != old.programs {
        return Some(Standing::IfSteered);
    }
    (new.packages != old.packages).then_some(Standing::IfTainted)
}

/// Reads what matters out of a manifest.
type Reader = fn(&[u8]) -> Option<Matters>;

fn reader(name: &str) -> Option<Reader> {
    match name {
        "package.json" => Some(of_package_json),
        "composer.json" => Some(of_composer_json),
        "cargo.toml" => Some(of_cargo_toml),
        "pyproject.toml" => Some(of_pyproject),
        "cargo.lock" => Some(of_cargo_lock),
        _ => None,
    }
}

/// All texts in what names programs: commands, and files.
pub(super) fn programs(name: &str, bytes: &[u8]) -> Option<Vec<String>> {
    let mut texts = Vec::new();
    let mut left: Vec<Value> = reader(name)?(bytes)?.programs.into_iter().map(|(_, value)| value).collect();
    while let Some(value) = left.pop() {
        match value {
            Value::String(text) => texts.push(text),
            Value::Array(values) => left.extend(values),
            Value::Object(values) => left.extend(values.into_iter().map(|(_, value)| value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    Some(texts)
}

/// What of a table is there, under its name.
fn picked(table: &Value, names: &[&str]) -> Map<String, Value> {
    let found = names.iter().filter_map(|name| Some(((*name).to_owned(), table.get(name)?.clone())));
    found.filter(|(_, value)| !is_empty(value)).collect()
}

fn is_empty(value: &Value) -> bool {
    value.as_object().is_some_and(serde_json::Map::is_empty) || value.as_array().is_some_and(Vec::is_empty)
}

fn of_package_json(bytes: &[u8]) -> Option<Matters> {
    let manifest: Value = serde_json::from_slice(bytes).ok()?;
    manifest.is_object().then(|| Matters {
        programs: picked(
            &manifest,
            &[
                "scripts",
                "gypfile",
                "bin",
                "husky",
                "lint-staged",
                "pre-commit",
                "simple-git-hooks",
                "config",
                "packageManager",
                "pnpm",
                "eslintConfig",
                "babel",
                "jest",
                "ava",
                "mocha",
                "prettier",
                "stylelint",
                "release",
                "nx",
                "wireit",
            ],
        ),
        packages: picked(
            &manifest,
            &[
                "dependencies",
                "devDependencies",
                "optionalDependencies",
                "peerDependencies",
                "bundledDependencies",
                "overrides",
                "resolutions",
                "workspaces",
            ],
        ),
    })
}

fn of_composer_json(bytes: &[u8]) -> Option<Matters> {
    let manifest: Value = serde_json::from_slice(bytes).ok()?;
    manifest.is_object().then(|| Matters {
        programs: picked(&manifest, &["scripts", "bin", "config", "autoload", "autoload-dev", "extra", "type"]),
        packages: picked(&manifest, &["require", "require-dev", "repositories", "replace", "provide"]),
    })
}

fn parsed(bytes: &[u8]) -> Option<Value> {
    let table: toml::Table = toml::from_str(std::str::from_utf8(bytes).ok()?).ok()?;
    serde_json::to_value(table).ok()
}

fn of_cargo_toml(bytes: &[u8]) -> Option<Matters> {
    let manifest = parsed(bytes)?;
    let mut programs = picked(&manifest, &["build-dependencies", "patch", "replace"]);
    let package = manifest.get("package").map(|package| picked(package, &["build", "links", "metabuild"]));
    programs.extend(package.filter(|found| !found.is_empty()).map(|found| ("package".to_owned(), found.into())));
    // A library of macros runs in the compiler, and so does a dependency that lies beside it.
    let is_macro = |lib: &Value| lib.get("proc-macro").or(lib.get("proc_macro")).is_some_and(|flag| flag == true);
    if manifest.get("lib").is_some_and(is_macro) {
        programs.insert("proc-macro".to_owned(), Value::Bool(true));
    }
    let mut packages = picked(&manifest, &["dependencies", "dev-dependencies"]);
    let workspace = manifest.get("workspace").map(|workspace| picked(workspace, &["dependencies"]));
    packages.extend(workspace.filter(|found| !found.is_empty()).map(|found| ("workspace".to_owned(), found.into())));
    for (target, table) in manifest.get("target").and_then(Value::as_object).into_iter().flatten() {
        let built = picked(table, &["build-dependencies"]);
        programs.extend((!built.is_empty()).then(|| (format!("target.{target}"), built.into())));
        let used = picked(table, &["dependencies", "dev-dependencies"]);
        packages.extend((!used.is_empty()).then(|| (format!("target.{target}"), used.into())));
    }
    Some(Matters { programs, packages })
}

/// The packages that come from elsewhere; those of the workspace itself are no more than their manifests say.
fn of_cargo_lock(bytes: &[u8]) -> Option<Matters> {
    let lock = parsed(bytes)?;
    let all = lock.get("package").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let fetched = all.iter().filter(|package| package.get("source").is_some());
    let named = fetched.map(|package| {
        let facts = picked(package, &["name", "version", "source", "checksum"]);
        (Value::from(facts).to_string(), Value::Bool(true))
    });
    Some(Matters { programs: Map::new(), packages: named.collect() })
}

fn of_pyproject(bytes: &[u8]) -> Option<Matters> {
    let manifest = parsed(bytes)?;
    let mut programs = picked(&manifest, &["build-system"]);
    let project = manifest.get("project");
    let entries = project.map(|project| picked(project, &["scripts", "gui-scripts", "entry-points"]));
    programs.extend(entries.filter(|found| !found.is_empty()).map(|found| ("project".to_owned(), found.into())));
    // What a tool takes from its table, only the tool knows.
    let tool = manifest.get("tool").cloned().filter(|tool| !is_empty(tool));
    programs.extend(tool.map(|tool| ("tool".to_owned(), tool)));
    let mut packages = picked(&manifest, &["dependency-groups"]);
    let used = project.map(|project| picked(project, &["dependencies", "optional-dependencies"]));
    packages.extend(used.filter(|found| !found.is_empty()).map(|found| ("project".to_owned(), found.into())));
    Some(Matters { programs, packages })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(name: &str, before: Option<&str>, after: &str) -> Option<Standing> {
        let before = before.map_or(Held::Nothing, |text| Held::File(text.as_bytes()));
        standing(name, before, Held::File(after.as_bytes()))
    }

    #[test]
    fn names_execute_nothing_scripts_do_and_packages_may() {
        const PROGRAMS: Option<Standing> = Some(Standing::IfSteered);
        const PACKAGES: Option<Standing> = Some(Standing::IfTainted);
        assert_eq!(asked("package.json", None, r#"{"name": "a", "main": "a.js"}"#), None);
        assert_eq!(asked("package.json", None, r#"{"name": "a", "dependencies": {"b": "1"}}"#), PACKAGES);
        assert_eq!(asked("package.json", None, r#"{"scripts": {"postinstall": "evil"}}"#), PROGRAMS);
        let before = r#"{"scripts": {"test": "jest"}}"#;
        assert_eq!(asked("package.json", Some(before), r#"{"version": "2", "scripts": {"test": "jest"}}"#), None);
        assert_eq!(asked("package.json", Some(before), r#"{"scripts": {"test": "evil"}}"#), PROGRAMS);
        let cargo = "[package]\nname = \"a\"\nversion = \"1.0.0\"\n";
        assert_eq!(asked("cargo.toml", None, cargo), None);
        for (text, expected) in [
            ("[dependencies]\nserde = \"1\"\n", PACKAGES),
            ("[target.'cfg(unix)'.dependencies]\nserde = \"1\"\n", PACKAGES),
            ("build = \"evil.rs\"\n", PROGRAMS),
            ("[build-dependencies]\ncc = \"1\"\n", PROGRAMS),
            ("[target.'cfg(unix)'.build-dependencies]\ncc = \"1\"\n", PROGRAMS),
            ("[lib]\nproc-macro = true\n", PROGRAMS),
        ] {
            assert_eq!(asked("cargo.toml", Some(cargo), &format!("{cargo}{text}")), expected, "{text}");
        }
        assert_eq!(asked("pyproject.toml", None, "[project]\nname = \"a\"\n"), None);
        assert_eq!(asked("pyproject.toml", None, "[project]\ndependencies = [\"a\"]\n"), PACKAGES);
        assert_eq!(asked("pyproject.toml", None, "[build-system]\nbuild-backend = \"evil\"\n"), PROGRAMS);
        assert_eq!(asked("composer.json", None, r#"{"scripts": {"post-install-cmd": "evil"}}"#), PROGRAMS);
        let lock = "version = 4\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\n";
        assert_eq!(asked("cargo.lock", None, lock), None, "nothing from elsewhere");
        assert_eq!(
            asked("cargo.lock", Some(lock), &format!("{lock}source = \"git+https://evil.example\"\n")),
            PACKAGES
        );
    }

    #[test]
    fn what_cannot_be_read_counts() {
        for name in ["package.json", "composer.json", "cargo.toml", "pyproject.toml", "cargo.lock", "makefile"] {
            assert!(asked(name, None, "{[ broken").is_some(), "{name}");
            assert!(standing(name, Held::Nothing, Held::Unknown).is_some(), "{name}");
        }
    }

    #[test]
    fn programs_are_named_by_scripts_and_not_by_the_rest() {
        let text = r#"{"main": "lib.js", "scripts": {"build": "node scripts/x.js"}}"#;
        assert_eq!(programs("package.json", text.as_bytes()).unwrap(), ["node scripts/x.js"]);
        let text = "[package]\nname = \"a\"\nbuild = \"gen/main.rs\"\n[lib]\npath = \"src/a.rs\"\n";
        assert_eq!(programs("cargo.toml", text.as_bytes()).unwrap(), ["gen/main.rs"]);
        assert_eq!(programs("makefile", b"all:\n"), None);
    }
}

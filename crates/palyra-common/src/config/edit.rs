//! The one place that writes configuration: change a key, keep the comments, judge the result, replace the file at
//! once.
//!
//! The file is replaced by renaming a complete, synced copy over it, so a crash leaves the old file or the new one. An
//! edit is refused if it would bring a problem that was not there; old problems elsewhere do not stand in the way of
//! mending one.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use toml_edit::{DocumentMut, Item, Table};

use super::error::{ConfigError, ConfigProblem, Origin};
use super::file;
use super::key::{KeySpec, find_key};
use super::resolve::{problems_of, unknown_argument};
use super::value::ConfigValue;
use crate::Environment;

/// What an edit did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigEdit {
    /// The file that was changed.
    pub path: PathBuf,
    /// The key.
    pub key: &'static str,
    /// What the file said before.
    pub before: ConfigValue,
    /// What it says now.
    pub after: ConfigValue,
    /// The environment variable that still overrides it, if one does.
    pub overridden_by: Option<String>,
}

/// Sets a key in the file at `path`, which is created when it does not exist.
pub fn set(path: &Path, key: &str, text: &str, environment: &Environment) -> Result<ConfigEdit, ConfigError> {
    let spec = find_key(key).ok_or_else(|| unknown_argument(key))?;
    let value = spec.value_type.check_text(text).map_err(|mismatch| mismatch.at(Origin::Argument, spec))?;
    edit(path, spec, &value, environment)
}

/// Removes a key from the file at `path`, so that the layers below it count again.
pub fn unset(path: &Path, key: &str, environment: &Environment) -> Result<ConfigEdit, ConfigError> {
    let spec = find_key(key).ok_or_else(|| unknown_argument(key))?;
    edit(path, spec, &ConfigValue::Unset, environment)
}

fn edit(
    path: &Path,
    key: &'static KeySpec,
    value: &ConfigValue,
    environment: &Environment,
) -> Result<ConfigEdit, ConfigError> {
    // A link keeps pointing to the file it pointed to: the file is replaced, not the link.
    let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let present = file::read(path)?;
    let old_text = present.clone().unwrap_or_else(|| "version = 1\n".to_owned());
    let (old_layer, mut old_problems) = file::parse_collecting(path, &old_text)?;
    old_problems.extend(problems_of(&old_layer, environment));

    let new_text = change(path, &old_text, key, value)?;
    let (new_layer, mut new_problems) = file::parse_collecting(path, &new_text)?;
    new_problems.extend(problems_of(&new_layer, environment));
    let old_keys: Vec<_> = old_problems.iter().map(|problem| (problem.code(), problem.key())).collect();
    new_problems
        .retain(|problem| problem.key() == Some(key.name) || !old_keys.contains(&(problem.code(), problem.key())));
    ConfigError::from_problems(new_problems)?;

    if present.as_deref() != Some(new_text.as_str()) && !(present.is_none() && *value == ConfigValue::Unset) {
        replace_file(path, &new_text).map_err(|error| {
            ConfigError::from(ConfigProblem::Unwritable { path: path.clone(), reason: error.to_string() })
        })?;
    }
    let in_layer =
        |layer: &file::FileLayer| layer.values.get(key.name).map_or(ConfigValue::Unset, |(value, _)| value.clone());
    Ok(ConfigEdit {
        path: path.clone(),
        key: key.name,
        before: in_layer(&old_layer),
        after: in_layer(&new_layer),
        overridden_by: key.env_vars().into_iter().find(|variable| environment.get(variable).is_some()),
    })
}

/// The text with one key changed and everything else, comments included, as it was.
fn change(path: &Path, text: &str, key: &KeySpec, value: &ConfigValue) -> Result<String, ConfigError> {
    let mut document: DocumentMut = text.parse().map_err(|error: toml_edit::TomlError| {
        // The same text was just parsed; this keeps the path total rather than reachable.
        ConfigProblem::Unreadable { path: path.to_owned(), reason: error.message().to_owned() }
    })?;
    let Some((section, name)) = key.name.split_once('.') else { return Ok(text.to_owned()) };
    let root = document.as_table_mut();
    let Some(new) = value.to_toml() else {
        if let Some(table) = root.get_mut(section).and_then(Item::as_table_like_mut) {
            table.remove(name);
        }
        return Ok(document.to_string());
    };
    let item = root.entry(section).or_insert_with(|| Item::Table(Table::new()));
    let found = item.type_name();
    let Some(table) = item.as_table_like_mut() else {
        return Err(ConfigProblem::WrongType {
            origin: Origin::Argument,
            key: section.to_owned(),
            expected: "table".to_owned(),
            found: found.to_owned(),
        }
        .into());
    };
    match table.get_mut(name).and_then(Item::as_value_mut) {
        Some(old) => {
            let decor = old.decor().clone();
            *old = new;
            *old.decor_mut() = decor;
        }
        None => {
            table.insert(name, Item::Value(new));
        }
    }
    Ok(document.to_string())
}

/// Replaces a file at once, or creates it with its directory. It is private from its first byte on; a crash leaves the old file
/// or the new one.
pub fn replace_file(path: &Path, text: &str) -> std::io::Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or_else(|| Path::new("."));
    create_private_directory(directory)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    // The process id keeps two writers apart; the last rename wins with a complete file.
    let copy = directory.join(format!(".{name}.{}.new", std::process::id()));
    let _ = fs::remove_file(&copy);
    let written = write_private(&copy, text).and_then(|()| fs::rename(&copy, path));
    if written.is_err() {
        let _ = fs::remove_file(&copy);
    }
    written?;
    // Makes the rename itself survive a power cut.
    fs::File::open(directory)?.sync_all()
}

fn write_private(path: &Path, text: &str) -> std::io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    let mut file = options.open(path)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()
}

fn create_private_directory(directory: &Path) -> std::io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        builder.mode(0o700);
    }
    builder.create(directory)
}

//! The file layer: `palyra.toml` read into flat keys with their lines.
//!
//! Every problem is collected, so that a person mends a file in one go. Only broken TOML ends the reading at once.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read as _};
use std::path::{Path, PathBuf};

use toml_edit::{Document, Item, TableLike};

use super::CONFIG_VERSION;
use super::error::{ConfigError, ConfigProblem, Origin};
use super::key::{KeySpec, find_key, suggest};
use super::schema::SECTIONS;
use super::value::{ConfigValue, Mismatch, ValueType, shown};
use crate::SecretRef;

/// Largest configuration file in bytes; a larger one is not a configuration file.
const FILE_LIMIT: u64 = 1_048_576;

/// The keys of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileLayer {
    pub(super) path: PathBuf,
    pub(super) values: BTreeMap<&'static str, (ConfigValue, usize)>,
}

/// Reads the text of a configuration file. `path` only names it in messages and anchors its relative paths.
pub fn parse(path: &Path, text: &str) -> Result<FileLayer, ConfigError> {
    let (layer, problems) = parse_collecting(path, text)?;
    ConfigError::from_problems(problems)?;
    Ok(layer)
}

/// Like [`parse`], giving what could be read and what is wrong beside each other.
pub(super) fn parse_collecting(path: &Path, text: &str) -> Result<(FileLayer, Vec<ConfigProblem>), ConfigError> {
    let document = Document::parse(text).map_err(|error| {
        let (line, column) = position(text, error.span().map_or(0, |span| span.start));
        ConfigProblem::Syntax { path: path.to_owned(), line, column, message: one_line(error.message()) }
    })?;
    let mut reader =
        Reader { text, layer: FileLayer { path: path.to_owned(), values: BTreeMap::new() }, problems: Vec::new() };
    reader.root(document.as_table());
    Ok((reader.layer, reader.problems))
}

struct Reader<'a> {
    text: &'a str,
    layer: FileLayer,
    problems: Vec<ConfigProblem>,
}

impl Reader<'_> {
    fn root(&mut self, root: &dyn TableLike) {
        for (name, item) in root.iter() {
            let line = self.line_of(root, name);
            if name == "version" {
                self.version(item, line);
            } else if SECTIONS.iter().any(|(section, _)| *section == name) {
                self.section(name, item, line);
            } else {
                self.unknown(name, line);
            }
        }
    }

    fn version(&mut self, item: &Item, line: usize) {
        if item.as_integer() != Some(CONFIG_VERSION) {
            let found = item.as_value().map_or_else(|| item.type_name().to_owned(), |value| value.to_string());
            let path = self.layer.path.clone();
            self.problems.push(ConfigProblem::VersionUnsupported { path, line, found: shown(found.trim()) });
        }
    }

    fn section(&mut self, section: &str, item: &Item, line: usize) {
        let Some(table) = item.as_table_like() else {
            self.problems.push(ConfigProblem::WrongType {
                origin: self.origin(line),
                key: section.to_owned(),
                expected: "table".to_owned(),
                found: item.type_name().to_owned(),
            });
            return;
        };
        for (name, item) in table.iter() {
            let line = self.line_of(table, name);
            let full = format!("{section}.{name}");
            match find_key(&full) {
                Some(key) => self.value(key, item, line),
                None => self.unknown(&full, line),
            }
        }
    }

    fn value(&mut self, key: &'static KeySpec, item: &Item, line: usize) {
        let checked = ConfigValue::from_toml(item)
            .map_err(Mismatch::Type)
            .and_then(|value| key.value_type.check(value))
            .and_then(|value| {
                let directory = self.layer.path.parent().unwrap_or_else(|| Path::new(""));
                anchor(directory, &key.value_type, value)
            });
        match checked {
            Ok(value) => {
                self.layer.values.insert(key.name, (value, line));
            }
            Err(mismatch) => self.problems.push(mismatch.at(self.origin(line), key)),
        }
    }

    fn unknown(&mut self, name: &str, line: usize) {
        let suggestion = suggest(name);
        self.problems.push(ConfigProblem::UnknownKey { origin: self.origin(line), key: shown(name), suggestion });
    }

    fn origin(&self, line: usize) -> Origin {
        Origin::File { path: self.layer.path.clone(), line }
    }

    fn line_of(&self, table: &dyn TableLike, name: &str) -> usize {
        let start = table.get_key_value(name).and_then(|(key, item)| key.span().or_else(|| item.span()));
        position(self.text, start.map_or(0, |span| span.start)).0
    }
}

impl Mismatch {
    /// The same, with the key it is about and where it stands.
    pub(super) fn at(self, origin: Origin, key: &KeySpec) -> ConfigProblem {
        match self {
            Self::Type(found) => ConfigProblem::WrongType {
                origin,
                key: key.name.to_owned(),
                expected: key.value_type.describe(),
                found,
            },
            Self::Value(reason) => ConfigProblem::InvalidValue { origin, key: key.name.to_owned(), reason },
        }
    }
}

/// Makes relative paths start from the directory of whoever wrote them, not from the daemon's own.
pub(super) fn anchor(directory: &Path, value_type: &ValueType, value: ConfigValue) -> Result<ConfigValue, Mismatch> {
    let absolute = |path: &Path| {
        directory
            .join(path)
            .into_os_string()
            .into_string()
            .map_err(|_| Mismatch::Value(format!("`{}` is not UTF-8; write an absolute path", directory.display())))
    };
    match (value_type, value) {
        (ValueType::Path, ConfigValue::Text(path)) => absolute(Path::new(&path)).map(ConfigValue::Text),
        (ValueType::Secret, ConfigValue::Text(text)) => match text.parse() {
            Ok(SecretRef::File(path)) => Ok(ConfigValue::Text(format!("file:{}", absolute(&path)?))),
            _ => Ok(ConfigValue::Text(text)),
        },
        (_, value) => Ok(value),
    }
}

/// Line and column, both from 1, of a byte position.
fn position(text: &str, at: usize) -> (usize, usize) {
    let before = text.as_bytes().get(..at).unwrap_or(text.as_bytes());
    let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
    let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |newline| newline + 1);
    let column = String::from_utf8_lossy(before.get(line_start..).unwrap_or_default()).chars().count() + 1;
    (line, column)
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).collect::<Vec<_>>().join(", ")
}

/// The text of a configuration file, or `None` when there is no such file.
pub(super) fn read(path: &Path) -> Result<Option<String>, ConfigError> {
    let unreadable = |reason: &str| -> ConfigError {
        ConfigProblem::Unreadable { path: path.to_owned(), reason: reason.to_owned() }.into()
    };
    let failed = |error: &std::io::Error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::NotADirectory => Ok(None),
        _ => Err(unreadable(&error.to_string())),
    };
    // Looked at before opening: opening a FIFO would wait for a writer for ever.
    match std::fs::metadata(path) {
        Ok(metadata) if !metadata.is_file() => return Err(unreadable("it is not a regular file")),
        Ok(_) => {}
        Err(error) => return failed(&error),
    }
    let file = match std::fs::File::open(path) {
        Ok(file) => file,
        Err(error) => return failed(&error),
    };
    let mut bytes = Vec::new();
    if let Err(error) = file.take(FILE_LIMIT + 1).read_to_end(&mut bytes) {
        return Err(unreadable(&error.to_string()));
    }
    if bytes.len() as u64 > FILE_LIMIT {
        return Err(unreadable("it is larger than 1 MiB"));
    }
    String::from_utf8(bytes).map(Some).map_err(|_| unreadable("it is not UTF-8 text"))
}

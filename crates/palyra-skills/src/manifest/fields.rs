//! Reads a TOML table field by field, so that every complaint names its field and an unknown key comes with the one that was probably meant.

use std::str::FromStr;

use toml::{Table, Value};

use crate::SkillError;
use crate::error::shown;

/// A table of which fields are taken one after the other; what is left at the end is unknown.
pub(crate) struct Fields {
    path: String,
    table: Table,
    known: Vec<&'static str>,
}

impl Fields {
    pub(crate) fn new(path: impl Into<String>, table: Table) -> Self {
        Self { path: path.into(), table, known: Vec::new() }
    }

    /// The path of a field in this table.
    pub(crate) fn at(&self, key: &str) -> String {
        if self.path.is_empty() { key.to_owned() } else { format!("{}.{key}", self.path) }
    }

    pub(crate) fn wrong(&self, key: &str, reason: impl Into<String>) -> SkillError {
        SkillError::manifest(self.at(key), reason)
    }

    /// Takes a value, if it is there.
    pub(crate) fn take(&mut self, key: &'static str) -> Option<Value> {
        self.known.push(key);
        self.table.remove(key)
    }

    /// Takes a value that has to be there.
    pub(crate) fn need(&mut self, key: &'static str) -> Result<Value, SkillError> {
        self.take(key).ok_or_else(|| self.wrong(key, "it is missing"))
    }

    /// A text of at most `limit` bytes, if it is there.
    pub(crate) fn text(&mut self, key: &'static str, limit: usize) -> Result<Option<String>, SkillError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::String(text)) => self.plain(key, text, limit).map(Some),
            Some(other) => Err(self.wrong(key, format!("expected a string, found {}", other.type_str()))),
        }
    }

    /// A text that has to be there and to say something.
    pub(crate) fn need_text(&mut self, key: &'static str, limit: usize) -> Result<String, SkillError> {
        match self.text(key, limit)? {
            Some(text) if !text.trim().is_empty() => Ok(text),
            Some(_) => Err(self.wrong(key, "it is empty")),
            None => Err(self.wrong(key, "it is missing")),
        }
    }

    fn plain(&self, key: &str, text: String, limit: usize) -> Result<String, SkillError> {
        if text.len() > limit {
            return Err(self.wrong(key, format!("it is longer than {limit} bytes")));
        }
        // Escape sequences in a name would reach the terminal of whoever lists skills.
        if text.chars().any(|c| c.is_control() && c != '\n' && c != '\t') {
            return Err(self.wrong(key, "it contains a control character"));
        }
        // A person and the model would read different things.
        if text.chars().any(is_hidden) {
            return Err(self.wrong(key, "it contains an invisible or text-direction character"));
        }
        Ok(text)
    }

    /// A text that is read as something, if it is there.
    pub(crate) fn parsed<T: FromStr>(&mut self, key: &'static str) -> Result<Option<T>, SkillError>
    where
        T::Err: std::fmt::Display,
    {
        match self.text(key, 1024)? {
            None => Ok(None),
            Some(text) => text.parse().map(Some).map_err(|error: T::Err| self.wrong(key, error.to_string())),
        }
    }

    /// A text that is read as something and has to be there.
    pub(crate) fn need_parsed<T: FromStr>(&mut self, key: &'static str) -> Result<T, SkillError>
    where
        T::Err: std::fmt::Display,
    {
        self.parsed(key)?.ok_or_else(|| self.wrong(key, "it is missing"))
    }

    /// Yes or no, if it is there.
    pub(crate) fn flag(&mut self, key: &'static str) -> Result<Option<bool>, SkillError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Boolean(value)) => Ok(Some(value)),
            Some(other) => Err(self.wrong(key, format!("expected `true` or `false`, found {}", other.type_str()))),
        }
    }

    /// A whole number within bounds, if it is there.
    pub(crate) fn number(&mut self, key: &'static str, least: u64, most: u64) -> Result<Option<u64>, SkillError> {
        match self.take(key) {
            None => Ok(None),
            Some(Value::Integer(value)) => match u64::try_from(value) {
                Ok(value) if (least..=most).contains(&value) => Ok(Some(value)),
                _ => Err(self.wrong(key, format!("{value} is not between {least} and {most}"))),
            },
            Some(other) => Err(self.wrong(key, format!("expected a whole number, found {}", other.type_str()))),
        }
    }

    /// A list, empty if it is not there.
    pub(crate) fn list(&mut self, key: &'static str, most: usize) -> Result<Vec<Value>, SkillError> {
        match self.take(key) {
            None => Ok(Vec::new()),
            Some(Value::Array(values)) if values.len() <= most => Ok(values),
            Some(Value::Array(_)) => Err(self.wrong(key, format!("it has more than {most} entries"))),
            Some(other) => Err(self.wrong(key, format!("expected a list, found {}", other.type_str()))),
        }
    }

    /// A list of short texts, empty if it is not there.
    pub(crate) fn texts(&mut self, key: &'static str, most: usize) -> Result<Vec<String>, SkillError> {
        let values = self.list(key, most)?;
        values
            .into_iter()
            .enumerate()
            .map(|(index, value)| match value {
                Value::String(text) => self.plain(&format!("{key}[{index}]"), text, 1024),
                other => {
                    Err(self
                        .wrong(&format!("{key}[{index}]"), format!("expected a string, found {}", other.type_str())))
                }
            })
            .collect()
    }

    /// A table, empty if it is not there.
    pub(crate) fn table(&mut self, key: &'static str) -> Result<Self, SkillError> {
        let path = self.at(key);
        match self.take(key) {
            None => Ok(Self::new(path, Table::new())),
            Some(Value::Table(table)) => Ok(Self::new(path, table)),
            Some(other) => Err(self.wrong(key, format!("expected a table, found {}", other.type_str()))),
        }
    }

    /// A list of tables, empty if it is not there.
    pub(crate) fn tables(&mut self, key: &'static str, most: usize) -> Result<Vec<Self>, SkillError> {
        let values = self.list(key, most)?;
        values
            .into_iter()
            .enumerate()
            .map(|(index, value)| {
                let path = self.at(&format!("{key}[{index}]"));
                match value {
                    Value::Table(table) => Ok(Self::new(path, table)),
                    other => Err(SkillError::manifest(path, format!("expected a table, found {}", other.type_str()))),
                }
            })
            .collect()
    }

    /// All keys and values that are left, for tables whose keys are free.
    pub(crate) fn rest(&mut self) -> Table {
        std::mem::take(&mut self.table)
    }

    /// Refuses what nobody took.
    pub(crate) fn finish(self) -> Result<(), SkillError> {
        let Some(unknown) = self.table.keys().next() else { return Ok(()) };
        let near = self
            .known
            .iter()
            .map(|known| (strsim::jaro_winkler(known, unknown), known))
            .filter(|(likeness, _)| *likeness > 0.75)
            .max_by(|left, right| left.0.total_cmp(&right.0));
        let reason = match near {
            Some((_, known)) => format!("unknown key; did you mean `{known}`?"),
            None => format!("unknown key; expected one of {}", self.known.join(", ")),
        };
        Err(SkillError::manifest(self.at(&shown(unknown)), reason))
    }
}

/// Characters that hide text or turn it around. Marks that honest writing needs stay: those of right-to-left words, joiners, variants of emoji.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{2066}'..='\u{206f}' | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

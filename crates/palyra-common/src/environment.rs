//! The process environment as a value, so that everything that reads it can be tested without changing it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

/// Environment variables and the directory that relative paths start from.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Environment {
    variables: BTreeMap<OsString, OsString>,
    current_directory: PathBuf,
}

impl Environment {
    /// The environment of this process, as it is now.
    #[must_use]
    pub fn of_process() -> Self {
        Self {
            variables: std::env::vars_os().collect(),
            // Without a current directory a relative path fails later, where it is used, by its name.
            current_directory: std::env::current_dir().unwrap_or_default(),
        }
    }

    /// Exactly these variables, for tests and for describing another process.
    #[must_use]
    pub fn from_pairs<Name: Into<OsString>, Value: Into<OsString>>(
        pairs: impl IntoIterator<Item = (Name, Value)>,
    ) -> Self {
        Self {
            variables: pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect(),
            current_directory: PathBuf::new(),
        }
    }

    /// The same with another current directory.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.current_directory = directory.into();
        self
    }

    /// The same with one variable set.
    #[must_use]
    pub fn with(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.variables.insert(name.into(), value.into());
        self
    }

    /// A variable's value; an empty one counts as not set.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&OsStr> {
        self.variables.get(OsStr::new(name)).map(OsString::as_os_str).filter(|value| !value.is_empty())
    }

    /// A variable's value, if it is set and UTF-8.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(OsStr::to_str)
    }

    /// The names that are set and UTF-8.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.variables.keys().filter_map(|name| name.to_str())
    }

    /// A path made absolute from the current directory.
    #[must_use]
    pub fn absolute(&self, path: &Path) -> PathBuf {
        self.current_directory.join(path)
    }
}

impl fmt::Debug for Environment {
    /// Names only: values of variables are where keys and passwords are.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Environment")
            .field("variables", &self.variables.keys())
            .field("current_directory", &self.current_directory)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_do_not_show_and_empty_counts_as_unset() {
        let environment = Environment::from_pairs([("OPENAI_API_KEY", "hunter2"), ("EMPTY", "")]).in_directory("/w");
        let shown = format!("{environment:?}");
        assert!(shown.contains("OPENAI_API_KEY") && !shown.contains("hunter2"), "{shown}");
        assert_eq!(environment.text("OPENAI_API_KEY"), Some("hunter2"));
        assert_eq!(environment.get("EMPTY"), None);
        assert_eq!(environment.absolute(Path::new("a")), Path::new("/w/a"));
        assert_eq!(environment.absolute(Path::new("/a")), Path::new("/a"));
    }
}

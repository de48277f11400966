//! References to secrets: configuration says *where* a secret is, never what it is.
//!
//! Reading a reference and resolving the two kinds that need nothing but the process (`env:` and `file:`) happen here.
//! The vault and commands belong to other crates; resolving those here is an error, never an empty secret. Whoever needs a secret
//! asks a [`SecretResolver`], which the program's composition hands it.
//! No message in this file repeats the text it was given: a text that is no reference may be a pasted secret.

use std::fmt;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use thiserror::Error;
use zeroize::Zeroize as _;

use crate::{Environment, ErrorCategory, SecretString, StableErrorEnvelope, ToStableError};

/// Longest key of a vault entry.
const VAULT_KEY_LIMIT: usize = 128;

/// Largest secret, the same as the vault's limit: a larger file is the wrong file.
const SECRET_BYTES_LIMIT: u64 = 64 * 1024;

/// Where a secret is.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum SecretRef {
    /// `vault:scope/key`
    Vault {
        /// `global`, `principal:ID`, `channel:NAME:ACCOUNT` or `skill:ID`.
        scope: String,
        /// The entry's key.
        key: String,
    },
    /// `env:NAME`
    Env(String),
    /// `file:path`
    File(PathBuf),
    /// `exec:command`
    Exec(String),
}

/// A text that is no reference to a secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum InvalidSecretRef {
    /// No known prefix: most likely the secret itself.
    #[error(
        "a secret must be a reference, not the secret itself; expected `vault:scope/key`, `env:NAME`, `file:path` or `exec:command`"
    )]
    PlainValue,
    /// A vault reference without a proper scope.
    #[error(
        "the vault scope must be `global`, `principal:ID`, `channel:NAME:ACCOUNT` or `skill:ID`, followed by `/key`"
    )]
    VaultScope,
    /// A vault reference without a proper key.
    #[error("the vault key must be 1 to 128 of the characters a-z, 0-9, `.`, `_` and `-`")]
    VaultKey,
    /// A reference to a variable whose name no variable can have.
    #[error("`env:` must be followed by the name of an environment variable: letters, digits and `_`")]
    EnvName,
    /// A reference to nothing.
    #[error("`file:` and `exec:` must be followed by a path or a command")]
    Empty,
}

impl FromStr for SecretRef {
    type Err = InvalidSecretRef;
    fn from_str(text: &str) -> Result<Self, InvalidSecretRef> {
        let (kind, rest) = text.split_once(':').ok_or(InvalidSecretRef::PlainValue)?;
        match kind {
            "vault" => {
                let (scope, key) = rest.split_once('/').ok_or(InvalidSecretRef::VaultScope)?;
                if !is_vault_scope(scope) {
                    return Err(InvalidSecretRef::VaultScope);
                }
                let fits = (1..=VAULT_KEY_LIMIT).contains(&key.len())
                    && key.bytes().all(|b| matches!(b, b'a'..=b'z' | b'0'..=b'9' | b'.' | b'_' | b'-'));
                if !fits {
                    return Err(InvalidSecretRef::VaultKey);
                }
                Ok(Self::Vault { scope: scope.to_owned(), key: key.to_owned() })
            }
            "env" => {
                let fits = rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && rest.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                if fits { Ok(Self::Env(rest.to_owned())) } else { Err(InvalidSecretRef::EnvName) }
            }
            "file" if !rest.trim().is_empty() => Ok(Self::File(PathBuf::from(rest))),
            "exec" if !rest.trim().is_empty() => Ok(Self::Exec(rest.to_owned())),
            "file" | "exec" => Err(InvalidSecretRef::Empty),
            _ => Err(InvalidSecretRef::PlainValue),
        }
    }
}

fn is_vault_scope(scope: &str) -> bool {
    let mut parts = scope.split(':');
    let wanted = match parts.next() {
        Some("global") => 0,
        Some("principal" | "skill") => 1,
        Some("channel") => 2,
        _ => return false,
    };
    let mut named = 0;
    for part in parts {
        if part.is_empty() || part.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return false;
        }
        named += 1;
    }
    named == wanted
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Vault { scope, key } => write!(f, "vault:{scope}/{key}"),
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
            Self::Exec(command) => write!(f, "exec:{command}"),
        }
    }
}

impl Serialize for SecretRef {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// A secret that could not be had.
#[derive(Debug, Error)]
pub enum SecretError {
    /// The variable is not set, empty, or not UTF-8.
    #[error("the environment variable `{0}` that a secret refers to is not set, or is not UTF-8")]
    EnvMissing(String),
    /// The file cannot be read.
    #[error("the secret file `{path}` cannot be read")]
    FileUnreadable {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file is not what a secret file must be.
    #[error("the secret file `{path}` is refused: {reason}")]
    FileRefused {
        /// Which file.
        path: PathBuf,
        /// Why.
        reason: &'static str,
    },
    /// The command that the secret refers to did not give one. What it wrote is not told: it may be half a secret.
    #[error("the command `{program}` that a secret refers to failed: {reason}")]
    CommandFailed {
        /// Its first word. The others are not told either.
        program: String,
        /// Why.
        reason: String,
    },
    /// The reference needs a part of Palyra that is not at hand.
    #[error("secrets referred to by `{0}:` cannot be read here")]
    Unsupported(&'static str),
}

impl ToStableError for SecretError {
    fn to_stable(&self) -> StableErrorEnvelope {
        let (code, hint) = match self {
            Self::EnvMissing(_) => ("secret_missing", "set the variable, or change the reference in palyra.toml"),
            Self::FileUnreadable { .. } => ("secret_unreadable", "check the path and its permissions"),
            Self::FileRefused { .. } => ("secret_refused", "use a small text file with mode 0600"),
            Self::CommandFailed { .. } => {
                ("secret_command_failed", "run the command by hand as the user that the daemon runs as")
            }
            Self::Unsupported(_) => ("unsupported_secret_reference", "use `env:NAME` or `file:path`"),
        };
        StableErrorEnvelope::new(code, ErrorCategory::Validation, self.to_string()).hint(hint)
    }
}

/// Where secrets come from. It may block, so nobody asks it on a runtime's own threads.
pub trait SecretResolver: Send + Sync + 'static {
    /// The secret behind a reference. Neither the error nor anything else shows it.
    fn resolve(&self, reference: &SecretRef) -> Result<SecretString, SecretError>;
}

/// An environment by itself reads `env:` and `file:` and nothing else.
impl SecretResolver for Environment {
    fn resolve(&self, reference: &SecretRef) -> Result<SecretString, SecretError> {
        reference.resolve(self)
    }
}

impl SecretRef {
    /// Reads an `env:` or `file:` secret. A file's final line end is not part of the secret.
    pub fn resolve(&self, environment: &Environment) -> Result<SecretString, SecretError> {
        match self {
            Self::Env(name) => environment
                .text(name)
                .map(|value| SecretString::from(value.to_owned()))
                .ok_or_else(|| SecretError::EnvMissing(name.clone())),
            Self::File(path) => read_secret_file(&environment.absolute(path)),
            Self::Vault { .. } => Err(SecretError::Unsupported("vault")),
            Self::Exec(_) => Err(SecretError::Unsupported("exec")),
        }
    }
}

fn read_secret_file(path: &Path) -> Result<SecretString, SecretError> {
    let unreadable = |source| SecretError::FileUnreadable { path: path.to_owned(), source };
    let refused = |reason| SecretError::FileRefused { path: path.to_owned(), reason };
    // Looked at before opening: opening a FIFO would wait for a writer for ever.
    if !std::fs::metadata(path).map_err(unreadable)?.is_file() {
        return Err(refused("it is not a regular file"));
    }
    let file = std::fs::File::open(path).map_err(unreadable)?;
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // Asked of the open file, so that it cannot be swapped in between.
        if file.metadata().map_err(unreadable)?.permissions().mode() & 0o077 != 0 {
            return Err(refused("other users may read or change it"));
        }
    }
    let mut bytes = Vec::new();
    file.take(SECRET_BYTES_LIMIT + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    let checked = match std::str::from_utf8(&bytes) {
        Ok(_) if bytes.len() as u64 > SECRET_BYTES_LIMIT => Err(refused("it is larger than 64 KiB")),
        Err(_) => Err(refused("it is not UTF-8 text")),
        Ok(text) => match text.strip_suffix('\n').map_or(text, |line| line.strip_suffix('\r').unwrap_or(line)) {
            "" => Err(refused("it is empty")),
            secret => Ok(SecretString::from(secret.to_owned())),
        },
    };
    bytes.zeroize();
    checked
}

#[cfg(test)]
#[path = "secret_ref_tests.rs"]
mod tests;

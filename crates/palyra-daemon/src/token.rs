//! The token of loopback HTTP: 32 random bytes in a file that only its owner can read.
//!
//! On the loopback interface the kernel does not say who calls, so the caller proves that it can read a file of this user.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use palyra_client::TOKEN_NAME;
use palyra_common::SecretString;
use subtle::ConstantTimeEq as _;

use crate::error::DaemonError;
use crate::state::StateRoot;

const RANDOM_BYTES: usize = 32;

/// The token that callers over loopback HTTP must show.
#[derive(Debug, Clone)]
pub(crate) struct Token(SecretString);

impl Token {
    /// The token of a state root. One that is missing, malformed, or was readable by others is replaced by a new one.
    pub(crate) fn of(root: &StateRoot) -> Result<Self, DaemonError> {
        let path = root.path().join(TOKEN_NAME);
        if let Some(token) = read(&path).map_err(DaemonError::file("read", &path))? {
            return Ok(token);
        }
        let mut bytes = [0_u8; RANDOM_BYTES];
        getrandom::fill(&mut bytes)
            .map_err(|error| DaemonError::system("draw random bytes for the local token")(io::Error::other(error)))?;
        let text = URL_SAFE_NO_PAD.encode(bytes);
        root.replace(TOKEN_NAME, &format!("{text}\n"))?;
        Ok(Self(SecretString::new(text)))
    }

    /// Whether this is the token, in a time that does not tell how much of it is right.
    pub(crate) fn is(&self, shown: &str) -> bool {
        self.0.expose().as_bytes().ct_eq(shown.as_bytes()).into()
    }
}

#[cfg(test)]
impl From<SecretString> for Token {
    fn from(text: SecretString) -> Self {
        Self(text)
    }
}

fn read(path: &Path) -> io::Result<Option<Token>> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !metadata.is_file() || metadata.mode() & 0o077 != 0 {
        tracing::warn!("the local token was readable by other users; creating a new one");
        return Ok(None);
    }
    let text = String::from_utf8_lossy(&fs::read(path)?).trim().to_owned();
    let whole = URL_SAFE_NO_PAD.decode(&text).is_ok_and(|bytes| bytes.len() == RANDOM_BYTES);
    Ok(whole.then(|| Token(SecretString::new(text))))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_token_is_kept_unless_others_could_read_it() {
        let directory = tempfile::tempdir().unwrap();
        let root = StateRoot::claim(directory.path().to_owned()).unwrap();
        let path = directory.path().join(TOKEN_NAME);
        let text = |token: &Token| token.0.expose().clone();
        let first = text(&Token::of(&root).unwrap());
        assert_eq!(first.len(), 43);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        assert_eq!(text(&Token::of(&root).unwrap()), first);
        fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
        let second = text(&Token::of(&root).unwrap());
        assert_ne!(second, first);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
        fs::write(&path, "short\n").unwrap();
        assert_ne!(text(&Token::of(&root).unwrap()), "short");
    }

    #[test]
    fn only_the_whole_token_opens() {
        let token = Token(SecretString::new("abcdef".to_owned()));
        assert!(token.is("abcdef"));
        for wrong in ["", "abcde", "abcdeg", "abcdefg", "ABCDEF"] {
            assert!(!token.is(wrong), "{wrong}");
        }
    }
}

//! Keys in what servers say.
//!
//! Some servers repeat the key they refuse. Every error that holds a server's words passes through here before anybody sees it.

use palyra_common::SecretString;

use crate::error::ModelError;

/// Shortest key that is looked for. Anything shorter is no key, and would tear words apart.
const SHORTEST: usize = 4;

/// Takes one key out of texts.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mask(Option<SecretString>);

impl Mask {
    pub(crate) const fn new(key: Option<SecretString>) -> Self {
        Self(key)
    }

    /// The same error without the key.
    pub(crate) fn clean(&self, mut error: ModelError) -> ModelError {
        if let Some(key) = self.0.as_ref().map(|key| key.expose()).filter(|key| key.len() >= SHORTEST) {
            error.message = error.message.replace(key.as_str(), "[redacted]");
        }
        error
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::ModelErrorClass;

    #[test]
    fn a_repeated_key_is_masked() {
        let error = || ModelError::new(ModelErrorClass::Auth, "incorrect key sk-hunter2 given");
        let mask = Mask::new(Some(SecretString::from("sk-hunter2".to_owned())));
        assert_eq!(mask.clean(error()).message, "incorrect key [redacted] given");
        assert_eq!(Mask::default().clean(error()), error());
    }
}

//! Secrets, and what the program hands over of its surroundings.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use zeroize::Zeroizing;

/// Variables of the environment that may hold a secret.
const VARIABLES: [&str; 10] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "B2_APPLICATION_KEY_ID",
    "B2_APPLICATION_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "OBLIVIO_PASSPHRASE",
    "OBLIVIO_NEW_PASSPHRASE",
];

/// Keeps the secrets of this program's environment from one that it starts and that needs none.
pub fn keep_from(program: &mut Command) {
    for name in VARIABLES {
        program.env_remove(name);
    }
}

/// A password, a key or a token. It does not print, and is wiped when dropped.
#[derive(Clone)]
pub struct StoreSecret(Zeroizing<String>);

impl StoreSecret {
    /// Keeps a secret.
    #[must_use]
    pub fn new(secret: String) -> Self {
        Self(Zeroizing::new(secret))
    }

    /// The secret itself, for the one library that sends it.
    #[must_use]
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for StoreSecret {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("***")
    }
}

/// Looks up a variable of the environment.
pub type Lookup = Arc<dyn Fn(&str) -> Option<String> + Send + Sync>;

/// What a store may know of the program's surroundings.
#[derive(Clone)]
pub struct Ambient {
    /// The environment, as the program lets it be seen.
    pub env: Lookup,
    /// The user's home folder.
    pub home: PathBuf,
}

impl fmt::Debug for Ambient {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Ambient").field("home", &self.home).finish_non_exhaustive()
    }
}

impl Ambient {
    /// A variable that is set to something.
    pub(super) fn var(&self, name: &str) -> Option<String> {
        (self.env)(name).filter(|value| !value.is_empty())
    }

    /// The first of these variables that is set.
    pub(super) fn first(&self, names: &[&str]) -> Option<String> {
        names.iter().find_map(|name| self.var(name))
    }

    /// A path in which `~` stands for the home folder.
    pub(super) fn path(&self, path: &str) -> PathBuf {
        match path.strip_prefix("~/") {
            Some(rest) => self.home.join(rest),
            None => Path::new(path).to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_does_not_print() {
        let secret = StoreSecret::new("hunter2".to_owned());
        assert_eq!(format!("{secret:?} {:?}", Some(&secret)), "*** Some(***)");
        let env: Lookup = Arc::new(|_| Some("hunter2".to_owned()));
        let ambient = Ambient { env, home: PathBuf::from("/home/alice") };
        assert!(!format!("{ambient:?}").contains("hunter2"));
        assert_eq!(ambient.path("~/key"), Path::new("/home/alice/key"));
        assert_eq!(ambient.path("/key"), Path::new("/key"));
    }
}

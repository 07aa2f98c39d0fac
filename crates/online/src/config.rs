//! The user's file of remotes: `~/.config/oblivio/remotes.toml`.
//!
//! ```toml
//! [home]
//! url = "webdavs://cloud.example.org/remote.php/dav/files/alice"
//! user = "alice"
//! secret_command = "pass show cloud"
//! ```
//!
//! It is refused unless only its owner, the user, may read it. Errors never repeat a line of it.

use super::keyring;
use super::secrets::{Ambient, StoreSecret};
use super::url::{OnlinePlace, Url, is_remote_name};
use oblivio_store::replace_file;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use zeroize::Zeroizing;

mod edit;

pub use edit::{NewRemote, NewSecret};

/// Where the file is, from the home folder.
const FILE: &str = "oblivio/remotes.toml";
/// The longest file that is read, of remotes or of a secret.
const MAX_BYTES: u64 = 256 * 1024;

/// What the user calls places, and what opens them.
#[derive(Debug, Default)]
pub struct Remotes(BTreeMap<String, Remote>);

/// A place with a name.
#[derive(Debug)]
pub struct Remote {
    /// Where it is.
    pub place: OnlinePlace,
    /// The user, or the id of the key.
    pub user: Option<String>,
    /// Where the secret is.
    pub secret: Option<SecretFrom>,
    /// The user accepts that a password goes over the network as it is.
    pub plain: bool,
}

/// Where a secret is.
#[derive(Clone, Debug)]
pub enum SecretFrom {
    /// In the file of remotes.
    Here(StoreSecret),
    /// In a file of its own.
    File(PathBuf),
    /// In what a command prints.
    Command(String),
    /// In the keyring of the desktop, for the remote of this name.
    Keyring(String),
}

/// What is wrong with the file, or with a secret that it names.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// Others may read or write it.
    #[error("{} holds secrets, and others may read it: run `chmod 600` on it", .0.display())]
    Mode(PathBuf),
    /// It is somebody else's.
    #[error("{} holds secrets, and is not yours: make one of your own", .0.display())]
    Owner(PathBuf),
    /// It cannot be read.
    #[error("{} cannot be read: {}", .0.display(), .1)]
    Read(PathBuf, io::ErrorKind),
    /// It is no file of remotes.
    #[error(
        "{}, line {line}, is not understood: a remote is `[name]` with url, and if it needs them \
         user, plain, and one of secret, secret_file, secret_command and keyring", file.display()
    )]
    Syntax {
        /// The file.
        file: PathBuf,
        /// The line, from one.
        line: usize,
    },
    /// A remote in it cannot be.
    #[error("the remote {name} in {}: {why}", file.display())]
    Remote {
        /// The file.
        file: PathBuf,
        /// The remote's name.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// No remote has this name.
    #[error("no remote is called {name}: add `[{name}]` with its url to {}", file.display())]
    Unknown {
        /// The name.
        name: String,
        /// The file.
        file: PathBuf,
    },
    /// There is a remote of this name.
    #[error("there is a remote called {0} already: choose another name, or remove it first")]
    Taken(String),
    /// It cannot be a name.
    #[error(
        "a remote's name has 2 to 32 letters, digits, dashes and underscores, and is no service's"
    )]
    Name,
    /// It cannot be written.
    #[error("{} cannot be written: {}", .0.display(), .1)]
    Write(PathBuf, io::ErrorKind),
    /// The keyring does not give or take a secret.
    #[error("the keyring: {0}")]
    Keyring(String),
    /// The command for the secret failed.
    #[error("the secret_command failed ({0}): run it by hand to see why")]
    Command(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: String,
    user: Option<String>,
    #[serde(default)]
    plain: bool,
    #[serde(default, deserialize_with = "secret")]
    secret: Option<StoreSecret>,
    secret_file: Option<String>,
    secret_command: Option<String>,
    #[serde(default)]
    keyring: bool,
}

fn secret<'de, D: Deserializer<'de>>(from: D) -> Result<Option<StoreSecret>, D::Error> {
    Option::<String>::deserialize(from).map(|it| it.map(StoreSecret::new))
}

impl Remotes {
    /// Where the file of remotes is: in the user's folder of settings. Versions before 1 had it
    /// below the home folder whatever the environment says; one that is there still counts.
    #[must_use]
    pub fn file(ambient: &Ambient) -> PathBuf {
        let below_home = ambient.home.join(".config").join(FILE);
        let settings = ambient.var("XDG_CONFIG_HOME").map(PathBuf::from);
        let file = settings.filter(|it| it.is_absolute()).map(|it| it.join(FILE));
        match file {
            Some(file) if file.exists() || !below_home.exists() => file,
            _ => below_home,
        }
    }

    /// Reads the file. Without one there are no remotes.
    ///
    /// # Errors
    /// When others may read it, or it is not understood.
    pub fn read(ambient: &Ambient) -> Result<Self, ConfigError> {
        let file = Self::file(ambient);
        match read_private(&file) {
            Ok(text) => Self::parse(&text, &file, ambient),
            Err(ConfigError::Read(_, io::ErrorKind::NotFound)) => Ok(Self::default()),
            Err(error) => Err(error),
        }
    }

    fn parse(text: &str, file: &Path, ambient: &Ambient) -> Result<Self, ConfigError> {
        let entries: BTreeMap<String, Entry> = toml::from_str(text).map_err(|error| {
            // The error itself shows the line, which may hold the secret.
            let before = error.span().and_then(|span| text.get(..span.start)).unwrap_or("");
            ConfigError::Syntax { file: file.to_owned(), line: before.split('\n').count() }
        })?;
        let remotes = entries.into_iter().map(|(name, entry)| {
            let bad = |why: String| ConfigError::Remote {
                file: file.to_owned(),
                name: name.chars().filter(char::is_ascii_alphanumeric).take(32).collect(),
                why,
            };
            let remote = remote(&name, entry, ambient).map_err(bad)?;
            Ok((name, remote))
        });
        Ok(Self(remotes.collect::<Result<_, ConfigError>>()?))
    }

    /// All remotes, by their names.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Remote)> {
        self.0.iter().map(|(name, remote)| (name.as_str(), remote))
    }

    /// Where a URL leads to, and the remote with its secret, if there is one: that of the name, or
    /// one with the same host that holds the folder.
    ///
    /// # Errors
    /// When no remote has the name.
    pub fn find<'r>(
        &'r self,
        url: &Url,
        ambient: &Ambient,
    ) -> Result<(OnlinePlace, Option<&'r Remote>), ConfigError> {
        match url {
            Url::Named { name, path } => {
                let unknown =
                    || ConfigError::Unknown { name: name.clone(), file: Self::file(ambient) };
                let remote = self.0.get(name).ok_or_else(unknown)?;
                Ok((remote.place.clone().under(path), Some(remote)))
            }
            Url::Place(place) => {
                let holds = |remote: &&Remote| holds(&remote.place, place);
                let longest = |remote: &&Remote| remote.place.path.len();
                Ok((place.clone(), self.0.values().filter(holds).max_by_key(longest)))
            }
        }
    }
}

/// Whether the second place is the first or in it. Its secret must never go to another server, so
/// the query, which may name one, is equal too.
fn holds(remote: &OnlinePlace, place: &OnlinePlace) -> bool {
    let same = remote.service == place.service
        && remote.host == place.host
        && remote.port == place.port
        && remote.query == place.query;
    let rest = place.path.strip_prefix(&remote.path);
    same && rest.is_some_and(|it| remote.path.is_empty() || it.is_empty() || it.starts_with('/'))
}

fn remote(name: &str, entry: Entry, ambient: &Ambient) -> Result<Remote, String> {
    if !is_remote_name(name) {
        return Err("a name has 2 to 32 letters, digits, dashes and underscores".to_owned());
    }
    let url: Url = entry.url.parse().map_err(|error| format!("{error}"))?;
    let Url::Place(place) = url else {
        return Err("its url must not name another remote".to_owned());
    };
    let file = entry.secret_file.map(|file| SecretFrom::File(ambient.path(&file)));
    let command = entry.secret_command.map(SecretFrom::Command);
    let keyring = entry.keyring.then(|| SecretFrom::Keyring(name.to_owned()));
    let here = entry.secret.map(SecretFrom::Here);
    let mut secrets: Vec<_> = [here, file, command, keyring].into_iter().flatten().collect();
    if secrets.len() > 1 {
        return Err("it needs one of secret, secret_file, secret_command and keyring".to_owned());
    }
    Ok(Remote { place, user: entry.user, secret: secrets.pop(), plain: entry.plain })
}

impl SecretFrom {
    /// Fetches the secret.
    ///
    /// # Errors
    /// When others may read its file, or its command fails.
    pub fn fetch(&self) -> Result<StoreSecret, ConfigError> {
        match self {
            Self::Here(secret) => Ok(secret.clone()),
            Self::File(file) => Ok(line_of(&read_private(file)?)),
            Self::Command(command) => run(command),
            Self::Keyring(remote) => keyring::lookup(remote).map_err(ConfigError::Keyring),
        }
    }

    /// The secret, if another process may have written a newer one there.
    pub(super) fn read_again(&self) -> Option<StoreSecret> {
        match self {
            Self::File(_) | Self::Keyring(_) => self.fetch().ok(),
            Self::Here(_) | Self::Command(_) => None,
        }
    }

    /// Keeps a newer secret, where that is possible.
    pub(super) fn replace(&self, text: &str) -> io::Result<()> {
        match self {
            Self::File(file) => replace_file(file, text.as_bytes()).map(drop),
            Self::Keyring(remote) => keyring::store(remote, text).map_err(io::Error::other),
            Self::Here(_) | Self::Command(_) => Ok(()),
        }
    }
}

/// The secret without the line's end that an editor leaves.
fn line_of(text: &str) -> StoreSecret {
    StoreSecret::new(text.trim_end_matches(['\n', '\r']).to_owned())
}

/// Runs a command as the shell does. What it says beside the secret is the user's to see.
fn run(command: &str) -> Result<StoreSecret, ConfigError> {
    let mut shell = Command::new("sh");
    shell.arg("-c").arg(command).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = shell.output().map_err(|error| ConfigError::Command(error.kind().to_string()))?;
    let text = Zeroizing::new(output.stdout);
    if !output.status.success() {
        return Err(ConfigError::Command(output.status.to_string()));
    }
    let text = std::str::from_utf8(&text);
    let text = text.map_err(|_| ConfigError::Command("it printed no text".to_owned()))?;
    let secret = line_of(text);
    if secret.reveal().is_empty() {
        return Err(ConfigError::Command("it printed nothing".to_owned()));
    }
    Ok(secret)
}

/// Reads a file that only its owner, this user, may read.
fn read_private(path: &Path) -> Result<Zeroizing<String>, ConfigError> {
    let failed = |error: io::Error| ConfigError::Read(path.to_owned(), error.kind());
    let file = File::open(path).map_err(failed)?;
    let it = file.metadata().map_err(failed)?;
    if !it.is_file() {
        return Err(ConfigError::Read(path.to_owned(), io::ErrorKind::InvalidInput));
    }
    if it.uid() != rustix::process::geteuid().as_raw() {
        return Err(ConfigError::Owner(path.to_owned()));
    }
    if it.mode() & 0o177 != 0 {
        return Err(ConfigError::Mode(path.to_owned()));
    }
    if it.len() > MAX_BYTES {
        return Err(ConfigError::Read(path.to_owned(), io::ErrorKind::FileTooLarge));
    }
    // Room for all of it at once: a buffer that grows leaves copies behind.
    let mut text = Zeroizing::new(String::with_capacity(MAX_BYTES as usize + 1));
    file.take(MAX_BYTES).read_to_string(&mut text).map_err(failed)?;
    Ok(text)
}

#[cfg(test)]
mod tests;

//! The user's file of remotes, and the log-on to accounts.

use crate::online::{ambient, runtime};
use oblivio_crypto::{Entropy, OsEntropy, sha256};
pub use oblivio_online::{
    AccountClient, ConfigError, LogOn, LogOnError, NewRemote, NewSecret, OnlinePlace, Service,
    UrlError,
};
use oblivio_online::{Proof, Remotes, SecretFrom, Url};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;
use zeroize::Zeroizing;

pub use oblivio_online::{StoreSecret, keep_from};

/// Why something about remotes could not be done. No secret is in its words.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    /// The file of remotes, or a secret that it names.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The URL.
    #[error(transparent)]
    Url(#[from] UrlError),
    /// The URL is that of another remote.
    #[error("a remote's URL must not name another remote")]
    Named,
    /// The log-on.
    #[error(transparent)]
    LogOn(#[from] LogOnError),
    /// There is nowhere to keep remotes.
    #[error("there is no home directory: set HOME")]
    NoHome,
    /// The system refuses threads.
    #[error("threads for the network: {0}")]
    System(io::Error),
}

type Result<T> = std::result::Result<T, RemoteError>;

/// A remote, without its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListedRemote {
    /// Its name.
    pub name: String,
    /// Its URL.
    pub url: String,
    /// The user, or the id of the key.
    pub user: Option<String>,
    /// The kind of place that its secret comes from, as the file of remotes calls it.
    pub secret: Option<&'static str>,
    /// The file or the program that it comes from.
    pub from: Option<String>,
}

fn surroundings() -> Result<oblivio_online::Ambient> {
    ambient().map_err(|_| RemoteError::NoHome)
}

/// Where the file of remotes is.
///
/// # Errors
/// There is no home directory.
pub fn file() -> Result<PathBuf> {
    Ok(Remotes::file(&surroundings()?))
}

/// All remotes, by their names.
///
/// # Errors
/// The file is not understood, or others may read it.
pub fn list() -> Result<Vec<ListedRemote>> {
    let remotes = Remotes::read(&surroundings()?)?;
    let listed = |(name, remote): (&str, &oblivio_online::Remote)| {
        let (secret, from) = match &remote.secret {
            None => (None, None),
            Some(SecretFrom::Here(_)) => (Some("secret"), None),
            Some(SecretFrom::File(file)) => (Some("secret_file"), Some(file.display().to_string())),
            // What follows the program is the user's, and may be a secret itself.
            Some(SecretFrom::Command(command)) => {
                let program = command.split_whitespace().next().unwrap_or_default();
                (Some("secret_command"), Some(program.to_owned()))
            }
            Some(SecretFrom::Keyring(_)) => (Some("keyring"), None),
        };
        let (name, url) = (name.to_owned(), remote.place.to_string());
        ListedRemote { name, url, user: remote.user.clone(), secret, from }
    };
    Ok(remotes.iter().map(listed).collect())
}

/// The place of a new remote of this name.
///
/// # Errors
/// The URL is none, holds a password, or the name cannot be or is taken.
pub fn place(name: &str, url: &str) -> Result<OnlinePlace> {
    let url: Url = url.parse()?;
    Remotes::read(&surroundings()?)?.may_add(name)?;
    match url {
        Url::Place(place) => Ok(place),
        Url::Named { .. } => Err(RemoteError::Named),
    }
}

/// Adds a remote to the user's file.
///
/// # Errors
/// The name is taken, or the file or the keyring cannot be written.
pub fn add(new: NewRemote) -> Result<()> {
    Ok(Remotes::add(&surroundings()?, new)?)
}

/// Removes a remote, and its secret if [`add`] kept it.
///
/// # Errors
/// There is none of this name, or the file or the keyring cannot be written.
pub fn remove(name: &str) -> Result<()> {
    Ok(Remotes::remove(&surroundings()?, name)?)
}

/// The secret in a file that only the user may read.
///
/// # Errors
/// Others may read it, or it cannot be read.
pub fn secret_in(file: &Path) -> Result<StoreSecret> {
    Ok(SecretFrom::File(file.to_owned()).fetch()?)
}

/// Begins the log-on to an account: its address is for the user's browser.
///
/// # Errors
/// The place is no account, or the port of this computer is taken.
pub fn begin_log_on(place: &OnlinePlace, client: AccountClient, port: u16) -> Result<LogOn> {
    let mut random = Zeroizing::new([0; 48]);
    OsEntropy.fill(&mut *random);
    Ok(LogOn::begin(place, client, Proof::new(&random, sha256), port)?)
}

/// Waits until the browser is back, and gives the tokens as a remote's secret.
///
/// # Errors
/// Nobody came in time; the service says no, or does not answer.
pub fn finish_log_on(log_on: LogOn, patience: Duration) -> Result<StoreSecret> {
    let runtime = runtime().map_err(RemoteError::System)?;
    Ok(log_on.finish(runtime, patience)?)
}

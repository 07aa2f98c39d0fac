//! Remotes that come and go: the file is written anew as a whole, with what else is in it, comments
//! too.

use super::{ConfigError, Remotes, SecretFrom, read_private};
use crate::keyring;
use crate::secrets::{Ambient, StoreSecret};
use crate::url::{OnlinePlace, Service, is_remote_name};
use oblivio_store::replace_file;
use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use toml_edit::{DocumentMut, Item, Table, value};
use zeroize::Zeroizing;

/// A remote to add.
#[derive(Debug)]
pub struct NewRemote {
    /// What it is called.
    pub name: String,
    /// Where it is.
    pub place: OnlinePlace,
    /// The user, or the id of the key.
    pub user: Option<String>,
    /// The user accepts that a password goes over the network as it is.
    pub plain: bool,
    /// Its secret.
    pub secret: NewSecret,
}

/// The secret of a new remote, and where it is kept.
#[derive(Debug)]
pub enum NewSecret {
    /// It needs none, or has it from elsewhere.
    None,
    /// Kept in the file of remotes.
    Here(StoreSecret),
    /// Kept in a file beside the file of remotes, as it changes often.
    Beside(StoreSecret),
    /// Kept in the keyring.
    Keyring(StoreSecret),
    /// It is in a file already.
    File(String),
    /// A command prints it.
    Command(String),
}

/// A file of remotes, for a change.
struct Edited {
    file: PathBuf,
    document: DocumentMut,
}

impl Edited {
    fn read(ambient: &Ambient) -> Result<Self, ConfigError> {
        // All of it must be understood, or a change could make it worse.
        Remotes::read(ambient)?;
        let file = Remotes::file(ambient);
        let text = match read_private(&file) {
            Err(ConfigError::Read(_, io::ErrorKind::NotFound)) => Zeroizing::default(),
            text => text?,
        };
        let broken = |_| ConfigError::Syntax { file: file.clone(), line: 1 };
        let document = text.parse().map_err(broken)?;
        Ok(Self { file, document })
    }

    fn write(self, ambient: &Ambient) -> Result<(), ConfigError> {
        let text = Zeroizing::new(self.document.to_string());
        Remotes::parse(&text, &self.file, ambient)?;
        let written = keep(&self.file, text.as_bytes());
        written.map_err(|error| ConfigError::Write(self.file, error.kind()))
    }
}

/// Writes a file that only its owner may read, in a folder of the owner's.
fn keep(file: &Path, text: &[u8]) -> io::Result<()> {
    if let Some(folder) = file.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    }
    replace_file(file, text).map(drop)
}

impl Remotes {
    /// Where the secret of a remote is kept that changes often.
    #[must_use]
    pub fn secret_beside(ambient: &Ambient, name: &str) -> PathBuf {
        Self::file(ambient).with_file_name(format!("{name}.json"))
    }

    /// Whether a remote may get this name.
    ///
    /// # Errors
    /// It is no name, or taken.
    pub fn may_add(&self, name: &str) -> Result<(), ConfigError> {
        if !is_remote_name(name) || Service::of_scheme(name).is_some() {
            return Err(ConfigError::Name);
        }
        match self.0.contains_key(name) {
            true => Err(ConfigError::Taken(name.to_owned())),
            false => Ok(()),
        }
    }

    /// Adds a remote to the user's file, and keeps its secret. Only the user may read either.
    ///
    /// # Errors
    /// The name is taken, or the file or the keyring cannot be written.
    pub fn add(ambient: &Ambient, new: NewRemote) -> Result<(), ConfigError> {
        Self::read(ambient)?.may_add(&new.name)?;
        let mut edited = Edited::read(ambient)?;
        let mut table = Table::new();
        table.insert("url", value(new.place.to_string()));
        if let Some(user) = new.user {
            table.insert("user", value(user));
        }
        if new.plain {
            table.insert("plain", value(true));
        }
        match new.secret {
            NewSecret::None => {}
            NewSecret::Here(secret) => drop(table.insert("secret", value(secret.reveal()))),
            NewSecret::File(file) => {
                // Others may not read it.
                SecretFrom::File(ambient.path(&file)).fetch()?;
                table.insert("secret_file", value(file));
            }
            NewSecret::Command(command) => drop(table.insert("secret_command", value(command))),
            // The secret is there before what names it.
            NewSecret::Keyring(secret) => {
                keyring::store(&new.name, secret.reveal()).map_err(ConfigError::Keyring)?;
                table.insert("keyring", value(true));
            }
            NewSecret::Beside(secret) => {
                let file = Self::secret_beside(ambient, &new.name);
                let written = keep(&file, secret.reveal().as_bytes());
                written.map_err(|error| ConfigError::Write(file.clone(), error.kind()))?;
                table.insert("secret_file", value(file.to_string_lossy().into_owned()));
            }
        }
        if !edited.document.is_empty() {
            table.decor_mut().set_prefix("\n");
        }
        edited.document.insert(&new.name, Item::Table(table));
        edited.write(ambient)
    }

    /// Removes a remote from the user's file, and its secret where [`Remotes::add`] keeps one.
    ///
    /// # Errors
    /// There is no such remote, or the file or the keyring cannot be written.
    pub fn remove(ambient: &Ambient, name: &str) -> Result<(), ConfigError> {
        let remotes = Self::read(ambient)?;
        let unknown = || ConfigError::Unknown { name: name.to_owned(), file: Self::file(ambient) };
        let remote = remotes.0.get(name).ok_or_else(unknown)?;
        let mut edited = Edited::read(ambient)?;
        edited.document.remove(name);
        edited.write(ambient)?;
        let beside = Self::secret_beside(ambient, name);
        match &remote.secret {
            Some(SecretFrom::Keyring(_)) => keyring::clear(name).map_err(ConfigError::Keyring),
            Some(SecretFrom::File(file)) if *file == beside => {
                fs::remove_file(&beside).map_err(|error| ConfigError::Write(beside, error.kind()))
            }
            _ => Ok(()),
        }
    }
}

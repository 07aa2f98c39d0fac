//! Stores on a network, named by a URL in the place of a folder.

use crate::silence::Silence;
use etcetera::BaseStrategy;
use etcetera::base_strategy::Xdg;
use oblivio_crypto::{Entropy, OsEntropy};
use oblivio_online::{
    Ambient, OnlineStore, Remotes, Runtime, Url, bound_patience, open as open_store, probe,
};
pub use oblivio_online::{Begin, Effort, ProbeVerdict};
use oblivio_store::{AnyStore, Objects, Patience, RetryStore, StoreError, waits};
use std::io;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// The variable that says how many seconds a command waits for a store that does not answer.
const PATIENCE: &str = "OBLIVIO_PATIENCE";

/// How large the parts of a new volume are at a service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSizes {
    /// Bytes in a block.
    pub block_bytes: usize,
    /// Bytes in an object, about.
    pub object_bytes: usize,
}

impl PartSizes {
    /// Requests cost more than bytes.
    pub const BUCKET: Self = Self { block_bytes: 32 << 10, object_bytes: 2 << 20 };
    /// An account of a person has few requests, and one write at a time.
    pub const ACCOUNT: Self = Self { block_bytes: 64 << 10, object_bytes: 8 << 20 };
}

/// The shape that suits the service at a URL.
///
/// # Errors
/// A URL that no service has, or a remote that is not there.
pub fn shape(text: &str) -> Result<PartSizes, NoStore> {
    let url: Url = text.parse().map_err(|error| refused(text, &error))?;
    let ambient = ambient()?;
    let remotes = Remotes::read(&ambient).map_err(|error| refused(text, &error))?;
    let (place, _) = remotes.find(&url, &ambient).map_err(|error| refused(text, &error))?;
    Ok(if place.service.is_account() { PartSizes::ACCOUNT } else { PartSizes::BUCKET })
}

/// Why a URL leads to no store.
#[derive(Debug, thiserror::Error)]
#[error("{url}: {why}")]
pub struct NoStore {
    /// The URL, without what may be secret in it.
    pub url: String,
    /// The reason, with advice.
    pub why: String,
}

/// The threads of all online stores of this process.
static RUNTIME: OnceLock<Runtime> = OnceLock::new();

/// The URL that a place is, unless there is a file or folder of that name.
pub(crate) fn url(place: &Path) -> Option<&str> {
    let text = place.to_str()?;
    let is_url = crate::url::scheme(place).is_some() || text.parse::<Url>().is_ok();
    (is_url && !place.exists()).then_some(text)
}

/// A layer that says when a store does not answer.
pub(crate) fn with_words(store: OnlineStore, text: &str) -> Silence {
    Silence::over(Arc::new(store), shown(text))
}

/// A layer that repeats what fails for a while.
pub(crate) fn patiently(store: &AnyStore) -> AnyStore {
    let most = patience().unwrap_or(waits::COMMAND);
    let (store, quiet) = (store.objects(), Box::new(|_: Option<&StoreError>| {}));
    AnyStore::Objects(Arc::new(RetryStore::online(store, Patience::default(), most, quiet)))
}

/// How long a store that does not answer is waited for.
///
/// # Errors
/// The environment has a time that is no number of seconds.
pub fn patience() -> Result<Duration, NoStore> {
    #[expect(clippy::disallowed_methods, reason = "the user's own choice, for all programs")]
    let Ok(text) = std::env::var(PATIENCE) else { return Ok(waits::COMMAND) };
    let why = format!("{PATIENCE} is no number of seconds");
    let seconds = text.parse().map_err(|_| NoStore { url: PATIENCE.into(), why })?;
    Ok(Duration::from_secs(seconds))
}

/// Counts the answers of all online stores of this process: signs of life of the network.
pub fn answers() -> Arc<AtomicU64> {
    RUNTIME.get().map(Runtime::answers).unwrap_or_default()
}

/// The store at a URL. It sends no request yet, and repeats none: a server has its own layer for
/// that.
///
/// # Errors
/// A URL that no service has, or a secret that is missing.
pub fn connect(text: &str) -> Result<OnlineStore, NoStore> {
    connect_over(text, runtime().map_err(|error| refused(text, &error))?)
}

fn connect_over(text: &str, runtime: &Runtime) -> Result<OnlineStore, NoStore> {
    bound_patience(patience()?);
    let url: Url = text.parse().map_err(|error| refused(text, &error))?;
    let ambient = ambient()?;
    let remotes = Remotes::read(&ambient).map_err(|error| refused(text, &error))?;
    open_store(&url, &remotes, &ambient, runtime).map_err(|error| refused(text, &error))
}

/// The threads of all online stores of this process.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    if let Some(runtime) = RUNTIME.get() {
        return Ok(runtime);
    }
    let made = Runtime::new()?;
    Ok(RUNTIME.get_or_init(|| made))
}

/// How often a service is tried out whose line fails meanwhile.
const TRIES: u32 = 3;

/// Tries out what the store at a URL really does: races, lists and speed. It takes some seconds,
/// and leaves nothing behind.
///
/// # Errors
/// Those of [`connect`], and of the store.
pub fn try_out(text: &str, effort: Effort) -> Result<ProbeVerdict, NoStore> {
    let renames = connect(text)?.renames();
    let failed =
        |error: &dyn std::error::Error| StoreError::io("", io::Error::other(error.to_string()));
    let connected = || -> oblivio_store::Result<Box<dyn Objects>> {
        // With threads of its own a connection that a trial closes ends with what it sends. Where
        // that would leave a file under another name, there is nothing to find out.
        let store = match renames {
            true => connect(text),
            false => {
                let own = Runtime::new().map_err(|error| StoreError::io("", error))?;
                connect_over(text, &own)
            }
        };
        Ok(Box::new(with_words(store.map_err(|error| failed(&error))?, text)))
    };
    #[expect(clippy::disallowed_methods, reason = "patience is measured")]
    let since = Instant::now();
    let most = patience()?;
    let mut tries = 1;
    loop {
        let mut tag = [0; 8];
        OsEntropy.fill(&mut tag);
        let tag = format!("{:016x}", u64::from_le_bytes(tag));
        #[expect(clippy::disallowed_methods, reason = "the speed of the line is measured")]
        let begun = Instant::now();
        match probe(&connected, effort, &tag, &|| begun.elapsed()) {
            // No request of a trial is repeated: what it finds would mean nothing. So all begins
            // anew when one was lost.
            Err(error) if error.is_offline() && tries < TRIES && since.elapsed() < most => {
                tries += 1;
            }
            verdict => return verdict.map_err(|error| refused(text, &error)),
        }
    }
}

fn refused(text: &str, error: &dyn std::error::Error) -> NoStore {
    NoStore { url: shown(text), why: error.to_string() }
}

/// A URL for people: what may be a password in it does not show.
fn shown(text: &str) -> String {
    match (text.split_once("://"), text.rsplit_once('@')) {
        (Some((scheme, _)), Some((before, after))) if before.contains("://") => {
            format!("{scheme}://...@{after}")
        }
        _ => text.to_owned(),
    }
}

/// The environment and the home folder of this process: where each service keeps its secrets.
pub(crate) fn ambient() -> Result<Ambient, NoStore> {
    let xdg = Xdg::new().map_err(|_| NoStore {
        url: String::new(),
        why: "there is no home directory: set HOME".into(),
    })?;
    #[expect(clippy::disallowed_methods, reason = "services keep their secrets there")]
    let env = |name: &str| std::env::var(name).ok();
    Ok(Ambient { env: Arc::new(env), home: xdg.home_dir().to_owned() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_no_folder_and_shows_no_password() {
        assert_eq!(url(Path::new("s3://bucket/a")), Some("s3://bucket/a"));
        let account = "dropbox:/vault?endpoint=http://127.0.0.1:9";
        assert_eq!(url(Path::new(account)), Some(account));
        assert_eq!(url(Path::new("/tmp")), None);
        assert_eq!(url(Path::new("vault")), None);
        assert_eq!(shown("sftp://me:canary@host/a"), "sftp://...@host/a");
        assert_eq!(shown("s3://bucket/a@b"), "s3://...@b");
        let error = connect("sftp://me:canary@host/a").map(drop).expect_err("refused").to_string();
        assert!(!error.contains("canary"), "{error}");
        assert!(connect("ftp://host/a").is_err());
    }
}

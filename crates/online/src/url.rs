//! Where an online store is, as one line of text.
//!
//! `s3://bucket/prefix?endpoint=&region=`, `r2://bucket/prefix?account=`,
//! `b2://bucket/prefix?region=`, `gs://bucket/prefix`, `az://container/prefix?account=`,
//! `webdav://host/path`, `webdavs://host/path`, `sftp://user@host:port/path?key=`,
//! `dropbox:/path`, `gdrive:/path`, `onedrive:/path`, or `name:path` of a remote in the user's
//! file. None of them ever holds a secret.

use std::fmt;
use std::str::FromStr;

/// The kinds of services.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Amazon S3, or a server that speaks like it.
    S3,
    /// Cloudflare R2.
    R2,
    /// Backblaze B2, by its S3 interface.
    B2,
    /// Google Cloud Storage.
    Gcs,
    /// Azure Blob Storage.
    Azure,
    /// WebDAV without encryption on the way.
    WebDav,
    /// WebDAV over TLS.
    WebDavTls,
    /// SFTP, by the system's `ssh`.
    Sftp,
    /// An account of Dropbox.
    Dropbox,
    /// An account of Google Drive.
    GDrive,
    /// An account of OneDrive.
    OneDrive,
}

/// Each service's scheme, and the query keys it takes.
const SERVICES: [(Service, &str, &[&str]); 11] = [
    (Service::S3, "s3", &["endpoint", "region", "profile", "plain"]),
    (Service::R2, "r2", &["endpoint", "account", "plain"]),
    (Service::B2, "b2", &["endpoint", "region", "plain"]),
    (Service::Gcs, "gs", &["endpoint", "plain"]),
    (Service::Azure, "az", &["endpoint", "account", "plain"]),
    (Service::WebDav, "webdav", &[]),
    (Service::WebDavTls, "webdavs", &[]),
    (Service::Sftp, "sftp", &["key"]),
    (Service::Dropbox, "dropbox", &["endpoint"]),
    (Service::GDrive, "gdrive", &["endpoint"]),
    (Service::OneDrive, "onedrive", &["endpoint"]),
];

impl Service {
    /// The part of a URL before `://`.
    #[must_use]
    pub fn scheme(self) -> &'static str {
        SERVICES.iter().find(|it| it.0 == self).map_or("", |it| it.1)
    }

    /// The service of a scheme.
    pub(super) fn of_scheme(scheme: &str) -> Option<Self> {
        SERVICES.iter().find(|it| it.1 == scheme).map(|it| it.0)
    }

    /// Whether it is an account, whose secret says whose: then the URL has no host.
    #[must_use]
    pub fn is_account(self) -> bool {
        matches!(self, Self::Dropbox | Self::GDrive | Self::OneDrive)
    }

    /// Whether its first part is a host, and not the name of a bucket.
    fn has_host(self) -> bool {
        matches!(self, Self::WebDav | Self::WebDavTls | Self::Sftp)
    }
}

/// A place at a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OnlinePlace {
    /// The service.
    pub service: Service,
    /// The user, for SFTP.
    pub user: Option<String>,
    /// A host, a bucket or a container. Empty for an account.
    pub host: String,
    /// A host's port.
    pub port: Option<u16>,
    /// The folder in it, without a slash at either end.
    pub path: String,
    /// The query: keys that the service takes, each once, in their order.
    pub query: Vec<(String, String)>,
}

/// A place, or the name of a remote and a folder in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Url {
    /// A place at a service.
    Place(OnlinePlace),
    /// `name:path`, from the user's file of remotes.
    Named {
        /// The remote's name.
        name: String,
        /// The folder in it.
        path: String,
    },
}

/// Why a URL is refused. It never repeats what may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UrlError {
    /// It holds a password.
    #[error(
        "a URL must not hold a password: others see it. Put it in the file of remotes, as `secret`"
    )]
    Password,
    /// No service has this scheme.
    #[error(
        "no service is called {0:?}: use s3, r2, b2, gs, az, webdav, webdavs, sftp, \
         dropbox, gdrive or onedrive"
    )]
    Scheme(String),
    /// The bucket or host is missing or wrong.
    #[error("the URL needs a {0} after `://`: letters, digits, dots and dashes")]
    Host(&'static str),
    /// An account has no host.
    #[error("{0} takes a folder of your account: write {0}:/path")]
    Account(&'static str),
    /// The port is no number.
    #[error("the port must be a number from 1 to 65535")]
    Port,
    /// A user where there cannot be one.
    #[error("only sftp takes a user in the URL; for WebDAV put `user` in the file of remotes")]
    User,
    /// A part of the path cannot be.
    #[error("the path must not hold `..`, `//`, `%`, `#` or control characters")]
    Path,
    /// The service does not take this key.
    #[error("{service} does not take {key:?} after `?`: {takes}")]
    Key {
        /// The service's scheme.
        service: &'static str,
        /// The unknown key.
        key: String,
        /// What it takes.
        takes: String,
    },
    /// A key without a value, or one twice.
    #[error("{0:?} needs one value after `?`")]
    Value(String),
    /// It is neither a URL nor a remote's name.
    #[error("not a URL: write scheme://host/path, or name:path for a remote from the file")]
    Shape,
}

impl FromStr for Url {
    type Err = UrlError;

    fn from_str(text: &str) -> Result<Self, UrlError> {
        // An address in the query has a `://` too.
        let is_url = text.split('?').next().is_some_and(|it| it.contains("://"));
        let Some((scheme, rest)) = text.split_once("://").filter(|_| is_url) else {
            return account(text).unwrap_or_else(|| named(text));
        };
        let known = SERVICES.iter().find(|it| it.1 == scheme);
        let unknown = || UrlError::Scheme(printable(scheme));
        let (service, scheme, takes) = *known.ok_or_else(unknown)?;
        if service.is_account() {
            return Err(UrlError::Account(scheme));
        }
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (user, host, port) = authority_of(service, authority)?;
        let path = path_of(path)?;
        let query = query_of(service, takes, query)?;
        Ok(Self::Place(OnlinePlace { service, user, host, port, path, query }))
    }
}

/// `dropbox:/path`. With the slash it is no remote's name.
fn account(text: &str) -> Option<Result<Url, UrlError>> {
    let (scheme, rest) = text.split_once(":/")?;
    let (service, _, takes) = *SERVICES.iter().find(|it| it.1 == scheme && it.0.is_account())?;
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    let place = |path: String, query| {
        Url::Place(OnlinePlace {
            service,
            user: None,
            host: String::new(),
            port: None,
            path,
            query,
        })
    };
    Some(path_of(path).and_then(|path| Ok(place(path, query_of(service, takes, query)?))))
}

fn named(text: &str) -> Result<Url, UrlError> {
    let (name, path) = text.split_once(':').ok_or(UrlError::Shape)?;
    if !is_remote_name(name) {
        return Err(UrlError::Shape);
    }
    Ok(Url::Named { name: name.to_owned(), path: path_of(path.trim_start_matches('/'))? })
}

/// A remote's name: letters, digits, `-` and `_`. One letter is too short, so that it is never the
/// drive of a path. None begins as an option does.
pub(super) fn is_remote_name(name: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    (2..=32).contains(&name.len()) && name.bytes().all(plain) && !name.starts_with('-')
}

type Authority = (Option<String>, String, Option<u16>);

fn authority_of(service: Service, authority: &str) -> Result<Authority, UrlError> {
    let (user, rest) = match authority.rsplit_once('@') {
        Some((user, _)) if user.contains(':') => return Err(UrlError::Password),
        Some(_) if service != Service::Sftp => return Err(UrlError::User),
        Some((user, rest)) => (Some(user.to_owned()), rest),
        None => (None, authority),
    };
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let is_user =
        |user: &String| !user.is_empty() && !user.starts_with('-') && user.bytes().all(plain);
    if user.as_ref().is_some_and(|user| !is_user(user)) {
        return Err(UrlError::Host("user and host"));
    }
    let wants = if service.has_host() { "host" } else { "bucket" };
    // The colons of an address in brackets belong to it.
    let bracketed = rest.starts_with('[');
    let (host, port) = match rest.rsplit_once(':') {
        Some((host, port)) if service.has_host() && (!bracketed || host.ends_with(']')) => {
            let number = port.parse().ok().filter(|&port| port != 0);
            (host, Some(number.ok_or(UrlError::Port)?))
        }
        _ => (rest, None),
    };
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_address = inner.is_some_and(|it| it.parse::<std::net::Ipv6Addr>().is_ok());
    let fits = (1..=255).contains(&host.len()) && !host.starts_with(['-', '.']);
    if !(fits && (host.bytes().all(plain) || service.has_host() && is_address)) {
        return Err(UrlError::Host(wants));
    }
    Ok((user, host.to_owned(), port))
}

fn path_of(path: &str) -> Result<String, UrlError> {
    let path = path.strip_suffix('/').unwrap_or(path);
    let good = |part: &str| {
        let plain =
            |letter: char| !letter.is_control() && !matches!(letter, '%' | '#' | '?' | '\\');
        !part.is_empty() && part != "." && part != ".." && part.chars().all(plain)
    };
    let fits = path.is_empty() || path.split('/').all(good);
    if fits { Ok(path.to_owned()) } else { Err(UrlError::Path) }
}

fn query_of(
    service: Service,
    takes: &[&str],
    query: &str,
) -> Result<Vec<(String, String)>, UrlError> {
    let mut found: Vec<(String, String)> = Vec::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        if !takes.contains(&key) {
            let takes = if takes.is_empty() { "nothing".to_owned() } else { takes.join(", ") };
            let (service, key) = (service.scheme(), printable(key));
            return Err(UrlError::Key { service, key, takes: format!("it takes {takes}") });
        }
        if value.is_empty() || found.iter().any(|it| it.0 == key) {
            return Err(UrlError::Value(key.to_owned()));
        }
        // A user and password hide in an address too.
        if value.contains('@') {
            return Err(UrlError::Password);
        }
        if value.chars().any(|it| it.is_control() || it.is_whitespace()) {
            return Err(UrlError::Value(key.to_owned()));
        }
        found.push((key.to_owned(), value.to_owned()));
    }
    Ok(found)
}

/// Whether a secret may be sent there: over TLS, or within this computer.
pub(super) fn is_safe(address: &str) -> bool {
    let Ok(url) = reqwest::Url::parse(address) else { return false };
    let here = matches!(url.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    url.scheme() == "https" || url.scheme() == "http" && here
}

/// What is repeated of an unknown word: its letters only, and few.
fn printable(word: &str) -> String {
    word.chars().filter(char::is_ascii_alphanumeric).take(20).collect()
}

impl OnlinePlace {
    /// The value of a key of the query.
    #[must_use]
    pub fn query(&self, key: &str) -> Option<&str> {
        self.query.iter().find(|it| it.0 == key).map(|it| it.1.as_str())
    }

    /// The same place, and a folder in it.
    #[must_use]
    pub fn under(mut self, path: &str) -> Self {
        if !self.path.is_empty() && !path.is_empty() {
            self.path.push('/');
        }
        self.path.push_str(path);
        self
    }
}

impl fmt::Display for OnlinePlace {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_account = self.service.is_account();
        write!(out, "{}:{}", self.service.scheme(), if is_account { "/" } else { "//" })?;
        if let Some(user) = &self.user {
            write!(out, "{user}@")?;
        }
        out.write_str(&self.host)?;
        if let Some(port) = self.port {
            write!(out, ":{port}")?;
        }
        if !self.path.is_empty() {
            write!(out, "{}{}", if is_account { "" } else { "/" }, self.path)?;
        }
        for (index, (key, value)) in self.query.iter().enumerate() {
            write!(out, "{}{key}={value}", if index == 0 { '?' } else { '&' })?;
        }
        Ok(())
    }
}

impl fmt::Display for Url {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Place(place) => place.fmt(out),
            Self::Named { name, path } => write!(out, "{name}:{path}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_goes_over_tls_or_stays_here() {
        for safe in ["https://host", "https://host:8443/a", "http://127.0.0.1:9", "http://[::1]:9"]
        {
            assert!(is_safe(safe), "{safe}");
        }
        for unsafe_one in ["http://host", "http://127.0.0.1.host", "ftp://127.0.0.1", "host", ""] {
            assert!(!is_safe(unsafe_one), "{unsafe_one}");
        }
    }

    #[test]
    fn good_urls_print_as_they_were() {
        for good in [
            "s3://bucket",
            "s3://bucket/a/b?endpoint=http://127.0.0.1:9000&region=eu-central-1",
            "r2://bucket/a?account=0123abcd",
            "b2://bucket?region=us-west-004",
            "gs://bucket/a",
            "az://container/a b?account=name",
            "webdav://localhost:8080/dav",
            "webdavs://cloud.example.org/remote.php/dav/files/alice",
            "sftp://alice@host:2222/srv/oblivio?key=~/.ssh/id_ed25519",
            "sftp://[::1]:22/srv",
            "sftp://[::1]/srv",
            "dropbox:/vaults/a b",
            "gdrive:/a?endpoint=http://127.0.0.1:9",
            "onedrive:/",
            "dropbox:a",
            "home:",
            "home-2:a/b",
        ] {
            let url: Url = good.parse().unwrap();
            assert_eq!(url.to_string(), good);
        }
        let Url::Place(place) = "s3://b/a/".parse().unwrap() else { panic!("a place") };
        assert_eq!((place.path.as_str(), place.clone().under("c").path.as_str()), ("a", "a/c"));
        assert_eq!("home:/a".parse::<Url>().unwrap().to_string(), "home:a");
    }

    #[test]
    fn bad_ones_are_refused_and_no_error_repeats_a_secret() {
        for (bad, advice) in [
            ("sftp://alice:SECRET@host/a", "must not hold a password"),
            ("webdavs://alice:SECRET@host/a", "must not hold a password"),
            ("s3://KEY:SECRET@bucket", "must not hold a password"),
            ("s3://b?endpoint=https://KEY:SECRET@host", "must not hold a password"),
            ("webdav://alice@host/a", "only sftp takes a user"),
            ("s3://b?secret_access_key=SECRET", "it takes endpoint, region, profile"),
            ("webdav://h/a?token=SECRET", "it takes nothing"),
            ("s3://b?region=a&region=b", "needs one value"),
            ("s3://b?region", "needs one value"),
            ("ftp://host/a", "use s3, r2"),
            ("s3://", "needs a bucket"),
            ("sftp:///a", "needs a host"),
            ("sftp://-oProxyCommand=x/a", "needs a host"),
            ("sftp://-l@host/a", "needs a user and host"),
            ("sftp://host:0/a", "the port"),
            ("sftp://host:70000/a", "the port"),
            ("s3://b/../a", "must not hold"),
            ("s3://b//a", "must not hold"),
            ("s3://b/a%2f", "must not hold"),
            ("dropbox://host/a", "write dropbox:/path"),
            ("gdrive:/a/../b", "must not hold"),
            ("onedrive:/a?token=SECRET", "it takes endpoint"),
            ("dropbox:/a?endpoint=https://KEY:SECRET@host", "must not hold a password"),
            ("plain", "not a URL"),
            ("c:\\folder", "not a URL"),
            ("/a:b", "not a URL"),
        ] {
            let error = bad.parse::<Url>().unwrap_err();
            let text = format!("{error} {error:?}");
            assert!(text.contains(advice), "{bad}: {text}");
            assert!(!text.contains("SECRET"), "{bad}: {text}");
        }
    }
}

//! From a URL to a store: which service, with which secret, and what it can do.

use super::accounts;
use super::config::{ConfigError, Remote, Remotes};
use super::driver::{Driver, Traits};
use super::library::Library;
use super::runtime::Runtime;
use super::secrets::{Ambient, StoreSecret};
#[cfg(feature = "sftp")]
use super::sftp::{Host, Sftp};
use super::store::OnlineStore;
use super::url::{OnlinePlace, Service, Url, is_safe};
#[cfg(feature = "gcs")]
use base64::{Engine as _, engine::general_purpose::STANDARD};
use oblivio_store::waits;
#[cfg(feature = "azure")]
use opendal::services::Azblob;
#[cfg(feature = "gcs")]
use opendal::services::Gcs;
use opendal::services::{Memory, S3, Webdav};
use opendal::{Builder, HttpTransporter, Operator};
use opendal_http_transport_reqwest::ReqwestTransport;

/// Who we say we are, to every service and in every version.
const AGENT: &str = "oblivio";
/// Requests at once over HTTP, and over SFTP, where each has a connection of its own.
const HTTP_AT_ONCE: usize = 64;
#[cfg(feature = "sftp")]
const SFTP_AT_ONCE: usize = 8;

/// Why a store cannot be opened. Nothing was sent yet.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The file of remotes, or a secret that it names.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The service needs to know more.
    #[error("{0}")]
    Needs(&'static str),
    /// The service is left out of this build.
    #[error("this build has no {0}: build it with the feature `{1}`, as packages are")]
    NotBuilt(&'static str, &'static str),
    /// The connection cannot be set up.
    #[error("the store cannot be set up: {0}")]
    Setup(String),
}

type Opened<T> = Result<T, OpenError>;

/// What opens a place: a user or the id of a key, and its secret.
struct Keys {
    user: Option<String>,
    secret: Option<StoreSecret>,
    plain: bool,
}

/// Opens the store at a URL. It sends no request yet.
///
/// # Errors
/// When a secret or something else that the service needs is missing.
pub fn open(
    url: &Url,
    remotes: &Remotes,
    ambient: &Ambient,
    runtime: &Runtime,
) -> Opened<OnlineStore> {
    let (place, remote) = remotes.find(url, ambient)?;
    let named = matches!(url, Url::Named { .. });
    let at = At { place: &place, remote, named, ambient };
    if place.service.is_account() {
        return Ok(OnlineStore::new(runtime, at.account()?));
    }
    if place.service == Service::Sftp {
        return Ok(OnlineStore::new(runtime, at.sftp()?));
    }
    let (operator, traits) = match place.service {
        Service::S3 | Service::R2 | Service::B2 => (at.s3()?, at.like_s3()),
        Service::Gcs => (at.gcs()?, at.like_s3()),
        Service::Azure => (at.azure()?, at.like_s3()),
        _ => (at.webdav()?, WEBDAV),
    };
    Ok(OnlineStore::new(runtime, Box::new(Library::new(operator, traits))))
}

/// A store in memory, over the same code: for tests and trials.
///
/// # Errors
/// Hardly ever: when the library refuses to set itself up.
pub fn in_memory(runtime: &Runtime) -> Opened<OnlineStore> {
    let operator = operator(Memory::default())?;
    Ok(OnlineStore::new(runtime, Box::new(Library::new(operator, OBJECTS))))
}

const OBJECTS: Traits =
    Traits { at_once: HTTP_AT_ONCE, creates: true, renames: false, prefixes: true, folder: false };

/// Servers differ too much to be trusted with a condition, and some leave half of a put.
const WEBDAV: Traits = Traits { creates: false, prefixes: false, folder: true, ..OBJECTS };

/// Bytes are synced to the server's disk, and names are not: no call does that.
#[cfg(feature = "sftp")]
const SFTP: Traits = Traits { at_once: SFTP_AT_ONCE, renames: true, prefixes: false, ..OBJECTS };

fn setup(error: impl std::fmt::Display) -> OpenError {
    OpenError::Setup(error.to_string())
}

/// One pool of connections, as each service gets to see us. It follows no redirection, and never
/// says where it comes from: addresses and headers hold what opens the store.
pub(super) fn connections() -> reqwest::ClientBuilder {
    let client = reqwest::Client::builder().user_agent(AGENT).connect_timeout(waits::CONNECT);
    let client = client.redirect(reqwest::redirect::Policy::none()).referer(false);
    // The library gives a connection up on which nothing comes back for about half a minute.
    client.pool_max_idle_per_host(HTTP_AT_ONCE)
}

/// The service behind one pool of connections. Proxies are those of the system's settings.
fn operator<B: Builder>(builder: B) -> Opened<Operator> {
    let client = connections().build().map_err(|error| setup(error.without_url()))?;
    // The library's words for a wrong setting name no secret; its context might.
    let operator = Operator::new(builder).map_err(|error| setup(error.message()))?;
    let transport = HttpTransporter::new(ReqwestTransport::new(client));
    let context = operator.base_context().with_http_transport(transport);
    Ok(operator.with_context(context))
}

/// Where to open, and what may be used for it.
struct At<'a> {
    place: &'a OnlinePlace,
    remote: Option<&'a Remote>,
    /// The user named the remote: its secret goes before the environment's.
    named: bool,
    ambient: &'a Ambient,
}

impl At<'_> {
    fn like_s3(&self) -> Traits {
        // B2 answers a conditional put with "not implemented".
        Traits { creates: self.place.service != Service::B2, ..OBJECTS }
    }

    fn query(&self, key: &str) -> Option<String> {
        self.place.query(key).map(str::to_owned)
    }

    /// An endpoint that the URL or the environment names. In the clear only to this computer, or
    /// where it is said to be meant: a request holds what opens the store, or shows who asks.
    fn endpoint(&self, given: Option<String>) -> Opened<Option<String>> {
        let Some(endpoint) = given else { return Ok(None) };
        let meant = self.query("plain").as_deref() == Some("true")
            || self.remote.is_some_and(|remote| remote.plain);
        match endpoint.split_once("://").map(|it| it.0) {
            Some("http" | "https") if is_safe(&endpoint) || meant => Ok(Some(endpoint)),
            Some("http") => Err(OpenError::Needs(
                "an endpoint with http:// shows its keys' use and your requests to all on the way: \
                 use https://, or say that it is meant with `plain=true`",
            )),
            _ => Err(OpenError::Needs("an endpoint begins with https:// (or http://)")),
        }
    }

    fn remotes_keys(&self) -> Opened<Option<Keys>> {
        let Some(remote) = self.remote else { return Ok(None) };
        let secret = remote.secret.as_ref().map(|it| it.fetch()).transpose()?;
        Ok(Some(Keys { user: remote.user.clone(), secret, plain: remote.plain }))
    }

    /// A pair of variables of the environment.
    fn env_keys(&self, user: &[&str], secret: &[&str]) -> Option<Keys> {
        let secret = self.ambient.first(secret).map(StoreSecret::new)?;
        Some(Keys { user: self.ambient.first(user), secret: Some(secret), plain: false })
    }

    /// The remote's keys if it was named, else the environment's, else the remote's.
    fn keys(&self, user: &[&str], secret: &[&str]) -> Opened<Option<Keys>> {
        let has_secret = self.remote.is_some_and(|remote| remote.secret.is_some());
        match self.env_keys(user, secret) {
            Some(keys) if !(self.named && has_secret) => Ok(Some(keys)),
            _ => self.remotes_keys(),
        }
    }

    fn s3(&self) -> Opened<Operator> {
        let (endpoint, region) = self.s3_endpoint()?;
        let mut builder = S3::default().bucket(&self.place.host).root(&self.place.path);
        builder = builder.region(&region).disable_ec2_metadata();
        if let Some(endpoint) = endpoint {
            builder = builder.endpoint(&endpoint);
        }
        let mut keys = None;
        if self.place.query("profile").is_none() {
            let (ids, secrets): (&[&str], &[&str]) = match self.place.service {
                Service::B2 => (
                    &["B2_APPLICATION_KEY_ID", "AWS_ACCESS_KEY_ID"],
                    &["B2_APPLICATION_KEY", "AWS_SECRET_ACCESS_KEY"],
                ),
                _ => (&["AWS_ACCESS_KEY_ID"], &["AWS_SECRET_ACCESS_KEY"]),
            };
            keys = self.keys(ids, secrets)?;
        }
        match keys {
            Some(Keys { user: Some(id), secret: Some(secret), .. }) => {
                builder = builder.access_key_id(&id).secret_access_key(secret.reveal());
                let env_keys = self.ambient.var("AWS_ACCESS_KEY_ID").is_some_and(|it| it == id);
                if let Some(token) = self.ambient.var("AWS_SESSION_TOKEN").filter(|_| env_keys) {
                    builder = builder.session_token(&token);
                }
                builder = builder.disable_config_load();
            }
            Some(Keys { secret: Some(_), .. }) => {
                return Err(OpenError::Needs("the remote needs `user`, the id of the access key"));
            }
            // Then the library reads the service's own files.
            _ => {
                let profile = self.query("profile").or_else(|| self.ambient.var("AWS_PROFILE"));
                builder = builder.profile(&profile.unwrap_or_default());
            }
        }
        operator(builder)
    }

    /// The address of the service, if it is not Amazon's, and the region.
    fn s3_endpoint(&self) -> Opened<(Option<String>, String)> {
        let env = || match self.place.service {
            Service::S3 => self.ambient.first(&["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]),
            _ => None,
        };
        let endpoint = self.endpoint(self.query("endpoint").or_else(env))?;
        let region = self.query("region");
        match self.place.service {
            Service::R2 => {
                let by_account = self.query("account").map(r2_endpoint);
                let needs = "r2 needs `?account=` with the id of your account";
                let endpoint = endpoint.or(by_account).ok_or(OpenError::Needs(needs))?;
                Ok((Some(endpoint), "auto".to_owned()))
            }
            Service::B2 => {
                let needs = "b2 needs `?region=`, as us-west-004; the bucket's page shows it";
                let region = region.ok_or(OpenError::Needs(needs))?;
                let by_region = || format!("https://s3.{region}.backblazeb2.com");
                Ok((Some(endpoint.unwrap_or_else(by_region)), region))
            }
            _ => {
                let env = || self.ambient.first(&["AWS_REGION", "AWS_DEFAULT_REGION"]);
                let other = endpoint.is_some().then(|| "us-east-1".to_owned());
                let needs = "s3 needs `?region=`, or AWS_REGION, as eu-central-1";
                let region = region.or_else(env).or(other).ok_or(OpenError::Needs(needs))?;
                Ok((endpoint, region))
            }
        }
    }

    #[cfg(not(feature = "gcs"))]
    fn gcs(&self) -> Opened<Operator> {
        Err(OpenError::NotBuilt("Google Cloud Storage", "gcs"))
    }

    #[cfg(feature = "gcs")]
    fn gcs(&self) -> Opened<Operator> {
        let mut builder = Gcs::default().bucket(&self.place.host).root(&self.place.path);
        builder = builder.disable_vm_metadata();
        let file = self.ambient.var("GOOGLE_APPLICATION_CREDENTIALS");
        let remote = self.remotes_keys()?.and_then(|keys| keys.secret);
        match (remote, file) {
            (Some(key), file) if self.named || file.is_none() => {
                let key = zeroize::Zeroizing::new(STANDARD.encode(key.reveal().as_bytes()));
                builder = builder.credential(&key);
            }
            (_, Some(file)) => builder = builder.credential_path(&file),
            // A test server asks for none.
            _ if self.place.query("endpoint").is_some() => builder = builder.skip_signature(),
            _ => {}
        }
        if let Some(endpoint) = self.endpoint(self.query("endpoint"))? {
            builder = builder.endpoint(&endpoint);
        }
        operator(builder)
    }

    #[cfg(not(feature = "azure"))]
    fn azure(&self) -> Opened<Operator> {
        Err(OpenError::NotBuilt("Azure", "azure"))
    }

    #[cfg(feature = "azure")]
    fn azure(&self) -> Opened<Operator> {
        let names = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"];
        let keys = self.keys(&names, &["AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_KEY"])?;
        let user = keys.as_ref().and_then(|keys| keys.user.clone());
        let account = self.query("account").or(user).or_else(|| self.ambient.first(&names));
        let needs = "az needs `?account=`, or AZURE_STORAGE_ACCOUNT_NAME";
        let account = account.ok_or(OpenError::Needs(needs))?;
        let by_account = || format!("https://{account}.blob.core.windows.net");
        let endpoint = self.endpoint(self.query("endpoint"))?.unwrap_or_else(by_account);
        let mut builder = Azblob::default().container(&self.place.host).root(&self.place.path);
        builder = builder.endpoint(&endpoint).account_name(&account);
        let sas = self.ambient.var("AZURE_STORAGE_SAS_TOKEN");
        match (keys.and_then(|keys| keys.secret), sas) {
            (Some(key), _) => builder = builder.account_key(key.reveal()),
            (None, Some(token)) => builder = builder.sas_token(&token),
            (None, None) => {
                let needs = "az needs a key: AZURE_STORAGE_ACCOUNT_KEY, or `secret` of a remote";
                return Err(OpenError::Needs(needs));
            }
        }
        operator(builder)
    }

    fn webdav(&self) -> Opened<Operator> {
        let encrypted = self.place.service == Service::WebDavTls;
        let port = self.place.port.map(|port| format!(":{port}")).unwrap_or_default();
        let scheme = if encrypted { "https" } else { "http" };
        let endpoint = format!("{scheme}://{}{port}", self.place.host);
        // Parents are made once, not looked for at each put.
        let mut builder = Webdav::default().endpoint(&endpoint).root(&self.place.path);
        builder = builder.disable_create_dir(true);
        let keys = self.remotes_keys()?;
        let here = matches!(self.place.host.as_str(), "localhost" | "127.0.0.1" | "[::1]");
        if let Some(Keys { user, secret: Some(secret), plain }) = keys {
            if !(encrypted || here || plain) {
                return Err(OpenError::Needs(
                    "webdav:// would send the password for all to read: use webdavs://, or put \
                     `plain = true` in the remote",
                ));
            }
            builder = match user {
                Some(user) => builder.username(&user).password(secret.reveal()),
                None => builder.token(secret.reveal()),
            };
        }
        operator(builder)
    }

    /// A folder of an account, whose tokens a remote names.
    fn account(&self) -> Opened<Box<dyn Driver>> {
        let needs = "an account needs a remote with tokens: `oblivio remote add` logs you on";
        let secret = self.remote.and_then(|remote| remote.secret.as_ref());
        let secret = secret.ok_or(OpenError::Needs(needs))?;
        let driver = accounts::driver(self.place, &secret.fetch()?, secret, connections());
        driver.map_err(OpenError::Needs)
    }

    #[cfg(not(feature = "sftp"))]
    fn sftp(&self) -> Opened<Box<dyn Driver>> {
        Err(OpenError::NotBuilt("SFTP", "sftp"))
    }

    #[cfg(feature = "sftp")]
    fn sftp(&self) -> Opened<Box<dyn Driver>> {
        let user = self.remote.and_then(|remote| remote.user.clone());
        let host = Host {
            name: self.place.host.clone(),
            port: self.place.port,
            user: self.place.user.clone().or(user),
            key: self.place.query("key").map(|key| self.ambient.path(key)),
        };
        Ok(Box::new(Sftp::new(host, &format!("/{}", self.place.path), SFTP)))
    }
}

fn r2_endpoint(account: String) -> String {
    format!("https://{account}.r2.cloudflarestorage.com")
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::Held;
    use std::collections::BTreeMap;
    use std::sync::Arc;

    fn try_open(url: &str, env: &[(&str, &str)]) -> Opened<OnlineStore> {
        let env: BTreeMap<_, _> =
            env.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect();
        let env = Arc::new(move |name: &str| env.get(name).cloned());
        let ambient = Ambient { env, home: "/nowhere".into() };
        open(&url.parse().unwrap(), &Remotes::default(), &ambient, &Runtime::new().unwrap())
    }

    #[test]
    fn what_is_missing_is_said_before_anything_is_sent() {
        let needs = |url: &str, env: &[(&str, &str)], what: &str| {
            let error = try_open(url, env).unwrap_err().to_string();
            assert!(error.contains(what), "{url}: {error}");
        };
        needs("s3://bucket", &[], "?region=");
        needs("r2://bucket", &[], "?account=");
        needs("b2://bucket", &[], "?region=");
        if cfg!(feature = "azure") {
            needs("az://container", &[], "?account=");
            needs("az://container?account=me", &[], "AZURE_STORAGE_ACCOUNT_KEY");
        }
        needs("nobody:", &[], "no remote is called nobody");
        // In the clear only where it is meant, or to this computer.
        let key = ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0");
        for (url, env, feature) in [
            ("s3://bucket?region=a", &[][..], true),
            ("r2://bucket?account=me", &[], true),
            ("b2://bucket?region=a", &[], true),
            ("gs://bucket?", &[], cfg!(feature = "gcs")),
            ("az://container?account=me", &[key], cfg!(feature = "azure")),
        ] {
            if feature {
                needs(&format!("{url}&endpoint=http://nas.lan:9000"), env, "plain=true");
                needs(&format!("{url}&endpoint=nas.lan:9000"), env, "https://");
                for good in ["http://nas.lan:9000&plain=true", "http://127.0.0.1:9000"] {
                    try_open(&format!("{url}&endpoint={good}"), env).unwrap();
                }
            }
        }
        needs("s3://bucket", &[("AWS_ENDPOINT_URL", "http://nas.lan")], "plain=true");
    }

    #[test]
    fn each_service_opens_and_says_what_it_can() {
        let key = ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0");
        for (url, env, creates) in [
            ("s3://bucket", &[("AWS_REGION", "eu-central-1")][..], true),
            ("r2://bucket/a?account=abc", &[], true),
            ("b2://bucket?region=us-west-004", &[], false),
            ("gs://bucket", &[], true),
            ("az://container?account=me", &[key], true),
            ("webdav://host/a", &[], false),
            ("sftp://alice@host:2222/a", &[], true),
        ] {
            let opened = try_open(url, env);
            let feature = match url.split(':').next() {
                Some("gs") if !cfg!(feature = "gcs") => "gcs",
                Some("az") if !cfg!(feature = "azure") => "azure",
                Some("sftp") if !cfg!(feature = "sftp") => "sftp",
                _ => "",
            };
            if !feature.is_empty() {
                let error = opened.unwrap_err().to_string();
                assert!(error.contains(&format!("feature `{feature}`")), "{error}");
                continue;
            }
            let can = opened.unwrap().capabilities();
            assert_eq!(can.creates_exclusively, creates, "{url}");
            assert!(!can.writes_over);
        }
    }
}

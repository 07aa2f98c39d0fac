//! The tokens of an account, and how they are renewed.
//!
//! They are one JSON object, in a file of their own beside the file of remotes, which names it as
//! `secret_file`, or in the keyring. A file is written back by a rename, and only its owner may
//! read it:
//!
//! ```json
//! {"client_id": "...", "refresh_token": "...", "access_token": "...", "expires_at": 1800000000}
//! ```
//!
//! `client_secret` and `scope` stand there too where the service wants them. A secret that is no
//! such object is an access token itself, and is not renewed.

use super::super::config::SecretFrom;
use super::super::failure::{Fault, Kind};
use super::super::secrets::StoreSecret;
use super::http::{Answer, Ask, escaped, not_understood};
use opendal::Buffer;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::Mutex;
use tokio::time::sleep;
use zeroize::Zeroizing;

/// A token is renewed this long before it expires, in seconds.
const EARLY: u64 = 60;
/// How long a token is good for if the service does not say: its documents say longer.
pub(super) const USUAL: u64 = 3_600;

/// The tokens as they are stored.
#[derive(Clone, Deserialize, Serialize)]
pub(super) struct Stored {
    #[serde(default)]
    pub(super) client_id: String,
    #[serde(default, with = "hidden", skip_serializing_if = "Option::is_none")]
    pub(super) client_secret: Option<StoreSecret>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) scope: Option<String>,
    #[serde(default, with = "hidden", skip_serializing_if = "Option::is_none")]
    pub(super) refresh_token: Option<StoreSecret>,
    #[serde(default, with = "hidden")]
    pub(super) access_token: Option<StoreSecret>,
    /// In seconds since 1970. It may be wrong, or missing: then the service says so.
    #[serde(default)]
    pub(super) expires_at: u64,
}

/// A secret as a text.
mod hidden {
    use crate::secrets::StoreSecret;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(
        secret: &Option<StoreSecret>,
        to: S,
    ) -> Result<S::Ok, S::Error> {
        match secret {
            Some(secret) => to.serialize_str(secret.reveal()),
            None => to.serialize_none(),
        }
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<StoreSecret>, D::Error> {
        Option::<String>::deserialize(from).map(|it| it.map(StoreSecret::new))
    }
}

/// What the service sends for a refresh token.
#[derive(Deserialize)]
struct Renewed {
    #[serde(with = "hidden")]
    access_token: Option<StoreSecret>,
    #[serde(default, with = "hidden")]
    refresh_token: Option<StoreSecret>,
    expires_in: Option<u64>,
}

impl Stored {
    fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    /// The access token, if it is good for a while.
    fn fresh(&self) -> Option<&StoreSecret> {
        let old = self.expires_at != 0 && self.expires_at < now() + EARLY;
        self.access_token.as_ref().filter(|_| !old || self.refresh_token.is_none())
    }

    /// The request for a new one.
    fn renewal(&self, url: &str) -> Option<Ask> {
        let refresh = self.refresh_token.as_ref()?;
        let mut pairs = vec![
            ("grant_type", "refresh_token"),
            ("refresh_token", refresh.reveal()),
            ("client_id", &self.client_id),
        ];
        if let Some(secret) = &self.client_secret {
            pairs.push(("client_secret", secret.reveal()));
        }
        if let Some(scope) = &self.scope {
            pairs.push(("scope", scope));
        }
        Some(form(url, &pairs))
    }

    fn take(&mut self, renewed: Renewed) {
        self.access_token = renewed.access_token;
        // Some services give a new refresh token each time.
        if renewed.refresh_token.is_some() {
            self.refresh_token = renewed.refresh_token;
        }
        self.expires_at = now() + renewed.expires_in.unwrap_or(USUAL);
    }
}

/// A request for tokens. It has none itself.
pub(super) fn form(url: &str, pairs: &[(&str, &str)]) -> Ask {
    let pairs = pairs.iter().map(|(key, value)| format!("{key}={}", escaped(value)));
    let body = Zeroizing::new(Zeroizing::new(pairs.collect::<Vec<_>>()).join("&"));
    let ask = Ask::new(Method::POST, url.to_owned());
    let ask = ask.header("content-type", "application/x-www-form-urlencoded");
    Ask { body: Buffer::from(body.as_bytes().to_vec()), with_token: false, ..ask }
}

/// The tokens of a store. One request at a time renews them.
pub(super) struct Tokens {
    stored: Mutex<Stored>,
    from: Option<SecretFrom>,
    url: String,
}

impl Tokens {
    /// The tokens that a secret holds, where it is from, and who renews them.
    pub(super) fn new(
        secret: &StoreSecret,
        from: Option<SecretFrom>,
        url: String,
    ) -> Result<Self, &'static str> {
        let text = secret.reveal().trim();
        let stored = if text.starts_with('{') {
            let needs = "the account's tokens are not understood: they are one JSON object";
            Stored::parse(text).ok_or(needs)?
        } else {
            let access_token = Some(StoreSecret::new(text.to_owned()));
            let client_id = String::new();
            Stored { access_token, client_id, ..Stored::parse("{}").ok_or("no tokens")? }
        };
        if stored.refresh_token.is_some() && stored.client_id.is_empty() {
            return Err("the account's tokens need `client_id`, for whom they were given");
        }
        if stored.refresh_token.is_none() && stored.access_token.is_none() {
            return Err("the account's tokens need `refresh_token` or `access_token`");
        }
        Ok(Self { stored: Mutex::new(stored), from, url })
    }

    /// A token that should be good.
    pub(super) async fn current<F>(&self, send: impl FnOnce(Ask) -> F) -> Result<StoreSecret, Fault>
    where
        F: Future<Output = Result<Answer, Fault>>,
    {
        let mut stored = self.stored.lock().await;
        match stored.fresh() {
            Some(token) => Ok(token.clone()),
            None => self.fetch(&mut stored, None, send).await,
        }
    }

    /// A new token, as the service refuses this one. Another request may have got it already.
    pub(super) async fn renew<F>(
        &self,
        refused: &StoreSecret,
        send: impl FnOnce(Ask) -> F,
    ) -> Result<StoreSecret, Fault>
    where
        F: Future<Output = Result<Answer, Fault>>,
    {
        let mut stored = self.stored.lock().await;
        match stored.fresh().filter(|token| token.reveal() != refused.reveal()) {
            Some(token) => Ok(token.clone()),
            None => self.fetch(&mut stored, Some(refused), send).await,
        }
    }

    async fn fetch<F>(
        &self,
        stored: &mut Stored,
        refused: Option<&StoreSecret>,
        send: impl FnOnce(Ask) -> F,
    ) -> Result<StoreSecret, Fault>
    where
        F: Future<Output = Result<Answer, Fault>>,
    {
        if let Some(token) = self.theirs(stored, refused) {
            return Ok(token);
        }
        let ask = stored.renewal(&self.url).ok_or_else(|| Fault::of(Kind::LoggedOut))?;
        let answer = match send(ask).await {
            // Another process was a moment faster, with a refresh token that is good for once.
            Err(fault) if fault.is_logged_out() => {
                return self.await_theirs(stored, refused).await.ok_or(fault);
            }
            answer => Zeroizing::new(answer?.body),
        };
        let renewed: Renewed = serde_json::from_slice(&answer).map_err(|_| not_understood())?;
        let token = renewed.access_token.clone().ok_or_else(not_understood)?;
        stored.take(renewed);
        if let Some(from) = &self.from {
            // Without it the next session renews them again. The file may be for reading only.
            let text = Zeroizing::new(serde_json::to_string(stored).unwrap_or_default());
            drop(from.replace(&text));
        }
        Ok(token)
    }
}

impl Tokens {
    /// As [`Self::theirs`], while the other process may still be keeping what it has got.
    async fn await_theirs(
        &self,
        stored: &mut Stored,
        refused: Option<&StoreSecret>,
    ) -> Option<StoreSecret> {
        for pause in [0, 20, 80, 300] {
            sleep(Duration::from_millis(pause)).await;
            if let Some(token) = self.theirs(stored, refused) {
                return Some(token);
            }
        }
        None
    }

    /// A token that another process has got meanwhile, and left there.
    fn theirs(&self, stored: &mut Stored, refused: Option<&StoreSecret>) -> Option<StoreSecret> {
        let text = self.from.as_ref()?.read_again()?;
        *stored = Stored::parse(text.reveal())?;
        let is_refused = |it: &&StoreSecret| refused.is_some_and(|no| no.reveal() == it.reveal());
        stored.fresh().filter(|it| !is_refused(it)).cloned()
    }
}

#[expect(clippy::disallowed_methods, reason = "services say by the wall clock when tokens expire")]
pub(super) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests;

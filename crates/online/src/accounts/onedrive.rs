//! OneDrive, by Microsoft Graph.
//!
//! An object goes up in one request, which takes 250 MB by the documents. An upload session would
//! be a second request, and accounts of companies keep an unfinished one in the way of the next. An
//! object comes down from another address, to which the service redirects. That address is its own
//! right to the object, so no token goes there.

use super::super::driver::Traits;
use super::super::failure::{Fault, Kind, Said};
use super::super::url::is_safe;
use super::account::Account;
use super::client::{AT_ONCE, Client};
use super::http::{Ask, Refusal, escaped, kind_of, not_understood, text_at};
use oblivio_store::{PutMode, check_name};
use opendal::Buffer;
use reqwest::Method;
use serde_json::json;
use std::io;
use std::ops::Range;
use tokio::sync::OnceCell;

/// The longest object, in decimal megabytes as the documents count.
const LONGEST: usize = 250_000_000;
/// Entries of a page of a list.
const PAGE: usize = 1_000;

const TRAITS: Traits =
    Traits { at_once: AT_ONCE, creates: true, renames: false, prefixes: false, folder: true };

pub(super) struct OneDrive {
    client: Client,
    /// The account's own folder.
    root: String,
    folder: String,
    made: OnceCell<()>,
}

/// Understands a refusal.
pub(super) fn judge(refusal: &Refusal) -> Said {
    let word = text_at(&refusal.body, "/error/code");
    let kind = match (refusal.status, word.as_str()) {
        (_, "quotaLimitReached") => Kind::Full,
        (_, "activityLimitReached") => Kind::Io(io::ErrorKind::ResourceBusy),
        // Another request holds the item: that passes.
        (409, "resourceModified") => Kind::Io(io::ErrorKind::ConnectionReset),
        (status, _) => kind_of(status, refusal.wait),
    };
    Said { kind, status: refusal.status, word, wait: refusal.wait }
}

impl OneDrive {
    pub(super) fn new(client: Client, requests: &str, folder: &str) -> Self {
        let (root, folder) = (format!("{requests}/v1.0/me/drive/root"), folder.to_owned());
        Self { client, root, folder, made: OnceCell::new() }
    }
}

/// A path with each part escaped.
fn escaped_path(path: &str) -> String {
    path.split('/').map(escaped).collect::<Vec<_>>().join("/")
}

impl OneDrive {
    /// The address of an item, and of what is asked of it.
    fn at(&self, path: &str, of: &str) -> String {
        match path {
            "" => format!("{}{of}", self.root),
            path => {
                let colon = if of.starts_with('/') { ":" } else { "" };
                format!("{}:/{}{colon}{of}", self.root, escaped_path(path))
            }
        }
    }

    fn object(&self, object: &str, of: &str) -> String {
        let slash = if self.folder.is_empty() { "" } else { "/" };
        self.at(&format!("{}{slash}{object}", self.folder), of)
    }

    /// Makes the folder and those that it is in. One that is there is no error.
    async fn make_folder(&self) -> Result<(), Fault> {
        let mut parent = String::new();
        for name in self.folder.split('/').filter(|name| !name.is_empty()) {
            let folder = json!({
                "name": name,
                "folder": {},
                "@microsoft.graph.conflictBehavior": "fail",
            });
            let ask = Ask::new(Method::POST, self.at(&parent, "/children")).json(&folder);
            match self.client.send(ask).await {
                Err(fault) if !fault.is_taken() => return Err(fault),
                _ => {}
            }
            parent += if parent.is_empty() { "" } else { "/" };
            parent += name;
        }
        Ok(())
    }

    /// Whether an address is of the service that the token is for.
    fn is_ours(&self, url: &str) -> bool {
        let ours = self.root.strip_suffix("v1.0/me/drive/root");
        ours.is_some_and(|ours| url.starts_with(ours))
    }
}

impl Account for OneDrive {
    const SCHEME: &'static str = "onedrive";
    const TRAITS: Traits = TRAITS;

    async fn get(&self, object: &str, range: &Range<u64>) -> Result<Buffer, Fault> {
        if range.is_empty() {
            let len = self.len(object).await?.ok_or_else(|| Fault::of(Kind::Missing))?;
            let there = len >= range.start;
            return if there { Ok(Buffer::new()) } else { Err(Fault::of(Kind::Range)) };
        }
        let ask = Ask::new(Method::GET, self.object(object, "/content")).range(range);
        let answer = self.client.send(ask).await?;
        let Some(there) = answer.location.filter(|_| answer.status == 302) else {
            return Ok(Buffer::from(answer.body));
        };
        if !is_safe(&there) {
            return Err(not_understood());
        }
        let ask = Ask { with_token: false, ..Ask::new(Method::GET, there).range(range) };
        Ok(Buffer::from(self.client.send(ask).await?.body))
    }

    async fn len(&self, object: &str) -> Result<Option<u64>, Fault> {
        let ask = Ask::new(Method::GET, self.object(object, "?$select=name,size,file"));
        let answer = match self.client.send(ask).await {
            Err(fault) if fault.is_missing() => return Ok(None),
            answer => answer?.json()?,
        };
        if answer["file"].is_null() {
            return Ok(None);
        }
        answer["size"].as_u64().map(Some).ok_or_else(not_understood)
    }

    async fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Result<(), Fault> {
        if data.len() > LONGEST {
            return Err(Fault::of(Kind::Io(io::ErrorKind::Unsupported)));
        }
        self.made.get_or_try_init(|| self.make_folder()).await?;
        let conflict = if mode == PutMode::IfAbsent { "fail" } else { "replace" };
        let of = format!("/content?@microsoft.graph.conflictBehavior={conflict}");
        let ask = Ask::new(Method::PUT, self.object(object, &of)).bytes(data);
        self.client.send(ask).await.map(drop)
    }

    async fn delete(&self, objects: Vec<String>) -> Result<(), Fault> {
        for object in objects {
            let ask = Ask::new(Method::DELETE, self.object(&object, ""));
            match self.client.send(ask).await {
                Err(fault) if !fault.is_missing() => return Err(fault),
                _ => {}
            }
        }
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, Fault> {
        let of = format!("/children?$select=name,size,file&$top={PAGE}");
        let mut url = self.at(&self.folder, &of);
        let mut found = Vec::new();
        loop {
            let page = match self.client.send(Ask::new(Method::GET, url)).await {
                // A folder that is not there yet.
                Err(fault) if fault.is_missing() => return Ok(Vec::new()),
                page => page?.json()?,
            };
            for it in page["value"].as_array().ok_or_else(not_understood)? {
                let name = it["name"].as_str().unwrap_or_default();
                let is_file = !it["file"].is_null();
                if is_file && name.starts_with(prefix) && check_name(name).is_ok() {
                    found.push((name.to_owned(), it["size"].as_u64().ok_or_else(not_understood)?));
                }
            }
            match page["@odata.nextLink"].as_str() {
                None => break,
                // The token goes to nobody else.
                Some(next) if self.is_ours(next) => url = next.to_owned(),
                Some(_) => return Err(not_understood()),
            }
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_understood() {
        let kind = |status, word: &str| {
            let body = json!({ "error": { "code": word } }).to_string().into_bytes();
            judge(&Refusal { status, wait: None, body }).kind
        };
        use io::ErrorKind as Io;
        assert_eq!(kind(404, "itemNotFound"), Kind::Missing);
        assert_eq!(kind(409, "nameAlreadyExists"), Kind::Exists);
        assert_eq!(kind(412, "preconditionFailed"), Kind::Exists);
        assert_eq!(kind(429, "activityLimitReached"), Kind::Io(Io::ResourceBusy));
        assert_eq!(kind(507, "quotaLimitReached"), Kind::Full);
        assert_eq!(kind(401, "InvalidAuthenticationToken"), Kind::LoggedOut);
        assert_eq!(kind(403, "accessDenied"), Kind::Io(Io::PermissionDenied));
        assert_eq!(kind(503, ""), Kind::Io(Io::ConnectionReset));
    }
}

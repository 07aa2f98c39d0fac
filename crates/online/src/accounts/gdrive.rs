//! Google Drive, version 3.
//!
//! A name is no key here: a folder may have several files of one name. So nothing can be created
//! exclusively by its name. Only an id can be taken once, and all who race for a name would have to
//! agree on its id beforehand, through an object that only one of them may have created. Hence this
//! store does not promise exclusive creation. Sessions begin by being alone in a list, and `init`
//! tries out whether lists are complete.
//!
//! An id that was fetched beforehand makes a repeated create harmless: the second one is refused.
//! Should two files have one name all the same, the oldest counts, for everybody. Objects are
//! written once, so both have the same bytes.

use super::super::driver::Traits;
use super::super::failure::{Fault, Kind, Said};
use super::super::url::is_safe;
use super::account::Account;
use super::client::{AT_ONCE, Client};
use super::http::{Ask, Refusal, escaped, kind_of, not_understood, text_at};
use oblivio_store::{PutMode, check_name};
use opendal::Buffer;
use reqwest::Method;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tokio::sync::Mutex as Turn;

/// The longest object that goes up in one request with its name, by the documents.
const SMALL: usize = 5_000_000;
/// Ids fetched at a time, and entries of a page of a list.
const IDS: usize = 100;
const PAGE: usize = 1_000;
/// Ids that are remembered. Beyond them all are asked for again.
const REMEMBERED: usize = 100_000;
const FOLDER: &str = "application/vnd.google-apps.folder";

const TRAITS: Traits =
    Traits { at_once: AT_ONCE, creates: false, renames: false, prefixes: false, folder: true };

pub(super) struct GDrive {
    client: Client,
    requests: String,
    path: String,
    /// The folder's id, once it is known.
    folder: Turn<Option<String>>,
    /// Ids for new files.
    spare: Turn<Vec<String>>,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    /// The ids of objects. An id stays when its content is replaced, so it cannot mislead: at
    /// worst its file is gone.
    ids: BTreeMap<String, String>,
    /// The ids of creates that were not answered. They are sent again with the same id.
    begun: BTreeMap<String, String>,
}

/// A file as lists show it.
struct File {
    made: String,
    id: String,
    size: u64,
}

/// Understands a refusal.
pub(super) fn judge(refusal: &Refusal) -> Said {
    let word = text_at(&refusal.body, "/error/errors/0/reason");
    let kind = match word.as_str() {
        "rateLimitExceeded" | "userRateLimitExceeded" => Kind::Io(io::ErrorKind::ResourceBusy),
        "storageQuotaExceeded" => Kind::Full,
        _ => kind_of(refusal.status, refusal.wait),
    };
    Said { kind, status: refusal.status, word, wait: refusal.wait }
}

/// A text within the quotes of a query.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

impl GDrive {
    pub(super) fn new(client: Client, requests: String, path: &str) -> Self {
        let (path, known) = (path.to_owned(), Mutex::default());
        let (folder, spare) = (Turn::new(None), Turn::new(Vec::new()));
        Self { client, requests, path, folder, spare, known }
    }
}

impl GDrive {
    fn files(&self, of: &str) -> String {
        format!("{}/drive/v3/files{of}", self.requests)
    }

    fn uploads(&self, of: &str, kind: &str) -> String {
        format!("{}/upload/drive/v3/files{of}?uploadType={kind}&fields=id", self.requests)
    }

    async fn ask(&self, ask: Ask) -> Result<Value, Fault> {
        self.client.send(ask).await?.json()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn remember(&self, object: &str, id: &str) {
        let mut known = self.known();
        if known.ids.len() >= REMEMBERED {
            known.ids.clear();
        }
        known.ids.insert(object.to_owned(), id.to_owned());
    }

    /// All files that a query finds, by their names, each name's oldest first.
    async fn query(&self, query: &str) -> Result<BTreeMap<String, Vec<File>>, Fault> {
        let fields = "nextPageToken,files(id,name,size,createdTime)";
        let first = self.files(&format!(
            "?q={}&fields={}&pageSize={PAGE}&spaces=drive",
            escaped(&format!("{query} and trashed = false")),
            escaped(fields),
        ));
        let mut found: BTreeMap<String, Vec<File>> = BTreeMap::new();
        let mut url = first.clone();
        loop {
            let page = self.ask(Ask::new(Method::GET, url)).await?;
            for it in page["files"].as_array().ok_or_else(not_understood)? {
                let text = |key: &str| it[key].as_str().unwrap_or_default().to_owned();
                // A number in quotes; folders have none.
                let size = text("size").parse().unwrap_or(0);
                let file = File { made: text("createdTime"), id: text("id"), size };
                found.entry(text("name")).or_default().push(file);
            }
            match page["nextPageToken"].as_str() {
                None => break,
                Some(token) => url = format!("{first}&pageToken={}", escaped(token)),
            }
        }
        for files in found.values_mut() {
            files.sort_by(|one, two| (&one.made, &one.id).cmp(&(&two.made, &two.id)));
        }
        Ok(found)
    }

    /// The folder's id. It is made, and those that it is in, if that is asked for.
    async fn folder(&self, make: bool) -> Result<Option<String>, Fault> {
        let mut known = self.folder.lock().await;
        if let Some(id) = &*known {
            return Ok(Some(id.clone()));
        }
        let mut at = "root".to_owned();
        for name in self.path.split('/').filter(|name| !name.is_empty()) {
            let query = format!(
                "name = {} and {} in parents and mimeType = '{FOLDER}'",
                quoted(name),
                quoted(&at)
            );
            let oldest = async || {
                let mut found = self.query(&query).await?;
                let folders = found.remove(name).unwrap_or_default();
                Ok::<_, Fault>(folders.into_iter().next().map(|folder| folder.id))
            };
            at = match oldest().await? {
                Some(id) => id,
                None if !make => return Ok(None),
                None => {
                    let folder = json!({ "name": name, "parents": [at], "mimeType": FOLDER });
                    let ask = Ask::new(Method::POST, self.files("?fields=id")).json(&folder);
                    let made = self.ask(ask).await?;
                    let made = made["id"].as_str().ok_or_else(not_understood)?.to_owned();
                    // Another one may have made it too: the oldest counts.
                    oldest().await?.unwrap_or(made)
                }
            };
        }
        *known = Some(at.clone());
        Ok(Some(at))
    }

    /// The files of a name, the oldest first.
    async fn look(&self, object: &str) -> Result<Vec<File>, Fault> {
        let Some(folder) = self.folder(false).await? else { return Ok(Vec::new()) };
        let query = format!("name = {} and {} in parents", quoted(object), quoted(&folder));
        Ok(self.query(&query).await?.remove(object).unwrap_or_default())
    }

    /// An object's file. Its id is asked for only if it is not known.
    async fn find(&self, object: &str) -> Result<Option<File>, Fault> {
        let id = self.known().ids.get(object).cloned();
        if let Some(id) = id {
            let url = self.files(&format!("/{}?fields=size,trashed", escaped(&id)));
            match self.ask(Ask::new(Method::GET, url)).await {
                Ok(it) if it["trashed"] != true => {
                    let size = it["size"].as_str().and_then(|size| size.parse().ok());
                    let (made, size) = (String::new(), size.ok_or_else(not_understood)?);
                    return Ok(Some(File { made, id, size }));
                }
                Err(fault) if !fault.is_missing() => return Err(fault),
                _ => drop(self.known().ids.remove(object)),
            }
        }
        let file = self.look(object).await?.into_iter().next();
        if let Some(file) = &file {
            self.remember(object, &file.id);
        }
        Ok(file)
    }

    /// The id for a new file: that of a create that was not answered, or a new one.
    async fn id_for(&self, object: &str) -> Result<String, Fault> {
        if let Some(id) = self.known().begun.get(object) {
            return Ok(id.clone());
        }
        let mut spare = self.spare.lock().await;
        if spare.is_empty() {
            let url = self.files(&format!("/generateIds?count={IDS}&space=drive&type=files"));
            let answer = self.ask(Ask::new(Method::GET, url)).await?;
            let ids = answer["ids"].as_array().ok_or_else(not_understood)?;
            spare.extend(ids.iter().filter_map(|id| id.as_str().map(str::to_owned)));
        }
        let id = spare.pop().ok_or_else(not_understood)?;
        self.known().begun.insert(object.to_owned(), id.clone());
        Ok(id)
    }

    async fn create(
        &self,
        id: &str,
        object: &str,
        folder: &str,
        data: Buffer,
    ) -> Result<(), Fault> {
        let about = json!({ "id": id, "name": object, "parents": [folder],
            "mimeType": "application/octet-stream" });
        if data.len() > SMALL {
            let ask = Ask::new(Method::POST, self.uploads("", "resumable")).json(&about);
            return self.resumable(ask, data).await;
        }
        let data = data.to_bytes();
        // A line that is in no object: it follows from the bytes, so a retry sends the same.
        let line = blake3::hash(&data).to_hex();
        let head = format!(
            "--{line}\r\ncontent-type: application/json\r\n\r\n{about}\r\n--{line}\r\n\
             content-type: application/octet-stream\r\n\r\n"
        );
        let body = [head.as_bytes(), &data, format!("\r\n--{line}--\r\n").as_bytes()].concat();
        let ask = Ask::new(Method::POST, self.uploads("", "multipart"));
        let ask = ask.header("content-type", format!("multipart/related; boundary={line}"));
        self.client.send(Ask { body: Buffer::from(body), ..ask }).await.map(drop)
    }

    async fn replace(&self, id: &str, data: Buffer) -> Result<(), Fault> {
        let of = format!("/{}", escaped(id));
        if data.len() > SMALL {
            let ask = Ask::new(Method::PATCH, self.uploads(&of, "resumable")).json(&json!({}));
            return self.resumable(ask, data).await;
        }
        let ask = Ask::new(Method::PATCH, self.uploads(&of, "media")).bytes(data);
        self.client.send(ask).await.map(drop)
    }

    /// A larger object goes up in a second request. Its address is its own right to do so.
    async fn resumable(&self, ask: Ask, data: Buffer) -> Result<(), Fault> {
        let ask = ask.header("x-upload-content-type", "application/octet-stream");
        let ask = ask.header("x-upload-content-length", data.len().to_string());
        let there = self.client.send(ask).await?.location.filter(|it| is_safe(it));
        let ask = Ask::new(Method::PUT, there.ok_or_else(not_understood)?).bytes(data);
        match self.client.send(Ask { with_token: false, ..ask }).await?.status {
            200 | 201 => Ok(()),
            // Part of it has arrived: all of it is sent again.
            _ => Err(not_understood()),
        }
    }
}

impl Account for GDrive {
    const SCHEME: &'static str = "gdrive";
    const TRAITS: Traits = TRAITS;

    async fn get(&self, object: &str, range: &Range<u64>) -> Result<Buffer, Fault> {
        let missing = || Fault::of(Kind::Missing);
        let mut id = self.known().ids.get(object).cloned();
        let was_known = id.is_some();
        if id.is_none() || range.is_empty() {
            let file = self.find(object).await?.ok_or_else(missing)?;
            if range.is_empty() {
                let there = file.size >= range.start;
                return if there { Ok(Buffer::new()) } else { Err(Fault::of(Kind::Range)) };
            }
            id = Some(file.id);
        }
        for _ in 0..2 {
            let Some(held) = id else { break };
            let url = self.files(&format!("/{}?alt=media", escaped(&held)));
            match self.client.send(Ask::new(Method::GET, url).range(range)).await {
                // Somebody may have deleted it, and stored another one.
                Err(fault) if fault.is_missing() && was_known => {
                    id = self.find(object).await?.map(|file| file.id);
                }
                answer => return Ok(Buffer::from(answer?.body)),
            }
        }
        Err(missing())
    }

    async fn len(&self, object: &str) -> Result<Option<u64>, Fault> {
        Ok(self.find(object).await?.map(|file| file.size))
    }

    async fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Result<(), Fault> {
        let folder = self.folder(true).await?.ok_or_else(not_understood)?;
        let held = self.find(object).await?;
        let id = match held {
            Some(_) if mode == PutMode::IfAbsent => return Err(Fault::of(Kind::Exists)),
            Some(file) => {
                self.replace(&file.id, data).await?;
                file.id
            }
            None => {
                let id = self.id_for(object).await?;
                match self.create(&id, object, &folder, data.clone()).await {
                    // An earlier create has arrived after all, perhaps with other bytes.
                    Err(fault) if fault.is_taken() && mode != PutMode::IfAbsent => {
                        self.replace(&id, data).await?;
                    }
                    answer => answer?,
                }
                id
            }
        };
        self.known().begun.remove(object);
        self.remember(object, &id);
        Ok(())
    }

    /// Deletes all files of these names.
    async fn delete(&self, objects: Vec<String>) -> Result<(), Fault> {
        for object in objects {
            let mut ids: Vec<_> = self.look(&object).await?.into_iter().map(|it| it.id).collect();
            // A list may not show it yet.
            let known = {
                let mut known = self.known();
                [known.ids.remove(&object), known.begun.remove(&object)]
            };
            ids.extend(known.into_iter().flatten());
            for id in ids {
                let ask = Ask::new(Method::DELETE, self.files(&format!("/{}", escaped(&id))));
                match self.client.send(ask).await {
                    Err(fault) if !fault.is_missing() => return Err(fault),
                    _ => {}
                }
            }
        }
        Ok(())
    }

    async fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, Fault> {
        let Some(folder) = self.folder(false).await? else { return Ok(Vec::new()) };
        let query = format!("{} in parents and mimeType != '{FOLDER}'", quoted(&folder));
        let found = self.query(&query).await?.into_iter();
        let ours = found.filter(|(name, _)| name.starts_with(prefix) && check_name(name).is_ok());
        Ok(ours.filter_map(|(name, files)| Some((name, files.first()?.size))).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_are_understood() {
        let kind = |status, word: &str| {
            let body = json!({ "error": { "errors": [{ "reason": word }] } });
            judge(&Refusal { status, wait: None, body: body.to_string().into_bytes() }).kind
        };
        use io::ErrorKind as Io;
        assert_eq!(kind(403, "rateLimitExceeded"), Kind::Io(Io::ResourceBusy));
        assert_eq!(kind(403, "userRateLimitExceeded"), Kind::Io(Io::ResourceBusy));
        assert_eq!(kind(403, "insufficientFilePermissions"), Kind::Io(Io::PermissionDenied));
        assert_eq!(kind(403, "storageQuotaExceeded"), Kind::Full);
        assert_eq!(kind(404, "notFound"), Kind::Missing);
        assert_eq!(kind(409, "fileIdInUse"), Kind::Exists);
        assert_eq!(kind(401, "authError"), Kind::LoggedOut);
        assert_eq!(kind(416, "requestedRangeNotSatisfiable"), Kind::Range);
    }

    #[test]
    fn names_in_queries_are_quoted() {
        assert_eq!(quoted(r"it's a \"), r"'it\'s a \\'");
    }
}

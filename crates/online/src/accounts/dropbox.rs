//! Dropbox.
//!
//! All writes of an account take one lock of the service, and a second one at that time is refused
//! with "wait". So this store sends one write at a time. Bytes go up before that, side by side, in
//! upload sessions; one request then commits all that have arrived while the one before it ran.
//! Small objects need no session: they go up while their writer has its turn. What is longer than a
//! request may be goes up in pieces, one after the other.

use super::super::driver::Traits;
use super::super::failure::{Fault, Kind, Said};
use super::account::Account;
use super::client::{AT_ONCE, Client};
use super::http::{Ask, Refusal, kind_of, not_understood, text_at};
use oblivio_store::{PutMode, check_name};
use opendal::Buffer;
use reqwest::Method;
use serde_json::{Value, json};
use std::io;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Mutex as Turn;
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::time::sleep;

/// Larger objects go up in a session.
const SMALL: usize = 256 << 10;
/// The most bytes of a request.
const LONGEST: usize = 150 << 20;
/// Objects that one request commits or deletes, and entries of a page of a list.
const COMMITS: usize = 1_000;
const DELETES: usize = 1_000;
const PAGE: usize = 2_000;
/// How often a job or a commit that has to wait is looked at again.
const LOOKS: u32 = 12;
/// The first pause between two looks. Each is twice the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(50);

const TRAITS: Traits =
    Traits { at_once: AT_ONCE, creates: true, renames: false, prefixes: false, folder: false };

pub(super) struct Dropbox {
    client: Client,
    requests: String,
    content: String,
    /// With a slash before it, or empty.
    folder: String,
    /// The most bytes of a request.
    longest: usize,
    /// Who writes.
    turn: Turn<()>,
    /// Sessions whose bytes have gone up.
    arrived: Mutex<Vec<Arrived>>,
}

/// A session to commit, and who waits for that.
struct Arrived {
    entry: Value,
    done: oneshot::Sender<Result<(), Fault>>,
}

/// Understands a refusal. The service has a word for each, in the answer.
pub(super) fn judge(refusal: &Refusal) -> Said {
    let summary = text_at(&refusal.body, "/error_summary");
    let says = |word: &str| summary.contains(word);
    let kind = if says("too_many_write_operations") || says("too_many_requests") {
        Kind::Io(io::ErrorKind::ResourceBusy)
    } else if refusal.status != 409 {
        kind_of(refusal.status, refusal.wait)
    } else if says("insufficient_space") {
        Kind::Full
    } else if says("not_found") {
        Kind::Missing
    } else if says("conflict/file") || says("conflict/folder") {
        Kind::Exists
    } else {
        Kind::Io(io::ErrorKind::InvalidInput)
    };
    let word = summary.trim_end_matches(['.', '/', ' ']).to_owned();
    Said { kind, status: refusal.status, word, wait: refusal.wait }
}

/// As `judge`, of one of several objects of a request.
fn judge_one(of: &Value) -> Result<(), Fault> {
    let tag = |value: &Value| value[".tag"].as_str().unwrap_or_default().to_owned();
    if tag(of) == "success" {
        return Ok(());
    }
    // The words stand one within the other: failure, path, conflict, file.
    let (mut words, mut inner) = (Vec::new(), &of["failure"]);
    while !tag(inner).is_empty() {
        words.push(tag(inner));
        let next = words.last().map_or(&Value::Null, |word| &inner[word.as_str()]);
        inner = if next.is_null() { &inner["reason"] } else { next };
    }
    let body = json!({ "error_summary": words.join("/") }).to_string().into_bytes();
    let mut said = judge(&Refusal { status: 409, wait: None, body });
    if words.is_empty() {
        return Err(not_understood());
    }
    // A session that is not there had been committed, or has gone: its bytes are sent again.
    if words.iter().any(|word| word == "lookup_failed") {
        said.kind = Kind::Io(io::ErrorKind::ConnectionReset);
    }
    Err(Fault::Said(said))
}

/// A piece that does not fit to its session: an answer was lost. All goes up again, in a new one.
fn anew(fault: Fault) -> Fault {
    match fault {
        Fault::Said(mut said) if said.status == 409 && said.kind != Kind::Full => {
            said.kind = Kind::Io(io::ErrorKind::ConnectionReset);
            Fault::Said(said)
        }
        fault => fault,
    }
}

impl Dropbox {
    pub(super) fn new(client: Client, [requests, content]: [String; 2], folder: &str) -> Self {
        let folder = if folder.is_empty() { String::new() } else { format!("/{folder}") };
        let (turn, arrived) = (Turn::new(()), Mutex::default());
        Self { client, requests, content, folder, longest: LONGEST, turn, arrived }
    }
}

impl Dropbox {
    fn path(&self, object: &str) -> String {
        format!("{}/{object}", self.folder)
    }

    /// A request whose argument is its body.
    async fn call(&self, route: &str, argument: &Value) -> Result<Value, Fault> {
        let url = format!("{}/2/files/{route}", self.requests);
        self.client.send(Ask::new(Method::POST, url).json(argument)).await?.json()
    }

    /// A request whose argument is a header, as its body is an object, or its answer.
    fn content(&self, route: &str, argument: &Value) -> Ask {
        let url = format!("{}/2/files/{route}", self.content);
        Ask::new(Method::POST, url).header("dropbox-api-arg", plain(argument))
    }

    /// Sends bytes up, in a session that is closed then. Its name.
    async fn send_up(&self, data: Buffer) -> Result<String, Fault> {
        let (whole, mut sent) = (data.len(), data.len().min(self.longest));
        let start = json!({ "close": sent == whole });
        let ask = self.content("upload_session/start", &start).bytes(data.slice(..sent));
        let answer = self.client.send(ask).await?.json()?;
        let session = answer["session_id"].as_str().ok_or_else(not_understood)?.to_owned();
        while sent < whole {
            let end = whole.min(sent + self.longest);
            let cursor = json!({ "session_id": session, "offset": sent });
            let append = json!({ "cursor": cursor, "close": end == whole });
            let ask = self.content("upload_session/append_v2", &append);
            self.client.send(ask.bytes(data.slice(sent..end))).await.map_err(anew)?;
            sent = end;
        }
        Ok(session)
    }

    /// Commits a session, together with all that have arrived when its turn comes.
    async fn commit(&self, entry: Value) -> Result<(), Fault> {
        let (done, mut answer) = oneshot::channel();
        self.arrived().push(Arrived { entry, done });
        let _turn = self.turn.lock().await;
        loop {
            // Somebody who had the turn before may have committed it.
            match answer.try_recv() {
                Ok(answer) => return answer,
                Err(TryRecvError::Closed) => return Err(Fault::Ended),
                Err(TryRecvError::Empty) => {}
            }
            let batch = {
                let mut arrived = self.arrived();
                let many = arrived.len().min(COMMITS);
                arrived.drain(..many).collect()
            };
            self.commit_all(batch).await;
        }
    }

    /// Commits a batch. Each entry has an outcome of its own.
    async fn commit_all(&self, mut batch: Vec<Arrived>) {
        for look in 0.. {
            let entries: Vec<_> = batch.iter().map(|it| &it.entry).collect();
            let argument = json!({ "entries": entries });
            let answer = self.call("upload_session/finish_batch_v2", &argument).await;
            let outcomes: Vec<_> = match &answer {
                Ok(answer) => answer["entries"].as_array().into_iter().flatten().collect(),
                Err(_) => Vec::new(),
            };
            let mut waiting = Vec::new();
            for (index, it) in batch.into_iter().enumerate() {
                let outcome = match (outcomes.get(index), &answer) {
                    (Some(outcome), _) => judge_one(outcome),
                    (None, Ok(_)) => Err(not_understood()),
                    (None, Err(fault)) => Err(fault.again()),
                };
                match outcome {
                    // The write lock of the account: the same session is committed later.
                    Err(fault) if fault.wait().is_some() && answer.is_ok() && look < LOOKS => {
                        waiting.push(it);
                    }
                    // Nobody waits any more only if the store is gone.
                    outcome => drop(it.done.send(outcome)),
                }
            }
            if waiting.is_empty() {
                return;
            }
            self.client.asked_to_wait();
            batch = waiting;
        }
    }

    fn arrived(&self) -> std::sync::MutexGuard<'_, Vec<Arrived>> {
        self.arrived.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a job that the service does on its own.
    async fn job(&self, route: &str, job: &str) -> Result<Value, Fault> {
        let mut pause = FIRST_PAUSE;
        for _ in 0..LOOKS {
            let answer = self.call(route, &json!({ "async_job_id": job })).await?;
            match answer[".tag"].as_str() {
                Some("in_progress") => sleep(pause).await,
                Some("complete") => return Ok(answer),
                _ => return Err(not_understood()),
            }
            pause *= 2;
        }
        Err(Fault::TimedOut)
    }
}

impl Account for Dropbox {
    const SCHEME: &'static str = "dropbox";
    const TRAITS: Traits = TRAITS;
    const DELETES: usize = DELETES;

    async fn get(&self, object: &str, range: &Range<u64>) -> Result<Buffer, Fault> {
        if range.is_empty() {
            let len = self.len(object).await?.ok_or_else(|| Fault::of(Kind::Missing))?;
            let there = len >= range.start;
            return if there { Ok(Buffer::new()) } else { Err(Fault::of(Kind::Range)) };
        }
        let ask = self.content("download", &json!({ "path": self.path(object) })).range(range);
        Ok(Buffer::from(self.client.send(ask).await?.body))
    }

    async fn len(&self, object: &str) -> Result<Option<u64>, Fault> {
        match self.call("get_metadata", &json!({ "path": self.path(object) })).await {
            Ok(it) if it[".tag"] == "file" => {
                it["size"].as_u64().map(Some).ok_or_else(not_understood)
            }
            Ok(_) => Ok(None),
            Err(fault) if fault.is_missing() => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    async fn put(&self, object: &str, data: Buffer, mode: PutMode) -> Result<(), Fault> {
        // `strict_conflict`: a file that is there is a conflict, also one with the same bytes.
        let mode = if mode == PutMode::IfAbsent { "add" } else { "overwrite" };
        let commit = json!({
            "path": self.path(object),
            "mode": mode,
            "autorename": false,
            "mute": true,
            "strict_conflict": mode == "add",
        });
        if data.len() <= SMALL.min(self.longest) || mode == "add" && data.len() <= self.longest {
            let _turn = self.turn.lock().await;
            let ask = self.content("upload", &commit).bytes(data);
            return self.client.send(ask).await.map(drop);
        }
        let offset = data.len();
        let session = self.send_up(data).await?;
        let cursor = json!({ "session_id": session, "offset": offset });
        self.commit(json!({ "cursor": cursor, "commit": commit })).await
    }

    async fn delete(&self, objects: Vec<String>) -> Result<(), Fault> {
        let _turn = self.turn.lock().await;
        let entries: Vec<_> = objects.iter().map(|it| json!({ "path": self.path(it) })).collect();
        for _ in 0..LOOKS {
            let mut answer = self.call("delete_batch", &json!({ "entries": entries })).await?;
            if let Some(job) = answer["async_job_id"].as_str().map(str::to_owned) {
                answer = self.job("delete_batch/check", &job).await?;
            }
            let outcomes = answer["entries"].as_array().ok_or_else(not_understood)?;
            let faults = outcomes.iter().filter_map(|it| judge_one(it).err());
            let mut faults = faults.filter(|fault| !fault.is_missing()).peekable();
            match faults.peek() {
                None => return Ok(()),
                // Those that are gone are missing the next time.
                Some(fault) if fault.wait().is_some() => self.client.asked_to_wait(),
                Some(fault) => return Err(fault.again()),
            }
        }
        Err(Fault::of(Kind::Io(io::ErrorKind::ResourceBusy)))
    }

    async fn list(&self, prefix: &str) -> Result<Vec<(String, u64)>, Fault> {
        let first = json!({ "path": self.folder, "recursive": false, "limit": PAGE });
        let mut page = match self.call("list_folder", &first).await {
            // A folder that is not there yet.
            Err(fault) if fault.is_missing() => return Ok(Vec::new()),
            page => page?,
        };
        let mut found = Vec::new();
        loop {
            for it in page["entries"].as_array().ok_or_else(not_understood)? {
                let name = it["name"].as_str().unwrap_or_default();
                if it[".tag"] == "file" && name.starts_with(prefix) && check_name(name).is_ok() {
                    found.push((name.to_owned(), it["size"].as_u64().ok_or_else(not_understood)?));
                }
            }
            if page["has_more"] != true {
                break;
            }
            page = self.call("list_folder/continue", &json!({ "cursor": page["cursor"] })).await?;
        }
        found.sort();
        found.dedup();
        Ok(found)
    }
}

/// JSON for a header: letters beyond ASCII are written as numbers.
fn plain(argument: &Value) -> String {
    let mut out = String::new();
    for letter in argument.to_string().chars() {
        if matches!(letter, ' '..='~') {
            out.push(letter);
        } else {
            let mut units = [0; 2];
            letter.encode_utf16(&mut units).iter().for_each(|it| out += &format!("\\u{it:04x}"));
        }
    }
    out
}

#[cfg(test)]
mod tests;

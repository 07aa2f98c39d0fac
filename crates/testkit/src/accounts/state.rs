//! What an account holds and knows, and what all three services do alike.

use super::http::{self, Reply, Request};
use super::tree::Tree;
use crate::Dice;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The client that the tokens are for.
pub(super) const CLIENT_ID: &str = "test-client";

/// Which service it answers as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Dropbox.
    Dropbox,
    /// Google Drive.
    GDrive,
    /// OneDrive.
    OneDrive,
}

/// What goes wrong by chance, in percent of the requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// Refused with 429, and nothing done.
    pub refused: u64,
    /// Done, and the connection is closed without an answer.
    pub lost: u64,
    /// Done, and the answer is cut in the middle.
    pub cut: u64,
    /// The seconds that a refusal says to wait.
    pub retry_after: u64,
}

/// A request as it came, in short.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The method and the path.
    pub line: String,
    /// The names of the headers, sorted.
    pub headers: Vec<String>,
    /// How many bytes it had.
    pub bytes: usize,
    /// What it was answered, 0 for nothing.
    pub status: u16,
}

pub(super) struct Shared {
    pub(super) kind: Kind,
    pub(super) state: Mutex<State>,
    /// Somebody writes: the one write at a time that Dropbox allows.
    pub(super) writing: AtomicBool,
    /// How long such a write takes, in microseconds.
    pub(super) write_micros: AtomicU64,
    pub(super) over: AtomicBool,
    pub(super) address: SocketAddr,
}

pub(super) struct State {
    pub(super) tree: Tree,
    pub(super) dropbox: Dropbox,
    pub(super) gdrive: GDrive,
    pub(super) faults: Faults,
    pub(super) dice: Dice,
    /// Of log-ons that have begun.
    pub(super) codes: Codes,
    /// Access tokens that are taken.
    pub(super) access: BTreeSet<String>,
    /// Refresh tokens that are taken, one for each time somebody logged on.
    pub(super) refresh: BTreeSet<String>,
    pub(super) logged_on: u32,
    pub(super) tokens_given: u32,
    pub(super) expires_in: u64,
    pub(super) page: usize,
    /// Lists show what was made until then.
    pub(super) shown: u64,
    /// The next requests are refused with 429 and this many seconds.
    pub(super) refuse_next: Option<(usize, u64)>,
    /// Until then nothing may be asked: a refusal said so.
    pub(super) closed_until: Option<Instant>,
    /// The answer to the next request whose line holds this is lost.
    pub(super) lose_next: Option<String>,
    pub(super) seen: Vec<Seen>,
    pub(super) wrong: Vec<String>,
}

/// Codes that were given out, until they are exchanged.
#[derive(Default)]
pub(super) struct Codes {
    pub(super) given: BTreeMap<String, Code>,
    pub(super) count: u32,
    /// The user says no.
    pub(super) denied: bool,
}

/// Who asked for a code.
pub(super) struct Code {
    pub(super) challenge: String,
    pub(super) redirect: String,
    pub(super) offline: bool,
}

/// An upload session: its bytes so far, and whether more may come.
pub(super) type Session = (Vec<u8>, bool);

/// What Dropbox alone keeps.
pub(super) struct Dropbox {
    /// The most bytes of a request.
    pub(super) longest: usize,
    pub(super) sessions: BTreeMap<String, Session>,
    /// Answers of jobs, and how often each is still in progress.
    pub(super) jobs: BTreeMap<String, (u32, Value)>,
    pub(super) cursors: BTreeMap<String, (String, usize)>,
    pub(super) next: u64,
}

impl Default for Dropbox {
    fn default() -> Self {
        let (sessions, jobs, cursors) = Default::default();
        Self { longest: 150 << 20, sessions, jobs, cursors, next: 0 }
    }
}

impl Dropbox {
    pub(super) fn name(&mut self, of: &str) -> String {
        self.next += 1;
        format!("{of}-{}", self.next)
    }
}

/// What Google Drive alone keeps.
#[derive(Default)]
pub(super) struct GDrive {
    /// Ids that were given out, and those that a file has had.
    pub(super) given: BTreeSet<String>,
    pub(super) used: BTreeSet<String>,
    /// Uploads that were begun: what they make, or the id that they replace.
    pub(super) uploads: BTreeMap<String, (Value, Option<String>, usize)>,
    pub(super) next: u64,
}

impl Shared {
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps other writes out. `None` while there is one.
    pub(super) fn write<T>(&self, act: impl FnOnce(&mut State) -> T) -> Option<T> {
        if self.writing.swap(true, Ordering::SeqCst) {
            return None;
        }
        let micros = self.write_micros.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(micros));
        let done = act(&mut self.state());
        self.writing.store(false, Ordering::SeqCst);
        Some(done)
    }

    pub(super) fn unauthorized(&self) -> Reply {
        let body = match self.kind {
            Kind::Dropbox => json!({ "error_summary": "expired_access_token/..",
                "error": { ".tag": "expired_access_token" } }),
            Kind::GDrive => json!({ "error": { "code": 401,
                "errors": [{ "reason": "authError" }], "message": "Invalid Credentials" } }),
            Kind::OneDrive => json!({ "error": { "code": "InvalidAuthenticationToken" } }),
        };
        Reply::json(401, &body)
    }

    /// "Come again".
    pub(super) fn wait(&self, seconds: u64) -> Reply {
        let (status, body) = match self.kind {
            Kind::Dropbox => (
                429,
                json!({ "error_summary": "too_many_requests/..",
                "error": { "reason": { ".tag": "too_many_requests" }, "retry_after": seconds } }),
            ),
            Kind::GDrive => (
                403,
                json!({ "error": { "code": 403,
                "errors": [{ "reason": "userRateLimitExceeded" }] } }),
            ),
            Kind::OneDrive => (429, json!({ "error": { "code": "activityLimitReached" } })),
        };
        Reply::json(status, &body).header("retry-after", &seconds.to_string())
    }
}

impl State {
    /// Whether this request is refused, and for how many seconds.
    #[expect(clippy::disallowed_methods, reason = "a service has a clock of its own")]
    pub(super) fn refused(&mut self, by_chance: bool) -> Option<u64> {
        let now = Instant::now();
        if self.closed_until.is_some_and(|until| now < until) {
            self.wrong.push("a request before the time that a refusal named was over".into());
        }
        match &mut self.refuse_next {
            Some((left, seconds)) if *left > 0 => {
                *left -= 1;
                self.closed_until = Some(now + Duration::from_secs(*seconds));
                Some(*seconds)
            }
            _ => by_chance.then_some(self.faults.retry_after),
        }
    }

    pub(super) fn new_refresh(&mut self) -> String {
        self.logged_on += 1;
        let refresh = format!("canary-refresh-{}", self.logged_on);
        self.refresh.insert(refresh.clone());
        refresh
    }

    pub(super) fn new_access(&mut self) -> String {
        self.tokens_given += 1;
        let access = format!("canary-access-{}", self.tokens_given);
        self.access.insert(access.clone());
        access
    }

    pub(super) fn give_token(&mut self, request: &Request, kind: Kind) -> Reply {
        let form = http::pairs(&String::from_utf8_lossy(&request.body));
        let is = |key: &str, value: &str| form.get(key).is_some_and(|it| it == value);
        let refused = |word: &str| Reply::json(400, &json!({ "error": word }));
        if !is("grant_type", "refresh_token") {
            return refused("unsupported_grant_type");
        }
        if !is("client_id", CLIENT_ID) {
            return refused("invalid_client");
        }
        let refresh = form.get("refresh_token").cloned().unwrap_or_default();
        if !self.refresh.contains(&refresh) {
            return refused("invalid_grant");
        }
        let access = self.new_access();
        let mut body: Value = json!({ "access_token": access, "token_type": "bearer",
            "expires_in": self.expires_in });
        if kind == Kind::OneDrive {
            // Each is good for once, which is stricter than the service is.
            self.refresh.remove(&refresh);
            body["refresh_token"] = json!(self.new_refresh());
        }
        Reply::json(200, &body)
    }
}

//! A server that answers as Dropbox, Google Drive and OneDrive do, by their public documents.
//!
//! It is one account on a port of the loopback. It refuses what the documents say is refused: an
//! old token, a wrong mode, a missing header, JSON that is none, a second write at the same time.
//! What a client must never do is kept in [`Account::wrong`]. By [`Faults`], some requests are
//! refused with "wait", some answers are lost after the act, some are cut in the middle.
#![allow(clippy::disallowed_methods, reason = "a server has threads, and waits")]

mod dropbox;
mod gdrive;
mod http;
mod onedrive;
mod tree;

use crate::Dice;
use http::{Reply, Request};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tree::Tree;

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

/// An account on a port of its own. It ends with this value.
pub struct Account {
    shared: Arc<Shared>,
    address: SocketAddr,
}

struct Shared {
    kind: Kind,
    state: Mutex<State>,
    /// Somebody writes: the one write at a time that Dropbox allows.
    writing: AtomicBool,
    /// How long such a write takes, in microseconds.
    write_micros: AtomicU64,
    over: AtomicBool,
    address: SocketAddr,
}

struct State {
    tree: Tree,
    dropbox: dropbox::State,
    gdrive: gdrive::State,
    faults: Faults,
    dice: Dice,
    /// Access tokens that are taken.
    access: BTreeSet<String>,
    /// Refresh tokens that are taken, one for each time somebody logged on.
    refresh: BTreeSet<String>,
    logged_on: u32,
    tokens_given: u32,
    expires_in: u64,
    page: usize,
    /// Lists show what was made until then.
    shown: u64,
    /// The next requests are refused with 429 and this many seconds.
    refuse_next: Option<(usize, u64)>,
    /// The answer to the next request whose line holds this is lost.
    lose_next: Option<String>,
    seen: Vec<Seen>,
    wrong: Vec<String>,
}

impl Account {
    /// The client that the tokens are for.
    pub const CLIENT_ID: &str = "test-client";

    /// Starts an empty account.
    ///
    /// # Panics
    /// When there is no port.
    #[must_use]
    pub fn start(kind: Kind, seed: u64) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let state = State {
            tree: Tree::default(),
            dropbox: dropbox::State::default(),
            gdrive: gdrive::State::default(),
            faults: Faults::default(),
            dice: Dice::new(seed),
            access: BTreeSet::from(["canary-access-0".to_owned()]),
            refresh: BTreeSet::new(),
            logged_on: 0,
            tokens_given: 0,
            expires_in: 3600,
            page: 7,
            shown: u64::MAX,
            refuse_next: None,
            lose_next: None,
            seen: Vec::new(),
            wrong: Vec::new(),
        };
        let shared = Arc::new(Shared {
            kind,
            state: Mutex::new(state),
            writing: AtomicBool::new(false),
            write_micros: AtomicU64::new(300),
            over: AtomicBool::new(false),
            address,
        });
        let serving = Arc::clone(&shared);
        std::thread::spawn(move || {
            for line in listener.incoming() {
                if serving.over.load(Ordering::SeqCst) {
                    return;
                }
                let (Ok(line), shared) = (line, Arc::clone(&serving)) else { continue };
                std::thread::spawn(move || drop(http::serve(&line, &|it| shared.answer(it))));
            }
        });
        Self { shared, address }
    }

    /// Where it answers.
    #[must_use]
    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The URL of a folder in it.
    #[must_use]
    pub fn url(&self, folder: &str) -> String {
        let scheme = match self.shared.kind {
            Kind::Dropbox => "dropbox",
            Kind::GDrive => "gdrive",
            Kind::OneDrive => "onedrive",
        };
        format!("{scheme}:/{folder}?endpoint={}", self.endpoint())
    }

    /// The tokens of a client that has just logged on, as they are stored.
    #[must_use]
    pub fn tokens(&self) -> String {
        let mut state = self.shared.state();
        let refresh = state.new_refresh();
        json!({
            "client_id": Self::CLIENT_ID,
            "refresh_token": refresh,
            "access_token": state.access.last(),
        })
        .to_string()
    }

    /// From now on this goes wrong.
    pub fn fail(&self, faults: Faults) {
        self.shared.state().faults = faults;
    }

    /// No access token that was given is taken any more.
    pub fn expire_tokens(&self) {
        self.shared.state().access.clear();
    }

    /// No refresh token is taken any more either.
    pub fn log_out(&self) {
        let mut state = self.shared.state();
        state.access.clear();
        state.refresh.clear();
    }

    /// The next requests are refused with 429 and this `Retry-After`.
    pub fn refuse_next(&self, requests: usize, seconds: u64) {
        self.shared.state().refuse_next = Some((requests, seconds));
    }

    /// The next request whose method and path hold this is done, and its answer is lost.
    pub fn lose_next(&self, line: &str) {
        self.shared.state().lose_next = Some(line.to_owned());
    }

    /// From now on, lists do not show what is new.
    pub fn hide_new(&self) {
        let mut state = self.shared.state();
        state.shown = state.tree.acts();
    }

    /// Makes a second file of the same name and content, where the service allows it.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn make_twin(&self, path: &str) {
        let mut state = self.shared.state();
        let id = state.tree.find(path).expect("a file");
        let item = state.tree.get(&id).expect("a file").clone();
        state.tree.make(None, &item.parent, &item.name, item.data);
    }

    /// How long a write takes that keeps others out.
    pub fn write_takes(&self, time: Duration) {
        self.shared.write_micros.store(time.as_micros() as u64, Ordering::SeqCst);
    }

    /// All requests so far.
    #[must_use]
    pub fn seen(&self) -> Vec<Seen> {
        self.shared.state().seen.clone()
    }

    /// What no client should have done. Each is a bug of ours.
    #[must_use]
    pub fn wrong(&self) -> Vec<String> {
        self.shared.state().wrong.clone()
    }

    /// The paths of all files, each as often as it is there.
    #[must_use]
    pub fn files(&self) -> Vec<String> {
        self.shared.state().tree.files()
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // The listener wakes up to see that.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers a request; `None` closes the connection.
    fn answer(&self, request: &Request) -> Option<Reply> {
        if self.over.load(Ordering::SeqCst) {
            return None;
        }
        let is_token = request.path.ends_with("/token");
        let mut reply = None;
        let (mut lost, mut cut) = (false, false);
        if !is_token {
            let mut state = self.state();
            let faults = state.faults;
            let roll = state.dice.below(100);
            reply = state.refused(roll < faults.refused).map(|wait| self.wait(wait));
            lost = state.dice.below(100) < faults.lost;
            cut = state.dice.below(100) < faults.cut;
        }
        let reply = reply.unwrap_or_else(|| self.act(request, is_token));
        let mut state = self.state();
        let line = format!("{} {}", request.method, request.path);
        let lost = lost || state.lose_next.take_if(|it| line.contains(it.as_str())).is_some();
        let done = lost && reply.status < 300;
        state.seen.push(Seen {
            line,
            headers: request.headers.keys().cloned().collect(),
            bytes: request.body.len(),
            status: if done { 0 } else { reply.status },
        });
        if done { None } else { Some(Reply { cut: cut && reply.status < 300, ..reply }) }
    }

    fn act(&self, request: &Request, is_token: bool) -> Reply {
        if is_token {
            return self.state().give_token(request, self.kind);
        }
        // What a redirection or an upload session leads to has its right in its address.
        let is_open = request.path.starts_with("/open/");
        let token = request.headers.get("authorization");
        let mut state = self.state();
        if is_open && token.is_some() {
            state.wrong.push(format!("a token was sent to {}", request.path));
        }
        let bearer = token.and_then(|it| it.strip_prefix("Bearer "));
        if !is_open && !bearer.is_some_and(|it| state.access.contains(it)) {
            return self.unauthorized();
        }
        if request.headers.get("user-agent").is_none_or(|it| it != "oblivio") {
            state.wrong.push("the agent is not oblivio".to_owned());
        }
        drop(state);
        match self.kind {
            Kind::Dropbox => dropbox::answer(self, request),
            Kind::GDrive => gdrive::answer(self, request),
            Kind::OneDrive => onedrive::answer(self, request),
        }
    }

    /// Keeps other writes out. `None` while there is one.
    fn write<T>(&self, act: impl FnOnce(&mut State) -> T) -> Option<T> {
        if self.writing.swap(true, Ordering::SeqCst) {
            return None;
        }
        let micros = self.write_micros.load(Ordering::SeqCst);
        std::thread::sleep(Duration::from_micros(micros));
        let done = act(&mut self.state());
        self.writing.store(false, Ordering::SeqCst);
        Some(done)
    }

    fn unauthorized(&self) -> Reply {
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
    fn wait(&self, seconds: u64) -> Reply {
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
    fn refused(&mut self, by_chance: bool) -> Option<u64> {
        match &mut self.refuse_next {
            Some((left, seconds)) if *left > 0 => {
                *left -= 1;
                Some(*seconds)
            }
            _ => by_chance.then_some(self.faults.retry_after),
        }
    }

    fn new_refresh(&mut self) -> String {
        self.logged_on += 1;
        let refresh = format!("canary-refresh-{}", self.logged_on);
        self.refresh.insert(refresh.clone());
        refresh
    }

    fn give_token(&mut self, request: &Request, kind: Kind) -> Reply {
        let form = http::pairs(&String::from_utf8_lossy(&request.body));
        let is = |key: &str, value: &str| form.get(key).is_some_and(|it| it == value);
        let refused = |word: &str| Reply::json(400, &json!({ "error": word }));
        if !is("grant_type", "refresh_token") {
            return refused("unsupported_grant_type");
        }
        if !is("client_id", Account::CLIENT_ID) {
            return refused("invalid_client");
        }
        let refresh = form.get("refresh_token").cloned().unwrap_or_default();
        if !self.refresh.contains(&refresh) {
            return refused("invalid_grant");
        }
        self.tokens_given += 1;
        let access = format!("canary-access-{}", self.tokens_given);
        self.access.insert(access.clone());
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

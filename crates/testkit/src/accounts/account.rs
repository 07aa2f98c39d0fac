//! The account: it starts, answers, and can be made to misbehave.

use super::http::{self, Reply, Request};
use super::state::{CLIENT_ID, Codes, Dropbox, Faults, GDrive, Kind, Seen, Shared, State};
use super::tree::Tree;
use super::{dropbox, gdrive, log_on, onedrive};
use crate::Dice;
use serde_json::json;
use std::collections::BTreeMap;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// An account on a port of its own. It ends with this value.
pub struct Account {
    shared: Arc<Shared>,
    address: SocketAddr,
}

impl Account {
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
            dropbox: Dropbox::default(),
            gdrive: GDrive::default(),
            faults: Faults::default(),
            dice: Dice::new(seed),
            codes: Codes::default(),
            access: BTreeSet::from(["canary-access-0".to_owned()]),
            refresh: BTreeSet::new(),
            logged_on: 0,
            tokens_given: 0,
            expires_in: 3600,
            page: 7,
            shown: u64::MAX,
            refuse_next: None,
            closed_until: None,
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
                std::thread::spawn(move || drop(http::serve(&line, &|it| answer(&shared, it))));
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
            "client_id": CLIENT_ID,
            "refresh_token": refresh,
            "access_token": state.access.last(),
        })
        .to_string()
    }

    /// The program to which tokens are given: its id, and its secret where the service wants it.
    #[must_use]
    pub fn client(&self) -> (&'static str, Option<&'static str>) {
        let secret = (self.shared.kind == Kind::GDrive).then_some(log_on::CLIENT_SECRET);
        (CLIENT_ID, secret)
    }

    /// Who logs on from now on says no.
    pub fn deny_log_ons(&self) {
        self.shared.state().codes.denied = true;
    }

    /// The most bytes that Dropbox takes in a request.
    pub fn takes_at_most(&self, bytes: usize) {
        self.shared.state().dropbox.longest = bytes;
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

    /// What is in the files of a folder.
    ///
    /// # Panics
    /// When there is no such folder.
    #[must_use]
    pub fn contents(&self, folder: &str) -> BTreeMap<String, Vec<u8>> {
        self.shared.state().tree.contents(folder)
    }

    /// A folder has exactly these files from now on, as its keeper wants.
    ///
    /// # Panics
    /// When there is no such folder.
    pub fn hold(&self, folder: &str, files: &BTreeMap<String, Vec<u8>>) {
        self.shared.state().tree.hold(folder, files);
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.shared.over.store(true, Ordering::SeqCst);
        // The listener wakes up to see that.
        drop(TcpStream::connect(self.address));
    }
}

/// Answers a request; `None` closes the connection.
fn answer(shared: &Shared, request: &Request) -> Option<Reply> {
    if shared.over.load(Ordering::SeqCst) {
        return None;
    }
    let is_token = request.path.ends_with("/token") || log_on::is_page(&request.path);
    let mut reply = None;
    let (mut lost, mut cut) = (false, false);
    if !is_token {
        let mut state = shared.state();
        let faults = state.faults;
        let roll = state.dice.below(100);
        reply = state.refused(roll < faults.refused).map(|wait| shared.wait(wait));
        lost = state.dice.below(100) < faults.lost;
        cut = state.dice.below(100) < faults.cut;
    }
    let reply = reply.unwrap_or_else(|| act(shared, request, is_token));
    let mut state = shared.state();
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

fn act(shared: &Shared, request: &Request, is_token: bool) -> Reply {
    if log_on::is_page(&request.path) {
        return log_on::page(&mut shared.state(), request, shared.kind);
    }
    if is_token && log_on::brings_code(request) {
        return log_on::exchange(&mut shared.state(), request, shared.kind);
    }
    if is_token {
        return shared.state().give_token(request, shared.kind);
    }
    // What a redirection or an upload session leads to has its right in its address.
    let is_open = request.path.starts_with("/open/");
    let token = request.headers.get("authorization");
    let mut state = shared.state();
    if is_open && token.is_some() {
        state.wrong.push(format!("a token was sent to {}", request.path));
    }
    let bearer = token.and_then(|it| it.strip_prefix("Bearer "));
    if !is_open && !bearer.is_some_and(|it| state.access.contains(it)) {
        return shared.unauthorized();
    }
    if request.headers.get("user-agent").is_none_or(|it| it != "oblivio") {
        state.wrong.push("the agent is not oblivio".to_owned());
    }
    drop(state);
    match shared.kind {
        Kind::Dropbox => dropbox::answer(shared, request),
        Kind::GDrive => gdrive::answer(shared, request),
        Kind::OneDrive => onedrive::answer(shared, request),
    }
}

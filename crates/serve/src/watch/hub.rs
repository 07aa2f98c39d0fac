//! The watcher's state, and its messages to the pages.

use super::event::{self, VERSION, WatchEvent};
use serde::Serialize;
use std::collections::{BTreeMap, VecDeque};
use std::io::{self, BufReader, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Recent events for a page that opens late, which would be empty otherwise.
const RECENT: usize = 512;
/// Limit of messages queued for a page; a slower page misses some.
const WAITING: usize = 2048;
/// Limit of connected commands.
const MOST_USERS: usize = 16;

/// One message for the pages.
pub type Message = Arc<str>;

/// Shared between the feeds of the commands and the streams of the pages.
#[derive(Debug, Default)]
pub struct Hub(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    pages: Vec<PageQueue>,
    recent: VecDeque<Message>,
    facts: Option<Message>,
    users: BTreeMap<u64, User>,
    next: u64,
    stored: ObjectLengths,
}

/// The queue to one page, and how much the page has missed.
#[derive(Debug)]
struct PageQueue {
    messages: SyncSender<Message>,
    missed: u64,
}

impl PageQueue {
    /// Sends to the page, or counts a message that does not fit; `false` if the page is gone.
    fn tell(&mut self, message: &Message) -> bool {
        let sent = match self.missed {
            0 => self.messages.try_send(Arc::clone(message)),
            count => self.messages.try_send(text(&WatchEvent::Dropped { count })).and_then(|()| {
                self.missed = 0;
                self.messages.try_send(Arc::clone(message))
            }),
        };
        match sent {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed += 1;
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        }
    }
}

/// A command that has the volume open.
#[derive(Clone, Debug, Default, Serialize)]
struct User {
    command: String,
    pid: u32,
}

/// The lengths of the store's objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ObjectLengths {
    pub all: u64,
    pub slab: u64,
}

/// The facts that only the watcher knows.
#[derive(Serialize)]
struct Status<'a> {
    kind: &'static str,
    users: Vec<&'a User>,
    stored: u64,
    slab: u64,
}

impl State {
    fn status(&self) -> Message {
        let users = self.users.values().collect();
        text(&Status { kind: "status", users, stored: self.stored.all, slab: self.stored.slab })
    }

    fn tell(&mut self, message: &Message) {
        self.pages.retain_mut(|page| page.tell(message));
    }

    fn tell_status(&mut self) {
        let status = self.status();
        self.tell(&status);
    }
}

fn text(value: &impl Serialize) -> Message {
    serde_json::to_string(value).unwrap_or_default().into()
}

impl Hub {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a page: the messages that it gets at once, and the channel of later ones.
    pub fn page(&self) -> (Vec<Message>, Receiver<Message>) {
        let (queue, messages) = mpsc::sync_channel(WAITING);
        let mut state = self.state();
        let mut first = vec![state.status()];
        first.extend(state.facts.iter().chain(&state.recent).cloned());
        state.pages.push(PageQueue { messages: queue, missed: 0 });
        (first, messages)
    }

    /// Notes the stored bytes.
    pub fn stored(&self, stored: ObjectLengths) {
        let mut state = self.state();
        if state.stored != stored {
            state.stored = stored;
            state.tell_status();
        }
    }

    pub fn event(&self, event: &WatchEvent) {
        let message = text(event);
        let mut state = self.state();
        if matches!(event, WatchEvent::Facts(_)) {
            state.facts = Some(Arc::clone(&message));
        } else {
            if state.recent.len() == RECENT {
                state.recent.pop_front();
            }
            state.recent.push_back(Arc::clone(&message));
        }
        state.tell(&message);
    }

    fn enter(&self) -> Option<u64> {
        let mut state = self.state();
        if state.users.len() >= MOST_USERS {
            return None;
        }
        state.next += 1;
        let number = state.next;
        state.users.insert(number, User::default());
        Some(number)
    }

    fn name(&self, number: u64, command: String, pid: u32) {
        let mut state = self.state();
        state.users.insert(number, User { command, pid });
        state.tell_status();
    }

    fn leave(&self, number: u64) {
        let mut state = self.state();
        state.users.remove(&number);
        state.tell_status();
    }
}

/// Accepts commands that use the volume, for the life of this process.
pub fn listen(listener: &UnixListener, hub: &Arc<Hub>) {
    for stream in listener.incoming() {
        let Ok(stream) = stream else {
            // Out of file descriptors, say; it passes.
            thread::sleep(Duration::from_millis(100));
            continue;
        };
        let Some(number) = hub.enter() else { continue };
        let of_thread = Arc::clone(hub);
        let hear = move || {
            // A feed that is cut or breaks the protocol ends; the others go on.
            let _ = hear(&of_thread, number, stream);
            of_thread.leave(number);
        };
        if thread::Builder::new().name("feed".into()).spawn(hear).is_err() {
            hub.leave(number);
        }
    }
}

fn hear(hub: &Hub, number: u64, stream: UnixStream) -> io::Result<()> {
    let mut stream = BufReader::new(stream);
    match event::read(&mut stream)? {
        Some(WatchEvent::Hello { version: VERSION, command, pid }) => {
            hub.name(number, command, pid)
        }
        _ => return Err(io::Error::new(ErrorKind::InvalidData, "another version")),
    }
    while let Some(event) = event::read(&mut stream)? {
        if !matches!(event, WatchEvent::Hello { .. }) {
            hub.event(&event);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::event::OrdinaryEvent;
    use super::*;
    use anyhow::{Context, Result};
    use std::io::Write;

    fn hub() -> Result<(tempfile::TempDir, std::path::PathBuf, Arc<Hub>)> {
        let dir = tempfile::tempdir()?;
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        let hub = Arc::new(Hub::default());
        let of_thread = Arc::clone(&hub);
        thread::spawn(move || listen(&listener, &of_thread));
        Ok((dir, path, hub))
    }

    fn hello(stream: &mut UnixStream, version: u32) -> io::Result<()> {
        event::write(stream, &WatchEvent::Hello { version, command: "put".into(), pid: 7 })
    }

    fn next(messages: &Receiver<Message>) -> Result<Message> {
        Ok(messages.recv_timeout(Duration::from_secs(60))?)
    }

    #[test]
    fn nonsense_ends_one_feed_and_no_other() -> Result<()> {
        let (_dir, path, hub) = hub()?;
        let (_, messages) = hub.page();
        let mut good = UnixStream::connect(&path)?;
        hello(&mut good, VERSION)?;
        assert!(next(&messages)?.contains(r#""command":"put""#));
        for nonsense in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0xff; 9], b"\x02\0\0\0{}"] {
            let mut bad = UnixStream::connect(&path)?;
            // The other end may hang up in the middle of it.
            let _ = bad.write_all(nonsense);
            drop(bad);
            assert!(next(&messages)?.contains(r#""users":[{"command":"put""#));
        }
        let mut newer = UnixStream::connect(&path)?;
        hello(&mut newer, VERSION + 1)?;
        next(&messages)?;
        event::write(&mut good, &WatchEvent::Ordinary { at: 1, event: OrdinaryEvent::create(77) })?;
        assert!(next(&messages)?.contains(r#""file":77"#));
        drop(good);
        assert!(next(&messages)?.contains(r#""users":[]"#));
        Ok(())
    }

    #[test]
    fn a_page_that_is_late_sees_the_last_and_one_that_stands_still_holds_nobody_up() -> Result<()> {
        let hub = Hub::default();
        let (_, still) = hub.page();
        for count in 0..2 * WAITING as u64 {
            hub.event(&WatchEvent::Dropped { count });
        }
        let (first, _) = hub.page();
        assert_eq!(first.len(), 1 + RECENT);
        assert!(first.last().context("a message")?.contains(&format!("{}", 2 * WAITING - 1)));
        assert_eq!(still.try_iter().count(), WAITING);
        // On its next read it learns how much it has missed.
        hub.event(&WatchEvent::Dropped { count: 0 });
        let missed = text(&WatchEvent::Dropped { count: WAITING as u64 });
        assert_eq!(still.try_iter().next(), Some(missed));
        drop(still);
        hub.event(&WatchEvent::Dropped { count: 0 });
        assert_eq!(hub.state().pages.len(), 0);
        Ok(())
    }
}

//! A disk that is served: the threads, the clients, and how it ends.

use super::listen::{Conn, Listener};
use super::negotiation::{Export, choose, negotiate, until_tls};
use super::request::Queue;
use super::server::{OnRequest, Server, Settings};
use super::tls::{self, Hurried};
use super::transmission::transmit;
use crate::mount::log;
use crate::queue::Pulse;
use crate::server::Running;
use anyhow::Result;
use oblivio_volume::disk::Disk;
use rustls::ServerConfig;
use std::collections::HashMap;
use std::io::{self, BufReader, ErrorKind};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Clients at the same time. Each may have 40 MiB under way.
const MOST_CLIENTS: usize = 16;
/// So long may a client take for each step of the negotiation.
const NEGOTIATION: Duration = Duration::from_secs(30);
/// A pause when the system has no room for one more connection.
const BREATH: Duration = Duration::from_millis(100);

/// How a disk is served.
pub struct Options {
    pub read_only: bool,
    pub commit_every: Duration,
    /// Whether the volume works at a pace.
    pub paced: bool,
    /// So long a request waits for a store that does nothing.
    pub timeout: Duration,
    /// Hears of each request, for whoever wants to show what ordinary encryption would show.
    pub on_request: Option<OnRequest>,
    /// Grows while the store is at work.
    pub pulse: Pulse,
}

/// Who is connected.
#[derive(Default)]
struct Clients {
    open: Mutex<HashMap<u64, Conn>>,
    next: AtomicU64,
    stopping: AtomicBool,
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Conn>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// `None` when there are too many, or it is over.
    fn enter(&self, conn: &Conn) -> io::Result<Option<u64>> {
        let again = conn.again()?;
        let mut open = self.lock();
        if open.len() >= MOST_CLIENTS || self.stopping.load(Ordering::SeqCst) {
            return Ok(None);
        }
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        open.insert(id, again);
        Ok(Some(id))
    }

    fn leave(&self, id: u64) {
        self.lock().remove(&id);
    }
}

/// A disk that is being served.
pub struct Serving {
    pub queue: Arc<Queue>,
    clients: Arc<Clients>,
    listener: Arc<Listener>,
    server: Running,
}

/// What is needed to end it, while somebody waits for the end.
#[derive(Clone)]
pub struct Ending {
    pub queue: Arc<Queue>,
    clients: Arc<Clients>,
    listener: Arc<Listener>,
}

/// Serves a disk on threads of its own.
pub fn serve(disk: Disk, listener: Listener, options: Options) -> Result<Serving> {
    let export = Export {
        size: disk.size(),
        block_bytes: disk.block_bytes(),
        read_only: options.read_only,
        little: disk.reader().is_some_and(|reader| reader.saves_memory()),
    };
    let queue = Arc::new(Queue::new(options.timeout, options.pulse));
    let (clients, listener) = (Arc::new(Clients::default()), Arc::new(listener));

    let settings = Settings {
        commit_every: options.commit_every,
        paced: options.paced,
        on_request: options.on_request,
    };
    let server = Server::new(disk, Arc::clone(&queue), settings);
    let server = Running::start(&queue, move || server.run())?;

    let serving = Serving { queue, clients, listener, server };
    let ending = serving.ending();
    thread::Builder::new().name("nbd clients".into()).spawn(move || ending.accept(export))?;
    Ok(serving)
}

impl Serving {
    /// The part that can end it.
    pub fn ending(&self) -> Ending {
        Ending {
            queue: Arc::clone(&self.queue),
            clients: Arc::clone(&self.clients),
            listener: Arc::clone(&self.listener),
        }
    }

    /// Waits until everything is committed.
    pub fn wait(self) -> Result<()> {
        self.server.wait()
    }
}

impl Ending {
    /// Takes no more clients and no more requests; what was asked for is still answered.
    pub fn begin(&self) {
        self.clients.stopping.store(true, Ordering::SeqCst);
        self.listener.stop();
        self.clients.lock().values().for_each(|conn| conn.shutdown(Shutdown::Read));
    }

    /// Whether every client has gone.
    pub fn alone(&self) -> bool {
        self.clients.lock().is_empty()
    }

    /// Leaves the clients that are still there.
    pub fn leave_clients(&self) {
        self.clients.lock().values().for_each(|conn| conn.shutdown(Shutdown::Both));
    }

    fn accept(&self, export: Export) {
        loop {
            let accepted = self.listener.accept();
            if self.clients.stopping.load(Ordering::SeqCst) {
                return;
            }
            if let Err(error) = accepted.and_then(|conn| self.admit(conn, export)) {
                log::note(&format!("a client could not be let in: {error}"));
                thread::sleep(BREATH);
            }
        }
    }

    fn admit(&self, conn: Conn, export: Export) -> io::Result<()> {
        let Some(id) = self.clients.enter(&conn)? else {
            log::note("there are too many clients; one was turned away");
            return Ok(());
        };
        let Ending { queue, clients, listener } = self.clone();
        let spawned = thread::Builder::new().name("nbd client".into()).spawn(move || {
            let ended = attend(&conn, export, listener.tls(), &queue);
            conn.shutdown(Shutdown::Both);
            clients.leave(id);
            // Clients come and go as they like; only nonsense is worth a line.
            if let Err(error) = ended
                && error.kind() == ErrorKind::InvalidData
            {
                log::note(&format!("a client was let go: {error}"));
            }
        });
        if spawned.is_err() {
            self.clients.leave(id);
        }
        spawned.map(drop)
    }
}

/// All of one client.
fn attend(
    conn: &Conn,
    export: Export,
    tls: Option<&Arc<ServerConfig>>,
    queue: &Queue,
) -> io::Result<()> {
    let whole = conn.again()?;
    let close = move || whole.shutdown(Shutdown::Both);
    let Some(config) = tls else {
        conn.set_patience(Some(NEGOTIATION))?;
        let Some(agreed) = negotiate(&mut conn.again()?, export)? else { return Ok(()) };
        conn.set_patience(None)?;
        let (from, to) = (BufReader::new(conn.again()?), conn.again()?);
        return transmit(from, to, close, (export, agreed), queue);
    };
    // Until here anybody may have come, so all of it has one limit.
    let until = Instant::now() + NEGOTIATION;
    let mut hurried = Hurried { conn: conn.again()?, until };
    let Some(greeted) = until_tls(&mut hurried)? else { return Ok(()) };
    let (mut from, mut to, goodbye) = tls::accept(conn, config, until)?;
    conn.set_patience(Some(NEGOTIATION))?;
    let chosen = choose(&mut tls::Both(&mut from, &mut to), export, greeted);
    conn.set_patience(None)?;
    let ended = match chosen {
        Ok(Some(agreed)) => transmit(BufReader::new(from), to, close, (export, agreed), queue),
        chosen => chosen.map(drop),
    };
    goodbye.say();
    ended
}

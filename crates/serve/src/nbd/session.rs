//! A served disk: its threads, its clients, and how it ends.

use super::listen::{Conn, Listener};
use super::negotiation::{Export, choose, negotiate, until_tls};
use super::request::DiskQueue;
use super::server::{DiskOptions, start};
use super::tls::{self, Hurried};
use super::transmission::transmit;
use crate::error::Result;
use crate::log;
use crate::server::Running;
use crate::strangers::AcceptedConnections;
use oblivio_volume::disk::Disk;
use rustls::ServerConfig;
use std::collections::HashMap;
use std::io::{self, BufReader, ErrorKind};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Limit of clients at the same time. Each may have 40 MiB under way.
const MOST_CLIENTS: usize = 16;
/// Limit of unauthenticated connections at the same time. Each takes a thread, a descriptor, and
/// the state of a TLS handshake: some 100 KiB.
const MOST_STRANGERS: usize = 128;
/// Time limit of a client's whole negotiation, however it divides the time.
const NEGOTIATION: Duration = Duration::from_secs(30);
/// A pause when the system cannot accept one more connection.
const BREATH: Duration = Duration::from_millis(100);

/// All connections.
struct Clients {
    /// Those that can use the disk.
    open: Mutex<HashMap<u64, Conn>>,
    strangers: AcceptedConnections<Conn>,
    stopping: AtomicBool,
}

impl Default for Clients {
    fn default() -> Self {
        let (open, stopping) = (Mutex::default(), AtomicBool::new(false));
        Self { open, strangers: AcceptedConnections::new(MOST_STRANGERS), stopping }
    }
}

impl Clients {
    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Conn>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets in an unauthenticated connection; the oldest one may have to go.
    fn enter(&self, conn: &Conn) -> u64 {
        let (id, oldest) = self.strangers.enter(conn.clone());
        if let Some(oldest) = oldest {
            oldest.shutdown(Shutdown::Both);
        }
        id
    }

    /// Makes a stranger a client. `InvalidData` if there are too many clients; an end of the
    /// connection if it had to go before, or the server is ending.
    fn welcome(&self, id: u64) -> io::Result<()> {
        let Some(conn) = self.strangers.leave(id) else {
            return Err(ErrorKind::ConnectionAborted.into());
        };
        let mut open = self.lock();
        if self.stopping.load(Ordering::SeqCst) {
            return Err(ErrorKind::ConnectionAborted.into());
        }
        if open.len() >= MOST_CLIENTS {
            return Err(io::Error::new(ErrorKind::InvalidData, "there are too many clients"));
        }
        open.insert(id, conn);
        Ok(())
    }

    fn leave(&self, id: u64) {
        self.strangers.leave(id);
        self.lock().remove(&id);
    }

    /// Shuts down all of them.
    fn shutdown(&self, how: Shutdown) {
        self.strangers.all().iter().for_each(|conn| conn.shutdown(Shutdown::Both));
        self.lock().values().for_each(|conn| conn.shutdown(how));
    }
}

/// A disk being served.
pub struct DiskServing {
    pub(super) queue: Arc<DiskQueue>,
    clients: Arc<Clients>,
    listener: Arc<Listener>,
    server: Running,
}

/// The handle to end it, while another thread waits for the end.
#[derive(Clone)]
pub struct DiskEnding {
    pub queue: Arc<DiskQueue>,
    clients: Arc<Clients>,
    listener: Arc<Listener>,
}

/// Serves a disk on threads of its own.
pub fn serve(disk: Disk, listener: Listener, options: DiskOptions) -> Result<DiskServing> {
    let export = Export {
        size: disk.size(),
        block_bytes: disk.block_bytes(),
        read_only: options.read_only,
        little: disk.reader().is_some_and(|reader| reader.saves_memory()),
    };
    let (queue, server) = start(disk, options)?;
    let (clients, listener) = (Arc::new(Clients::default()), Arc::new(listener));
    let serving = DiskServing { queue, clients, listener, server };
    let ending = serving.ending();
    thread::Builder::new().name("nbd clients".into()).spawn(move || ending.accept(export))?;
    Ok(serving)
}

impl DiskServing {
    /// The handle that can end it.
    pub fn ending(&self) -> DiskEnding {
        DiskEnding {
            queue: Arc::clone(&self.queue),
            clients: Arc::clone(&self.clients),
            listener: Arc::clone(&self.listener),
        }
    }

    /// Waits until everything is committed.
    pub fn wait(self) -> Result<()> {
        let ended = self.server.wait();
        // Threads of connections may have the listener for a moment.
        self.listener.leave();
        ended
    }
}

impl DiskEnding {
    /// Accepts no more clients and no more requests; pending ones are still answered.
    pub fn begin(&self) {
        self.clients.stopping.store(true, Ordering::SeqCst);
        self.listener.stop();
        self.clients.shutdown(Shutdown::Read);
    }

    /// Whether every client has gone.
    pub fn alone(&self) -> bool {
        self.clients.lock().is_empty() && self.clients.strangers.all().is_empty()
    }

    /// Disconnects the remaining clients.
    pub fn leave_clients(&self) {
        self.clients.shutdown(Shutdown::Both);
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
        let id = self.clients.enter(&conn);
        let DiskEnding { queue, clients, listener } = self.clone();
        let spawned = thread::Builder::new().name("nbd client".into()).spawn(move || {
            let welcome = || clients.welcome(id);
            let ended = attend(&conn, export, listener.tls(), welcome, &queue);
            conn.shutdown(Shutdown::Both);
            clients.leave(id);
            // Clients come and go freely; only protocol errors are worth a report.
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

/// All of one client. It may be anybody, so one time limit covers everything until it is a client;
/// then `welcome` is called.
fn attend(
    conn: &Conn,
    export: Export,
    tls: Option<&Arc<ServerConfig>>,
    welcome: impl FnOnce() -> io::Result<()>,
    queue: &DiskQueue,
) -> io::Result<()> {
    let whole = conn.clone();
    let close = move || whole.shutdown(Shutdown::Both);
    let until = Instant::now() + NEGOTIATION;
    let mut hurried = Hurried::new(conn, until);
    let Some(config) = tls else {
        let Some(agreed) = negotiate(&mut hurried, export)? else { return Ok(()) };
        welcome()?;
        hurried.take_your_time()?;
        let (from, to) = (BufReader::new(conn.clone()), conn.clone());
        return transmit(from, to, close, (export, agreed), queue);
    };
    let Some(greeted) = until_tls(&mut hurried)? else { return Ok(()) };
    let (mut from, mut to, goodbye) = tls::accept(conn, config, until)?;
    let mut welcome = Some(welcome);
    let mut welcomed = || welcome.take().map_or(Ok(()), |welcome| welcome());
    // A client with a certificate is no stranger; one without is a client once it has chosen.
    let known = if from.is_known() { welcomed() } else { Ok(()) };
    let mut both = tls::Both(&mut from, &mut to);
    let chosen = known.and_then(|()| choose(&mut both, export, greeted));
    let ended = match chosen {
        Ok(Some(agreed)) => welcomed()
            .and_then(|()| both.take_your_time())
            .and_then(|()| transmit(BufReader::new(from), to, close, (export, agreed), queue)),
        chosen => chosen.map(drop),
    };
    goodbye.say();
    ended
}

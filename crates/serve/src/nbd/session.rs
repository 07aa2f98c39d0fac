//! A served disk: its threads, its clients, and how it ends.

use super::listen::{Conn, Listener};
use super::negotiation::{Export, Exports, choose, negotiate, until_tls};
use super::request::{DiskAnswer, DiskOp, DiskQueue};
use super::server::{DiskOptions, start, start_lane};
use super::tls::{self, Hurried};
use super::transmission::transmit;
use super::wire::Errno;
use crate::error::Result;
use crate::lanes::{LaneMedium, Queues, ServedLane};
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

/// The queues of a volume's disk and of its lanes' disks.
pub(super) type DiskQueues = Queues<DiskOp, DiskAnswer, Errno>;

/// That of a disk that a client agreed on.
fn queue_of(queues: &DiskQueues, disk: usize) -> &Arc<DiskQueue> {
    let lane = disk.checked_sub(1).and_then(|lane| queues.lanes.get(lane)?.as_ref());
    lane.unwrap_or(&queues.own)
}

/// A disk being served.
pub struct DiskServing {
    queues: DiskQueues,
    clients: Arc<Clients>,
    listener: Arc<Listener>,
    server: Running,
    lanes: Vec<ServedLane>,
}

/// The handle to end it, while another thread waits for the end.
#[derive(Clone)]
pub struct DiskEnding {
    pub(super) queues: DiskQueues,
    clients: Arc<Clients>,
    listener: Arc<Listener>,
}

/// Serves a disk, and those of its open lanes, on threads of its own.
pub fn serve(
    disk: Disk,
    lanes: Vec<Option<LaneMedium<Disk>>>,
    listener: Listener,
    options: DiskOptions,
) -> Result<DiskServing> {
    let mut exports = Exports::alone(Export::of(&disk, options.read_only));
    let (mut queues, mut served) = (Vec::new(), Vec::new());
    for lane in lanes {
        exports.lanes.push(lane.as_ref().map(|it| Export::of(&it.medium, options.read_only)));
        let lane = lane.map(|lane| start_lane(lane, &options)).transpose()?;
        let (queue, server) = lane.unzip();
        queues.push(queue);
        served.extend(server);
    }
    let (own, server) = start(disk, options)?;
    let queues = Queues { own, lanes: queues };
    let (clients, listener) = (Arc::new(Clients::default()), Arc::new(listener));
    let serving = DiskServing { queues, clients, listener, server, lanes: served };
    let (ending, exports) = (serving.ending(), Arc::new(exports));
    thread::Builder::new().name("nbd clients".into()).spawn(move || ending.accept(&exports))?;
    Ok(serving)
}

impl DiskServing {
    /// The handle that can end it.
    pub fn ending(&self) -> DiskEnding {
        DiskEnding {
            queues: self.queues.clone(),
            clients: Arc::clone(&self.clients),
            listener: Arc::clone(&self.listener),
        }
    }

    /// Waits until everything is committed.
    pub fn wait(self) -> Result<()> {
        let ended = ServedLane::wait_all(self.lanes, &self.queues.own, self.server);
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

    fn accept(&self, exports: &Arc<Exports>) {
        loop {
            let accepted = self.listener.accept();
            if self.clients.stopping.load(Ordering::SeqCst) {
                return;
            }
            if let Err(error) = accepted.and_then(|conn| self.admit(conn, exports)) {
                log::note(&format!("a client could not be let in: {error}"));
                thread::sleep(BREATH);
            }
        }
    }

    fn admit(&self, conn: Conn, exports: &Arc<Exports>) -> io::Result<()> {
        let (id, exports) = (self.clients.enter(&conn), Arc::clone(exports));
        let DiskEnding { queues, clients, listener } = self.clone();
        let spawned = thread::Builder::new().name("nbd client".into()).spawn(move || {
            let welcome = || clients.welcome(id);
            let ended = attend(&conn, &exports, listener.tls(), welcome, &queues);
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
    exports: &Exports,
    tls: Option<&Arc<ServerConfig>>,
    welcome: impl FnOnce() -> io::Result<()>,
    queues: &DiskQueues,
) -> io::Result<()> {
    let whole = conn.clone();
    let close = move || whole.shutdown(Shutdown::Both);
    let until = Instant::now() + NEGOTIATION;
    let mut hurried = Hurried::new(conn, until);
    let Some(config) = tls else {
        let Some(agreed) = negotiate(&mut hurried, exports)? else { return Ok(()) };
        welcome()?;
        hurried.take_your_time()?;
        let (from, to) = (BufReader::new(conn.clone()), conn.clone());
        return transmit(
            from,
            to,
            close,
            (exports.of(agreed), agreed),
            queue_of(queues, agreed.disk),
        );
    };
    let Some(greeted) = until_tls(&mut hurried)? else { return Ok(()) };
    let (mut from, mut to, goodbye) = tls::accept(conn, config, until)?;
    let mut welcome = Some(welcome);
    let mut welcomed = || welcome.take().map_or(Ok(()), |welcome| welcome());
    // A client with a certificate is no stranger; one without is a client once it has chosen.
    let known = if from.is_known() { welcomed() } else { Ok(()) };
    let mut both = tls::Both(&mut from, &mut to);
    let chosen = known.and_then(|()| choose(&mut both, exports, greeted));
    let ended = match chosen {
        Ok(Some(agreed)) => welcomed().and_then(|()| both.take_your_time()).and_then(|()| {
            let (export, queue) = (exports.of(agreed), queue_of(queues, agreed.disk));
            transmit(BufReader::new(from), to, close, (export, agreed), queue)
        }),
        chosen => chosen.map(drop),
    };
    goodbye.say();
    ended
}

//! The server: it accepts connections, and ends in order.

use crate::admin;
use crate::connection;
use crate::ending::ServerEnding;
use crate::error::{Doing, Error, Result};
use crate::identity::{self, Fingerprint};
use crate::line;
use crate::pending_connections::PendingConnections;
use crate::stream::Stream;
use crate::volume_registry::{Home, ServedVolume, VolumeRegistry};
use oblivio_store::share::ShareClock;
use rustls::ServerConfig;
use std::io::{self, ErrorKind};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// The most connections of nobody known.
const STRANGERS: usize = 256;
/// How long a connection may take until its client is known.
const GREETING: Duration = Duration::from_secs(10);
/// How soon answers are durable for which nobody waits.
const SETTLING: Duration = Duration::from_millis(50);
/// How long the threads of connections that were cut are waited for.
const LEAVING: Duration = Duration::from_secs(1);
/// The stack of a connection's thread. Frames are on the heap.
const STACK: usize = 256 << 10;

/// A server that runs.
pub struct Server {
    entry: Arc<Entry>,
    address: Option<SocketAddr>,
    fingerprint: Fingerprint,
    threads: Vec<JoinHandle<()>>,
}

/// Where connections come in.
struct Entry {
    registry: Arc<VolumeRegistry>,
    config: Arc<ServerConfig>,
    pending: Arc<PendingConnections>,
    ending: Arc<ServerEnding>,
}

/// The way into a server for connections that were made elsewhere. It does not keep the server.
#[derive(Clone)]
pub struct ServerDoor(Weak<Entry>);

impl ServerDoor {
    /// Serves the client at the other end.
    ///
    /// # Errors
    /// `ConnectionRefused` if the server has ended; those of the system.
    pub fn admit(&self, stream: UnixStream) -> io::Result<()> {
        let entry = self.0.upgrade().filter(|entry| !entry.ending.is_over());
        entry.ok_or(ErrorKind::ConnectionRefused)?.admit(stream.into())
    }
}

impl Server {
    /// Serves the folder on an address, with these volumes, which are made if they are not there.
    ///
    /// # Errors
    /// The folder or a volume cannot be opened, or the address not be used.
    pub fn start(dir: &Path, listen: &str, volumes: &[String]) -> Result<Self> {
        Self::at_home(dir, listen, volumes, Home::default())
    }

    /// As [`Self::start`], with the tables of all volumes in stores somewhere else, perhaps, and
    /// with volumes that are served without what is missing of them.
    ///
    /// # Errors
    /// As for [`Self::start`], and those of the stores.
    pub fn at_home(dir: &Path, listen: &str, volumes: &[String], home: Home) -> Result<Self> {
        Self::serve(VolumeRegistry::open(dir, home)?, dir, Some(listen), volumes)
    }

    /// As [`Self::start`], for those alone who come in by its [door](Self::door): it listens
    /// nowhere. Leases follow this clock. For tests.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn within(dir: &Path, volumes: &[String], clock: ShareClock) -> Result<Self> {
        Self::within_home(dir, volumes, clock, Home::default())
    }

    /// As [`Self::within`] and [`Self::at_home`]. For tests.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn within_home(
        dir: &Path,
        volumes: &[String],
        clock: ShareClock,
        home: Home,
    ) -> Result<Self> {
        Self::serve(VolumeRegistry::with_clock(dir, clock, home)?, dir, None, volumes)
    }

    fn serve(
        registry: VolumeRegistry,
        dir: &Path,
        listen: Option<&str>,
        volumes: &[String],
    ) -> Result<Self> {
        let registry = Arc::new(registry);
        for name in volumes {
            match registry.open_volume(name) {
                // It is named by what is said at the start, and to its clients.
                Err(Error::Damaged { .. }) => {}
                opened => opened?,
            }
        }
        registry.expect_tables()?;
        let (config, fingerprint) = identity::load(dir)?;
        let bind = |listen| TcpListener::bind(listen).doing(format_args!("listening on {listen}"));
        let listener = listen.map(bind).transpose()?;
        let address = listener.as_ref().map(TcpListener::local_addr).transpose();
        let address = address.doing("listening")?;
        let (ending, pending) = (Arc::default(), Arc::new(PendingConnections::new(STRANGERS)));
        let entry = Arc::new(Entry { registry, config, pending, ending });
        let control = admin::listen(dir)?;
        let (of, port) = (Arc::clone(&entry), address.map_or(0, |address| address.port()));
        let mut threads =
            vec![spawn("control", move || control.serve(&of.registry, port, &of.ending))?];
        if let Some(listener) = listener {
            let of = Arc::clone(&entry);
            threads.push(spawn("accept", move || accept(&listener, &of))?);
        }
        let of = Arc::clone(&entry);
        threads.push(spawn("settle", move || settle(&of.registry, &of.ending))?);
        Ok(Self { entry, address, fingerprint, threads })
    }

    /// Where it listens. If nowhere, it is an address that is none, with port 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address.unwrap_or_else(|| (Ipv4Addr::UNSPECIFIED, 0).into())
    }

    /// Another way in.
    #[must_use]
    pub fn door(&self) -> ServerDoor {
        ServerDoor(Arc::downgrade(&self.entry))
    }

    /// What its administrator should know of what it found, one sentence for each volume.
    #[must_use]
    pub fn findings(&self) -> Vec<String> {
        self.entry.registry.findings()
    }

    /// What its clients know it by.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Ends all connections, as a network does that fails. Clients come again.
    pub fn cut_connections(&self) {
        self.entry.registry.cut_all();
    }

    /// Ends it from another thread: [`Server::wait`] returns.
    #[must_use]
    pub fn ending(&self) -> Arc<ServerEnding> {
        Arc::clone(&self.entry.ending)
    }

    /// Waits until it is to end, ends all connections, and makes durable what is not.
    ///
    /// # Errors
    /// Those of storage.
    pub fn wait(self) -> Result<()> {
        while !self.entry.ending.is_over() {
            self.entry.ending.wait(Duration::from_secs(3600));
        }
        if let Some(address) = self.address {
            // The accepting thread waits for a connection.
            let _ = TcpStream::connect_timeout(&address, Duration::from_secs(1));
        }
        self.entry.registry.cut_all();
        for thread in self.threads {
            let _ = thread.join();
        }
        self.entry.pending.cut_all();
        let volumes = self.entry.registry.volumes();
        drop(self.entry);
        volumes.iter().try_for_each(|(_, volume)| volume.share.settle())?;
        leave(&volumes);
        Ok(())
    }
}

/// Waits until the threads of connections that were cut have left the volumes, so that the caller
/// closes them itself: then another server can have them. One that waits for somebody's record
/// takes longer than anybody should wait.
fn leave(volumes: &[(String, Arc<ServedVolume>)]) {
    let until = Instant::now() + LEAVING;
    let held = || volumes.iter().any(|(_, volume)| Arc::strong_count(volume) > 1);
    while held() && Instant::now() < until {
        thread::sleep(Duration::from_millis(1));
    }
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>> {
    thread::Builder::new().name(name.into()).spawn(work).doing("starting a thread")
}

/// Makes answers durable for which nobody waits.
fn settle(registry: &VolumeRegistry, until: &ServerEnding) {
    while !until.is_over() {
        until.wait(SETTLING);
        registry.settle();
    }
}

fn accept(listener: &TcpListener, entry: &Entry) {
    for stream in listener.incoming() {
        if entry.ending.is_over() {
            break;
        }
        match stream {
            Ok(stream) => drop(entry.admit(stream.into())),
            // Too many files are open, for example: it may pass.
            Err(_) => entry.ending.wait(Duration::from_millis(100)),
        }
    }
}

impl Entry {
    /// Serves a client on a thread of its own.
    fn admit(&self, stream: Stream) -> io::Result<()> {
        let number = self.pending.enter(stream.try_clone()?);
        let (config, registry) = (Arc::clone(&self.config), Arc::clone(&self.registry));
        let pending = Arc::clone(&self.pending);
        let serve = move || {
            let _ = greet(stream, &config, &registry, || pending.leave(number));
            pending.leave(number);
        };
        let named = thread::Builder::new().name("share client".into()).stack_size(STACK);
        let started = named.spawn(serve);
        started.map(drop).inspect_err(|_| self.pending.leave(number))
    }
}

fn greet(
    stream: Stream,
    config: &Arc<ServerConfig>,
    registry: &VolumeRegistry,
    known: impl FnOnce(),
) -> io::Result<()> {
    let until = Instant::now() + GREETING;
    let (mut reader, writer) = line::accept(stream, config, until)?;
    let hello = connection::greet(&mut reader)?;
    connection::serve(registry, &hello, reader, writer, known);
    Ok(())
}

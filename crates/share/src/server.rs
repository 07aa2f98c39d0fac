//! The server: it accepts connections, and ends in order.

use crate::admin;
use crate::connection;
use crate::ending::Ending;
use crate::error::{Doing, Result};
use crate::hub::{Hub, TablesOf, Volume};
use crate::identity::{self, Fingerprint};
use crate::line;
use crate::strangers::Strangers;
use oblivio_store::share::Clock;
use rustls::ServerConfig;
use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
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
    hub: Arc<Hub>,
    address: SocketAddr,
    fingerprint: Fingerprint,
    ending: Arc<Ending>,
    threads: Vec<JoinHandle<()>>,
}

impl Server {
    /// Serves the folder on an address, with these volumes, which are made if they are not there.
    ///
    /// # Errors
    /// The folder or a volume cannot be opened, or the address not be used.
    pub fn start(dir: &Path, listen: &str, volumes: &[String]) -> Result<Self> {
        Self::serve(Hub::open(dir, None)?, dir, listen, volumes)
    }

    /// As [`Self::start`], with the tables of all volumes in stores somewhere else.
    ///
    /// # Errors
    /// As for [`Self::start`], and those of the stores.
    pub fn with_tables(
        dir: &Path,
        listen: &str,
        volumes: &[String],
        tables: TablesOf,
    ) -> Result<Self> {
        Self::serve(Hub::open(dir, Some(tables))?, dir, listen, volumes)
    }

    /// As [`Self::start`]; leases follow this clock. For tests.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub fn with_clock(dir: &Path, listen: &str, volumes: &[String], clock: Clock) -> Result<Self> {
        Self::serve(Hub::with_clock(dir, clock, None)?, dir, listen, volumes)
    }

    fn serve(hub: Hub, dir: &Path, listen: &str, volumes: &[String]) -> Result<Self> {
        let hub = Arc::new(hub);
        volumes.iter().try_for_each(|name| hub.open_volume(name))?;
        hub.expect_tables()?;
        let (config, fingerprint) = identity::load(dir)?;
        let listener = TcpListener::bind(listen).doing(format_args!("listening on {listen}"))?;
        let address = listener.local_addr().doing("listening")?;
        let ending = Arc::new(Ending::default());
        let control = admin::listen(dir)?;
        let (hub_of, until) = (Arc::clone(&hub), Arc::clone(&ending));
        let mut threads = vec![spawn("control", move || control.serve(&hub_of, &until))?];
        let (hub_of, until) = (Arc::clone(&hub), Arc::clone(&ending));
        threads.push(spawn("accept", move || accept(&listener, &config, &hub_of, &until))?);
        let (hub_of, until) = (Arc::clone(&hub), Arc::clone(&ending));
        threads.push(spawn("settle", move || settle(&hub_of, &until))?);
        Ok(Self { hub, address, fingerprint, ending, threads })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What its clients know it by.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Ends all connections, as a network does that fails. Clients come again.
    pub fn cut_connections(&self) {
        self.hub.cut_all();
    }

    /// Ends it from another thread: [`Server::wait`] returns.
    #[must_use]
    pub fn ending(&self) -> Arc<Ending> {
        Arc::clone(&self.ending)
    }

    /// Waits until it is to end, ends all connections, and makes durable what is not.
    ///
    /// # Errors
    /// Those of storage.
    pub fn wait(self) -> Result<()> {
        while !self.ending.is_over() {
            self.ending.wait(Duration::from_secs(3600));
        }
        // The accepting thread waits for a connection.
        let _ = TcpStream::connect_timeout(&self.address, Duration::from_secs(1));
        self.hub.cut_all();
        for thread in self.threads {
            let _ = thread.join();
        }
        let volumes = self.hub.volumes();
        drop(self.hub);
        volumes.iter().try_for_each(|(_, volume)| volume.share.settle())?;
        leave(&volumes);
        Ok(())
    }
}

/// Waits until the threads of connections that were cut have left the volumes, so that the caller
/// closes them itself: then another server can have them. One that waits for somebody's record
/// takes longer than anybody should wait.
fn leave(volumes: &[(String, Arc<Volume>)]) {
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
fn settle(hub: &Hub, until: &Ending) {
    while !until.is_over() {
        until.wait(SETTLING);
        for (_, volume) in hub.volumes() {
            // Whoever waits for a record next gets the error.
            let _ = volume.share.settle();
        }
    }
}

fn accept(listener: &TcpListener, config: &Arc<ServerConfig>, hub: &Arc<Hub>, until: &Arc<Ending>) {
    let strangers = Arc::new(Strangers::new(STRANGERS));
    for stream in listener.incoming() {
        if until.is_over() {
            break;
        }
        let Ok(stream) = stream else {
            // Too many files are open, for example: it may pass.
            until.wait(Duration::from_millis(100));
            continue;
        };
        let Ok(copy) = stream.try_clone() else { continue };
        let number = strangers.enter(copy);
        let (config, hub) = (Arc::clone(config), Arc::clone(hub));
        let strangers_of = Arc::clone(&strangers);
        let serve = move || {
            let _ = greet(stream, &config, &hub, || strangers_of.leave(number));
            strangers_of.leave(number);
        };
        let named = thread::Builder::new().name("share client".into()).stack_size(STACK);
        if named.spawn(serve).is_err() {
            strangers.leave(number);
        }
    }
    strangers.cut_all();
}

fn greet(
    stream: TcpStream,
    config: &Arc<ServerConfig>,
    hub: &Hub,
    known: impl FnOnce(),
) -> io::Result<()> {
    let until = Instant::now() + GREETING;
    // Finds out about clients that are gone without a word.
    let _ = rustix::net::sockopt::set_socket_keepalive(&stream, true);
    let (mut reader, writer) = line::accept(stream, config, until)?;
    let hello = connection::greet(&mut reader)?;
    connection::serve(hub, &hello, reader, writer, known);
    Ok(())
}

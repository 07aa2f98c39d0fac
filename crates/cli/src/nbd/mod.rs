//! `nbd`: a volume as a disk, for any client of the network block device protocol.
//!
//! `negotiation` agrees on a connection; then `transmission` decodes its requests into one queue
//! for all connections. One `server` works through the queue on a
//! [`Disk`](oblivio_volume::disk::Disk), with `readers` beside it where reads are no accesses, and
//! `replies` go back. A `budget` bounds a client's requests under way. `session` holds the threads
//! together, `listen` accepts clients, `tls` encrypts their connections if `certificates` are
//! given, `stop` ends them well, `wire` has the protocol's numbers. `within` serves blocks of
//! another kind.

mod budget;
mod certificates;
pub mod fuzzing;
mod listen;
mod negotiation;
mod readers;
mod replies;
pub(crate) mod request;
pub(crate) mod server;
mod session;
mod stop;
#[cfg(test)]
mod tests;
mod tls;
mod transmission;
pub(crate) mod wire;
pub mod within;

use crate::args::NbdArgs;
use crate::disk::{self, Opened};
use crate::exit::usage;
use crate::human;
use crate::recorder::Recorder;
use anyhow::Result;
use listen::{Guard, Listener, Place};
use rustls::ServerConfig;
use session::Options;
use std::sync::Arc;
use std::time::Duration;

/// Runs `oblivio nbd`.
pub fn run(args: &NbdArgs) -> Result<()> {
    let (serve, place) = (&args.serve, place(args)?);
    let Some(store) = disk::begin(serve)? else { return Ok(()) };
    let tls = tls_config(args)?;
    let Opened { disk, pulse, on_request, signals, recorder } = disk::open(serve, store)?;
    let size = human::size(disk.size());
    let mut listener = Listener::open(&place)?;
    if let Some(tls) = tls {
        listener = listener.with_tls(tls);
    }
    let shown = match &place {
        Place::Socket(path) => path.display().to_string(),
        Place::Address(address) => listener.address().unwrap_or(*address).to_string(),
    };
    let options = Options {
        read_only: serve.read_only,
        commit_every: Duration::from_secs(serve.commit_every),
        paced: serve.open.pace.is_some(),
        timeout: Duration::from_secs(serve.timeout),
        on_request: Some(on_request),
        pulse,
    };
    let serving = session::serve(disk, listener, options)?;
    let volume = serve.volume.display();
    disk::announce(serve, &format!("Serving {volume}, a disk of {size}, on {shown}."))?;
    Recorder::finish_after(recorder, stop::until_ended(serving, signals))
}

/// The TLS configuration, if requested.
fn tls_config(args: &NbdArgs) -> Result<Option<Arc<ServerConfig>>> {
    let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) else { return Ok(None) };
    certificates::config(cert, key, args.tls_client_ca.as_deref()).map(Some)
}

fn place(args: &NbdArgs) -> Result<Place> {
    match (&args.socket, &args.listen) {
        (Some(_), _) if args.tls_cert.is_some() => {
            let hint = "Leave it out: only this user can reach a socket.";
            Err(usage("TLS is for --listen", hint))
        }
        (Some(_), _) if args.insecure => {
            let hint = "Leave it out: only this user can reach a socket.";
            Err(usage("--insecure is for --listen", hint))
        }
        (Some(path), _) => Place::socket(path),
        (None, Some(address)) => Place::address(address, guard(args)),
        (None, None) => Err(usage("where to serve it?", "Say --socket PATH or --listen ADDR.")),
    }
}

/// The protection of the disk, or that none is wanted.
fn guard(args: &NbdArgs) -> Guard {
    if args.insecure || args.any_client || args.tls_client_ca.is_some() {
        Guard::AsAsked
    } else if args.tls_cert.is_some() {
        Guard::Encryption
    } else {
        Guard::None
    }
}

//! `nbd`: a volume as a disk, for any client of the network block device protocol.
//!
//! A connection is agreed on in `negotiation`; then `transmission` decodes its requests into one
//! queue for all connections, and one `server` works through it on a
//! [`Disk`](oblivio_volume::disk::Disk), with `readers` beside it where reads are no accesses. `session` holds the threads together, `listen` is where
//! clients come in, `tls` is what their connections go through if `certificates` says so, `stop`
//! ends it well, `wire` has the protocol's numbers; `within` is the door for whoever has blocks of
//! another kind.

mod certificates;
pub mod fuzzing;
mod listen;
mod negotiation;
mod readers;
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
use crate::exit::usage;
use crate::human;
use crate::mount::{self, background, log};
use crate::open;
use crate::queue::Pulse;
use crate::recorder::Recorder;
use crate::signals;
use crate::watch::Publisher;
use anyhow::{Context, Result};
use listen::{Listener, Place};
use oblivio_volume::disk::Disk;
use rustls::ServerConfig;
use session::Options;
use std::sync::Arc;
use std::time::Duration;

/// Runs `oblivio nbd`.
pub fn run(args: &NbdArgs) -> Result<()> {
    if args.commit_every == 0 || args.timeout == 0 {
        return Err(usage("a time of 0 seconds makes no sense", "Use 1 or more."));
    }
    let place = place(args)?;
    let store = open::store(&args.volume)?;
    if args.background && !args.child {
        return background::start();
    }
    let tls = tls_config(args)?;
    let recorder = args.open.trace_out.as_deref().map(Recorder::to_file).transpose()?;
    let (store, pulse) = mount::layers(store);
    let opened = open::volume_over(store, &args.volume, &args.open, recorder.as_ref(), true);
    let (volume, publisher) = opened?;
    // From here on a signal ends the server in good order, not the process.
    let signals = signals::catch()?;
    publisher.describe(&volume.info()?);
    let disk = Disk::open(Box::new(volume)).with_context(|| args.volume.display().to_string())?;
    let size = human::size(disk.size());
    let mut listener = Listener::open(&place)?;
    if let Some(tls) = tls {
        listener = listener.with_tls(tls);
    }
    let shown = match &place {
        Place::Socket(path) => path.display().to_string(),
        Place::Address(address) => listener.address().unwrap_or(*address).to_string(),
    };
    if let Place::Address(address) = &place
        && args.tls_cert.is_some()
        && args.tls_client_ca.is_none()
        && !address.ip().is_loopback()
    {
        log::note(&format!(
            "the connection is encrypted, but whoever reaches {shown} has the disk; with \
             --tls-client-ca only those who have a certificate"
        ));
    }
    let serving = session::serve(disk, listener, options(args, pulse, publisher))?;
    let line = format!("Serving {}, a disk of {size}, on {shown}.", args.volume.display());
    if args.child {
        let id = std::process::id();
        let line = format!("{line} `kill {id}` ends it.");
        background::up((!args.open.quiet).then_some(line))?;
    } else if !args.open.quiet {
        human::say(format!("{line} Ctrl-C ends it."))?;
    }
    log::ready();
    let ended = stop::until_ended(serving, signals);
    let recorded = recorder.map_or(Ok(()), Recorder::finish);
    ended?;
    recorded
}

/// How TLS is spoken, if it is asked for.
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
        (None, Some(address)) => Place::address(address, args.tls_cert.is_some(), args.insecure),
        (None, None) => Err(usage("where to serve it?", "Say --socket PATH or --listen ADDR.")),
    }
}

fn options(args: &NbdArgs, pulse: Pulse, publisher: Publisher) -> Options {
    Options {
        read_only: args.read_only,
        commit_every: Duration::from_secs(args.commit_every),
        paced: args.open.pace.is_some(),
        timeout: Duration::from_secs(args.timeout),
        on_request: Some(Arc::new(move |event| publisher.ordinary(event))),
        pulse,
    }
}

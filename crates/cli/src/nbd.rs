//! `nbd`: a volume as a disk, for any client of the network block device protocol.

use crate::args::NbdArgs;
use crate::disk::{self, Opened};
use crate::exit::usage;
use crate::human;
use crate::recorder::Recorder;
use crate::signals;
use anyhow::Result;
use oblivio_serve::nbd::{self, Guard, Listener, Place};

/// Runs `oblivio nbd`.
pub fn run(args: &NbdArgs) -> Result<()> {
    let (serve, place) = (&args.serve, place(args)?);
    let Some(store) = disk::begin(serve)? else { return Ok(()) };
    let tls = match (&args.tls_cert, &args.tls_key) {
        (Some(cert), Some(key)) => Some(nbd::tls_config(cert, key, args.tls_client_ca.as_deref())?),
        _ => None,
    };
    let Opened { disk, options, signals, recorder } = disk::open(serve, store)?;
    let size = human::size(disk.size());
    let mut listener = Listener::open(&place)?;
    if let Some(tls) = tls {
        listener = listener.with_tls(tls);
    }
    let shown = match &place {
        Place::Socket(path) => path.display().to_string(),
        Place::Address(address) => listener.address().unwrap_or(*address).to_string(),
    };
    let serving = nbd::serve(disk, listener, options)?;
    let volume = serve.volume.display();
    disk::announce(serve, &format!("Serving {volume}, a disk of {size}, on {shown}."))?;
    let ended = nbd::until_ended(serving, |ask| signals::forward(signals, ask));
    Recorder::finish_after(recorder, ended.map_err(Into::into))
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
        (Some(path), _) => Ok(Place::socket(path)?),
        (None, Some(address)) => Ok(Place::address(address, guard(args))?),
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

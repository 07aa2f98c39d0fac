//! `nbd`: a volume as a disk, for any client of the network block device protocol.

use crate::args::NbdArgs;
use crate::disk::{self, OpenedDisk};
use crate::exit::usage;
use crate::human;
use crate::others;
use crate::recorder::Recorder;
use crate::signals;
use anyhow::Result;
use oblivio_serve::LaneMedium;
use oblivio_serve::nbd::{self, DiskOptions, ListenGuard, ListenPlace, Listener, TlsConfig};
use oblivio_volume::disk::Disk;
use signal_hook::iterator::Signals;
use std::sync::Arc;

/// Runs `oblivio nbd`.
pub fn run(args: &NbdArgs) -> Result<()> {
    let (serve, front) = (&args.serve, Front::of(args)?);
    let Some(store) = disk::begin(serve)? else { return Ok(()) };
    let front = front.with_tls()?;
    let OpenedDisk { disk, lanes, options, signals, recorder } = disk::open(serve, store)?;
    let ended = front.serve((disk, lanes), options, signals)?;
    Recorder::finish_after(recorder, ended.map_err(Into::into).and_then(|()| others::handed_over()))
}

/// Where and how clients connect.
pub struct Front<'a> {
    args: &'a NbdArgs,
    place: ListenPlace,
    tls: Option<Arc<TlsConfig>>,
}

impl<'a> Front<'a> {
    /// As the options say.
    ///
    /// # Errors
    /// They make no sense, or the place is taken.
    pub fn of(args: &'a NbdArgs) -> Result<Self> {
        Ok(Self { args, place: place(args)?, tls: None })
    }

    /// With the files that TLS needs, if clients must use it.
    ///
    /// # Errors
    /// They cannot be used.
    pub fn with_tls(mut self) -> Result<Self> {
        let args = self.args;
        if let (Some(cert), Some(key)) = (&args.tls_cert, &args.tls_key) {
            self.tls = Some(nbd::tls_config(cert, key, args.tls_client_ca.as_deref())?);
        }
        Ok(self)
    }

    /// Serves a disk and says so, until it has ended: that is the inner result.
    ///
    /// # Errors
    /// It cannot begin.
    pub fn serve(
        self,
        (disk, lanes): (Disk, Vec<Option<LaneMedium<Disk>>>),
        options: DiskOptions,
        signals: Signals,
    ) -> Result<oblivio_serve::Result<()>> {
        let size = human::size(disk.size());
        let mut listener = Listener::open(&self.place)?;
        if let Some(tls) = self.tls {
            listener = listener.with_tls(tls);
        }
        let shown = match &self.place {
            ListenPlace::Socket(path) => path.display().to_string(),
            ListenPlace::Address(address) => listener.address().unwrap_or(*address).to_string(),
        };
        let serving = nbd::serve(disk, lanes, listener, options)?;
        let serve = &self.args.serve;
        let volume = serve.volume.display();
        disk::announce(serve, &format!("Serving {volume}, a disk of {size}, on {shown}."))?;
        Ok(nbd::until_ended(serving, |ask| signals::forward(signals, ask)))
    }
}

fn place(args: &NbdArgs) -> Result<ListenPlace> {
    match (&args.socket, &args.listen) {
        (Some(_), _) if args.tls_cert.is_some() => {
            let hint = "Leave it out: only this user can reach a socket.";
            Err(usage("TLS is for --listen", hint))
        }
        (Some(_), _) if args.insecure => {
            let hint = "Leave it out: only this user can reach a socket.";
            Err(usage("--insecure is for --listen", hint))
        }
        (Some(path), _) => Ok(ListenPlace::socket(path)?),
        (None, Some(address)) => Ok(ListenPlace::address(address, guard(args))?),
        (None, None) => Err(usage("where to serve it?", "Say --socket PATH or --listen ADDR.")),
    }
}

/// The protection of the disk, or that none is wanted.
fn guard(args: &NbdArgs) -> ListenGuard {
    if args.insecure || args.any_client || args.tls_client_ca.is_some() {
        ListenGuard::AsAsked
    } else if args.tls_cert.is_some() {
        ListenGuard::Encryption
    } else {
        ListenGuard::None
    }
}

//! `nbd share://…`: a shared volume as a disk, for one computer at a time.

use super::line::{known, line};
use crate::args::NbdArgs;
use crate::exit::{Code, fault, usage};
use crate::mount::background;
use crate::nbd::Front;
use crate::{passphrase, signals};
use anyhow::Result;
use oblivio_app::shared::TIMEOUT;
use oblivio_client::disk::{Claim, SharedDisk};
use oblivio_client::{Client, ClientOptions, unlock};
use oblivio_serve::Pulse;
use oblivio_serve::nbd::DiskOptions;
use oblivio_share::ShareAddress;
use oblivio_volume::Error;
use std::sync::Arc;
use std::time::Duration;

/// Runs the command.
pub fn run(args: &NbdArgs, address: &ShareAddress) -> Result<()> {
    let serve = &args.serve;
    let front = Front::of(args)?;
    expect_sense(args)?;
    if serve.background && !serve.child {
        return background::again(&serve.open);
    }
    let front = front.with_tls()?;
    let line = line(address, args.serve.open.token_file.as_deref())?;
    let passphrase = passphrase::known(&serve.open.passphrase)?;
    let keyed = unlock(&line, &passphrase)?;
    drop(passphrase);
    let known = known(&keyed, address, &serve.open)?;
    let claim = Claim { computer: known.computer()?, take_over: args.serve.open.take_over };
    // A call that brings many blocks takes longer than one without progress should.
    let timeout = TIMEOUT.max(Duration::from_secs(serve.timeout));
    let options = ClientOptions { timeout, ..ClientOptions::default() };
    let client = Client::open(Box::new(line), keyed, Box::new(known), options)?;
    let pulse = Pulse::default();
    let shared = SharedDisk::open(client, claim, Arc::clone(&pulse)).map_err(in_use)?;
    // From here on a signal ends the server in order, not the process.
    let ended = signals::catch().and_then(|signals| {
        let options = DiskOptions {
            read_only: serve.read_only,
            commit_every: Duration::from_secs(serve.commit_every),
            paced: false,
            timeout: Duration::from_secs(serve.timeout),
            on_request: None,
            pulse,
        };
        front.serve((shared.disk()?, Vec::new()), options, signals)
    });
    // Whatever happened, the next one who wants the disk should not have to wait for it.
    let closed = shared.close();
    ended??;
    Ok(closed?)
}

fn expect_sense(args: &NbdArgs) -> Result<()> {
    let (serve, open) = (&args.serve, &args.serve.open);
    if serve.commit_every == 0 || serve.timeout == 0 {
        return Err(usage("a time of 0 seconds makes no sense", "Use 1 or more."));
    }
    let hides = open.pad || open.pace.is_some() || serve.cover.is_some() || open.strict;
    if hides || open.trace_out.is_some() || open.unobserved {
        let what = "a shared volume has no pace, pad, cover, strict or trace, and its server sees what is read";
        return Err(usage(what, "Leave that option out."));
    }
    Ok(())
}

/// The error of a disk that another computer has.
fn in_use(error: Error) -> anyhow::Error {
    match error {
        Error::Busy => fault(
            Code::Busy,
            "another computer serves this disk",
            "End `oblivio nbd` there. If that computer died or is lost, say --take-over: it can \
             write nothing more then.",
        ),
        other => other.into(),
    }
}

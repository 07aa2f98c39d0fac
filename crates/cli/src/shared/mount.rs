//! `mount share://…`: a shared volume as a directory.

use super::line::{line, open};
use crate::args::MountArgs;
use crate::exit::usage;
use crate::human::say;
use crate::mount::{self, background};
use crate::{passphrase, signals};
use anyhow::Result;
use oblivio_app::shared::{TIMEOUT, environment, make_root};
use oblivio_client::files::ClientFiles;
use oblivio_client::unlock;
use oblivio_privatefs::{FsOptions, PrivateFs};
use oblivio_serve::mount::Look;
use oblivio_serve::privatefs::{SharedMountOptions, serve, told};
use oblivio_share::ShareAddress;
use std::ffi::OsString;
use std::sync::Arc;
use std::time::Duration;

/// Runs the command.
pub fn run(args: &MountArgs, address: &ShareAddress) -> Result<()> {
    let mut args = args.clone();
    mount::apply(&mut args)?;
    let more = args.scrub.is_some() || args.cover.is_some() || args.open.trace_out.is_some();
    if args.remount || args.open.pad || args.open.pace.is_some() || more {
        let what = "a shared volume has no remount, pace, pad, cover, scrub or trace";
        return Err(usage(what, "Leave that option out."));
    }
    let dir = mount::directory(&args)?;
    if args.fake {
        return Ok(());
    }
    if args.background && !args.child {
        return background::again(&args.open);
    }
    let line = line(address, args.open.token_file.as_deref())?;
    let passphrase = passphrase::known(&args.open.passphrase)?;
    let keyed = unlock(&line, &passphrase)?;
    drop(passphrase);
    let timeout = args.timeout.map_or(TIMEOUT, Duration::from_secs);
    let client = open(line, keyed, address, &args.open, timeout)?;
    // From here on a signal ends the mount in order, not the process.
    let signals = signals::catch()?;
    let files = Arc::new(ClientFiles::new(client)?);
    make_root(&files)?;
    let fs_options = FsOptions { strict: args.open.strict, ..FsOptions::default() };
    let fs = PrivateFs::new(told(Arc::clone(&files) as _), environment(), fs_options)?;
    let mounted = serve(Arc::new(fs), &dir, &options(&args, address))?;
    let shown = args.dir.display();
    if args.child {
        let line = format!("Mounted {address} on {shown}. `oblivio umount {shown}` unmounts.");
        background::up((!args.open.quiet).then_some(line))?;
    } else if !args.open.quiet {
        say(format!("Mounted {address} on {shown}. Ctrl-C or `oblivio umount {shown}` unmounts."))?;
    }
    background::ready();
    signals::forward(signals, move || detach(&dir))?;
    let ended = mounted.wait();
    let closed = files.close();
    ended?;
    Ok(closed?)
}

/// Ends the mount; open files keep what they have until they are closed.
fn detach(dir: &std::path::Path) {
    if let Err(error) = oblivio_serve::mount::umount(dir, true, drop) {
        oblivio_serve::log::note(&format!("not unmounted: {error}"));
    }
}

fn options(args: &MountArgs, address: &ShareAddress) -> SharedMountOptions {
    let look = Look {
        source: OsString::from(address.to_string()),
        read_only: args.read_only,
        allow_other: args.allow_other,
        ..args.look.clone()
    };
    SharedMountOptions {
        look,
        strict: args.open.strict,
        write_every: Duration::from_secs(args.commit_every),
        ..SharedMountOptions::default()
    }
}

//! The line to a shared volume, and a session with it.

use super::{state, token};
use crate::args::OpenArgs;
use anyhow::Result;
use oblivio::silence::WatchedShare;
use oblivio_client::files::Files;
use oblivio_client::{Client, FileKnown, Keyed, Known, Options, disk};
use oblivio_engine::pyramid::share::Head;
use oblivio_privatefs::{NewNode, Options as FsOptions, PrivateFs};
use oblivio_serve::privatefs::environment;
use oblivio_share::{Address, Patience, RemoteShare};
use oblivio_volume::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// How long a transaction may take, unless the user says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a call of the server may take, and how long it is tried again: a client makes it again
/// by itself, and must end in time.
pub const PATIENCE: Patience =
    Patience { reply: Duration::from_secs(10), outage: Duration::from_secs(2) };

/// The line to a volume, which says when the server keeps it waiting.
pub type Line = WatchedShare<RemoteShare>;

/// The line to a volume.
pub fn line(address: &Address, token_file: Option<&Path>) -> Result<Line> {
    let token = token::of(address, token_file)?;
    Ok(WatchedShare::over(RemoteShare::new(token, PATIENCE)?, address.to_string()))
}

/// What this computer knows of a volume. One process at a time has it.
pub fn known(keyed: &Keyed, address: &Address, args: &OpenArgs) -> Result<FileKnown> {
    let (place, volume) = (address.to_string(), keyed.volume());
    let mut known = FileKnown::open(&state::folder()?, &place, volume, args.accept_other_volume)?;
    if args.accept_rollback {
        known.note(Head::default(), true)?;
    }
    Ok(known)
}

/// Begins a session with a volume.
pub fn open(
    line: Line,
    keyed: Keyed,
    address: &Address,
    args: &OpenArgs,
    timeout: Duration,
) -> Result<Client> {
    let known = known(&keyed, address, args)?;
    let options = Options { timeout, notices: true, ..Options::default() };
    Ok(Client::open(Box::new(line), keyed, Box::new(known), options)?)
}

/// The user who makes a file system or mounts it.
pub fn owner() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

/// Makes the root directory, if there is none.
///
/// # Errors
/// `HoldsDisk`; those of the line.
pub fn make_root(files: &Arc<Files>) -> Result<()> {
    let fs = PrivateFs::new(Arc::clone(files) as _, environment(), FsOptions::default())?;
    let (uid, gid) = owner();
    let node = NewNode { mode: 0o755, uid, gid };
    match fs.create_root_unless(disk::ROOT, node)? {
        true => Ok(()),
        false => {
            files.close()?;
            Err(Error::HoldsDisk.into())
        }
    }
}

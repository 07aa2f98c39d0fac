//! The line to a shared volume, and a session with it.

use super::failure::error;
use super::token::{self, TokenError};
use crate::silence::WatchedShare;
use oblivio_client::files::ClientFiles;
use oblivio_client::{FileKnown, HeadKeeper, Keyed, disk};
use oblivio_crypto::{Entropy, OsEntropy};
use oblivio_engine::pyramid::share::Head;
use oblivio_privatefs::{ClientEnvironment, FsOptions, NewNode, PrivateFs};
use oblivio_share::{LinePatience, RemoteShare, ShareAddress};
use oblivio_volume::{Error, Result};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// How long a transaction may take, unless the user says otherwise.
pub const TIMEOUT: Duration = Duration::from_secs(60);
/// How long a call of the server may take, and how long it is tried again: a client makes it again
/// by itself, and must end in time.
const PATIENCE: LinePatience =
    LinePatience { reply: Duration::from_secs(10), outage: Duration::from_secs(2) };

/// The line to a volume, which says when the server keeps it waiting.
pub type ShareLine = WatchedShare<RemoteShare>;

/// The address of a shared volume; none for a place of another kind.
#[must_use]
pub fn address(place: &Path) -> Option<oblivio_share::Result<ShareAddress>> {
    let text = place.to_str()?;
    text.starts_with("share://").then(|| ShareAddress::parse(text))
}

/// The line to a volume, with the token in the user's file or the one that was used before. `state`
/// is where this computer keeps tokens, if it keeps any.
///
/// # Errors
/// There is no token, or the line cannot be made from it.
pub fn line(
    address: &ShareAddress,
    token_file: Option<&Path>,
    state: Option<&Path>,
) -> std::result::Result<ShareLine, TokenError> {
    let token = token::of(address, token_file, state)?;
    Ok(WatchedShare::over(RemoteShare::new(token, PATIENCE)?, address.to_string()))
}

/// What this computer knows of a volume, in this folder. One process at a time has it. With
/// `any_volume` another one may have been at this address, and with `accept_rollback` whatever the
/// server shows is the newest state.
///
/// # Errors
/// `Busy`, `OtherVolume`, `Forgotten`.
pub fn known(
    state: &Path,
    address: &ShareAddress,
    keyed: &Keyed,
    any_volume: bool,
    accept_rollback: bool,
) -> Result<FileKnown> {
    let mut known = FileKnown::open(state, &address.to_string(), keyed.volume(), any_volume)?;
    if accept_rollback {
        known.note(Head::default(), true)?;
    }
    Ok(known)
}

/// The time and the randomness of this computer, for the file system of a shared volume.
#[must_use]
pub fn environment() -> ClientEnvironment {
    ClientEnvironment {
        now: Box::new(|| now().into()),
        random: Box::new(|| {
            let mut bytes = [0; 16];
            OsEntropy.fill(&mut bytes);
            bytes
        }),
    }
}

#[expect(clippy::disallowed_methods, reason = "files carry the time of the computer's clock")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// The user who makes a file system or mounts it.
#[must_use]
pub fn owner() -> (u32, u32) {
    (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw())
}

/// Makes the root directory, if there is none.
///
/// # Errors
/// `HoldsDisk`; those of the line.
pub fn make_root(files: &Arc<ClientFiles>) -> Result<()> {
    let failed = |why| error(why, b"");
    let transactions = Arc::clone(files) as _;
    let fs = PrivateFs::new(transactions, environment(), FsOptions::default()).map_err(failed)?;
    let (uid, gid) = owner();
    let node = NewNode { mode: 0o755, uid, gid, mtime: now().into() };
    match fs.create_root_unless(disk::ROOT, node).map_err(failed)? {
        true => Ok(()),
        false => {
            files.close()?;
            Err(Error::HoldsDisk)
        }
    }
}

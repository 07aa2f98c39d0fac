//! The passphrases of a shared volume. They stand in the header at the server, which exchanges one
//! header for the next: of two computers that change it at once, one finds the other's and tries
//! again.

use crate::error::of_share;
use crate::volume::read_header;
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::share::{Share, ShareError};
use oblivio_volume::{Error, Header, Result};

/// Others changed the header this often in between.
const MOST_TRIES: u32 = 8;

/// Lets one more passphrase open the volume. How many there are then.
///
/// # Errors
/// As [`Header::add_passphrase`]; those of the line.
pub fn add_passphrase(
    share: &dyn Share,
    known: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<usize> {
    exchange(share, |header| header.add_passphrase(known, new, kdf).map(drop))
}

/// Takes a passphrase away. How many there are then.
///
/// # Errors
/// As [`Header::remove_passphrase`]; those of the line.
pub fn remove_passphrase(share: &dyn Share, victim: &Passphrase) -> Result<usize> {
    exchange(share, |header| header.remove_passphrase(victim))
}

/// Replaces a passphrase by another.
///
/// # Errors
/// As [`Header::change_passphrase`]; those of the line.
pub fn change_passphrase(
    share: &dyn Share,
    old: &Passphrase,
    new: &Passphrase,
    kdf: KdfParams,
) -> Result<usize> {
    exchange(share, |header| header.change_passphrase(old, new, kdf))
}

fn exchange(share: &dyn Share, change: impl Fn(&mut Header) -> Result<()>) -> Result<usize> {
    let (mut header, mut stored) = read_header(share)?;
    for _ in 0..MOST_TRIES {
        change(&mut header)?;
        let bytes = header.to_bytes();
        match share.put_parameters(stored.version, stored.slot_bytes, &bytes) {
            Ok(_) => return Ok(header.passphrases()),
            Err(ShareError::Version(_)) => (header, stored) = read_header(share)?,
            Err(error) => return Err(of_share(error)),
        }
        // The server took it, and its answer was lost.
        if stored.header == bytes {
            return Ok(header.passphrases());
        }
    }
    Err(Error::Busy)
}

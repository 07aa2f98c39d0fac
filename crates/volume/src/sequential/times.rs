//! The access times beside the state of a cleanly closed volume. Without them the next opening
//! reads all map leaves, less than a hundredth of the disk, to restore them.
//!
//! Sealed parts, one behind the other. The state holds their digest, so they belong to it alone.

use super::reads::DiskReads;
use crate::{Error, Result};
use oblivio_crypto::{
    Kind, Place, SEAL_HEADER, SEAL_OVERHEAD, Sealer, TAG_BYTES, VolumeId, digest,
};
use oblivio_store::{ReadAt, Slots, WriteAt};

/// The object that holds them.
pub const TIMES_OBJECT: &str = "times";
/// Bytes of a part.
const PART: usize = 1 << 20;

/// Bytes of the object for `times` bytes of times.
pub fn object_bytes(times: u64) -> u64 {
    times + times.div_ceil(PART as u64) * SEAL_OVERHEAD as u64
}

fn place(volume: VolumeId, epoch: u64, part: usize) -> Place {
    Place { volume, kind: Kind::Times, index: part as u64, version: epoch }
}

/// Writes them durably to an object; gives their identity.
///
/// # Errors
/// Those of the store and of the sealer.
pub fn write(
    store: &dyn Slots,
    sealer: &mut Sealer,
    (object, (volume, epoch)): (&str, (VolumeId, u64)),
    times: &[u8],
) -> Result<[u8; 32]> {
    let (mut tags, mut offset) = (Vec::new(), 0);
    for (at, part) in times.chunks(PART).enumerate() {
        let mut sealed = vec![0; SEAL_HEADER];
        sealed.extend_from_slice(part);
        sealed.resize(part.len() + SEAL_OVERHEAD, 0);
        let tag = sealer.seal(&place(volume, epoch, at), &mut sealed);
        tags.extend_from_slice(&tag.map_err(|error| Error::Closed(error.to_string()))?.0);
        store.write(&[WriteAt::new(object, offset, &sealed)])?;
        offset += sealed.len() as u64;
    }
    store.sync(&[object])?;
    Ok(digest(&tags))
}

/// Reads `bytes` bytes of times from an object; `None` if they are not those that the state names.
/// They must then be rebuilt.
///
/// # Errors
/// Those of the store: an outage is no damage.
pub fn read(
    (store, reads): (&dyn Slots, &DiskReads),
    sealer: &mut Sealer,
    (object, (volume, epoch)): (&str, (VolumeId, u64)),
    identity: [u8; 32],
    bytes: usize,
) -> Result<Option<Vec<u8>>> {
    let (mut times, mut tags, mut offset) = (Vec::with_capacity(bytes), Vec::new(), 0);
    for at in 0..bytes.div_ceil(PART) {
        let mut sealed = vec![0; PART.min(bytes - times.len()) + SEAL_OVERHEAD];
        let part = ReadAt { object, offset, buf: &mut sealed };
        if reads.read_copy(store, part)?.is_some() {
            return Ok(None);
        }
        offset += sealed.len() as u64;
        tags.extend_from_slice(&sealed[sealed.len() - TAG_BYTES..]);
        match sealer.open(&place(volume, epoch, at), &mut sealed) {
            Ok(plain) => times.extend_from_slice(plain),
            Err(_) => return Ok(None),
        }
    }
    Ok((digest(&tags) == identity).then_some(times))
}

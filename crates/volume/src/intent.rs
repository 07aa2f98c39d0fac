//! The read-intent log: what is about to be read is made durable before it is read.
//!
//! A crashed session has shown paths. Opened again at its last commit, the volume replays the
//! logged batches, which shows exactly the same paths and remaps their blocks; so no path is
//! shown twice because of what the user does after the crash.

use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_OVERHEAD, Sealer, VolumeId};
use oblivio_engine::tree::Intent;
use oblivio_store::{ReadAt, Store, WriteAt};

/// The object that holds the log.
pub const INTENT_OBJECT: &str = "intent";
/// Records begin at multiples of this.
const PAGE: usize = 4096;
/// No record is longer.
const MOST: usize = 1 << 20;

/// The log of one session.
pub struct IntentLog {
    volume: VolumeId,
    sealer: Sealer,
    /// The commit on which the logged batches stand.
    epoch: u64,
    /// Where the next record goes.
    offset: u64,
}

impl IntentLog {
    /// A log on commit `epoch`; what the object holds of earlier commits is void.
    pub fn new(volume: VolumeId, sealer: Sealer, epoch: u64) -> Self {
        Self { volume, sealer, epoch, offset: 0 }
    }

    /// Begins again on a newer commit.
    pub fn restart(&mut self, epoch: u64) {
        self.epoch = epoch;
        self.offset = 0;
    }

    fn place(&self, offset: u64) -> Place {
        // The epoch is the version: a record of another epoch does not open.
        Place { volume: self.volume, kind: Kind::Intent, index: offset, version: self.epoch }
    }

    /// Makes a batch's intent durable. The record's size follows from the batch's length.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn append(&mut self, store: &dyn Store, intent: &Intent) -> Result<()> {
        let mut plain = Vec::with_capacity(8 * (intent.ids.len() + 2));
        plain.extend_from_slice(&intent.seed.to_le_bytes());
        plain.extend_from_slice(&(intent.ids.len() as u64).to_le_bytes());
        for id in &intent.ids {
            plain.extend_from_slice(&id.to_le_bytes());
        }
        let sealed_bytes = (plain.len() + SEAL_OVERHEAD + 8).next_multiple_of(PAGE) - 8;
        plain.resize(sealed_bytes - SEAL_OVERHEAD, 0);
        let sealed = self
            .sealer
            .seal_vec(&self.place(self.offset), &plain)
            .map_err(|error| Error::Closed(error.to_string()))?;
        let mut record = (sealed.len() as u64).to_le_bytes().to_vec();
        record.extend_from_slice(&sealed);
        store.write(&[WriteAt { object: INTENT_OBJECT, offset: self.offset, data: &record }])?;
        store.sync(&[INTENT_OBJECT])?;
        self.offset += record.len() as u64;
        Ok(())
    }

    /// The intents that stand in the log on this commit, in order.
    ///
    /// # Errors
    /// `Tampered` when a record is damaged and later ones are not.
    pub fn load(&mut self, store: &dyn Store) -> Result<Vec<Intent>> {
        let mut intents = Vec::new();
        let len = store.len(INTENT_OBJECT)?.unwrap_or(0);
        self.offset = 0;
        while let Some((intent, next)) = self.read_record(store, self.offset, len)? {
            intents.push(intent);
            self.offset = next;
        }
        // The log ends here, unless a damaged record hides later ones.
        let mut ahead = self.offset + PAGE as u64;
        while ahead < len.min(self.offset + MOST as u64) {
            if self.read_record(store, ahead, len)?.is_some() {
                return Err(Error::Tampered("a record of the read-intent log".into()));
            }
            ahead += PAGE as u64;
        }
        Ok(intents)
    }

    fn read_record(
        &mut self,
        store: &dyn Store,
        offset: u64,
        len: u64,
    ) -> Result<Option<(Intent, u64)>> {
        if offset + 8 > len {
            return Ok(None);
        }
        let mut size = [0; 8];
        store.read(&mut [ReadAt { object: INTENT_OBJECT, offset, buf: &mut size }])?;
        let size = u64::from_le_bytes(size);
        if size > MOST as u64 || (size as usize) < SEAL_OVERHEAD || offset + 8 + size > len {
            return Ok(None);
        }
        let mut sealed = vec![0; size as usize];
        let at = offset + 8;
        store.read(&mut [ReadAt { object: INTENT_OBJECT, offset: at, buf: &mut sealed }])?;
        let place = self.place(offset);
        let Ok(plain) = self.sealer.open(&place, &mut sealed) else { return Ok(None) };
        Ok(parse(plain).map(|intent| (intent, at + size)))
    }
}

/// Parses an opened record.
pub fn parse(plain: &[u8]) -> Option<Intent> {
    let mut words = plain.chunks_exact(8).map(|chunk| {
        let mut word = [0; 8];
        word.copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let seed = words.next()?;
    let count = words.next()? as usize;
    let ids: Vec<u64> = words.take(count).collect();
    (ids.len() == count).then_some(Intent { seed, ids })
}

//! Creating a volume: its objects, and its first content.

use super::options::{SequentialOptions, objects};
use super::volume::{ENGINE, SequentialVolume};
use crate::engine::{Opening, make};
use crate::options::OpenOptions;
use crate::trust::LogMark;
use crate::{Error, Result};
use oblivio_crypto::{
    KdfParams, Kind, Passphrase, Place, SEAL_HEADER, Sealer, TAG_BYTES, VolumeId,
};
use oblivio_store::{Slots, Store, WriteAt};
use std::sync::Arc;

impl SequentialVolume {
    /// Creates a volume in an empty store and opens it. `progress` gets the bytes filled, if `fill`
    /// is set.
    ///
    /// # Errors
    /// `Exists` if there is a volume already, `Invalid` if there is something else or the options
    /// make no sense, `Full` if the store has no space for it.
    pub fn create(
        store: Arc<dyn Store>,
        passphrase: &Passphrase,
        kdf: KdfParams,
        create: SequentialOptions,
        open: OpenOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        let parameters = create.parameters()?;
        make(&ENGINE, store, passphrase, (&parameters, kdf), open, |opening| {
            Self::made(opening.slots()?, &create, progress)
        })
    }

    /// Makes an empty volume in its store; the header is the caller's business.
    pub(crate) fn made(
        opening: Opening<'_, Arc<dyn Slots>>,
        create: &SequentialOptions,
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        let store = Arc::clone(&opening.store);
        let objects = objects(&create.header())?;
        for (object, bytes) in &objects {
            store.allocate(object, *bytes)?;
        }
        if create.fill {
            let (volume, randomness) = (opening.header.volume(), &opening.options.environment);
            let randomness = Box::new(randomness.randomness.clone());
            let sealer = Sealer::new(opening.master.fill_root(volume), randomness);
            fill(&*store, &objects, sealer, volume, progress)?;
        }
        let mut volume = Self::assemble(opening)?;
        volume.make_durable()?;
        volume.trust.begin(LogMark::default(), None)?;
        volume.session.writer = Some(volume.trust.last_act().computer);
        volume.write_state(None)?;
        Ok(volume)
    }
}

/// Bytes filled at a time.
const FILL_BYTES: usize = 4 << 20;

/// Fills the objects with bytes indistinguishable from sealed data: the ciphertext of zeros, under
/// a key with no other use.
fn fill(
    store: &dyn Slots,
    objects: &[(&str, u64)],
    mut sealer: Sealer,
    volume: VolumeId,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let total = objects.iter().map(|(_, bytes)| bytes).sum();
    let mut done = 0;
    for (object, bytes) in objects {
        for offset in (0..*bytes).step_by(FILL_BYTES) {
            let len = FILL_BYTES.min((bytes - offset) as usize);
            let mut buf = vec![0; SEAL_HEADER + len + TAG_BYTES];
            let place = Place { volume, kind: Kind::Slot, index: offset, version: 0 };
            let sealed = sealer.seal(&place, &mut buf);
            sealed.map_err(|error| Error::Closed(error.to_string()))?;
            let data = &buf[SEAL_HEADER..SEAL_HEADER + len];
            store.write(&[WriteAt::new(object, offset, data)])?;
            done += len as u64;
            progress(done, total);
        }
    }
    Ok(())
}

//! Creating a volume: its objects, and its first content.

use super::options::{SequentialOptions, objects};
use super::own_lanes::give_first;
use super::volume::{ENGINE, SequentialVolume};
use crate::engine::{Opening, make};
use crate::options::OpenOptions;
use crate::trust::LogMark;
use crate::{Error, Result};
use oblivio_crypto::{Burner, KdfParams, Passphrase};
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
            Self::made(opening.slots()?, &create, &[], progress)
        })
    }

    /// Makes an empty volume in its store, with passphrases of its lanes; the header is the
    /// caller's business.
    pub(crate) fn made(
        opening: Opening<'_, Arc<dyn Slots>>,
        create: &SequentialOptions,
        lanes: &[&Passphrase],
        progress: &mut dyn FnMut(u64, u64),
    ) -> Result<Self> {
        let store = Arc::clone(&opening.store);
        let objects = objects(&create.header())?;
        for (object, bytes) in &objects {
            store.allocate(object, *bytes)?;
        }
        if create.fill {
            let burner = Burner::new(&opening.options.environment.randomness);
            fill(&*store, &objects, burner, progress)?;
        }
        let mut volume = Self::assemble(opening)?;
        volume.make_durable()?;
        volume.trust.begin(LogMark::default(), None)?;
        volume.session.writer = Some(volume.trust.last_act().computer);
        // The first state has their slots.
        for (number, passphrase) in (0..).zip(lanes) {
            give_first(&mut volume, number, passphrase)?;
        }
        volume.write_state(None)?;
        Ok(volume)
    }
}

/// Bytes filled at a time.
const FILL_BYTES: usize = 4 << 20;

/// Fills the objects with bytes that nobody can tell from sealed ones.
fn fill(
    store: &dyn Slots,
    objects: &[(&str, u64)],
    mut burner: Burner,
    progress: &mut dyn FnMut(u64, u64),
) -> Result<()> {
    let total = objects.iter().map(|(_, bytes)| bytes).sum();
    let (mut done, mut buf) = (0, vec![0; FILL_BYTES]);
    for (object, bytes) in objects {
        for offset in (0..*bytes).step_by(FILL_BYTES) {
            let data = &mut buf[..FILL_BYTES.min((bytes - offset) as usize)];
            let burnt = burner.burn(data, FILL_BYTES);
            burnt.map_err(|error| Error::Closed(error.to_string()))?;
            store.write(&[WriteAt::new(object, offset, data)])?;
            done += data.len() as u64;
            progress(done, total);
        }
    }
    Ok(())
}

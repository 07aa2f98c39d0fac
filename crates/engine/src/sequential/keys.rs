//! The keys of a sequential engine.

use oblivio_crypto::{MasterKey, Randomness, SealRoot, Sealer, SeededEntropy, VolumeId};

/// The engine's input from the crypto crate; the engine derives nothing itself.
pub struct SequentialKeys {
    pub(super) volume: VolumeId,
    pub(super) sealer: Sealer,
}

impl SequentialKeys {
    /// The keys of a volume.
    pub fn of_volume(master: &MasterKey, volume: VolumeId, randomness: &Randomness) -> Self {
        let randomness = Box::new(randomness.clone());
        let sealer = Sealer::new(master.sequential_root(volume), randomness).hiding();
        Self { volume, sealer }
    }

    /// Reproducible keys, **for tests and the lab only**. Another `session` gives the same volume.
    pub fn from_seed(seed: u64, session: u64) -> Self {
        let entropy = Box::new(SeededEntropy::new(session));
        let sealer = Sealer::new(SealRoot::from_seed(seed), entropy).hiding();
        Self { volume: VolumeId([7; 16]), sealer }
    }
}

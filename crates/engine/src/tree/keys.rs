//! The keys of a tree engine.

use oblivio_crypto::{
    Entropy, Mac, MasterKey, Prf, Randomness, SealRoot, Sealer, SeededEntropy, VolumeId,
};

/// The engine's input from the crypto crate; the engine derives nothing itself.
pub struct TreeKeys {
    pub(super) volume: VolumeId,
    pub(super) prf: Prf,
    /// For blocks, where they carry MACs. A volume's do not.
    pub(super) pmmac: Option<Mac>,
    pub(super) entropy: Box<dyn Entropy>,
    pub(super) sealer: Sealer,
}

impl TreeKeys {
    /// The keys of a volume.
    pub fn of_volume(master: &MasterKey, volume: VolumeId, randomness: &Randomness) -> Self {
        Self {
            volume,
            prf: master.label_prf(volume),
            pmmac: None,
            entropy: Box::new(randomness.clone()),
            sealer: Sealer::new(master.bucket_root(volume), Box::new(randomness.clone())),
        }
    }

    /// Reproducible keys, **for tests and the lab only**.
    pub fn from_seed(seed: u64) -> Self {
        let of_sealer = SeededEntropy::new(seed ^ 1 << 32);
        Self {
            volume: VolumeId([7; 16]),
            prf: Prf::from_seed(seed),
            pmmac: Some(Mac::from_seed(seed)),
            entropy: Box::new(SeededEntropy::new(seed)),
            sealer: Sealer::new(SealRoot::from_seed(seed ^ 1), Box::new(of_sealer)),
        }
    }
}

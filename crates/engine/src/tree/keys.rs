//! The keys of a tree engine.

use oblivio_crypto::{
    Entropy, Mac, MasterKey, Prf, Randomness, SealRoot, Sealer, SeededEntropy, VolumeId,
};

/// The engine's input from the crypto crate; the engine derives nothing itself.
pub struct TreeKeys {
    pub(super) volume: VolumeId,
    pub(super) prf: Prf,
    pub(super) mac: Mac,
    pub(super) entropy: Box<dyn Entropy>,
    pub(super) sealers: Box<dyn FnMut() -> Sealer>,
}

impl TreeKeys {
    /// The keys of a volume.
    pub fn of_volume(master: &MasterKey, volume: VolumeId, randomness: &Randomness) -> Self {
        let mut root = Some(master.bucket_root(volume));
        let of_sealer = randomness.clone();
        Self {
            volume,
            prf: master.label_prf(volume),
            mac: master.block_mac(volume),
            entropy: Box::new(randomness.clone()),
            // A volume's engine has one tree.
            sealers: Box::new(move || {
                let root = root.take().expect("a volume's engine has one tree, so one sealer");
                Sealer::new(root, Box::new(of_sealer.clone()))
            }),
        }
    }

    /// Reproducible keys, **for tests and the lab only**.
    pub fn from_seed(seed: u64) -> Self {
        let mut tree = 0;
        Self {
            volume: VolumeId([7; 16]),
            prf: Prf::from_seed(seed),
            mac: Mac::from_seed(seed),
            entropy: Box::new(SeededEntropy::new(seed)),
            sealers: Box::new(move || {
                tree += 1;
                let entropy = Box::new(SeededEntropy::new(seed ^ tree << 32));
                Sealer::new(SealRoot::from_seed(seed ^ tree), entropy)
            }),
        }
    }
}

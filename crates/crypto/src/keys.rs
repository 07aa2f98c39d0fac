//! The master key of a volume, and the keys derived from it.

use crate::derive::{SealRoot, derive_key};
use crate::{Entropy, Mac, Prf, Secret, VolumeId, labels};

/// The one random key of a volume. Passphrases only wrap it, so they can change while it stays.
#[derive(Debug)]
pub struct MasterKey(Secret<32>);

impl MasterKey {
    /// A fresh random master key.
    pub fn generate(entropy: &mut dyn Entropy) -> Self {
        Self(Secret::new(|bytes| entropy.fill(bytes)))
    }

    /// The master key from a key slot.
    pub(crate) fn from_secret(secret: Secret<32>) -> Self {
        Self(secret)
    }

    /// The same key once more.
    pub fn duplicate(&self) -> Self {
        Self(Secret::new(|bytes| *bytes = *self.expose()))
    }

    /// Whether both keys are equal.
    pub(crate) fn same_as(&self, other: &Self) -> bool {
        self.0.same_as(&other.0)
    }

    /// The bytes, for a key slot to seal.
    pub(crate) fn expose(&self) -> &[u8; 32] {
        self.0.expose()
    }

    /// Root of the keys that seal the volume's buckets.
    pub fn bucket_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::BUCKET_ROOT, volume))
    }

    /// Root of the keys that seal the client's state and its deltas.
    pub fn state_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::STATE_ROOT, volume))
    }

    /// Root of the keys that seal commit records.
    pub fn commit_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::COMMIT_ROOT, volume))
    }

    /// Root of the keys that seal intents.
    pub fn intent_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::INTENT_ROOT, volume))
    }

    /// Root of the keys that seal a sequential engine's blocks and buffer maps.
    pub fn sequential_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::SEQUENTIAL_ROOT, volume))
    }

    /// Root of the keys that seal the access times of a sequential volume.
    pub fn times_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::TIMES_ROOT, volume))
    }

    /// Root of the keys of a pyramid engine's tables.
    pub fn table_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::TABLE_ROOT, volume))
    }

    /// Root of the keys that seal the records of a shared volume.
    pub fn record_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::RECORD_ROOT, volume))
    }

    /// Root of the keys that seal the sessions of a volume in an online store.
    pub fn entry_root(&self, volume: VolumeId) -> SealRoot {
        SealRoot::new(self.derive(labels::ENTRY_ROOT, volume))
    }

    /// The PRF that draws block labels.
    pub fn label_prf(&self, volume: VolumeId) -> Prf {
        Prf::new(self.derive(labels::LABEL_PRF, volume))
    }

    /// The PRF that makes the pads over the parity of a sequential volume's log.
    pub fn parity_prf(&self, volume: VolumeId) -> Prf {
        Prf::new(self.derive(labels::PARITY_PRF, volume))
    }

    /// The MAC over the volume header.
    pub fn header_mac(&self, volume: VolumeId) -> Mac {
        Mac::new(self.derive(labels::HEADER_MAC, volume))
    }

    fn derive(&self, label: &'static str, volume: VolumeId) -> Secret<32> {
        derive_key(label, &[self.expose(), &volume.0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SeededEntropy;
    use std::collections::BTreeSet;

    fn all_keys(master: &MasterKey, volume: VolumeId) -> Vec<[u8; 32]> {
        let roots = [
            master.bucket_root(volume),
            master.state_root(volume),
            master.commit_root(volume),
            master.intent_root(volume),
            master.sequential_root(volume),
            master.times_root(volume),
            master.table_root(volume),
            master.entry_root(volume),
        ];
        let mut keys: Vec<_> = roots.iter().map(|root| *root.expose()).collect();
        keys.push(*master.label_prf(volume).key());
        keys.push(*master.parity_prf(volume).key());
        keys.push(*master.header_mac(volume).key());
        keys
    }

    #[test]
    fn every_purpose_volume_and_master_has_its_own_key() {
        let mut entropy = SeededEntropy::new(1);
        let mut seen = BTreeSet::new();
        for _ in 0..2 {
            let master = MasterKey::generate(&mut entropy);
            for volume in [VolumeId([0; 16]), VolumeId([1; 16])] {
                seen.extend(all_keys(&master, volume));
            }
            seen.insert(*master.expose());
        }
        assert_eq!(seen.len(), 2 * (2 * 11 + 1));
    }

    #[test]
    fn derivation_is_reproducible() {
        let master = || MasterKey::generate(&mut SeededEntropy::new(3));
        let volume = VolumeId([9; 16]);
        assert_eq!(all_keys(&master(), volume), all_keys(&master(), volume));
    }

    /// Pinned: a changed derivation would lock users out of their volumes.
    #[test]
    fn derivation_is_derive_key_over_master_and_volume() {
        let master = MasterKey::from_secret(Secret::new(|b| b.fill(0x11)));
        let mut material = [0x11; 48];
        material[32..].fill(0x22);
        let expected = blake3::derive_key("oblivio v1 2026 bucket sealing", &material);
        assert_eq!(master.bucket_root(VolumeId([0x22; 16])).expose(), &expected);
    }

    #[test]
    fn printing_shows_the_volume_but_no_key() {
        let id = VolumeId::generate(&mut SeededEntropy::new(5));
        assert_eq!(id.to_string().len(), 32);
        assert_eq!(VolumeId([0xa5; 16]).to_string(), "a5".repeat(16));
        let master = MasterKey::generate(&mut SeededEntropy::new(5));
        assert_eq!(format!("{master:?}"), "MasterKey(Secret(..))");
        assert_eq!(format!("{:?}", master.state_root(id)), "SealRoot(Secret(..))");
    }
}

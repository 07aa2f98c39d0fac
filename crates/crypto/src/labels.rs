//! Every label that separates one use of a key from another, in one file.
//!
//! Never give a label a second meaning: a changed derivation gets a new version here. Two equal
//! labels would make two purposes share a key, so a test checks that all are distinct.

/// Root of the keys that seal buckets.
pub const BUCKET_ROOT: &str = "oblivio v1 2026 bucket sealing";
/// Root of the keys that seal the client's state and its deltas.
pub const STATE_ROOT: &str = "oblivio v1 2026 state sealing";
/// Root of the keys that seal commit records.
pub const COMMIT_ROOT: &str = "oblivio v1 2026 commit sealing";
/// Root of the keys that seal intents.
pub const INTENT_ROOT: &str = "oblivio v1 2026 intent sealing";
/// Root of the keys that seal the sequential engine's blocks and buffer maps.
pub const SEQUENTIAL_ROOT: &str = "oblivio v1 2026 sequential sealing";
/// Root of the keys that seal the access times of a sequential volume.
pub const TIMES_ROOT: &str = "oblivio v1 2026 access times sealing";
/// Key of the pads that hide the salts and counters of sealed objects.
pub const SEAL_MASK: &str = "oblivio v1 2026 hidden salts and counters";
/// Root of the keys of a pyramid engine's tables.
pub const TABLE_ROOT: &str = "oblivio v1 2026 tables";
/// From a root of tables to the key of one table's slots.
pub const TABLE_SLOTS: &str = "oblivio v1 2026 slots of a table";
/// From a root of tables to the key of one table's empty slots.
pub const TABLE_EMPTY: &str = "oblivio v1 2026 empty slots of a table";
/// From a root of tables to the order of one table's slots.
pub const TABLE_ORDER: &str = "oblivio v1 2026 order of a table";
/// Root of the keys that seal the records of a shared volume.
pub const RECORD_ROOT: &str = "oblivio v1 2026 records of a shared volume";
/// Root of the keys that seal the sessions of a volume in an online store.
pub const ENTRY_ROOT: &str = "oblivio v1 2026 sessions of an online volume";
/// Key of the PRF that draws block labels.
pub const LABEL_PRF: &str = "oblivio v1 2026 block labels";
/// Key of the PRF that makes the pads over the parity of a sequential volume's log.
pub const PARITY_PRF: &str = "oblivio v1 2026 parity of a log";
/// Key of the MAC over the volume header.
pub const HEADER_MAC: &str = "oblivio v1 2026 header authentication";
/// From a stretched passphrase to a slot's key and commitment.
pub const SLOT_KEY: &str = "oblivio v1 2026 passphrase slot";
/// From a stretched passphrase to the key of a lane's slot.
pub const LANE_SLOT: &str = "oblivio v1 2026 passphrase slot of a lane";
/// From a lane's master key to the key of its stretched passphrases.
pub const LANE_KEYS: &str = "oblivio v1 2026 passphrases of a lane";
/// Seeded entropy, for tests and simulation.
pub const TEST_ENTROPY: &str = "oblivio v1 2026 TEST ONLY entropy";
/// Keys made from a seed, for tests and the lab.
pub const TEST_KEY: &str = "oblivio v1 2026 TEST ONLY key";

/// All labels above, for the distinctness test and for auditors.
pub const ALL: [&str; 21] = [
    BUCKET_ROOT,
    STATE_ROOT,
    COMMIT_ROOT,
    INTENT_ROOT,
    SEQUENTIAL_ROOT,
    TIMES_ROOT,
    SEAL_MASK,
    TABLE_ROOT,
    TABLE_SLOTS,
    TABLE_EMPTY,
    TABLE_ORDER,
    RECORD_ROOT,
    ENTRY_ROOT,
    LABEL_PRF,
    PARITY_PRF,
    HEADER_MAC,
    SLOT_KEY,
    LANE_SLOT,
    LANE_KEYS,
    TEST_ENTROPY,
    TEST_KEY,
];

/// First byte of the input to [`crate::Prf::label`].
pub(crate) const PRF_LABEL: u8 = 1;
/// First byte of the input to [`crate::Prf::draw`].
pub(crate) const PRF_DRAW: u8 = 2;
/// First byte of the input to [`crate::Prf::of_seed`].
pub(crate) const PRF_SEED: u8 = 3;
/// First byte of the input to [`crate::Prf::fill`].
pub(crate) const PRF_FILL: u8 = 4;
/// Last byte of the input to [`crate::Mac::block`].
pub(crate) const MAC_BLOCK: u8 = 1;
/// Last byte of the input to [`crate::Mac::bytes`].
pub(crate) const MAC_BYTES: u8 = 2;

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn labels_are_distinct_and_versioned() {
        assert_eq!(ALL.iter().collect::<BTreeSet<_>>().len(), ALL.len());
        assert!(ALL.iter().all(|label| label.starts_with("oblivio v1 2026 ")));
        assert_eq!(BTreeSet::from([PRF_LABEL, PRF_DRAW, PRF_SEED, PRF_FILL]).len(), 4);
        assert_ne!(MAC_BLOCK, MAC_BYTES);
    }

    #[test]
    fn all_lists_every_label_of_this_file() {
        let declared = include_str!("labels.rs").matches(concat!(": &", "str = ")).count();
        assert_eq!(declared, ALL.len());
    }
}

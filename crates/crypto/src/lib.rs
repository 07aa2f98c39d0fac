//! Keys, sealing, PRF, MAC and passphrases: the only crate of Oblivio that holds secrets.
//!
//! The path of a key, from the user's input to the store's view:
//!
//! ```text
//! Passphrase --Argon2id--> slot key --opens--> KeySlot --> MasterKey
//!     MasterKey + VolumeId --BLAKE3 derive_key--> SealRoot | Prf | Mac      (labels.rs)
//!         SealRoot + random salt --keyed BLAKE3--> session key              (session.rs)
//!             session key + own counter --AES-256-GCM--> sealed object      (sealer.rs)
//! ```
//!
//! No caller ever chooses a nonce, and no error or `Debug` output holds a secret. Long-lived
//! secrets are wiped on drop and kept out of swap where the system allows it. A crate without
//! `unsafe` cannot wipe the copies that a cipher or a hash makes on the stack.
//!
//! It must not know what is sealed, or where it is stored: places and blocks are numbers and bytes
//! here.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `Passphrase`, `KdfParams` | what a user knows, and what each guess of it costs |
//! | `KeySlots`, `MasterKey` | what passphrases open, and what they find there |
//! | `VolumeId` | whose keys they are |
//! | `Sealer`, `Opener` | objects under keys and nonces that nobody chooses |
//! | `Prf`, `Mac`, `Tag` | where things go, and whether a state is what was written |

mod burner;
mod derive;
mod entropy;
mod error;
mod foreign;
mod group;
mod hex;
mod keys;
pub mod labels;
mod lane_slots;
mod mac;
mod mark;
mod opener;
mod passphrase;
mod place;
mod prf;
mod sealer;
mod secret;
mod session;
mod slots;
mod table;
mod tag;
mod volume_id;

pub use burner::Burner;
pub use derive::SealRoot;
pub use entropy::{Entropy, OsEntropy, Randomness, SeededEntropy};
pub use error::CryptoError;
pub use foreign::{reveal_of_rclone, sha256};
pub use group::Group;
pub use hex::{hex, unhex};
pub use keys::MasterKey;
pub use lane_slots::{
    LANE_KEYS_BYTES, LANE_SLOTS_BYTES, LaneKey, LanePassphrases, LanePlace, LaneSecrets,
};
pub use mac::Mac;
pub use mark::{GROUP_MARK_BYTES, GroupMark};
pub use opener::{Opener, OpeningRun};
pub use passphrase::{KdfParams, Passphrase};
pub use place::{Kind, PLACE_BYTES, Place};
pub use prf::Prf;
/// BLAKE3 of public bytes. It identifies them and hides nothing.
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    *blake3::hash(bytes).as_bytes()
}

pub use sealer::{SEAL_HEADER, SEAL_OVERHEAD, SealLimits, Sealer, tag_of};
pub use secret::Secret;
pub use slots::{KEY_SLOT_BYTES, KEY_SLOTS, KEY_SLOTS_BYTES, KeySlots, SlotIndex};
pub use table::{Attempt, SLOT_OVERHEAD, TableKeys, TableSealer};
pub use tag::{TAG_BYTES, Tag};
pub use volume_id::{VOLUME_ID_BYTES, VolumeId};

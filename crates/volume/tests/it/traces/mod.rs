//! With padding the store sees the same of two workloads with equal numbers and sizes of
//! operations, whichever blocks, offsets, files and names they use: as many paths, the same
//! records, the same commits, as many bytes. Recorded at the store.
//!
//! `cargo test` compares a few pairs, `just padded-pairs` many.

mod blocks;
mod contract;
mod disks;
mod files;
mod named;

use crate::common::pairs::Session;
use oblivio_crypto::KdfParams;
use oblivio_store::MemoryStore;
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use std::sync::Arc;

/// A new volume of this capacity.
fn create(block_bytes: usize, capacity_bytes: u64) -> (Arc<MemoryStore>, Volume) {
    let store = Arc::new(MemoryStore::new());
    let create = CreateOptions { block_bytes, capacity_bytes, kdf: KdfParams::TEST };
    let volume = Volume::create(store.clone(), &Session::secret(), create, OpenOptions::default());
    (store, volume.expect("an empty store"))
}

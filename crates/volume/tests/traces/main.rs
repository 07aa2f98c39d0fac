//! With padding the store sees the same of two workloads with equal numbers and sizes of
//! operations, whichever blocks, offsets, files and names they use: as many paths, the same
//! records, the same commits, as many bytes. Recorded at the store.
//!
//! `cargo test` compares a few pairs; `OBLIVIO_TRACE_PAIRS` (`just padded-pairs`) sets their
//! number.
#![allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests")]
#![expect(clippy::print_stdout, reason = "the outcome of a long run is its numbers")]

mod blocks;
mod contract;

mod disks;
mod files;
mod named;
#[path = "../common/pairs.rs"]
mod pairs;

use oblivio_crypto::KdfParams;
use oblivio_store::MemoryStore;
use oblivio_volume::{CreateOptions, OpenOptions, Volume};
use pairs::Session;
use std::sync::Arc;

/// A new volume of this capacity.
fn create(block_bytes: usize, capacity_bytes: u64) -> (Arc<MemoryStore>, Volume) {
    let store = Arc::new(MemoryStore::new());
    let create = CreateOptions { block_bytes, capacity_bytes, kdf: KdfParams::TEST };
    let volume = Volume::create(store.clone(), &Session::secret(), create, OpenOptions::default());
    (store, volume.expect("an empty store"))
}

//! The volumes of the schedules, and what is in them.

use super::oracle::{BLOCKS, Seen};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::sequential::SequentialConfig;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{BlockSpace, CreateOptions, Error, OpenOptions, Volume};
use std::sync::{Arc, OnceLock};

const BYTES: usize = 64;
pub const MEMORY: usize = 128 << 10;

/// Which engine the volume is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    Tree,
    Sequential,
}

/// Writes the number of a state to a block.
pub fn write(block: u64, state: u64) -> BlockOp {
    let bytes = state.to_le_bytes().repeat(BYTES / 8);
    BlockOp { id: BlockId(block), action: Action::Write(bytes) }
}

/// The number in each block, if it is not lost.
pub fn content(volume: &mut Volume) -> Result<Seen, Error> {
    let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
    let outcomes = volume.access_each((1..=BLOCKS).map(read).collect())?;
    let mut content = Seen::default();
    for (state, outcome) in content.iter_mut().zip(outcomes) {
        let Ok(answer) = outcome else { continue };
        let bytes = answer.unwrap_or_else(|| vec![0; BYTES]);
        *state = Some(bytes.first_chunk().map_or(0, |word| u64::from_le_bytes(*word)));
    }
    Ok(content)
}

pub fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

/// A new volume.
fn make(engine: Engine) -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    let open = OpenOptions { memory_bytes: MEMORY, ..OpenOptions::default() };
    let volume = match engine {
        Engine::Tree => {
            let create =
                CreateOptions { block_bytes: BYTES, capacity_bytes: 8 << 10, kdf: KdfParams::TEST };
            Volume::create(store.clone(), &passphrase(), create, open)
        }
        Engine::Sequential => {
            let engine = SequentialConfig {
                bucket_blocks: 2,
                queue_buckets: 2,
                fan_out: 3,
                sector_bytes: 128,
                ..SequentialConfig::new(BYTES, BLOCKS + 6)
            };
            let create = SequentialOptions {
                quantum_writes: 2,
                log_quanta: 24,
                ..SequentialOptions::of(engine)
            };
            let (kdf, quiet) = (KdfParams::TEST, &mut |_, _| {});
            SequentialVolume::create(store.clone(), &passphrase(), kdf, create, open, quiet)
                .map(Volume::from)
        }
    };
    drop(volume.expect("an empty store"));
    store.snapshot()
}

pub fn made(engine: Engine) -> &'static MemoryStore {
    static MADE: [OnceLock<MemoryStore>; 3] = [const { OnceLock::new() }; 3];
    MADE[engine as usize].get_or_init(|| make(engine))
}

/// Another volume with the same passphrase.
pub fn other_volume(engine: Engine) -> &'static MemoryStore {
    static OTHER: [OnceLock<MemoryStore>; 3] = [const { OnceLock::new() }; 3];
    OTHER[engine as usize].get_or_init(|| make(engine))
}

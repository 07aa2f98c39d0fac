//! The audit's own volume, in memory, and the five ways of working on it.

use crate::recorder::Recorder;
use anyhow::Result;
use oblivio_audit::Trace;
use oblivio_audit::planted::{SplitMix64, Workload};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::MemoryStore;
use oblivio_volume::tree::TreeVolume;
use oblivio_volume::{BlockSpace, CreateOptions, OpenOptions};
use std::sync::Arc;

/// Small, for speed: what is seen does not depend on what is in the blocks.
const BLOCK_BYTES: usize = 512;
/// Small too, so that most of the tree is beyond it.
const MEMORY_BYTES: usize = 64 << 10;
/// Accesses between two looks at the clock of the progress bar.
const STRIDE: usize = 512;

/// Works on a fresh volume and keeps what its storage was shown, first while it was filled and then
/// one request for each access.
pub fn run(
    workload: Workload,
    blocks: u64,
    accesses: usize,
    mut progress: impl FnMut(u64),
) -> Result<(Trace, Trace)> {
    let recorder = Recorder::in_memory();
    let mut volume = filled(blocks, &recorder)?;
    let filling = recorder.take();
    let mut rng = SplitMix64::new(accesses as u64);
    let wanted = workload.blocks(blocks, accesses, &mut rng);
    for part in wanted.chunks(STRIDE) {
        for &block in part {
            // Half are writes, which must not be told from reads.
            let action = match rng.chance(0.5) {
                true => Action::Read,
                false => Action::Patch { offset: 0, bytes: block.to_le_bytes().to_vec() },
            };
            volume.access(vec![BlockOp { id: BlockId(block), action }])?;
        }
        progress(part.len() as u64);
    }
    Ok((filling, recorder.take()))
}

/// A volume whose every block and every bucket has been written, so that what is shown from then
/// on does not depend on how it came to be.
fn filled(blocks: u64, recorder: &Recorder) -> Result<TreeVolume> {
    let create = CreateOptions {
        block_bytes: BLOCK_BYTES,
        capacity_bytes: blocks.saturating_mul(BLOCK_BYTES as u64),
        kdf: KdfParams::TEST,
    };
    let open = OpenOptions {
        memory_bytes: MEMORY_BYTES,
        on_shown: Some(recorder.callback()),
        ..OpenOptions::default()
    };
    let store = Arc::new(MemoryStore::new());
    let mut volume = TreeVolume::create(store, &Passphrase::new("audit"), create, open)?;
    volume.reserve(blocks)?;
    let op = |id, action| BlockOp { id: BlockId(id), action };
    let write = |id: u64| op(id, Action::Write(id.to_le_bytes().to_vec()));
    volume.access((0..blocks).map(write).collect())?;
    // The schedule has gone round once when every leaf had its turn.
    let round = 4u64 << volume.depth();
    volume.access((0..round).map(|at| op(at % blocks, Action::Read)).collect())?;
    volume.commit()?;
    Ok(volume)
}

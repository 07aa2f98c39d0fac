//! A plain sealed disk: each block is sealed at its own place and nowhere else. The disk's storage
//! sees every access; obliviousness is measured against it.

use super::area::{Area, AreaReader, BLOCK};
use super::beside::Places;
use super::waiting::{Scheme, Waiting};
use super::writes::Writes;
use oblivio_engine::BlockAnswer;
use oblivio_store::Store;
use oblivio_volume::Result;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The disk.
pub type Plain = Waiting<InPlace>;

/// Blocks in their places.
pub struct InPlace {
    area: Area,
    exists: Arc<Existing>,
    /// A buffer for writes; kept, because fresh memory costs more than filling it.
    bytes: Vec<u8>,
}

/// The blocks that were written.
struct Existing(Vec<AtomicBool>);

impl Places for Existing {
    fn slot(&self, id: u64) -> Option<u64> {
        self.0[id as usize].load(Ordering::Acquire).then_some(id)
    }
}

impl Plain {
    /// An empty disk of `blocks` blocks.
    pub fn create(store: Arc<dyn Store>, blocks: u64) -> Self {
        let exists = Arc::new(Existing((0..blocks).map(|_| AtomicBool::new(false)).collect()));
        let area = Area::new(store, "blocks", blocks);
        Waiting::new(InPlace { area, exists, bytes: Vec::new() })
    }
}

impl Scheme for InPlace {
    fn blocks(&self) -> u64 {
        self.exists.0.len() as u64
    }

    fn exists(&self, id: u64) -> bool {
        self.exists.slot(id).is_some()
    }

    fn read(&mut self, ids: &[u64]) -> Result<Vec<BlockAnswer>> {
        let there: Vec<u64> = ids.iter().copied().filter(|&id| self.exists(id)).collect();
        let mut found = self.area.read(&there)?.into_iter();
        Ok(ids.iter().map(|&id| if self.exists(id) { found.next() } else { None }).collect())
    }

    fn write(&mut self, writes: &Writes) -> Result<()> {
        let mut ids: Vec<u64> = writes.all().iter().map(|(id, _)| *id).collect();
        ids.sort_unstable();
        ids.dedup();
        let block = |&id: &u64| writes.newest(id).and_then(Option::as_deref).map(|it| (id, it));
        let blocks: Vec<(u64, &[u8])> = ids.iter().filter_map(block).collect();
        self.bytes.clear();
        blocks.iter().for_each(|(_, block)| self.bytes.extend_from_slice(block));
        let (mut runs, mut rest) = (Vec::new(), &mut self.bytes[..]);
        for run in blocks.chunk_by(|a, b| a.0 + 1 == b.0) {
            let (data, later) = rest.split_at_mut(run.len() * BLOCK);
            runs.push((run[0].0, data));
            rest = later;
        }
        self.area.write(&mut runs)?;
        for id in ids {
            let exists = writes.newest(id).is_some_and(Option::is_some);
            self.exists.0[id as usize].store(exists, Ordering::Release);
        }
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.area.sync()
    }

    fn beside(&self) -> Option<(Arc<dyn Places>, AreaReader)> {
        Some((self.exists.clone(), self.area.reader().clone()))
    }
}

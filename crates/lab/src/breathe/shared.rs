//! A volume under a file system that stays visible from outside.

use crate::lock::lock;
use oblivio_engine::{BlockOp, BlockOutcome};
use oblivio_volume::tree::TreeVolume;
use oblivio_volume::{BlockReader, BlockSpace, Least, Result as Of};
use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// The file system's handle to it.
pub struct Shared {
    volume: Arc<Mutex<TreeVolume>>,
    root: Vec<u8>,
}

impl Shared {
    pub fn new(volume: Arc<Mutex<TreeVolume>>) -> Self {
        Self { volume, root: Vec::new() }
    }
}

impl BlockSpace for Shared {
    fn block_bytes(&self) -> usize {
        lock(&self.volume).block_bytes()
    }
    fn capacity_blocks(&self) -> u64 {
        lock(&self.volume).capacity_blocks()
    }
    fn addressable_blocks(&self) -> u64 {
        lock(&self.volume).addressable_blocks()
    }
    fn can_resize(&self) -> bool {
        lock(&self.volume).can_resize()
    }
    fn set_capacity(&mut self, blocks: u64) -> Of<()> {
        lock(&self.volume).set_capacity(blocks)
    }
    fn reserve(&mut self, blocks: u64) -> Of<()> {
        lock(&self.volume).reserve(blocks)
    }
    fn access_each(&mut self, ops: Vec<BlockOp>) -> Of<Vec<BlockOutcome>> {
        lock(&self.volume).access_each(ops)
    }
    fn defer(&mut self, ops: Vec<BlockOp>) -> Of<()> {
        lock(&self.volume).defer(ops)
    }
    fn root(&self) -> &[u8] {
        &self.root
    }
    fn set_root(&mut self, root: &[u8]) {
        self.root = root.to_vec();
        lock(&self.volume).set_root(root);
    }
    fn room(&self) -> Of<Option<u64>> {
        lock(&self.volume).room()
    }
    fn commit(&mut self) -> Of<()> {
        lock(&self.volume).commit()
    }
    fn finish(&mut self) -> Of<()> {
        lock(&self.volume).finish()
    }
    fn give_up(&mut self) {
        lock(&self.volume).give_up();
    }
    fn erase(&mut self, ids: &[u64]) -> Of<()> {
        lock(&self.volume).erase(ids)
    }
    fn erases_cheaply(&self) -> bool {
        lock(&self.volume).erases_cheaply()
    }
    fn exists(&self, id: u64) -> bool {
        lock(&self.volume).exists(id)
    }
    fn present(&self, ids: Range<u64>) -> Of<Vec<bool>> {
        lock(&self.volume).present(ids)
    }
    fn pads(&self) -> bool {
        lock(&self.volume).pads()
    }
    fn bring_up(&mut self, least: Least) -> Of<()> {
        lock(&self.volume).bring_up(least)
    }
    fn reader(&self) -> Option<Arc<dyn BlockReader>> {
        lock(&self.volume).reader()
    }
    fn discard(&mut self, ids: &[u64]) -> Of<()> {
        lock(&self.volume).discard(ids)
    }
    fn end_operation(&mut self) -> Of<()> {
        lock(&self.volume).end_operation()
    }
    fn wants_commit(&self) -> bool {
        lock(&self.volume).wants_commit()
    }
    fn idle(&mut self) -> Of<Option<Duration>> {
        lock(&self.volume).idle()
    }
    fn cache_budget(&self) -> usize {
        lock(&self.volume).cache_budget()
    }
}

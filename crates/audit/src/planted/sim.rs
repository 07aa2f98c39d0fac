//! A Path ORAM without contents: labels, buckets and a stash, enough to make real traces.

use super::workload::Workload;
use crate::checks::union_of_paths;
use crate::trace::{Trace, TraceRequest};
use oblivio_splitmix::SplitMix64;

/// The initial leaf level of a simulation.
const DEPTH: u32 = 10;

/// Blocks per bucket. The cloud paper's demand eviction runs with three; here it makes stash hits
/// and full stashes frequent enough to be worth hiding.
const BUCKET: usize = 3;

/// Blocks in the volume: two thirds of the initial slots of the tree.
const BLOCKS: u64 = 4 << DEPTH;

/// Bytes of a sealed bucket in the store.
const BUCKET_BYTES: u64 = 3 * 4096 + 64;

/// The stash occupancy at which background eviction begins.
const FULL: usize = 8;

/// The client keeps the buckets below this number, three levels, as part of its stash.
const CACHED: usize = 8;

/// A block in a bucket below this number gets an early reply.
const SHALLOW: usize = 64;

/// The probability that the network fails an access, which is then retried.
const RETRIES: f64 = 0.01;

/// The planted flaw of the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flaw {
    /// None.
    None,
    /// Extra accesses whenever the stash is full.
    DemandEviction,
    /// New labels fall into the left half with probability 0.55.
    SkewedRemap,
    /// The new leaf is at most a quarter of the tree away from the old one.
    NearRemap,
    /// Blocks keep their labels.
    NoRemap,
    /// A failed request is repeated unchanged.
    RetrySamePath,
    /// A failed request is followed by another path in the same request.
    RetryNewPath,
    /// Nothing is written back for a block near the root.
    EarlyReply,
    /// A request without a path for a block with the client, in the stash or in [`CACHED`].
    EmptyOnHit,
    /// No request at all for a block with the client.
    SilentOnHit,
    /// Two operations on one block in a batch read one path twice.
    SharedBatch,
    /// Growing turns leaf `l` into `2l`.
    GrowthAppends,
    /// Growing keeps `l` in the left half of the larger tree.
    GrowthKeeps,
}

/// The simulated engine and its storage's view.
pub(super) struct Sim {
    flaw: Flaw,
    rng: SplitMix64,
    depth: u32,
    batch: usize,
    grow_by: u32,
    labels: Vec<u64>,
    buckets: Vec<Vec<u64>>,
    stash: Vec<u64>,
    requests: Vec<TraceRequest>,
}

impl Sim {
    pub(super) fn new(flaw: Flaw, seed: u64) -> Sim {
        let mut rng = SplitMix64::new(seed);
        let labels = (0..BLOCKS).map(|_| drawn(flaw, &mut rng)).collect();
        let mut sim = Sim {
            flaw,
            rng,
            depth: DEPTH,
            batch: 1,
            grow_by: 0,
            labels,
            buckets: vec![Vec::new(); 2 << DEPTH],
            stash: Vec::new(),
            requests: Vec::new(),
        };
        for block in 0..BLOCKS {
            sim.place(block);
        }
        sim
    }

    /// Serves this many operations in each request.
    pub(super) fn batches(mut self, batch: usize) -> Sim {
        self.batch = batch;
        self
    }

    /// Lets the tree grow by this many levels, evenly over the run.
    pub(super) fn growing(mut self, levels: u32) -> Sim {
        self.grow_by = levels;
        self
    }

    /// Serves the workload. The trace has one access per operation, unless the flaw changes that.
    pub(super) fn run(mut self, workload: Workload, accesses: usize) -> Trace {
        let wishes = workload.blocks(BLOCKS, accesses, &mut self.rng);
        let period = accesses / (self.grow_by as usize + 1);
        for (i, batch) in wishes.chunks(self.batch).enumerate() {
            let done = i * self.batch;
            if self.grow_by > 0 && done > 0 && done.is_multiple_of(period) {
                self.grow();
            }
            self.serve(batch);
        }
        Trace { depth: DEPTH, requests: self.requests }
    }

    fn leaf(&self, block: u64) -> u64 {
        self.labels[block as usize] >> (64 - self.depth)
    }

    fn path(&self, leaf: u64) -> impl Iterator<Item = usize> + use<> {
        let bottom = (1 << self.depth) | leaf as usize;
        (0..=self.depth).map(move |up| bottom >> up)
    }

    /// Puts a block as deep on its path as there is room, or into the stash.
    fn place(&mut self, block: u64) {
        let room = self.path(self.leaf(block)).find(|&b| self.buckets[b].len() < BUCKET);
        match room {
            Some(bucket) => self.buckets[bucket].push(block),
            None => self.stash.push(block),
        }
    }

    fn grow(&mut self) {
        self.depth += 1;
        self.buckets.resize(2 << self.depth, Vec::new());
        if !matches!(self.flaw, Flaw::GrowthAppends | Flaw::GrowthKeeps) {
            return;
        }
        for block in 0..BLOCKS {
            let new = self.grown(self.labels[block as usize]);
            self.labels[block as usize] = new;
        }
        // The blocks must be on their new paths; the way there is not shown.
        self.buckets.iter_mut().for_each(Vec::clear);
        self.stash.clear();
        for block in 0..BLOCKS {
            self.place(block);
        }
    }

    /// The label after growth of an engine that remembers leaf numbers instead of labels.
    fn grown(&self, label: u64) -> u64 {
        let old = label >> (64 - (self.depth - 1));
        let new = if self.flaw == Flaw::GrowthAppends { old << 1 } else { old };
        new << (64 - self.depth)
    }

    fn remapped(&mut self, old: u64) -> u64 {
        let fresh = drawn(self.flaw, &mut self.rng);
        match self.flaw {
            Flaw::NoRemap => old,
            Flaw::NearRemap => old.wrapping_add(fresh >> 2),
            _ => fresh,
        }
    }

    /// Serves the operations of one batch with one request.
    fn serve(&mut self, wishes: &[u64]) {
        let mut leaves = Vec::new();
        let mut shallow = false;
        let shown: Vec<u64> = wishes.iter().map(|&b| self.leaf(b)).collect();
        for (i, &block) in wishes.iter().enumerate() {
            let again = wishes[..i].contains(&block);
            let hit = self.stash.contains(&block) || self.above(CACHED, block);
            match self.flaw {
                Flaw::EmptyOnHit if hit => continue,
                Flaw::SilentOnHit if hit => return,
                Flaw::SharedBatch if again => leaves.push(shown[i]),
                // The block is already on its way: any path will do, but one must be shown.
                _ if again => leaves.push(self.rng.below(1 << self.depth)),
                _ => leaves.push(self.leaf(block)),
            }
            shallow |= hit || self.above(SHALLOW, block);
            let old = self.labels[block as usize];
            self.fetch(self.leaf(block));
            self.labels[block as usize] = self.remapped(old);
        }
        self.finish(leaves, shallow);
    }

    /// Whether a block is in one of the first buckets, counted from the root.
    fn above(&self, first: usize, block: u64) -> bool {
        self.buckets[1..first].iter().any(|bucket| bucket.contains(&block))
    }

    /// Shows the request with the flaw's additions or omissions.
    fn finish(&mut self, mut leaves: Vec<u64>, shallow: bool) {
        let failed = self.rng.chance(RETRIES);
        if failed && self.flaw == Flaw::RetryNewPath {
            leaves.push(self.rng.below(1 << self.depth));
        }
        self.show(leaves.clone(), self.flaw == Flaw::EarlyReply && shallow);
        if failed && self.flaw == Flaw::RetrySamePath {
            self.show(leaves.clone(), false);
        }
        self.evict(&leaves);
        let drain = self.flaw == Flaw::DemandEviction;
        // Bounded, since one flaw must not make a trace of millions.
        for _ in 0..20 {
            if !drain || self.stash.len() <= FULL {
                break;
            }
            let dummy = self.rng.below(1 << self.depth);
            self.show(vec![dummy], false);
            self.evict(&[dummy]);
        }
    }

    fn show(&mut self, leaves: Vec<u64>, no_write: bool) {
        let reads = union_of_paths(&leaves, self.depth);
        let writes = if no_write { 0 } else { reads };
        self.requests.push(TraceRequest {
            leaves,
            depth: self.depth,
            reads,
            writes,
            bytes_read: u64::from(reads) * BUCKET_BYTES,
            bytes_written: u64::from(writes) * BUCKET_BYTES,
            ..TraceRequest::default()
        });
    }

    /// Takes a path into the stash.
    fn fetch(&mut self, leaf: u64) {
        for bucket in self.path(leaf) {
            self.stash.append(&mut self.buckets[bucket]);
        }
    }

    /// Writes paths back, each block as deep as its label allows.
    fn evict(&mut self, leaves: &[u64]) {
        for &leaf in leaves {
            self.fetch(leaf);
        }
        let mut buckets: Vec<usize> = leaves.iter().flat_map(|&leaf| self.path(leaf)).collect();
        buckets.sort_unstable_by(|a, b| b.cmp(a));
        buckets.dedup();
        for bucket in buckets {
            self.fill(bucket);
        }
    }

    fn fill(&mut self, bucket: usize) {
        let level = bucket.ilog2();
        let mut at = 0;
        while at < self.stash.len() && self.buckets[bucket].len() < BUCKET {
            let leaf = self.leaf(self.stash[at]);
            let passes = ((1 << self.depth) | leaf as usize) >> (self.depth - level) == bucket;
            if passes {
                let block = self.stash.swap_remove(at);
                self.buckets[bucket].push(block);
            } else {
                at += 1;
            }
        }
    }
}

/// A new label.
fn drawn(flaw: Flaw, rng: &mut SplitMix64) -> u64 {
    let label = rng.next_u64();
    if flaw == Flaw::SkewedRemap && rng.chance(0.1) { label >> 1 } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_block_is_ever_lost_and_each_lies_on_its_path() {
        let mut sim = Sim::new(Flaw::None, 1).batches(3);
        for t in 0..500 {
            let wishes = [t % 7, t, t];
            sim.serve(&wishes);
            if t == 250 {
                sim.grow();
            }
        }
        let kept: usize = sim.buckets.iter().map(Vec::len).sum();
        assert_eq!(kept + sim.stash.len(), BLOCKS as usize);
        for (bucket, blocks) in sim.buckets.iter().enumerate().filter(|(_, b)| !b.is_empty()) {
            for &block in blocks {
                assert!(sim.path(sim.leaf(block)).any(|b| b == bucket));
            }
        }
    }

    #[test]
    fn an_honest_stash_stays_small() {
        let mut sim = Sim::new(Flaw::None, 2);
        let worst = (0..5000).map(|t| {
            sim.serve(&[t % BLOCKS]);
            sim.stash.len()
        });
        assert!(worst.max().unwrap() < 60);
    }
}

//! Long runs of a tree with windows. `just windows` has their long form.

mod places;
mod stash;

use oblivio_engine::tree::{Eviction, TreeConfig, TreeJob, TreeKeys, TreeOram, Windows};
use oblivio_engine::{Action, BlockId, BlockOp, Carrier, EngineError, carry_out};

/// Bytes of a block: the fewest, what is in it plays no part here.
const BYTES: usize = 64;

/// An engine over a store, with the tree as large as what exists, as a volume has it.
struct Rig<S> {
    engine: TreeOram,
    store: S,
    rule: Windows,
}

impl<S: Carrier<Error = EngineError>> Rig<S> {
    fn new(rule: Windows, blocks: u64, store: S) -> Self {
        let config = TreeConfig {
            eviction: Eviction::Windows(rule),
            leaf_steps: true,
            ..TreeConfig::new(BYTES, blocks)
        };
        let mut engine = TreeOram::new(config, 64, TreeKeys::from_seed(5)).expect("a good config");
        engine.grow(blocks).expect("its capacity");
        Self { engine, store, rule }
    }

    fn run(&mut self, mut job: TreeJob) {
        carry_out(&mut job, &mut self.engine, &mut self.store).expect("nobody tampered");
    }

    /// Serves a batch, which ends at the next window at the latest.
    fn serve(&mut self, ops: Vec<BlockOp>) {
        self.fit(ops.len() as u64);
        let job = self.engine.begin_batch(ops).expect("idle");
        self.run(job);
    }

    /// Accesses that are left to the next window.
    fn left(&self) -> u64 {
        self.engine.accesses_to_window().expect("windows")
    }

    fn is_due(&self) -> bool {
        self.left() == 0
    }

    fn window(&mut self) {
        let job = match self.is_due() {
            true => self.engine.begin_window(),
            false => self.engine.begin_maintenance(self.rule.turns()),
        };
        self.run(job.expect("idle"));
        self.engine.committed();
    }

    /// The tree follows what exists, and has room for `more`.
    fn fit(&mut self, more: u64) {
        let (live, class) = (self.engine.live_blocks() + more, self.engine.size_class());
        let next = self.engine.config().size_class_after(live, class).max(64);
        let next = next.min(self.engine.capacity());
        if next != class {
            self.engine.set_size_class(next).expect("below the capacity");
        }
    }
}

fn write(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(id.to_le_bytes().to_vec()) }
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

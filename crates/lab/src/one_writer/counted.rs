//! A store in memory that counts what passes, and how much memory its process takes beside it.

use crate::files::kilobytes;
use oblivio_store::{Answer, Call, Held, Layer, MemoryStore, Result};
use std::sync::atomic::{AtomicU64, Ordering};

/// Calls and bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Passed {
    /// Calls that a line would delay.
    pub calls: u64,
    /// Bytes read.
    pub down: u64,
    /// Bytes written.
    pub up: u64,
}

/// The store.
#[derive(Default)]
pub struct Counted {
    below: MemoryStore,
    calls: AtomicU64,
    down: AtomicU64,
    up: AtomicU64,
    /// The most bytes of memory, without those of `below`.
    memory: AtomicU64,
}

/// A write of this many bytes is a part of a commit or a merge: the time to look at the memory.
const LARGE: u64 = 64 << 10;

impl Counted {
    /// What passed so far.
    pub fn passed(&self) -> Passed {
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Passed { calls: of(&self.calls), down: of(&self.down), up: of(&self.up) }
    }

    /// Bytes of all objects.
    pub fn stored(&self) -> u64 {
        let objects = self.below.list().unwrap_or_default();
        objects.iter().map(|(_, bytes)| bytes).sum()
    }

    /// The most memory that the process was seen to take for itself.
    pub fn memory(&self) -> u64 {
        self.look();
        self.memory.load(Ordering::Relaxed)
    }

    fn look(&self) {
        let own = resident().saturating_sub(self.stored());
        self.memory.fetch_max(own, Ordering::Relaxed);
    }
}

impl Layer for Counted {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.below
    }

    fn call(&self, call: &mut Call<'_, '_>) -> Result<Answer> {
        let (down, up) = (call.bytes_down(), call.bytes_up());
        if !matches!(call, Call::FreeBytes | Call::Hint(_)) {
            self.calls.fetch_add(1, Ordering::Relaxed);
            self.down.fetch_add(down, Ordering::Relaxed);
            self.up.fetch_add(up, Ordering::Relaxed);
        }
        if up >= LARGE {
            self.look();
        }
        call.on(&self.below)
    }
}

/// The resident set of this process, in bytes.
fn resident() -> u64 {
    kilobytes(&std::fs::read_to_string("/proc/self/status").unwrap_or_default(), "VmRSS:") << 10
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::{ReadAt, Slots, WriteAt};

    #[test]
    fn what_passes_is_counted() -> Result<()> {
        let store = Counted::default();
        let content = vec![1; LARGE as usize];
        store.write(&[WriteAt::new("a", 0, &content), WriteAt::new("b", 8, &content)])?;
        let mut buf = [0; 100];
        store.read(&mut [ReadAt { object: "a", offset: 5, buf: &mut buf }])?;
        store.free_bytes()?;
        assert_eq!(store.passed(), Passed { calls: 2, down: 100, up: 2 * LARGE });
        assert_eq!(store.stored(), 2 * LARGE + 8);
        assert!(store.memory() > 0, "the memory of this process is known");
        Ok(())
    }
}

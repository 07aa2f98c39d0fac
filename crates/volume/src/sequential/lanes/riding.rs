//! What waits in memory for the volume to carry it: a lane's writes, in the order of their making.
//!
//! Nothing here causes a write. A quantum of the volume's log takes along as many as the lane's
//! quantum has room for, and a flush as many as the lane's bucket.

use crate::sequential::log_position::LogPosition;
use oblivio_engine::BlockId;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// The content of a block; none if it is absent.
pub(super) type Content = Option<Arc<[u8]>>;

/// One thing that waits.
#[derive(Clone, Debug)]
pub(super) enum Ride {
    /// A block is written, or made absent.
    Write(BlockId, Content),
    /// The root is replaced.
    Root(Vec<u8>),
}

/// A write that a quantum of the log has, since before this opening.
#[derive(Clone, Debug)]
pub(super) struct LoggedWrite {
    /// Its number among the lane's writes.
    pub number: u64,
    /// Where its quantum is.
    pub quantum: LogPosition,
    pub block: BlockId,
    pub content: Content,
}

/// What waits.
#[derive(Default)]
pub(super) struct Riding {
    /// In the log, and not yet in the engine: all of it comes before what is in no log.
    logged: VecDeque<LoggedWrite>,
    queue: VecDeque<Ride>,
    /// By block, the newest content that waits, and how often it waits.
    newest: BTreeMap<BlockId, (Content, u64)>,
    bytes: usize,
    /// How many there were, how many of them are in the log, and how many are durable there.
    pub accepted: u64,
    pub taken: u64,
    pub durable: u64,
}

impl Riding {
    /// With writes that the log has.
    pub fn with_logged(logged: VecDeque<LoggedWrite>) -> Self {
        let mut riding = Self::default();
        logged.iter().for_each(|it| riding.note(it.block, it.content.clone()));
        Self { logged, ..riding }
    }

    fn note(&mut self, block: BlockId, content: Content) {
        let waits = self.newest.get(&block).map_or(0, |it| it.1);
        self.newest.insert(block, (content, waits + 1));
    }

    fn forget(&mut self, block: BlockId) {
        match self.newest.get_mut(&block) {
            Some((_, waits)) if *waits > 1 => *waits -= 1,
            _ => drop(self.newest.remove(&block)),
        }
    }

    /// Takes it in, behind all others.
    pub fn accept(&mut self, ride: Ride) {
        match &ride {
            Ride::Write(block, content) => {
                self.bytes += content.as_ref().map_or(0, |content| content.len());
                self.note(*block, content.clone());
            }
            // Of two roots with nothing in between the newer counts.
            Ride::Root(_) if matches!(self.queue.back(), Some(Ride::Root(_))) => {
                self.queue.pop_back();
                self.accepted -= 1;
            }
            Ride::Root(_) => {}
        }
        self.queue.push_back(ride);
        self.accepted += 1;
    }

    /// The content of a block that waits.
    pub fn find(&self, block: BlockId) -> Option<Content> {
        self.newest.get(&block).map(|it| it.0.clone())
    }

    /// The next that no log has, once everything that one has is in the engine.
    pub fn next(&self) -> Option<&Ride> {
        self.queue.front().filter(|_| self.logged.is_empty())
    }

    /// It is in the log, and a write in the engine.
    pub fn take(&mut self) {
        let Some(ride) = self.queue.pop_front() else { return };
        self.taken += 1;
        if let Ride::Write(block, content) = ride {
            self.bytes -= content.map_or(0, |content| content.len());
            self.forget(block);
        }
    }

    /// The next that the log has and the engine lacks.
    pub fn next_logged(&self) -> Option<&LoggedWrite> {
        self.logged.front()
    }

    /// It is in the engine.
    pub fn take_logged(&mut self) {
        if let Some(write) = self.logged.pop_front() {
            self.forget(write.block);
        }
    }

    /// Bytes that wait and that no log has.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Writes that wait and that no log has.
    pub fn waiting(&self) -> usize {
        self.queue.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(block: u64, byte: u8) -> Ride {
        Ride::Write(BlockId(block), Some(Arc::from([byte; 4])))
    }

    #[test]
    fn what_waits_is_found_until_the_engine_has_it() {
        let content = |byte: u8| Some(Some(Arc::from([byte; 4])));
        let block = BlockId(3);
        let logged = LoggedWrite {
            number: 9,
            quantum: LogPosition::default(),
            block,
            content: Some([1; 4].into()),
        };
        let mut riding = Riding::with_logged(VecDeque::from([logged]));
        assert_eq!(riding.find(block), content(1));
        riding.accept(write(3, 2));
        riding.accept(Ride::Root(vec![1]));
        riding.accept(Ride::Root(vec![2]));
        riding.accept(Ride::Write(BlockId(4), None));
        riding.accept(write(3, 3));
        assert_eq!((riding.accepted, riding.waiting(), riding.bytes()), (4, 4, 8));
        assert!(riding.next().is_none(), "what is logged comes first");
        riding.take_logged();
        assert_eq!(riding.find(block), content(3));
        assert!(matches!(riding.next(), Some(Ride::Write(BlockId(3), _))));
        riding.take();
        assert_eq!(riding.find(block), content(3));
        assert!(matches!(riding.next(), Some(Ride::Root(root)) if *root == [2]));
        (0..2).for_each(|_| riding.take());
        assert_eq!(riding.find(BlockId(4)), None);
        riding.take();
        assert_eq!((riding.find(block), riding.taken, riding.bytes()), (None, 4, 0));
    }
}

//! The queue, its deadline and the server without a kernel, over a volume that stalls.

mod deadline;
pub(crate) mod flaky;
mod mounted;
mod outage;
mod padded;
mod serving;

use super::low_space::LowSpace;
use super::request::{MountQueue, close};
use super::server::{MountServer, MountSettings, OnRequest};
use super::tells::{Late, ServerTells};
use crate::fuse::{Caller, FileAnswer, FileOp, NamePlace, O_EXCL};
use crate::queue::Pulse;
use fuser::Errno;
use oblivio_engine::{BlockOp, BlockOutcome};
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_volume::fs::{FileSystem, ROOT_INO};
use oblivio_volume::{BlockSpace, Result};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a request waits for the store here. The test tells when it has passed.
const LIMIT: Duration = Duration::from_secs(3600);
/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);

/// Stalls commits and accesses while it is shut.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Doorway>, Condvar)>);

#[derive(Default)]
struct Doorway {
    shut: bool,
    waiting: usize,
}

impl Gate {
    fn shut(&self, shut: bool) {
        self.0.0.lock().expect("the gate").shut = shut;
        self.0.1.notify_all();
    }

    fn pass(&self) {
        let mut doorway = self.0.0.lock().expect("the gate");
        doorway.waiting += 1;
        self.0.1.notify_all();
        doorway = self.0.1.wait_while(doorway, |it| it.shut).expect("the gate");
        doorway.waiting -= 1;
    }

    /// Waits until somebody waits at it.
    fn met(&self) {
        let doorway = self.0.0.lock().expect("the gate");
        let waited = self.0.1.wait_timeout_while(doorway, LONG, |it| it.waiting == 0);
        assert!(!waited.expect("the gate").1.timed_out(), "nobody comes to the gate");
    }

    fn is_met(&self) -> bool {
        let doorway = self.0.0.lock().expect("the gate");
        doorway.shut && doorway.waiting > 0
    }
}

/// Blocks in memory behind a gate; counts the calls.
struct Blocks {
    inner: Box<dyn BlockSpace>,
    gate: Gate,
    counts: Arc<Counts>,
}

#[derive(Default)]
struct Counts {
    accesses: AtomicU64,
    commits: AtomicU64,
}

impl BlockSpace for Blocks {
    oblivio_volume::lacks!(resizing, deferring, absence, padding, idling, ending, readers);
    fn block_bytes(&self) -> usize {
        self.inner.block_bytes()
    }
    fn capacity_blocks(&self) -> u64 {
        self.inner.capacity_blocks()
    }
    fn reserve(&mut self, blocks: u64) -> Result<()> {
        self.inner.reserve(blocks)
    }
    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>> {
        self.gate.pass();
        self.counts.accesses.fetch_add(1, Ordering::Relaxed);
        self.inner.access_each(ops)
    }
    fn root(&self) -> &[u8] {
        self.inner.root()
    }
    fn set_root(&mut self, root: &[u8]) {
        self.inner.set_root(root);
    }
    fn commit(&mut self) -> Result<()> {
        self.gate.pass();
        self.counts.commits.fetch_add(1, Ordering::Relaxed);
        self.inner.commit()
    }
    fn cache_budget(&self) -> usize {
        self.inner.cache_budget()
    }
}

/// A server and its queue.
struct Rig {
    queue: Arc<MountQueue>,
    gate: Gate,
    counts: Arc<Counts>,
    late: Receiver<Late>,
    server: JoinHandle<Result<()>>,
    blocks: MemoryBlocks,
    stalls: AtomicU64,
}

impl Rig {
    fn new() -> Self {
        Self::with(None, Pulse::default())
    }

    fn with(on_request: Option<OnRequest>, pulse: Pulse) -> Self {
        let blocks = MemoryBlocks::new(4096, 1 << 16, 4 << 20);
        let (gate, counts) = (Gate::default(), Arc::<Counts>::default());
        let space =
            Blocks { inner: blocks.boxed(), gate: gate.clone(), counts: Arc::clone(&counts) };
        let fs = FileSystem::format(Box::new(space)).expect("an empty file system");
        let queue = Arc::new(MountQueue::new(LIMIT, pulse));
        let (tell, late) = channel();
        let commit_every = Duration::from_secs(3600);
        let settings = MountSettings { commit_every, on_request, ..MountSettings::default() };
        let scarce = LowSpace::new(channel().0);
        let tells = ServerTells { late: tell, scarce, unlearn: channel().0 };
        let server = MountServer::new(fs, Arc::clone(&queue), settings, tells);
        let server = thread::spawn(move || server.run());
        Rig { queue, gate, counts, late, server, blocks, stalls: AtomicU64::new(0) }
    }

    /// Lets this time pass, as the clock of the queue sees it.
    fn pass(&self, time: Duration) {
        let stalled = |_| {
            self.stalls.fetch_add(1, Ordering::Relaxed);
        };
        self.queue.pass(time, stalled);
    }

    /// Sends a request; the answer comes through the channel.
    fn send(&self, op: FileOp) -> Receiver<std::result::Result<FileAnswer, Errno>> {
        send(&self.queue, op)
    }

    /// Sends a request and waits; an error as its number.
    fn ask(&self, op: FileOp) -> std::result::Result<FileAnswer, i32> {
        let answer = self.send(op).recv_timeout(LONG).expect("an answer");
        answer.map_err(Errno::code)
    }

    fn create(&self, name: &str) -> (u64, u64) {
        match self.ask(create(name)) {
            Ok(FileAnswer::Created(attr, fh, _)) => (attr.ino, fh),
            other => panic!("{other:?}"),
        }
    }

    /// Ends the server well.
    fn end(self) -> MemoryBlocks {
        self.queue.close();
        self.server.join().expect("no panic").expect("a last commit");
        self.blocks
    }
}

/// Sends a request; the answer comes through the channel.
fn send(queue: &MountQueue, op: FileOp) -> Receiver<std::result::Result<FileAnswer, Errno>> {
    let (tell, answer): (Sender<_>, _) = channel();
    queue.push(op, Box::new(move |result| drop(tell.send(result))));
    answer
}

fn place(name: &str) -> NamePlace {
    NamePlace { parent: ROOT_INO, name: name.into() }
}

fn create(name: &str) -> FileOp {
    FileOp::Create { at: place(name), mode: 0o100_644, flags: O_EXCL, caller: Caller::default() }
}

fn write((ino, fh): (u64, u64), offset: u64, data: &[u8]) -> FileOp {
    FileOp::Write { ino, fh, offset, data: data.to_vec(), cached: false, flags: 0, kill: None }
}

fn read((ino, fh): (u64, u64), offset: u64, len: u32) -> FileOp {
    FileOp::Read { ino, fh, offset, len }
}

const EIO: i32 = 5;

//! The one thread that works on the disk, and `readers` beside it if the disk has them.
//!
//! It takes all waiting requests at once: first changes in order of arrival, then all reads in one
//! oblivious batch, then one commit for all that want one. The protocol lets requests that wait
//! together be served in any order; a read that came after the answer to a write sees the write.

use super::readers::{self, Readers};
use super::request::{
    DiskAnswer, DiskOp, DiskQueue, DiskRequest, DiskSlot, OnDiskRequest, errno_of, tell,
};
use super::wire::Errno;
use crate::error::Result;
use crate::lanes::{LONG, LaneMedium, LaneReplies, ServedLane};
use crate::log;
use crate::lost::ToldLost;
use crate::queue::Pulse;
use crate::server::{Habits, Medium, Running, Upkeep};
use oblivio_volume::CHANGE_BYTES;
use oblivio_volume::disk::Disk;
use std::sync::Arc;
use std::time::Duration;

/// Bytes of zeros per step where zeros must stay allocated: a request may cover 4 GiB, and others
/// are served in between.
const ZERO_BYTES: u32 = 512 << 10;
/// Limit of the extents in one reply.
const MOST_EXTENTS: usize = 4096;

/// Advice for a failure that the server cannot recover from.
const ADVICE: &str = "nothing more is read or written until the disk is served again; what was \
                      flushed is kept, what was not is lost. Put back what is missing, if anything \
                      is; then end this server, as its clients let go, and start it again. If it \
                      fails again, `oblivio check VOLUME` says what is damaged; restore a backup \
                      then";

/// The parameters of serving a disk.
pub struct DiskOptions {
    /// Whether changes are refused.
    pub read_only: bool,
    /// The longest time between a change and its commit.
    pub commit_every: Duration,
    /// Whether the volume works at a pace.
    pub paced: bool,
    /// How long a request waits for a store that makes no progress.
    pub timeout: Duration,
    /// Observes each request, to show what ordinary encryption would reveal.
    pub on_request: Option<OnDiskRequest>,
    /// Grows while the store makes progress.
    pub pulse: Pulse,
}

/// Starts the server of a disk, for any kind of client.
///
/// # Errors
/// No thread is to be had.
pub fn start(disk: Disk, options: DiskOptions) -> Result<(Arc<DiskQueue>, Running)> {
    let DiskOptions { commit_every, paced, timeout, on_request, pulse, read_only: _ } = options;
    let queue = Arc::new(DiskQueue::new(timeout, pulse));
    let settings = DiskSettings { commit_every, paced, on_request };
    let server = DiskServer::new(disk, Arc::clone(&queue), settings);
    let running = Running::start(&queue, move || server.run())?;
    Ok((queue, running))
}

/// Starts the server of a lane's disk.
///
/// # Errors
/// No thread is to be had.
pub(super) fn start_lane(
    lane: LaneMedium<Disk>,
    options: &DiskOptions,
) -> Result<(Arc<DiskQueue>, ServedLane)> {
    let LaneMedium { medium, tally } = lane;
    let queue = Arc::new(DiskQueue::new(LONG, Arc::clone(&options.pulse)));
    let commit_every = options.commit_every;
    let settings = DiskSettings { commit_every, paced: false, on_request: None };
    let mut server = DiskServer::new(medium, Arc::clone(&queue), settings);
    let served = log::hushed(|| {
        server.carried = Some(LaneReplies::start(tally.clone(), || DiskAnswer::Done, errno_of)?);
        ServedLane::start(&queue, tally, move || server.run())
    })?;
    Ok((queue, served))
}

/// The server's parameters.
pub struct DiskSettings {
    pub commit_every: Duration,
    /// Whether the volume works at a pace.
    pub paced: bool,
    pub on_request: Option<OnDiskRequest>,
}

/// The server and its state between requests.
pub struct DiskServer {
    disk: Disk,
    queue: Arc<DiskQueue>,
    upkeep: Upkeep<DiskOp, DiskAnswer, Errno>,
    on_request: Option<OnDiskRequest>,
    lost: Arc<ToldLost<u64>>,
    /// Of a lane: who answers flushes.
    carried: Option<LaneReplies<DiskAnswer, Errno>>,
}

impl DiskServer {
    pub fn new(disk: Disk, queue: Arc<DiskQueue>, settings: DiskSettings) -> Self {
        let DiskSettings { commit_every, paced, on_request } = settings;
        // A disk learns when programs sync.
        let even = true;
        let habits = Habits { commit_every, settle: None, even, paced, advice: ADVICE };
        let upkeep = Upkeep::new(Arc::clone(&queue), habits);
        DiskServer { disk, queue, upkeep, on_request, lost: Arc::default(), carried: None }
    }

    /// Serves until the queue is closed, then commits and gives the volume back.
    pub fn run(mut self) -> oblivio_volume::Result<()> {
        let readers = self.disk.reader().filter(|reader| !reader.saves_memory());
        let readers = readers.map_or_else(Readers::none, |reader| {
            let hook = self.on_request.as_ref();
            Readers::start(&reader, &self.queue, &self.upkeep.judge_beside(), hook, &self.lost)
        });
        while let Some(batch) = self.upkeep.next(&mut self.disk) {
            self.serve(batch);
        }
        let read = readers.join();
        if let Some(lane) = &self.carried {
            Medium::commit(&mut self.disk)?;
            lane.tally.served();
        }
        let ended = self.disk.into_blocks().map(drop);
        if let Err(panic) = read {
            std::panic::resume_unwind(panic);
        }
        ended
    }

    fn serve(&mut self, batch: Vec<DiskRequest>) {
        let (mut reads, mut durable) = (Vec::new(), Vec::new());
        for DiskRequest { op, slot } in batch {
            // The client already got an error for it.
            if slot.answered() {
                continue;
            }
            tell(self.on_request.as_ref(), self.disk.size(), &op);
            match op {
                DiskOp::Read { offset, len } => reads.push((offset, len as usize, slot)),
                DiskOp::Flush => durable.push(slot),
                DiskOp::Status { offset, len, one } => {
                    let most = if one { 1 } else { MOST_EXTENTS };
                    let extents = self.disk.extents(offset, u64::from(len), most);
                    slot.answer(extents.map(DiskAnswer::Extents).map_err(|error| errno_of(&error)));
                }
                op => self.change(&op, slot, &mut durable),
            }
        }
        self.read(reads);
        if !durable.is_empty() {
            self.make_durable(durable);
        }
    }

    /// Makes a change. A request that wants it durable waits for the commit.
    fn change(&mut self, op: &DiskOp, slot: DiskSlot, durable: &mut Vec<DiskSlot>) {
        let (done, waits, bytes) = match op {
            DiskOp::Write { offset, data, durable } => {
                (self.disk.write(*offset, data), *durable, data.len() as u64)
            }
            DiskOp::Zeroes { offset, len, stay, only_fast, durable } => {
                if *only_fast && (*stay || !self.disk.zeroes_fast(*offset, u64::from(*len))) {
                    slot.answer(Err(Errno::NotSupported));
                    return;
                }
                if *stay && *len > ZERO_BYTES {
                    self.long_zeroes(*offset, *len, *durable, slot);
                    return;
                }
                let len = u64::from(*len);
                let bytes = if *stay { len } else { CHANGE_BYTES };
                (self.disk.write_zeroes(*offset, len, *stay), *durable, bytes)
            }
            DiskOp::Trim { offset, len, durable } => {
                (self.disk.trim(*offset, u64::from(*len)), *durable, CHANGE_BYTES)
            }
            DiskOp::Read { .. } | DiskOp::Status { .. } | DiskOp::Flush => return,
        };
        let done = done.and_then(|()| self.disk.end_operation());
        self.upkeep.judge(done.as_ref().err());
        match done {
            Ok(()) => {
                self.upkeep.changed(bytes);
                if waits {
                    durable.push(slot);
                } else {
                    slot.answer(Ok(DiskAnswer::Done));
                }
            }
            Err(error) => {
                slot.answer(Err(errno_of(&error)));
            }
        }
    }

    /// Writes the first part of long zeros; the rest waits.
    fn long_zeroes(&mut self, offset: u64, len: u32, durable: bool, slot: DiskSlot) {
        let done = self.disk.write_zeroes(offset, u64::from(ZERO_BYTES), true);
        let done = done.and_then(|()| self.disk.end_operation());
        self.upkeep.judge(done.as_ref().err());
        if let Err(error) = done {
            slot.answer(Err(errno_of(&error)));
            return;
        }
        self.upkeep.changed(u64::from(ZERO_BYTES));
        let (offset, len) = (offset + u64::from(ZERO_BYTES), len - ZERO_BYTES);
        let op = DiskOp::Zeroes { offset, len, stay: true, only_fast: false, durable };
        self.upkeep.put_off(DiskRequest { op, slot });
    }

    /// Answers all these reads in as few batches as possible.
    fn read(&mut self, reads: Vec<(u64, usize, DiskSlot)>) {
        let (disk, upkeep) = (&mut self.disk, &self.upkeep);
        let read = |ranges: &[_]| {
            let answers = disk.read_each(ranges)?;
            disk.end_operation().map(|()| answers)
        };
        readers::answer(reads, read, |error| upkeep.judge(error), &self.lost);
    }

    /// One commit for all that want one. It covers all connections.
    fn make_durable(&mut self, waiting: Vec<DiskSlot>) {
        let committed = self.upkeep.commit(&mut self.disk);
        let errno = committed.err().map(|error| errno_of(&error));
        if let (None, Some(carried)) = (errno, &self.carried) {
            return carried.answer(waiting);
        }
        for slot in waiting {
            slot.answer(errno.map_or(Ok(DiskAnswer::Done), Err));
        }
    }
}

//! Threads that answer reads beside the one that works on the disk, where reads are no accesses. A
//! read waits for no write and no flush, and several reads keep the disk and all cores at work.

use super::request::{DiskAnswer, DiskOp, DiskQueue, DiskSlot, OnDiskRequest, errno_of, tell};
use super::wire::Errno;
use crate::log;
use crate::lost::ToldLost;
use crate::server::{Judge, READ_BYTES};
use crate::threads::spawn;
use oblivio_volume::Result;
use oblivio_volume::disk::{DiskReader, RangeAnswer};
use std::sync::Arc;
use std::thread::{self, JoinHandle};

/// Limit of the bytes of small reads answered together; a longer read is answered alone.
const TOGETHER: u64 = 128 << 10;

/// The threads.
pub struct Readers(Vec<JoinHandle<()>>);

impl Readers {
    /// None.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// One more than there are cores, two to four: while one waits for the disk the others decrypt.
    /// More where the disk is far.
    pub fn start(
        reader: &DiskReader,
        queue: &Arc<DiskQueue>,
        judge: &Arc<Judge<DiskOp, DiskAnswer, Errno>>,
        on_request: Option<&OnDiskRequest>,
        lost: &Arc<ToldLost<u64>>,
    ) -> Self {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        let wanted = reader.threads().unwrap_or((cores + 1).clamp(2, 4));
        let mut threads = Vec::new();
        for _ in 0..wanted {
            let (reader, queue, judge) = (reader.clone(), Arc::clone(queue), Arc::clone(judge));
            let (hook, lost) = (on_request.cloned(), Arc::clone(lost));
            let spawned = spawn("reader", move || {
                while let Some(requests) = queue.take_beside(wanted, TOGETHER) {
                    // The client already got an error for it.
                    let waiting = requests.into_iter().filter(|request| !request.slot.answered());
                    let mut reads = Vec::new();
                    for request in waiting {
                        tell(hook.as_ref(), reader.size(), &request.op);
                        reads.extend(as_read(&request.op).map(|(at, len)| (at, len, request.slot)));
                    }
                    let answered = |error: Option<&_>| judge.judge(error);
                    answer(reads, |ranges| reader.read_each(ranges), answered, &lost);
                }
            });
            match spawned {
                Ok(thread) => threads.push(thread),
                Err(error) => log::note(&format!("a reader could not be started: {error}")),
            }
        }
        // From now on reads wait for these threads; earlier ones are the server's.
        if !threads.is_empty() {
            queue.serve_beside(|op| as_read(op).map(|(_, len)| len as u64));
        }
        Self(threads)
    }

    /// Waits until they have answered every read from before the queue was closed.
    ///
    /// # Errors
    /// The panic of one of them.
    pub fn join(self) -> thread::Result<()> {
        // All of them, whatever the outcome of the first.
        let ended: Vec<_> = self.0.into_iter().map(JoinHandle::join).collect();
        ended.into_iter().collect()
    }
}

fn as_read(op: &DiskOp) -> Option<(u64, usize)> {
    match *op {
        DiskOp::Read { offset, len } => Some((offset, len as usize)),
        _ => None,
    }
}

/// Answers reads in batches; `judge` gets the outcome of each batch. What is lost fails those reads
/// that want it, and no others.
pub fn answer(
    mut reads: Vec<(u64, usize, DiskSlot)>,
    mut read: impl FnMut(&[(u64, usize)]) -> Result<Vec<RangeAnswer>>,
    mut judge: impl FnMut(Option<&oblivio_volume::Error>),
    told: &ToldLost<u64>,
) {
    while !reads.is_empty() {
        let rest = reads.split_off(first_batch(&reads));
        let batch = std::mem::replace(&mut reads, rest);
        let ranges: Vec<_> = batch.iter().map(|&(offset, len, _)| (offset, len)).collect();
        let answers = read(&ranges);
        judge(answers.as_ref().err());
        match answers {
            Ok(answers) => {
                for ((.., slot), data) in batch.into_iter().zip(answers) {
                    if let Err(lost) = &data {
                        told.tell(lost.ranges.first().map_or(0, |range| range.start), lost);
                    }
                    slot.answer(data.map(DiskAnswer::Data).map_err(|_| Errno::Io));
                }
            }
            Err(error) => {
                for (.., slot) in batch {
                    slot.answer(Err(errno_of(&error)));
                }
            }
        }
    }
}

/// How many of these reads make a batch.
fn first_batch(reads: &[(u64, usize, DiskSlot)]) -> usize {
    let mut bytes = 0;
    let fits = |&(_, len, _): &&(u64, usize, DiskSlot)| {
        bytes += *len as u64;
        bytes <= READ_BYTES
    };
    reads.iter().take_while(fits).count().max(1)
}

//! The requests of a device, and their answers.

use crate::abi::{Command, Description, Numbering};
use crate::raw::{Event, QueueRing};
use crate::{DEPTH, MOST_BYTES};
use rustix::event::{EventfdFlags, eventfd};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

/// The system's error for a failure of the disk.
const EIO: i32 = 5;
/// The system's error for an unknown request.
const EOPNOTSUPP: i32 = 95;

/// The name of a request in its answer.
#[derive(Debug, PartialEq, Eq)]
pub struct RequestTag {
    number: u16,
    /// The request's length in bytes.
    len: u64,
}

/// The operation of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UblkOp {
    /// Read bytes.
    Read {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes: at most [`MOST_BYTES`].
        len: u32,
    },
    /// Write these bytes.
    Write {
        /// Offset in bytes.
        offset: u64,
        /// The bytes.
        data: Vec<u8>,
        /// Whether they must be durable when it is answered.
        durable: bool,
    },
    /// Make all earlier writes durable.
    Flush,
    /// Drop these bytes.
    Discard {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes: at most a gibibyte.
        len: u32,
    },
    /// Set these bytes to zero.
    Zeroes {
        /// Offset in bytes.
        offset: u64,
        /// Length in bytes: at most a gibibyte.
        len: u32,
        /// Whether they must stay allocated.
        stay: bool,
        /// Whether they must be durable when it is answered.
        durable: bool,
    },
}

/// A request to the device.
#[derive(Debug, PartialEq, Eq)]
pub struct UblkRequest {
    /// Names the request in its answer.
    pub tag: RequestTag,
    /// The operation.
    pub op: UblkOp,
}

struct Answer {
    tag: RequestTag,
    result: Result<Vec<u8>, i32>,
}

/// Takes the answers: one for each request, on any thread.
#[derive(Clone)]
pub struct Answers {
    to: Sender<Answer>,
    wake: Arc<OwnedFd>,
}

impl Answers {
    /// Answers a request: with the data of a read, with nothing for every other operation, or with
    /// the system's number of an error.
    pub fn answer(&self, tag: RequestTag, result: Result<Vec<u8>, i32>) {
        // If the queue is gone, so are the device and its caller.
        if self.to.send(Answer { tag, result }).is_ok() {
            let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
        }
    }
}

/// The requests of a device.
pub struct UblkQueue {
    ring: QueueRing,
    depth: u16,
    answers: Receiver<Answer>,
    wake: Arc<OwnedFd>,
}

impl UblkQueue {
    pub(crate) fn new(
        device: File,
        numbering: Numbering,
        depth: u16,
    ) -> io::Result<(Self, Answers)> {
        if depth == 0 || depth > DEPTH {
            return Err(io::Error::other("the driver wants another number of requests than asked"));
        }
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        let ring =
            QueueRing::new(device, Arc::clone(&wake), numbering, depth, MOST_BYTES as usize)?;
        let (to, answers) = channel();
        let queue = Self { ring, depth, answers, wake: Arc::clone(&wake) };
        Ok((queue, Answers { to, wake }))
    }

    /// Hands every request to `handle`, which should return quickly, until the device is stopped.
    /// All of it must run on one thread.
    ///
    /// # Errors
    /// Those of the system; then nobody answers for the device any more.
    pub fn serve(mut self, mut handle: impl FnMut(UblkRequest)) -> io::Result<()> {
        for tag in 0..self.depth {
            self.ring.command(Command::Fetch, tag, 0)?;
        }
        self.ring.listen()?;
        let mut live = self.depth;
        while live > 0 {
            for event in self.ring.wait()? {
                match event {
                    Event::Done(tag, 0) => self.hand_out(tag, &mut handle)?,
                    // The device was stopped: this tag gets no more requests.
                    Event::Done(..) => live -= 1,
                    Event::Wake => {
                        // The value counts answers; only the wake-up matters.
                        let _ = rustix::io::read(&self.wake, &mut [0; 8]);
                        self.ring.listen()?;
                    }
                }
            }
            while let Ok(answer) = self.answers.try_recv() {
                self.tell(answer)?;
            }
        }
        Ok(())
    }

    fn hand_out(&mut self, number: u16, handle: &mut impl FnMut(UblkRequest)) -> io::Result<()> {
        let description = self.ring.description(number);
        let written = |len| self.ring.written(number, len);
        match op(&description, written) {
            Some(op) => {
                handle(UblkRequest { tag: RequestTag { number, len: description.len }, op });
                Ok(())
            }
            None => self.ring.command(Command::CommitAndFetch, number, -EOPNOTSUPP),
        }
    }

    fn tell(&mut self, answer: Answer) -> io::Result<()> {
        let RequestTag { number, len } = answer.tag;
        let result = match answer.result {
            Ok(data) => {
                self.ring.lay_ready(number, &data);
                let done = if data.is_empty() { len } else { len.min(data.len() as u64) };
                i32::try_from(done).unwrap_or(i32::MAX)
            }
            Err(error) if error > 0 => -error,
            Err(_) => -EIO,
        };
        self.ring.command(Command::CommitAndFetch, number, result)
    }
}

/// The operation of a description, with the bytes of a write; `None` if it is unknown here.
fn op(asked: &Description, written: impl Fn(usize) -> Vec<u8>) -> Option<UblkOp> {
    let Description { offset, durable, no_unmap: stay, .. } = *asked;
    let len = u32::try_from(asked.len).ok()?;
    match asked.op {
        0 if len <= MOST_BYTES => Some(UblkOp::Read { offset, len }),
        1 if len <= MOST_BYTES => {
            Some(UblkOp::Write { offset, data: written(len as usize), durable })
        }
        2 => Some(UblkOp::Flush),
        3 => Some(UblkOp::Discard { offset, len }),
        5 => Some(UblkOp::Zeroes { offset, len, stay, durable }),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(op: u8, len: u64) -> Description {
        Description { op, durable: true, no_unmap: true, offset: 4096, len }
    }

    #[test]
    fn descriptions_become_requests() {
        let bytes = |len| vec![7; len];
        let offset = 4096;
        let zeroes = UblkOp::Zeroes { offset, len: 1 << 30, stay: true, durable: true };
        let all = [
            (asked(0, 512), Some(UblkOp::Read { offset, len: 512 })),
            (asked(0, u64::from(MOST_BYTES) + 512), None),
            (asked(1, 1024), Some(UblkOp::Write { offset, data: vec![7; 1024], durable: true })),
            (asked(2, 0), Some(UblkOp::Flush)),
            (asked(3, 1 << 30), Some(UblkOp::Discard { offset, len: 1 << 30 })),
            (asked(4, 512), None),
            (asked(5, 1 << 30), Some(zeroes)),
            (asked(5, 1 << 33), None),
            (asked(15, 0), None),
        ];
        for (description, expected) in all {
            assert_eq!(op(&description, bytes), expected);
        }
    }
}

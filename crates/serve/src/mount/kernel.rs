//! Queues requests with what hands their answers to the kernel.

use super::convert;
use super::references::References;
use super::reply::{GENERATION, Long, TTL, answer};
use super::request::{Answer, Op, Queue, Replier};
use super::scarce::Scarce;
use super::writers::Writers;
use fuser::{Errno, ReplyAttr, ReplyData, ReplyEmpty, ReplyEntry, ReplyWrite, ReplyXattr};
use oblivio_volume::fs::Ino;
use std::sync::Arc;
use std::sync::mpsc::{SendError, Sender};

/// From this size on, handing data over takes longer than waking a thread to do it.
const LONG: usize = 64 << 10;

/// The connection to the kernel.
pub struct Kernel {
    pub queue: Arc<Queue>,
    pub block_bytes: u32,
    pub writers: Writers,
    pub references: References,
    pub scarce: Scarce,
    /// Requests that must follow the kernel's cached writes of the file.
    pub flush: Sender<(Op, Replier)>,
    /// Answers that take long to hand over.
    pub long: Sender<Long>,
}

impl Kernel {
    pub(super) fn entry(&self, op: Op, reply: ReplyEntry) {
        let (block, references) = (self.block_bytes, self.references.clone());
        let scarce = self.scarce.clone();
        self.queue.push(
            op,
            answer!(reply,
                Answer::Entry(Some(attr)) => {
                    references.told(attr.ino);
                    reply.entry(&TTL, &convert::attr(&attr, block), GENERATION);
                    scarce.told(attr.ino);
                },
                Answer::Entry(None) => reply.entry(&TTL, &convert::nothing(), GENERATION),
            ),
        );
    }

    pub(super) fn empty(&self, op: Op, reply: ReplyEmpty) {
        self.queue.push(op, answer!(reply, Answer::Done => reply.ok()));
    }

    pub(super) fn attr(&self, op: Op, reply: ReplyAttr) {
        let (block, scarce) = (self.block_bytes, self.scarce.clone());
        self.queue.push(
            op,
            answer!(reply, Answer::Attr(attr) => {
                reply.attr(&TTL, &convert::attr(&attr, block));
                scarce.told(attr.ino);
            }),
        );
    }

    /// A program is about to write: the kernel has already forgotten the attributes that it gets
    /// now.
    pub(super) fn asked(&self, ino: Ino, fh: u64, reply: ReplyAttr) {
        let (block, queue) = (self.block_bytes, Arc::clone(&self.queue));
        self.scarce.before(ino, move || {
            queue.push(
                Op::Ask { ino, fh },
                answer!(reply, Answer::Attr(attr) => reply.attr(&TTL, &convert::attr(&attr, block))),
            );
        });
    }

    pub(super) fn written(&self, op: Op, reply: ReplyWrite) {
        self.queue.push(op, answer!(reply, Answer::Written(bytes) => reply.written(bytes)));
    }

    pub(super) fn data(&self, op: Op, reply: ReplyData) {
        self.queue.push(op, answer!(reply, Answer::Data(data) => reply.data(&data)));
    }

    /// As [`Self::data`], for long data: the server goes on during the hand-over.
    pub(super) fn long_data(&self, op: Op, reply: ReplyData) {
        let long = self.long.clone();
        self.queue.push(
            op,
            answer!(reply,
                Answer::Data(data) if data.len() >= LONG => {
                    // Without the thread, hand it over here.
                    if let Err(SendError((reply, data))) = long.send((reply, data)) {
                        reply.data(&data);
                    }
                },
                Answer::Data(data) => reply.data(&data),
            ),
        );
    }

    pub(super) fn xattr(&self, op: Op, reply: ReplyXattr) {
        self.queue.push(
            op,
            answer!(reply,
                Answer::Data(data) => reply.data(&data),
                Answer::Size(size) => reply.size(size),
            ),
        );
    }
}

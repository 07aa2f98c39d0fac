//! Copies of what was written to a file and is not durable yet.

use crate::medium::Medium;
use std::io;

/// Writes in order, with what they wrote.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The offset of each write, and its length.
    writes: Vec<(u64, usize)>,
    /// What they wrote, one after the other; it lasts, since fresh memory costs more than the copy.
    bytes: Vec<u8>,
    /// How many of the writes the system was given already.
    given: usize,
    /// Where the last byte ends.
    end: u64,
}

/// What is kept of a range.
pub(super) enum Found {
    /// Nothing: the file has it.
    Nothing,
    /// A part, or parts of several writes.
    Part,
    /// All of it, and it was copied.
    All,
}

impl Kept {
    pub(super) fn is_empty(&self) -> bool {
        self.writes.is_empty()
    }

    /// Bytes that are kept.
    pub(super) fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that the system was not given yet.
    pub(super) fn waiting(&self) -> usize {
        self.writes[self.given..].iter().map(|write| write.1).sum()
    }

    /// Where the last byte ends that was written.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Keeps what is to be written later.
    pub(super) fn add(&mut self, offset: u64, data: &[u8]) {
        self.writes.push((offset, data.len()));
        self.bytes.extend_from_slice(data);
        self.end = self.end.max(offset.saturating_add(data.len() as u64));
    }

    /// Keeps what the system was just given; nothing may wait.
    pub(super) fn add_given(&mut self, offset: u64, data: &[u8]) {
        self.add(offset, data);
        self.given = self.writes.len();
    }

    /// Everything is durable.
    pub(super) fn forget(&mut self) {
        self.writes.clear();
        self.bytes.clear();
        (self.given, self.end) = (0, 0);
    }

    /// The system may have lost what it was given.
    pub(super) fn take_back(&mut self) {
        self.given = 0;
    }

    /// The file was cut to so many bytes.
    pub(super) fn cut(&mut self, len: u64) {
        let before = std::mem::take(self);
        for (offset, data) in before.each() {
            let left = usize::try_from(len.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.add(offset, &data[..left.min(data.len())]);
        }
        (self.given, self.end) = (before.given, self.end.min(len));
    }

    fn each(&self) -> impl Iterator<Item = (u64, &[u8])> {
        let mut rest = self.bytes.as_slice();
        self.writes.iter().map(move |&(offset, len)| {
            let (data, others) = rest.split_at(len);
            rest = others;
            (offset, data)
        })
    }

    /// Whether any of it is in this range.
    pub(super) fn touches(&self, offset: u64, len: u64) -> bool {
        let end = offset.saturating_add(len);
        self.writes.iter().any(|&(at, len)| at < end && offset < at + len as u64)
    }

    /// Fills `buf` if one write has all of the range and no later one has a part of it.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Found {
        let end = offset + buf.len() as u64;
        let mut behind = self.bytes.len();
        for &(at, len) in self.writes.iter().rev() {
            behind -= len;
            if at >= end || offset >= at + len as u64 {
                continue;
            }
            if offset < at || end > at + len as u64 {
                return Found::Part;
            }
            let from = behind + (offset - at) as usize;
            buf.copy_from_slice(&self.bytes[from..from + buf.len()]);
            return Found::All;
        }
        Found::Nothing
    }

    /// Gives the system what it was not given.
    pub(super) fn give(&self, medium: &impl Medium) -> io::Result<()> {
        self.each().skip(self.given).try_for_each(|(offset, data)| medium.write_at(data, offset))
    }
}

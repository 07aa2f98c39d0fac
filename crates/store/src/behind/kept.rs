//! What was written to a file and is not durable yet.

use crate::medium::Medium;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// What ranges are to hold, of which no two overlap.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By where they begin.
    pieces: BTreeMap<u64, Piece>,
    /// Bytes of all of them.
    len: usize,
    /// Bytes of those that the system was not given yet.
    waiting: usize,
}

#[derive(Debug)]
struct Piece {
    /// Whoever wrote it may have it too; it does not change.
    whole: Arc<Vec<u8>>,
    /// What of it is to be in the file.
    part: Range<usize>,
    /// So many zeros come behind that.
    zeros: usize,
    /// The system has it, but has not said that it is durable.
    given: bool,
}

impl Piece {
    fn data(&self) -> &[u8] {
        &self.whole[self.part.clone()]
    }

    fn len(&self) -> usize {
        self.part.len() + self.zeros
    }

    fn waiting(&self) -> usize {
        if self.given { 0 } else { self.len() }
    }

    /// Cuts it, and gives what comes behind that.
    fn split_off(&mut self, at: usize) -> Self {
        let data = at.min(self.part.len());
        let middle = self.part.start + data;
        let rest = Self {
            whole: Arc::clone(&self.whole),
            part: middle..self.part.end,
            zeros: self.len() - at.max(self.part.len()),
            given: self.given,
        };
        (self.part.end, self.zeros) = (middle, at - data);
        rest
    }

    /// Fills `buf` with what it has from `at` on.
    fn copy_to(&self, at: usize, buf: &mut [u8]) {
        let data = self.data().get(at..).unwrap_or_default();
        let (filled, zeros) = buf.split_at_mut(data.len().min(buf.len()));
        filled.copy_from_slice(&data[..filled.len()]);
        zeros.fill(0);
    }
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
        self.pieces.is_empty()
    }

    /// Bytes that are kept.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that the system was not given yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Where the last byte ends; 0 when there is none.
    pub(super) fn end(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.len() as u64)
    }

    /// Keeps what is to be written later, or what the system was just `given`, with zeros behind it.
    pub(super) fn add(&mut self, offset: u64, data: Arc<Vec<u8>>, zeros: usize, given: bool) {
        if data.is_empty() {
            return;
        }
        let piece = Piece { part: 0..data.len(), whole: data, zeros, given };
        self.remove(offset, offset + piece.len() as u64);
        self.insert(offset, piece);
    }

    fn insert(&mut self, offset: u64, piece: Piece) {
        self.len += piece.len();
        self.waiting += piece.waiting();
        self.pieces.insert(offset, piece);
    }

    /// Forgets a range.
    fn remove(&mut self, begin: u64, end: u64) {
        self.split(begin);
        self.split(end);
        while let Some((&at, _)) = self.pieces.range(begin..end).next() {
            if let Some(piece) = self.pieces.remove(&at) {
                self.len -= piece.len();
                self.waiting -= piece.waiting();
            }
        }
    }

    /// Makes two pieces of one that reaches over `at`.
    fn split(&mut self, at: u64) {
        let Some((begin, piece)) = self.pieces.range_mut(..at).next_back() else { return };
        let before = (at - begin) as usize;
        if before < piece.len() {
            let rest = piece.split_off(before);
            self.pieces.insert(at, rest);
        }
    }

    /// Takes some out, the first ones: so many bytes, or a piece more.
    pub(super) fn take(&mut self, bytes: usize) -> Self {
        let mut taken = Self::default();
        while taken.len < bytes
            && let Some((at, piece)) = self.pieces.pop_first()
        {
            self.len -= piece.len();
            self.waiting -= piece.waiting();
            taken.insert(at, piece);
        }
        taken
    }

    /// The system may have lost what it was given.
    pub(super) fn take_back(&mut self) {
        self.pieces.values_mut().for_each(|piece| piece.given = false);
        self.waiting = self.len;
    }

    /// The file was cut to so many bytes.
    pub(super) fn cut(&mut self, len: u64) {
        self.remove(len, self.end().max(len));
    }

    /// Whether any of it is in this range.
    pub(super) fn touches(&self, offset: u64, len: u64) -> bool {
        self.last_before(offset.saturating_add(len)).is_some_and(|(at, kept)| at + kept > offset)
    }

    /// The last piece that begins before `end`, and its length.
    fn last_before(&self, end: u64) -> Option<(u64, u64)> {
        let (at, piece) = self.pieces.range(..end).next_back()?;
        Some((*at, piece.len() as u64))
    }

    /// Fills `buf` if one piece has all of the range.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Found {
        let end = offset + buf.len() as u64;
        let Some((at, len)) = self.last_before(end).filter(|(at, len)| at + len > offset) else {
            return Found::Nothing;
        };
        match self.pieces.get(&at) {
            Some(piece) if at <= offset && end <= at + len => {
                piece.copy_to((offset - at) as usize, buf);
                Found::All
            }
            _ => Found::Part,
        }
    }

    /// Gives the system what it was not given, and has it begin with each at once: while the disk writes one
    /// the next is copied, and a sync that follows has little to wait for.
    pub(super) fn give(&self, medium: &impl Medium) -> io::Result<()> {
        for (&at, piece) in self.pieces.iter().filter(|(_, piece)| !piece.given) {
            medium.write_at(piece.data(), piece.zeros, at)?;
            medium.write_out(at, piece.len());
        }
        Ok(())
    }
}

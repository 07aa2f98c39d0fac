//! Writes to a file that are not durable yet.

use crate::medium::Medium;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

/// The new content of ranges, no two of which overlap.
#[derive(Debug, Default)]
pub(super) struct Kept {
    /// By offset.
    pieces: BTreeMap<u64, Piece>,
    /// Bytes of all of them.
    len: usize,
    /// Bytes of those that the system does not have yet.
    waiting: usize,
}

#[derive(Debug)]
struct Piece {
    /// Perhaps shared with the writer; it does not change.
    whole: Arc<Vec<u8>>,
    /// Its part for the file.
    part: Range<usize>,
    /// Zeros after that part.
    zeros: usize,
    /// The system has it, but has not reported it durable.
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

    /// Cuts it, and returns the rest.
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

    /// Fills `buf` with its bytes from `at` on.
    fn copy_to(&self, at: usize, buf: &mut [u8]) {
        let data = self.data().get(at..).unwrap_or_default();
        let (filled, zeros) = buf.split_at_mut(data.len().min(buf.len()));
        filled.copy_from_slice(&data[..filled.len()]);
        zeros.fill(0);
    }
}

/// The kept part of a range.
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

    /// Bytes kept.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Bytes that the system does not have yet.
    pub(super) fn waiting(&self) -> usize {
        self.waiting
    }

    /// The end of the last byte; 0 without any.
    pub(super) fn end(&self) -> u64 {
        self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.len() as u64)
    }

    /// Keeps a deferred write, or one that the system was just `given`, with zeros after it.
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

    /// Splits a piece that extends across `at`.
    fn split(&mut self, at: u64) {
        let Some((begin, piece)) = self.pieces.range_mut(..at).next_back() else { return };
        let before = (at - begin) as usize;
        if before < piece.len() {
            let rest = piece.split_off(before);
            self.pieces.insert(at, rest);
        }
    }

    /// Removes the first pieces: `bytes` bytes, or a piece more.
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

    /// The system may have lost all of them.
    pub(super) fn take_back(&mut self) {
        self.pieces.values_mut().for_each(|piece| piece.given = false);
        self.waiting = self.len;
    }

    /// The file was cut to `len` bytes.
    pub(super) fn cut(&mut self, len: u64) {
        self.remove(len, self.end().max(len));
    }

    /// Whether any of it overlaps this range.
    pub(super) fn touches(&self, offset: u64, len: u64) -> bool {
        self.last_before(offset.saturating_add(len)).is_some_and(|(at, kept)| at + kept > offset)
    }

    /// Whether the system lacks a piece that overlaps this range.
    pub(super) fn waits(&self, begin: u64, end: u64) -> bool {
        let before = self.pieces.range(..end).rev();
        let mut over = before.take_while(|(at, piece)| *at + piece.len() as u64 > begin);
        self.waiting > 0 && over.any(|(_, piece)| !piece.given)
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

    /// Hands the system the pieces that it lacks, and starts writing each at once: the disk writes
    /// one while the next is copied, so a sync that follows waits little.
    pub(super) fn give(&self, medium: &impl Medium) -> io::Result<()> {
        for (&at, piece) in self.pieces.iter().filter(|(_, piece)| !piece.given) {
            medium.write_at(piece.data(), piece.zeros, at)?;
            medium.write_out(at, piece.len());
        }
        Ok(())
    }
}

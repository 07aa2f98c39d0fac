//! Copies of what was written to a file and is not durable yet.

use crate::medium::Medium;
use std::collections::BTreeMap;
use std::io;

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
    data: Vec<u8>,
    /// The system has it, but has not said that it is durable.
    given: bool,
}

impl Piece {
    fn waiting(&self) -> usize {
        if self.given { 0 } else { self.data.len() }
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
        self.pieces.last_key_value().map_or(0, |(at, piece)| at + piece.data.len() as u64)
    }

    /// Keeps what is to be written later, or what the system was just `given`.
    pub(super) fn add(&mut self, offset: u64, data: &[u8], given: bool) {
        self.add_to(offset + data.len() as u64, offset, data, given);
    }

    /// As [`Self::add`], with zeros behind it up to `end`.
    pub(super) fn add_to(&mut self, end: u64, offset: u64, data: &[u8], given: bool) {
        if data.is_empty() {
            return;
        }
        self.remove(offset, end);
        let mut kept = Vec::with_capacity((end - offset) as usize);
        kept.extend_from_slice(data);
        kept.resize((end - offset) as usize, 0);
        self.insert(offset, Piece { data: kept, given });
    }

    fn insert(&mut self, offset: u64, piece: Piece) {
        self.len += piece.data.len();
        self.waiting += piece.waiting();
        self.pieces.insert(offset, piece);
    }

    /// Forgets a range.
    fn remove(&mut self, begin: u64, end: u64) {
        self.split(begin);
        self.split(end);
        while let Some((&at, _)) = self.pieces.range(begin..end).next() {
            if let Some(piece) = self.pieces.remove(&at) {
                self.len -= piece.data.len();
                self.waiting -= piece.waiting();
            }
        }
    }

    /// Makes two pieces of one that reaches over `at`.
    fn split(&mut self, at: u64) {
        let Some((begin, piece)) = self.pieces.range_mut(..at).next_back() else { return };
        let before = (at - begin) as usize;
        if before < piece.data.len() {
            let rest = Piece { data: piece.data.split_off(before), given: piece.given };
            self.pieces.insert(at, rest);
        }
    }

    /// Takes some out, the first ones: so many bytes, or a piece more.
    pub(super) fn take(&mut self, bytes: usize) -> Self {
        let mut taken = Self::default();
        while taken.len < bytes
            && let Some((at, piece)) = self.pieces.pop_first()
        {
            self.len -= piece.data.len();
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
        self.last_before(offset.saturating_add(len)).is_some_and(|(at, data)| at + data > offset)
    }

    /// The last piece that begins before `end`, and its length.
    fn last_before(&self, end: u64) -> Option<(u64, u64)> {
        let (at, piece) = self.pieces.range(..end).next_back()?;
        Some((*at, piece.data.len() as u64))
    }

    /// Fills `buf` if one piece has all of the range.
    pub(super) fn read(&self, offset: u64, buf: &mut [u8]) -> Found {
        let end = offset + buf.len() as u64;
        let Some((at, len)) = self.last_before(end).filter(|(at, len)| at + len > offset) else {
            return Found::Nothing;
        };
        match self.pieces.get(&at) {
            Some(piece) if at <= offset && end <= at + len => {
                buf.copy_from_slice(&piece.data[(offset - at) as usize..][..buf.len()]);
                Found::All
            }
            _ => Found::Part,
        }
    }

    /// Gives the system what it was not given.
    pub(super) fn give(&self, medium: &impl Medium) -> io::Result<()> {
        let mut waiting = self.pieces.iter().filter(|(_, piece)| !piece.given);
        waiting.try_for_each(|(&at, piece)| medium.write_at(&piece.data, at))
    }
}

//! Frames on the line: every message of both sides.
//!
//! ```text
//! frame  length of what follows 4 | kind 1 | number 8 | length of the head 4 | head | body
//! ```
//!
//! Numbers are little-endian. The head is of postcard: numbers and lengths. The body is what is
//! sealed, one after the other, as long as the head says. A reply has its request's number.

use crate::line::LineWriter;
use std::borrow::Cow;
use std::io::{self, ErrorKind, Read, Write};

/// Bytes of a frame before its head.
const BEFORE: usize = 4 + 1 + 8 + 4;
/// The longest head.
pub const MOST_HEAD: usize = oblivio_store::share::MOST_HEAD_BYTES + 1024;
/// The longest frame from a device that is known.
pub const MOST_FRAME: usize = oblivio_store::share::MOST_ENTRY_BYTES + (2 << 20);
/// The longest frame before that.
pub const MOST_FIRST_FRAME: usize = 1024;

/// What a frame is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// The first of a client: who it is.
    Hello,
    /// The first of the server: the client is known.
    Welcome,
    /// A request.
    Call,
    /// What it returned, or the last of it.
    Reply,
    /// Why it failed.
    Failure,
    /// A reply that another one of the same call follows.
    Part,
}

/// All of them, by the numbers that they have in frames.
pub const KINDS: [FrameKind; 6] = [
    FrameKind::Hello,
    FrameKind::Welcome,
    FrameKind::Call,
    FrameKind::Reply,
    FrameKind::Failure,
    FrameKind::Part,
];

/// A frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'b> {
    /// What it is.
    pub kind: FrameKind,
    /// The number of the request.
    pub number: u64,
    /// Numbers and lengths.
    pub head: Vec<u8>,
    /// What is sealed.
    pub body: Cow<'b, [u8]>,
}

fn bad(what: &'static str) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what)
}

impl Frame<'_> {
    /// Its length.
    #[must_use]
    pub fn len(&self) -> usize {
        BEFORE + self.head.len() + self.body.len()
    }

    /// What stands before its head.
    fn before(&self) -> [u8; BEFORE] {
        let mut before = [0; BEFORE];
        before[..4].copy_from_slice(&((self.len() - 4) as u32).to_le_bytes());
        before[4] = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or(0) as u8;
        before[5..13].copy_from_slice(&self.number.to_le_bytes());
        before[13..].copy_from_slice(&(self.head.len() as u32).to_le_bytes());
        before
    }

    /// Its bytes.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        [&self.before()[..], &self.head, &self.body].concat()
    }

    /// Sends it, together, whatever other threads send.
    ///
    /// # Errors
    /// Those of the line.
    pub fn send(&self, line: &LineWriter) -> io::Result<()> {
        line.send([&self.before(), &self.head, &self.body])
    }

    /// Reads one of at most `most` bytes; none at the end of the line. Nothing is reserved before
    /// its length is known to be allowed.
    ///
    /// # Errors
    /// Those of the line; `InvalidData` for what is no frame.
    pub fn read(from: &mut impl Read, most: usize) -> io::Result<Option<Self>> {
        let Some(first) = Self::first(from)? else { return Ok(None) };
        let (frame, ()) = Self::rest(first, from, most, |_| ())?;
        Ok(Some(frame))
    }

    /// Waits for the first byte of a frame; none at the end of the line.
    ///
    /// # Errors
    /// Those of the line.
    pub fn first(from: &mut impl Read) -> io::Result<Option<u8>> {
        let mut byte = [0];
        Ok(if from.read(&mut byte)? == 0 { None } else { Some(byte[0]) })
    }

    /// Reads what follows the first byte. `reserve` hears the frame's length before it comes, and
    /// may wait until there is room.
    ///
    /// # Errors
    /// As for [`Self::read`].
    pub fn rest<H>(
        first: u8,
        from: &mut impl Read,
        most: usize,
        reserve: impl FnOnce(usize) -> H,
    ) -> io::Result<(Self, H)> {
        let mut before = [first; BEFORE];
        from.read_exact(&mut before[1..])?;
        let word = |at: usize| {
            u32::from_le_bytes([before[at], before[at + 1], before[at + 2], before[at + 3]])
                as usize
        };
        let (after, head) = (word(0), word(13));
        let kind = KINDS.get(usize::from(before[4])).ok_or(bad("a frame of no known kind"))?;
        let mut number = [0; 8];
        number.copy_from_slice(&before[5..13]);
        let rest = after.checked_sub(BEFORE - 4).and_then(|rest| rest.checked_sub(head));
        let body = rest.ok_or(bad("a frame that is shorter than its head"))?;
        if after > most || head > MOST_HEAD {
            return Err(bad("a frame that is too long"));
        }
        let held = reserve(after);
        let head = read_exactly(from, head)?;
        let body = read_exactly(from, body)?;
        let number = u64::from_le_bytes(number);
        Ok((Self { kind: *kind, number, head, body: body.into() }, held))
    }

    /// Sends it.
    ///
    /// # Errors
    /// Those of the line.
    pub fn write(&self, to: &mut impl Write) -> io::Result<()> {
        to.write_all(&self.encode())
    }
}

/// Reads bytes; what is reserved grows with what comes.
fn read_exactly(from: &mut impl Read, len: usize) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(len.min(64 << 10));
    from.take(len as u64).read_to_end(&mut bytes)?;
    if bytes.len() == len { Ok(bytes) } else { Err(ErrorKind::UnexpectedEof.into()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame() -> Frame<'static> {
        let (head, body) = (vec![1, 2, 3], vec![4; 9].into());
        Frame { kind: FrameKind::Call, number: u64::MAX - 1, head, body }
    }

    #[test]
    fn a_frame_comes_back() {
        let bytes = [frame().encode(), frame().encode()].concat();
        let mut from = &*bytes;
        for _ in 0..2 {
            assert_eq!(Frame::read(&mut from, 100).unwrap(), Some(frame()));
        }
        assert_eq!(Frame::read(&mut from, 100).unwrap(), None);
        for end in 1..bytes.len() / 2 {
            assert!(Frame::read(&mut &bytes[..end], 100).is_err(), "cut at {end}");
        }
    }

    #[test]
    fn limits_hold_before_anything_is_reserved() {
        let bytes = frame().encode();
        assert!(Frame::read(&mut &*bytes, bytes.len() - 5).is_err());
        assert!(Frame::read(&mut &*bytes, bytes.len() - 4).is_ok());
        for (at, word) in [(0, u32::MAX), (0, 3), (0, 12), (13, u32::MAX), (13, 13)] {
            let mut wrong = bytes.clone();
            wrong[at..at + 4].copy_from_slice(&word.to_le_bytes());
            assert!(Frame::read(&mut &*wrong, MOST_FRAME).is_err(), "{at} {word}");
        }
        let mut wrong = bytes;
        wrong[4] = KINDS.len() as u8;
        assert!(Frame::read(&mut &*wrong, 100).is_err(), "no such kind");
    }
}

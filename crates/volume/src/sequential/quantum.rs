//! One quantum of the log: a fixed number of writes, padded and sealed.
//!
//! Plaintext: `before 16 | durable 8 | first write 8 | entries 4 | root length 4 | root 1024 |
//! (kind 8, address 8) for each write | their contents`, with room for all. Zeros follow, up to a
//! whole number of pages with the seal. Length `NO_ROOT` means no root.

use super::PAGE;
use super::header::SequentialHeader;
use crate::block::ROOT_BYTES;
use crate::trust::ComputerId;
use oblivio_crypto::{SEAL_HEADER, SEAL_OVERHEAD, TAG_BYTES, Tag};
use oblivio_engine::BlockId;

const FIXED: usize = TAG_BYTES + 8 + 8 + 4 + 4 + ROOT_BYTES;
const ENTRY: usize = 16;
const NO_ROOT: u32 = u32::MAX;
const WRITE: u64 = 1;
const DISCARD: u64 = 2;
const PADDING: u64 = 3;
const SESSION: u64 = 4;

/// The form of all quanta of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Writes that fit in a quantum.
    pub writes: usize,
}

impl Form {
    /// That of a volume.
    pub fn of(header: &SequentialHeader) -> Self {
        Self { block_bytes: header.engine.block_bytes, writes: header.quantum_writes as usize }
    }

    /// Bytes of a quantum in the store.
    pub fn bytes(&self) -> usize {
        let plain = FIXED + self.writes * (ENTRY + self.block_bytes);
        (plain + SEAL_OVERHEAD).next_multiple_of(PAGE as usize)
    }

    fn entry_at(&self, at: usize) -> usize {
        FIXED + at * ENTRY
    }

    fn content_at(&self, at: usize) -> usize {
        FIXED + self.writes * ENTRY + at * self.block_bytes
    }
}

/// One entry of a quantum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A block was written.
    Write(BlockId, &'a [u8]),
    /// A block was made absent.
    Discard(BlockId),
    /// This many empty writes.
    Padding(u64),
    /// From this quantum on, a session of this computer writes. Not a write itself.
    Session(ComputerId),
}

/// A quantum being filled; the buffer has room for the seal.
pub struct Filling {
    form: Form,
    buf: Vec<u8>,
    entries: usize,
}

impl Filling {
    /// An empty quantum; its first write has this number.
    pub fn new(form: Form, first_write: u64) -> Self {
        let mut filling = Self { form, buf: vec![0; form.bytes()], entries: 0 };
        filling.put(TAG_BYTES + 8, &first_write.to_le_bytes());
        filling.put(TAG_BYTES + 20, &NO_ROOT.to_le_bytes());
        filling
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let at = SEAL_HEADER + at;
        self.buf[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds an entry; there must be room, and the content must be a block.
    pub fn add(&mut self, entry: Entry<'_>) {
        let (kind, value) = match entry {
            Entry::Write(block, content) => {
                self.put(self.form.content_at(self.entries), content);
                (WRITE, block.0)
            }
            Entry::Discard(block) => (DISCARD, block.0),
            Entry::Padding(count) => (PADDING, count),
            Entry::Session(computer) => {
                self.put(self.form.content_at(self.entries), &computer.0);
                (SESSION, 0)
            }
        };
        let at = self.form.entry_at(self.entries);
        self.put(at, &kind.to_le_bytes());
        self.put(at + 8, &value.to_le_bytes());
        self.entries += 1;
    }

    /// Sets the present root.
    pub fn set_root(&mut self, root: &[u8]) {
        self.put(TAG_BYTES + 20, &(root.len() as u32).to_le_bytes());
        self.put(TAG_BYTES + 24, root);
    }

    /// Whether it is full.
    pub fn is_full(&self) -> bool {
        self.entries == self.form.writes
    }

    /// The buffer to seal: its quantum follows the one with the tag `before`, and those below
    /// `durable` are durable.
    pub fn finish(mut self, before: Tag, durable: u64) -> Vec<u8> {
        self.put(0, &before.0);
        self.put(TAG_BYTES, &durable.to_le_bytes());
        self.put(TAG_BYTES + 16, &(self.entries as u32).to_le_bytes());
        self.buf
    }
}

/// An opened quantum.
#[derive(Debug)]
pub struct Quantum<'a> {
    form: Form,
    plain: &'a [u8],
    /// The tag of the quantum before it.
    pub before: Tag,
    /// The quanta below this were durable when it was written.
    pub durable: u64,
    /// The number of its first write.
    pub first_write: u64,
    entries: usize,
}

impl<'a> Quantum<'a> {
    /// Parses an opened quantum; `None` for nonsense.
    pub fn parse(form: Form, plain: &'a [u8]) -> Option<Self> {
        let (before, rest) = plain.split_first_chunk::<TAG_BYTES>()?;
        let (durable, rest) = rest.split_first_chunk()?;
        let (first_write, rest) = rest.split_first_chunk()?;
        let (entries, _) = rest.split_first_chunk()?;
        let quantum = Self {
            form,
            plain,
            before: Tag(*before),
            durable: u64::from_le_bytes(*durable),
            first_write: u64::from_le_bytes(*first_write),
            entries: u32::from_le_bytes(*entries) as usize,
        };
        let whole = form.bytes() - SEAL_OVERHEAD;
        let sound = plain.len() == whole && quantum.entries <= form.writes;
        (sound && quantum.entries().all(|entry| entry.is_some())).then_some(quantum)
    }

    /// The root, if it has one.
    pub fn root(&self) -> Option<&'a [u8]> {
        let at = TAG_BYTES + 20;
        let len = u32::from_le_bytes(*self.plain.get(at..)?.first_chunk()?);
        (len as usize <= ROOT_BYTES).then(|| &self.plain[at + 4..at + 4 + len as usize])
    }

    /// Its entries in order; `None` for nonsense.
    pub fn entries(&self) -> impl Iterator<Item = Option<Entry<'a>>> + use<'a> {
        let (form, plain) = (self.form, self.plain);
        (0..self.entries).map(move |at| {
            let head = plain.get(form.entry_at(at)..)?;
            let (kind, rest) = head.split_first_chunk()?;
            let value = u64::from_le_bytes(*rest.first_chunk()?);
            match u64::from_le_bytes(*kind) {
                WRITE => {
                    let content = plain.get(form.content_at(at)..)?.get(..form.block_bytes)?;
                    Some(Entry::Write(BlockId(value), content))
                }
                DISCARD => Some(Entry::Discard(BlockId(value))),
                PADDING => Some(Entry::Padding(value)),
                SESSION => {
                    let content = plain.get(form.content_at(at)..)?.get(..form.block_bytes)?;
                    Some(Entry::Session(ComputerId(*content.first_chunk()?)))
                }
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantum_says_what_was_put_into_it() {
        let form = Form { block_bytes: 64, writes: 5 };
        let mut filling = Filling::new(form, 77);
        let content = [9; 64];
        let entries = [
            Entry::Write(BlockId(3), &content),
            Entry::Discard(BlockId(4)),
            Entry::Padding(500),
            Entry::Session(ComputerId([7; 16])),
        ];
        entries.iter().for_each(|entry| filling.add(*entry));
        assert!(!filling.is_full());
        filling.set_root(b"root");
        let buf = filling.finish(Tag([5; TAG_BYTES]), 12);
        assert!(buf.len().is_multiple_of(PAGE as usize));
        let plain = &buf[SEAL_HEADER..buf.len() - TAG_BYTES];
        let quantum = Quantum::parse(form, plain).expect("it parses");
        assert_eq!((quantum.durable, quantum.first_write), (12, 77));
        assert_eq!(quantum.before, Tag([5; TAG_BYTES]));
        assert_eq!(quantum.root(), Some(&b"root"[..]));
        let found: Vec<_> = quantum.entries().flatten().collect();
        assert_eq!(found, entries);
        assert!(Quantum::parse(form, &plain[1..]).is_none());
        let mut many = plain.to_vec();
        many[TAG_BYTES + 16] = 6;
        assert!(Quantum::parse(form, &many).is_none(), "more entries than there is room for");
        let mut odd = plain.to_vec();
        odd[form.entry_at(1)] = 9;
        assert!(Quantum::parse(form, &odd).is_none(), "an entry of no known kind");
    }

    #[test]
    fn without_a_root_there_is_none() {
        let form = Form { block_bytes: 4096, writes: 15 };
        assert_eq!(form.bytes(), 64 << 10);
        let buf = Filling::new(form, 0).finish(Tag::default(), 0);
        let quantum = Quantum::parse(form, &buf[SEAL_HEADER..buf.len() - TAG_BYTES]);
        assert_eq!(quantum.expect("it parses").root(), None);
    }
}

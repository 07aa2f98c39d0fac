//! One quantum of the log: a fixed number of writes, padded and sealed.
//!
//! Plaintext: the fixed part, heads of all entries, their contents, with room for as many as fit.
//! Zeros follow, up to a whole number of pages with the seal. A page of parity may come behind.

use super::PAGE;
use super::header::SequentialHeader;
use crate::block::ROOT_BYTES;
use crate::trust::ComputerId;
use oblivio_crypto::{SEAL_HEADER, SEAL_OVERHEAD, TAG_BYTES, Tag};
use oblivio_engine::BlockId;
use std::slice::ChunksExact;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

const FIXED: usize = size_of::<Fixed>();
const HEAD: usize = size_of::<Head>();
/// In place of a root's length.
const NO_ROOT: u32 = u32::MAX;
const WRITE: u64 = 1;
const DISCARD: u64 = 2;
const PADDING: u64 = 3;
const SESSION: u64 = 4;

/// The fixed part, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Fixed {
    before: [u8; TAG_BYTES],
    durable: U64,
    first_write: U64,
    entries: U32,
    root_len: U32,
    root: [u8; ROOT_BYTES],
}

/// How an entry begins, as stored.
#[derive(Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    kind: U64,
    /// A block, or a count.
    value: U64,
}

/// The form of all quanta of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuantumForm {
    /// Bytes of a block.
    pub block_bytes: usize,
    /// Writes that fit in a quantum.
    pub writes: usize,
    /// Bytes that are sealed.
    sealed: usize,
    /// Bytes behind them that are the caller's.
    behind: usize,
    /// Whether a page of parity follows.
    parity: bool,
}

impl QuantumForm {
    /// With room for this many writes, and without parity.
    pub const fn new(block_bytes: usize, writes: usize) -> Self {
        let plain = FIXED + writes * (HEAD + block_bytes);
        let sealed = (plain + SEAL_OVERHEAD).next_multiple_of(PAGE as usize);
        Self { block_bytes, writes, sealed, behind: 0, parity: false }
    }

    /// The same with this many bytes behind the seal: together they are whole pages.
    pub const fn with_behind(self, behind: usize) -> Self {
        let plain = FIXED + self.writes * (HEAD + self.block_bytes);
        let bytes = (plain + SEAL_OVERHEAD + behind).next_multiple_of(PAGE as usize);
        Self { sealed: bytes - behind, behind, ..self }
    }

    /// The same with a page of parity behind it.
    pub const fn with_parity(self) -> Self {
        Self { parity: true, ..self }
    }

    /// That of a volume, as its header says.
    pub fn of(header: &SequentialHeader) -> Self {
        let form = Self::new(header.engine.block_bytes, header.quantum_writes as usize);
        if header.log_parity { form.with_parity() } else { form }
    }

    /// With parity in as many bytes, if anything else has room then.
    pub fn with_parity_inside(self) -> Option<Self> {
        let sealed = self.sealed - PAGE as usize;
        let room = sealed.checked_sub(FIXED + SEAL_OVERHEAD)?;
        let writes = room / (HEAD + self.block_bytes);
        let fits = writes > 0 && !self.parity;
        fits.then_some(Self { writes, sealed, parity: true, ..self })
    }

    /// Bytes of a quantum in the store.
    pub fn bytes(&self) -> usize {
        self.sealed + self.behind + if self.parity { PAGE as usize } else { 0 }
    }

    /// Whether it has parity.
    pub fn has_parity(&self) -> bool {
        self.parity
    }

    /// Those of them that are sealed.
    pub fn sealed_bytes(&self) -> usize {
        self.sealed
    }

    fn head_at(&self, at: usize) -> usize {
        FIXED + at * HEAD
    }

    fn content_at(&self, at: usize) -> usize {
        self.head_at(self.writes) + at * self.block_bytes
    }
}

/// One entry of a quantum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantumEntry<'a> {
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
    form: QuantumForm,
    fixed: Fixed,
    entries: usize,
    buf: Vec<u8>,
}

impl Filling {
    /// An empty quantum; its first write has this number.
    pub fn new(form: QuantumForm, first_write: u64) -> Self {
        let (first_write, root_len) = (U64::new(first_write), U32::new(NO_ROOT));
        let fixed = Fixed { first_write, root_len, ..Fixed::new_zeroed() };
        Self { form, fixed, entries: 0, buf: vec![0; form.bytes()] }
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let at = SEAL_HEADER + at;
        self.buf[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Adds an entry; there must be room, and the content must be a block.
    pub fn add(&mut self, entry: QuantumEntry<'_>) {
        let (kind, value) = match entry {
            QuantumEntry::Write(block, content) => {
                self.put(self.form.content_at(self.entries), content);
                (WRITE, block.0)
            }
            QuantumEntry::Discard(block) => (DISCARD, block.0),
            QuantumEntry::Padding(count) => (PADDING, count),
            QuantumEntry::Session(computer) => {
                self.put(self.form.content_at(self.entries), &computer.0);
                (SESSION, 0)
            }
        };
        let head = Head { kind: U64::new(kind), value: U64::new(value) };
        self.put(self.form.head_at(self.entries), head.as_bytes());
        self.entries += 1;
    }

    /// Sets the present root.
    pub fn set_root(&mut self, root: &[u8]) {
        self.fixed.root_len = U32::new(root.len() as u32);
        self.fixed.root[..root.len()].copy_from_slice(root);
    }

    /// Takes another form of as many bytes, unless there is an entry: those stand where its own
    /// form has them.
    pub fn take_form(&mut self, form: QuantumForm) {
        if self.entries == 0 && form.bytes() == self.form.bytes() {
            self.form = form;
        }
    }

    /// Whether it is full.
    pub fn is_full(&self) -> bool {
        self.entries == self.form.writes
    }

    /// The buffer to seal, and its form: its quantum follows the one with the tag `before`, and
    /// those below `durable` are durable.
    pub fn finish(mut self, before: Tag, durable: u64) -> (Vec<u8>, QuantumForm) {
        let (durable, entries) = (U64::new(durable), U32::new(self.entries as u32));
        self.fixed = Fixed { before: before.0, durable, entries, ..self.fixed };
        self.buf[SEAL_HEADER..][..FIXED].copy_from_slice(self.fixed.as_bytes());
        (self.buf, self.form)
    }
}

/// An opened quantum.
#[derive(Debug)]
pub struct Quantum<'a> {
    /// The tag of the quantum before it.
    pub before: Tag,
    /// The quanta below this were durable when it was written.
    pub durable: u64,
    /// The number of its first write.
    pub first_write: u64,
    /// The root, if it has one.
    pub root: Option<&'a [u8]>,
    heads: &'a [Head],
    contents: ChunksExact<'a, u8>,
}

impl<'a> Quantum<'a> {
    /// Parses an opened quantum; `None` for nonsense.
    pub fn parse(form: QuantumForm, plain: &'a [u8]) -> Option<Self> {
        if plain.len() != form.sealed - SEAL_OVERHEAD {
            return None;
        }
        let (fixed, rest) = Fixed::ref_from_prefix(plain).ok()?;
        let (heads, contents) = <[Head]>::ref_from_prefix_with_elems(rest, form.writes).ok()?;
        let quantum = Self {
            heads: heads.get(..fixed.entries.get() as usize)?,
            contents: contents.chunks_exact(form.block_bytes),
            before: Tag(fixed.before),
            durable: fixed.durable.get(),
            first_write: fixed.first_write.get(),
            root: fixed.root.get(..fixed.root_len.get() as usize),
        };
        quantum.entries().all(|entry| entry.is_some()).then_some(quantum)
    }

    /// Its entries in order; `None` for nonsense.
    pub fn entries(&self) -> impl Iterator<Item = Option<QuantumEntry<'a>>> + use<'a> {
        self.heads.iter().zip(self.contents.clone()).map(|(head, content)| {
            let value = head.value.get();
            match head.kind.get() {
                WRITE => Some(QuantumEntry::Write(BlockId(value), content)),
                DISCARD => Some(QuantumEntry::Discard(BlockId(value))),
                PADDING => Some(QuantumEntry::Padding(value)),
                SESSION => Some(QuantumEntry::Session(ComputerId(*content.first_chunk()?))),
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
        let form = QuantumForm::new(64, 5);
        let mut filling = Filling::new(form, 77);
        let content = [9; 64];
        let entries = [
            QuantumEntry::Write(BlockId(3), &content),
            QuantumEntry::Discard(BlockId(4)),
            QuantumEntry::Padding(500),
            QuantumEntry::Session(ComputerId([7; 16])),
        ];
        entries.iter().for_each(|entry| filling.add(*entry));
        assert!(!filling.is_full());
        filling.set_root(b"root");
        let (buf, _) = filling.finish(Tag([5; TAG_BYTES]), 12);
        assert!(buf.len().is_multiple_of(PAGE as usize));
        let plain = &buf[SEAL_HEADER..buf.len() - TAG_BYTES];
        let quantum = Quantum::parse(form, plain).expect("it parses");
        assert_eq!((quantum.durable, quantum.first_write), (12, 77));
        assert_eq!(quantum.before, Tag([5; TAG_BYTES]));
        assert_eq!(quantum.root, Some(&b"root"[..]));
        let found: Vec<_> = quantum.entries().flatten().collect();
        assert_eq!(found, entries);
        assert!(Quantum::parse(form, &plain[1..]).is_none());
        let mut many = plain.to_vec();
        many[TAG_BYTES + 16] = 6;
        assert!(Quantum::parse(form, &many).is_none(), "more entries than there is room for");
        let mut odd = plain.to_vec();
        odd[form.head_at(1)] = 9;
        assert!(Quantum::parse(form, &odd).is_none(), "an entry of no known kind");
    }

    #[test]
    fn without_a_root_there_is_none() {
        let form = QuantumForm::new(4096, 15);
        assert_eq!(form.bytes(), 64 << 10);
        let (buf, _) = Filling::new(form, 0).finish(Tag::default(), 0);
        let quantum = Quantum::parse(form, &buf[SEAL_HEADER..buf.len() - TAG_BYTES]);
        assert_eq!(quantum.expect("it parses").root, None);
    }

    #[test]
    fn what_stands_behind_the_seal_takes_no_page_if_there_is_room() {
        for (block, writes) in [(4096, 2), (64, 3), (512, 7)] {
            let (bare, form) =
                (QuantumForm::new(block, writes), QuantumForm::new(block, writes).with_behind(32));
            assert_eq!((form.bytes(), form.sealed_bytes()), (bare.bytes(), bare.bytes() - 32));
            assert!(form.content_at(form.writes) + SEAL_OVERHEAD <= form.sealed_bytes());
        }
        let full = (PAGE as usize - SEAL_OVERHEAD - FIXED) - HEAD;
        assert_eq!(QuantumForm::new(full, 1).bytes(), PAGE as usize);
        assert_eq!(QuantumForm::new(full, 1).with_behind(32).bytes(), 2 * PAGE as usize);
    }

    #[test]
    fn parity_takes_a_page() {
        let new = QuantumForm::new(4096, 14).with_parity();
        let old = QuantumForm::new(4096, 15);
        assert_eq!((new.bytes(), new.sealed_bytes()), (64 << 10, 60 << 10));
        assert_eq!(old.with_parity_inside(), Some(new));
        assert_eq!(new.with_parity_inside(), None, "it has one");
        assert_eq!(QuantumForm::new(32 << 10, 1).with_parity_inside(), None, "no room");
        for (block, writes) in [(512, 9), (16 << 10, 3), (64, 200)] {
            let old = QuantumForm::new(block, writes);
            let new = old.with_parity_inside().expect("there is room");
            assert_eq!(new.bytes(), old.bytes());
            assert!(new.content_at(new.writes) + SEAL_OVERHEAD <= new.sealed_bytes());
        }
    }
}

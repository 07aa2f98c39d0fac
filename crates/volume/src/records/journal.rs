//! The journal: everything since the last commit, in a sealed log.
//!
//! Each record begins with the tag of the one before it, the first one with half of its commit's
//! digest, so nobody can splice the journals of two forks of a volume. Behind it stands what the
//! engine records: its kind and its own act (see `trust`), so that a later commit says whose
//! records it contains.

use crate::trust::{Act, LogCheck, LogMark, StoredAct};
use crate::{Error, Result};
use oblivio_crypto::{Kind, Place, SEAL_OVERHEAD, Sealer, TAG_BYTES, Tag, VolumeId, tag_of};
use oblivio_store::{Log, ReadAt, Slots, WriteAt};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The object that holds the journal.
pub const JOURNAL_OBJECT: &str = "journal";
/// The alignment of records.
pub(crate) const PAGE: usize = 4096;
/// Bytes before the sealed part.
pub(crate) const FRAME: usize = size_of::<Frame>();
/// Before the plaintext.
const FRONT: usize = FRAME + oblivio_crypto::SEAL_HEADER;
/// The longest record.
pub(crate) const MOST: usize = 16 << 20;
/// The longest record that is written and synced apart.
const MOST_SHORT: usize = 128 << 10;
/// Bytes tried behind the last record that look like records and do not open.
const MOST_IN_VAIN: usize = MOST;
/// Zeros behind a record that extends the object: an eighth of its length, between these. An
/// overwrite of existing bytes needs no change of the file itself; to make one durable, a file
/// system first writes out other pending data.
const LEAST_AHEAD: u64 = 64 << 10;
pub(crate) const MOST_AHEAD: u64 = 1 << 20;

/// Before the sealed part.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Frame {
    /// Bytes of the sealed part.
    sealed: U64,
    /// The commit that the record stands on.
    epoch: U64,
}

/// How a plaintext begins, behind the tag of the record before.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    kind: U64,
    act: StoredAct,
}

/// The journal of one session.
pub struct Journal {
    volume: VolumeId,
    sealer: Sealer,
    /// The commit under the records.
    epoch: u64,
    /// The next record's offset.
    offset: u64,
    /// The object's length.
    length: u64,
    /// The next record's predecessor: the tag of the last one, or half of the commit's digest.
    before: Tag,
}

impl Journal {
    /// A journal on no commit yet.
    pub fn new(volume: VolumeId, sealer: Sealer) -> Self {
        Self { volume, sealer, epoch: 0, offset: 0, length: 0, before: Tag::default() }
    }

    /// Begins again on a newer commit; the records of earlier commits are void.
    pub fn restart(&mut self, epoch: u64, digest: &[u8; 32]) {
        self.epoch = epoch;
        self.before = start_of(digest);
        self.offset = 0;
    }

    /// The end of its last record, and that record's tag.
    pub fn mark(&self) -> LogMark {
        LogMark { end: self.offset, tag: self.before }
    }

    /// Bytes of the object, with void records and zeros.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of records on this commit.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    fn place(&self, offset: u64) -> Place {
        // The epoch is the version: a record of another epoch does not open.
        Place { volume: self.volume, kind: Kind::Journal, index: offset, version: self.epoch }
    }

    /// Makes a record durable, of [`begin`]. It has its size class, at least that of `least` bytes.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn append(&mut self, store: &dyn Log, record: Vec<u8>, least: usize) -> Result<()> {
        let (offset, record) = self.seal(record, least)?;
        Ok(store.write_durable(JOURNAL_OBJECT, offset, &record)?)
    }

    /// The same, of a record that becomes durable with the next sync; no death of this process
    /// loses it. A long one, or one that extends the object, is durable on return. Says whether it
    /// is.
    ///
    /// # Errors
    /// Those of the store and of the sealer.
    pub fn append_ahead(
        &mut self,
        store: &dyn Slots,
        record: Vec<u8>,
        least: usize,
    ) -> Result<bool> {
        let length = self.length;
        let (offset, record) = self.seal(record, least)?;
        let durable = self.length > length || record.len() > MOST_SHORT;
        match durable {
            true => store.write_durable(JOURNAL_OBJECT, offset, &record)?,
            false => store.write(&[WriteAt::new(JOURNAL_OBJECT, offset, &record)])?,
        }
        Ok(durable)
    }

    /// Seals a record as the next one; gives its offset.
    fn seal(&mut self, mut record: Vec<u8>, least: usize) -> Result<(u64, Vec<u8>)> {
        let tail = SEAL_OVERHEAD - oblivio_crypto::SEAL_HEADER;
        record.resize(size_class((record.len() + tail).max(least)), 0);
        let sealed = U64::new((record.len() - FRAME) as u64);
        let frame = Frame { sealed, epoch: U64::new(self.epoch) };
        record[..FRAME].copy_from_slice(frame.as_bytes());
        record[FRONT..FRONT + TAG_BYTES].copy_from_slice(&self.before.0);
        let tag = self
            .sealer
            .seal(&self.place(self.offset), &mut record[FRAME..])
            .map_err(|error| Error::Closed(error.to_string()))?;
        let (offset, end) = (self.offset, self.offset + record.len() as u64);
        if end > self.length {
            self.length = end + (end / 8).clamp(LEAST_AHEAD, MOST_AHEAD);
            record.resize((self.length - self.offset) as usize, 0);
        }
        (self.offset, self.before) = (end, tag);
        Ok((offset, record))
    }

    /// Frees the space of void records. Call it after [`Self::restart`], at the end of a session.
    ///
    /// # Errors
    /// Those of the store.
    pub fn clear(&mut self, store: &dyn Log) -> Result<()> {
        if store.len(JOURNAL_OBJECT)?.is_some_and(|len| len > 0) {
            store.truncate(JOURNAL_OBJECT, 0)?;
        }
        self.length = 0;
        Ok(())
    }

    /// The journal's records on this commit, in order, parsed without the tag before them. `check`
    /// gets all. Call it after [`Self::restart`].
    ///
    /// # Errors
    /// `Tampered` if a record is damaged and later ones are not, names a wrong predecessor or does
    /// not parse.
    pub fn load<R>(
        &mut self,
        store: &dyn Log,
        check: &mut LogCheck,
        parse: impl Fn(&[u8], &mut LogCheck) -> Option<R>,
    ) -> Result<Vec<R>> {
        let mut records = Vec::new();
        let len = store.len(JOURNAL_OBJECT)?.unwrap_or(0);
        self.length = len;
        let mut window = Window { store, len, start: 0, bytes: Vec::new() };
        while let Some(found) = self.read_record(&mut window, self.offset)? {
            if found.before != self.before {
                if found.needs(self.offset) {
                    return Err(tampered("a record follows another one than that before it"));
                }
                break;
            }
            let record = parse(&found.plain, check);
            records.push(record.ok_or_else(|| tampered("a record does not parse"))?);
            (self.offset, self.before) = (found.end, found.tag);
            check.pass(self.mark());
        }
        self.expect_end(&mut window)?;
        Ok(records)
    }

    /// Ensures that the journal ends here, and that no damaged record hides later ones.
    ///
    /// Of records that ran ahead of syncs a power cut keeps any part: some may stand behind one
    /// that is lost. Each says up to where all was durable when it was written, so none may say
    /// more. What a lost end left is written over later, record by record.
    ///
    /// Frames alone are not authentic: each must be opened as a whole. A crash leaves few records
    /// that do not open, so a store with more has made them, and is refused too. The journal's
    /// length bounds the search, whatever the frames say.
    fn expect_end(&mut self, window: &mut Window<'_>) -> Result<()> {
        let (mut ahead, mut in_vain) = (self.offset + PAGE as u64, 0);
        while ahead < window.len.min(self.offset + MOST as u64) {
            if let Some(size) = self.frame_at(window, ahead)? {
                match self.read_record(window, ahead)? {
                    Some(found) if found.needs(self.offset) => {
                        return Err(tampered("a record before others does not open"));
                    }
                    Some(_) => {}
                    None => in_vain += size,
                }
            }
            if in_vain > MOST_IN_VAIN {
                return Err(tampered("records of this commit stand there that do not open"));
            }
            ahead += PAGE as u64;
        }
        Ok(())
    }

    /// The length of this commit's record at an offset, if its frame says that there is one.
    fn frame_at(&self, window: &mut Window<'_>, offset: u64) -> Result<Option<usize>> {
        let frame = window.get(offset, FRAME)?.and_then(|bytes| Frame::read_from_bytes(bytes).ok());
        let Some(frame) = frame else { return Ok(None) };
        let (size, epoch) = (frame.sealed.get(), frame.epoch.get());
        let fits = size <= MOST as u64 && offset + FRAME as u64 + size <= window.len;
        Ok((epoch == self.epoch && fits && size as usize > SEAL_OVERHEAD).then_some(size as usize))
    }

    /// This commit's record at an offset; `None` if none opens there.
    fn read_record(&mut self, window: &mut Window<'_>, offset: u64) -> Result<Option<Opened>> {
        let Some(size) = self.frame_at(window, offset)? else { return Ok(None) };
        let at = offset + FRAME as u64;
        let Some(sealed) = window.get(at, size)? else { return Ok(None) };
        let (Some(tag), mut sealed) = (tag_of(sealed), sealed.to_vec()) else { return Ok(None) };
        let place = self.place(offset);
        let Ok(plain) = self.sealer.open(&place, &mut sealed) else { return Ok(None) };
        let (before, plain) = plain
            .split_first_chunk::<TAG_BYTES>()
            .ok_or_else(|| tampered("a record does not parse"))?;
        let (before, plain) = (Tag(*before), plain.to_vec());
        Ok(Some(Opened { before, plain, tag, end: at + size as u64 }))
    }
}

/// An opened record.
struct Opened {
    /// The tag of its predecessor.
    before: Tag,
    plain: Vec<u8>,
    tag: Tag,
    end: u64,
}

impl Opened {
    /// Whether a journal that ends here lacks something that was durable before this record, which
    /// stands here or behind, was written.
    fn needs(&self, end: u64) -> bool {
        durable_of(&self.plain).is_none_or(|durable| durable > end)
    }
}

/// The predecessor of the first record on a commit.
fn start_of(digest: &[u8; 32]) -> Tag {
    digest.first_chunk().copied().map_or_else(Tag::default, Tag)
}

fn tampered(why: &str) -> Error {
    Error::Tampered(format!("{JOURNAL_OBJECT}: {why}"))
}

/// Bytes of the journal read at a time: alone, each record would cost two trips to the store.
const WINDOW: usize = 1 << 20;

/// A part of the journal in memory.
struct Window<'a> {
    store: &'a dyn Log,
    len: u64,
    start: u64,
    bytes: Vec<u8>,
}

impl Window<'_> {
    /// A range; `None` beyond the end.
    fn get(&mut self, offset: u64, len: usize) -> Result<Option<&[u8]>> {
        if offset + len as u64 > self.len {
            return Ok(None);
        }
        let held = self.start..self.start + self.bytes.len() as u64;
        if offset < held.start || offset + len as u64 > held.end {
            let wanted = len.max(WINDOW).min((self.len - offset) as usize);
            self.bytes.resize(wanted, 0);
            self.start = offset;
            let buf = &mut self.bytes[..];
            self.store.read(&mut [ReadAt { object: JOURNAL_OBJECT, offset, buf }])?;
        }
        let at = (offset - self.start) as usize;
        Ok(Some(&self.bytes[at..at + len]))
    }
}

/// Added to the kind of a record that names its act.
const OF_ACT: u64 = 3;
/// Added to the kind of one that also ran ahead of syncs.
const AHEAD: u64 = 6;

/// An empty record: free bytes for frame, seal and the tag before it, its kind and its act. One
/// that runs `ahead` of syncs says up to which offset the journal is durable. `room` is about what
/// follows, in bytes.
pub(crate) fn begin(kind: u64, act: Act, ahead: Option<u64>, room: usize) -> Vec<u8> {
    let front = FRONT + TAG_BYTES;
    let most = front + size_of::<Head>() + size_of::<U64>() + room + SEAL_OVERHEAD;
    let mut record = Vec::with_capacity(size_class(most));
    record.resize(front, 0);
    let kind = kind + if ahead.is_some() { AHEAD } else { OF_ACT };
    let head = Head { kind: U64::new(kind), act: StoredAct::new(act) };
    record.extend_from_slice(head.as_bytes());
    if let Some(durable) = ahead {
        record.extend_from_slice(U64::new(durable).as_bytes());
    }
    record
}

/// The length of a record that needs `bytes`: whole pages, beyond eight of them with three
/// significant bits.
pub(crate) fn size_class(bytes: usize) -> usize {
    let step = (bytes.next_power_of_two() / 8).max(PAGE);
    bytes.next_multiple_of(step)
}

/// The kind of an opened record, its act, if it names one, and what follows.
pub(crate) fn open_head(plain: &[u8]) -> Option<(u64, Option<Act>, &[u8])> {
    let (kind, rest) = U64::ref_from_prefix(plain).ok()?;
    if kind.get() <= OF_ACT {
        return Some((kind.get(), None, rest));
    }
    let (head, rest) = Head::ref_from_prefix(plain).ok()?;
    let (kind, act) = (head.kind.get(), Some(head.act.get()));
    match kind <= AHEAD {
        true => Some((kind - OF_ACT, act, rest)),
        false => Some((kind - AHEAD, act, U64::ref_from_prefix(rest).ok()?.1)),
    }
}

/// Up to which offset the journal was durable when this record was written: `None` of a record that
/// waited for all before it.
fn durable_of(plain: &[u8]) -> Option<u64> {
    let (head, rest) = Head::ref_from_prefix(plain).ok()?;
    let (durable, _) = U64::ref_from_prefix(rest).ok()?;
    (head.kind.get() > AHEAD).then(|| durable.get())
}

//! Entries: what a session stored, one object each, in a chain.
//!
//! A plaintext names the tag of the entry before it, so nobody can splice two histories. It names
//! its session, since several may claim one number, and the newest entry that was acknowledged when
//! it was made: an entry up to there that is gone was no crash.

use super::names::{MOST_INDEX, SessionId};
use super::vault::Vault;
use crate::records::journal::{MOST, PAGE, size_class};
use crate::{Error, Result};
use oblivio_crypto::{Kind, SEAL_HEADER, SEAL_OVERHEAD, TAG_BYTES, Tag, tag_of};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The first entry of a session: what it stands on.
pub const BEGIN: u64 = 1;
/// A checkpoint. Once its objects are stored it is a commit: the entries before it are of the past.
pub const COMMIT: u64 = 2;
/// The answer to who asks for the volume: the session is at work, and goes on for now.
pub const BEAT: u64 = 3;
/// The last entry of a session that ended by itself.
pub const RELEASE: u64 = 4;
/// The caller's kinds begin here.
pub const FIRST_KIND: u64 = 16;

/// A place in a volume's history, and the tag of the entry there: it fixes all before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The session.
    pub session: SessionId,
    /// The entry's number, from 1 on. 0 before the first.
    pub index: u64,
    /// The entry's tag.
    pub tag: Tag,
}

/// A mark as stored; the number 0 for none.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct StoredMark {
    number: U64,
    random: U64,
    index: U64,
    tag: [u8; TAG_BYTES],
}

impl StoredMark {
    pub fn new(mark: Option<Mark>) -> Self {
        let nothing = SessionId { number: 0, random: 0 };
        let mark = mark.unwrap_or(Mark { session: nothing, index: 0, tag: Tag::default() });
        Self {
            number: U64::new(mark.session.number),
            random: U64::new(mark.session.random),
            index: U64::new(mark.index),
            tag: mark.tag.0,
        }
    }

    pub fn get(&self) -> Option<Mark> {
        let session = SessionId { number: self.number.get(), random: self.random.get() };
        let mark = Mark { session, index: self.index.get(), tag: Tag(self.tag) };
        (session.number > 0).then_some(mark)
    }
}

/// How the payload of a first entry begins.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StoredStart {
    parent: StoredMark,
    commit: StoredMark,
}

/// What a session stands on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// The last entry that counts before it; `None` for the first session.
    pub parent: Option<Mark>,
    /// The newest commit up to there.
    pub commit: Option<Mark>,
}

impl Start {
    /// The payload of a first entry, with the caller's part.
    pub fn encode(&self, payload: &[u8]) -> Vec<u8> {
        let parent = StoredMark::new(self.parent);
        let mut out =
            StoredStart { parent, commit: StoredMark::new(self.commit) }.as_bytes().to_vec();
        out.extend_from_slice(payload);
        out
    }

    /// Parses it, and gives the caller's part.
    pub fn parse(payload: &[u8]) -> Option<(Self, &[u8])> {
        let (stored, rest) = StoredStart::ref_from_prefix(payload).ok()?;
        Some((Self { parent: stored.parent.get(), commit: stored.commit.get() }, rest))
    }
}

/// How a plaintext begins; the payload and zeros follow.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Head {
    before: [u8; TAG_BYTES],
    random: U64,
    settled: U64,
    kind: U64,
    /// Bytes of the payload.
    len: U64,
}

/// An entry to be made.
#[derive(Debug)]
pub struct Draft<'a> {
    /// The entry before it in its session: index 0 with the tag of the parent's last for the first.
    pub before: Mark,
    /// The newest acknowledged entry of its session.
    pub settled: u64,
    pub kind: u64,
    pub payload: &'a [u8],
    /// Its sealed length is that of its size class, at least that of `least` bytes.
    pub least: usize,
}

/// An opened entry.
#[derive(Clone, Debug)]
pub struct SessionEntry {
    pub mark: Mark,
    /// The tag of the one before it.
    pub before: Tag,
    /// Those up to here were acknowledged when it was made.
    pub settled: u64,
    pub kind: u64,
    pub payload: Vec<u8>,
}

impl Draft<'_> {
    /// The sealed bytes, and where they stand.
    ///
    /// # Errors
    /// `TooLarge` beyond the longest, `Closed` when the session has no number left.
    pub fn seal(&self, vault: &mut Vault) -> Result<(Mark, Vec<u8>)> {
        let (session, index) = (self.before.session, self.before.index + 1);
        let bytes = SEAL_OVERHEAD + size_of::<Head>() + self.payload.len();
        let len = size_class(bytes.max(self.least));
        if len > MOST {
            return Err(Error::TooLarge(format!("an entry of {len} bytes, at most {MOST}")));
        }
        if index > MOST_INDEX {
            return Err(Error::Closed("the session has made all its entries".into()));
        }
        let head = Head {
            before: self.before.tag.0,
            random: U64::new(session.random),
            settled: U64::new(self.settled),
            kind: U64::new(self.kind),
            len: U64::new(self.payload.len() as u64),
        };
        let mut out = Vec::with_capacity(len);
        out.resize(SEAL_HEADER, 0);
        out.extend_from_slice(head.as_bytes());
        out.extend_from_slice(self.payload);
        out.resize(len, 0);
        let tag = vault.seal(Kind::Entry, index, session.number, &mut out)?;
        Ok((Mark { session, index, tag }, out))
    }
}

impl SessionEntry {
    /// The most bytes of one.
    pub const MOST: u64 = MOST as u64;

    /// Whether an object of this length may be an entry.
    pub fn has_length(len: u64) -> bool {
        let whole = usize::try_from(len).is_ok_and(|len| len % PAGE == 0 && len <= MOST);
        whole && len > 0
    }

    /// Opens an entry; `None` if it is not the one that the session stored there.
    pub fn open(
        vault: &mut Vault,
        session: SessionId,
        index: u64,
        mut bytes: Vec<u8>,
    ) -> Option<Self> {
        let tag = tag_of(&bytes)?;
        let plain = vault.open(Kind::Entry, index, session.number, &mut bytes)?;
        let (head, rest) = Head::ref_from_prefix(plain).ok()?;
        if head.random.get() != session.random {
            return None;
        }
        let payload = rest.get(..usize::try_from(head.len.get()).ok()?)?.to_vec();
        Some(Self {
            mark: Mark { session, index, tag },
            before: Tag(head.before),
            settled: head.settled.get(),
            kind: head.kind.get(),
            payload,
        })
    }

    /// What the session stands on, if this is its first entry.
    pub fn start(&self) -> Option<Start> {
        let first = self.kind == BEGIN && self.mark.index == 1;
        first.then(|| Start::parse(&self.payload)).flatten().map(|(start, _)| start)
    }
}

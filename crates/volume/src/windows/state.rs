//! What a commit's entry says: which part is the newest, and what leads to all others.

use super::parity::{Parity, StoredParity};
use super::places::{MOST_SPANS, Made, Span, StoredMade, StoredSpan};
use crate::block::StoredRoot;
use crate::session::Mark;
use crate::trust::{MOST_ROWS, Table};
use crate::{Error, Result};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Without parities.
const FIRST_VERSION: u64 = 1;
const VERSION: u64 = 2;
const TABLE: usize = Table::bytes(MOST_ROWS);

/// The fixed fields, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Front {
    version: U64,
    number: U64,
    windows: U64,
    spans: U64,
    parts: U64,
    made: U64,
    left: U64,
    kept_entry: U64,
    kept_window: U64,
    kept_part: U64,
    root: StoredRoot,
    table: [u8; TABLE],
}

/// From where on things of the past may still be stored: all before was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    /// The first entry of the session, but for number 1.
    pub entry: u64,
    /// The first window that may have replaced objects which are still there.
    pub window: u64,
    /// The first part.
    pub part: u64,
}

impl Kept {
    /// Before the first commit.
    pub const ALL: Self = Self { entry: 1, window: 0, part: 1 };
}

/// A commit.
pub(super) struct Commit {
    /// Its number, from 1 on.
    pub number: u64,
    /// Windows up to it.
    pub windows: u64,
    /// The caller's root.
    pub root: Vec<u8>,
    pub table: Table,
    /// Sessions of which objects are current.
    pub spans: Vec<Span>,
    /// Lengths and digests of the stored parts, the last one this commit's own. The last of them
    /// are the memory.
    pub parts: Vec<(u64, [u8; 32])>,
    /// What of the past may still be stored.
    pub kept: Kept,
    /// Sessions that may have left objects beyond what then became current, each with the first
    /// window and commit of these.
    pub left: Vec<Span>,
    /// The parities of the kept parts.
    pub parities: Vec<Parity>,
    /// The objects of its windows: with its part they must be there for it to stand.
    pub made: Vec<Made>,
}

impl Commit {
    /// Bytes of one with these numbers of sessions, parts and objects.
    pub fn bytes(sessions: usize, (parts, parities): (usize, usize), made: usize) -> usize {
        size_of::<Front>()
            + size_of::<U64>()
            + parities * size_of::<StoredParity>()
            + sessions * size_of::<StoredSpan>()
            + parts * size_of::<StoredPart>()
            + made * size_of::<StoredMade>()
    }

    /// The entries that its session may have left up to its own at `mark`, but for the first, and
    /// the second copy of its own.
    pub fn entries_up_to(&self, mark: &Mark) -> Vec<String> {
        let entries = (self.kept.entry.max(2)..=mark.index).map(|at| mark.session.entry(at));
        entries.chain([mark.session.copy(mark.index)]).collect()
    }

    /// As stored; its length follows from the number of sessions and parts.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut table = [0; TABLE];
        table.copy_from_slice(&self.table.to_bytes(MOST_ROWS));
        let front = Front {
            version: U64::new(VERSION),
            number: U64::new(self.number),
            windows: U64::new(self.windows),
            spans: U64::new(self.spans.len() as u64),
            parts: U64::new(self.parts.len() as u64),
            made: U64::new(self.made.len() as u64),
            left: U64::new(self.left.len() as u64),
            kept_entry: U64::new(self.kept.entry),
            kept_window: U64::new(self.kept.window),
            kept_part: U64::new(self.kept.part),
            root: StoredRoot::new(&self.root),
            table,
        };
        let mut out = front.as_bytes().to_vec();
        self.spans.iter().for_each(|span| out.extend_from_slice(StoredSpan::new(span).as_bytes()));
        for (bytes, digest) in &self.parts {
            out.extend_from_slice(&bytes.to_le_bytes());
            out.extend_from_slice(digest);
        }
        self.made.iter().for_each(|made| out.extend_from_slice(StoredMade::new(made).as_bytes()));
        self.left.iter().for_each(|span| out.extend_from_slice(StoredSpan::new(span).as_bytes()));
        out.extend_from_slice(U64::new(self.parities.len() as u64).as_bytes());
        let parities = self.parities.iter().map(StoredParity::new);
        parities.for_each(|parity| out.extend_from_slice(parity.as_bytes()));
        out
    }

    /// Parses it.
    ///
    /// # Errors
    /// `Unsupported` for an unknown version, `Tampered` for anything else.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        let broken = || Error::Tampered("a commit's entry does not parse".into());
        let (front, rest) = Front::ref_from_prefix(bytes).map_err(|_| broken())?;
        let version = front.version.get();
        if !(FIRST_VERSION..=VERSION).contains(&version) {
            return Err(Error::Unsupported("the commit has an unknown version".into()));
        }
        let count = |number: &U64| usize::try_from(number.get()).ok();
        let spans = count(&front.spans).filter(|count| *count <= MOST_SPANS).ok_or_else(broken)?;
        let (spans, rest) =
            <[StoredSpan]>::ref_from_prefix_with_elems(rest, spans).map_err(|_| broken())?;
        let (parts, rest) = <[StoredPart]>::ref_from_prefix_with_elems(
            rest,
            count(&front.parts).ok_or_else(broken)?,
        )
        .map_err(|_| broken())?;
        let made = count(&front.made).ok_or_else(broken)?;
        let (made, rest) =
            <[StoredMade]>::ref_from_prefix_with_elems(rest, made).map_err(|_| broken())?;
        let left = count(&front.left).ok_or_else(broken)?;
        let (left, rest) =
            <[StoredSpan]>::ref_from_prefix_with_elems(rest, left).map_err(|_| broken())?;
        let (parities, rest) = match version {
            FIRST_VERSION => (Vec::new(), rest),
            _ => parse_parities(rest).ok_or_else(broken)?,
        };
        let number = front.number.get();
        if !rest.is_empty() || parts.is_empty() || (parts.len() as u64) > number {
            return Err(broken());
        }
        Ok(Self {
            number,
            windows: front.windows.get(),
            root: front.root.get().ok_or_else(broken)?.to_vec(),
            table: Table::parse(&front.table).ok_or_else(broken)?,
            spans: spans.iter().map(StoredSpan::get).collect(),
            parts: parts.iter().map(|part| (part.bytes.get(), part.digest)).collect(),
            parities,
            made: made.iter().map(StoredMade::get).collect(),
            kept: Kept {
                entry: front.kept_entry.get(),
                window: front.kept_window.get(),
                part: front.kept_part.get(),
            },
            left: left.iter().map(StoredSpan::get).collect(),
        })
    }
}

/// The parities at the front, and the rest.
fn parse_parities(bytes: &[u8]) -> Option<(Vec<Parity>, &[u8])> {
    let (count, rest) = U64::ref_from_prefix(bytes).ok()?;
    let count = usize::try_from(count.get()).ok()?;
    let (parities, rest) = <[StoredParity]>::ref_from_prefix_with_elems(rest, count).ok()?;
    Some((parities.iter().map(StoredParity::get).collect(), rest))
}

/// A part, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StoredPart {
    bytes: U64,
    digest: [u8; 32],
}

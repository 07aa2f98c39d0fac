//! The database's pages, as its file has them, read around those that are lost.
//!
//! The database itself gives up at the first page that it cannot read. So this reads its format
//! (redb's file format 3): a header, and trees of pages. A page is a leaf with pairs or a branch
//! with children, and knows its length from its own offsets. All of it was authenticated with the
//! blocks below, and each block is the newest one. What a page says is still checked against its
//! length: a place where no page begins may look like one.

use std::collections::HashMap;
use std::ops::Range;

/// Bytes in a page of order 0.
pub(super) const PAGE: usize = 4096;
const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
/// Pages in a region, where the header that says it is lost.
const REGION_PAGES: u64 = 1 << 20;
/// The flags of the header: which commit is the newest one, whether the last session did not end,
/// and whether commits take two steps. Without those, the newest one may be an unfinished one.
const PRIMARY: u8 = 1;
const IN_USE: u8 = 2;
const TWO_STEPS: u8 = 4;
/// The version of a commit's record.
const COMMIT_VERSION: u8 = 3;

/// The metadata file in memory.
pub(super) struct Image {
    pub(super) block_bytes: usize,
    /// The chunks that were ever written; `None` for one that is lost.
    pub(super) chunks: HashMap<u64, Option<Vec<u8>>>,
}

/// A page's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageNumber {
    region: u64,
    index: u64,
    order: u8,
}

/// Where pages are in the file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Geometry {
    header_pages: u64,
    region_pages: u64,
}

/// What the database's header says.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) geometry: Geometry,
    /// The roots of the tree of tables, and of that of the database's own tables.
    pub(super) tables: Option<PageNumber>,
    pub(super) system: Option<PageNumber>,
    /// The number of the newest commit.
    pub(super) transaction: u64,
}

/// How long keys and values are, if all are as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Widths {
    pub(super) key: Option<usize>,
    pub(super) value: Option<usize>,
}

/// A table as the tree of tables has it.
#[derive(Clone, Copy, Debug)]
pub(super) struct TableRoot {
    pub(super) root: Option<PageNumber>,
    pub(super) widths: Widths,
}

impl Image {
    /// Bytes of the file; `None` if any of them are lost or were never written.
    pub(super) fn bytes(&self, at: u64, len: usize) -> Option<Vec<u8>> {
        let block = self.block_bytes as u64;
        let (mut at, mut bytes) = (at, Vec::new());
        while bytes.len() < len {
            let chunk = self.chunks.get(&(at / block))?.as_ref()?;
            let rest = chunk.get((at % block) as usize..)?;
            let take = rest.len().min(len - bytes.len());
            bytes.extend_from_slice(&rest[..take]);
            at += take as u64;
        }
        Some(bytes)
    }

    /// The header; `None` if it is lost or makes no sense.
    pub(super) fn header(&self) -> Option<Header> {
        let bytes = self.bytes(0, 320)?;
        let flags = *bytes.get(9)?;
        let sound = bytes.starts_with(MAGIC)
            && word32(&bytes, 12)? == PAGE as u64
            && (flags & IN_USE == 0 || flags & TWO_STEPS != 0);
        let geometry =
            Geometry { header_pages: word32(&bytes, 16)?, region_pages: word32(&bytes, 20)? };
        let sound = sound && (1..=REGION_PAGES).contains(&geometry.region_pages);
        let commit = &bytes[if flags & PRIMARY == 0 { 64..192 } else { 192..320 }];
        if !sound || commit[0] != COMMIT_VERSION || geometry.header_pages > REGION_PAGES {
            return None;
        }
        let root = |flag: usize, at: usize| {
            let number = PageNumber::load(word(commit, at)?);
            Some((commit[flag] != 0).then_some(number))
        };
        let (tables, system) = (root(1, 8)?, root(2, 40)?);
        Some(Header { geometry, tables, system, transaction: word(commit, 104)? })
    }

    /// A page.
    pub(super) fn page(&self, geometry: Geometry, page: PageNumber) -> Option<Vec<u8>> {
        let len = PAGE.checked_shl(page.order.into())?;
        self.bytes(geometry.address(page), len)
    }
}

impl PageNumber {
    pub(super) fn load(number: u64) -> Self {
        let order = (number >> 59) as u8;
        let index = number & 0xf_ffff_u64.checked_shr(order.into()).unwrap_or(0);
        Self { region: number >> 20 & 0xf_ffff, index, order }
    }
}

impl Geometry {
    /// The places of order 0 that a page takes, counted over all regions.
    pub(super) fn places(self, page: PageNumber) -> Range<u64> {
        let first = page.region * self.region_pages + (page.index << page.order);
        first..first + (1_u64 << page.order)
    }

    /// The page of this order that begins at a place.
    pub(super) fn page_at(self, place: u64, order: u8) -> PageNumber {
        let (region, at) = (place / self.region_pages, place % self.region_pages);
        PageNumber { region, index: at >> order, order }
    }

    pub(super) fn region_pages(self) -> u64 {
        self.region_pages
    }

    fn address(self, page: PageNumber) -> u64 {
        let before = 1
            + page.region * (self.header_pages + self.region_pages)
            + self.header_pages
            + (page.index << page.order);
        before * PAGE as u64
    }
}

/// What kind of page this is.
pub(super) enum Page<'a> {
    Leaf(&'a [u8]),
    Branch(&'a [u8]),
}

impl<'a> Page<'a> {
    pub(super) fn of(bytes: &'a [u8]) -> Option<Self> {
        match bytes.first()? {
            1 => Some(Page::Leaf(bytes)),
            2 => Some(Page::Branch(bytes)),
            _ => None,
        }
    }
}

/// The pairs of a leaf, if it makes sense with keys and values of these widths.
pub(super) fn pairs(page: &[u8], widths: Widths) -> Option<Vec<(&[u8], &[u8])>> {
    let count = usize::from(u16::from_le_bytes([*page.get(2)?, *page.get(3)?]));
    let offsets = |at: usize| move |n: usize| word32(page, at + 4 * n).map(|end| end as usize);
    let key_offsets = if widths.key.is_none() { 4 * count } else { 0 };
    let value_offsets = if widths.value.is_none() { 4 * count } else { 0 };
    let start = 4 + key_offsets + value_offsets;
    let (key_end, value_end) = (offsets(4), offsets(4 + key_offsets));
    let keys = cuts(count, start, widths.key, key_end)?;
    let values = cuts(count, keys.last()?.end, widths.value, value_end)?;
    keys.into_iter()
        .zip(values)
        .map(|(key, value)| Some((page.get(key)?, page.get(value)?)))
        .collect()
}

/// Ranges that follow each other, by their ends or their common length.
fn cuts(
    count: usize,
    start: usize,
    width: Option<usize>,
    end: impl Fn(usize) -> Option<usize>,
) -> Option<Vec<Range<usize>>> {
    let mut at = start;
    let mut cuts = Vec::with_capacity(count);
    for n in 0..count {
        let end = match width {
            Some(width) => at.checked_add(width)?,
            None => end(n)?,
        };
        (end >= at).then_some(())?;
        cuts.push(at..end);
        at = end;
    }
    Some(cuts)
}

/// The children of a branch.
pub(super) fn children(page: &[u8]) -> Option<Vec<PageNumber>> {
    let count = usize::from(u16::from_le_bytes([*page.get(2)?, *page.get(3)?])) + 1;
    let first = 8 + 16 * count;
    (count > 1).then_some(())?;
    (0..count).map(|n| word(page, first + 8 * n).map(PageNumber::load)).collect()
}

/// The keys between the children of a branch.
pub(super) fn separators(page: &[u8], width: Option<usize>) -> Option<Vec<&[u8]>> {
    let count = usize::from(u16::from_le_bytes([*page.get(2)?, *page.get(3)?]));
    let first = 8 + 24 * (count + 1);
    let end = |n: usize| word32(page, first + 4 * n).map(|end| end as usize);
    let start = if width.is_none() { first + 4 * count } else { first };
    cuts(count, start, width, end)?.into_iter().map(|cut| page.get(cut)).collect()
}

impl TableRoot {
    /// A table's record in the tree of tables.
    pub(super) fn load(record: &[u8]) -> Option<Self> {
        // Multimaps are another kind; there are none here.
        (*record.first()? == 3).then_some(())?;
        let root = PageNumber::load(word(record, 10)?);
        let width = |at: usize| -> Option<Option<usize>> {
            Some((*record.get(at)? != 0).then_some(word32(record, at + 1)? as usize))
        };
        let widths = Widths { key: width(42)?, value: width(47)? };
        Some(Self { root: (*record.get(9)? != 0).then_some(root), widths })
    }
}

pub(super) fn word(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

pub(super) fn word32(bytes: &[u8], at: usize) -> Option<u64> {
    let word: [u8; 4] = bytes.get(at..at.checked_add(4)?)?.try_into().ok()?;
    Some(u64::from(u32::from_le_bytes(word)))
}

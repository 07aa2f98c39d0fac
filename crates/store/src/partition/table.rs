//! The encoded table of contents: the front of a partition in `docs/format.md`.
//!
//! There are two copies, each with a number and a checksum. The one with the higher number is
//! valid, and a new table replaces the other. So a torn write leaves one whole. The checksum
//! detects only torn writes: an attacker can compute it too.

use super::place::{ChangeKind, PartitionPlace};
use crate::{Result, StoreError, check_name};
use std::mem::offset_of;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

/// Bytes of one copy, and the alignment of places.
pub(super) const BLOCK: u64 = 4096;
/// Bytes of both copies. The places follow.
pub(super) const FRONT: u64 = 2 * BLOCK;
/// The most objects.
pub(super) const MOST: usize = 31;

const MAGIC: [u8; 8] = *b"OBLPART\n";
const VERSION: u32 = 1;
/// Bytes under the checksum.
const SUM: usize = offset_of!(Stored, sum);
/// The highest number of a table. No store writes this many, and the next number does not overflow.
const LAST: u64 = 1 << 62;

/// One copy, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Stored {
    magic: [u8; 8],
    version: U32,
    lines_used: U32,
    number: U64,
    size: U64,
    reserved: [u8; 32],
    lines: [Line; MOST],
    unused: [u8; 32],
    sum: [u8; 32],
}

const _: () = assert!(size_of::<Stored>() == BLOCK as usize);

/// An object, as stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Line {
    name: [u8; 64],
    kind: u8,
    flags: u8,
    reserved: [u8; 6],
    capacity: U64,
    len: U64,
    at: [U64; 2],
    unused: [u8; 24],
}

/// The fixed part: the possible objects, and their places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Bytes from the front to the end of the last place.
    pub(super) size: u64,
    pub(super) reserved: Vec<Reserved>,
}

/// An object's place, or its two places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reserved {
    pub(super) name: String,
    pub(super) kind: ChangeKind,
    pub(super) capacity: u64,
    /// Their offsets; the second is 0 when there is none.
    pub(super) at: [u64; 2],
}

/// The content of an object's place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) exists: bool,
    /// Whether it is in the second place.
    pub(super) second: bool,
    pub(super) len: u64,
}

impl Reserved {
    /// The object's current offset.
    pub(super) fn begin(&self, entry: &Entry) -> u64 {
        self.at[usize::from(entry.second)]
    }

    fn places(&self) -> usize {
        if self.kind == ChangeKind::Twice { 2 } else { 1 }
    }

    /// Bytes of one place.
    fn room(&self) -> Option<u64> {
        self.capacity.checked_next_multiple_of(BLOCK)
    }
}

impl Layout {
    /// Lays out places one after the other, in the given order.
    pub(super) fn plan(places: &[PartitionPlace<'_>]) -> Result<Self> {
        let mut size = FRONT;
        let mut reserved = Vec::new();
        for place in places {
            check_name(place.name)?;
            let name = place.name.to_owned();
            let mut new = Reserved { name, kind: place.kind, capacity: place.capacity, at: [0; 2] };
            for at in 0..new.places() {
                new.at[at] = size;
                let end = new.room().and_then(|room| size.checked_add(room));
                size = end.filter(|end| i64::try_from(*end).is_ok()).ok_or_else(too_large)?;
            }
            reserved.push(new);
        }
        let layout = Self { size, reserved };
        if layout.is_sound() {
            return Ok(layout);
        }
        Err(StoreError::refused(
            places.first().map_or("", |place| place.name),
            "a partition has 1 to 31 objects with different names and at least 1 byte each",
        ))
    }

    pub(super) fn find(&self, name: &str) -> Option<usize> {
        self.reserved.iter().position(|place| place.name == name)
    }

    /// Whether names and places are distinct, and everything lies after the front and within the
    /// size.
    fn is_sound(&self) -> bool {
        let named = |place: &Reserved| self.find(&place.name).map(|index| &self.reserved[index]);
        let fine = |place: &Reserved| {
            let same = named(place).is_some_and(|first| std::ptr::eq(first, place));
            same && place.capacity > 0 && check_name(&place.name).is_ok()
        };
        let mut ranges = Vec::new();
        for place in &self.reserved {
            for &at in &place.at[..place.places()] {
                let Some(end) = place.room().and_then(|room| at.checked_add(room)) else {
                    return false;
                };
                ranges.push((at, end));
            }
        }
        ranges.sort_unstable();
        let aligned = ranges.iter().all(|range| range.0 % BLOCK == 0 && range.0 >= FRONT);
        let apart = ranges.windows(2).all(|pair| pair[0].1 <= pair[1].0);
        let within = ranges.last().is_some_and(|last| last.1 <= self.size);
        self.reserved.len() <= MOST
            && aligned
            && apart
            && within
            && i64::try_from(self.size).is_ok()
            && self.reserved.iter().all(fine)
    }
}

fn too_large() -> StoreError {
    StoreError::out_of_range("partition")
}

/// The offset of the copy that a table with this number replaces.
pub(super) fn copy(number: u64) -> u64 {
    number % 2 * BLOCK
}

/// Whether these bytes are meant to be a table, whole or not.
pub(super) fn is_meant(bytes: &[u8]) -> bool {
    bytes.starts_with(&MAGIC)
}

/// One copy of the table: [`BLOCK`] bytes.
pub(super) fn encode(number: u64, layout: &Layout, entries: &[Entry]) -> Vec<u8> {
    let mut table = Stored {
        magic: MAGIC,
        version: U32::new(VERSION),
        lines_used: U32::new(layout.reserved.len() as u32),
        number: U64::new(number),
        size: U64::new(layout.size),
        ..Stored::new_zeroed()
    };
    let objects = layout.reserved.iter().zip(entries);
    for (line, (place, entry)) in table.lines.iter_mut().zip(objects) {
        line.name[..place.name.len()].copy_from_slice(place.name.as_bytes());
        line.kind = match place.kind {
            ChangeKind::Fixed => 0,
            ChangeKind::Growing => 1,
            ChangeKind::Twice => 2,
        };
        line.flags = u8::from(entry.exists) | u8::from(entry.second) << 1;
        line.capacity = U64::new(place.capacity);
        line.len = U64::new(entry.len);
        line.at = place.at.map(U64::new);
    }
    table.sum = sum_of(table.as_bytes());
    table.as_bytes().to_vec()
}

/// The checksum of a copy.
fn sum_of(copy: &[u8]) -> [u8; 32] {
    blake3::hash(&copy[..SUM]).into()
}

/// Decodes one copy: its number and content, or `None` when it is torn or invalid.
pub(super) fn decode(bytes: &[u8]) -> Option<(u64, Layout, Vec<Entry>)> {
    let table = Stored::ref_from_bytes(bytes).ok()?;
    let sound = table.magic == MAGIC && table.sum == sum_of(bytes);
    if !sound || table.version.get() != VERSION {
        return None;
    }
    let count = table.lines_used.get() as usize;
    let lines = table.lines.iter().take(count);
    let (reserved, entries) = lines.map(object).collect::<Option<(Vec<_>, Vec<_>)>>()?;
    let (number, layout) = (table.number.get(), Layout { size: table.size.get(), reserved });
    let sound = layout.reserved.len() == count && layout.is_sound() && number <= LAST;
    // Unused bytes are zero: nothing hides in them.
    let all = sound && encode(number, &layout, &entries) == bytes[..];
    all.then_some((number, layout, entries))
}

/// Decodes a table after correcting its checksum; false if it is none. For the fuzz target.
pub(super) fn with_right_sum(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    bytes.resize(BLOCK as usize, 0);
    let sum = sum_of(&bytes);
    bytes[SUM..].copy_from_slice(&sum);
    decode(&bytes).is_some()
}

fn object(line: &Line) -> Option<(Reserved, Entry)> {
    let name = line.name.split(|byte| *byte == 0).next()?;
    let name = std::str::from_utf8(name).ok()?.to_owned();
    let kind = match line.kind {
        0 => ChangeKind::Fixed,
        1 => ChangeKind::Growing,
        2 => ChangeKind::Twice,
        _ => return None,
    };
    let (exists, second) = match line.flags {
        flags @ 0..=3 => (flags & 1 != 0, flags & 2 != 0),
        _ => return None,
    };
    let (capacity, len, at) = (line.capacity.get(), line.len.get(), line.at.map(U64::get));
    let right = match (exists, kind) {
        (false, _) => len == 0,
        (true, ChangeKind::Fixed) => len == capacity,
        (true, _) => len <= capacity,
    };
    let one = kind != ChangeKind::Twice && (second || at[1] != 0);
    let place = Reserved { name, kind, capacity, at };
    (right && !one).then_some((place, Entry { exists, second, len }))
}

#[cfg(test)]
mod tests {
    use super::*;

    // The layout once more, by its numbers.
    const HEAD: usize = 64;
    const LINE: usize = 128;
    const NAME: usize = 64;

    fn sample() -> (Layout, Vec<Entry>) {
        let places = [
            PartitionPlace::new("header", 1144),
            PartitionPlace::new("log", 100_000),
            PartitionPlace::fixed("disk", 5000),
        ];
        let layout = Layout::plan(&places).expect("a plan");
        let entries = vec![
            Entry { exists: true, second: true, len: 1144 },
            Entry::default(),
            Entry { exists: true, second: false, len: 5000 },
        ];
        (layout, entries)
    }

    #[test]
    fn places_are_aligned_and_apart() {
        let (layout, _) = sample();
        let at: Vec<_> = layout.reserved.iter().map(|place| place.at).collect();
        assert_eq!(at, [[8192, 12288], [16384, 0], [118_784, 0]]);
        assert_eq!(layout.size, 126_976);
        for bad in [
            &[][..],
            &[PartitionPlace::new("a", 1), PartitionPlace::new("a", 1)],
            &[PartitionPlace::new("a", 0)],
            &[PartitionPlace::new("a/b", 1)],
            &[PartitionPlace::fixed("a", 1 << 62), PartitionPlace::fixed("b", 1 << 62)],
            &[PartitionPlace::fixed("a", u64::MAX)],
        ] {
            assert!(Layout::plan(bad).is_err(), "{bad:?}");
        }
        let names: Vec<String> = (0..=MOST).map(|number| number.to_string()).collect();
        let many: Vec<_> = names.iter().map(|name| PartitionPlace::new(name, 1)).collect();
        assert!(Layout::plan(&many).is_err());
        assert!(Layout::plan(&many[..MOST]).is_ok());
    }

    #[test]
    fn what_is_written_is_read() {
        let (layout, entries) = sample();
        let bytes = encode(77, &layout, &entries);
        assert_eq!(decode(&bytes), Some((77, layout, entries)));
        assert_eq!((copy(76), copy(77)), (0, BLOCK));
    }

    #[test]
    fn a_changed_bit_is_found_everywhere() {
        let (layout, entries) = sample();
        let bytes = encode(1, &layout, &entries);
        for at in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[at] ^= 1 << (at % 8);
            assert_eq!(decode(&changed), None, "byte {at}");
        }
        assert_eq!(decode(&bytes[..4095]), None);
    }

    /// The checksum protects from no attacker: it may cover anything.
    #[test]
    fn nonsense_with_a_right_checksum_is_refused() {
        let (layout, entries) = sample();
        let good = encode(1, &layout, &entries);
        assert!(with_right_sum(&good));
        let line = |number: usize, field: usize| HEAD + number * LINE + field;
        let changes: [(usize, u8, &str); 14] = [
            (23, 0x40, "a number that nobody counts to"),
            (40, 1, "something in the head"),
            (line(1, NAME + 3), 1, "something in a line"),
            (8, 2, "version"),
            (12, 32, "more lines than fit"),
            (26, 0, "the size is too small"),
            (line(0, 0), b'/', "a bad name"),
            (line(0, NAME), 3, "a kind"),
            (line(0, NAME), 1, "a second place without need"),
            (line(0, NAME + 1), 4, "a flag"),
            (line(0, NAME + 17), 200, "longer than its place"),
            (line(1, NAME + 16), 1, "a length of nothing"),
            (line(2, NAME + 16), 1, "a fixed length that is not"),
            (line(2, NAME + 26), 0, "a place over another"),
        ];
        for (at, value, what) in changes {
            let mut bytes = good.clone();
            assert_ne!(bytes[at], value, "{what}");
            bytes[at] = value;
            assert!(!with_right_sum(&bytes), "{what}");
        }
    }
}

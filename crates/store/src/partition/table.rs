//! The encoded table of contents: the front of a partition in `docs/format.md`.
//!
//! There are two copies, each with a number and a checksum. The one with the higher number is
//! valid, and a new table replaces the other. So a torn write leaves one whole. The checksum
//! detects only torn writes: an attacker can compute it too.

use super::place::{Kind, Place};
use crate::{Result, StoreError, check_name};

/// Bytes of one copy, and the alignment of places.
pub(super) const BLOCK: u64 = 4096;
/// Bytes of both copies. The places follow.
pub(super) const FRONT: u64 = 2 * BLOCK;
/// The most objects.
pub(super) const MOST: usize = 31;

const MAGIC: &[u8; 8] = b"OBLPART\n";
const VERSION: u32 = 1;
const HEAD: usize = 64;
const LINE: usize = 128;
const SUM: usize = BLOCK as usize - 32;
const NAME: usize = 64;
/// The highest number of a table. No store writes this many, and the next number does not overflow.
const LAST: u64 = 1 << 62;

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
    pub(super) kind: Kind,
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
        if self.kind == Kind::Twice { 2 } else { 1 }
    }

    /// Bytes of one place.
    fn room(&self) -> Option<u64> {
        self.capacity.checked_next_multiple_of(BLOCK)
    }
}

impl Layout {
    /// Lays out places one after the other, in the given order.
    pub(super) fn plan(places: &[Place<'_>]) -> Result<Self> {
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
    bytes.starts_with(MAGIC)
}

/// One copy of the table: [`BLOCK`] bytes.
pub(super) fn encode(number: u64, layout: &Layout, entries: &[Entry]) -> Vec<u8> {
    let mut bytes = vec![0; BLOCK as usize];
    bytes[..8].copy_from_slice(MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes[12..16].copy_from_slice(&(layout.reserved.len() as u32).to_le_bytes());
    bytes[16..24].copy_from_slice(&number.to_le_bytes());
    bytes[24..32].copy_from_slice(&layout.size.to_le_bytes());
    let lines = bytes[HEAD..SUM].chunks_exact_mut(LINE);
    for (line, (place, entry)) in lines.zip(layout.reserved.iter().zip(entries)) {
        line[..place.name.len()].copy_from_slice(place.name.as_bytes());
        line[NAME] = match place.kind {
            Kind::Fixed => 0,
            Kind::Growing => 1,
            Kind::Twice => 2,
        };
        line[NAME + 1] = u8::from(entry.exists) | u8::from(entry.second) << 1;
        let numbers = [place.capacity, entry.len, place.at[0], place.at[1]];
        for (field, number) in line[NAME + 8..].chunks_exact_mut(8).zip(numbers) {
            field.copy_from_slice(&number.to_le_bytes());
        }
    }
    let sum = blake3::hash(&bytes[..SUM]);
    bytes[SUM..].copy_from_slice(sum.as_bytes());
    bytes
}

/// Decodes one copy: its number and content, or `None` when it is torn or invalid.
pub(super) fn decode(bytes: &[u8]) -> Option<(u64, Layout, Vec<Entry>)> {
    let bytes: &[u8; BLOCK as usize] = bytes.try_into().ok()?;
    let sound = is_meant(bytes) && blake3::hash(&bytes[..SUM]).as_bytes() == &bytes[SUM..];
    if !sound || short(bytes, 8) != VERSION {
        return None;
    }
    let count = short(bytes, 12) as usize;
    let lines = bytes[HEAD..SUM].chunks_exact(LINE).take(count);
    let (reserved, entries) = lines.map(line).collect::<Option<(Vec<_>, Vec<_>)>>()?;
    let (number, layout) = (long(bytes, 16), Layout { size: long(bytes, 24), reserved });
    let sound = layout.reserved.len() == count && layout.is_sound() && number <= LAST;
    // Unused bytes are zero: nothing hides in them.
    let all = sound && encode(number, &layout, &entries) == bytes[..];
    all.then_some((number, layout, entries))
}

/// Decodes a table after correcting its checksum; false if it is none. For the fuzz target.
pub(super) fn with_right_sum(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    bytes.resize(BLOCK as usize, 0);
    let sum = blake3::hash(&bytes[..SUM]);
    bytes[SUM..].copy_from_slice(sum.as_bytes());
    decode(&bytes).is_some()
}

fn line(bytes: &[u8]) -> Option<(Reserved, Entry)> {
    let name = &bytes[..NAME];
    let end = name.iter().position(|byte| *byte == 0).unwrap_or(NAME);
    let name = std::str::from_utf8(&name[..end]).ok()?.to_owned();
    let kind = match bytes[NAME] {
        0 => Kind::Fixed,
        1 => Kind::Growing,
        2 => Kind::Twice,
        _ => return None,
    };
    let (exists, second) = match bytes[NAME + 1] {
        flags @ 0..=3 => (flags & 1 != 0, flags & 2 != 0),
        _ => return None,
    };
    let [capacity, len, first, other] = [8, 16, 24, 32].map(|at| long(bytes, NAME + at));
    let right = match (exists, kind) {
        (false, _) => len == 0,
        (true, Kind::Fixed) => len == capacity,
        (true, _) => len <= capacity,
    };
    let one = kind != Kind::Twice && (second || other != 0);
    let place = Reserved { name, kind, capacity, at: [first, other] };
    (right && !one).then_some((place, Entry { exists, second, len }))
}

fn short(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(short(bytes, at)) | u64::from(short(bytes, at + 4)) << 32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> (Layout, Vec<Entry>) {
        let places =
            [Place::new("header", 1144), Place::new("log", 100_000), Place::fixed("disk", 5000)];
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
            &[Place::new("a", 1), Place::new("a", 1)],
            &[Place::new("a", 0)],
            &[Place::new("a/b", 1)],
            &[Place::fixed("a", 1 << 62), Place::fixed("b", 1 << 62)],
            &[Place::fixed("a", u64::MAX)],
        ] {
            assert!(Layout::plan(bad).is_err(), "{bad:?}");
        }
        let names: Vec<String> = (0..=MOST).map(|number| number.to_string()).collect();
        let many: Vec<_> = names.iter().map(|name| Place::new(name, 1)).collect();
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

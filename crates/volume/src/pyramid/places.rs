//! Where tables lie: each length of tables has an object, cut into places of that length.
//!
//! Which place a table gets follows from the schedule, which the store knows.

use crate::{Error, Result};
use oblivio_engine::pyramid::{Height, Home, PyramidConfig, WITHIN_TABLE};
use std::collections::{BTreeMap, BTreeSet};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The alignment of places: no two tables share a page that one write could tear.
const PAGE: u64 = 4096;
/// No object has this many places: beyond it, offsets would overflow.
const MOST_PLACES: u64 = 1 << 32;

/// A place for a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The number of its object.
    pub class: u32,
    /// Its number in the object.
    pub number: u64,
}

/// A table's number for the engine, and its place; as stored.
#[derive(Clone, Copy, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct StoredPlace {
    home: U32,
    class: U32,
    number: U64,
}

impl StoredPlace {
    /// Of a table at a place.
    pub fn new(home: Home, place: Place) -> Self {
        let (class, number) = (U32::new(place.class), U64::new(place.number));
        Self { home: U32::new(home.0), class, number }
    }

    /// The table and its place.
    pub fn get(&self) -> (Home, Place) {
        (Home(self.home.get()), Place { class: self.class.get(), number: self.number.get() })
    }
}

/// Tables of one length.
struct Class {
    object: String,
    /// Bytes of a table.
    table_bytes: u64,
    free: BTreeSet<u64>,
    /// Places so far.
    count: u64,
}

impl Class {
    /// Bytes of a place.
    fn place_bytes(&self) -> u64 {
        self.table_bytes.next_multiple_of(PAGE)
    }
}

/// The places of all tables.
pub struct Places {
    classes: Vec<Class>,
    homes: BTreeMap<Home, Place>,
    /// Places of tables that were replaced since the last commit. After a crash they are read
    /// again.
    replaced: Vec<Place>,
}

impl Places {
    /// None yet.
    pub fn new(config: &PyramidConfig) -> Self {
        let heights = (0..config.levels()).map(Height::Level).chain([Height::Base]);
        let bytes = heights.map(|height| table_bytes(config, height));
        let class = |(number, table_bytes)| Class {
            object: format!("tables-{number}"),
            table_bytes,
            free: BTreeSet::new(),
            count: 0,
        };
        // Two heights may have one length.
        let lengths: BTreeSet<u64> = bytes.collect();
        let classes = (0..).zip(lengths).map(|(number, bytes): (u32, u64)| class((number, bytes)));
        Self { classes: classes.collect(), homes: BTreeMap::new(), replaced: Vec::new() }
    }

    /// Bytes of all places so far.
    pub fn bytes(&self) -> u64 {
        self.classes.iter().map(|class| class.count * class.place_bytes()).sum()
    }

    /// The object and the offset of a byte, as the engine names it.
    ///
    /// # Errors
    /// `Closed` if there is no such table: the engine and its places have parted.
    pub fn find(&self, offset: u64) -> Result<(&str, u64)> {
        let home = Home((offset >> WITHIN_TABLE) as u32);
        let place = self.homes.get(&home).ok_or_else(parted)?;
        let class = self.classes.get(place.class as usize).ok_or_else(parted)?;
        let within = offset & ((1 << WITHIN_TABLE) - 1);
        Ok((&class.object, place.number * class.place_bytes() + within))
    }

    /// The number of bytes of a table.
    pub fn table_bytes(&self, home: Home) -> Option<u64> {
        let place = self.homes.get(&home)?;
        self.classes.get(place.class as usize).map(|class| class.table_bytes)
    }

    /// A place for a new table of this length: a free one, or one more.
    ///
    /// # Errors
    /// `Closed` if no table has this length.
    pub fn take(&mut self, home: Home, bytes: u64) -> Result<Place> {
        let class = self.classes.iter().position(|class| class.table_bytes == bytes);
        let class = class.ok_or_else(parted)?;
        let of = &mut self.classes[class];
        let number = of.free.pop_first().unwrap_or_else(|| {
            of.count += 1;
            of.count - 1
        });
        let place = Place { class: class as u32, number };
        self.put(home, place);
        Ok(place)
    }

    /// Repeats [`Self::take`] of an earlier session.
    ///
    /// # Errors
    /// `Tampered` if the place is not free.
    pub fn take_this(&mut self, home: Home, place: Place) -> Result<()> {
        let wrong = || Error::Tampered("a table is where another one is".into());
        let class = self.classes.get_mut(place.class as usize).ok_or_else(wrong)?;
        if place.number >= MOST_PLACES {
            return Err(wrong());
        }
        class.free.extend(class.count..=place.number);
        class.count = class.count.max(place.number + 1);
        if !class.free.remove(&place.number) {
            return Err(wrong());
        }
        self.put(home, place);
        Ok(())
    }

    fn put(&mut self, home: Home, place: Place) {
        // The engine gives the number of a table that is gone to the next one.
        self.replaced.extend(self.homes.insert(home, place));
    }

    /// The places of these tables, as stored. The others are not needed after the next commit.
    pub fn keep_only(&mut self, live: &BTreeSet<Home>) -> Vec<StoredPlace> {
        let gone: Vec<Home> =
            self.homes.keys().filter(|home| !live.contains(home)).copied().collect();
        self.replaced.extend(gone.iter().filter_map(|home| self.homes.remove(home)));
        self.homes.iter().map(|(&home, &place)| StoredPlace::new(home, place)).collect()
    }

    /// Frees the places of tables that were replaced, once a commit needs them no more.
    pub fn committed(&mut self) {
        for place in self.replaced.drain(..) {
            self.classes[place.class as usize].free.insert(place.number);
        }
    }
}

fn parted() -> Error {
    Error::Closed("the engine asked for a table that has no place".into())
}

/// Bytes of a table.
pub fn table_bytes(config: &PyramidConfig, height: Height) -> u64 {
    u64::from(config.slots(height)) * config.slot_bytes() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> PyramidConfig {
        PyramidConfig::new(512, 1 << 10, 512 << 6)
    }

    #[test]
    fn a_replaced_table_keeps_its_place_until_the_commit() {
        let (config, home) = (config(), Home(7));
        let bytes = table_bytes(&config, Height::Base);
        let mut places = Places::new(&config);
        let first = places.take(home, bytes).expect("a table's length");
        let second = places.take(home, bytes).expect("a table's length");
        assert_ne!(first, second);
        let live = BTreeSet::from([home]);
        assert_eq!(places.keep_only(&live).len(), 1);
        let third = places.take(Home(8), bytes).expect("a table's length");
        assert!(![first, second].contains(&third));
        places.committed();
        assert_eq!(places.take(Home(9), bytes).expect("a table's length"), first);
        assert!(places.take(home, bytes + 1).is_err());
    }

    #[test]
    fn a_place_is_taken_once() {
        let mut places = Places::new(&config());
        let place = Place { class: 0, number: 5 };
        places.take_this(Home(1), place).expect("free");
        assert!(places.take_this(Home(2), place).is_err());
        assert!(places.take_this(Home(2), Place { class: 99, number: 0 }).is_err());
        assert!(places.take_this(Home(2), Place { class: 0, number: u64::MAX }).is_err());
        places.take_this(Home(2), Place { class: 0, number: 4 }).expect("free");
    }

    #[test]
    fn what_is_stored_of_a_place_is_read() {
        let place = Place { class: 3, number: 9 };
        assert_eq!(StoredPlace::new(Home(2), place).get(), (Home(2), place));
    }
}

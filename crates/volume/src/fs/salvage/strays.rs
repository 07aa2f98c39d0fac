//! Pages below a lost one.
//!
//! A lost branch takes the way to its children with it, though these are still there. They can be
//! found: the database stores with each commit which pages are taken, and which of them only wait
//! to be freed. A page that is taken, does not wait, and is in no tree that could be walked, stood
//! below a lost one. It is as new as all others.
//!
//! Which table it was in says its content. A true page of a table fits that table. So a page that
//! fits one only, of those that lost any, is of that one. What fits several is left out, and so is
//! a page that might be the rest of a longer one.

use super::kinds::{Gap, Key, Kind, Limits};
use super::pages::{Header, PAGE, Page, PageNumber, children, pairs, word, word32};
use super::trees::{Tables, Walk};
use std::collections::BTreeSet;

const DATA_FREED: &str = "data_pages_unreachable";
const SYSTEM_FREED: &str = "system_pages_unreachable";
const ALLOCATOR: &str = "allocator_state";
/// The first byte of the key of a region in the allocator's table.
const REGION: u8 = 3;
/// And of the number of the commit that noted all of it.
const TRANSACTION: u8 = 5;
/// The highest order of a page with one long pair.
const LONG_ORDER: u8 = 6;

/// Adds the pages below lost ones to their tables.
pub(super) fn add(walk: &mut Walk<'_>, header: &Header, tables: &mut Tables, limits: Limits) {
    let Some(live) = live(walk, header) else { return };
    let places: BTreeSet<u64> =
        live.difference(&walk.reached.iter().copied().collect()).copied().collect();
    let lossy: Vec<Kind> =
        tables.iter().filter(|(_, tree)| !tree.is_whole()).map(|(kind, _)| *kind).collect();
    let mut strays = Strays { walk, places, lossy, limits };
    for leaves in strays.trees(tables) {
        let mut kinds = strays.lossy.iter().copied();
        let fitting = |kind: &Kind| {
            let tree = leaves.iter().map(|leaf| strays.read(leaf, *kind, tables));
            tree.collect::<Option<Vec<_>>>().map(|leaves| (*kind, leaves))
        };
        let mut fits = kinds.by_ref().filter_map(|kind| fitting(&kind));
        if let (Some((kind, leaves)), None) = (fits.next(), fits.next())
            && let Some(tree) = tables.get_mut(&kind)
        {
            tree.pairs.extend(leaves.into_iter().flatten());
        }
    }
}

/// The places of all pages that the newest commit uses; `None` if that is not known. What an older
/// commit noted does not say it: pages that were freed since would count, with what was removed.
fn live(walk: &mut Walk<'_>, header: &Header) -> Option<BTreeSet<u64>> {
    let (tables, whole) = walk.tables(header.system);
    let mut live = BTreeSet::new();
    let mut freed = Vec::new();
    let (mut counted, mut noted_by) = (whole, None);
    for (name, table) in &tables {
        let tree = walk.tree(table.root, table.widths, &|key| Some(Key::Text(key.to_vec())));
        counted &= tree.is_whole();
        for (key, value) in tree.pairs {
            let Key::Text(key) = key else { continue };
            match name.as_str() {
                ALLOCATOR if key.first() == Some(&REGION) => {
                    add_taken(word32(&key, 1)? * walk.geometry.region_pages(), &value, &mut live)?;
                }
                ALLOCATOR if key.first() == Some(&TRANSACTION) => noted_by = word(&value, 0),
                DATA_FREED | SYSTEM_FREED => freed.extend(listed(&value)?),
                _ => {}
            }
        }
    }
    (counted && noted_by == Some(header.transaction)).then_some(())?;
    for page in freed {
        walk.geometry.places(page).for_each(|place| {
            live.remove(&place);
        });
    }
    Some(live)
}

/// The places in a region that are taken: a place is free if it is so in the bitmap of any order.
fn add_taken(first: u64, state: &[u8], live: &mut BTreeSet<u64>) -> Option<()> {
    let orders = usize::from(*state.first()?) + 1;
    let places = word32(state, 4)?;
    let mut start = 8 + 4 * orders;
    let mut bitmaps = Vec::with_capacity(orders);
    for order in 0..orders {
        let end = word32(state, 8 + 4 * order)? as usize;
        bitmaps.push(leaves_of(state.get(start..end)?)?);
        start = end;
    }
    for place in 0..places {
        let free = |(order, (len, words)): (usize, &(u64, &[u8]))| {
            let at = place >> order;
            at < *len
                && word(words, (at / 64 * 8) as usize).is_some_and(|it| it >> (at % 64) & 1 == 0)
        };
        if !bitmaps.iter().enumerate().any(free) {
            live.insert(first + place);
        }
    }
    Some(())
}

/// The lowest level of a bitmap: its length in bits, and its words.
fn leaves_of(bitmap: &[u8]) -> Option<(u64, &[u8])> {
    let levels = word32(bitmap, 0)? as usize;
    let end = |level: usize| word32(bitmap, 4 * level).map(|end| end as usize);
    let start = if levels == 1 { 8 } else { end(levels.checked_sub(1)?)? };
    let level = bitmap.get(start..end(levels)?)?;
    Some((word32(level, 0)?, level.get(4..)?))
}

/// The pages in a list of freed ones.
fn listed(value: &[u8]) -> Option<Vec<PageNumber>> {
    let count = usize::from(u16::from_le_bytes([*value.first()?, *value.get(1)?]));
    (0..count).map(|n| word(value, 2 + 8 * n).map(PageNumber::load)).collect()
}

/// Pages in no tree that could be walked.
struct Strays<'a, 'b> {
    walk: &'a mut Walk<'b>,
    /// Their places.
    places: BTreeSet<u64>,
    /// The tables that lost pages.
    lossy: Vec<Kind>,
    limits: Limits,
}

impl Strays<'_, '_> {
    /// Those that are there, as trees of leaves.
    fn trees(&mut self, tables: &Tables) -> Vec<Vec<Vec<u8>>> {
        let mut trees = Vec::new();
        let starts: Vec<u64> =
            self.places.iter().copied().filter(|&place| self.begins(place, tables)).collect();
        for &place in &starts {
            let page = self.walk.geometry.page_at(place, 0);
            let is_branch = self.bytes(page).is_some_and(|bytes| self.is_branch(&bytes));
            if is_branch && !self.walk.reached.contains(&place) {
                let mut leaves = Vec::new();
                self.gather(page, &mut leaves, 0);
                trees.push(leaves);
            }
        }
        for place in starts {
            let leaf = (0..=LONG_ORDER).find_map(|order| self.leaf(place, order, tables));
            if let Some((page, bytes)) = leaf.filter(|(page, _)| self.walk.enter(*page, 0)) {
                debug_assert!(self.walk.geometry.places(page).start == place);
                trees.push(vec![bytes]);
            }
        }
        trees
    }

    /// Takes all leaves below a branch.
    fn gather(&mut self, page: PageNumber, leaves: &mut Vec<Vec<u8>>, depth: usize) {
        let Some(bytes) = self.bytes(page).filter(|_| self.walk.enter(page, depth)) else { return };
        match Page::of(&bytes) {
            Some(Page::Leaf(_)) => leaves.push(bytes),
            Some(Page::Branch(_)) if self.is_branch(&bytes) => {
                for child in children(&bytes).unwrap_or_default() {
                    self.gather(child, leaves, depth + 1);
                }
            }
            _ => {}
        }
    }

    /// A page that takes stray places only.
    fn bytes(&self, page: PageNumber) -> Option<Vec<u8>> {
        let mut places = self.walk.geometry.places(page);
        (places.end - places.start <= 1 << LONG_ORDER).then_some(())?;
        places.all(|place| self.places.contains(&place)).then_some(())?;
        self.walk.image.page(self.walk.geometry, page)
    }

    /// Whether it is a branch all of whose children are strays.
    fn is_branch(&self, bytes: &[u8]) -> bool {
        let strays = |page: PageNumber| {
            let mut places = self.walk.geometry.places(page);
            places.end - places.start <= 1 << LONG_ORDER
                && places.all(|place| self.places.contains(&place))
        };
        matches!(Page::of(bytes), Some(Page::Branch(_)))
            && children(bytes).is_some_and(|below| below.into_iter().all(strays))
    }

    /// A leaf of this order that fits any of the tables.
    fn leaf(&self, place: u64, order: u8, tables: &Tables) -> Option<(PageNumber, Vec<u8>)> {
        place.is_multiple_of(1 << order).then_some(())?;
        let page = self.walk.geometry.page_at(place, order);
        let bytes = self.bytes(page)?;
        let kinds = self.lossy.iter().filter(|kind| order == 0 || kind.has_long_pairs());
        let mut fits = kinds.map(|kind| self.read(&bytes, *kind, tables));
        fits.any(|read| read.is_some()).then_some((page, bytes))
    }

    /// Whether a page begins at this place, for sure: none that began before it reaches here. A
    /// longer page has one pair, of a table that may have such.
    fn begins(&self, place: u64, tables: &Tables) -> bool {
        if !self.lossy.iter().any(|kind| kind.has_long_pairs()) {
            return true;
        }
        let reaches = |order: u8| {
            let start = place >> order << order;
            start != place
                && (start..=place).all(|place| self.places.contains(&place))
                && !self.is_short(start, tables)
        };
        !(1..=LONG_ORDER).any(reaches)
    }

    /// Whether the page that begins here is one of order 0. An attribute's may be longer than it
    /// looks: a short value in place of a long one.
    fn is_short(&self, place: u64, tables: &Tables) -> bool {
        let Some(bytes) = self.bytes(self.walk.geometry.page_at(place, 0)) else { return false };
        let short = |kind: &Kind| self.read(&bytes, *kind, tables).is_some();
        let attributes = self.lossy.contains(&Kind::Xattrs) && short(&Kind::Xattrs);
        !attributes && (self.is_branch(&bytes) || self.lossy.iter().any(short))
    }

    /// The pairs of a leaf, if it fits a table: ascending keys within what the table lost.
    fn read(&self, leaf: &[u8], kind: Kind, tables: &Tables) -> Option<Vec<(Key, Vec<u8>)>> {
        matches!(Page::of(leaf), Some(Page::Leaf(_))).then_some(())?;
        (leaf.len() == PAGE || kind.has_long_pairs()).then_some(())?;
        let mut read = Vec::new();
        for (key, value) in pairs(leaf, kind.widths())? {
            let key = kind.key(key)?;
            kind.fits(&key, value, self.limits).then_some(())?;
            read.push((key, value.to_vec()));
        }
        let (first, last) = (&read.first()?.0, &read.last()?.0);
        let in_gap = |gap: &Gap| gap.has(first) && gap.has(last);
        let sorted = read.is_sorted_by(|a, b| a.0 < b.0);
        (sorted && tables.get(&kind)?.gaps.iter().any(in_gap)).then_some(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs::salvage::pages::Image;
    use redb::{StorageBackend, TableDefinition};
    use std::collections::HashSet;
    use std::io;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Debug, Default)]
    struct File(Arc<Mutex<Vec<u8>>>);

    impl StorageBackend for File {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.lock().unwrap().len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let (bytes, at) = (self.0.lock().unwrap(), offset as usize);
            out.copy_from_slice(&bytes[at..at + out.len()]);
            Ok(())
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.lock().unwrap().resize(len as usize, 0);
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            Ok(())
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            let (mut bytes, at) = (self.0.lock().unwrap(), offset as usize);
            bytes[at..at + data.len()].copy_from_slice(data);
            Ok(())
        }
    }

    #[test]
    fn what_an_older_commit_noted_does_not_say_what_is_in_use() {
        let file = File::default();
        let database = redb::Builder::new().create_with_backend(file.clone()).unwrap();
        let mut txn = database.begin_write().unwrap();
        txn.set_quick_repair(true);
        let table = TableDefinition::<u64, ()>::new("a table");
        txn.open_table(table).unwrap().insert(7, ()).unwrap();
        txn.commit().unwrap();
        let bytes = file.0.lock().unwrap().clone();
        let chunks = bytes.chunks(PAGE).zip(0..).map(|(chunk, at)| (at, Some(chunk.to_vec())));
        let image = Image { block_bytes: PAGE, chunks: chunks.collect() };
        let header = image.header().unwrap();
        let live_of = |transaction| {
            let (geometry, reached) = (header.geometry, HashSet::new());
            let mut walk = Walk { image: &image, geometry, reached };
            live(&mut walk, &Header { transaction, ..header })
        };
        assert!(!live_of(header.transaction).unwrap().is_empty());
        assert_eq!(live_of(header.transaction + 1), None);
    }
}

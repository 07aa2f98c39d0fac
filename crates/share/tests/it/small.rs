//! All that is small in the folder of a volume is there twice: whatever becomes of one copy, the
//! volume opens with all that was acknowledged, says what it was, and is whole again afterwards.

use super::campaign::in_memory;
use oblivio_share::{MissingParts, StoredShare, Tables};
use oblivio_store::MemoryStore;
use oblivio_store::share::{
    Checkpoint, HistoryEntry, LEASE, Number, ServerTable, Share, ShareParameters, StoredEntry,
};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::share::{Rig, TestClock};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Bytes of a sector.
const SECTOR: usize = 512;
/// Files of the history are this long here.
const SEGMENT: u64 = 2000;
/// Records before the newest state.
pub const STATE: u64 = 30;

/// Where the tables of a volume are.
pub type Elsewhere = Option<Arc<MemoryStore>>;

pub fn open(dir: &Path, elsewhere: &Elsewhere) -> oblivio_store::share::Result<StoredShare> {
    let clock = TestClock::default();
    let tables = elsewhere.clone().map(|store| Tables::new(store, [7; 16]));
    let opened = StoredShare::with(dir, clock.clock(), SEGMENT, tables, MissingParts::Refused)?;
    clock.pass(LEASE);
    Ok(opened)
}

/// What a client can know of a volume.
#[derive(Clone, Debug, PartialEq)]
pub struct Known {
    pub parameters: Option<ShareParameters>,
    pub state: Option<Checkpoint>,
    pub bytes: Vec<u8>,
    pub records: Vec<StoredEntry>,
    pub tables: u64,
}

pub fn known(share: &StoredShare) -> Known {
    let state = share.checkpoint().unwrap();
    let bytes = state.map_or(Vec::new(), |state| {
        share.read_checkpoint(state.at, 0, state.len as usize).unwrap()
    });
    let from = state.map_or(Number(0), |state| state.at);
    let mut records: Vec<StoredEntry> = Vec::new();
    loop {
        let next = Number(from.0 + records.len() as u64);
        match share.records(next, 1 << 20, Duration::ZERO).unwrap() {
            some if some.is_empty() => break,
            some => records.extend(some),
        }
    }
    let tables = share.status().unwrap().tables;
    Known { parameters: share.parameters().unwrap(), state, bytes, records, tables }
}

/// A volume with tables, two states, and a history of several files before and after the newest.
pub fn fill(dir: &Path, elsewhere: &Elsewhere, dice: &mut Dice) {
    let share = open(dir, elsewhere).unwrap();
    let mut rig = Rig::new(&share).unwrap();
    for table in 1..4 {
        rig.build(ServerTable(table), 4).unwrap();
        rig.switch(ServerTable(table), &[]).unwrap();
    }
    let state = |dice: &mut Dice| dice.bytes(5000);
    while rig.next.0 < 60 {
        match rig.next.0 {
            20 => rig.save(Number(15), Number(2), &state(dice)).unwrap(),
            40 => rig.save(Number(STATE), Number(15), &state(dice)).unwrap(),
            _ => {}
        }
        let len = 50 + dice.index(300);
        let note = dice.bytes(len);
        rig.add(&HistoryEntry::Note(note)).unwrap();
    }
    share.settle().unwrap();
}

pub fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in dir.read_dir().unwrap().map(Result::unwrap) {
        match entry.file_type().unwrap().is_dir() {
            true => found.extend(files(&entry.path())),
            false => drop(found.insert(entry.path(), fs::read(entry.path()).unwrap())),
        }
    }
    found
}

fn put_back(dir: &Path, wanted: &BTreeMap<PathBuf, Vec<u8>>) {
    for (path, bytes) in files(dir) {
        if !wanted.contains_key(&path) {
            fs::remove_file(path).unwrap();
        } else if wanted[&path] != bytes {
            fs::write(&path, &wanted[&path]).unwrap();
        }
    }
    for (path, bytes) in wanted.iter().filter(|(path, _)| !path.exists()) {
        fs::write(path, bytes).unwrap();
    }
}

/// Changes bytes of a file somewhere, or removes it.
fn harm(path: &Path, bytes: &[u8], at: usize, way: u64, dice: &mut Dice) {
    let mut bytes = bytes.to_vec();
    let sector = at - at % SECTOR;
    let end = bytes.len().min(sector + SECTOR);
    match way {
        0 => bytes[at] ^= 1 << dice.below(8),
        1 => bytes[sector..end].fill(0),
        2 => bytes[sector..end].copy_from_slice(&dice.bytes(end - sector)),
        3 => bytes.truncate(at),
        _ => return fs::remove_file(path).unwrap(),
    }
    fs::write(path, bytes).unwrap();
}

/// Whether a file is no table: of those there is one.
fn is_small(path: &Path, elsewhere: &Elsewhere) -> bool {
    let name = path.file_name().unwrap().to_str().unwrap();
    elsewhere.is_some() || !name.starts_with("t-")
}

/// The files that differ, by their names.
fn differ(before: &BTreeMap<PathBuf, Vec<u8>>, dir: &Path) -> Vec<String> {
    let after = files(dir);
    let name = |path: &Path| path.strip_prefix(dir).unwrap().display().to_string();
    let is_log = |path: &&PathBuf| path.parent().unwrap().ends_with("log");
    let all = before.keys().chain(after.keys()).filter(is_log);
    all.filter(|path| before.get(*path) != after.get(*path)).map(|path| name(path)).collect()
}

/// Any sector of any of these files, or a whole one, at random.
fn any_one_place(elsewhere: &Elsewhere, tries: u64) {
    let (dir, mut dice) = (in_memory(), Dice::new(seed(49)));
    fill(dir.path(), elsewhere, &mut dice);
    // A start changes the catalog. What it left is what is damaged.
    let expected = known(&open(dir.path(), elsewhere).unwrap());
    assert_eq!(expected.records.len(), 60 - STATE as usize);
    let whole = files(dir.path());
    let places: Vec<&PathBuf> = whole.keys().filter(|path| is_small(path, elsewhere)).collect();
    let mut said = 0;
    for number in 0..tries {
        let path = places[number as usize % places.len()];
        let bytes = &whole[path];
        let at = dice.index(bytes.len());
        let way = dice.below(5);
        let case = format!("seed {}, {number}: {} at {at}, {way}", seed(49), path.display());
        harm(path, bytes, at, way, &mut dice);
        let share = open(dir.path(), elsewhere).unwrap_or_else(|why| panic!("{case}: {why}"));
        assert_eq!(known(&share), expected, "{case}");
        said += u64::from(!share.mended().is_empty() || !share.lacks().is_empty());
        // The next commit.
        let mut rig = Rig::new(&share).unwrap();
        rig.add(&HistoryEntry::Note(vec![1; 10])).unwrap();
        share.settle().unwrap();
        drop(share);
        // It is whole: now the other copy may go.
        let other = other_copy(dir.path(), path);
        if let Some(other) = other.filter(|other| other.exists()) {
            fs::remove_file(other).unwrap();
            let share = open(dir.path(), elsewhere).unwrap_or_else(|why| panic!("{case}: {why}"));
            let mut found = known(&share);
            assert_eq!(found.records.pop().map(|it| it.number), Some(Number(60)), "{case}");
            assert_eq!(found, expected, "{case}");
        }
        put_back(dir.path(), &whole);
        assert_eq!(differ(&whole, dir.path()), Vec::<String>::new());
    }
    assert!(said * 4 > tries, "{said} of {tries} were said to be damaged");
}

/// Where the other copy of a file is.
fn other_copy(dir: &Path, path: &Path) -> Option<PathBuf> {
    let name = path.strip_prefix(dir).unwrap();
    Some(match name.strip_prefix("second") {
        Ok(name) if name.starts_with("states") => dir.join("tables").join(name.file_name()?),
        Ok(name) => dir.join(name),
        Err(_) if name.file_name()?.to_str()?.starts_with("c-") => {
            dir.join("second/states").join(name.file_name()?)
        }
        Err(_) => dir.join("second").join(name),
    })
}

#[test]
fn any_one_place_of_what_is_small() {
    any_one_place(&None, scaled(24));
}

#[test]
fn any_one_place_beside_tables_elsewhere() {
    any_one_place(&Some(Arc::new(MemoryStore::default())), scaled(8));
}

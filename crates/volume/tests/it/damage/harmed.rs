//! A volume at rest with damage in it, in any home.

use super::homes::Rest;
use oblivio_store::{
    AnyStore, Held, Log, MemoryStore, Objects, PartitionStore, PutMode, ReadAt, Result,
};
use oblivio_testkit::Dice;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What happens to stored bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Harm {
    /// This number of random bits, of bytes that were stored.
    Flips(u64),
    /// Only of those among which blocks stand.
    FlipsOfBlocks(u64),
    /// These places get random bytes.
    Noise(Vec<Place>),
    /// To one object.
    To(String, Deed),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Deed {
    Lost,
    Cut,
    /// It has the bytes of another object of its kind.
    Replaced,
}

pub const DEEDS: [Deed; 3] = [Deed::Lost, Deed::Cut, Deed::Replaced];

/// A damaged place: an object, and bytes of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub object: String,
    pub bytes: Range<u64>,
}

/// Where the damaged bytes are.
enum Disk {
    Objects(Arc<MemoryStore>),
    File(tempfile::TempDir),
}

pub struct Harmed {
    pub places: Vec<Place>,
    disk: Disk,
}

impl Harmed {
    /// Opens what is stored, damaged as it is.
    pub fn store(&self) -> Result<AnyStore> {
        Ok(match &self.disk {
            Disk::Objects(store) => AnyStore::from(Arc::clone(store)),
            Disk::File(dir) => {
                AnyStore::from(Arc::new(PartitionStore::open(dir.path().join("volume"))?))
            }
        })
    }

    /// The same places in a copy.
    pub fn twin(&self) -> Self {
        let disk = match &self.disk {
            Disk::Objects(store) => Disk::Objects(Arc::new(store.snapshot())),
            Disk::File(dir) => {
                let copy = tempfile::tempdir().expect("a folder");
                let name = "volume";
                std::fs::copy(dir.path().join(name), copy.path().join(name)).expect("copied");
                Disk::File(copy)
            }
        };
        Self { places: self.places.clone(), disk }
    }

    /// The objects, where they are in memory.
    pub fn objects(&self) -> Option<&Arc<MemoryStore>> {
        match &self.disk {
            Disk::Objects(store) => Some(store),
            Disk::File(_) => None,
        }
    }
}

pub fn bytes_of(store: &dyn Held, object: &str) -> Vec<u8> {
    let mut bytes = vec![0; store.len(object).expect("there").unwrap_or(0) as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut bytes }]).expect("there");
    bytes
}

impl Rest {
    /// All objects that are harmed one by one.
    pub fn names(&self) -> Vec<String> {
        let all = self.objects.list().expect("memory").into_iter();
        all.filter(|(_, len)| *len > 0).map(|(name, _)| name).collect()
    }

    /// Does some harm; `None` if it cannot be done.
    pub fn harmed(&self, harm: &Harm, dice: &mut Dice) -> Option<Harmed> {
        match &self.file {
            None => self.harmed_objects(harm, dice),
            Some((bytes, at)) => self.harmed_file(harm, bytes.clone(), at, dice),
        }
    }

    fn harmed_objects(&self, harm: &Harm, dice: &mut Dice) -> Option<Harmed> {
        let store = self.objects.snapshot();
        let mut places = Vec::new();
        match harm {
            Harm::Flips(count) | Harm::FlipsOfBlocks(count) => {
                let mut all = store.list().expect("memory");
                if matches!(harm, Harm::FlipsOfBlocks(_)) {
                    all.retain(|(name, _)| self.home.has_blocks(name));
                }
                while (places.len() as u64) < *count {
                    let place = any_byte(&all, dice);
                    let (bit, at) = (1 << dice.below(8), place.bytes.start);
                    let mut byte = [0];
                    let read = ReadAt { object: &place.object, offset: at, buf: &mut byte };
                    store.read(&mut [read]).expect("in it");
                    if byte == [0] {
                        // Nothing was stored there.
                        continue;
                    }
                    store.corrupt(&place.object, at, |byte| *byte ^= bit).expect("in it");
                    places.push(place);
                }
            }
            Harm::Noise(noisy) => {
                for Place { object, bytes } in noisy {
                    let noise = dice.bytes((bytes.end - bytes.start) as usize);
                    store.write_durable(object, bytes.start, &noise).expect("memory");
                }
                places.clone_from(noisy);
            }
            Harm::To(name, deed) => {
                let mut bytes = bytes_of(&store, name);
                let len = bytes.len() as u64;
                let start = match deed {
                    Deed::Lost => 0,
                    Deed::Cut => dice.below(len),
                    Deed::Replaced => {
                        bytes = self.alike(name, dice)?;
                        0
                    }
                };
                if *deed == Deed::Cut {
                    bytes.truncate(start as usize);
                }
                match deed {
                    Deed::Lost => store.delete(&[name]).expect("memory"),
                    _ => store.put(name, &bytes, PutMode::Replace).expect("memory"),
                }
                places.push(Place { object: name.clone(), bytes: start..len });
            }
        }
        Some(Harmed { places, disk: Disk::Objects(Arc::new(store)) })
    }

    /// The same within one file: a lost object is zeros, and a cut one ends with zeros.
    fn harmed_file(
        &self,
        harm: &Harm,
        mut bytes: Vec<u8>,
        at: &BTreeMap<String, u64>,
        dice: &mut Dice,
    ) -> Option<Harmed> {
        let mut places = Vec::new();
        match harm {
            Harm::Flips(count) | Harm::FlipsOfBlocks(count) => {
                while (places.len() as u64) < *count {
                    let place = dice.index(bytes.len());
                    let here = at.iter().filter(|(_, start)| **start <= place as u64);
                    // What stands before all objects is the table of contents.
                    let table = ("table".to_owned(), 0);
                    let (object, start) =
                        here.max_by_key(|it| it.1).map_or(table, |(name, at)| (name.clone(), *at));
                    let wanted = *harm == Harm::Flips(*count) || self.home.has_blocks(&object);
                    if bytes[place] == 0 || !wanted {
                        continue;
                    }
                    bytes[place] ^= 1 << dice.below(8);
                    let offset = place as u64 - start;
                    places.push(Place { object, bytes: offset..offset + 1 });
                }
            }
            Harm::Noise(_) => return None,
            Harm::To(name, deed) => {
                let (place, len) = (*at.get(name)? as usize, bytes_of(&self.objects, name).len());
                let start = if *deed == Deed::Cut { dice.index(len) } else { 0 };
                let mut new = match deed {
                    Deed::Replaced => self.alike(name, dice)?,
                    _ => Vec::new(),
                };
                new.resize(len - start, 0);
                bytes[place + start..place + len].copy_from_slice(&new);
                places.push(Place { object: name.clone(), bytes: start as u64..len as u64 });
            }
        }
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join("volume"), bytes).expect("written");
        Some(Harmed { places, disk: Disk::File(dir) })
    }

    /// The bytes of another object of its kind.
    fn alike(&self, name: &str, dice: &mut Dice) -> Option<Vec<u8>> {
        let mine = bytes_of(&self.objects, name);
        let others: Vec<Vec<u8>> = self
            .names()
            .iter()
            .filter(|other| *other != name && other[..2] == name[..2])
            .map(|other| bytes_of(&self.objects, other))
            .filter(|other| *other != mine)
            .collect();
        if others.is_empty() { None } else { Some(others[dice.index(others.len())].clone()) }
    }
}

fn any_byte(all: &[(String, u64)], dice: &mut Dice) -> Place {
    let mut at = dice.below(all.iter().map(|(_, len)| len).sum());
    for (object, len) in all {
        if at < *len {
            return Place { object: object.clone(), bytes: at..at + 1 };
        }
        at -= len;
    }
    unreachable!("it is below the sum")
}

/// Copies all objects.
pub fn copy(from: &dyn Held, to: &MemoryStore) {
    for (name, _) in from.list().expect("a list") {
        to.put(&name, &bytes_of(from, &name), PutMode::Replace).expect("memory");
    }
}

/// Places in one file begin at multiples of it.
const ALIGN: usize = 4096;

/// Where objects begin in a file that has them all: each has bytes that no other place has.
pub fn places(file: &[u8], objects: &MemoryStore) -> BTreeMap<String, u64> {
    let mut found = BTreeMap::new();
    for (name, len) in objects.list().expect("memory") {
        let bytes = bytes_of(objects, &name);
        let Some(at) = bytes.iter().position(|byte| *byte != 0) else { continue };
        let mark = &bytes[at..(at + 64).min(len as usize)];
        let mut starts = (0..file.len() - bytes.len()).step_by(ALIGN);
        let whole = starts.find(|start| file[start + at..].starts_with(mark));
        found.insert(name, whole.expect("it is in the file") as u64);
    }
    found
}

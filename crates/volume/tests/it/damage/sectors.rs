//! Any one sector of what is small, or any one of its objects: the volume opens by itself, says
//! what is damaged, and is whole again after the next commit.

use super::world::{FULL, SAMPLE, Scale, World, content, passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{
    AnyStore, Held, Hint, Layer, Log, MemoryStore, Objects, Patience, Result, RetryStore,
    StoreAnswer, StoreCall, StoreError, WriteAt, layered,
};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::{BlockSpace, ClosedVolume, MemoryKeeper, OpenOptions, Volume};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex};

/// A disk with a sector that cannot be read until it is written over.
pub struct BadSector {
    disk: Arc<MemoryStore>,
    bad: Mutex<Option<(String, Range<u64>)>>,
    /// The alignment up to which an object's writes may be rounded.
    aligned: Mutex<HashMap<String, usize>>,
}

impl BadSector {
    pub fn new(disk: &Arc<MemoryStore>, object: &str, bytes: Range<u64>) -> Self {
        let bad = Mutex::new(Some((object.to_owned(), bytes)));
        Self { disk: Arc::clone(disk), bad, aligned: Mutex::default() }
    }

    fn meets(&self, object: &str, offset: u64, len: usize) -> bool {
        let bad = self.bad.lock().expect("one thread");
        bad.as_ref().is_some_and(|(name, bytes)| {
            name == object && offset < bytes.end && bytes.start < offset + len as u64
        })
    }

    /// A write of a part of a bad place reads the rest first.
    fn write(&self, object: &str, offset: u64, len: usize) -> Result<()> {
        if !self.meets(object, offset, len) {
            return Ok(());
        }
        let align = self.aligned.lock().expect("one thread").get(object).copied().unwrap_or(1);
        let len = len.next_multiple_of(align);
        let mut bad = self.bad.lock().expect("one thread");
        let whole = |bytes: &Range<u64>| offset <= bytes.start && bytes.end <= offset + len as u64;
        match bad.as_ref().is_some_and(|(_, bytes)| whole(bytes)) {
            true => *bad = None,
            false => return Err(eio(object)),
        }
        Ok(())
    }

    /// A cut frees what is beyond it.
    fn cut(&self, object: &str, len: u64) {
        let mut bad = self.bad.lock().expect("one thread");
        if bad.as_ref().is_some_and(|(name, bytes)| name == object && len <= bytes.start) {
            *bad = None;
        }
    }
}

impl Layer for BadSector {
    type Below = MemoryStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::Read(reads) => {
                for read in reads.iter() {
                    if self.meets(read.object, read.offset, read.buf.len()) {
                        return Err(eio(read.object));
                    }
                }
            }
            StoreCall::WriteDurable(it) => self.write(it.object, it.offset, it.data.len())?,
            StoreCall::Write(writes) => {
                writes.iter().try_for_each(|it| self.write(it.object, it.offset, it.data.len()))?;
            }
            StoreCall::Hint(Hint::RoundUp { object, align }) => {
                self.aligned.lock().expect("one thread").insert((*object).to_owned(), *align);
            }
            StoreCall::Put(object, ..) => self.cut(object, 0),
            StoreCall::Truncate(object, len) => self.cut(object, *len),
            _ => {}
        }
        call.on(&*self.disk)
    }
}

fn eio(object: &str) -> StoreError {
    StoreError::io(object, std::io::Error::from_raw_os_error(5))
}

/// What becomes of a place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Harm {
    Noise,
    Zeros,
    Unreadable,
    /// The whole object is gone.
    Gone,
    /// It ends there.
    Cut,
}

pub const HARMS: [Harm; 5] = [Harm::Noise, Harm::Zeros, Harm::Unreadable, Harm::Gone, Harm::Cut];

fn is_small(object: &str) -> bool {
    ["header", "commit", "state-", "log-"].iter().any(|name| object.starts_with(name))
}

/// Harms a disk; gives the sector that cannot be read, if it is that.
pub fn harm(
    disk: &MemoryStore,
    object: &str,
    sector: Range<u64>,
    harm: Harm,
    dice: &mut Dice,
) -> Range<u64> {
    let bytes = (sector.end - sector.start) as usize;
    match harm {
        Harm::Noise => {
            disk.write_durable(object, sector.start, &dice.bytes(bytes)).expect("memory");
        }
        Harm::Zeros => {
            disk.write_durable(object, sector.start, &vec![0; bytes]).expect("memory");
        }
        Harm::Unreadable => return sector,
        Harm::Gone => disk.delete(&[object]).expect("memory"),
        Harm::Cut => disk.truncate(object, sector.start).expect("memory"),
    }
    0..0
}

/// Opens a harmed volume, uses it, and expects everything to be whole.
fn one(world: &World, dice: &mut Dice) -> (String, Harm, bool) {
    let small: Vec<(String, u64)> =
        world.objects().into_iter().filter(|(name, len)| is_small(name) && *len > 0).collect();
    let (object, len) = &small[dice.below(small.len() as u64) as usize];
    let size = [512, 4096][dice.below(2) as usize];
    let start = dice.below(len.div_ceil(size)) * size;
    let kind = HARMS[dice.below(HARMS.len() as u64) as usize];
    let disk = Arc::new(world.disk.snapshot());
    let before = world.bytes(&disk, object);
    let bad = harm(&disk, object, start..(start + size).min(*len), kind, dice);
    let what = format!("{kind:?} of {object} at {start}, {size} bytes");

    let store = Arc::new(BadSector::new(&disk, object, bad));
    let mut volume = world.open(Arc::clone(&store)).unwrap_or_else(|error| {
        panic!("{what}: it does not open: {error}");
    });
    let mut said = volume.damaged();
    let states = object.starts_with("log-") || object.starts_with("state-");
    if kind == Harm::Unreadable && states && said.is_empty() {
        // No commit names it, and a later one writes over it in parts.
        return (object.clone(), kind, false);
    }
    let id = dice.below(world.scale.blocks);
    world.compare(&mut volume, vec![id]).expect("it reads");
    let new = content(id, 77, world.scale.block_bytes);
    let write = BlockOp { id: BlockId(id), action: Action::Write(new.clone()) };
    volume.access(vec![write]).expect("it is written");
    volume.finish().expect("it commits");
    said.extend(volume.damaged());
    assert!(said.iter().all(|place| place.object.starts_with(&object[..3])), "{what}: {said:?}");
    if kind == Harm::Gone {
        assert!(said.iter().any(|place| place.object == *object), "{what} is not said: {said:?}");
    }
    let known = volume.known();
    drop(volume);

    let keeper = Some(Box::new(MemoryKeeper::knowing(known)) as _);
    let memory_bytes = world.scale.memory_bytes;
    let options = || OpenOptions { memory_bytes, ..OpenOptions::default() };
    let mut again =
        Volume::open(Arc::clone(&store), &passphrase(), OpenOptions { keeper, ..options() })
            .unwrap_or_else(|error| panic!("{what}: it does not open again: {error}"));
    let damage = again.damaged();
    assert!(damage.is_empty(), "{what}: not whole after a commit: {damage:?}");
    again.verify(&mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
    let all: Vec<u64> = (0..world.scale.blocks).filter(|other| *other != id).collect();
    world.compare(&mut again, all).expect("all is there");
    let read = again.access(vec![super::world::read(id)]).expect("read");
    assert_eq!(read, [Some(new)], "{what}");
    again.finish().expect("it commits");
    drop(again);
    // Then any other object may be lost.
    let (other, _) = &small[dice.below(small.len() as u64) as usize];
    disk.delete(&[other]).expect("memory");
    if let Err(error) = Volume::open(disk, &passphrase(), options()) {
        panic!("{what}, and {other} is lost later: {error}");
    }
    let changed = kind != Harm::Zeros || before[start as usize..].iter().any(|byte| *byte != 0);
    (object.clone(), kind, changed && !said.is_empty())
}

fn any_sector(scale: Scale, tries: u64) {
    let world = World::make(scale);
    let mut dice = Dice::new(seed(49));
    let (mut said, mut kinds) = (0, std::collections::BTreeSet::new());
    for _ in 0..tries {
        let (object, kind, noticed) = one(&world, &mut dice);
        said += u64::from(noticed);
        kinds.insert((object, format!("{kind:?}")));
    }
    println!("{tries} places, {said} times damage was said, {} kinds", kinds.len());
    assert!(said * 3 > tries, "most harm is said: {said} of {tries}");
}

#[test]
fn any_sector_of_what_is_small_may_be_lost() {
    any_sector(SAMPLE, scaled(120));
}

/// With two checkpoints of different commits, and logs that go on.
#[test]
fn any_sector_may_be_lost_after_many_commits() {
    let later = Scale { commits: 30, block_bytes: 256, blocks: 200, ..FULL };
    any_sector(later, scaled(60));
}

/// Under a layer that outlasts outages, as in a mount: it must not try for ever to read one copy.
#[test]
fn an_unreadable_copy_is_no_outage() {
    let world = World::make(SAMPLE);
    let newest = world.known.epoch % 2 * 4096;
    for (object, _) in world.objects().into_iter().filter(|(name, _)| is_small(name)) {
        let at = if object.starts_with("commit") { newest } else { 0 };
        let disk = Arc::new(world.disk.snapshot());
        let store = Arc::new(BadSector::new(&disk, &object, at..at + 512));
        let closed = ClosedVolume::read(Arc::clone(&store)).expect("the other header");
        let retry = |store: AnyStore| {
            layered!(store, below => {
                RetryStore::new(below, Patience::default(), Box::new(|_| {}))
            })
        };
        let closed = closed.over(|store| Ok::<_, ()>(retry(store))).expect("a layer");
        let memory_bytes = world.scale.memory_bytes;
        let options = OpenOptions { memory_bytes, ..OpenOptions::default() };
        let mut volume = closed.open(&passphrase(), options).expect("by the other copy");
        volume.finish().expect("it commits");
        let said = volume.damaged();
        assert!(said.iter().any(|place| place.object == object), "{object}: {said:?}");
        let again = world.open(store).expect("whole");
        assert!(again.damaged().is_empty(), "{object}");
    }
}

/// Both copies: the volume is refused, and what is damaged is named.
#[test]
fn both_copies_lost_are_named() {
    let world = World::make(SAMPLE);
    let pairs = [("header", "header-2"), ("commit", "commit-2"), ("state-0", "state-1")];
    for (one, two) in pairs {
        let disk = world.without(one);
        let len = disk.len(two).expect("memory").expect("it is there");
        let noise = Dice::new(len).bytes(len as usize);
        oblivio_store::Slots::write(&disk, &[WriteAt::new(two, 0, &noise)]).expect("memory");
        let error = world.open(Arc::new(disk)).err().expect("it is refused").to_string();
        let named = [one, two, "header"].iter().any(|name| error.contains(name));
        assert!(named, "{one}: {error}");
        assert!(!error.contains("rolled back"), "{error}");
    }
}

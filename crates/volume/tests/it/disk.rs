//! A disk on a volume against a plain vector of bytes.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{BlockOp, BlockOutcome};
use oblivio_store::{MemoryStore, Store};
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::disk::{Disk, size_in};
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{
    BlockSpace, CreateOptions, Error, LostBytes, OpenOptions, Shown, ShownKind, Volume,
};
use proptest::prelude::*;
use std::sync::{Arc, Mutex};

const BLOCK: usize = 1024;
/// The last block is a short one.
const SIZE: usize = 75 * 512;

fn passphrase() -> Passphrase {
    Passphrase::new("spinning rust")
}

fn tight() -> OpenOptions {
    OpenOptions { memory_bytes: 256 << 10, ..OpenOptions::default() }
}

fn create(store: &Arc<MemoryStore>, size: u64) -> Volume {
    let create = CreateOptions { block_bytes: BLOCK, capacity_bytes: size, kdf: KdfParams::TEST };
    let store: Arc<dyn Store> = store.clone();
    Volume::create(store, &passphrase(), create, tight()).expect("a volume")
}

fn reopen(store: &Arc<MemoryStore>, options: OpenOptions) -> Disk {
    let store: Arc<dyn Store> = store.clone();
    let volume = Volume::open(store, &passphrase(), options).expect("the volume");
    Disk::open(Box::new(volume)).expect("the disk")
}

#[derive(Clone, Debug)]
enum Event {
    Write(usize, usize, u8),
    Zeroes(usize, usize, bool),
    Trim(usize, usize),
    Read(Vec<(usize, usize)>),
    Extents(usize, usize),
    Flush,
    /// The disk is closed cleanly and opened again.
    Reopen,
    /// A flush, then the session ends without notice.
    Crash,
}

fn range() -> impl Strategy<Value = (usize, usize)> {
    let len = prop_oneof![1..40usize, 1..4 * BLOCK, 1..SIZE];
    let place = prop_oneof![(0..SIZE), (0..SIZE / BLOCK).prop_map(|block| block * BLOCK)];
    (place, len).prop_map(|(offset, len)| (offset, len.min(SIZE - offset)))
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => (range(), any::<u8>()).prop_map(|((at, len), fill)| Event::Write(at, len, fill)),
        2 => (range(), any::<bool>()).prop_map(|((at, len), stay)| Event::Zeroes(at, len, stay)),
        2 => range().prop_map(|(at, len)| Event::Trim(at, len)),
        4 => proptest::collection::vec(range(), 1..4).prop_map(Event::Read),
        2 => range().prop_map(|(at, len)| Event::Extents(at, len)),
        2 => Just(Event::Flush),
        1 => Just(Event::Reopen),
        1 => Just(Event::Crash),
    ]
}

/// Bytes that differ from place to place.
fn pattern(at: usize, len: usize, fill: u8) -> Vec<u8> {
    (at..at + len).map(|at| fill.wrapping_add((at / 7) as u8) | 1).collect()
}

/// The beginning and end of the whole blocks in a range.
fn whole(at: usize, len: usize) -> std::ops::Range<usize> {
    let (first, end) = (at.next_multiple_of(BLOCK), at + len);
    let end = if end == SIZE { end } else { end - end % BLOCK };
    first.min(end)..end
}

fn apply(event: Event, disk: &mut Disk, model: &mut [u8]) -> Result<(), TestCaseError> {
    match event {
        Event::Write(at, len, fill) => {
            let data = pattern(at, len, fill);
            disk.write(at as u64, &data).expect("room");
            model[at..at + len].copy_from_slice(&data);
        }
        Event::Zeroes(at, len, stay) => {
            disk.write_zeroes(at as u64, len as u64, stay).expect("room");
            model[at..at + len].fill(0);
            if stay {
                let extents = disk.extents(at as u64, len as u64, 9).expect("inside");
                prop_assert!(extents.iter().all(|extent| extent.exists), "{:?}", extents);
            }
        }
        Event::Trim(at, len) => {
            disk.trim(at as u64, len as u64).expect("inside");
            model[whole(at, len)].fill(0);
        }
        Event::Read(ranges) => {
            let asked: Vec<_> = ranges.iter().map(|&(at, len)| (at as u64, len)).collect();
            let answers = disk.read_many(&asked).expect("inside");
            for ((at, len), answer) in ranges.into_iter().zip(answers) {
                prop_assert!(answer == model[at..at + len], "{} bytes at {}", len, at);
            }
        }
        Event::Extents(at, len) => {
            let extents = disk.extents(at as u64, len as u64, usize::MAX).expect("inside");
            let mut from = at;
            for extent in &extents {
                let to = from + extent.len as usize;
                let zeros = model[from..to].iter().all(|&byte| byte == 0);
                prop_assert!(extent.exists || zeros, "what is absent reads as zeros");
                from = to;
            }
            prop_assert_eq!(from, at + len);
            let differ =
                |pair: &[oblivio_volume::disk::DiskExtent]| pair[0].exists != pair[1].exists;
            prop_assert!(extents.windows(2).all(differ), "neighbours differ");
            let few = disk.extents(at as u64, len as u64, 1).expect("inside");
            prop_assert_eq!(&few[..], &extents[..1]);
        }
        Event::Flush => disk.flush().expect("memory"),
        Event::Reopen | Event::Crash => unreachable!("the caller does these"),
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(50) as u32))]
    #[test]
    fn a_disk_is_a_vector_of_bytes(events in proptest::collection::vec(event(), 1..40)) {
        let store = Arc::new(MemoryStore::new());
        let mut disk = Disk::format(Box::new(create(&store, SIZE as u64)), SIZE as u64)
            .expect("a disk");
        let mut model = vec![0; SIZE];
        for event in events {
            match event {
                Event::Reopen => {
                    drop(disk.into_blocks().expect("memory"));
                    disk = reopen(&store, tight());
                }
                Event::Crash => {
                    disk.flush().expect("memory");
                    drop(disk);
                    disk = reopen(&store, tight());
                }
                event => apply(event, &mut disk, &mut model)?,
            }
        }
        let all = disk.read_many(&[(0, SIZE)]).expect("inside");
        prop_assert!(all[0] == model);
    }
}

#[test]
fn what_lies_beyond_the_end_is_refused_and_changes_nothing() {
    let store = Arc::new(MemoryStore::new());
    let size = SIZE as u64;
    let mut disk = Disk::format(Box::new(create(&store, size)), size).expect("a disk");
    disk.write(size - 2, &[7, 8]).expect("the last bytes");
    let invalid = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Invalid(_))));
    invalid(disk.write(size - 1, &[1, 2]));
    invalid(disk.write(u64::MAX, &[1, 2]));
    invalid(disk.write_zeroes(size - 2, 3, false));
    invalid(disk.write_zeroes(0, u64::MAX, true));
    invalid(disk.trim(0, size + 1));
    invalid(disk.read_many(&[(0, 1), (size, 1)]).map(drop));
    invalid(disk.extents(size, 1, 1).map(drop));
    assert_eq!(disk.read_many(&[(size - 3, 3), (5, 0)]).expect("inside"), [vec![0, 7, 8], vec![]]);
}

#[test]
fn sizes_that_no_disk_has_are_refused() {
    for size in [0, 1, 511, 513] {
        let volume = create(&Arc::new(MemoryStore::new()), 1 << 20);
        let refused = Disk::format(Box::new(volume), size);
        assert!(matches!(refused, Err(Error::Invalid(_))), "{size}");
    }
    let volume = create(&Arc::new(MemoryStore::new()), 1 << 20);
    assert!(matches!(Disk::format(Box::new(volume), 1 << 30), Err(Error::Full(_))));
}

#[test]
fn a_volume_says_what_it_holds() {
    let store = Arc::new(MemoryStore::new());
    let disk = Disk::format(Box::new(create(&store, 1 << 20)), 1 << 20).expect("a disk");
    let volume = disk.into_blocks().expect("memory");
    assert_eq!(size_in(volume.root()).expect("a root"), Some(1 << 20));
    assert!(matches!(FileSystem::open(volume), Err(Error::HoldsDisk)));

    let files = create(&Arc::new(MemoryStore::new()), 64 << 20);
    let volume = FileSystem::format(Box::new(files)).expect("files").into_blocks().expect("memory");
    assert_eq!(size_in(volume.root()).expect("a root"), None);
    assert!(matches!(Disk::open(volume), Err(Error::HoldsFiles)));

    let mut later = size_in_root(1 << 20);
    later[8] = 2;
    assert!(matches!(size_in(&later), Err(Error::Unsupported(_))));
    assert!(matches!(size_in(&size_in_root(1 << 20)[..23]), Err(Error::Tampered(_))));
}

/// A root as in docs/format.md.
fn size_in_root(size: u64) -> Vec<u8> {
    [&b"OBLDISK\n"[..], &[1, 0, 0, 0, 0, 0, 0, 0], &size.to_le_bytes()].concat()
}

/// A volume in a store that reports little space.
struct Narrow(Volume, u64);

impl BlockSpace for Narrow {
    oblivio_volume::lacks!(padding, idling, ending, readers);
    fn addressable_blocks(&self) -> u64 {
        self.0.addressable_blocks()
    }
    fn can_resize(&self) -> bool {
        self.0.can_resize()
    }
    fn set_capacity(&mut self, blocks: u64) -> Result<(), Error> {
        self.0.set_capacity(blocks)
    }
    fn defer(&mut self, ops: Vec<BlockOp>) -> Result<(), Error> {
        self.0.access(ops).map(drop)
    }
    fn erase(&mut self, ids: &[u64]) -> Result<(), Error> {
        self.defer(oblivio_volume::block::removals(ids))
    }
    fn erases_cheaply(&self) -> bool {
        false
    }
    fn present(&self, ids: std::ops::Range<u64>) -> Result<Vec<bool>, Error> {
        Ok(ids.map(|id| self.exists(id)).collect())
    }
    fn block_bytes(&self) -> usize {
        self.0.block_bytes()
    }
    fn capacity_blocks(&self) -> u64 {
        self.0.capacity_blocks()
    }
    fn reserve(&mut self, blocks: u64) -> Result<(), Error> {
        self.0.reserve(blocks)
    }
    fn access_each(&mut self, ops: Vec<BlockOp>) -> Result<Vec<BlockOutcome>, Error> {
        self.0.access_each(ops)
    }
    fn root(&self) -> &[u8] {
        self.0.root()
    }
    fn set_root(&mut self, root: &[u8]) {
        self.0.set_root(root);
    }
    fn room(&self) -> Result<Option<u64>, Error> {
        let exist = (0..self.capacity_blocks()).filter(|&id| self.0.exists(id)).count() as u64;
        Ok(Some(self.1.saturating_sub(exist)))
    }
    fn exists(&self, id: u64) -> bool {
        self.0.exists(id)
    }
    fn commit(&mut self) -> Result<(), Error> {
        self.0.commit()
    }
    fn discard(&mut self, ids: &[u64]) -> Result<(), Error> {
        self.0.discard(ids)
    }
    fn cache_budget(&self) -> usize {
        self.0.cache_budget()
    }
}

#[test]
fn a_full_store_refuses_new_blocks_and_nothing_else() {
    let volume = create(&Arc::new(MemoryStore::new()), 1 << 20);
    let mut disk = Disk::format(Box::new(Narrow(volume, 4)), 1 << 20).expect("a disk");
    let block = BLOCK as u64;
    let full = |result: Result<(), Error>| assert!(matches!(result, Err(Error::Full(_))));
    disk.write(0, &[1; 3 * BLOCK]).expect("room for three");
    full(disk.write(9 * block - 1, &[2; 2]));
    full(disk.write_zeroes(9 * block, 2 * block, true));
    // The edges would need two new blocks; nothing is done.
    full(disk.write_zeroes(8 * block - 1, block + 2, false));
    disk.write_zeroes(block - 1, block + 2, false).expect("these exist");
    assert_eq!(disk.read_many(&[(0, 4 * BLOCK)]).expect("inside")[0], {
        let mut model = [[1; 3 * BLOCK].to_vec(), vec![0; BLOCK]].concat();
        model[BLOCK - 1..2 * BLOCK + 1].fill(0);
        model
    });
    disk.write(9 * block - 1, &[2; 2]).expect("what was given back can be taken");
    full(disk.write(20 * block, &[3]));
    disk.write(0, &[4; 1]).expect("a block that exists");
    disk.trim(0, block).expect("inside");
    disk.write(20 * block, &[3]).expect("room again");
    disk.flush().expect("memory");
}

/// The disk's requests and their cost in accesses: the rows of docs/leakage/tree.md.
#[test]
fn what_requests_cost() {
    let store = Arc::new(MemoryStore::new());
    let size = 1 << 20;
    drop(Disk::format(Box::new(create(&store, size)), size).expect("a disk"));
    let shown: Arc<Mutex<Vec<Shown>>> = Arc::default();
    let seen = Arc::clone(&shown);
    let on_shown = Box::new(move |event: &Shown| seen.lock().expect("alone").push(event.clone()));
    let mut disk = reopen(
        &store,
        OpenOptions { memory_bytes: 64 << 20, on_shown: Some(on_shown), ..OpenOptions::default() },
    );
    let cost = || {
        let shown = std::mem::take(&mut *shown.lock().expect("alone"));
        let paths = shown.iter().map(|one| one.leaves.len() - one.scheduled).sum::<usize>();
        let records = shown.iter().filter(|one| one.kind == ShownKind::Sync).count();
        (paths, records)
    };
    cost();
    let block = BLOCK as u64;
    let mut cost_of = |name: &str, wanted: (usize, usize), work: &mut dyn FnMut(&mut Disk)| {
        work(&mut disk);
        assert_eq!(cost(), wanted, "{name}");
    };
    cost_of("write", (0, 0), &mut |disk| disk.write(0, &[1; 8 * BLOCK]).expect("room"));
    cost_of("zeroes", (0, 0), &mut |disk| disk.write_zeroes(0, 3, false).expect("room"));
    cost_of("flush", (0, 1), &mut |disk| disk.flush().expect("memory"));
    cost_of("flush of nothing", (0, 0), &mut |disk| disk.flush().expect("memory"));
    for (name, at) in [("present", 0), ("absent", 512 * block)] {
        cost_of(name, (4, 0), &mut |disk| {
            disk.read_many(&[(at, 4 * BLOCK)]).expect("inside");
        });
        cost_of(name, (2, 0), &mut |disk| {
            disk.read_many(&[(at + block - 1, 2)]).expect("inside");
        });
    }
    cost_of("neighbours share blocks", (4, 0), &mut |disk| {
        let parts: Vec<_> = (0..16).map(|part| (part * block / 4, BLOCK / 4)).collect();
        disk.read_many(&parts).expect("inside");
    });
    cost_of("status", (0, 0), &mut |disk| {
        disk.extents(0, size, 9).expect("inside");
    });
    cost_of("trim", (0, 0), &mut |disk| disk.trim(0, size).expect("inside"));
}

/// Of several ranges, those fail that want a lost block, and name it.
#[test]
fn what_is_lost_is_named_by_its_bytes_and_healed_by_a_whole_write() {
    let blocks = MemoryBlocks::new(BLOCK, 1 << 10, 1 << 20);
    let mut disk = Disk::format(blocks.boxed(), SIZE as u64).expect("a disk");
    let bytes: Vec<u8> = (0..SIZE).map(|at| (at / BLOCK * 3 + at % 3) as u8).collect();
    disk.write(0, &bytes).expect("inside");
    disk.flush().expect("memory");
    let block = BLOCK as u64;
    for lost in [5, 6, 37] {
        let start = lost * BLOCK;
        let end = SIZE.min(start + BLOCK);
        blocks.lose(blocks.blocks_with(&bytes[start..end], true));
    }
    assert_eq!(blocks.lost(), 3);
    let ranges = [(0, 5 * BLOCK), (4 * block, 4 * BLOCK), (36 * block, BLOCK + 512), (9, 3)];
    let answers = disk.read_each(&ranges).expect("one by one");
    let lost = |ranges: &[std::ops::Range<u64>]| {
        Err(LostBytes { what: "the disk".into(), ranges: ranges.to_vec() })
    };
    assert_eq!(answers[0].as_deref(), Ok(&bytes[..5 * BLOCK]));
    assert_eq!(answers[1], lost(std::slice::from_ref(&(5 * block..7 * block))));
    assert_eq!(answers[2], lost(std::slice::from_ref(&(37 * block..SIZE as u64))));
    assert_eq!(answers[3].as_deref(), Ok(&bytes[9..12]));
    assert!(matches!(disk.read_many(&ranges), Err(Error::Lost(_))));
    assert!(matches!(disk.write(5 * block + 1, b"a part"), Err(Error::Lost(_))));
    disk.write(5 * block, &[1; BLOCK]).expect("all of it");
    disk.trim(6 * block, block).expect("inside");
    disk.write_zeroes(37 * block, 512, true).expect("all there is of it");
    let healed = disk.read_many(&[(5 * block, 2 * BLOCK), (37 * block, 512)]).expect("whole");
    assert_eq!(healed, [[[1; BLOCK], [0; BLOCK]].concat(), vec![0; 512]]);
    assert_eq!(blocks.lost(), 0);
}

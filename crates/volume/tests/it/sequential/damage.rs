//! Whichever stored bytes are changed, or replayed from an older state: the volume reports it, or
//! no answer is wrong.

use super::model::{Model, act, any_event, content};
use super::{MemoryKeeper, any_options, create, open, passphrase};
use oblivio_crypto::KdfParams;
use oblivio_engine::Extent;
use oblivio_engine::sequential::{Flush, Layout, SequentialConfig};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, MemoryStore, ReadAt, Slots, WriteAt};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{at_least, scaled};
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::tree::TreeVolume;
use oblivio_volume::{BlockSpace, CreateOptions, EngineVolume, Error, OpenOptions};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A volume with a history: an earlier store, the present one, and its content.
struct Aged {
    old: MemoryStore,
    now: MemoryStore,
    memory: MemoryKeeper,
    model: Model,
}

fn aged(options: SequentialOptions, dice: &mut Dice, finish: bool) -> Aged {
    let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    let mut volume = create(store.clone(), options, &memory).expect("a volume");
    let (mut model, mut old) = (Model::default(), store.snapshot());
    for at in 0..120 {
        let event = any_event(dice, options.engine.blocks);
        act(&mut volume, &model, &event).expect("works");
        model.play(&event);
        if at == 80 {
            volume.commit().expect("works");
            old = store.snapshot();
        }
    }
    if finish { volume.finish() } else { volume.commit() }.expect("works");
    drop(volume);
    Aged { old, now: store.snapshot(), memory, model }
}

/// Opens and reads everything: an error, or the right content. Whether the volume said that
/// something is wrong: what has parity or a second copy is read from that.
fn examine(store: &MemoryStore, aged: &Aged, what: &str) -> bool {
    let opened = open(Arc::new(store.snapshot()), &aged.memory.twin());
    let said = opened.as_ref().is_ok_and(|volume| !volume.damaged().is_empty());
    let found = opened.and_then(|mut volume| content(&mut volume));
    if let Ok(found) = &found {
        assert!(*found == aged.model, "{what}: wrong data");
    }
    found.is_err() || said
}

#[test]
fn no_changed_byte_is_believed() {
    let full = at_least(100.0);
    let (mut changed, mut noticed) = (0u64, 0u64);
    for seed in 0..if full { 4 } else { 2 } {
        let mut dice = Dice::new(seed + 31);
        let options = any_options(&mut dice);
        let aged = aged(options, &mut dice, seed % 2 == 0);
        for (object, len) in aged.now.list().expect("a list") {
            let step = if full { 1 } else { 1 + dice.below(2 * (len / 60).max(1)) };
            let mut offset = dice.below(step);
            while offset < len {
                let store = aged.now.snapshot();
                let bit = 1 << dice.below(8);
                store.corrupt(&object, offset, |byte| *byte ^= bit).expect("there is such a byte");
                noticed += u64::from(examine(&store, &aged, &format!("{seed}: {object} {offset}")));
                changed += 1;
                offset += if full { 1 } else { 1 + dice.below(2 * step) };
            }
        }
    }
    println!("{changed} bytes changed, {noticed} noticed, none believed");
    assert!(noticed * 20 > changed, "hardly any change was noticed");
}

/// Sectors, pages, the unit that a flush writes, each state, each quantum, and the whole.
fn regions(object: &str, len: u64, options: &SequentialOptions) -> BTreeSet<Extent> {
    let mut sizes = vec![512, 4096, len.max(1)];
    if object == "state" {
        sizes.push(len / 2);
    }
    let all_of = |size: u64| {
        let region = move |offset| Extent { offset, bytes: size.min(len - offset) };
        (0..len).step_by(size as usize).map(region)
    };
    let mut regions: BTreeSet<Extent> = sizes.into_iter().flat_map(all_of).collect();
    if object == "disk" {
        let layout = Layout::new(&options.engine).expect("it was made with these");
        regions.extend((0..500).flat_map(|flush| layout.writes(Flush(flush))));
    }
    regions
}

/// Every object, and every region of every object, in an earlier state.
#[test]
fn nothing_older_is_believed() {
    let (mut replayed, mut noticed) = (0u64, 0u64);
    for seed in 0..scaled(2) {
        let mut dice = Dice::new(seed + 77);
        let options = any_options(&mut dice);
        let aged = aged(options, &mut dice, seed % 2 == 0);
        for (object, len) in aged.now.list().expect("a list") {
            for Extent { offset, bytes } in regions(&object, len, &options) {
                let store = aged.now.snapshot();
                let mut old = vec![0; bytes as usize];
                let from = ReadAt { object: &object, offset, buf: &mut old };
                aged.old.read(&mut [from]).expect("as long as now");
                let write = WriteAt::new(&object, offset, &old);
                store.write(&[write]).expect("memory");
                let what = format!("{seed}: {object} from {offset}, {bytes}");
                noticed += u64::from(examine(&store, &aged, &what));
                replayed += 1;
            }
        }
        let old = open(Arc::new(aged.old.snapshot()), &aged.memory.twin());
        assert!(old.is_err(), "an older volume was believed");
    }
    println!("{replayed} regions replayed, {noticed} noticed, none believed");
    assert!(noticed > 0);
}

/// A volume whose first turn is long, so all quanta of a test are in use.
pub fn long_turn() -> SequentialOptions {
    let engine = SequentialConfig {
        bucket_blocks: 50,
        queue_buckets: 2,
        sector_bytes: 2048,
        ..SequentialConfig::new(64, 200)
    };
    SequentialOptions { engine, quantum_writes: 2, log_quanta: 220, fill: false, lanes: None }
}

pub fn write(volume: &mut dyn BlockSpace, id: u64, byte: u8) {
    let action = Action::Write(vec![byte; 64]);
    volume.access(vec![BlockOp { id: BlockId(id), action }]).expect("works");
}

pub fn write_and_sync(volume: &mut dyn BlockSpace, id: u64, byte: u8) {
    write(volume, id, byte);
    volume.commit().expect("works");
}

/// Bytes of the quanta of [`long_turn`]: a page, and its parity.
pub const QUANTUM: u64 = 8192;

/// Even without a memory, nobody may be made to believe that the log ends at the damage.
#[test]
fn a_hole_in_the_log_is_no_end() {
    let store = Arc::new(MemoryStore::new());
    let mut volume =
        create(store.clone(), long_turn(), &MemoryKeeper::default()).expect("a volume");
    (0..10).for_each(|id| write_and_sync(&mut volume, id, 7));
    drop(volume);
    for quantum in 0..10 {
        let damaged = store.snapshot();
        for page in 0..2 {
            let at = quantum * QUANTUM + page * 4096 + 99;
            damaged.corrupt("log", at, |byte| *byte ^= 1).expect("a byte");
        }
        let opened = open(Arc::new(damaged), &MemoryKeeper::default());
        match opened.map(|mut volume| content(&mut volume).expect("readable").blocks.len()) {
            // Without a memory, nobody can know of the last one.
            Ok(left) => assert_eq!((quantum, left), (9, 9)),
            Err(error) => assert!(matches!(error, Error::Tampered(_)), "{quantum}: {error}"),
        }
    }
}

/// Two histories parted; the log of one must not continue with that of the other.
#[test]
fn a_log_put_together_from_two_is_not_believed() {
    let store = Arc::new(MemoryStore::new());
    let mut volume =
        create(store.clone(), long_turn(), &MemoryKeeper::default()).expect("a volume");
    write_and_sync(&mut volume, 0, 1);
    drop(volume);
    let fork = |byte| {
        let store = Arc::new(store.snapshot());
        let mut volume = open(store.clone(), &MemoryKeeper::default()).expect("it opens");
        (1..5).for_each(|id| write_and_sync(&mut volume, id, byte));
        store
    };
    let (one, other) = (fork(2), fork(3));
    let mut theirs = vec![0; 2 * QUANTUM as usize];
    let offset = 3 * QUANTUM;
    other.read(&mut [ReadAt { object: "log", offset, buf: &mut theirs }]).expect("written");
    one.write(&[WriteAt::new("log", offset, &theirs)]).expect("memory");
    if let Ok(mut volume) = open(one, &MemoryKeeper::default()) {
        let found = content(&mut volume).expect("readable");
        assert!(found.blocks.values().all(|block| block[0] != 3), "both histories in one");
    }
}

/// Fields of one engine must never be taken for those of another.
#[test]
fn a_volume_opens_on_its_own_engine_only() {
    let (trees, disks) = (Arc::new(MemoryStore::new()), Arc::new(MemoryStore::new()));
    drop(create(disks.clone(), long_turn(), &MemoryKeeper::default()).expect("a volume"));
    let tree = CreateOptions { block_bytes: 512, capacity_bytes: 1 << 20, kdf: KdfParams::TEST };
    let made = TreeVolume::create(trees.clone(), &passphrase(), tree, OpenOptions::default());
    drop(made.expect("a volume"));
    let refused = |error: Option<Error>| matches!(error, Some(Error::Unsupported(_)));
    assert!(refused(open(trees, &MemoryKeeper::default()).err()));
    assert!(refused(TreeVolume::open(disks, &passphrase(), OpenOptions::default()).err()));
}

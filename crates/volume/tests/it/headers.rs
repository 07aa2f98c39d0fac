//! The two copies of a header: in every home one may be lost, and which of two different ones
//! counts.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_store::partition::{Existing, PartitionPlace};
use oblivio_store::{MemoryStore, PartitionStore, PutMode, ReadAt, Store, WriteAt};
use oblivio_testkit::Dice;
use oblivio_volume::{
    BlockSpace, Error, HEADER_BYTES, HEADER_OBJECTS, NewVolume, OpenOptions, SeenBy, Volume,
    add_passphrase, change_passphrase, read_header, remove_passphrase,
};
use std::sync::Arc;

const BLOCK: usize = 1024;
const BYTES: u64 = 256 << 10;
/// The offset of the first passphrase slot, of its salt there, and bytes of a slot.
const SLOTS: u64 = 88;
const SALT: u64 = 16;
const SLOT: u64 = 128;

fn secret(text: &str) -> Passphrase {
    Passphrase::new(text)
}

fn options() -> OpenOptions {
    OpenOptions { memory_bytes: 8 << 20, ..OpenOptions::default() }
}

fn made(new: NewVolume, store: Arc<dyn Store>) -> Arc<dyn Store> {
    let made = new.create(Arc::clone(&store), &secret("first"), options(), &mut |_, _| {});
    made.expect("an empty store").finish().expect("committed");
    store
}

fn tree() -> Arc<dyn Store> {
    let new = NewVolume::new(SeenBy::Storage, BLOCK, BYTES, KdfParams::TEST);
    made(new, Arc::new(MemoryStore::new()))
}

/// A volume in each home, and what keeps it.
fn homes() -> Vec<(&'static str, Arc<dyn Store>, Option<tempfile::TempDir>)> {
    let memory = || Arc::new(MemoryStore::new());
    let sequential = NewVolume::new(SeenBy::Snapshots, BLOCK, BYTES, KdfParams::TEST);
    let windows = NewVolume::on_windows(BLOCK, BYTES, true, KdfParams::TEST);
    let dir = tempfile::tempdir().expect("a folder");
    let objects = sequential.fixed_objects().expect("sound").expect("fixed");
    let fixed = objects.iter().map(|(name, bytes)| PartitionPlace::fixed(name, *bytes));
    let header = |object| PartitionPlace::new(object, HEADER_BYTES as u64);
    let places: Vec<_> = HEADER_OBJECTS.map(header).into_iter().chain(fixed).collect();
    let one = PartitionStore::create(dir.path().join("v"), &places, Existing::Refuse);
    vec![
        ("tree", tree(), None),
        ("sequential", made(sequential, memory()), None),
        ("windows", made(windows, memory()), None),
        ("one file", made(sequential, Arc::new(one.expect("a new file"))), Some(dir)),
    ]
}

fn open(store: &Arc<dyn Store>, passphrase: &str) -> Result<Volume, Error> {
    Volume::open(Arc::clone(store), &secret(passphrase), options())
}

fn bytes(store: &dyn Store, object: &str) -> Vec<u8> {
    let mut bytes = vec![0; store.len(object).expect("a store").unwrap_or(0) as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut bytes }]).expect("it is there");
    bytes
}

fn put(store: &dyn Store, object: &str, bytes: &[u8]) {
    store.put(object, bytes, PutMode::Replace).expect("written");
}

fn copies(store: &Arc<dyn Store>) -> [Vec<u8>; 2] {
    HEADER_OBJECTS.map(|object| bytes(&**store, object))
}

fn flip(store: &dyn Store, object: &str, at: u64) {
    let byte = bytes(store, object)[at as usize];
    store.write(&[WriteAt::new(object, at, &[byte ^ 4])]).expect("in range");
}

/// Damages a copy.
type Harm = fn(&dyn Store, &str, &mut Dice);

fn harms() -> [(&'static str, Harm); 5] {
    [
        ("a flipped bit", |store, object, dice| flip(store, object, dice.below(1216))),
        ("a lost sector", |store, object, dice| {
            let at = dice.below(2) * 512;
            store.write(&[WriteAt::new(object, at, &dice.bytes(512))]).expect("in range");
        }),
        ("zeros", |store, object, _| put(store, object, &[0; 1216])),
        ("cut", |store, object, dice| store.truncate(object, dice.below(1216)).expect("shorter")),
        ("gone", |store, object, _| store.delete(&[object]).expect("deleted")),
    ]
}

#[test]
fn either_copy_may_be_lost_in_every_home() {
    let mut dice = Dice::new(49);
    for (home, store, _dir) in homes() {
        for (what, harm) in harms() {
            for object in HEADER_OBJECTS {
                harm(&*store, object, &mut dice);
                let what = format!("{home}, {object}: {what}");
                assert!(read_header(&*store).is_ok(), "{what}");
                let mut volume = open(&store, "first").unwrap_or_else(|error| {
                    panic!("{what}: {error}");
                });
                volume.reserve(1).expect("room");
                volume.commit().expect("committed");
                volume.finish().expect("committed");
                let said = volume.damaged();
                assert!(said.len() == 1 && said[0].object == object, "{what}: {said:?}");
                let quiet = &mut |_: u64, _: u64| {};
                volume.verify(quiet).unwrap_or_else(|error| panic!("{what}: {error}"));
                drop(volume);
                let [one, two] = copies(&store);
                assert!(one == two && one.len() == HEADER_BYTES, "{what}");
                let mut again = open(&store, "first").expect("whole");
                assert_eq!(again.damaged(), [], "{what}");
                again.finish().expect("committed");
            }
        }
    }
}

/// Whatever a crash leaves of a change: a copy with it makes it count.
#[test]
fn a_change_counts_once_one_copy_has_it() {
    let store = tree();
    add_passphrase(&*store, &secret("first"), &secret("other"), KdfParams::TEST).expect("room");
    let before = copies(&store);
    remove_passphrase(&*store, &secret("other")).expect("removed");
    change_passphrase(&*store, &secret("first"), &secret("new"), KdfParams::TEST).expect("right");
    let after = copies(&store);
    assert!(before[0] == before[1] && after[0] == after[1] && before != after);
    for newer in [0, 1] {
        put(&*store, HEADER_OBJECTS[newer], &after[0]);
        put(&*store, HEADER_OBJECTS[1 - newer], &before[0]);
        for gone in ["first", "other"] {
            let refused = open(&store, gone).err();
            assert!(matches!(refused, Some(Error::WrongPassphrase)), "{gone}: {refused:?}");
            let known = secret(gone);
            let added = add_passphrase(&*store, &known, &secret("third"), KdfParams::TEST);
            assert!(matches!(added, Err(Error::WrongPassphrase)), "{gone}");
        }
        let mut volume = open(&store, "new").expect("it counts");
        assert_eq!(volume.damaged(), [], "a crash is no damage");
        volume.finish().expect("committed");
        assert_eq!(copies(&store), after);
    }
}

/// Without a checksum nobody can tell this damage from a wrong passphrase.
#[test]
fn a_damaged_slot_of_somebody_else_is_healed_too() {
    let store = tree();
    add_passphrase(&*store, &secret("first"), &secret("other"), KdfParams::TEST).expect("room");
    let whole = copies(&store);
    for object in HEADER_OBJECTS {
        flip(&*store, object, SLOTS + SLOT + SALT);
        let mut volume = open(&store, "first").expect("by its own slot");
        assert_eq!(volume.damaged().len(), 1);
        volume.finish().expect("committed");
        assert_eq!(copies(&store), whole);
        drop(open(&store, "other").expect("its slot is as it was"));
    }
    // Both copies are damaged: the passphrases still open them, and nothing is written over.
    HEADER_OBJECTS.into_iter().for_each(|object| flip(&*store, object, SLOTS + SLOT + SALT));
    let damaged = copies(&store);
    let mut volume = open(&store, "first").expect("by its own slot");
    assert_eq!(volume.damaged().len(), 2);
    volume.finish().expect("committed");
    assert_eq!(copies(&store), damaged);
    drop(volume);
    let refused = open(&store, "other").err();
    assert!(matches!(refused, Some(Error::Tampered(_))), "damage, not a wrong one: {refused:?}");
}

#[test]
fn the_copy_of_another_volume_or_an_older_one_does_not_count() {
    let (store, other) = (tree(), tree());
    let whole = copies(&store);
    put(&*store, HEADER_OBJECTS[1], &bytes(&*other, HEADER_OBJECTS[0]));
    let mut volume = open(&store, "first").expect("the first copy is its own");
    volume.finish().expect("committed");
    assert_eq!(volume.damaged().len(), 1);
    assert_eq!(copies(&store), whole);
    drop(volume);
    // As the first copy it is what the place says it is, and nothing of it opens.
    put(&*store, HEADER_OBJECTS[0], &bytes(&*other, HEADER_OBJECTS[0]));
    assert!(matches!(open(&store, "first").err(), Some(Error::Tampered(_))));
}

/// What this session opened still has the slot that another process emptied meanwhile.
#[test]
fn a_new_limit_brings_no_removed_passphrase_back() {
    for new in [
        NewVolume::new(SeenBy::Storage, BLOCK, BYTES, KdfParams::TEST),
        NewVolume::on_windows(BLOCK, BYTES, true, KdfParams::TEST),
    ] {
        let store = made(new, Arc::new(MemoryStore::new()));
        add_passphrase(&*store, &secret("first"), &secret("second"), KdfParams::TEST)
            .expect("room");
        let mut volume = open(&store, "first").expect("it opens");
        remove_passphrase(&*store, &secret("second")).expect("removed");
        volume.set_capacity(2 * BYTES / BLOCK as u64).expect("another limit");
        volume.finish().expect("committed");
        drop(volume);
        assert!(matches!(open(&store, "second"), Err(Error::WrongPassphrase)));
        let volume = open(&store, "first").expect("it opens");
        assert_eq!(volume.capacity_blocks(), 2 * BYTES / BLOCK as u64);
        assert_eq!(volume.damaged(), []);
    }
}

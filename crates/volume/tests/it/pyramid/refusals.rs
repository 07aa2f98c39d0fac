//! What a volume on the pyramid engine refuses.

use super::{BYTES, create, create_options, open, options, passphrase, read, write};
use oblivio_crypto::KdfParams;
use oblivio_store::{Held, MemoryStore, ReadAt, Slots, WriteAt};
use oblivio_testkit::Dice;
use oblivio_volume::{BlockSpace, Error, MemoryKeeper, OpenOptions, Pace, Volume};
use std::sync::Arc;
use std::time::Duration;

fn refused(open: OpenOptions) -> (Error, usize) {
    let store = Arc::new(MemoryStore::new());
    let made = Volume::create_pyramid(
        store.clone(),
        &passphrase(),
        KdfParams::TEST,
        create_options(),
        open,
    );
    (made.map(drop).expect_err("refused"), store.list().expect("memory").len())
}

#[test]
fn what_it_does_not_have_is_refused_before_anything_is_stored() {
    let pace = Some(Pace { interval: Duration::from_millis(10), batch: 4 });
    let cases = [
        (OpenOptions { pad: true, ..options(1) }, "--pad"),
        (OpenOptions { pace, ..options(1) }, "--pace"),
        (OpenOptions { memory_bytes: 64 << 10, ..options(1) }, "--memory"),
    ];
    for (open, why) in cases {
        let (error, stored) = refused(open);
        assert!(error.to_string().contains(why), "{error}");
        assert_eq!(stored, 0, "{why}: nothing may be stored");
    }
}

#[test]
fn its_size_is_for_ever() {
    let mut volume = create(Arc::new(MemoryStore::new()), 1);
    assert!(!volume.can_resize());
    assert!(matches!(volume.set_capacity(9), Err(Error::Invalid(_))));
    let capacity = volume.capacity_blocks();
    volume.reserve(capacity).expect("all of it");
    assert!(matches!(volume.reserve(capacity + 1), Err(Error::Full(_))));
    assert!(volume.access(vec![read(capacity)]).is_err());
    assert!(volume.access(vec![write(capacity - 1, 1)]).is_ok());
}

#[test]
fn an_older_state_and_a_shorter_journal_are_refused() {
    let (store, keeper) = (Arc::new(MemoryStore::new()), MemoryKeeper::default());
    let with = |keeper: &MemoryKeeper| OpenOptions {
        keeper: Some(Box::new(keeper.clone())),
        ..options(4)
    };
    let made = Volume::create_pyramid(
        store.clone(),
        &passphrase(),
        KdfParams::TEST,
        create_options(),
        with(&keeper),
    );
    let mut volume = made.expect("an empty store");
    volume.access(vec![write(1, 1)]).expect("memory");
    volume.commit().expect("memory");
    let shorter = store.snapshot();
    volume.access(vec![write(2, 2)]).expect("memory");
    volume.commit().expect("memory");
    let before = keeper.twin();
    let longer = store.snapshot();
    volume.finish().expect("memory");
    drop(volume);
    let open = |store: MemoryStore, keeper: &MemoryKeeper| {
        Volume::open(Arc::new(store), &passphrase(), with(keeper)).map(drop)
    };
    assert!(matches!(open(shorter.snapshot(), &before), Err(Error::RolledBack(_))));
    assert!(open(longer.snapshot(), &before.twin()).is_ok());
    assert!(matches!(open(longer.snapshot(), &keeper), Err(Error::RolledBack(_))));
    assert!(open(store.snapshot(), &keeper).is_ok());
}

/// A table of this length is read at the next merge at the latest, and by `verify` at once.
#[test]
fn every_changed_slot_is_found() {
    let store = Arc::new(MemoryStore::new());
    let mut volume = create(store.clone(), 6);
    for id in 0..300 {
        volume.access(vec![write(id, id as u8)]).expect("memory");
    }
    volume.finish().expect("memory");
    drop(volume);
    let mut dice = Dice::new(3);
    let tables = store.list().expect("memory").into_iter();
    let mut found = 0;
    for (object, len) in tables.filter(|(name, _)| name.starts_with("tables-")) {
        for _ in 0..20 {
            let (left, offset) = (store.snapshot(), dice.below(len));
            let mut byte = [0];
            left.read(&mut [ReadAt { object: &object, offset, buf: &mut byte }]).expect("in it");
            left.write(&[WriteAt::new(&object, offset, &[byte[0] ^ 4])]).expect("memory");
            let mut volume = open(Arc::new(left), 7).expect("no table was read");
            match volume.verify(&mut |_, _| {}) {
                Err(Error::Tampered(_)) => found += 1,
                Err(error) => panic!("{error}"),
                // A place of a table that is gone, or the rest of a page.
                Ok(_) => {
                    let all = volume.access((0..300).map(read).collect()).expect("sound");
                    let right = |(id, block): (usize, &Option<Vec<u8>>)| {
                        block.as_deref() == Some(&[id as u8; BYTES][..])
                    };
                    assert!(all.iter().enumerate().all(right), "{object} {offset}");
                }
            }
        }
    }
    assert!(found >= 20, "{found}");
}

//! A checkpoint whose objects never all arrived is passed over. What was shown since the one before
//! is then shown again, all of it and nothing else.

use super::traces::paths;
use super::whole::Whole;
use super::{BLOCKS, contents, create, fill, open, read, write};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::BlockSpace;
use std::sync::Arc;

/// A volume that ended well.
fn ended() -> MemoryStore {
    let disk = Arc::new(MemoryStore::new());
    let mut volume = create(disk.clone(), true, 1);
    fill(&mut volume, &mut SplitMix64::new(4), 400);
    volume.finish().expect("memory");
    drop(volume);
    disk.snapshot()
}

/// Reads one block at a time, some written, until a window's checkpoint is on its way and a few
/// more batches were shown. The computer is lost then. Gives the batches, what was shown, and what
/// arrives.
fn lost(
    disk: MemoryStore,
    more: usize,
    arrive: Option<u64>,
) -> (usize, Vec<StoreEvent>, MemoryStore) {
    let store = Arc::new(RecordStore::new(Whole::new(disk, u64::MAX)));
    let mut volume = open(store.clone(), 2).expect("sound");
    store.take();
    let mut dice = SplitMix64::new(more as u64);
    let mut events = Vec::new();
    let is_part =
        |event: &StoreEvent| event.op == CallKind::Write && event.object.starts_with("p-");
    let (mut seen_part, mut batches) = (false, 0);
    let mut left = more;
    while left > 0 {
        volume.access(vec![read(dice.below(BLOCKS))]).expect("sound");
        left -= usize::from(seen_part);
        batches += 1;
        let some = store.take();
        seen_part |= some.iter().any(is_part);
        events.extend(some);
    }
    // Its intents, and the checkpoint's entry, arrive: the objects do not.
    volume.idle().expect("acknowledged");
    events.extend(store.take());
    drop(volume);
    let whole = store.inner();
    let left = match arrive {
        None => whole.none_later(),
        Some(seed) => whole.later(seed),
    };
    (batches, events, left)
}

#[test]
fn what_a_checkpoint_that_was_passed_over_showed_is_shown_again() {
    let disk = ended();
    // None of its objects arrive, then some of them.
    for (more, arrive) in [(1, None), (5, None), (7, Some(3)), (11, Some(8)), (14, Some(11))] {
        let (batches, events, left) = lost(disk.snapshot(), more, arrive);
        let shown = paths(&events);
        // Some batches may be in memory as a whole.
        assert!(shown.len() > batches / 2, "{} calls of {batches}", shown.len());
        let next = Arc::new(RecordStore::new(left));
        let mut volume = open(next.clone(), 3).expect("sound");
        let again = paths(&next.take());
        assert!(again.starts_with(&shown), "{more}, {arrive:?}: the same paths, in order");
        // The windows that these accesses make due, and no drawn path.
        assert!(again.len() <= shown.len() + 1, "{} after {}", again.len(), shown.len());
        assert_eq!(volume.info().expect("memory").replayed as usize, batches);
        let found = contents(&mut volume);
        volume.defer(vec![write(3, 9)]).expect("memory");
        volume.finish().expect("memory");
        drop(volume);
        let mut volume = open(next, 4).expect("sound");
        let mut model = found;
        model[3] = Some(9);
        assert_eq!(contents(&mut volume), model);
        volume.verify(&mut |_, _| {}).expect("sound");
    }
}

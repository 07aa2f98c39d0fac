//! Passphrases of lanes: one that opens anything else is refused, and a lane that its own cannot
//! open any more is named.

use super::lanes_open::{AT_ONCE, hidden, made, open, with_lane};
use super::model::BLOCK;
use super::traces::writes;
use super::{MemoryKeeper, create, passphrase};
use oblivio_crypto::Passphrase;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, MemoryStore, ReadAt, RecordStore, Slots, WriteAt};
use oblivio_testkit::Dice;
use oblivio_volume::sequential::SequentialOptions;
use oblivio_volume::{BlockSpace, EngineVolume, Error, LaneParameters};
use std::sync::Arc;

/// A lane whose passphrase opens something else too would be opened with that.
#[test]
fn a_lane_gets_no_passphrase_that_opens_the_volume_or_another_lane() {
    let options = with_lane(&mut Dice::new(3));
    let lanes = options.lanes.map(|lanes| LaneParameters { count: 2, ..lanes });
    let (computer, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    let options = SequentialOptions { lanes, ..options };
    let mut volume = create(store.clone(), options, &computer).expect("a volume");
    let [first, second] = ["the first lane's", "the second lane's"].map(Passphrase::new);
    let refused = |given| {
        let error = Result::expect_err(given, "it opens something else");
        assert!(matches!(error, Error::Invalid(_)), "{error}");
    };
    refused(volume.give_lane(0, &passphrase()));
    volume.give_lane(0, &first).expect("it opens nothing yet");
    // No state has it yet.
    refused(volume.give_lane(1, &first));
    volume.give_lane(1, &second).expect("it opens nothing yet");
    volume.give_lane(1, &second).expect("it is this lane's own");
    volume.finish().expect("it ends well");
    drop(volume);
    // All lanes are shut. What the passphrases open stands in the states alone.
    let mut volume = open(&store, &passphrase(), &computer).expect("it opens");
    refused(volume.give_lane(0, &second));
    refused(volume.give_lane(1, &first));
    volume.give_lane(0, &first).expect("it is made anew with its own");
}

/// Its passphrase is right: what became of the lane is said, and the volume goes on as ever.
fn expect_gone(store: MemoryStore, computer: &MemoryKeeper, words: &str) {
    let twin = (Arc::new(store.snapshot()), computer.twin());
    let store = Arc::new(RecordStore::new(store));
    let mut volume = open(&store, &hidden(), computer).expect("the volume opens");
    assert!(volume.lane(0, AT_ONCE).is_none());
    let said = format!("{:?}", volume.damaged());
    let right = "the passphrase is right, but the lane cannot be opened any more";
    assert!(said.contains(right) && said.contains(words), "{said}");
    volume.finish().expect("it ends well");
    let other = Arc::new(RecordStore::new(twin.0.snapshot()));
    let mut volume = open(&other, &passphrase(), &twin.1).expect("it opens");
    volume.finish().expect("it ends well");
    assert_eq!(writes(store.take()), writes(other.take()));
}

#[test]
fn who_opens_a_lane_beyond_its_grace_in_syncs_is_told_so() {
    let options = with_lane(&mut Dice::new(4));
    let (computer, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    made(store.clone(), options, &computer);
    let mut volume = open(&store, &hidden(), &computer).expect("it opens");
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; BLOCK]) };
    let mut lane = volume.lane(0, AT_ONCE).expect("it is open");
    // More than goes along: whatever the last turns had, the log has some of it.
    for _ in 0..9 {
        lane.space.access_each((0..20).map(write).collect()).expect("they wait");
        volume.access(vec![write(1)]).expect("it works");
        volume.commit().expect("it works");
    }
    volume.finish().expect("it ends well");
    drop((lane, volume));
    let mut volume = open(&store, &passphrase(), &computer).expect("it opens");
    let log = store.len("lane-1-log").expect("memory").expect("it exists");
    for round in 0..log / 4096 {
        volume.access(vec![write(round % 20)]).expect("it works");
        volume.commit().expect("it works");
    }
    drop(volume);
    expect_gone(store.snapshot(), &computer, "synced without it more often than its grace");
}

#[test]
fn who_opens_a_lane_without_any_state_is_told_so() {
    let options = with_lane(&mut Dice::new(5));
    let (computer, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    made(store.clone(), options, &computer);
    let object = "lane-1-state";
    let mut all = vec![0; store.len(object).expect("memory").expect("it exists") as usize];
    store.read(&mut [ReadAt { object, offset: 0, buf: &mut all }]).expect("memory");
    // The slots take less than a page, and the last byte of a page is never one of theirs.
    all.iter_mut().skip(4095).step_by(4096).for_each(|byte| *byte ^= 1);
    store.write(&[WriteAt::new(object, 0, &all)]).expect("memory");
    expect_gone(store.snapshot(), &computer, "none of its states is what was written");
}

//! Cover: a quantum at each of its times and none else, whatever is done in a lane; what waits
//! there goes along.

use super::traces::writes;
use super::{MemoryKeeper, any_options, create, on, passphrase};
use oblivio_crypto::Passphrase;
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::CallKind;
use oblivio_store::{MemoryStore, RecordStore};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use oblivio_volume::sequential::{SequentialOptions, SequentialVolume};
use oblivio_volume::{
    BlockSpace, Clock, EngineVolume, Environment, LaneParameters, LaneWait, OpenOptions,
    SimulatedClock,
};
use std::sync::Arc;
use std::time::Duration;

const EVERY: Duration = Duration::from_secs(10);
const AT_ONCE: LaneWait = LaneWait { time: Duration::ZERO, memory_bytes: 1 << 20 };

fn hidden() -> Passphrase {
    Passphrase::new("battery staple")
}

/// A volume with a lane that is durable, and its store.
fn made(dice: &mut Dice, computer: &MemoryKeeper) -> Arc<RecordStore<MemoryStore>> {
    let store = Arc::new(RecordStore::new(MemoryStore::new()));
    let mut options = any_options(dice);
    options.engine.sector_bytes = options.engine.sector_bytes.max(256);
    options.engine.bucket_blocks += 2;
    options.engine.blocks += 60;
    let turn = options.engine.queue_blocks().div_ceil(options.quantum_writes) + 2;
    let lanes = Some(LaneParameters { count: 1, share: 2, grace: 2, guess: 3 });
    let options = SequentialOptions { lanes, fill: false, log_quanta: 3 * turn, ..options };
    let mut volume = create(store.clone(), options, computer).expect("a volume");
    volume.give_lane(0, &hidden()).expect("it has a lane");
    volume.finish().expect("it ends well");
    store
}

fn open(
    store: &Arc<RecordStore<MemoryStore>>,
    clock: &Arc<SimulatedClock>,
    computer: &MemoryKeeper,
) -> SequentialVolume {
    let environment = Environment { clock: clock.clone(), ..Environment::default() };
    let options = OpenOptions { cover: Some(EVERY), environment, ..on(computer) };
    SequentialVolume::open(store.clone(), &hidden(), options).expect("it opens")
}

/// The syncs of a session with cover, in which the lane has this many writes.
fn session(seed: u64, lane_writes: u64) -> Vec<(CallKind, Arc<str>, u64, u64)> {
    let (mut dice, computer) = (Dice::new(seed), MemoryKeeper::default());
    let store = made(&mut dice, &computer);
    let clock = Arc::new(SimulatedClock::default());
    let mut volume = open(&store, &clock, &computer);
    let mut lane = volume.lane(0, AT_ONCE).expect("it is open");
    let blocks = lane.space.capacity_blocks();
    let len = lane.space.block_bytes();
    let content = |block: u64| vec![block as u8; len];
    let written = lane_writes.min(blocks);
    let ops = (0..written)
        .map(|block| BlockOp { id: BlockId(block), action: Action::Write(content(block)) });
    lane.space.access_each(ops.collect()).expect("there is room");
    let accepted = lane.sync.accepted();
    writes(store.take());
    let mut left = volume.idle().expect("a tick").expect("there is cover");
    let mut ticks = 0;
    // A bucket of the lane has room for fewer than a quantum in the worst case.
    for _ in 0..600 {
        assert!(left > Duration::ZERO && left <= EVERY, "{left:?}");
        let nap = Duration::from_millis(1 + dice.below(10_000));
        clock.sleep(nap.min(left));
        ticks += u64::from(nap >= left);
        left = volume.idle().expect("a tick").expect("there is cover");
    }
    assert!(lane.sync.wait(accepted, Duration::ZERO).is_ok(), "seed {seed}: it is carried");
    let shown = writes(store.take());
    let log = shown.iter().filter(|call| call.0 == CallKind::Write && &*call.1 == "log");
    assert!(log.count() as u64 >= ticks.saturating_sub(1), "seed {seed}: {ticks} ticks");
    drop((lane, volume));
    // A crash.
    let mut volume = SequentialVolume::open(store, &hidden(), on(&computer)).expect("it opens");
    let mut lane = volume.lane(0, AT_ONCE).expect("it is open");
    for block in 0..written {
        let read = BlockOp { id: BlockId(block), action: Action::Read };
        let found = lane.space.access_each(vec![read]).expect("it is read");
        assert_eq!(found, [Ok(Some(content(block)))], "seed {seed}, block {block}");
    }
    shown
}

#[test]
fn cover_is_written_by_the_clock_alone() {
    for seed in 1..1 + scaled(10) {
        let (unused, used) = (session(seed, 0), session(seed, 20));
        assert_eq!(unused, used, "seed {seed}");
    }
}

/// No cover, no write.
#[test]
fn without_cover_nothing_is_written() {
    let (mut dice, computer) = (Dice::new(1), MemoryKeeper::default());
    let store = made(&mut dice, &computer);
    let mut volume =
        SequentialVolume::open(store.clone(), &passphrase(), on(&computer)).expect("it opens");
    writes(store.take());
    assert_eq!(volume.idle().expect("nothing to do"), None);
    assert!(writes(store.take()).is_empty());
}

//! Scrubs: everything that is stored, in parts, in an order and at times that tell nothing.

use super::common::disks::sequential;
use super::damage::world::{SAMPLE, Scale, World, content, passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{
    AnyStore, Layer, MemoryStore, Patience, RecordStore, Result, RetryStore, StoreAnswer,
    StoreCall, StoreError, layered,
};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_volume::{
    BlockSpace, ClosedVolume, DamagedPlace, Environment, Inspected, Inspection, MemoryKeeper,
    OpenOptions, QuietScrub, Reached, Volume, fuzzing,
};
use std::ops::ControlFlow;
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

/// Enough buckets for many parts.
const LARGE: Scale = Scale { blocks: 880, ..SAMPLE };

type Recorded = Arc<RecordStore<Arc<MemoryStore>>>;

fn recorded(disk: MemoryStore) -> Recorded {
    Arc::new(RecordStore::new(Arc::new(disk)))
}

/// A part from here on, of about as many bytes: where the next one begins, what was found, and the
/// damaged places.
fn part(
    volume: &mut Volume,
    from: u64,
    (at_once, most, amid_requests): (usize, u64, bool),
) -> (Option<u64>, Inspected, Vec<DamagedPlace>) {
    let (mut next, mut places, mut left) = (None, Vec::new(), most);
    let reached = &mut |now: Reached| {
        assert!(now.done <= now.total);
        assert_eq!(now.next.is_none(), now.done == now.total);
        next = now.next;
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let damaged = &mut |place| places.push(place);
    let inspection = Inspection { from, at_once, amid_requests, reached, damaged };
    let found = volume.inspect_part(inspection).expect("it reads");
    assert_eq!(found.damaged, places.len() as u64);
    (next, found, places)
}

/// The buckets that were read, as places.
fn buckets(events: &[StoreEvent]) -> Vec<(String, u64)> {
    let is_one =
        |event: &&StoreEvent| event.op == CallKind::Read && event.object.starts_with("slab");
    events.iter().filter(is_one).map(|event| (event.object.to_string(), event.offset)).collect()
}

/// Sessions that end anywhere, one after the other, read each place once.
#[test]
fn a_scrub_that_stops_reads_each_place_once() {
    let world = World::make(LARGE);
    let store = recorded(world.disk.snapshot());
    let mut volume = world.open(Arc::clone(&store)).expect("sound");
    store.take();
    volume.verify(&mut |_, _| {}).expect("sound");
    let all = buckets(&store.take());
    let mut dice = Dice::new(seed(1));
    for round in 0..scaled(4) {
        let (mut from, mut read, mut sessions) = (0, Vec::new(), 0);
        loop {
            volume.finish().expect("memory");
            let known = volume.known();
            drop(volume);
            let keeper = Some(Box::new(MemoryKeeper::knowing(known)) as _);
            let options =
                OpenOptions { keeper, memory_bytes: LARGE.memory_bytes, ..OpenOptions::default() };
            volume = Volume::open(Arc::clone(&store), &passphrase(), options).expect("sound");
            store.take();
            let size = (1 + dice.index(16_000), 1 + dice.below(20), false);
            let (next, found, _) = part(&mut volume, from, size);
            let part = buckets(&store.take());
            assert_eq!((found.count, found.damaged), (part.len() as u64, 0));
            read.extend(part);
            sessions += 1;
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        assert!(sessions > 3, "it stopped");
        assert_eq!(read, all, "round {round}");
    }
}

/// Whatever is done between its steps. What is damaged is found in one round, if nothing wrote it
/// anew.
#[test]
fn amid_requests_only_what_is_damaged_is_called_so() {
    for number in 0..scaled(6) {
        let mut dice = Dice::new(seed(number));
        let world = World::make(LARGE);
        let disk = Arc::new(world.disk.snapshot());
        let mut volume = world.open(Arc::clone(&disk)).expect("sound");
        let size = (2_000, 1, true);
        let (mut from, mut rounds) = (0, 0);
        while rounds < 2 {
            let count = dice.below(4);
            let op = |dice: &mut Dice| {
                let id = dice.below(LARGE.blocks);
                let action = match dice.below(3) {
                    0 => Action::Write(content(id, 99, LARGE.block_bytes)),
                    _ => Action::Read,
                };
                BlockOp { id: BlockId(id), action }
            };
            let ops = (0..count).map(|_| op(&mut dice)).collect();
            volume.access_each(ops).expect("sound");
            match dice.below(12) {
                0 => volume.discard(&[dice.below(LARGE.blocks), 3, 4]).expect("memory"),
                1 => volume.commit().expect("memory"),
                2 => drop(volume.idle().expect("memory")),
                _ => {}
            }
            let (next, _, places) = part(&mut volume, from, size);
            assert!(places.is_empty(), "seed {number}: {places:?}");
            from = next.unwrap_or(0);
            rounds += u64::from(next.is_none());
        }
        // The end writes what is in memory elsewhere.
        volume.finish().expect("memory");
        let parts = fuzzing::places(&mut volume);
        let (_, object, bytes) = &parts[dice.index(parts.len())];
        let at = bytes.start + dice.below(bytes.end - bytes.start);
        disk.corrupt(object, at, |byte| *byte ^= 4).expect("in range");
        let mut found = Vec::new();
        for _ in 0..2 {
            let (next, _, places) = part(&mut volume, from, size);
            found.extend(places);
            from = next.unwrap_or(0);
        }
        while from != 0 {
            let (next, _, places) = part(&mut volume, from, size);
            found.extend(places);
            from = next.unwrap_or(0);
        }
        let is_it = |place: &DamagedPlace| place.object == *object && place.bytes == *bytes;
        assert!(found.iter().all(is_it) && found.len() == 1, "seed {number}: {found:?}");
    }
}

/// What a user did, and when a scrub read what.
struct Seen {
    /// Times at which the store was asked for a user's work.
    asked: Vec<Duration>,
    /// Each step of the scrub, by its time, and where the next one begins.
    steps: Vec<(Duration, u64)>,
    /// Bytes read by each.
    bytes: Vec<u64>,
}

/// As many operations at the same times, on blocks that `pick` chooses. With `asks` also requests
/// that need nothing of the store.
fn used(world: &World, rate: u64, mut pick: impl FnMut(u64) -> u64, asks: bool) -> Seen {
    let store = recorded(world.disk.snapshot());
    let environment = Environment::from_seed(3);
    let clock = Arc::clone(&environment.clock);
    let options = OpenOptions {
        keeper: Some(Box::new(MemoryKeeper::knowing(world.known))),
        memory_bytes: LARGE.memory_bytes,
        environment,
        ..OpenOptions::default()
    };
    let mut volume = Volume::open(Arc::clone(&store), &passphrase(), options).expect("sound");
    let steps = Arc::new(Mutex::new(Vec::new()));
    let (noted, now) = (Arc::clone(&steps), Arc::clone(&clock));
    let counted = Arc::clone(&store);
    let scrub = QuietScrub {
        rate,
        from: 0,
        asked: Box::new(move || counted.calls()),
        damaged: Box::new(|place| panic!("{place}")),
        note: Box::new(move |next| noted.lock().unwrap().push((now.now(), next))),
    };
    volume.scrub_when_quiet(scrub, Arc::clone(&clock)).expect("a tree");
    let (mut asked, mut bytes) = (Vec::new(), Vec::new());
    let mut at = Duration::ZERO;
    for moment in 0..400u64 {
        if moment % 40 < 3 {
            let ops = (0..5).map(|_| BlockOp { id: BlockId(pick(moment)), action: Action::Read });
            volume.access(ops.collect()).expect("sound");
            asked.push(clock.now());
        }
        if asks {
            let _ = (volume.exists(moment), volume.wants_commit());
            volume.set_root(&[moment as u8; 8]);
        }
        store.take();
        while at <= clock.now() {
            let rest = volume.scrub().expect("memory").expect("it goes on");
            assert!(!rest.is_zero(), "it rests");
            at = clock.now() + rest;
        }
        let read = store.take();
        let counts = |event: &&StoreEvent| !event.object.starts_with("header");
        let sum: u64 = read.iter().filter(counts).map(|event| event.len).sum();
        bytes.extend((sum > 0).then_some(sum));
        clock.sleep(Duration::from_millis(100));
    }
    let steps = std::mem::take(&mut *steps.lock().unwrap());
    Seen { asked, steps, bytes }
}

/// Two users do other things with the same public numbers: the same steps come at the same times.
#[test]
fn when_a_scrub_reads_follows_from_what_the_store_was_asked() {
    let world = World::make(LARGE);
    const RATE: u64 = 600_000;
    let one = used(&world, RATE, |_| 7, false);
    let mut dice = Dice::new(seed(11));
    let other = used(&world, RATE, |_| dice.below(LARGE.blocks), true);
    assert_eq!((one.asked, &one.steps), (other.asked.clone(), &other.steps));
    assert!(
        one.steps.len() > 3 && one.steps.iter().any(|step| step.1 == 0),
        "a round: {:?}",
        one.steps
    );
    let quiet = Duration::from_secs(1);
    for (time, _) in &one.steps {
        let near = |asked: &Duration| asked <= time && *time < *asked + quiet;
        assert!(!other.asked.iter().any(near), "a step at {time:?} came too soon");
    }
    // The pauses follow from what was read.
    for (pair, bytes) in one.steps.windows(2).zip(&one.bytes) {
        let least = Duration::from_secs_f64(*bytes as f64 / RATE as f64 / 2.0);
        assert!(pair[1].0 - pair[0].0 >= least, "{pair:?}, {bytes} bytes");
    }
}

/// Blocks of a sequential volume, which nobody sees read.
#[test]
fn a_sequential_volume_is_scrubbed_in_parts_too() {
    let store = Arc::new(sequential(512, 300));
    let mut volume = Volume::open(store, &passphrase(), OpenOptions::default()).expect("a volume");
    let write = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![id as u8; 512]) };
    volume.access((0..300).map(write).collect()).expect("room");
    volume.finish().expect("memory");
    for amid_requests in [false, true] {
        let (mut from, mut count, mut parts) = (0, 0, 0);
        loop {
            let (next, found, places) = part(&mut volume, from, (7 * 512, 3, amid_requests));
            assert_eq!(places, []);
            (count, parts) = (count + found.count, parts + 1);
            match next {
                Some(next) => from = next,
                None => break,
            }
        }
        // Amid requests what is small is a part of its own.
        let steps = volume.capacity_blocks().div_ceil(7) + u64::from(amid_requests);
        let expected = steps.div_ceil(3);
        assert_eq!((count, parts), (volume.capacity_blocks(), expected));
    }
}

/// In whole files there is nothing to read between requests; and a place beyond the end is none.
#[test]
fn a_place_beyond_the_end_leaves_what_is_small() {
    let world = World::make(LARGE);
    let mut volume = world.open(AnyStore::from(Arc::new(world.disk.snapshot()))).expect("sound");
    let (next, found, places) = part(&mut volume, u64::MAX, (1_000, 9, false));
    assert_eq!((next, found.count, places), (None, 0, Vec::new()));
}

/// What is small is a part of its own amid requests: it may be much, and nothing is put to it.
#[test]
fn what_is_small_is_the_last_part_and_is_counted() {
    let world = World::make(LARGE);
    let store = recorded(world.disk.snapshot());
    let mut volume = world.open(Arc::clone(&store)).expect("sound");
    let (mut from, mut parts) = (0, Vec::new());
    while parts.last() != Some(&None) {
        store.take();
        let (next, found, _) = part(&mut volume, from, (16_000, 1, true));
        let events = store.take();
        let read = events.iter().filter(|event| event.op == CallKind::Read);
        let (slabs, small): (Vec<_>, Vec<_>) =
            read.partition(|event| event.object.starts_with("slab"));
        assert_eq!(next.is_none(), slabs.is_empty(), "nothing else with it");
        assert_eq!(next.is_none(), !small.is_empty(), "it comes last");
        let states = small.iter().filter(|event| !event.object.starts_with("header"));
        let bytes: u64 = slabs.iter().copied().chain(states.copied()).map(|it| it.len).sum();
        // Of a slot of a page only the record is read.
        assert!(found.bytes >= bytes && found.bytes <= bytes + 4 * 4096, "{bytes}: {found:?}");
        parts.push(next);
        from = next.unwrap_or(0);
    }
    assert!(parts.len() > 3, "{parts:?}");
}

/// Whatever the rate and however little is stored, a round ends with a rest.
#[test]
fn a_scrub_of_nothing_rests() {
    let store = Arc::new(MemoryStore::new());
    let create = oblivio_volume::CreateOptions {
        block_bytes: 512,
        capacity_bytes: 1 << 20,
        kdf: oblivio_crypto::KdfParams::TEST,
    };
    let tree = oblivio_volume::tree::TreeVolume::create(
        store,
        &passphrase(),
        create,
        OpenOptions::default(),
    )
    .expect("an empty store");
    let clock = Environment::from_seed(1).clock;
    for mut volume in [Volume::from(tree), empty_sequential()] {
        let (rounds, begun) = (Arc::new(Mutex::new(0)), clock.now());
        let counted = Arc::clone(&rounds);
        let scrub = QuietScrub {
            rate: u64::MAX,
            from: u64::MAX,
            asked: Box::new(|| 0),
            damaged: Box::new(|place| panic!("{place}")),
            note: Box::new(move |next| *counted.lock().unwrap() += u64::from(next == 0)),
        };
        volume.scrub_when_quiet(scrub, Arc::clone(&clock)).expect("it can");
        let mut calls = 0;
        while clock.now() - begun < Duration::from_secs(60) {
            let rest = volume.scrub().expect("memory").expect("it goes on");
            clock.sleep(rest.max(Duration::from_nanos(1)));
            calls += 1;
            assert!(calls < 10_000, "it spins");
        }
        let rounds = *rounds.lock().unwrap();
        assert!((10..=60).contains(&rounds), "{rounds} rounds a minute");
    }
}

fn empty_sequential() -> Volume {
    let store = Arc::new(sequential(512, 50));
    Volume::open(store, &passphrase(), OpenOptions::default()).expect("a volume")
}

/// A disk that fails to read some objects.
struct Unreadable {
    disk: Arc<MemoryStore>,
    bad: Mutex<Vec<&'static str>>,
}

impl Layer for Unreadable {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if let StoreCall::Read(reads) = call {
            let bad = self.bad.lock().expect("one thread");
            if let Some(read) = reads.iter().find(|read| bad.contains(&read.object)) {
                let eio = std::io::Error::from_raw_os_error(5);
                return Err(StoreError::io(read.object, eio));
            }
        }
        call.on(&*self.disk)
    }
}

/// In a mount a layer outlasts outages. Of something small one copy cannot be read, or both: that
/// is damage, is named, and ends the round as ever.
#[test]
fn what_is_small_and_unreadable_does_not_hold_a_scrub() {
    let tree = World::make(SAMPLE).disk;
    let pairs: [(&MemoryStore, [&str; 2]); 5] = [
        (&tree, ["header", "header-2"]),
        (&tree, ["commit", "commit-2"]),
        (&tree, ["state-0", "state-1"]),
        (&sequential(512, 50), ["header", "header-2"]),
        (&sequential(512, 50), ["state", "state-2"]),
    ];
    for (disk, [one, two]) in pairs {
        for bad in [vec![one], vec![two], vec![one, two]] {
            let disk = Arc::new(disk.snapshot());
            let store = Arc::new(Unreadable { disk, bad: Mutex::default() });
            let patience = Patience::default();
            let closed = ClosedVolume::read(Arc::clone(&store)).expect("a volume");
            let over = |store: AnyStore| {
                let patience = patience.clone();
                layered!(store, below => RetryStore::new(below, patience, Box::new(|_| {})))
            };
            let closed = closed.over(|store| Ok::<_, ()>(over(store))).expect("a layer");
            let mut volume = closed.open(&passphrase(), OpenOptions::default()).expect("sound");
            store.bad.lock().expect("one thread").clone_from(&bad);
            let (ended, waits) = mpsc::channel::<()>();
            let watch = thread::spawn(move || {
                let late = waits.recv_timeout(Duration::from_secs(60)).is_err();
                patience.end();
                late
            });
            let (next, _, places) = part(&mut volume, u64::MAX, (1_000, 9, true));
            ended.send(()).expect("it waits");
            assert!(!watch.join().expect("it ends"), "{bad:?}: it waits for ever");
            assert_eq!(next, None);
            let named = |place: &DamagedPlace| bad.contains(&&*place.object);
            assert!(places.iter().any(named), "{bad:?}: {places:?}");
            assert!(places.iter().all(named), "{bad:?}: {places:?}");
        }
    }
}

//! Volumes against a plain model: round trips, a crash at every storage operation, and damage to
//! every stored object.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{CrashStore, MemoryStore, PutMode, ReadAt, Store};
use oblivio_volume::{BlockSpace, CreateOptions, Error, OpenOptions, Seen, Shown, Volume};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const BYTES: usize = 256;

fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

fn small() -> CreateOptions {
    CreateOptions { block_bytes: BYTES, capacity_bytes: 1 << 20, kdf: KdfParams::TEST }
}

/// Little memory, so that most buckets are read and written and not cached.
fn tight() -> OpenOptions {
    OpenOptions { memory_bytes: 64 << 10, ..OpenOptions::default() }
}

fn write(id: u64, fill: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![fill; BYTES]) }
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

#[derive(Clone, Debug)]
enum Event {
    Access(Vec<(u64, Option<u8>)>),
    Defer(Vec<(u64, u8)>),
    Reserve(u64),
    Discard(u64, u64),
    /// So many quiet moments, in which the volume may commit by itself.
    Idle(u8),
    Commit,
    Finish,
}

/// Writes enough blocks that the tree grows, so that a discard may make it shrink.
fn many(first: u64, fill: u8) -> Vec<(u64, Option<u8>)> {
    (first..first + 100).map(|id| (id, Some(fill))).collect()
}

fn any_events(most: usize) -> impl Strategy<Value = Vec<Event>> {
    let op = (0..200u64, proptest::option::of(1u8..));
    let event = prop_oneof![
        6 => proptest::collection::vec(op, 1..10).prop_map(Event::Access),
        1 => (1..200u64).prop_map(Event::Reserve),
        1 => (0..200u64, 1..200u64).prop_map(|(first, count)| Event::Discard(first, count)),
        1 => (0..100u64, 1u8..).prop_map(|(first, fill)| Event::Access(many(first, fill))),
        1 => (1..9u8).prop_map(Event::Idle),
        3 => proptest::collection::vec((0..200u64, 1u8..), 1..10).prop_map(Event::Defer),
        2 => Just(Event::Commit),
        1 => Just(Event::Finish),
    ];
    proptest::collection::vec(event, 1..most)
}

type Model = BTreeMap<u64, u8>;

/// A run of events against the model.
struct Run {
    model: Model,
    committed: Model,
    addressable: u64,
}

fn second_half(&(id, fill): &(u64, u8)) -> BlockOp {
    let action = Action::Patch { offset: BYTES / 2, bytes: vec![fill; BYTES - BYTES / 2] };
    BlockOp { id: BlockId(id), action }
}

impl Run {
    fn on(volume: &Volume, committed: &Model) -> Self {
        let info = volume.info().expect("memory");
        let addressable = info.tree().expect("a tree").addressable_blocks;
        Self { model: committed.clone(), committed: committed.clone(), addressable }
    }

    fn access(&mut self, volume: &mut Volume, ops: &[(u64, Option<u8>)]) -> Result<(), Error> {
        let ops: Vec<_> = ops.iter().filter(|(id, _)| *id < self.addressable).collect();
        let asked = ops.iter().map(|(id, fill)| match fill {
            Some(fill) => write(*id, *fill),
            None => read(*id),
        });
        let answers = volume.access(asked.collect())?;
        for ((id, fill), answer) in ops.into_iter().zip(answers) {
            match fill {
                Some(fill) => drop(self.model.insert(*id, *fill)),
                None => assert_eq!(answer, self.model.get(id).map(|fill| vec![*fill; BYTES])),
            }
        }
        Ok(())
    }

    fn discard(&mut self, volume: &mut Volume, first: u64, count: u64) -> Result<(), Error> {
        let ids: Vec<u64> = (first..first + count).collect();
        volume.discard(&ids)?;
        self.model.retain(|id, _| !ids.contains(id));
        Ok(())
    }

    /// Each write is half a block, so that the rest must be kept.
    fn defer(&mut self, volume: &mut Volume, writes: &[(u64, u8)]) -> Result<(), Error> {
        let writes = writes.iter().filter(|(id, _)| *id < self.addressable);
        let half = |&(id, fill): &(u64, u8)| BlockOp {
            id: BlockId(id),
            action: Action::Patch { offset: 0, bytes: vec![fill; BYTES / 2] },
        };
        volume
            .defer(writes.clone().flat_map(|write| [half(write), second_half(write)]).collect())?;
        self.model.extend(writes.copied());
        Ok(())
    }

    /// Plays events until one fails; gives the states that the volume may be in after a crash.
    fn play(mut self, volume: &mut Volume, events: &[Event]) -> (Vec<Model>, bool) {
        for event in events {
            let epoch = volume.seen().epoch;
            let (result, commits) = match event {
                Event::Access(ops) => (self.access(volume, ops), false),
                Event::Reserve(blocks) => (volume.reserve(*blocks), false),
                Event::Discard(first, count) => (self.discard(volume, *first, *count), false),
                Event::Defer(writes) => (self.defer(volume, writes), false),
                Event::Idle(times) => ((0..*times).try_for_each(|_| volume.idle().map(drop)), true),
                Event::Commit => (volume.commit(), true),
                Event::Finish => (volume.finish(), true),
            };
            if result.is_err() {
                // A commit that did not return may have happened or not.
                let maybe = commits.then_some(self.model);
                return ([self.committed].into_iter().chain(maybe).collect(), false);
            }
            if let Event::Reserve(blocks) = event {
                self.addressable = self.addressable.max(blocks.next_power_of_two());
            }
            // A quiet moment need not commit; a sync that commits nothing is durable all the same.
            if commits && (!matches!(event, Event::Idle(_)) || volume.seen().epoch > epoch) {
                self.committed = self.model.clone();
            }
        }
        (vec![self.committed], true)
    }
}

fn content(volume: &mut Volume) -> Model {
    volume.reserve(200).expect("within the capacity");
    let answers = volume.access((0..200).map(read).collect()).expect("sound");
    let mut model = Model::new();
    for (id, answer) in answers.into_iter().enumerate() {
        if let Some(bytes) = answer {
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a block is whole");
            model.insert(id as u64, bytes[0]);
        }
    }
    model
}

fn created() -> MemoryStore {
    let store = Arc::new(MemoryStore::new());
    drop(Volume::create(store.clone(), &passphrase(), small(), tight()).expect("an empty store"));
    store.snapshot()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn volumes_answer_like_a_plain_map_and_survive_closing(
        sessions in proptest::collection::vec(any_events(20), 1..4),
    ) {
        let mut disk = created();
        let mut committed = Model::new();
        for events in &sessions {
            let store = Arc::new(disk.snapshot());
            let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
            prop_assert_eq!(&content(&mut volume), &committed);
            let (mut states, whole) = Run::on(&volume, &committed).play(&mut volume, events);
            prop_assert!(whole);
            committed = states.remove(0);
            disk = store.snapshot();
        }
    }

    /// The power fails in every storage operation of a run in turn; torn and reordered writes are
    /// among what it leaves.
    #[test]
    fn a_crash_at_any_operation_loses_nothing_that_was_committed(
        events in any_events(14),
        seed in any::<u64>(),
    ) {
        let disk = created();
        let counting = Arc::new(CrashStore::holding(&disk));
        let mut volume = Volume::open(counting.clone(), &passphrase(), tight()).expect("sound");
        Run::on(&volume, &Model::new()).play(&mut volume, &events);
        drop(volume);
        for cut in 0..counting.operations() {
            let store = Arc::new(CrashStore::holding(&disk));
            store.crash_after(cut);
            let states = match Volume::open(store.clone(), &passphrase(), tight()) {
                Err(_) => vec![Model::new()],
                Ok(mut volume) if !store.crashed() => {
                    Run::on(&volume, &Model::new()).play(&mut volume, &events).0
                }
                Ok(_) => vec![Model::new()],
            };
            let mut left: Vec<_> = store.extremes().into_iter().map(|(_, disk)| disk).collect();
            left.extend((0..2).map(|n| store.survivors(seed.wrapping_add(n))));
            for disk in left {
                let mut volume = Volume::open(Arc::new(disk), &passphrase(), tight())
                    .expect("a crash leaves a volume that opens");
                volume.verify(&mut |_, _| {}).expect("clean");
                let found = content(&mut volume);
                prop_assert!(states.contains(&found), "found {found:?}, expected one of {states:?}");
            }
        }
    }
}

fn filled() -> (MemoryStore, Model, Seen) {
    let store = Arc::new(created());
    let seen = Arc::new(Mutex::new(None));
    let remember = seen.clone();
    let open = OpenOptions {
        on_commit: Some(Box::new(move |now| {
            *remember.lock().expect("one thread") = Some(*now);
            Ok(())
        })),
        ..tight()
    };
    let mut volume = Volume::open(store.clone(), &passphrase(), open).expect("sound");
    volume.reserve(200).expect("within the capacity");
    let model: Model = (0..200).map(|id| (id, (id % 250) as u8 + 1)).collect();
    volume.access(model.iter().map(|(id, fill)| write(*id, *fill)).collect()).expect("sound");
    volume.finish().expect("sound");
    drop(volume);
    let seen = seen.lock().expect("one thread").expect("there was a commit");
    (store.snapshot(), model, seen)
}

/// Opens a damaged volume and reads everything: the right content or an error, nothing else.
fn never_wrong(disk: &MemoryStore, model: &Model, seen: Seen) -> Option<Error> {
    let open = OpenOptions { last_seen: Some(seen), ..tight() };
    let mut volume = match Volume::open(Arc::new(disk.snapshot()), &passphrase(), open) {
        Ok(volume) => volume,
        Err(error) => return Some(error),
    };
    if let Err(error) = volume.verify(&mut |_, _| {}) {
        return Some(error);
    }
    match volume.access((0..200).map(read).collect()) {
        Err(error) => Some(error),
        Ok(answers) => {
            for (id, answer) in answers.into_iter().enumerate() {
                let expected = model.get(&(id as u64)).map(|fill| vec![*fill; BYTES]);
                assert_eq!(answer, expected, "wrong data");
            }
            None
        }
    }
}

#[test]
fn damage_is_refused_and_named() {
    let (disk, model, seen) = filled();
    assert!(never_wrong(&disk, &model, seen).is_none());
    for (object, len) in disk.list().expect("memory") {
        // A sample here; `just damage` changes every byte.
        for step in 0..48.min(len) {
            let damaged = disk.snapshot();
            let at = len * step / 48;
            damaged.corrupt(&object, at, |byte| *byte ^= 1 << (step % 8)).expect("in range");
            never_wrong(&damaged, &model, seen);
        }
        let dropped = disk.snapshot();
        dropped.delete(&[&object]).expect("memory");
        let error = never_wrong(&dropped, &model, seen);
        // The intent log is void after a clean commit; everything else is needed.
        assert!(error.is_some() || object == "journal", "{object} dropped unnoticed");
        for cut in [0, len / 2, len.saturating_sub(1)] {
            let short = disk.snapshot();
            short.truncate(&object, cut).expect("memory");
            never_wrong(&short, &model, seen);
        }
    }
}

#[test]
fn an_older_copy_is_told_from_the_newest() {
    let (older, _, _) = filled();
    let store = Arc::new(older.snapshot());
    let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
    volume.access(vec![write(3, 99)]).expect("sound");
    volume.finish().expect("sound");
    let seen = volume.seen();
    drop(volume);
    let open = |accept_rollback| OpenOptions { last_seen: Some(seen), accept_rollback, ..tight() };
    let refused = Volume::open(Arc::new(older.snapshot()), &passphrase(), open(false));
    assert!(matches!(refused, Err(Error::RolledBack(_))));
    Volume::open(Arc::new(older), &passphrase(), open(true)).expect("the user restored a backup");
}

#[test]
fn a_fork_is_told_from_what_was_seen() {
    let (base, _, _) = filled();
    let fork = |fill| {
        let store = Arc::new(base.snapshot());
        let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
        volume.access(vec![write(3, fill)]).expect("sound");
        volume.finish().expect("sound");
        (volume.seen(), store.snapshot())
    };
    let (seen, _) = fork(1);
    let (_, other) = fork(2);
    let open = OpenOptions { last_seen: Some(seen), ..tight() };
    let refused = Volume::open(Arc::new(other), &passphrase(), open);
    assert!(matches!(refused, Err(Error::RolledBack(_))));
}

/// Two sessions on copies of one volume crash with the same records at the same offsets. An
/// adversary who kept both journals cannot put one together from them.
#[test]
fn journals_of_two_forks_do_not_mix() {
    let (base, model, _) = filled();
    let fork = |fill| {
        let store = Arc::new(base.snapshot());
        let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
        for id in 0..3 {
            volume.defer(vec![write(id, fill)]).expect("sound");
            volume.commit().expect("sound");
            volume.access(vec![read(id)]).expect("sound");
        }
        drop(volume);
        let mut journal = vec![0; store.len("journal").expect("memory").expect("written") as usize];
        let whole = ReadAt { object: "journal", offset: 0, buf: &mut journal };
        store.read(&mut [whole]).expect("memory");
        // Zeros follow the records.
        let end = journal.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        journal.truncate(end.next_multiple_of(4096));
        journal
    };
    let (one, other) = (fork(251), fork(252));
    assert_eq!(one.len(), other.len(), "records of both begin at the same places");
    let (pages, mut refused) = (one.len() / 4096, 0);
    for cut in 0..=pages {
        for (front, back) in [(&one, &other), (&other, &one)] {
            let disk = base.snapshot();
            let mixed = [&front[..4096 * cut], &back[4096 * cut..]].concat();
            disk.put("journal", &mixed, PutMode::Replace).expect("memory");
            let mut volume = match Volume::open(Arc::new(disk), &passphrase(), tight()) {
                Err(Error::Tampered(what)) => {
                    assert!(what.starts_with("journal"), "{what}");
                    refused += 1;
                    continue;
                }
                other => other.expect("one fork's journal"),
            };
            let found = content(&mut volume);
            let fills: Vec<u8> = (0..3).map(|id| found[&id]).collect();
            let before: Vec<u8> = (0..3).map(|id| model[&id]).collect();
            let of_one_fork = |fill: u8| {
                (0..=3).any(|done| {
                    fills[..done] == vec![fill; done] && fills[done..] == before[done..]
                })
            };
            assert!(of_one_fork(251) || of_one_fork(252), "cut at page {cut}: {fills:?}");
        }
    }
    assert_eq!(refused, 2 * (pages - 1), "wherever it is cut");
}

#[test]
fn any_object_replaced_by_an_older_one_gives_no_wrong_data() {
    let (older, model, _) = filled();
    let store = Arc::new(older.snapshot());
    let mut volume = Volume::open(store.clone(), &passphrase(), tight()).expect("sound");
    volume.access((0..200).map(|id| write(id, 251)).collect()).expect("sound");
    volume.finish().expect("sound");
    let now = volume.seen();
    drop(volume);
    let newest: Model = model.keys().map(|id| (*id, 251)).collect();
    for (object, len) in older.list().expect("memory") {
        let mixed = store.snapshot();
        let mut bytes = vec![0; len as usize];
        older
            .read(&mut [ReadAt { object: &object, offset: 0, buf: &mut bytes }])
            .expect("it is there");
        mixed.put(&object, &bytes, PutMode::Replace).expect("memory");
        let error = never_wrong(&mixed, &newest, now);
        assert!(error.is_some() || !["slab", "commit"].contains(&&*object), "{object}");
    }
}

/// Where a page is not much beside a bucket, buckets begin at pages.
#[test]
fn large_buckets_begin_at_pages() {
    for (block_bytes, align) in [(4 << 10, 512), (16 << 10, 4096)] {
        let places = Arc::new(Mutex::new(Vec::<u64>::new()));
        let seen = Arc::clone(&places);
        let watch = move |shown: &Shown| seen.lock().expect("whole").extend(&shown.places_written);
        let open = OpenOptions {
            memory_bytes: 4 << 20,
            on_shown: Some(Box::new(watch)),
            ..OpenOptions::default()
        };
        let disk = Arc::new(MemoryStore::new());
        let create = CreateOptions { block_bytes, ..small() };
        let mut volume =
            Volume::create(disk.clone(), &passphrase(), create, open).expect("created");
        let fill = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![1; block_bytes]) };
        volume.reserve(64).expect("room");
        volume.access((0..64).map(fill).collect()).expect("served");
        volume.finish().expect("committed");
        let places = std::mem::take(&mut *places.lock().expect("whole"));
        assert!(places.len() > 20 && places.iter().all(|place| place % align == 0));
        assert_eq!(places.iter().any(|place| place % 4096 != 0), align == 512);
        drop(volume);
        let mut again = Volume::open(disk, &passphrase(), OpenOptions::default()).expect("opens");
        let answers = again.access((0..64).map(read).collect()).expect("served");
        assert!(answers.into_iter().all(|answer| answer == Some(vec![1; block_bytes])));
    }
}

#[test]
fn the_capacity_is_a_limit_and_not_a_reservation() {
    let store = Arc::new(MemoryStore::new());
    let huge = CreateOptions { capacity_bytes: 1 << 40, block_bytes: 4096, kdf: KdfParams::TEST };
    let open = OpenOptions { memory_bytes: 4 << 20, ..OpenOptions::default() };
    let mut volume = Volume::create(store, &passphrase(), huge, open).expect("empty");
    assert!(volume.info().expect("memory").bytes_stored < 8 << 20, "nothing is stored yet");
    assert!(matches!(volume.reserve((1 << 28) + 1), Err(Error::Full(_))));
    volume.reserve(100).expect("an earlier refusal closes nothing");
}

/// What comes after the commit in the same list is for the next sync to make durable.
#[test]
fn a_commit_within_a_long_list_forgets_nothing() {
    const BLOCK: usize = 4096;
    let create =
        CreateOptions { block_bytes: BLOCK, capacity_bytes: 64 << 20, kdf: KdfParams::TEST };
    let open = || OpenOptions { memory_bytes: 8 << 20, ..OpenOptions::default() };
    let fill = |id: u64| vec![id as u8 | 1; BLOCK];
    for later in [false, true] {
        let store = Arc::new(MemoryStore::new());
        let mut volume =
            Volume::create(store.clone(), &passphrase(), create, open()).expect("empty");
        volume.reserve(2300).expect("within the capacity");
        let before = volume.seen().epoch;
        let write = |id| BlockOp { id: BlockId(id), action: Action::Write(fill(id)) };
        let ops = (0..2300).map(write).collect();
        match later {
            true => volume.defer(ops).expect("sound"),
            false => drop(volume.access(ops).expect("sound")),
        }
        assert!(volume.seen().epoch > before, "a commit was due within the list");
        volume.commit().expect("sound");
        // The process is gone, and with it all that waited.
        drop(volume);
        let mut volume = Volume::open(store, &passphrase(), open()).expect("sound");
        let blocks = volume.access((0..2300).map(read).collect()).expect("sound");
        for (id, block) in (0..).zip(blocks) {
            assert!(block == Some(fill(id)), "block {id} is lost, later: {later}");
        }
    }
}

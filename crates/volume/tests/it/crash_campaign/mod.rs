//! Random workloads on random volumes with a crash at every storage operation, session after
//! session, crashes of the recovery too.
//!
//! Also with a constant pace, where ticks make durable what nobody has synced yet. `cargo test`
//! plays a few seeds, with some crashes of each session; `just crash` plays many, with a crash at
//! each operation.

mod digest;
mod events;
mod planted;

use digest::Digest;
use events::{BLOCKS, Event, Model, ROOT, after, any_event, beginnings, fill, pour, put};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{MemoryStore, RecordStore, Store};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{
    BlockSpace, CreateOptions, Environment, Error, MemoryKeeper, OpenOptions, Pace, Records,
    TopLogs, Volume,
};
use planted::Forgetful;
use std::sync::Arc;
use std::time::Duration;

/// Sessions of a campaign; each starts from a crash of the previous one.
const SESSIONS: u64 = 3;
/// The fixed choices of a campaign.
#[derive(Clone, Debug)]
struct Setup {
    block_bytes: usize,
    memory_bytes: usize,
    pace: Option<Pace>,
    records: Records,
    top_logs: TopLogs,
    /// Whether a caller waits for each operation.
    short_pauses: bool,
    /// A seed names one clock and one stream of randomness, so a campaign replays.
    environment: Environment,
    /// How the names of objects begin that the disk never makes durable.
    forgets: Option<&'static str>,
}

impl Setup {
    fn any(dice: &mut Dice) -> Setup {
        let block_bytes = [64, 100, 256, 1000][dice.below(4) as usize];
        // From hardly any cache to all of the tree; the stash alone takes 64 blocks.
        let least = (64 * block_bytes + (24 << 10)) / 3 * 4;
        let memory_bytes = least + dice.below(512 << 10) as usize;
        let short_pauses = dice.below(2) == 0;
        let environment = Environment::from_seed(dice.next_u64());
        let (pace, records, forgets) = (None, Records::First, None);
        Setup {
            block_bytes,
            memory_bytes,
            pace,
            records,
            top_logs: TopLogs::Never,
            short_pauses,
            environment,
            forgets,
        }
    }

    /// Whether all work so far may be durable at any moment.
    fn keeps_early(&self) -> bool {
        self.pace.is_some()
    }

    /// At a pace, as fast as possible.
    fn paced(dice: &mut Dice) -> Setup {
        let (interval, batch) = (Duration::from_nanos(1), 1 + dice.below(6) as usize);
        Setup { pace: Some(Pace { interval, batch }), ..Setup::any(dice) }
    }

    /// With records that run ahead of syncs.
    fn ahead(dice: &mut Dice) -> Setup {
        Setup { records: Records::Ahead, ..Setup::any(dice) }
    }

    /// With the top of the tree in a log from the first commit on, records ahead or not.
    fn logged(dice: &mut Dice) -> Setup {
        let records = if dice.below(2) == 0 { Records::First } else { Records::Ahead };
        Setup { records, top_logs: TopLogs::Always, ..Setup::any(dice) }
    }

    /// A volume whose session ended well.
    fn create(&self, computer: &MemoryKeeper) -> MemoryStore {
        let store = Arc::new(MemoryStore::new());
        let create = CreateOptions {
            block_bytes: self.block_bytes,
            capacity_bytes: 1024 * self.block_bytes as u64,
            kdf: KdfParams::TEST,
        };
        let options = OpenOptions {
            memory_bytes: self.memory_bytes,
            keeper: Some(Box::new(computer.clone())),
            environment: self.environment.clone(),
            ..OpenOptions::default()
        };
        let made = Volume::create(store.clone(), &passphrase(), create, options);
        made.expect("empty").finish().expect("memory");
        store.snapshot()
    }

    /// Opens a volume on a computer.
    fn open(&self, store: Arc<dyn Store>, computer: &MemoryKeeper) -> Result<Volume, Error> {
        let options = OpenOptions {
            memory_bytes: self.memory_bytes,
            pace: self.pace,
            records: self.records,
            top_logs: self.top_logs,
            short_pauses: self.short_pauses,
            keeper: Some(Box::new(computer.clone())),
            environment: self.environment.clone(),
            ..OpenOptions::default()
        };
        Volume::open(store, &passphrase(), options)
    }

    /// As [`Self::open`] on a disk that may crash.
    fn open_crashing(
        &self,
        disk: Arc<CrashStore>,
        computer: &MemoryKeeper,
    ) -> Result<Volume, Error> {
        match self.forgets {
            Some(object) => self.open(Arc::new(Forgetful::new(disk, object)), computer),
            None => self.open(disk, computer),
        }
    }
}

fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

/// A session against the model.
struct Session {
    setup: Setup,
    model: Model,
    /// The volume's possible contents after a crash now: the last commit, or a later one that did
    /// not return. At a pace also the content after any operation since: ticks record all work so
    /// far.
    possible: Vec<Model>,
    /// How often the tree began to shrink.
    shrinks: u64,
}

impl Session {
    fn on(setup: Setup, model: &Model) -> Session {
        Session { setup, model: model.clone(), possible: vec![model.clone()], shrinks: 0 }
    }

    /// Plays events until one fails; after a crash all do.
    fn play(&mut self, volume: &mut Volume, events: &[Event]) -> Result<(), Error> {
        for event in events {
            if let Event::Fill(..) | Event::Pour(_) = event {
                volume.reserve(BLOCKS)?;
            }
            let addressable = addressable(volume)?;
            let next = after(&self.model, event, addressable);
            let commits = matches!(event, Event::Commit | Event::Finish | Event::Verify);
            let idles = matches!(event, Event::Idle(_));
            if self.setup.keeps_early() {
                let parts = beginnings(event);
                self.possible
                    .extend(parts.iter().map(|part| after(&self.model, part, addressable)));
            } else if commits || idles {
                self.possible.push(next.clone());
            }
            let (epoch, class) = (volume.known().epoch, size_class(volume)?);
            self.step(volume, event)?;
            self.shrinks += u64::from(size_class(volume)? < class);
            self.model = next;
            if commits || (idles && volume.known().epoch > epoch) {
                self.possible = vec![self.model.clone()];
            } else if idles && !self.setup.keeps_early() {
                // No commit: the work since the last one may be missing.
                self.possible.pop();
            }
        }
        Ok(())
    }

    fn step(&mut self, volume: &mut Volume, event: &Event) -> Result<(), Error> {
        match event {
            Event::Access(ops) => self.access(volume, ops),
            Event::Fill(first, byte) => self.access(volume, &fill(*first, *byte)),
            Event::Root(fill) => {
                volume.set_root(&[*fill; 9]);
                Ok(())
            }
            Event::Reserve(blocks) => volume.reserve(*blocks),
            Event::Defer(writes) => self.defer(volume, writes),
            Event::Pour(byte) => self.defer(volume, &pour(*byte)),
            Event::Discard(first, end) => {
                let ids: Vec<u64> = (*first..*end).collect();
                volume.discard(&ids)
            }
            Event::Idle(times) => (0..*times).try_for_each(|_| volume.idle().map(drop)),
            Event::Commit => volume.commit(),
            Event::Finish => volume.finish(),
            Event::Verify => volume.verify(&mut |_, _| {}).map(drop),
        }
    }

    fn defer(&mut self, volume: &mut Volume, writes: &[(u64, u8)]) -> Result<(), Error> {
        let bytes = self.setup.block_bytes;
        let addressable = addressable(volume)?;
        let writes = writes.iter().filter(|(id, _)| *id < addressable);
        let op = |(id, fill): &(u64, u8)| BlockOp {
            id: BlockId(*id),
            action: match fill % 3 {
                0 => Action::Remove,
                1 => Action::Write(vec![*fill; bytes]),
                _ => {
                    let (left, right) = (vec![*fill; bytes / 2], vec![*fill; bytes - bytes / 2]);
                    Action::Patches(vec![(bytes / 2, right), (0, left)])
                }
            },
        };
        volume.defer(writes.map(op).collect())
    }

    fn access(&mut self, volume: &mut Volume, ops: &[(u64, Option<u8>)]) -> Result<(), Error> {
        let bytes = self.setup.block_bytes;
        let addressable = addressable(volume)?;
        let ops: Vec<_> = ops.iter().filter(|(id, _)| *id < addressable).collect();
        let op = |(id, fill): &&(u64, Option<u8>)| BlockOp {
            id: BlockId(*id),
            action: match fill {
                None => Action::Read,
                Some(0) => Action::Remove,
                Some(fill) => Action::Write(vec![*fill; bytes]),
            },
        };
        let answers = volume.access(ops.iter().map(op).collect())?;
        // A batch is served in order: a read sees the operations before it.
        let mut model = self.model.clone();
        for ((id, fill), answer) in ops.into_iter().zip(answers) {
            match fill {
                None => assert_eq!(answer, model.get(id).map(|fill| vec![*fill; bytes])),
                Some(fill) => put(&mut model, *id, *fill, *fill == 0),
            }
        }
        Ok(())
    }
}

/// The whole content of a volume.
fn content(volume: &mut Volume) -> Model {
    volume.reserve(BLOCKS).expect("within the capacity");
    let read = |id| BlockOp { id: BlockId(id), action: Action::Read };
    let answers = volume.access((0..BLOCKS).map(read).collect()).expect("sound");
    let mut model = Model::new();
    for (id, answer) in (0..).zip(answers) {
        if let Some(bytes) = answer {
            assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a block is whole");
            model.insert(id, bytes[0]);
        }
    }
    if let Some(fill) = volume.root().first() {
        assert_eq!(volume.root(), [*fill; 9]);
        model.insert(ROOT, *fill);
    }
    model
}

/// The counts so far.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    campaigns: u64,
    crashes: u64,
    /// Crashed disks opened, verified and read.
    states: u64,
    /// Of these, after a crash of the recovery of a crashed disk.
    twice: u64,
    /// Sessions whose intents were replayed.
    replayed: u64,
    /// Crashed disks whose newest commit has the top of the tree in a log.
    logged: u64,
    /// Times that a tree began to shrink, in sessions that were then crashed at each operation.
    shrinks: u64,
    /// What all crashed disks held, byte for byte.
    held: Digest,
}

/// One volume's life.
struct Campaign<'a> {
    seed: u64,
    setup: Setup,
    dice: Dice,
    counts: &'a mut Counts,
    /// Crashes of a session, spread over its operations; [`EACH`] for all of them.
    most: u64,
}

impl Campaign<'_> {
    fn run(&mut self) {
        let mut computer = MemoryKeeper::default();
        let (mut disk, mut model) = (self.setup.create(&computer), Model::new());
        for _ in 0..SESSIONS {
            let count = 1 + self.dice.below(12);
            let events: Vec<Event> = (0..count).map(|_| any_event(&mut self.dice)).collect();
            (disk, model, computer) = self.session(&disk, &model, &computer, &events);
        }
        self.counts.campaigns += 1;
    }

    /// Crashes a session at each of its operations; gives one of the resulting disks, with its
    /// content.
    fn session(
        &mut self,
        disk: &MemoryStore,
        model: &Model,
        computer: &MemoryKeeper,
        events: &[Event],
    ) -> (MemoryStore, Model, MemoryKeeper) {
        let counting = Arc::new(CrashStore::holding(disk));
        let mut volume =
            self.setup.open_crashing(counting.clone(), &computer.twin()).expect("sound");
        let mut whole = Session::on(self.setup.clone(), model);
        whole.play(&mut volume, events).expect("no crash");
        self.counts.shrinks += whole.shrinks;
        drop(volume);
        let operations = counting.operations();
        let chosen = self.dice.below(operations.max(1));
        let every = operations / self.most + 1;
        let mut next = None;
        for cut in (chosen % every..=operations).step_by(every as usize) {
            let left = self.crash(disk, model, computer, events, cut);
            if cut == chosen {
                next = Some(left);
            }
        }
        next.expect("the chosen one is among them")
    }

    /// Crashes a session at operation `cut` and checks the result.
    fn crash(
        &mut self,
        disk: &MemoryStore,
        model: &Model,
        computer: &MemoryKeeper,
        events: &[Event],
        cut: u64,
    ) -> (MemoryStore, Model, MemoryKeeper) {
        let (store, computer) = (Arc::new(CrashStore::holding(disk)), computer.twin());
        store.crash_after(cut);
        let mut session = Session::on(self.setup.clone(), model);
        if let Ok(mut volume) = self.setup.open_crashing(store.clone(), &computer) {
            // After the last operation the power fails between two.
            let _ = session.play(&mut volume, events);
        }
        store.crash();
        self.counts.crashes += 1;
        let mut left: Vec<_> = store.extremes().into_iter().map(|(_, disk)| disk).collect();
        left.extend((0..3).map(|_| store.survivors(self.dice.next_u64())));
        left.iter().for_each(|disk| self.counts.held.take(disk));
        let pick = self.dice.below(left.len() as u64) as usize;
        let mut found = Model::new();
        for (index, disk) in left.iter().enumerate() {
            let what = format!("seed {}, cut {cut}, disk {index}", self.seed);
            let now = self.check(disk, &computer, &session.possible, &what);
            if index == pick {
                found = now;
            }
            if self.dice.below(8) == 0 {
                self.crash_again(disk, &computer, &session.possible, &what);
            }
        }
        (left.swap_remove(pick), found, computer)
    }

    /// Opens a crashed disk: it verifies, and holds one of the possible contents.
    fn check(
        &mut self,
        disk: &MemoryStore,
        computer: &MemoryKeeper,
        possible: &[Model],
        what: &str,
    ) -> Model {
        let store = Arc::new(RecordStore::new(disk.snapshot()));
        let setup = Setup { pace: None, ..self.setup.clone() };
        let mut volume = match setup.open(store.clone(), &computer.twin()) {
            Ok(volume) => volume,
            Err(error) => panic!("{what} does not open: {error} ({setup:?})"),
        };
        assert_eq!(volume.damaged(), [], "{what}: a crash is no damage");
        let read_log =
            |event: &StoreEvent| event.op == CallKind::Read && &*event.object == "top-log";
        self.counts.logged += u64::from(store.take().iter().any(read_log));
        let info = volume.info().expect("memory");
        self.counts.replayed += u64::from(info.replayed > 0);
        volume.verify(&mut |_, _| {}).unwrap_or_else(|error| panic!("{what}: {error}"));
        let found = content(&mut volume);
        assert!(possible.contains(&found), "{what}: found {found:?}, expected of {possible:?}");
        self.counts.states += 1;
        found
    }

    /// Crashes the recovery of a crashed disk, and checks the result.
    fn crash_again(
        &mut self,
        disk: &MemoryStore,
        computer: &MemoryKeeper,
        possible: &[Model],
        what: &str,
    ) {
        let (store, computer) = (Arc::new(CrashStore::holding(disk)), computer.twin());
        store.crash_after(self.dice.below(8));
        if let Ok(mut volume) = self.setup.open_crashing(store.clone(), &computer) {
            let _ = volume.verify(&mut |_, _| {});
        }
        store.crash();
        for again in [store.survivors(self.dice.next_u64()), store.survivors(self.dice.next_u64())]
        {
            self.check(&again, &computer, possible, &format!("{what}, crashed again"));
            self.counts.twice += 1;
        }
    }
}

/// A crash at each operation.
const EACH: u64 = u64::MAX;

fn any_campaign<'a>(
    seed: u64,
    any_setup: fn(&mut Dice) -> Setup,
    counts: &'a mut Counts,
    most: u64,
) -> Campaign<'a> {
    let mut dice = Dice::new(seed);
    Campaign { seed, setup: any_setup(&mut dice), dice, counts, most }
}

/// One campaign for each seed. A run of a hundred times the usual size crashes each session at
/// every operation.
fn campaigns(any_setup: fn(&mut Dice) -> Setup) -> Counts {
    let (first, seeds, most) = (seed(1), scaled(1), scaled(3));
    let mut counts = Counts::default();
    for seed in first..first + seeds {
        any_campaign(seed, any_setup, &mut counts, most).run();
    }
    println!("seeds {first} to {}: {counts:?}", first + seeds - 1);
    assert!(counts.states > 0, "nothing was checked");
    counts
}

#[test]
fn crashes_at_every_operation_of_random_workloads_lose_nothing() {
    campaigns(Setup::any);
}

#[test]
fn crashes_at_every_operation_lose_nothing_at_a_pace() {
    campaigns(Setup::paced);
}

#[test]
fn crashes_at_every_operation_lose_nothing_with_records_ahead_of_syncs() {
    campaigns(Setup::ahead);
}

#[test]
fn crashes_at_every_operation_lose_nothing_with_the_top_in_a_log() {
    let counts = campaigns(Setup::logged);
    assert!(counts.logged > 0, "{counts:?}");
}

/// Seeds are played twice, with a few crashes of each session.
#[test]
fn a_seed_replays_byte_for_byte() {
    let (first, seeds) = (seed(1), scaled(1));
    for seed in first..first + seeds {
        for any_setup in [Setup::any, Setup::paced, Setup::ahead, Setup::logged] {
            let outcome = || {
                let mut counts = Counts::default();
                any_campaign(seed, any_setup, &mut counts, 2).run();
                counts
            };
            assert_eq!(outcome(), outcome(), "seed {seed}");
        }
    }
    println!("seeds {first} to {}, twice each: the same", first + seeds - 1);
}

fn size_class(volume: &Volume) -> Result<u64, Error> {
    Ok(volume.info()?.report.number("size_class_blocks").unwrap_or(0))
}

fn addressable(volume: &Volume) -> Result<u64, Error> {
    let all = volume.addressable_blocks();
    Ok(volume.info()?.report.number("addressable_blocks").unwrap_or(all))
}

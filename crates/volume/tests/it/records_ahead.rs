//! Records that run ahead of syncs: what a power cut costs, and what a store gains that drops them.

use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::record::CallKind;
use oblivio_store::{Held, MemoryStore, ReadAt, RecordStore, Slots, Store, WriteAt};
use oblivio_testkit::campaign::{scaled, seed};
use oblivio_testkit::{CrashStore, Dice};
use oblivio_volume::{
    BlockSpace, CreateOptions, Environment, Error, Known, LogSeen, MemoryKeeper, OpenOptions, Pace,
    Records, Shown, ShownKind, Volume,
};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

const BYTES: usize = 256;
const BLOCKS: u64 = 600;
/// The contract: the most accesses that may be shown once more.
const MOST_AHEAD: usize = 256;

/// The leaves of each batch, without scheduled ones.
type Seen = Arc<Mutex<Vec<Vec<u64>>>>;

fn passphrase() -> Passphrase {
    Passphrase::new("ahead")
}

fn op(id: u64, action: Action) -> BlockOp {
    BlockOp { id: BlockId(id), action }
}

fn write(id: u64, fill: u8) -> BlockOp {
    op(id, Action::Write(vec![fill; BYTES]))
}

/// A computer, and what it sees.
struct Computer {
    keeper: MemoryKeeper,
    environment: Environment,
    records: Records,
}

impl Computer {
    fn new(seed: u64, records: Records) -> Self {
        let environment = Environment::from_seed(seed);
        Self { keeper: MemoryKeeper::default(), environment, records }
    }

    fn options(&self) -> OpenOptions {
        OpenOptions {
            memory_bytes: 1 << 20,
            keeper: Some(Box::new(self.keeper.clone())),
            environment: self.environment.clone(),
            records: self.records,
            ..OpenOptions::default()
        }
    }

    /// A volume with all blocks, whose session ended well.
    fn fill(&self) -> MemoryStore {
        let store = Arc::new(MemoryStore::new());
        let create =
            CreateOptions { block_bytes: BYTES, capacity_bytes: 1 << 20, kdf: KdfParams::TEST };
        let mut volume =
            Volume::create(store.clone(), &passphrase(), create, self.options()).expect("empty");
        volume.reserve(BLOCKS).expect("room");
        volume.access((0..BLOCKS).map(|id| write(id, 1)).collect()).expect("memory");
        volume.finish().expect("memory");
        store.snapshot()
    }

    fn open(&self, store: Arc<dyn Store>) -> Result<Volume, Error> {
        Volume::open(store, &passphrase(), self.options())
    }

    /// With the batches that it shows, `since_commit` those since the last commit.
    fn watch(&self, store: Arc<dyn Store>, since_commit: bool) -> Result<(Volume, Seen), Error> {
        let seen = Seen::default();
        let shown = Arc::clone(&seen);
        let on_shown = move |event: &Shown| {
            let mut shown = shown.lock().expect("alone");
            match event.kind {
                ShownKind::Batch => {
                    let own = event.leaves.len() - event.scheduled;
                    shown.push(event.leaves[..own].to_vec());
                }
                ShownKind::Commit if since_commit => shown.clear(),
                _ => {}
            }
        };
        let options = OpenOptions { on_shown: Some(Box::new(on_shown)), ..self.options() };
        Ok((Volume::open(store, &passphrase(), options)?, seen))
    }

    fn known(&self, volume: &Volume) -> Known {
        self.keeper.known(volume.known().volume).expect("noted")
    }
}

/// Plays single reads, batches, writes and syncs; the fills that were acknowledged as durable, and
/// those that are there. Ends at the first failure.
fn play(volume: &mut Volume, dice: &mut Dice, rounds: u64) -> [Vec<u8>; 2] {
    let mut durable = vec![1; BLOCKS as usize];
    let mut now = durable.clone();
    for _ in 0..rounds {
        let many = if dice.percent(4) { 40 } else { 1 };
        let ids: Vec<u64> = (0..many).map(|_| dice.below(BLOCKS)).collect();
        let done = match dice.below(20) {
            0 => volume.commit().map(|()| durable.clone_from(&now)),
            1..4 => {
                let fill = dice.below(200) as u8 + 2;
                let done = volume.access(ids.iter().map(|id| write(*id, fill)).collect());
                ids.iter().for_each(|id| now[*id as usize] = fill);
                done.map(drop)
            }
            _ => volume.access(ids.iter().map(|id| op(*id, Action::Read)).collect()).map(drop),
        };
        if done.is_err() {
            break;
        }
    }
    [durable, now]
}

/// How many accesses a crash here makes a recovery forget.
fn forgotten(records: Records, seed: u64) -> usize {
    let mut dice = Dice::new(seed);
    let computer = Computer::new(seed, records);
    let disk = Arc::new(CrashStore::holding(&computer.fill()));
    let (mut volume, seen) = computer.watch(disk.clone(), true).expect("whole");
    let rounds = 1 + dice.below(500);
    if dice.percent(50) {
        disk.crash_after(disk.operations() + dice.below(700));
    }
    let [durable, now] = play(&mut volume, &mut dice, rounds);
    disk.crash();
    drop(volume);
    let shown = seen.lock().expect("alone").clone();

    let left = Arc::new(disk.survivors(seed));
    let (mut again, seen) = computer.watch(left, false).expect("it opens");
    let replayed = again.info().expect("information").replayed as usize;
    let seen = seen.lock().expect("alone").clone();
    // What a commit that was cut off left out is in either.
    let known = shown.iter().zip(&seen).take(replayed).take_while(|(one, two)| one == two).count();
    let lost: usize = shown[known..].iter().map(Vec::len).sum();
    let read = again.access((0..BLOCKS).map(|id| op(id, Action::Read)).collect()).expect("sound");
    for (id, block) in read.into_iter().enumerate() {
        let fill = block.expect("it exists")[0];
        assert!(fill == durable[id] || fill == now[id], "seed {seed}: block {id} is {fill}");
    }
    lost
}

#[test]
fn a_power_cut_makes_it_forget_few_accesses_and_nothing_acknowledged() {
    let mut most = 0;
    for seed in (seed(1)..).take(scaled(40) as usize) {
        most = most.max(forgotten(Records::Ahead, seed));
        // The batch under way, which is one access or 40, is beyond those that ran ahead.
        assert!(most <= MOST_AHEAD + 40, "seed {seed}: {most} accesses");
    }
    eprintln!("at most {most} accesses were forgotten");
    assert!(most > 20, "records do run ahead: {most}");
}

#[test]
fn with_records_first_a_power_cut_makes_it_forget_nothing() {
    for seed in (seed(1)..).take(scaled(10) as usize) {
        // Of a batch whose record is not durable nothing was shown, so it counts as shown by none.
        assert_eq!(forgotten(Records::First, seed), 0, "seed {seed}");
    }
}

/// Syncs of the journal in a trace.
fn syncs(store: &RecordStore<MemoryStore>) -> usize {
    let is_sync = |it: &oblivio_store::record::StoreEvent| {
        it.op == CallKind::Sync && &*it.object == "journal"
    };
    store.take().into_iter().filter(is_sync).count()
}

fn read_one_by_one(volume: &mut Volume, count: u64) {
    for id in 0..count {
        volume.access(vec![op(id % BLOCKS, Action::Read)]).expect("memory");
    }
}

#[test]
fn no_access_waits_for_a_sync_below_the_bound_and_each_does_after_a_bad_end() {
    let computer = Computer::new(7, Records::Ahead);
    let store = Arc::new(RecordStore::new(computer.fill()));
    let mut volume = computer.open(store.clone()).expect("whole");
    // The journal is made with its first record, and grows now and then.
    read_one_by_one(&mut volume, 20);
    let grown = syncs(&store);
    read_one_by_one(&mut volume, 100);
    let few = syncs(&store);
    assert!(grown <= 3 && few <= 7, "{grown} and {few} syncs");
    drop(volume);
    // It did not end well.
    let mut volume = computer.open(store.clone()).expect("whole");
    store.take();
    read_one_by_one(&mut volume, 50);
    assert_eq!(syncs(&store), 50);
    volume.finish().expect("memory");
    drop(volume);
    let mut volume = computer.open(store.clone()).expect("whole");
    read_one_by_one(&mut volume, 20);
    store.take();
    read_one_by_one(&mut volume, 10);
    assert!(syncs(&store) <= 1, "it ended well");
}

#[test]
fn with_padding_or_a_pace_each_record_comes_first() {
    let pace = Some(Pace { interval: Duration::from_nanos(1), batch: 1 });
    for (pad, pace) in [(true, None), (false, pace)] {
        let computer = Computer::new(8, Records::Ahead);
        let store = Arc::new(RecordStore::new(computer.fill()));
        let options = OpenOptions { pad, pace, ..computer.options() };
        let mut volume = Volume::open(store.clone(), &passphrase(), options).expect("whole");
        store.take();
        read_one_by_one(&mut volume, 10);
        assert!(syncs(&store) >= 10);
    }
}

/// A store that acknowledges syncs and drops them can hide what the note does not name, and no
/// more.
#[test]
fn what_the_note_names_cannot_be_dropped() {
    let computer = Computer::new(9, Records::Ahead);
    let store = Arc::new(computer.fill());
    let mut volume = computer.open(store.clone()).expect("whole");
    read_one_by_one(&mut volume, 300);
    let LogSeen::Mark(noted) = computer.known(&volume).log else { panic!("a mark") };
    drop(volume);
    let len = store.len("journal").expect("memory").expect("there");
    assert!(noted.end > 0 && noted.end < len);
    let dropped = |from: u64| {
        let copy = store.snapshot();
        let zeros = vec![0; (len - from) as usize];
        copy.write(&[WriteAt::new("journal", from, &zeros)]).expect("memory");
        let computer =
            Computer { keeper: computer.keeper.twin(), ..Computer::new(9, Records::Ahead) };
        computer.open(Arc::new(copy)).map(drop)
    };
    dropped(noted.end).expect("a power cut may do that");
    let refused = dropped(noted.end - 4096);
    assert!(matches!(refused, Err(Error::RolledBack(_))), "{refused:?}");
    // A hole among those is found although later ones open.
    let copy = store.snapshot();
    copy.write(&[WriteAt::new("journal", 4096, &[0; 4096])]).expect("memory");
    let refused = computer.open(Arc::new(copy)).map(drop);
    assert!(matches!(refused, Err(Error::Tampered(_))), "{refused:?}");
}

/// Somebody without notes: later records say that what is damaged before them was durable.
#[test]
fn damage_among_durable_records_is_told_from_a_lost_end() {
    let computer = Computer::new(10, Records::Ahead);
    let store = Arc::new(computer.fill());
    let mut volume = computer.open(store.clone()).expect("whole");
    read_one_by_one(&mut volume, 300);
    let LogSeen::Mark(durable) = computer.known(&volume).log else { panic!("a mark") };
    drop(volume);
    let opened_with = |offset: u64| {
        let copy = store.snapshot();
        let mut page = [0; 4096];
        copy.read(&mut [ReadAt { object: "journal", offset, buf: &mut page }]).expect("memory");
        page[100] ^= 1;
        copy.write(&[WriteAt::new("journal", offset, &page)]).expect("memory");
        Computer::new(11, Records::First).open(Arc::new(copy)).map(drop)
    };
    let refused = opened_with(durable.end - 4096);
    assert!(matches!(refused, Err(Error::Tampered(_))), "{refused:?}");
    opened_with(durable.end).expect("a power cut may do that");
}

/// Nobody has to ask for anything: a thread makes records durable.
#[test]
fn a_thread_syncs_records_soon() {
    let environment = Environment { threads: true, ..Environment::default() };
    let computer = Computer { environment, ..Computer::new(12, Records::Ahead) };
    let (sender, synced) = mpsc::channel();
    let store = RecordStore::watching(computer.fill(), move |event| {
        if event.op == CallKind::Sync && &*event.object == "journal" {
            let _ = sender.send(());
        }
    });
    let mut volume = computer.open(Arc::new(store)).expect("whole");
    // The first ones make the journal.
    read_one_by_one(&mut volume, 5);
    while synced.try_recv().is_ok() {}
    read_one_by_one(&mut volume, 1);
    synced.recv().expect("the thread");
}

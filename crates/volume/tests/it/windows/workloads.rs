//! Seeded workloads, each with a crash, a lost computer and a lost answer at every call to the
//! store. They are opened again with nothing but the passphrase. `just windows-crashes` has many.

use super::traces::{Shape, shape, without_paths};
use super::whole::Whole;
use super::{create, open, passphrase, read, write};
use oblivio_store::{MemoryStore, RecordStore, Store};
use oblivio_testkit::campaign::{at_least, every, scaled};
use oblivio_testkit::fault::{Fault, FaultPlan, When};
use oblivio_testkit::{CrashStore, FaultStore, SplitMix64};
use oblivio_volume::{BlockSpace, Environment, OpenOptions, Result, Volume};
use std::sync::Arc;

type Model = Vec<Option<u8>>;

/// Blocks that a workload uses: few, so that a look at all is quick.
const USED: u64 = 40;

/// What was accepted, and how much of it was acknowledged.
struct Book {
    models: Vec<Model>,
    synced: usize,
}

impl Book {
    fn of(model: &Model) -> Self {
        Self { models: vec![model.clone()], synced: 0 }
    }

    fn last(&self) -> &Model {
        &self.models[self.models.len() - 1]
    }

    fn note(&mut self, change: impl FnOnce(&mut Model)) {
        let mut model = self.last().clone();
        change(&mut model);
        self.models.push(model);
    }

    fn sync(&mut self) {
        self.synced = self.models.len() - 1;
    }

    /// Whether a volume has all that was acknowledged, and nothing that was never accepted.
    fn allows(&self, found: &Model) -> bool {
        self.models[self.synced..].contains(found)
    }
}

/// A workload: its seed says what is done, `which` for which blocks. Those of one seed have equal
/// numbers and sizes of everything.
fn work(store: Arc<dyn Store>, seed: u64, which: u64, book: &mut Book) -> Result<()> {
    let mut volume = open(store, 1000 + seed)?;
    let mut dice = SplitMix64::new(seed);
    let mut blocks = SplitMix64::new(seed << 8 | which);
    // Blocks in another order for each: none twice before what waits is carried out.
    let place = |at: u64| (at * [1, 3, 7][which as usize] + which * 11) % USED;
    let mut written = 0;
    let steps = 12 + dice.below(16);
    for _ in 0..steps {
        match dice.below(10) {
            0..4 => {
                for _ in 0..1 + dice.below(3) {
                    let (id, byte) = (place(written), blocks.below(256) as u8);
                    written += 1;
                    book.note(|model| model[id as usize] = Some(byte));
                    volume.defer(vec![write(id, byte)])?;
                }
                volume.commit()?;
                book.sync();
            }
            4..8 => {
                let (count, first) = (1 + dice.below(5), blocks.below(USED));
                volume.access((first..first + count).map(|id| read(id % USED)).collect())?;
            }
            8 => {
                volume.commit()?;
                book.sync();
            }
            _ => {
                volume.idle()?;
            }
        }
    }
    if dice.below(2) == 0 {
        volume.finish()?;
        book.sync();
    }
    Ok(())
}

/// The volume that all workloads begin with: everything that they use exists.
fn begun() -> (MemoryStore, Model) {
    let disk = Arc::new(MemoryStore::new());
    let mut volume = create(disk.clone(), true, 1);
    volume.defer((0..USED).map(|id| write(id, 1)).collect()).expect("memory");
    volume.finish().expect("memory");
    drop(volume);
    (disk.snapshot(), vec![Some(1); USED as usize])
}

fn look(store: Arc<dyn Store>, seed: u64) -> Result<(Volume, Model)> {
    let mut volume = open(store, seed)?;
    let found = volume.access((0..USED).map(read).collect())?;
    Ok((volume, found.into_iter().map(|block| block.map(|bytes| bytes[0])).collect()))
}

/// A crash at a call: unsynced writes are lost, torn, or there.
fn crash(disk: &MemoryStore, model: &Model, seed: u64, cut: u64) -> bool {
    let store = Arc::new(CrashStore::holding(disk));
    let mut book = Book::of(model);
    store.crash_after(cut);
    let done = work(store.clone(), seed, 0, &mut book);
    store.crash();
    let left = Arc::new(store.survivors(seed << 20 | cut));
    let (_, found) = look(left, 8).unwrap_or_else(|error| panic!("{seed}, cut {cut}: {error}"));
    assert!(book.allows(&found), "workload {seed}, a crash at {cut}");
    done.is_ok()
}

/// The computer is lost at a call; of the objects on their way each arrives or not.
fn lose(disk: &MemoryStore, model: &Model, seed: u64, cut: u64) -> bool {
    let store = Arc::new(Whole::new(disk.snapshot(), cut));
    let mut book = Book::of(model);
    let done = work(store.clone(), seed, 0, &mut book);
    let left = Arc::new(store.later(seed << 20 | cut));
    let (volume, found) =
        look(left.clone(), 8).unwrap_or_else(|error| panic!("{seed}, lost at {cut}: {error}"));
    assert!(book.allows(&found), "workload {seed}, lost at {cut}");
    drop(volume);
    let (_, again) = look(left, 9).unwrap_or_else(|error| panic!("{seed}, lost at {cut}: {error}"));
    assert_eq!(again, found, "workload {seed}, lost at {cut}, and once more");
    done.is_ok()
}

/// A call is done, and its answer is lost.
fn unanswered(disk: &MemoryStore, model: &Model, seed: u64, at: u64) -> bool {
    let plan = FaultPlan::new();
    let store = Arc::new(FaultStore::new(disk.snapshot(), plan.clone()));
    plan.fail_in(at, Fault { when: When::After, ..Fault::once() });
    let mut book = Book::of(model);
    let done = work(store.clone(), seed, 0, &mut book);
    let fired = plan.fired() > 0;
    plan.clear();
    let (_, found) = look(store, 8).unwrap_or_else(|error| panic!("{seed}, fault {at}: {error}"));
    assert!(book.allows(&found), "workload {seed}, no answer at {at}");
    done.is_ok() && !fired
}

#[test]
fn at_every_call_of_many_workloads_all_that_was_acknowledged_is_left() {
    let (disk, model) = begun();
    let workloads = scaled(3);
    // The few of every day take every fifth call.
    let step = every(5) as u64;
    let mut cuts = 0u64;
    for seed in 0..workloads {
        for kind in [crash, lose, unanswered] {
            let mut cut = seed % step;
            while !kind(&disk, &model, seed, cut) {
                (cut, cuts) = (cut + step, cuts + 1);
            }
        }
        if workloads > 20 && seed % 20 == 19 {
            eprintln!("{} workloads, {cuts} crashes, lost computers and lost answers", seed + 1);
        }
    }
    assert!(cuts * step > workloads * 50, "{cuts}");
}

/// What a store sees of a workload on some blocks, of which the computer is lost at a call that
/// reads no path, and of the recovery.
fn seen(disk: &MemoryStore, seed: u64, which: u64, cut: u64) -> (Shape, bool) {
    let whole = Whole::new(disk.snapshot(), cut).but_for_paths();
    let store = Arc::new(RecordStore::new(whole));
    let mut book = Book { models: vec![vec![Some(1); USED as usize]], synced: 0 };
    let done = work(store.clone(), seed, which, &mut book).is_ok();
    let mut all = without_paths(shape(&store.take()));
    let left = Arc::new(RecordStore::new(store.inner().later(seed << 20 | cut)));
    let environment = Environment::from_seed(5);
    let options = OpenOptions { environment, ..OpenOptions::default() };
    let opened = Volume::open(left.clone(), &passphrase(), options);
    drop(opened.expect("sound"));
    all.extend(without_paths(shape(&left.take())));
    (all, done)
}

/// Two workloads that do the same for other blocks look the same before a crash, and so does what
/// follows it.
#[test]
fn pairs_look_the_same_before_and_after_a_crash() {
    let (disk, _) = begun();
    let workloads = scaled(3);
    let step = if at_least(10.0) { 7 } else { 11 };
    let mut pairs = 0u64;
    for seed in 0..workloads {
        for cut in (seed % step..).step_by(step as usize) {
            let ((one, done), (other, _)) = (seen(&disk, seed, 1, cut), seen(&disk, seed, 2, cut));
            let differs = one.iter().zip(&other).find(|(one, other)| one != other);
            assert!(differs.is_none(), "workload {seed}, cut {cut}: {differs:?}");
            assert_eq!(one.len(), other.len(), "workload {seed}, cut {cut}");
            pairs += 1;
            if done {
                break;
            }
        }
    }
    eprintln!("{pairs} pairs of {workloads} workloads");
    assert!(pairs > workloads * 3, "{pairs}");
}

/// A pair that differs is found.
#[test]
fn a_pair_that_differs_is_found() {
    let (disk, _) = begun();
    let differing = (0..5)
        .filter(|&seed| seen(&disk, seed, 1, u64::MAX).0 != seen(&disk, seed + 1, 1, u64::MAX).0);
    assert_eq!(differing.count(), 5);
}

//! A computer asks another one for the volume, and waits for it.

use super::{BLOCKS, contents, create, fill, passphrase, write};
use oblivio_store::record::{CallKind, StoreEvent};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, RecordStore};
use oblivio_testkit::SplitMix64;
use oblivio_volume::{
    BlockSpace, Clock, Environment, Error, HolderNotice, MemoryKeeper, OpenOptions, Result,
    SimulatedClock, Volume,
};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What one computer opens the volume with. All share one clock.
struct Computer {
    store: Arc<MemoryStore>,
    clock: Arc<SimulatedClock>,
    seed: u64,
}

impl Computer {
    fn options(&self) -> OpenOptions {
        let environment =
            Environment { clock: self.clock.clone(), ..Environment::from_seed(self.seed) };
        OpenOptions { environment, host: format!("host{}", self.seed), ..OpenOptions::default() }
    }

    fn open_with(&self, options: OpenOptions) -> Result<Volume> {
        Volume::open(self.store.clone(), &passphrase(), options)
    }

    /// Opens it; `wait` is called while another one has it.
    fn open(&self, wait: impl FnMut(&HolderNotice) -> bool + Send + 'static) -> Result<Volume> {
        self.open_with(OpenOptions { on_wait: Some(Box::new(wait)), ..self.options() })
    }
}

struct World {
    store: Arc<MemoryStore>,
    clock: Arc<SimulatedClock>,
    model: Vec<Option<u8>>,
}

impl World {
    /// A volume that its first session has released.
    fn new(exclusive: bool) -> Self {
        let store = Arc::new(MemoryStore::new());
        let mut volume = create(store.clone(), exclusive, 1);
        let model = fill(&mut volume, &mut SplitMix64::new(1), 90);
        volume.finish().expect("memory");
        Self { store, clock: Arc::default(), model }
    }

    fn computer(&self, seed: u64) -> Computer {
        Computer { store: self.store.clone(), clock: self.clock.clone(), seed }
    }

    fn now(&self) -> Duration {
        self.clock.now()
    }
}

const NOBODY: fn(&HolderNotice) -> bool = |waiting| panic!("nobody has it: {waiting:?}");

/// The holder is asked, ends its session, and the other one has everything, without a sync before.
#[test]
fn who_is_asked_hands_over_what_it_has() {
    for exclusive in [true, false] {
        let mut world = World::new(exclusive);
        let wanted = Arc::new(Mutex::new(None));
        let on_wanted = {
            let wanted = Arc::clone(&wanted);
            Some(Box::new(move |host: &str| *wanted.lock().unwrap() = Some(host.to_owned())) as _)
        };
        let holder = world.computer(2);
        let mut holder =
            Some(holder.open_with(OpenOptions { on_wanted, ..holder.options() }).expect("free"));
        if let Some(holder) = &mut holder {
            holder.defer(vec![write(3, 0xee)]).expect("memory");
            world.model[3] = Some(0xee);
        }
        let waited = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&waited);
        let wait = move |waiting: &HolderNotice| {
            assert_eq!(waiting.host, "host2");
            count.fetch_add(1, Ordering::Relaxed);
            let Some(mut it) = holder.take() else { panic!("it was released: {waiting:?}") };
            it.idle().expect("memory");
            match wanted.lock().unwrap().as_deref() {
                Some("host3") => it.finish().expect("memory"),
                Some(other) => panic!("{other} asked"),
                None => holder = Some(it),
            }
            true
        };
        let begun = world.now();
        let mut next = world.computer(3).open(wait).expect("handed over");
        assert_eq!(contents(&mut next), world.model);
        let took = world.now() - begun;
        assert!(waited.load(Ordering::Relaxed) > 1 && took < Duration::from_secs(20), "{took:?}");
        assert_eq!(next.info().expect("memory").replayed, 0, "nothing is shown again");
    }
}

/// One that died says nothing: after a while it is taken over. What it had synced is there.
#[test]
fn one_that_died_is_taken_over_after_a_while() {
    for exclusive in [true, false] {
        let world = World::new(exclusive);
        // Killed: it ends without a word.
        std::mem::forget(world.computer(2).open(NOBODY).expect("released"));
        let begun = world.now();
        let silent = Arc::new(Mutex::new(Duration::ZERO));
        let heard = Arc::clone(&silent);
        let wait = move |waiting: &HolderNotice| {
            *heard.lock().unwrap() = waiting.silent;
            true
        };
        let mut next = world.computer(3).open(wait).expect("taken over");
        assert_eq!(contents(&mut next), world.model);
        let took = (world.now() - begun).as_secs();
        assert!((90..95).contains(&took), "{took}");
        assert!(silent.lock().unwrap().as_secs() > 80);
        // Without asking, it is there at once.
        drop(next);
        let computer = world.computer(4);
        computer.open_with(computer.options()).expect("taken over");
        assert_eq!((world.now() - begun).as_secs(), took);
    }
}

/// One that ends in any other way, such as a command that failed at something else, gives the
/// volume up: nobody waits for it, and what it had shown is shown again.
#[test]
fn one_that_failed_is_not_waited_for() {
    for exclusive in [true, false] {
        let world = World::new(exclusive);
        let mut failed = world.computer(2).open(NOBODY).expect("released");
        assert_eq!(failed.access(vec![super::read(3)]).expect("sound").len(), 1);
        drop(failed);
        let begun = world.now();
        let mut next = world.computer(3).open(NOBODY).expect("given up");
        assert_eq!(world.now(), begun);
        assert_eq!(next.info().expect("memory").replayed, 1);
        assert_eq!(contents(&mut next), world.model);
    }
}

/// A process of this computer has ended: only one at a time has the volume.
#[test]
fn a_computer_does_not_wait_for_itself() {
    let world = World::new(true);
    let keeper = MemoryKeeper::default();
    for seed in 2..6 {
        let computer = world.computer(seed);
        let options = OpenOptions {
            keeper: Some(Box::new(keeper.clone())),
            on_wait: Some(Box::new(NOBODY)),
            ..computer.options()
        };
        drop(computer.open_with(options).expect("its own"));
    }
}

/// One that goes on with its work answers, and is not taken over. Entries of its answers are part
/// of the history.
#[test]
fn one_that_goes_on_is_left_alone() {
    for exclusive in [true, false] {
        let mut world = World::new(exclusive);
        let holder = Arc::new(Mutex::new(world.computer(2).open(NOBODY).expect("released")));
        let at_work = Arc::clone(&holder);
        let wait = move |waiting: &HolderNotice| {
            at_work.lock().unwrap().idle().expect("memory");
            assert!(waiting.silent.as_secs() <= 24, "it answers: {waiting:?}");
            waiting.waited < Duration::from_secs(600)
        };
        let error = world.computer(3).open(wait).map(drop).expect_err("it goes on");
        assert!(matches!(&error, Error::Held(host) if host == "host2"), "{error}");
        let mut holder = holder.lock().unwrap();
        holder.defer(vec![write(7, 9)]).expect("memory");
        holder.commit().expect("it still has it");
        world.model[7] = Some(9);
        let computer = world.computer(4);
        let mut next = computer.open_with(computer.options()).expect("taken over");
        assert_eq!(contents(&mut next), world.model);
        assert!(matches!(holder.commit(), Ok(()) | Err(Error::Overtaken)));
    }
}

/// What nobody of this volume sealed decides nothing.
#[test]
fn an_object_that_nobody_sealed_asks_for_nothing() {
    let world = World::new(true);
    let mut holder = world.computer(2).open(NOBODY).expect("released");
    let entries = |store: &MemoryStore| {
        store.list_under("e-").expect("memory").into_iter().map(|(name, _)| name).max()
    };
    let newest = entries(&world.store).expect("its first entry");
    let random = newest.split('-').nth(1).expect("a session");
    world.store.put(&format!("w-{random}"), &[7; 1024], PutMode::Replace).expect("memory");
    let before = world.store.list().expect("memory").len();
    for _ in 0..10 {
        world.clock.sleep(Duration::from_secs(20));
        holder.idle().expect("memory");
    }
    assert_eq!(world.store.list().expect("memory").len(), before, "no entry answers");
}

/// Whether somebody asks is looked up at fixed times, whatever the user does.
#[test]
fn who_asks_is_looked_up_whatever_is_done() {
    let mut counts = Vec::new();
    for busy in [false, true] {
        let world = World::new(true);
        let store = Arc::new(RecordStore::new(world.store.clone()));
        let computer = world.computer(2);
        let options = computer.options();
        let mut holder = Volume::open(store.clone(), &passphrase(), options).expect("released");
        for second in 0..300 {
            world.clock.sleep(Duration::from_secs(1));
            if busy {
                holder.access(vec![super::read(second % BLOCKS)]).expect("memory");
            }
            holder.idle().expect("memory");
        }
        let asks =
            |event: &&StoreEvent| event.op == CallKind::Len && event.object.starts_with("w-");
        counts.push(store.take().iter().filter(asks).count());
    }
    assert_eq!(counts, [20, 20]);
}

/// Who met damage says that it is done: nobody waits for it, and what it left is gone through.
/// A computer whose opening fails keeps nobody waiting either: here all parts are damaged for a
/// while.
#[test]
fn an_opening_that_fails_gives_the_volume_up() {
    for exclusive in [true, false] {
        let world = World::new(exclusive);
        let flip = || {
            for (part, len) in world.store.list_under("p-").expect("memory") {
                world.store.corrupt(&part, len / 2, |byte| *byte ^= 1).expect("memory");
            }
        };
        flip();
        let failed = world.computer(2).open(NOBODY).map(drop).expect_err("damaged");
        assert!(matches!(failed, Error::Tampered(_)), "{failed}");
        flip();
        let mut next = world.computer(3).open(NOBODY).expect("given up");
        assert_eq!(contents(&mut next), world.model);
        next.finish().expect("memory");
    }
}

/// Nothing of a computer that knows better stands on a state that it refuses.
#[test]
fn a_state_that_is_refused_gets_no_entry() {
    for exclusive in [true, false] {
        let world = World::new(exclusive);
        let (one, keeper) = (world.computer(2), MemoryKeeper::default());
        let open = || {
            let keeper = Some(Box::new(keeper.clone()) as _);
            one.open_with(OpenOptions { keeper, on_wait: Some(Box::new(NOBODY)), ..one.options() })
        };
        let before = world.store.snapshot();
        open().expect("free").finish().expect("memory");
        world.store.restore(&before);
        let entries = || world.store.list_under("e-").expect("memory");
        let there = entries();
        let refused = open().map(drop).expect_err("an older state");
        assert!(matches!(refused, Error::RolledBack(_)), "{refused}");
        assert_eq!(entries(), there);
    }
}

#[test]
fn who_fails_gives_the_volume_up() {
    for exclusive in [true, false] {
        let world = World::new(exclusive);
        let fails = world.computer(2);
        let mut volume = fails.open(NOBODY).expect("free");
        volume.defer(vec![write(3, 0xee)]).expect("memory");
        volume.give_up();
        drop(volume);
        let mut next = world.computer(3).open(NOBODY).expect("given up");
        assert_eq!(contents(&mut next), world.model, "as after a crash");
        next.finish().expect("memory");
    }
}

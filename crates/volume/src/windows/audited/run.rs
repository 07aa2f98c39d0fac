//! Workloads on volumes whose store is judged.

use super::leaky::{Leaky, Seen, Wrong};
use super::recorded::Witness;
use super::truth::Truth;
use crate::environment::{Clock, Environment, SimulatedClock};
use crate::options::{CacheOptions, OpenOptions};
use crate::session::FIRST_KIND;
use crate::windows::{WindowOptions, WindowVolume};
use crate::{BlockSpace, Result, Volume};
use oblivio_audit::observer::judge_records;
use oblivio_audit::{AuditVerdict, Report};
use oblivio_crypto::{KdfParams, Passphrase, Randomness};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{MemoryStore, Objects, Patience, RecordStore, RetryStore};
use oblivio_testkit::fault::{Fault, FaultPlan, Repeat};
use oblivio_testkit::{FaultStore, SplitMix64};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const BYTES: usize = 64;
/// Blocks that exist, and beside them as many that do not.
const LIVE: u64 = 1500;

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    OneBlock,
    InTurn,
    Any,
    FewOften,
    Absent,
    /// Batches of up to twelve blocks, read and written.
    Batches,
}

pub(super) const WAYS: [Way; 6] =
    [Way::OneBlock, Way::InTurn, Way::Any, Way::FewOften, Way::Absent, Way::Batches];

/// A run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Plan {
    pub way: Way,
    pub seed: u64,
    pub accesses: u64,
    pub wrong: Option<Wrong>,
    /// Accesses in a session, which then ends well or not; or all are in one, which ends well.
    pub session: Option<u64>,
    /// Whether sessions are cut off at any request, each time.
    pub kills: bool,
    /// Whether requests fail now and then.
    pub faults: bool,
    /// Whether the computer sleeps now and then.
    pub sleeps: bool,
    /// Bytes of the disk cache.
    pub cache: u64,
    /// What the user's computer does at odd times.
    pub odd: Option<Odd>,
}

/// Leaks in when something is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Odd {
    /// A sync ends its window.
    WindowAtSync,
    /// A sign of life while something waits.
    BeatWhileDirty,
}

impl Plan {
    pub(super) fn new(way: Way, seed: u64, accesses: u64) -> Self {
        let (wrong, odd) = (None, None);
        let (session, kills, faults, sleeps, cache) = (Some(1000), false, false, false, 0);
        Self { way, seed, accesses, wrong, session, kills, faults, sleeps, cache, odd }
    }
}

/// A volume, its store, and its witness.
struct Run {
    plan: Plan,
    dice: SplitMix64,
    store: Arc<dyn Objects>,
    /// Whose end is at the first failure.
    patience: Patience,
    cache: Arc<MemoryStore>,
    witness: Witness,
    truth: Arc<Mutex<Truth>>,
    faults: FaultPlan,
    clock: Arc<SimulatedClock>,
    sessions: u64,
    done: u64,
    recent: HashSet<u64>,
    windows: u64,
}

fn passphrase() -> Passphrase {
    Passphrase::new("audited")
}

/// Windows of four turns, three levels in memory, a tree of nine or ten.
fn options() -> WindowOptions {
    WindowOptions {
        object_bytes: 16 * BYTES,
        pool_bytes: 28 * BYTES,
        ..WindowOptions::new(BYTES, 4096 * BYTES as u64, true)
    }
}

impl Run {
    fn new(plan: Plan) -> Self {
        let (witness, faults) = (Witness::default(), FaultPlan::new());
        let clock = Arc::new(SimulatedClock::default());
        let below = Arc::new(MemoryStore::new());
        let failing = FaultStore::new(Arc::clone(&below), faults.clone());
        let (here, time) = (witness.clone(), Arc::clone(&clock));
        let seen: Seen = RecordStore::watching(failing, move |event| here.see(event))
            .clock(move || time.now().as_nanos() as u64)
            .whole();
        let bucket = options().config().geometry().bucket_bytes();
        let truth = Arc::new(Mutex::new(Truth { bucket, ..Truth::default() }));
        let leaky = Leaky::new(Arc::new(seen), below, plan.wrong, Arc::clone(&truth));
        let patience = Patience::default();
        let retry = RetryStore::new(Arc::new(leaky), patience.clone(), Box::new(|_| {}));
        Self {
            plan,
            dice: SplitMix64::new(plan.seed),
            store: Arc::new(retry),
            patience,
            cache: Arc::new(MemoryStore::new()),
            witness,
            truth,
            faults,
            clock,
            sessions: 0,
            done: 0,
            recent: HashSet::new(),
            windows: 0,
        }
    }

    fn open_options(&mut self) -> OpenOptions {
        self.witness.begin();
        self.sessions += 1;
        let clock: Arc<dyn Clock> = self.clock.clone();
        let randomness = Randomness::from_seed(self.plan.seed << 20 | self.sessions);
        let cache = CacheOptions { store: self.cache.clone(), bytes: self.plan.cache };
        OpenOptions {
            on_shown: Some(self.witness.listener(Arc::clone(&clock))),
            environment: Environment {
                clock,
                randomness,
                threads: false,
                ..Environment::default()
            },
            cache: (self.plan.cache > 0).then_some(cache),
            ..OpenOptions::default()
        }
    }

    fn create(&mut self) {
        let open = self.open_options();
        let made = WindowVolume::create(
            Arc::clone(&self.store),
            &passphrase(),
            KdfParams::TEST,
            options(),
            open,
        );
        let mut volume = made.expect("an empty store");
        volume.reserve(2 * LIVE).expect("room");
        volume.defer((0..LIVE).map(|id| write(id, 1)).collect()).expect("memory");
        volume.finish().expect("memory");
    }

    /// One session that is cut off at some request. The computer is lost then.
    fn cut_session(&mut self) {
        let lasting = Fault { repeat: Repeat::FromThenOn, ..Fault::once() };
        self.faults.fail_in(self.dice.below(300), lasting);
        let ended = self.session();
        assert!(ended.is_ok() || self.faults.fired() > 0, "{ended:?}");
        self.faults.clear();
    }

    /// One session, to its end.
    fn session(&mut self) -> Result<()> {
        let open = self.open_options();
        let mut volume = Volume::open(Arc::clone(&self.store), &passphrase(), open)?;
        let all = self.plan.accesses - self.done.min(self.plan.accesses);
        let end = self.done + self.plan.session.unwrap_or(all).min(all);
        self.recent.clear();
        while self.done < end {
            self.done += self.step(&mut volume)?;
        }
        // It ends well, or is lost.
        if self.plan.session.is_none() || self.dice.below(2) == 0 {
            volume.finish()?;
        }
        Ok(())
    }

    /// One batch, and what the caller does beside it.
    fn step(&mut self, volume: &mut Volume) -> Result<u64> {
        let ids = self.draw();
        let writes = self.dice.below(4) == 0;
        self.tell(volume, &ids, writes);
        if self.plan.faults && self.dice.below(150) == 0 {
            self.faults.fail_in(self.dice.below(4), Fault::once());
        }
        if self.plan.sleeps && self.dice.below(20) == 0 {
            self.clock.sleep(Duration::from_secs(5 + self.dice.below(200)));
        }
        let op = |id: u64| if writes && id < LIVE { write(id, 2) } else { read(id) };
        let mut ops: Vec<BlockOp> = ids.iter().map(|id| op(*id)).collect();
        // A write waits: here each is carried out at once, by a read.
        ops.push(read(ids[0]));
        let count = ops.len() as u64;
        volume.access(ops)?;
        self.recent.extend(ids);
        self.clock.sleep(Duration::from_millis(20));
        self.aside(volume)?;
        Ok(count)
    }

    fn draw(&mut self) -> Vec<u64> {
        let dice = &mut self.dice;
        let any = |dice: &mut SplitMix64| dice.below(LIVE);
        match self.plan.way {
            Way::OneBlock => vec![17],
            Way::InTurn => vec![self.done % LIVE],
            Way::Any => vec![any(dice)],
            Way::FewOften if dice.below(10) > 0 => vec![dice.below(12)],
            Way::FewOften => vec![any(dice)],
            Way::Absent => vec![dice.below(2 * LIVE)],
            Way::Batches => (0..1 + dice.below(12)).map(|_| dice.below(2 * LIVE)).collect(),
        }
    }

    /// What a leak may depend on.
    fn tell(&mut self, volume: &mut Volume, ids: &[u64], writes: bool) {
        let exists = ids.iter().filter(|id| volume.exists(**id)).count();
        let ledger = &volume.windows().expect("of this kind").ledger;
        let (windows, stash) = (ledger.places.done, ledger.engine.stash_blocks());
        let mut truth = self.truth.lock().unwrap_or_else(PoisonError::into_inner);
        if windows != self.windows {
            self.windows = windows;
            self.recent.clear();
            truth.changed = false;
        }
        truth.changed |= writes;
        truth.hit = ids.iter().all(|id| self.recent.contains(id));
        truth.absent = exists == 0;
        (truth.asked, truth.real) = (ids.len() + 1, exists);
        truth.dead = self.dice.below(20);
        (truth.stash, truth.full) = (stash, 6);
        truth.dice = self.dice.next_u64();
    }

    fn aside(&mut self, volume: &mut Volume) -> Result<()> {
        let sync = self.dice.below(30) == 0;
        let windows = volume.windows().expect("of this kind");
        let dirty = windows.has_news();
        if self.plan.odd == Some(Odd::BeatWhileDirty) && dirty && self.dice.below(20) == 0 {
            let session = &mut windows.ledger.session;
            session.send(FIRST_KIND + 99, &[], 0)?;
            session.settle()?;
        }
        if sync {
            volume.commit()?;
            let windows = volume.windows().expect("of this kind");
            if self.plan.odd == Some(Odd::WindowAtSync) {
                windows.window_ahead()?;
            }
        } else if self.dice.below(40) == 0 {
            volume.idle()?;
        }
        Ok(())
    }
}

/// Carries a plan out, and judges what was seen.
pub(super) fn judged(plan: Plan) -> Report {
    let mut run = Run::new(plan);
    run.create();
    if plan.kills {
        run.patience.end();
    }
    while run.done < plan.accesses {
        match plan.kills {
            true => run.cut_session(),
            false => run.session().expect("sound"),
        }
    }
    if plan.kills {
        eprintln!("{} sessions, {} cut off", run.sessions, run.faults.fired());
    }
    let (sight, rate) = (run.witness.finish(), 1e-6);
    let report = judge_records(&sight, rate);
    assert_ne!(report.verdict, AuditVerdict::TooShort, "{report}");
    report
}

fn write(id: u64, byte: u8) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Write(vec![byte; BYTES]) }
}

fn read(id: u64) -> BlockOp {
    BlockOp { id: BlockId(id), action: Action::Read }
}

//! A store that lets one computer act at a time, in an order that a seed decides, and that answers
//! as a store far away does: not at all, twice, or late.

use super::judge::ComputersJudge;
use crate::session::{hint, names};
use crate::trust::SessionHint;
use oblivio_store::{
    Held, Layer, MemoryStore, Objects, PutMode, ReadAt, Result, StoreAnswer, StoreCall, StoreError,
};
use oblivio_testkit::Dice;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// What is counted over all schedules.
#[derive(Clone, Copy, Debug, Default)]
pub struct ScheduleCounts {
    pub steps: u64,
    pub failed: u64,
    pub late: u64,
    pub crashes: u64,
    pub stalls: u64,
}

impl ScheduleCounts {
    pub fn add(&mut self, other: &Self) {
        self.steps += other.steps;
        self.failed += other.failed;
        self.late += other.late;
        self.crashes += other.crashes;
        self.stalls += other.stalls;
    }
}

/// A change of one object.
#[derive(Clone)]
enum Change {
    Put(String, Vec<u8>, PutMode),
    Delete(String),
}

/// A computer that runs.
#[derive(Clone, Copy, Default)]
struct Berth {
    ended: bool,
    crashed: bool,
    /// It does nothing before this step.
    until: u64,
}

pub struct NetworkState {
    pub dice: Dice,
    pub judge: ComputersJudge,
    pub counts: ScheduleCounts,
    below: MemoryStore,
    turn: usize,
    step: u64,
    berths: Vec<Berth>,
    /// Changes on their way, each with the step when it lands.
    late: Vec<(u64, Change)>,
    /// Writes that were begun, by a computer that has not waited for them.
    begun: Vec<(usize, Change)>,
    /// Of 1000 operations: how many fail, crash, stall. How often a computer goes on.
    fails: u64,
    crashes: u64,
    stalls: u64,
    goes_on: u64,
}

/// A store with several computers before it.
pub struct SimulatedNetwork {
    state: Mutex<NetworkState>,
    woken: Vec<Condvar>,
}

/// What becomes of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    Failed { done: bool, late: bool },
    Crashed { done: bool, late: bool },
}

impl SimulatedNetwork {
    pub fn new(seed: u64, computers: usize, judge: ComputersJudge) -> Self {
        let mut dice = Dice::new(seed);
        let mut chance = |all: &[u64]| all[dice.index(all.len())];
        let (fails, crashes) = (chance(&[0, 30, 80, 150]), chance(&[0, 4, 10]));
        let (stalls, goes_on) = (chance(&[0, 5, 20]), chance(&[20, 60, 90]));
        let state = NetworkState {
            judge,
            counts: ScheduleCounts::default(),
            below: MemoryStore::new(),
            turn: 0,
            step: 0,
            berths: vec![Berth::default(); computers],
            late: Vec::new(),
            begun: Vec::new(),
            fails,
            crashes,
            stalls,
            goes_on,
            dice,
        };
        let woken = (0..computers).map(|_| Condvar::new()).collect();
        Self { state: Mutex::new(state), woken }
    }

    pub fn state(&self) -> MutexGuard<'_, NetworkState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the first turn of a computer.
    pub fn enter(&self, me: usize) {
        drop(self.wait(self.state(), me));
    }

    fn wait<'a>(
        &self,
        mut state: MutexGuard<'a, NetworkState>,
        me: usize,
    ) -> MutexGuard<'a, NetworkState> {
        while state.turn != me {
            state = self.woken[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state
    }

    /// A computer is off for good: its turn passes to another one.
    pub fn leave(&self, me: usize) {
        let mut state = self.state();
        state.berths[me].ended = true;
        if state.choose(me) {
            self.woken[state.turn].notify_one();
        }
    }

    /// A computer starts again after a crash.
    pub fn reboot(&self, me: usize) {
        self.state().berths[me].crashed = false;
    }

    pub fn crashed(&self, me: usize) -> bool {
        self.state().berths[me].crashed
    }

    /// From now on there is one computer, and nothing fails.
    pub fn calm(&self) {
        let mut state = self.state();
        (state.fails, state.crashes, state.stalls) = (0, 0, 0);
        (state.turn, state.berths[0]) = (0, Berth::default());
    }

    /// What is still on its way arrives.
    pub fn arrive(&self) {
        let mut state = self.state();
        for (_, change) in std::mem::take(&mut state.late) {
            state.counts.late += 1;
            let _ = state.apply(&change);
        }
    }

    /// The turns of others, then this computer's.
    fn step(&self, me: usize) -> MutexGuard<'_, NetworkState> {
        let mut state = self.state();
        if state.choose(me) && state.turn != me {
            self.woken[state.turn].notify_one();
            state = self.wait(state, me);
        }
        state
    }
}

impl NetworkState {
    /// Stores a hint that nobody checked.
    pub fn keep_hint(&mut self, hint: &SessionHint) {
        let kept = self.below.put(names::HINT, &hint::to_bytes(hint), PutMode::Replace);
        assert!(kept.is_ok(), "memory");
    }

    /// Draws who acts next. Whether there is anybody.
    fn choose(&mut self, me: usize) -> bool {
        self.step += 1;
        self.counts.steps += 1;
        self.land();
        if self.dice.below(1000) < self.stalls {
            self.counts.stalls += 1;
            self.berths[me].until = self.step + 5 + self.dice.below(400);
        }
        let goes_on = !self.berths[me].ended && self.berths[me].until <= self.step;
        if goes_on && self.dice.percent(self.goes_on) {
            return true;
        }
        let there = |state: &Self| -> Vec<usize> {
            (0..state.berths.len()).filter(|&at| !state.berths[at].ended).collect()
        };
        let all = there(self);
        let Some(soonest) = all.iter().map(|&at| self.berths[at].until).min() else {
            return false;
        };
        self.step = self.step.max(soonest);
        let ready: Vec<usize> =
            all.into_iter().filter(|&at| self.berths[at].until <= self.step).collect();
        self.turn = ready[self.dice.index(ready.len())];
        true
    }

    /// What was on its way and arrives now. Writes that nobody waits for yet arrive at any time.
    fn land(&mut self) {
        let step = self.step;
        let (due, later) =
            std::mem::take(&mut self.late).into_iter().partition(|(at, _)| *at <= step);
        self.late = later;
        let due: Vec<(u64, Change)> = due;
        for (_, change) in due {
            self.counts.late += 1;
            // One that creates exclusively may come too late.
            let _ = self.apply(&change);
        }
        if !self.begun.is_empty() && self.dice.percent(20) {
            let at = self.dice.index(self.begun.len());
            let change = self.begun[at].1.clone();
            let _ = self.apply(&change);
        }
    }

    fn apply(&mut self, change: &Change) -> Result<()> {
        match change {
            Change::Put(name, bytes, mode) => {
                self.below.put(name, bytes, *mode)?;
                self.judge.stored(name, bytes);
                Ok(())
            }
            Change::Delete(name) => self.below.delete(&[name]),
        }
    }

    pub fn holds(&self, name: &str) -> bool {
        self.below.len(name).is_ok_and(|len| len.is_some())
    }

    fn fate(&mut self, changes: bool) -> Fate {
        let crashes = self.dice.below(1000) < self.crashes;
        let fails = self.dice.below(1000) < self.fails;
        if !crashes && !fails {
            return Fate::Done;
        }
        let (done, late) = (changes && self.dice.percent(50), changes && self.dice.percent(50));
        if crashes { Fate::Crashed { done, late } } else { Fate::Failed { done, late } }
    }

    /// Makes a change, and answers or not.
    fn change(&mut self, me: usize, change: &Change) -> Result<()> {
        let fate = self.fate(true);
        let (done, late) = match fate {
            Fate::Done => return self.apply(change),
            Fate::Failed { done, late } | Fate::Crashed { done, late } => (done, late),
        };
        if late {
            let reach = [10, 50, 200][self.dice.index(3)];
            let due = self.step + 1 + self.dice.below(reach);
            self.late.push((due, change.clone()));
        }
        if done {
            // Whether it was refused is not known either.
            let _ = self.apply(change);
        }
        self.fail(me, fate)
    }

    fn fail(&mut self, me: usize, fate: Fate) -> Result<()> {
        match fate {
            Fate::Done => Ok(()),
            Fate::Failed { .. } => {
                self.counts.failed += 1;
                Err(StoreError::io("", io::ErrorKind::TimedOut.into()))
            }
            Fate::Crashed { .. } => {
                self.counts.crashes += 1;
                self.berths[me].crashed = true;
                self.lose(me);
                Err(off())
            }
        }
    }

    /// What a computer had begun when it crashed arrives now, later, or never.
    fn lose(&mut self, me: usize) {
        let (own, others) =
            std::mem::take(&mut self.begun).into_iter().partition(|(of, _)| *of == me);
        self.begun = others;
        let own: Vec<(usize, Change)> = own;
        for (_, change) in own {
            let due = self.step + self.dice.below(300);
            if self.dice.percent(60) {
                self.late.push((due, change));
            }
        }
    }

    /// Waits for one write that was begun.
    fn sync(&mut self, me: usize, name: &str) -> Result<()> {
        let of = |(who, change): &(usize, Change)| {
            *who == me && matches!(change, Change::Put(put, ..) if put == name)
        };
        match self.begun.iter().position(of) {
            Some(at) => {
                let (_, change) = self.begun.remove(at);
                self.change(me, &change)
            }
            None if self.holds(name) => Ok(()),
            None => Err(StoreError::io(name, io::ErrorKind::TimedOut.into())),
        }
    }
}

/// What a computer that is off gets to see: nothing that may pass.
fn off() -> StoreError {
    StoreError::io("", io::ErrorKind::PermissionDenied.into())
}

/// The store as one computer sees it.
pub struct Berthed {
    pub sea: Arc<SimulatedNetwork>,
    pub me: usize,
    pub below: MemoryStore,
}

impl Berthed {
    fn turn(&self) -> Result<MutexGuard<'_, NetworkState>> {
        if self.sea.crashed(self.me) {
            return Err(off());
        }
        Ok(self.sea.step(self.me))
    }

    fn look<T>(&self, ask: impl FnOnce(&MemoryStore) -> Result<T>) -> Result<T> {
        let mut state = self.turn()?;
        let fate = state.fate(false);
        state.fail(self.me, fate)?;
        ask(&state.below)
    }

    /// What is asked side by side is answered in any order, with others between. Only now and then
    /// it is, or schedules would be long.
    fn order(&self, count: usize) -> Vec<usize> {
        let mut order: Vec<usize> = (0..count).collect();
        self.sea.state().dice.shuffle(&mut order);
        order
    }

    fn apart(&self, nth: usize) -> bool {
        nth == 0 || self.sea.state().dice.percent(15)
    }

    fn changes(&self, changes: &[Change]) -> Result<()> {
        for at in self.order(changes.len()) {
            self.turn()?.change(self.me, &changes[at])?;
        }
        Ok(())
    }
}

impl Layer for Berthed {
    type Below = MemoryStore;

    fn below(&self) -> &MemoryStore {
        &self.below
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::Read(reads) => {
                for (nth, at) in self.order(reads.len()).into_iter().enumerate() {
                    let ReadAt { object, offset, .. } = reads[at];
                    let buf = &mut *reads[at].buf;
                    let mut one = [ReadAt { object, offset, buf }];
                    if self.apart(nth) {
                        self.look(|below| below.read(&mut one))?;
                    } else {
                        self.sea.state().below.read(&mut one)?;
                    }
                }
                Ok(StoreAnswer::Done)
            }
            StoreCall::Lens(names) => {
                let mut lens = vec![None; names.len()];
                for (nth, at) in self.order(names.len()).into_iter().enumerate() {
                    lens[at] = if self.apart(nth) {
                        self.look(|below| below.len(names[at]))?
                    } else {
                        self.sea.state().below.len(names[at])?
                    };
                }
                Ok(lens.into())
            }
            StoreCall::Len(name) => self.look(|below| below.len(name)).map(StoreAnswer::from),
            StoreCall::ListUnder(prefix) => {
                self.look(|below| below.list_under(prefix)).map(StoreAnswer::from)
            }
            StoreCall::Begin(objects) => {
                let mut state = self.turn()?;
                for (name, bytes) in objects.iter() {
                    let put = Change::Put((*name).to_owned(), bytes.to_vec(), PutMode::Replace);
                    state.begun.push((self.me, put));
                }
                let fate = state.fate(false);
                state.fail(self.me, fate).map(StoreAnswer::from)
            }
            StoreCall::Settle(names) => {
                for at in self.order(names.len()) {
                    self.turn()?.sync(self.me, names[at])?;
                }
                Ok(StoreAnswer::Done)
            }
            StoreCall::Put(name, bytes, mode) => {
                let put = Change::Put((*name).to_owned(), bytes.to_vec(), *mode);
                self.changes(&[put]).map(StoreAnswer::from)
            }
            StoreCall::Delete(names) => {
                let deletes = names.iter().map(|name| Change::Delete((*name).to_owned()));
                self.changes(&deletes.collect::<Vec<_>>()).map(StoreAnswer::from)
            }
            other => panic!("sessions make no such call: {other:?}"),
        }
    }
}

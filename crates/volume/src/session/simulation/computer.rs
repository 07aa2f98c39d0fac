//! A computer: it begins sessions and does with them what a volume does.

use super::network::{Berthed, SimulatedNetwork};
use crate::environment::Environment;
use crate::session::entry::{BEAT, BEGIN, COMMIT, Mark, RELEASE};
use crate::session::opening::SessionOpening;
use crate::session::planted::{Planted, PlantedFault};
use crate::session::writer::OwnSession;
use crate::session::{ClaimMode, FIRST_KIND, History, SearchStart, SessionId, Vault, Who};
use crate::trust::{ComputerId, SessionHint};
use crate::{Error, Result};
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_store::{MemoryStore, Objects};
use oblivio_testkit::Dice;
use std::collections::VecDeque;
use std::sync::Arc;

/// How often a computer stores an object anew that the store did not answer for.
const TRIES: usize = 3;

pub struct Computer {
    pub sea: Arc<SimulatedNetwork>,
    pub me: usize,
    pub way: ClaimMode,
    pub fault: Option<PlantedFault>,
    pub dice: Dice,
    /// Its last session, and whether that ended.
    pub known: Option<(SessionHint, bool)>,
}

/// Checkpoints that may wait for their objects.
const MOST_PENDING: usize = 2;

/// A session that runs.
struct Run<'a> {
    computer: &'a mut Computer,
    store: Arc<Berthed>,
    session: OwnSession,
    /// The objects that the newest checkpoint needs, and those of the newest commit.
    base: Vec<String>,
    confirmed: Vec<String>,
    pending: VecDeque<Pending>,
    /// What the last commit replaced.
    replaced: Vec<String>,
    /// Entries and objects that nobody needs once the next checkpoint stands.
    covered: Vec<String>,
    made: u64,
}

/// A checkpoint that is not confirmed.
struct Pending {
    mark: Mark,
    /// All that it needs; the last one is its own.
    base: Vec<String>,
    replaced: Vec<String>,
}

impl Computer {
    /// A few sessions, one after the other.
    pub fn run(&mut self) {
        for _ in 0..self.dice.below(3) + 1 {
            self.life();
            self.sea.reboot(self.me);
            if self.sea.state().judge.wrong.is_some() {
                return;
            }
        }
    }

    /// One session. Errors that a store on a network may cause end it; any other is a fault.
    pub fn life(&mut self) {
        let ops = self.dice.below(14);
        match self.begin() {
            Ok(mut run) => {
                let ended = run.live(ops);
                run.computer.accept(ended.err());
            }
            Err(error) => self.accept(Some(error)),
        }
    }

    fn accept(&self, error: Option<Error>) {
        match error {
            None | Some(Error::Busy) => {}
            Some(Error::Overtaken) => self.sea.state().judge.overtaken += 1,
            Some(Error::Store(error)) if error.may_pass() => {}
            Some(_) if self.sea.crashed(self.me) => {}
            Some(error) => self.sea.state().judge.accuse(format!("it says: {error}")),
        }
    }

    /// What it knows, or nothing. The hint in the store is made up now and then.
    fn search_start(&mut self) -> SearchStart {
        let known = self.known.filter(|_| self.dice.percent(80));
        if self.dice.percent(10) {
            let mut numbers = || self.dice.below(5);
            let [number, random, pointer] = [numbers() + 1, numbers(), numbers()];
            let (entry, more) = (numbers() + 1, numbers());
            let last = entry + more;
            let random = known.filter(|_| more > 0).map_or(random, |(hint, _)| hint.random);
            let made_up = SessionHint { number, random, pointer, entry, last };
            self.sea.state().keep_hint(&made_up);
        }
        known.map(|(hint, ended)| SearchStart::own(hint, ended)).unwrap_or_default()
    }

    fn begin(&mut self) -> Result<Run<'_>> {
        let below = MemoryStore::new();
        let store = Arc::new(Berthed { sea: Arc::clone(&self.sea), me: self.me, below });
        let seed = self.dice.next_u64();
        let sealer = Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(seed)));
        let opening = SessionOpening {
            store: store.clone(),
            way: self.way,
            vault: Vault::new(VolumeId([7; 16]), sealer),
            environment: Environment::from_seed(seed),
            who: Who { computer: ComputerId([self.me as u8; 16]), host: String::new() },
            was: ComputerId([0; 16]),
            start: self.search_start(),
            cache: None,
            accept_gaps: false,
            stands,
            on_wait: None,
            planted: Planted(self.fault),
        };
        let (session, history) = opening.begin()?;
        self.sea.state().judge.begun(session.id(), &history);
        let covered = covered(&history);
        let base = history.commit.map(|(_, payload)| needed(&payload)).unwrap_or_default();
        let (confirmed, pending, replaced) = (base.clone(), VecDeque::new(), Vec::new());
        let computer = self;
        let run =
            Run { computer, store, session, base, confirmed, pending, replaced, covered, made: 0 };
        run.check_objects();
        Ok(run)
    }
}

/// The objects that a commit needs, by its payload.
fn needed(payload: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(payload).lines().map(str::to_owned).collect()
}

/// Whether the object of a checkpoint itself is stored; those of earlier ones are.
fn stands(store: &dyn Objects, _: SessionId, payload: &[u8]) -> Result<bool> {
    let own = needed(payload).pop().unwrap_or_default();
    Ok(store.len(&own)?.is_some())
}

/// What nobody needs after the next commit: entries, and objects of checkpoints that do not stand.
fn covered(history: &History) -> Vec<String> {
    let marks = history.records.iter().map(|(mark, ..)| *mark);
    let commit = history.commit.iter().map(|(mark, _)| *mark);
    let entries = marks.chain(commit).map(|mark| mark.session.entry(mark.index));
    let void = history.records.iter().filter(|(_, kind, _)| *kind == COMMIT);
    entries.chain(void.filter_map(|(_, _, payload)| needed(payload).pop())).collect()
}

impl Run<'_> {
    fn live(&mut self, ops: u64) -> Result<()> {
        let done = self.session.start(b"own");
        if self.session.mark().index == 0 {
            return done.map(drop);
        }
        self.tell(BEGIN, None, done.map(drop))?;
        for _ in 0..ops {
            match self.computer.dice.below(10) {
                0..4 => self.note(false)?,
                4..6 => self.note(true)?,
                6..9 => self.commit()?,
                _ if self.computer.dice.percent(30) => {
                    let done = self.session.beat();
                    self.keep_covered();
                    self.tell(BEAT, Some(b""), done.map(drop))?;
                }
                _ => {
                    let done = self.session.settle();
                    self.tell(FIRST_KIND, None, done)?;
                }
            }
        }
        if self.computer.dice.percent(50) {
            let done = self.session.release(b"");
            self.tell(RELEASE, Some(b""), done)?;
        }
        Ok(())
    }

    /// Tells the judge of the last entry. A failure of the store is no reason to end: what was sent
    /// is settled later.
    fn tell(&mut self, kind: u64, payload: Option<&[u8]>, done: Result<()>) -> Result<()> {
        let (mark, settled) = (self.session.mark(), self.session.settled());
        self.computer.sea.state().judge.went_on(mark, kind, payload.unwrap_or(b"own"), settled);
        match done {
            Ok(()) if settled > 0 => {
                let ended = kind == RELEASE && settled == mark.index;
                self.computer.known = Some((self.session.hint(), ended));
                Ok(())
            }
            Ok(()) => Ok(()),
            Err(Error::Store(error)) if error.may_pass() => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn note(&mut self, wait: bool) -> Result<()> {
        self.made += 1;
        let text = format!("note {} of {:x}", self.made, self.session.id().random);
        let sent = if wait {
            self.session.append(FIRST_KIND, text.as_bytes(), 0)
        } else {
            self.session.send(FIRST_KIND, text.as_bytes(), 0)
        };
        self.keep_covered();
        let settled = wait && sent.is_ok();
        self.tell(FIRST_KIND, Some(text.as_bytes()), sent.map(drop))?;
        if settled {
            self.check_objects();
        }
        Ok(())
    }

    fn keep_covered(&mut self) {
        let mark = self.session.mark();
        let name = mark.session.entry(mark.index);
        if self.covered.last() != Some(&name) {
            self.covered.push(name);
        }
    }

    /// Begins to store an object, and makes a checkpoint that has it instead of an earlier one.
    fn commit(&mut self) -> Result<()> {
        self.made += 1;
        let object = format!("o-{:016x}-{}", self.session.id().random, self.made);
        self.begin(&object);
        let mut base = self.base.clone();
        base.push(object);
        let mut gone = Vec::new();
        while base.len() > 2 {
            gone.push(base.remove(0));
        }
        let payload = base.join("\n");
        let done = self.session.checkpoint(payload.as_bytes(), self.made.is_multiple_of(2));
        let Ok(mark) = done else { return done.map(drop) };
        gone.append(&mut self.covered);
        self.keep_covered();
        self.base.clone_from(&base);
        self.tell(COMMIT, Some(payload.as_bytes()), Ok(()))?;
        self.pending.push_back(Pending { mark, base, replaced: gone });
        while self.pending.len() > MOST_PENDING || self.computer.dice.percent(40) {
            if self.pending.is_empty() || !self.confirm(payload.as_bytes())? {
                break;
            }
        }
        Ok(())
    }

    /// Begins to store an object; a failure shows when it is waited for.
    fn begin(&self, object: &str) {
        let _ = self.store.begin(&[(object, object.as_bytes())]);
    }

    /// Waits for the object of the oldest checkpoint and confirms it. Now and then it deletes what
    /// the one before replaced. Whether that was done; `last` is the newest checkpoint's payload.
    fn confirm(&mut self, last: &[u8]) -> Result<bool> {
        let Pending { mark, base, .. } = &self.pending[0];
        let (mark, object) = (*mark, base[base.len() - 1].clone());
        let wait = || {
            let stored = self.store.settle(&[&object]);
            stored.is_err().then(|| self.begin(&object));
            stored.is_ok()
        };
        if self.computer.fault != Some(PlantedFault::EarlyConfirm) && !(0..TRIES).any(|_| wait()) {
            return Ok(false);
        }
        let done = self.session.confirm(mark);
        let confirmed = done.is_ok();
        self.tell(COMMIT, Some(last), done)?;
        if !confirmed {
            return Ok(false);
        }
        let Some(Pending { base, mut replaced, .. }) = self.pending.pop_front() else {
            return Ok(false);
        };
        self.confirmed = base;
        // After the pointer others had a turn.
        if self.session.look().is_ok() {
            self.check_objects();
        }
        self.replaced.append(&mut replaced);
        if self.computer.dice.percent(70) {
            let names: Vec<&str> = self.replaced.iter().map(String::as_str).collect();
            let done = self.session.delete(&names);
            if done.is_ok() {
                self.computer.sea.state().judge.confirmed(mark);
                self.replaced.clear();
            }
            self.tell(COMMIT, Some(last), done)?;
        }
        Ok(true)
    }

    /// In the step in which a session sees that it is the last, its commit has its objects.
    fn check_objects(&self) {
        let mut state = self.computer.sea.state();
        if let Some(gone) = self.confirmed.iter().find(|name| !state.holds(name)) {
            let SessionId { number, .. } = self.session.id();
            state.judge.accuse(format!("session {number} misses {gone}"));
        }
    }
}

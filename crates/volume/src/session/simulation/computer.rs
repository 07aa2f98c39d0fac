//! A computer: it begins sessions and does with them what a volume does.

use super::sea::{Berthed, Sea};
use crate::environment::Environment;
use crate::session::entry::{BEGIN, COMMIT, RELEASE};
use crate::session::planted::{Fault, Planted};
use crate::session::writer::{Opening, Session};
use crate::session::{FIRST_KIND, History, SessionId, Vault, Way, Who};
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{SealRoot, Sealer, SeededEntropy, VolumeId};
use oblivio_store::{Blobs, MemoryStore, PutMode};
use oblivio_testkit::Dice;
use std::sync::Arc;

/// How often a computer stores an object anew that the store did not answer for.
const TRIES: usize = 3;

pub struct Computer {
    pub sea: Arc<Sea>,
    pub me: usize,
    pub way: Way,
    pub fault: Option<Fault>,
    pub dice: Dice,
}

/// A session that runs.
struct Run<'a> {
    computer: &'a mut Computer,
    store: Arc<Berthed>,
    session: Session,
    /// The objects that the newest commit needs.
    base: Vec<String>,
    /// Entries before that commit, which nobody needs once it stands.
    covered: Vec<String>,
    made: u64,
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

    fn begin(&mut self) -> Result<Run<'_>> {
        let below = MemoryStore::new();
        let store = Arc::new(Berthed { sea: Arc::clone(&self.sea), me: self.me, below });
        let seed = self.dice.next_u64();
        let sealer = Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(seed)));
        let opening = Opening {
            store: store.clone(),
            way: self.way,
            vault: Vault::new(VolumeId([7; 16]), sealer),
            environment: Environment::from_seed(seed),
            who: Who { computer: ComputerId([self.me as u8; 16]), host: String::new() },
            hint: self.dice.below(4),
            accept_gaps: false,
            planted: Planted(self.fault),
        };
        let (session, history) = opening.begin()?;
        self.sea.state().judge.begun(session.id(), &history);
        let covered = covered(&history);
        let base = history.commit.map(|(_, payload)| needed(&payload)).unwrap_or_default();
        let run = Run { computer: self, store, session, base, covered, made: 0 };
        run.check_objects();
        Ok(run)
    }
}

/// The objects that a commit needs, by its payload.
fn needed(payload: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(payload).lines().map(str::to_owned).collect()
}

/// What nobody needs after the next commit.
fn covered(history: &History) -> Vec<String> {
    let marks = history.records.iter().map(|(mark, ..)| *mark);
    let commit = history.commit.iter().map(|(mark, _)| *mark);
    marks.chain(commit).map(|mark| mark.session.entry(mark.index)).collect()
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

    /// Stores an object, commits to it instead of an earlier one, and deletes what the commit
    /// replaced. Deleting settles, so it need not wait for the commit's answer.
    fn commit(&mut self) -> Result<()> {
        self.made += 1;
        let object = format!("o-{:016x}-{}", self.session.id().random, self.made);
        let put = |_| self.store.put(&object, object.as_bytes(), PutMode::Replace);
        if (0..TRIES).map(put).all(|stored| stored.is_err()) {
            return Ok(());
        }
        let mut base = self.base.clone();
        base.push(object);
        let mut gone = Vec::new();
        while base.len() > 2 {
            gone.push(base.remove(0));
        }
        let payload = base.join("\n");
        let last = self.session.mark();
        let done = self.session.commit(payload.as_bytes(), 0);
        let settled = done.is_ok();
        if self.session.mark() == last {
            return done.map(drop);
        }
        gone.append(&mut self.covered);
        self.keep_covered();
        self.base = base;
        self.tell(COMMIT, Some(payload.as_bytes()), done.map(drop))?;
        if settled {
            self.check_objects();
        }
        if self.computer.dice.percent(70) {
            let names: Vec<&str> = gone.iter().map(String::as_str).collect();
            let done = self.session.delete(&names);
            self.tell(COMMIT, Some(payload.as_bytes()), done)?;
        }
        Ok(())
    }

    /// In the step in which a session sees that it is the last, its commit has its objects.
    fn check_objects(&self) {
        let mut state = self.computer.sea.state();
        if let Some(gone) = self.base.iter().find(|name| !state.holds(name)) {
            let SessionId { number, .. } = self.session.id();
            state.judge.accuse(format!("session {number} misses {gone}"));
        }
    }
}

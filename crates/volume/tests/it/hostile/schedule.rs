//! One schedule: sessions of some computers on one store, and the store's deeds in between.

use super::holes::{Computer, Hole};
use super::oracle::{BLOCKS, Oracle, Outcome, Seen, expect_refusal};
use super::store::{Event, Hostile, damage, meddle};
use super::volumes::{Engine, MEMORY, content, made, other_volume, passphrase, write};
use oblivio_store::MemoryStore;
use oblivio_testkit::Dice;
use oblivio_volume::{BlockSpace, ClosedVolume, Error, OpenOptions, ShownKind, Volume};
use std::sync::{Arc, Mutex};

/// Fewer paths than this may be equal by chance.
const TELLING: usize = 6;

/// The counts so far.
#[derive(Debug, Default)]
pub struct Counts {
    pub sessions: u64,
    pub opened: u64,
    pub refused: u64,
    /// Sessions of schedules in which the store only dies.
    pub honest: u64,
    pub acknowledged: u64,
    pub died: u64,
    /// Sessions beside another one.
    pub beside: u64,
    /// Repairs that were carried out, and blocks that were written anew after one.
    pub repaired: u64,
    pub rewritten: u64,
}

/// A computer, and what it may rely on.
struct Party {
    computer: Computer,
    /// The newest state that it had acknowledged, or was shown.
    newest: usize,
    /// The paths it was shown, session by session, of the same blocks in the same order.
    paths: Vec<Vec<u64>>,
    /// The store as its last session left it, if nothing came between.
    left: Option<MemoryStore>,
}

/// What the store did to what the last session left, or to all of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// Nothing, or it changed bits: what this computer left is whole but for those.
    Damaged(usize),
    /// A state that was whole took its place.
    PutBack,
    Anything,
}

struct World<'a> {
    engine: Engine,
    dice: Dice,
    hole: Option<Hole>,
    honest: bool,
    /// Whether the store damages bits as well, and each session repairs before it writes.
    repairs: bool,
    /// Whether this session repaired all of it.
    mended: bool,
    /// What became of the stored content since the last session.
    since: Since,
    now: Arc<MemoryStore>,
    past: Vec<MemoryStore>,
    /// Whether the stored content is one that sessions left, as a whole; and the same of each past
    /// state.
    whole: bool,
    wholes: Vec<bool>,
    oracle: Oracle,
    parties: Vec<Party>,
    counts: &'a mut Counts,
}

/// Plays the schedule of a seed.
///
/// # Errors
/// Something forbidden happened.
pub fn play(engine: Engine, seed: u64, hole: Option<Hole>, counts: &mut Counts) -> Outcome<()> {
    play_as(engine, seed, (hole, false), counts)
}

/// The same, where the store also damages bits, and each session repairs before it writes.
///
/// # Errors
/// Something forbidden happened.
pub fn play_repairs(
    engine: Engine,
    seed: u64,
    hole: Option<Hole>,
    counts: &mut Counts,
) -> Outcome<()> {
    play_as(engine, seed, (hole, true), counts)
}

fn play_as(
    engine: Engine,
    seed: u64,
    (hole, repairs): (Option<Hole>, bool),
    counts: &mut Counts,
) -> Outcome<()> {
    let mut dice = Dice::new(seed);
    let computers = 2 + dice.below(2);
    let honest = hole.is_none() && dice.below(4) == 0;
    let party =
        |_| Party { computer: Computer::new(hole), newest: 0, paths: Vec::new(), left: None };
    let now = Arc::new(made(engine).snapshot());
    let past = vec![now.snapshot()];
    let parties = (0..computers).map(party).collect();
    let oracle = Oracle::new();
    World {
        engine,
        dice,
        hole,
        honest,
        repairs,
        since: Since::Anything,
        mended: false,
        now,
        past,
        whole: true,
        wholes: vec![true],
        oracle,
        parties,
        counts,
    }
    .run()
}

impl World<'_> {
    fn run(mut self) -> Outcome<()> {
        for _ in 0..3 + self.dice.below(6) {
            let who = self.dice.below(self.parties.len() as u64) as usize;
            self.session(who, true)?;
            self.past.push(self.now.snapshot());
            self.wholes.push(self.whole);
            if !self.honest && self.dice.below(2) == 0 {
                let other = other_volume(self.engine);
                let restored = meddle(&self.now, &self.past, other, &mut self.dice);
                self.whole = restored.is_some_and(|number| self.wholes[number]);
                self.since = if self.whole { Since::PutBack } else { Since::Anything };
            }
            if self.repairs && !self.honest && self.dice.below(2) == 0 {
                damage(&self.now, &mut self.dice);
                self.whole = false;
                if self.since == Since::PutBack {
                    self.since = Since::Anything;
                }
            }
        }
        // Nobody is refused its own last state.
        for who in 0..self.parties.len() {
            let Some(left) = self.parties[who].left.take() else { continue };
            self.now.restore(&left);
            (self.honest, self.since) = (true, Since::Anything);
            self.session(who, false)?;
        }
        Ok(())
    }

    /// A session of a computer, which may die or meet a lying store.
    fn session(&mut self, who: usize, may_die: bool) -> Outcome<()> {
        self.counts.sessions += 1;
        self.counts.honest += u64::from(self.honest);
        let store =
            Arc::new(Hostile::new(Arc::clone(&self.now), &self.past, other_volume(self.engine)));
        let at = 1 + self.dice.below(50);
        let at = if self.repairs { at * (1 + self.dice.below(4)) } else { at };
        let mut meddled = false;
        match self.dice.below(if self.honest { 2 } else { 5 }) {
            0 | 4 if may_die => store.plan(at, Event::Die { after: self.dice.below(2) == 0 }),
            2 if may_die => {
                store.plan(at, Event::Meddle(self.dice.next_u64()));
                meddled = true;
            }
            3 if may_die && self.dice.below(2) == 0 => {
                store.lie_about_the_header();
                meddled = true;
            }
            _ => {}
        }
        let paths = Arc::new(Mutex::new(Vec::new()));
        let opened = self.open(who, &store, &paths);
        let mut volume = match opened {
            Ok(volume) => volume,
            Err(error) => {
                self.counts.refused += 1;
                // It may have learnt of a newer state before it failed.
                if !matches!(error, Error::RolledBack(_) | Error::OtherVolume(_)) {
                    self.parties[who].left = None;
                }
                if !meddled && !store.died() {
                    self.told_apart(who, &error)?;
                }
                self.since = Since::Anything;
                return match self.honest && !store.died() {
                    true => Err(format!("computer {who} is refused without a reason: {error}")),
                    false => expect_refusal(&error, store.died()),
                };
            }
        };
        self.counts.opened += 1;
        // A replay shows what was shown before.
        paths.lock().expect("one thread").clear();
        let alone = self.steps(who, &mut volume, &store, &paths)?;
        drop(volume);
        self.counts.died += u64::from(store.died());
        let mended = std::mem::take(&mut self.mended);
        self.whole = (self.whole || mended) && alone && !meddled;
        self.since = if self.whole { Since::Damaged(who) } else { Since::Anything };
        self.parties[who].left = self.whole.then(|| self.now.snapshot());
        Ok(())
    }

    fn open(
        &self,
        who: usize,
        store: &Arc<Hostile>,
        paths: &Arc<Mutex<Vec<u64>>>,
    ) -> Result<Volume, Error> {
        let seen = Arc::clone(paths);
        let on_shown: oblivio_volume::OnShown = Box::new(move |shown| {
            if shown.kind == ShownKind::Batch {
                let drawn = &shown.leaves[..shown.leaves.len() - shown.scheduled];
                seen.lock().expect("one thread").extend(drawn);
            }
        });
        let mut computer = self.parties[who].computer.clone();
        if self.hole == Some(Hole::HeaderReadTwice) {
            let named = ClosedVolume::read(store.clone())?.header().volume;
            computer = computer.told(named);
        }
        let options = OpenOptions {
            memory_bytes: MEMORY,
            keeper: Some(Box::new(computer)),
            on_shown: Some(on_shown),
            ..OpenOptions::default()
        };
        ClosedVolume::read(store.clone())?.open(&passphrase(), options)
    }

    /// A session's steps. Says whether only its own changes came between them.
    fn steps(
        &mut self,
        who: usize,
        volume: &mut Volume,
        store: &Hostile,
        paths: &Mutex<Vec<u64>>,
    ) -> Outcome<bool> {
        let failed = |error: Error| expect_refusal(&error, store.died());
        let mut alone = true;
        let found = volume.reserve(BLOCKS + 1).and_then(|()| content(volume));
        self.compare_paths(who, paths)?;
        let found = match found {
            Ok(found) => found,
            Err(error) => return failed(error).map(|()| alone),
        };
        let states = self.stands_at(who, &found)?;
        let mut at = states[0];
        if self.repairs {
            match self.mend(who, &states, volume, &found) {
                Ok(now) => at = now?,
                Err(error) => return failed(error).map(|()| false),
            }
        } else if found.contains(&None) {
            return Ok(false);
        }
        for _ in 0..self.dice.below(4) {
            if !self.honest && self.dice.below(6) == 0 {
                alone = false;
                self.beside(who)?;
            }
            let block = 1 + self.dice.below(BLOCKS);
            let next = self.oracle.write(at, block);
            let op = write(block, next as u64);
            let written = volume.access(vec![op]);
            at = next;
            let synced = written.and_then(|_| {
                self.parties[who].computer.sync(true);
                let synced = volume.commit();
                self.parties[who].computer.sync(false);
                synced
            });
            match synced {
                Ok(()) => self.reach(who, at, "is told that it is stored")?,
                Err(error) => return failed(error).map(|()| alone),
            }
            self.counts.acknowledged += 1;
        }
        if self.dice.below(2) == 0
            && let Err(error) = volume.finish()
        {
            return failed(error).map(|()| alone);
        }
        Ok(alone)
    }

    /// The user repairs the volume, and writes anew what is lost. What can be read stays as it is.
    fn mend(
        &mut self,
        who: usize,
        states: &[usize],
        volume: &mut Volume,
        found: &Seen,
    ) -> Result<Outcome<usize>, Error> {
        self.mended = match volume.repair(&mut |_, _| {}) {
            Ok(()) => true,
            Err(Error::Unsupported(_)) => false,
            Err(error) => return Err(error),
        };
        volume.finish()?;
        let after = content(volume)?;
        // The store may have damaged more by now. What a tree lost stays lost; where nobody sees
        // what is read, the store may also give back what it kept.
        let same = |(now, then): (&Option<u64>, &Option<u64>)| now.is_none() || now == then;
        let fits = self.oracle.find(self.parties[who].newest, &after);
        let states: Vec<usize> = states.iter().copied().filter(|it| fits.contains(it)).collect();
        let stays = self.engine == Engine::Sequential || after.iter().zip(found).all(same);
        if !stays || states.is_empty() {
            return Ok(Err(format!("a repair made {after:?} of {found:?}")));
        }
        self.counts.repaired += u64::from(self.mended);
        let mut at = states;
        for block in (1..=BLOCKS).filter(|block| after[*block as usize - 1].is_none()) {
            let next = self.oracle.write_on(&at, block);
            let op = write(block, next as u64);
            at = vec![next];
            volume.access(vec![op])?;
            self.counts.rewritten += 1;
        }
        self.parties[who].computer.sync(true);
        let synced = volume.commit();
        self.parties[who].computer.sync(false);
        synced?;
        Ok(self.reach(who, at[0], "is told that it is repaired").map(|()| at[0]))
    }

    /// Damage is no rollback, and a rollback is no damage.
    fn told_apart(&self, who: usize, error: &Error) -> Outcome<()> {
        let rolled_back = matches!(error, Error::RolledBack(_) | Error::OtherVolume(_));
        match self.since {
            Since::Damaged(by) if by == who && rolled_back => {
                Err(format!("computer {who} takes damage for a rollback: {error}"))
            }
            Since::PutBack if self.hole.is_none() && !rolled_back => {
                Err(format!("computer {who} takes a rollback for damage: {error}"))
            }
            _ => Ok(()),
        }
    }

    /// A session beside another one on the same store: of another computer, which cannot know, or
    /// of the same, which must.
    fn beside(&mut self, who: usize) -> Outcome<()> {
        let other = self.dice.below(self.parties.len() as u64) as usize;
        if other == who && self.hole != Some(Hole::NoLock) {
            let store = Arc::new(Hostile::new(
                Arc::clone(&self.now),
                &self.past,
                other_volume(self.engine),
            ));
            return match self.open(who, &store, &Arc::default()) {
                Ok(_) => Err(format!("computer {who} has two sessions at once")),
                Err(_) => Ok(()),
            };
        }
        self.counts.beside += 1;
        // No further session beside that one.
        let honest = std::mem::replace(&mut self.honest, false);
        let after = Dice::new(self.dice.clone().next_u64());
        let done = self.short_session(other);
        self.dice = after;
        self.honest = honest;
        done
    }

    /// A session that writes once.
    fn short_session(&mut self, who: usize) -> Outcome<()> {
        let store =
            Arc::new(Hostile::new(Arc::clone(&self.now), &self.past, other_volume(self.engine)));
        let paths = Arc::default();
        self.parties[who].left = None;
        let Ok(mut volume) = self.open(who, &store, &paths) else { return Ok(()) };
        paths.lock().expect("one thread").clear();
        let Ok(found) = volume.reserve(BLOCKS + 1).and_then(|()| content(&mut volume)) else {
            return self.compare_paths(who, &paths);
        };
        self.compare_paths(who, &paths)?;
        let states = self.stands_at(who, &found)?;
        if found.contains(&None) {
            return Ok(());
        }
        let block = 1 + self.dice.below(BLOCKS);
        let next = self.oracle.write(states[0], block);
        let op = write(block, next as u64);
        self.parties[who].computer.sync(true);
        let synced = volume.access(vec![op]).and_then(|_| volume.commit());
        self.parties[who].computer.sync(false);
        if synced.is_ok() {
            self.reach(who, next, "is told that it is stored")?;
            if self.dice.below(2) == 0 {
                let _ = volume.finish();
            }
        }
        Ok(())
    }

    /// The state of this content, which the computer now knows; where blocks are lost it may be one
    /// of several, and is not noted. An honest store loses nothing.
    fn stands_at(&mut self, who: usize, found: &Seen) -> Outcome<Vec<usize>> {
        if self.honest && found.contains(&None) {
            return Err(format!("computer {who} lost blocks without a reason: {found:?}"));
        }
        let newest = self.parties[who].newest;
        let states = self.oracle.find(newest, found);
        let first = *states.first().ok_or(format!("no state there was: {found:?}"))?;
        self.reach(who, first, "is shown")?;
        if found.contains(&None) {
            self.parties[who].newest = newest;
        }
        Ok(states)
    }

    /// Notes that a computer is now at this state.
    fn reach(&mut self, who: usize, state: usize, how: &str) -> Outcome<()> {
        let party = &mut self.parties[who];
        if !self.oracle.leads(party.newest, state) {
            let newest = party.newest;
            return Err(format!("computer {who} knows state {newest}, and {how} state {state}"));
        }
        party.newest = state;
        Ok(())
    }

    /// Checks that this computer never saw these paths before, of the same blocks in the same
    /// order.
    fn compare_paths(&mut self, who: usize, paths: &Mutex<Vec<u64>>) -> Outcome<()> {
        let mut shown = std::mem::take(&mut *paths.lock().expect("one thread"));
        shown.truncate(BLOCKS as usize);
        let party = &mut self.parties[who];
        for before in &party.paths {
            let both = shown.len().min(before.len());
            if both >= TELLING && shown[..both] == before[..both] {
                return Err(format!("computer {who} is shown {both} paths again: {shown:?}"));
            }
        }
        party.paths.push(shown);
        Ok(())
    }
}

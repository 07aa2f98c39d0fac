//! A session begins: it finds the newest one, asks who has the volume, takes the next number, and
//! reads what was before it.

use super::claim::{self, ClaimMode, Claims, Who};
use super::entry::Start;
use super::hint;
use super::history::{History, HistoryReader, Run, SearchStart, Stands};
use super::names::{self, SessionId};
use super::others::{Holder, OtherComputer};
use super::planted::{Planted, PlantedFault};
use super::vault::Vault;
use super::writer::OwnSession;
use crate::environment::Environment;
use crate::options::OnWait;
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::{Entropy, Kind};
use oblivio_store::{Objects, Store};
use std::sync::Arc;
use std::time::Duration;

/// Attempts to take a number while others take it too.
const ATTEMPTS: u32 = 40;
/// The first pause between two; it doubles, to 64 times that.
const PAUSE: Duration = Duration::from_millis(50);

/// How a session begins.
pub struct SessionOpening {
    pub store: Arc<dyn Objects>,
    pub way: ClaimMode,
    pub vault: Vault,
    pub environment: Environment,
    pub who: Who,
    /// The identity of this computer's session before.
    pub was: ComputerId,
    /// Where the search for the newest session begins. A wrong place costs only requests.
    pub start: SearchStart,
    /// The disk cache of this computer, for the last entries of its session.
    pub cache: Option<Arc<dyn Store>>,
    /// Whether a claim that does not open may hide a session.
    pub accept_gaps: bool,
    /// Whether the store has all objects of a checkpoint.
    pub stands: Stands,
    /// Asks the computer that has the volume for it, and waits. Without it, the volume is taken
    /// over at once.
    pub on_wait: Option<OnWait>,
    pub planted: Planted,
}

impl SessionOpening {
    /// Takes the next number, then reads the history. Nothing is shown to the store yet that could
    /// be shown again: call [`Session::start`] before any read that follows from it.
    ///
    /// # Errors
    /// `Overtaken` if another computer began meanwhile, `Busy` if others kept on taking the number.
    /// `Held` if another one goes on with the volume. `Tampered` if something is gone or damaged
    /// that an honest store has. Those of the store.
    pub fn begin(mut self) -> Result<(OwnSession, History)> {
        let mut newest = self.search()?;
        if self.start.ended {
            // Of this computer, and ended: there is nobody to be asked, and nothing after that.
            if let Some(id) = self.claim(newest + 1)? {
                let mut reader = self.asking(&mut newest).reader;
                let history = reader.history(id.number);
                let known = !reader.start.void;
                return self.stand(id, history, known);
            }
            self.start.ended = false;
            newest = Claims { store: &*self.store, way: self.way }.largest(newest + 1)?;
        }
        let mut seen = None;
        if let Some(mut on_wait) = self.on_wait.take() {
            seen = self.asking(&mut newest).wait(&mut on_wait)?;
        }
        let early = self.planted.is(PlantedFault::EarlyRead);
        let early = early.then(|| self.read(newest + 1)).transpose()?;
        let id = self.take(newest)?;
        let history = match early {
            Some(history) => Ok(history),
            None => {
                let (history, last) = self.read_after(id.number, seen)?;
                if last {
                    return self.stand(id, history, true);
                }
                history
            }
        };
        self.stand(id, history, false)
    }

    /// The session with this number, on this history. Its reading may fail, and it may be of the
    /// past, only because a later session began.
    fn stand(
        self,
        id: SessionId,
        history: Result<History>,
        known: bool,
    ) -> Result<(OwnSession, History)> {
        let who = self.who.clone();
        let Self { store, cache, way, vault, planted, .. } = self;
        let mut session = OwnSession::new(store, cache, (way, vault), planted, id);
        // What is known as a whole cannot change.
        if !known || history.is_err() {
            session.look()?;
        }
        let history = history?;
        let commit = history.commit.as_ref().map(|(mark, _)| *mark);
        let copy = claim::seal(&mut session.vault, Kind::Claim, id, &who)?;
        session.stand_on(Start { parent: history.parent, commit }, copy);
        Ok((session, history))
    }

    /// The history before a session that has this number now. `seen` is what the newest one had
    /// before. And whether all of it was read when no later session had begun.
    fn read_after(&mut self, number: u64, seen: Option<Run>) -> Result<(Result<History>, bool)> {
        let mut newest = number - 1;
        let mut reader = self.asking(&mut newest).reader;
        match seen {
            // One that ended is read as a whole.
            Some(run) if run.ended() && !reader.went_on(&run, number)? => {
                let whole = run.from_commit;
                Ok((reader.history_of(run), whole))
            }
            _ => Ok((reader.history(number), false)),
        }
    }

    fn read(&mut self, number: u64) -> Result<History> {
        let mut newest = number - 1;
        self.asking(&mut newest).reader.history(number)
    }

    /// Who has the volume now, or had it last, and what a session would start from now. Nothing is
    /// stored.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn peek(&mut self) -> Result<Option<(Holder, History)>> {
        let mut newest = self.search()?;
        self.start.ended = false;
        let (was, number) = (self.was, newest + 1);
        let mut reader = self.asking(&mut newest).reader;
        let Some((holder, _)) = reader.holder(number, was, true)? else { return Ok(None) };
        Ok(Some((holder, self.read(number)?)))
    }

    /// What reads the sessions up to the newest one, and asks that.
    fn asking<'a>(&'a mut self, newest: &'a mut u64) -> OtherComputer<'a> {
        let Self { store, way, vault, start, cache, accept_gaps, stands, planted, .. } = self;
        let (store, way, stands, planted) = (&**store, *way, *stands, *planted);
        let begins = (*start, *accept_gaps);
        let mut reader = HistoryReader::new(store, (way, vault), begins, (stands, planted));
        reader.cache.clone_from(cache);
        let (clock, was) = (&*self.environment.clock, self.was);
        OtherComputer { reader, clock, who: &self.who, was, newest }
    }

    /// The number of the newest session: of the one that this computer knows, if none is after it.
    /// Otherwise the store may have a hint that leads further.
    fn search(&mut self) -> Result<u64> {
        let claims = Claims { store: &*self.store, way: self.way };
        if self.way == ClaimMode::Alone {
            let newest = claims.largest(0)?;
            self.start.ended &= newest == self.start.number();
            return Ok(newest);
        }
        if let Some(known) = self.start.hint {
            if claims.is_last(known.number, self.start.ended)? {
                return Ok(known.number);
            }
            self.start.ended = false;
        }
        let hint = hint::read(&*self.store)?.filter(|hint| hint.number > self.start.number());
        if hint.is_some() {
            self.start = SearchStart { hint, ..SearchStart::default() };
        }
        let newest = claims.largest(self.start.number())?;
        if self.start.number() > newest {
            self.start = SearchStart::default();
        }
        Ok(newest)
    }

    /// Takes a number after this one. Each attempt has a random part of its own, so an attempt that
    /// failed never comes to life.
    fn take(&mut self, newest: u64) -> Result<SessionId> {
        let mut number = newest + 1;
        for attempt in 0..ATTEMPTS {
            if let Some(id) = self.claim(number)? {
                return Ok(id);
            }
            // Drawn, so that two do not go on in step.
            let pause = PAUSE * (1 << attempt.min(6));
            let part = (self.environment.randomness.next_u64() % 1024) as u32;
            self.environment.clock.sleep(pause / 2 + pause * part / 1024);
            let claims = Claims { store: &*self.store, way: self.way };
            number = claims.largest(number)? + 1;
        }
        Err(Error::Busy)
    }

    /// Claims a number; `None` if another session has it.
    fn claim(&mut self, number: u64) -> Result<Option<SessionId>> {
        if number > names::MOST_NUMBER {
            return Err(Error::Tampered("sessions: the largest number is taken".into()));
        }
        let claims = Claims { store: &*self.store, way: self.way };
        let id = SessionId { number, random: self.environment.randomness.next_u64() };
        Ok(claims.claim(&mut self.vault, id, &self.who)?.then_some(id))
    }
}

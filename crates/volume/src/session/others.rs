//! Asking the computer that has the volume for it. It is politeness, and spares that computer what
//! it has not synced. Nothing that must be right depends on it.
//!
//! A session that ended by itself says so in its last entry. Any other may be at work. Who wants
//! the volume stores an object that asks this session for it, and waits: until the session has
//! released the volume, or was silent for [`SILENT`] by the clock of who waits. No two clocks are
//! compared. A session looks for that object from time to time, whatever its user does, and answers
//! with an entry.

use super::ask::found;
use super::claim::{self, CLAIM_BYTES, ClaimMode, Claims, Who};
use super::entry::{Mark, RELEASE};
use super::history::{HistoryReader, Run};
use super::names::SessionId;
use super::vault::Vault;
use crate::environment::Clock;
use crate::options::{HolderNotice, OnWait};
use crate::trust::ComputerId;
use crate::{Error, Result};
use oblivio_crypto::Kind;
use oblivio_store::{Objects, PutMode, ReadAt, StoreError};
use std::time::Duration;

/// A session that made no entry for so long after it was asked has ended without saying so.
pub const SILENT: Duration = Duration::from_secs(90);
/// Between two looks of who waits.
const PAUSE: Duration = Duration::from_secs(3);

/// The session that has the volume, or had it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub session: SessionId,
    /// Who began it; `None` if its claim is gone.
    pub who: Option<Who>,
    /// Its newest entry; `None` if it has made none yet.
    pub newest: Option<Mark>,
    /// Whether it ended by itself.
    pub released: bool,
}

impl HistoryReader<'_> {
    /// Who has the volume: the newest session before this number that made an entry, or one of
    /// another computer after it that is about to. `None` if there was never one.
    ///
    /// With it come its entries, if it has any. Unless `asks`, who began a session that ended is
    /// not asked for.
    ///
    /// # Errors
    /// Those of the store.
    pub fn holder(
        &mut self,
        number: u64,
        own: ComputerId,
        asks: bool,
    ) -> Result<Option<(Holder, Option<Run>)>> {
        let claims = Claims { store: self.store, way: self.way };
        let mut groups = self.groups(number)?;
        let mut begun = None;
        while let Some((number, group)) = groups.next(self)? {
            // One that does not open is judged when the history is read.
            let ids = group.unwrap_or_default();
            let hinted = self.is_hinted(&ids);
            for &session in &self.with_objects(&ids)? {
                let Some(run) = self.since(session)? else { continue };
                let Some(last) = run.entries.last() else { continue };
                if let Some(begun) = begun {
                    return Ok(Some((begun, None)));
                }
                let (newest, released) = (Some(last.mark), last.kind == RELEASE);
                let names = asks || !released;
                let who = if names { claims.who(self.vault, session)? } else { None };
                return Ok(Some((Holder { session, who, newest, released }, Some(run))));
            }
            if hinted {
                groups = self.without_hint(number)?;
                continue;
            }
            for session in ids {
                let who = claims.who(self.vault, session)?;
                if begun.is_none() && who.as_ref().is_none_or(|who| who.computer != own) {
                    begun = Some(Holder { session, who, newest: None, released: false });
                }
            }
        }
        Ok(begun.map(|begun| (begun, None)))
    }
}

/// A computer that asks for the volume.
pub struct OtherComputer<'a> {
    pub reader: HistoryReader<'a>,
    pub clock: &'a dyn Clock,
    pub who: &'a Who,
    /// The identity of this computer's session before.
    pub was: ComputerId,
    /// The largest number of a session that is known.
    pub newest: &'a mut u64,
}

impl OtherComputer<'_> {
    /// Waits until no other computer is at work with the volume, as far as that shows. Gives what
    /// the newest session has, if that was seen.
    ///
    /// # Errors
    /// `Held` if `on_wait` has waited enough. Those of the store.
    pub fn wait(&mut self, on_wait: &mut OnWait) -> Result<Option<Run>> {
        let begun = self.clock.also_asleep();
        let mut heard: Option<(Holder, Duration)> = None;
        loop {
            if heard.is_some() {
                self.search()?;
            }
            let found = self.reader.holder(*self.newest + 1, self.was, false)?;
            let Some((holder, run)) = found else { return Ok(None) };
            // The process of a session of this computer has ended: only one at a time has the
            // volume.
            let own = holder.who.as_ref().is_some_and(|who| who.computer == self.was);
            if holder.released || own {
                return Ok(run);
            }
            if heard.as_ref().is_none_or(|(last, _)| last.session != holder.session) {
                self.ask(holder.session)?;
            }
            let now = self.clock.also_asleep();
            let since = match heard {
                Some((last, since)) if last == holder => since,
                _ => now,
            };
            let silent = now.saturating_sub(since);
            if silent >= SILENT {
                return Ok(run);
            }
            let host = holder.who.as_ref().map_or("another computer", |who| who.host.as_str());
            let waiting =
                HolderNotice { host: host.into(), waited: now.saturating_sub(begun), silent };
            if !on_wait(&waiting) {
                return Err(Error::Held(waiting.host));
            }
            heard = Some((holder, since));
            self.clock.sleep(PAUSE);
        }
    }

    /// Looks for later sessions.
    fn search(&mut self) -> Result<()> {
        let claims = Claims { store: self.reader.store, way: self.reader.way };
        *self.newest = claims.largest(*self.newest)?;
        Ok(())
    }

    /// Asks a session for the volume, unless somebody did.
    fn ask(&mut self, session: SessionId) -> Result<()> {
        let HistoryReader { store, way, vault, .. } = &mut self.reader;
        let name = session.want();
        if store.len(&name)?.is_some() {
            return Ok(());
        }
        let bytes = claim::seal(vault, Kind::Want, session, self.who)?;
        let mode = match way {
            ClaimMode::Create => PutMode::IfAbsent,
            ClaimMode::Alone => PutMode::Replace,
        };
        match store.put(&name, &bytes, mode) {
            Ok(()) | Err(StoreError::Exists { .. }) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Who asked a session for the volume, if anybody did. What nobody of this volume sealed is no
/// wish.
///
/// # Errors
/// Those of the store.
pub fn wanted(store: &dyn Objects, vault: &mut Vault, session: SessionId) -> Result<Option<Who>> {
    let (name, mut buf) = (session.want(), [0; CLAIM_BYTES]);
    if store.len(&name)?.is_none() {
        return Ok(None);
    }
    let read = store.read(&mut [ReadAt { object: &name, offset: 0, buf: &mut buf }]);
    if !found(read)? {
        return Ok(None);
    }
    let want = claim::open(vault, Kind::Want, session.number, &mut buf);
    Ok(want.filter(|(of, _)| *of == session).map(|(_, who)| who))
}

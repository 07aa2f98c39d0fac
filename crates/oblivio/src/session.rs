//! What a volume and its open files share: the file system or disk, until it is closed.

use crate::error::{Error, Result};
use oblivio_app::others::Wanted;
use oblivio_volume::{Commits, LaneStatus, LaneSync};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

/// Bytes that are changed before a commit comes by itself: it bounds memory.
const COMMIT_BYTES: u64 = 64 << 20;

/// How long a sync of a lane waits for its volume.
const LANE_WAIT: Duration = Duration::from_secs(60);

/// What a session works on.
pub(crate) trait Medium: Sized {
    /// Makes all changes durable.
    fn commit(&self) -> oblivio_volume::Result<()>;

    /// Whether the volume wants a commit now.
    fn wants_commit(&self) -> bool;

    /// Does a little of what is due while nothing else is done.
    fn idle(&self) -> oblivio_volume::Result<()>;

    /// Makes all changes durable and leaves nothing to replay.
    fn finish(self) -> oblivio_volume::Result<()>;
}

/// A volume in use.
pub(crate) struct Session<M: Medium> {
    medium: RwLock<Option<M>>,
    /// Whether nothing may be changed.
    read_only: bool,
    /// Who else wants the volume.
    wanted: Arc<Wanted>,
    /// Of a lane: tells when what a commit took in is durable. It holds the volume's store, so it
    /// goes at the end: files that are still open hold the session.
    lane: Mutex<Option<LaneSync>>,
    /// What the lane had taken in when it was opened: nobody misses that, if it is all.
    unused: u64,
    /// What no commit has made durable. Held during a change: nobody commits half of one.
    commits: Mutex<Commits>,
}

impl<M: Medium> fmt::Debug for Session<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Session(..)")
    }
}

impl<M: Medium> Session<M> {
    pub(crate) fn of(medium: M) -> Self {
        Self {
            medium: RwLock::new(Some(medium)),
            read_only: false,
            wanted: Arc::default(),
            lane: Mutex::default(),
            unused: 0,
            commits: Mutex::new(Commits::after_bytes(COMMIT_BYTES)),
        }
    }

    /// The same, with who else wants the volume.
    pub(crate) fn wanted_by(mut self, wanted: Arc<Wanted>) -> Self {
        self.wanted = wanted;
        self
    }

    /// The same of a lane, which another volume carries.
    pub(crate) fn carried_by(mut self, sync: LaneSync) -> Self {
        self.unused = sync.accepted();
        self.lane = Mutex::new(Some(sync));
        self
    }

    fn lane(&self) -> MutexGuard<'_, Option<LaneSync>> {
        self.lane.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is to be said of the lane, if it is one.
    pub(crate) fn lane_status(&self) -> Option<LaneStatus> {
        self.lane().as_ref().map(LaneSync::status)
    }

    /// Does what is due while nothing else is done; says who else wants the volume.
    pub(crate) fn idle(&self) -> Result<Option<String>> {
        self.run(Medium::idle)?;
        Ok(self.wanted.by())
    }

    /// The same, refusing changes.
    pub(crate) fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Runs an operation that changes nothing.
    pub(crate) fn run<T>(
        &self,
        operation: impl FnOnce(&M) -> oblivio_volume::Result<T>,
    ) -> Result<T> {
        let medium = self.medium.read().unwrap_or_else(PoisonError::into_inner);
        Ok(operation(medium.as_ref().ok_or_else(Error::closed)?)?)
    }

    /// Runs an operation that changes about as many bytes, and commits if much waits. The volume
    /// wants commits at times that only the number of operations decides.
    pub(crate) fn change<T>(
        &self,
        bytes: u64,
        operation: impl FnOnce(&M) -> oblivio_volume::Result<T>,
    ) -> Result<T> {
        if self.read_only {
            return Err(Error::Invalid("this history is only looked at".into()));
        }
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        let done = self.run(operation);
        commits.changed(bytes);
        let done = done?;
        self.run(|medium| match commits.is_full() || medium.wants_commit() {
            true => medium.commit().map(|()| commits.committed()),
            false => Ok(()),
        })?;
        Ok(done)
    }

    /// Commits everything so far. What it gives waits until that is durable, as a lane must.
    pub(crate) fn begin_sync(&self) -> Result<impl FnOnce() -> Result<()> + Send + use<M>> {
        self.commit()?;
        let carried = self.lane().clone().map(|lane| (lane.accepted(), lane));
        Ok(move || match carried {
            Some((accepted, lane)) => Ok(lane.wait(accepted, LANE_WAIT)?),
            None => Ok(()),
        })
    }

    /// Makes everything so far durable.
    pub(crate) fn sync(&self) -> Result<()> {
        self.begin_sync()?()
    }

    /// Commits everything so far. In a lane it waits to be carried.
    pub(crate) fn commit(&self) -> Result<()> {
        let mut commits = self.commits.lock().unwrap_or_else(PoisonError::into_inner);
        self.run(Medium::commit)?;
        commits.committed();
        Ok(())
    }

    /// Ends the session, and those of its lanes before: what they have goes along with the end of
    /// the volume, as far as there is room.
    pub(crate) fn close_with<'l>(&self, lanes: impl Iterator<Item = &'l Self>) -> Result<()>
    where
        M: 'l,
    {
        let accepted = |lane: &'l Self| {
            let committed = lane.commit();
            // What its end writes after that only spares the next opening a replay.
            let sync = lane.lane().clone().map(|sync| (sync.accepted(), sync));
            let sync = sync.filter(|(accepted, _)| *accepted != lane.unused);
            committed.and(lane.close()).map(|()| sync)
        };
        let lanes: Vec<_> = lanes.map(accepted).collect();
        // Whatever became of them, the volume ends.
        self.close()?;
        for lane in lanes {
            if let Some((accepted, sync)) = lane? {
                sync.wait(accepted, Duration::ZERO)?;
            }
        }
        Ok(())
    }

    /// Makes everything durable and ends the session.
    pub(crate) fn close(&self) -> Result<()> {
        let medium = self.medium.write().unwrap_or_else(PoisonError::into_inner).take();
        let finished = medium.map_or(Ok(()), Medium::finish);
        *self.lane() = None;
        Ok(finished?)
    }
}

impl<M: Medium> Drop for Session<M> {
    fn drop(&mut self) {
        // Nobody is left to hear of an error; a caller who wants to closes the volume.
        let _ = self.close();
    }
}

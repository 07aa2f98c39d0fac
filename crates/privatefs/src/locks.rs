//! Locks of files and of byte ranges, among all clients.
//!
//! ```text
//! stamp 16 | count 2 | { session 16 | owner 8 | start 8 | end 8 | pid 4 | kind 1 } ...
//! ```
//!
//! A lock counts while its session goes on. Nobody waits here: a caller that wants to tries again.
//! What is written to a file with locks is carried out in their session or not at all: so it never
//! lands behind what the next holder wrote.

use crate::attempt::Attempted;
use crate::client::PrivateFs;
use crate::dirty::Dirty;
use crate::error::{Error, Result};
use crate::file::ClientFile;
use crate::layout::{self, BlockCursor};
use crate::transactions::{Action, Ask, Compare, Owner, Session};
use std::sync::atomic::Ordering;

const HEADER: usize = 18;
const ENTRY: usize = 45;
const WRITE: u8 = 1;
const WHOLE: u8 = 2;

/// How a range is locked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockKind {
    /// Others may read it.
    Shared,
    /// Others may not lock it.
    Exclusive,
}

/// On whose behalf, within a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LockOwner {
    /// The kernel's number for a process or an open file.
    pub number: u64,
    /// Whether it is a lock of `flock`; those of `fcntl` do not meet it.
    pub whole_file: bool,
}

/// A locked range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lock {
    /// How.
    pub kind: LockKind,
    /// The first byte.
    pub start: u64,
    /// The last byte.
    pub end: u64,
    /// A process that the owner named.
    pub pid: u32,
}

#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    session: Session,
    owner: LockOwner,
    lock: Lock,
}

impl Entry {
    fn is_of(&self, session: &Session, owner: LockOwner) -> bool {
        self.session == *session && self.owner == owner
    }

    fn conflicts(&self, session: &Session, owner: LockOwner, lock: &Lock) -> bool {
        let exclusive = self.lock.kind == LockKind::Exclusive || lock.kind == LockKind::Exclusive;
        let overlap = self.lock.start <= lock.end && lock.start <= self.lock.end;
        let other = !self.is_of(session, owner) && self.owner.whole_file == owner.whole_file;
        exclusive && overlap && other
    }
}

struct Table {
    stamp: Option<[u8; 16]>,
    entries: Vec<Entry>,
}

impl PrivateFs {
    /// Locks a range; what this owner had locked of it changes its kind.
    ///
    /// # Errors
    /// `Locked` if another owner has it; `Full` if the file has too many locks.
    pub fn lock(&self, id: Owner, owner: LockOwner, lock: Lock) -> Result<()> {
        self.with_file(id, |file| {
            self.keep_locks(id, file)?;
            let session = self.in_session(|session| {
                self.change_locks(id, |entries| {
                    if entries.iter().any(|held| held.conflicts(&session, owner, &lock)) {
                        return Err(Error::Locked);
                    }
                    clear(entries, &session, owner, (lock.start, lock.end));
                    add(entries, Entry { session, owner, lock });
                    Ok(())
                })?;
                Ok(session)
            })?;
            let before = file.locks.replace(session);
            if before.is_none_or(|before| before == session) {
                return Ok(());
            }
            // The session ended under this very call: this lock counts, and those before it do not.
            self.release_all(id, file, None)?;
            self.lose_locks(id, file);
            Err(Error::LockLost)
        })
    }

    /// A number for a handle to a file, larger than those before it.
    pub fn handle(&self) -> u64 {
        self.handles.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Checks that the locks of a file were not lost since this handle was opened.
    ///
    /// # Errors
    /// `LockLost` if they were.
    pub fn check_handle(&self, id: Owner, handle: u64) -> Result<()> {
        let Some(file) = self.open_file(id) else { return Ok(()) };
        let mut file = crate::base::lock(&file);
        self.keep_locks(id, &mut file)?;
        if handle <= file.lost { Err(Error::LockLost) } else { Ok(()) }
    }

    /// Whether the session goes on in which a file was locked, as far as is known without asking.
    pub(crate) fn keep_locks(&self, id: Owner, file: &mut ClientFile) -> Result<()> {
        if file.locks.is_none_or(|session| session == self.session()) {
            return Ok(());
        }
        self.lose_locks(id, file);
        Err(Error::LockLost)
    }

    /// Drops the locks of a file, and what waits to be written: another client may have written
    /// since. All handles that are open now return an error from here on.
    pub(crate) fn lose_locks(&self, id: Owner, file: &mut ClientFile) {
        (file.locks, file.dirty) = (None, Dirty::default());
        file.lost = self.handles.load(Ordering::Relaxed);
        self.notice(id);
    }

    /// Unlocks a range, after what waits was written: the next one who locks it finds it.
    ///
    /// # Errors
    /// Those of the flush, after which it is unlocked all the same, and what waited is dropped;
    /// those of the transactions; `Full` if a lock in two parts does not fit.
    pub fn unlock(&self, id: Owner, owner: LockOwner, range: (u64, u64)) -> Result<()> {
        if self.open_file(id).is_none() {
            return Ok(());
        }
        self.with_file(id, |file| {
            self.release(id, file, |entries, session| clear(entries, session, owner, range))
        })
    }

    /// The lock of another owner that is in the way of one.
    ///
    /// # Errors
    /// Those of the transactions.
    pub fn lock_in_the_way(&self, id: Owner, owner: LockOwner, lock: Lock) -> Result<Option<Lock>> {
        let table = self.look_again(|attempt| read(attempt, id))?;
        let session = self.session();
        let conflicts = |held: &&Entry| held.conflicts(&session, owner, &lock);
        for held in table.entries.iter().filter(conflicts) {
            if held.session == session || self.transactions.is_live(&held.session)? {
                return Ok(Some(held.lock));
            }
        }
        Ok(None)
    }

    /// As [`Self::unlock`], of all locks that an owner has on a file, or all of this client.
    ///
    /// # Errors
    /// As [`Self::unlock`].
    pub fn unlock_all(&self, id: Owner, owner: Option<LockOwner>) -> Result<()> {
        self.with_file(id, |file| self.release_all(id, file, owner))
    }

    pub(crate) fn release_all(
        &self,
        id: Owner,
        file: &mut ClientFile,
        owner: Option<LockOwner>,
    ) -> Result<()> {
        self.release(id, file, |entries, session| {
            entries.retain(|held| {
                held.session != *session || owner.is_some_and(|owner| held.owner != owner)
            });
        })
    }

    /// Writes what waits, and drops locks. What could not be written would land behind the next
    /// holder's.
    fn release(
        &self,
        id: Owner,
        file: &mut ClientFile,
        drop_some: impl Fn(&mut Vec<Entry>, &Session),
    ) -> Result<()> {
        if file.locks.is_none() {
            return Ok(());
        }
        let flushed = self.flush_file(id, file);
        let mut left = false;
        let session = self.session();
        let unlocked = self.change_locks(id, |entries| {
            drop_some(entries, &session);
            left = entries.iter().any(|held| held.session == session);
            Ok(())
        });
        if unlocked.is_ok() {
            file.locks = file.locks.filter(|_| left);
            if file.dirty.any {
                self.lose_locks(id, file);
            }
        }
        flushed.and(unlocked)
    }

    /// Whether this client may have locks on a file.
    pub fn has_locks(&self, id: Owner) -> bool {
        self.open_file(id).is_some_and(|file| crate::base::lock(&file).locks.is_some())
    }

    fn change_locks(
        &self,
        id: Owner,
        mut change: impl FnMut(&mut Vec<Entry>) -> Result<()>,
    ) -> Result<()> {
        self.change(|attempt| {
            let mut table = read(attempt, id)?;
            let before = table.entries.clone();
            self.drop_ended_locks(&mut table.entries)?;
            change(&mut table.entries)?;
            if HEADER + ENTRY * table.entries.len() > self.block_bytes {
                return Err(Error::Full("locks of one file"));
            }
            if table.entries != before {
                let compare = match table.stamp {
                    Some(stamp) => Compare::Bytes(0, stamp.to_vec()),
                    None => Compare::Absent,
                };
                let action = Action::Write(encode(&table.entries, self.random()));
                attempt.ask(Ask::change(layout::locks(id), action, compare));
            }
            Ok(())
        })
    }

    fn drop_ended_locks(&self, entries: &mut Vec<Entry>) -> Result<()> {
        let mut live = Vec::new();
        for entry in entries.drain(..) {
            if entry.session == self.session() || self.transactions.is_live(&entry.session)? {
                live.push(entry);
            }
        }
        *entries = live;
        Ok(())
    }
}

/// Takes a range away from an owner's locks.
fn clear(entries: &mut Vec<Entry>, session: &Session, owner: LockOwner, (start, end): (u64, u64)) {
    let mut rest = Vec::new();
    for entry in entries.drain(..) {
        let lock = entry.lock;
        if !entry.is_of(session, owner) || lock.end < start || end < lock.start {
            rest.push(entry);
            continue;
        }
        if lock.start < start {
            rest.push(Entry { lock: Lock { end: start - 1, ..lock }, ..entry });
        }
        if end < lock.end {
            rest.push(Entry { lock: Lock { start: end + 1, ..lock }, ..entry });
        }
    }
    *entries = rest;
}

/// Adds a lock, as one with those of its owner that it touches.
fn add(entries: &mut Vec<Entry>, mut new: Entry) {
    entries.retain(|held| {
        let one = held.is_of(&new.session, new.owner) && held.lock.kind == new.lock.kind;
        let touches = held.lock.start <= new.lock.end.saturating_add(1)
            && new.lock.start <= held.lock.end.saturating_add(1);
        if one && touches {
            new.lock.start = new.lock.start.min(held.lock.start);
            new.lock.end = new.lock.end.max(held.lock.end);
        }
        !(one && touches)
    });
    entries.push(new);
}

fn read(attempt: &mut Attempted<'_>, id: Owner) -> Result<Table> {
    let Some(block) = attempt.read(layout::locks(id))? else {
        return Ok(Table { stamp: None, entries: Vec::new() });
    };
    let mut at = BlockCursor(&block);
    let (stamp, count) = (Some(at.array()?), at.u16()?);
    let entry = |_| {
        let (session, number) = (Session::from_bytes(at.array()?), at.u64()?);
        let (start, end, pid, bits) = (at.u64()?, at.u64()?, at.u32()?, at.u8()?);
        let exclusive = bits & WRITE != 0;
        let kind = if exclusive { LockKind::Exclusive } else { LockKind::Shared };
        let owner = LockOwner { number, whole_file: bits & WHOLE != 0 };
        Ok(Entry { session, owner, lock: Lock { kind, start, end, pid } })
    };
    let entries = (0..count).map(entry).collect::<Result<_>>()?;
    Ok(Table { stamp, entries })
}

fn encode(entries: &[Entry], stamp: [u8; 16]) -> Vec<u8> {
    let mut block = stamp.to_vec();
    block.extend((entries.len() as u16).to_le_bytes());
    for Entry { session, owner, lock } in entries {
        block.extend(session.to_bytes());
        for number in [owner.number, lock.start, lock.end] {
            block.extend(number.to_le_bytes());
        }
        block.extend(lock.pid.to_le_bytes());
        let exclusive = if lock.kind == LockKind::Exclusive { WRITE } else { 0 };
        block.push(exclusive | if owner.whole_file { WHOLE } else { 0 });
    }
    block
}

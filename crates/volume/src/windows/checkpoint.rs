//! Checkpoints: what makes the engine's state current.
//!
//! A checkpoint sends the objects of its windows, its part and its entry side by side, and waits
//! for none: the volume goes on. Once its objects are stored it is confirmed, at the latest before
//! the checkpoint after the next one. Then its pointer is sent. Once that is stored and the session
//! looked for a later one, what the checkpoint replaced is deleted.
//!
//! At rest, and once for each group of parts, there are two of what is small: the entry has a
//! second copy, and the parts have [parities](super::parity). Both are sent with the checkpoint.
//! When that is follows from its number, and from the end of what the caller does.
//!
//! A session that ends with its first commit, and stored no buckets, sends its release beside the
//! checkpoint: only the pointer and the deletes wait.
//!
//! Until then a later session starts from the checkpoint before, unless it finds all of its
//! objects.

use super::ledger::WindowLedger;
use super::pending::Pending;
use super::policy::MOST_PENDING;
use super::state::{Commit, Kept};
use crate::Result;
use crate::trust::{Keep, LogMark, Table};
use oblivio_crypto::{SEAL_HEADER, SEAL_OVERHEAD, digest};

impl WindowLedger {
    /// Makes the engine's state a checkpoint. With `rests`, the session comes to rest after it.
    pub fn checkpoint(&mut self, rests: bool) -> Result<()> {
        let confirms = self.commits.pending.len() >= MOST_PENDING;
        if !confirms && !rests && self.log.grouped > 0 && self.log.unsettled > self.log.grouped {
            // As before any other group, or more batches could be shown twice than is said. Where
            // an earlier checkpoint is confirmed, that settles them.
            self.settle_sent()?;
        }
        if rests {
            self.log.leave_intents();
        }
        self.send_intents()?;
        while self.commits.pending.len() >= MOST_PENDING {
            self.confirm()?;
        }
        self.trust.refuse_overtaken()?;
        let number = self.commits.epoch + 1;
        let part_object = self.send_part(number)?;
        let mut replaced = std::mem::take(&mut self.past.leftovers);
        let kept = self.places.rule.kept(self.engine.config().blocks_per_bucket);
        let part = self.commits.retire(number, kept, &self.places, &mut replaced)?;
        let protected = rests || self.commits.parities.completes(number);
        let mut objects = vec![part_object];
        if protected {
            let session = self.session.id().random;
            let store = &*self.store;
            objects.append(&mut self.commits.send_parities(store, session, &mut replaced)?);
        }
        objects.append(&mut self.commits.send_healed(&*self.store, &replaced)?);
        self.places.forget(self.engine.depth(), self.past.kept.window, self.past.kept.part);
        let table: Table = self.trust.commit_act(number)?.clone();
        let commit = Commit {
            number,
            windows: self.places.done,
            root: self.root.clone(),
            table,
            spans: self.places.spans.clone(),
            parts: self.commits.parts.iter().copied().collect(),
            made: self.places.take_made(),
            kept: self.past.kept,
            left: self.past.left.clone(),
            parities: self.commits.parities.stored(),
        };
        let made = commit.made.iter().map(|made| self.places.object(made.level, made.window));
        objects.extend(made.collect::<Result<Vec<_>>>()?);
        if self.store.capabilities().writes_over {
            // A crash may leave such an object with its length and without its bytes.
            self.store.settle(&objects.iter().map(String::as_str).collect::<Vec<_>>())?;
        }
        let payload = commit.to_bytes();
        let mark = self.session.checkpoint(&payload, protected)?;
        self.commits.epoch = number;
        self.commits.heals = false;
        self.engine.committed();
        self.log.records += 1;
        replaced.append(&mut self.places.take_replaced());
        self.past.replace_entries(&mut replaced, mark, protected);
        self.commits.pending.push_back(Pending {
            number,
            mark,
            protected,
            bare: commit.made.is_empty(),
            digest: digest(&payload),
            objects,
            replaced,
            kept: Kept { entry: self.past.first_entry, window: commit.windows, part },
            records: self.log.records,
            record_bytes: self.log.bytes,
        });
        Ok(())
    }

    /// Begins to store the part of a commit; its name.
    fn send_part(&mut self, number: u64) -> Result<String> {
        let (object, session) = self.places.part(number)?;
        let mut part = vec![0; SEAL_HEADER];
        self.engine.part(number, &mut part);
        part.resize(part.len() + SEAL_OVERHEAD - SEAL_HEADER, 0);
        self.seal_part(number, session, &mut part)?;
        self.commits.parts.push_back((part.len() as u64, digest(&part)));
        self.commits.parities.add(number, &part);
        if let Some(near) = &self.commits.near {
            near.keep(&object, &part);
        }
        self.store.begin(&[(&object, &part)])?;
        Ok(object)
    }

    /// Waits for the objects of the oldest checkpoint, and makes it a commit. Deletes what the one
    /// before replaced.
    fn confirm(&mut self) -> Result<()> {
        let Some(oldest) = self.commits.pending.front() else { return Ok(()) };
        let names: Vec<&str> = oldest.objects.iter().map(String::as_str).collect();
        self.store.settle(&names)?;
        let mark = oldest.mark;
        // The pointer before this one too.
        self.session.settle()?;
        self.delete_replaced()?;
        self.session.confirm(mark)?;
        self.note_commit()
    }

    /// The oldest checkpoint is a commit.
    fn note_commit(&mut self) -> Result<()> {
        let Some(oldest) = self.commits.pending.pop_front() else { return Ok(()) };
        self.log.records -= oldest.records;
        self.log.bytes -= oldest.record_bytes;
        for later in &mut self.commits.pending {
            later.records -= oldest.records;
            later.record_bytes -= oldest.record_bytes;
        }
        self.log.unsettled = self.log.grouped;
        let tag = self.session.mark().tag;
        let log = if self.log.records == 0 {
            LogMark::default()
        } else {
            LogMark { end: self.log.records, tag }
        };
        self.trust.reached(self.session.hint());
        self.trust.committed(oldest.number, oldest.digest, log, Keep::Durable)?;
        (self.past.replaced, self.past.kept_then) = (oldest.replaced, oldest.kept);
        self.past.newest = Some((oldest.mark, oldest.protected));
        Ok(())
    }

    /// Deletes what the last commit replaced, once its pointer is stored.
    fn delete_replaced(&mut self) -> Result<()> {
        if self.past.replaced.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.past.replaced.iter().map(String::as_str).collect();
        self.session.delete(&names)?;
        if let Some(near) = &self.commits.near {
            near.forget(&names);
        }
        self.past.replaced.clear();
        self.past.kept = self.past.kept_then;
        // They went with what the first checkpoint replaced.
        self.past.left.clear();
        Ok(())
    }

    /// The number of the newest commit: the checkpoints after it are on their way.
    pub fn confirmed(&self) -> u64 {
        self.commits.epoch - self.commits.pending.len() as u64
    }

    /// Waits until each checkpoint is a commit, and nothing else is left to do.
    pub fn flush(&mut self) -> Result<()> {
        self.send_intents()?;
        while !self.commits.pending.is_empty() {
            self.confirm()?;
        }
        self.session.settle()?;
        self.delete_replaced()
    }

    /// The same, and says that this computer is done for now, after a commit of everything.
    ///
    /// If that is the first commit of its session, and no objects of buckets came with it, the
    /// release is sent beside it, and deletes come last: a crash in between leaves little. A
    /// checkpoint before it that is still on its way is none of its own then.
    pub fn finish(&mut self) -> Result<()> {
        let pending = &self.commits.pending;
        let bare = !pending.is_empty() && pending.iter().all(|pending| pending.bare);
        if self.session.commits() > 0 || !bare {
            self.flush()?;
            // A session without a commit is noted too, as far as it went.
            self.settle_sent()?;
            self.session.release(&[])?;
        } else {
            self.commits.join_pending();
            let Some(Pending { mark, objects, .. }) = self.commits.pending.front() else {
                return Ok(());
            };
            self.session.send_release(&[], Some(*mark))?;
            self.store.settle(&objects.iter().map(String::as_str).collect::<Vec<_>>())?;
            self.session.confirm_last(*mark)?;
            self.session.settle()?;
            self.note_commit()?;
        }
        self.session.settle_hint();
        self.trust.reached(self.session.hint());
        self.trust.end()?;
        self.delete_replaced()
    }
}

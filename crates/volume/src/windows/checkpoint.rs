//! Checkpoints: what makes the engine's state current.
//!
//! A checkpoint sends the objects of its windows, its part and its entry side by side, and waits
//! for none: the volume goes on. Once its objects are stored it is confirmed, at the latest before
//! the checkpoint after the next one. Then its pointer is sent. Once that is stored and the session
//! looked for a later one, what the checkpoint replaced is deleted.
//!
//! At rest, and once for each group of parts, there are two of what is small: the entry has a second
//! copy, and the parts have [parities](super::parity). Both are sent with the checkpoint. When they
//! are follows from its number, and from the end of what the caller does.
//!
//! Until then a later session starts from the checkpoint before, unless it finds all of its
//! objects.

use super::ledger::WindowLedger;
use super::pending::Pending;
use super::places::Places;
use super::policy::MOST_PENDING;
use super::state::{Commit, Kept};
use crate::Result;
use crate::session::Mark;
use crate::trust::{Keep, LogMark, Table};
use oblivio_crypto::{SEAL_HEADER, SEAL_OVERHEAD, digest};

impl WindowLedger {
    /// Makes the engine's state a checkpoint. With `rests`, the session comes to rest after it.
    pub fn checkpoint(&mut self, rests: bool) -> Result<()> {
        let confirms = self.commits.pending.len() >= MOST_PENDING;
        if !confirms && self.log.grouped > 0 && self.log.unsettled > self.log.grouped {
            // As before any other group, or more batches could be shown twice than is said. Where
            // an earlier checkpoint is confirmed, that settles them.
            self.settle_sent()?;
        }
        self.send_intents()?;
        while self.commits.pending.len() >= MOST_PENDING {
            self.confirm()?;
        }
        self.trust.refuse_overtaken()?;
        let number = self.commits.epoch + 1;
        let part_object = self.send_part(number)?;
        let mut replaced = std::mem::take(&mut self.past.leftovers);
        let part = self.retire_parts(number, &mut replaced)?;
        let protected = rests || self.commits.parities.completes(number);
        let mut objects = vec![part_object];
        if protected {
            objects.append(&mut self.send_parities(&mut replaced)?);
        }
        objects.append(&mut self.send_healed(&replaced)?);
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
        for made in &commit.made {
            objects.push(self.places.object(made.level, made.window)?);
        }
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
        self.replace_entries(&mut replaced, mark, protected);
        self.commits.pending.push_back(Pending {
            number,
            mark,
            protected,
            digest: digest(&payload),
            objects,
            replaced,
            kept: Kept { entry: self.past.first_entry, window: commit.windows, part },
            records: self.log.records,
            record_bytes: self.log.bytes,
        });
        Ok(())
    }

    /// Forgets the parts that are no longer of the memory, in whole groups; the first one that
    /// stays.
    fn retire_parts(&mut self, number: u64, replaced: &mut Vec<String>) -> Result<u64> {
        let kept = self.places.rule.kept(self.engine.config().blocks_per_bucket);
        let first = self.commits.parities.first_kept(number, kept);
        let stored = number + 1 - self.commits.parts.len() as u64;
        for gone in stored..first {
            self.commits.parts.pop_front();
            replaced.push(self.places.part(gone)?.0);
        }
        for parity in self.commits.parities.retire(first) {
            replaced.push(Places::parity_of(parity.session, parity.last));
        }
        Ok(stored.max(first))
    }

    /// Begins to store the parities that are due; their names.
    fn send_parities(&mut self, replaced: &mut Vec<String>) -> Result<Vec<String>> {
        let (new, old) = self.commits.parities.store(self.session.id().random);
        replaced.extend(old.iter().map(|of| Places::parity_of(of.session, of.last)));
        let mut names = Vec::new();
        for (of, bytes) in new {
            let name = Places::parity_of(of.session, of.last);
            self.store.begin(&[(&name, &bytes)])?;
            names.push(name);
        }
        Ok(names)
    }

    /// Begins to store again what was lost and made again, unless it goes now; the names.
    fn send_healed(&mut self, replaced: &[String]) -> Result<Vec<String>> {
        let mut names = Vec::new();
        for (name, bytes) in std::mem::take(&mut self.past.healed) {
            if !replaced.contains(&name) {
                self.store.begin(&[(&name, &bytes)])?;
                names.push(name);
            }
        }
        Ok(names)
    }

    /// What a checkpoint with this entry replaces of entries: all up to the checkpoint before, but
    /// the first, which names what was before the session; and all second copies before its own.
    fn replace_entries(&mut self, replaced: &mut Vec<String>, mark: Mark, copied: bool) {
        let past = &mut self.past;
        let entries = past.first_entry.max(2)..past.last_entry;
        replaced.extend(entries.map(|at| mark.session.entry(at)));
        (past.first_entry, past.last_entry) = (past.last_entry, mark.index);
        replaced.append(&mut past.copies);
        past.copies.extend(copied.then(|| mark.session.copy(mark.index)));
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
        self.trust.committed(oldest.number, oldest.digest, log, Keep::Durable)?;
        (self.past.replaced, self.past.kept_then) = (oldest.replaced, oldest.kept);
        self.past.newest = Some((mark, oldest.protected));
        Ok(())
    }

    /// Deletes what the last commit replaced, once its pointer is stored.
    fn delete_replaced(&mut self) -> Result<()> {
        if self.past.replaced.is_empty() {
            return Ok(());
        }
        let names: Vec<&str> = self.past.replaced.iter().map(String::as_str).collect();
        self.session.delete(&names)?;
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
}

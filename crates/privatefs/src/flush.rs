//! Writing what waits: pages first, in flight together, then the inode.

use crate::attempt::Attempted;
use crate::base::lock;
use crate::client::PrivateFs;
use crate::dirty::{Dirty, DirtyPage};
use crate::error::{Error, Result};
use crate::file::ClientFile;
use crate::inode::{DataForm, Inode};
use crate::layout;
use crate::resize::{plan_blocks, plan_resize};
use crate::transactions::{Action, Ask, Compare, Owner};

/// Another client may cut the file while pages are written. Then they are written again.
const MOST_TRIES: u32 = 200;

/// How far one try came.
enum Step {
    Done,
    /// The inode was made ready; look again.
    Again,
    /// The pages are next, for an inode like this.
    Pages(Box<Inode>),
}

impl PrivateFs {
    /// Writes what waits of a file, and returns when it is durable.
    ///
    /// # Errors
    /// `Stale` if it was removed; those of the transactions.
    pub fn fsync(&self, id: Owner) -> Result<()> {
        self.flush(id)?;
        self.transactions.sync()
    }

    /// Writes what waits of a file, so that others see it when they open it.
    ///
    /// # Errors
    /// As [`Self::fsync`].
    pub fn flush(&self, id: Owner) -> Result<()> {
        match self.open_file(id) {
            Some(_) => self.with_file(id, |file| self.flush_file(id, file)),
            None => Ok(()),
        }
    }

    /// Writes what waits of all files.
    ///
    /// # Errors
    /// The first of [`Self::fsync`]; it goes on with the other files.
    pub fn flush_all(&self) -> Result<()> {
        let ids: Vec<Owner> = lock(&self.files).keys().copied().collect();
        let results: Vec<Result<()>> = ids.into_iter().map(|id| self.flush(id)).collect();
        let synced = self.transactions.sync();
        results.into_iter().collect::<Result<()>>().and(synced)
    }

    pub(crate) fn flush_file(&self, id: Owner, file: &mut ClientFile) -> Result<()> {
        self.keep_locks(id, file)?;
        if !file.dirty.any {
            return Ok(());
        }
        let flushed = self.write_all(id, file);
        if matches!(flushed, Err(Error::LockLost)) {
            self.lose_locks(id, file);
        }
        if matches!(flushed, Err(Error::Stale)) {
            file.dirty = Dirty::default();
            self.forget_lost(id);
        }
        flushed?;
        file.dirty = Dirty::default();
        Ok(())
    }

    /// Pages were written to a file that another client removed: nobody else knows of them.
    fn forget_lost(&self, id: Owner) {
        let forget = Ask::forget(layout::inode(id)).only_if(Compare::Absent);
        // If it fails, a check finds them.
        let _ = self.transactions.carry_out(&[forget]);
    }

    fn write_all(&self, id: Owner, file: &ClientFile) -> Result<()> {
        for _ in 0..MOST_TRIES {
            match self.change_in(file.locks, |attempt| self.step(attempt, id, file))? {
                Step::Done => return Ok(()),
                Step::Again => {}
                Step::Pages(before) => {
                    self.write_pages(id, file)?;
                    if self.finish(id, file, &before)? {
                        return Ok(());
                    }
                }
            }
        }
        Err(Error::Busy)
    }

    fn step(&self, attempt: &mut Attempted<'_>, id: Owner, file: &ClientFile) -> Result<Step> {
        let mut inode = attempt.inode(id)?;
        let (stamp, end) = (inode.stamp, inode.size.max(file.dirty.end));
        if inode.form == DataForm::Inline && inode.fits_inline(end, self.block_bytes) {
            inode.inline.resize(end as usize, 0);
            write_inline(&mut inode.inline, &file.dirty, self.block_bytes);
            inode.size = end;
            inode.modified(self.random(), file.written);
            attempt.ask(inode.replace(stamp, self.block_bytes));
            return Ok(Step::Done);
        }
        if let Some(gap) = file.dirty.gap_end(inode.size, self.block_bytes) {
            // Nothing but zeros may come to light between the old end and what is written.
            plan_resize(attempt, &mut inode, gap);
            return Ok(Step::Again);
        }
        if inode.form == DataForm::Inline && inode.size > 0 {
            plan_blocks(attempt, &mut inode);
            inode.changed(self.random(), inode.ctime);
            attempt.ask(inode.replace(stamp, self.block_bytes));
            return Ok(Step::Again);
        }
        Ok(Step::Pages(Box::new(inode)))
    }

    fn write_pages(&self, id: Owner, file: &ClientFile) -> Result<()> {
        let asks = file.dirty.pages.iter().flat_map(|(page, content)| {
            let name = layout::data(id, *page);
            actions(content).map(move |action| vec![Ask::change(name, action, Compare::Always)])
        });
        let asks: Vec<Vec<Ask>> = asks.collect();
        self.carry_out(file.locks, &asks).map(drop)
    }

    /// The inode after its pages: one ask. False: its blocks came to mean something else since
    /// `before`, so the pages may be gone.
    fn finish(&self, id: Owner, file: &ClientFile, before: &Inode) -> Result<bool> {
        self.change_in(file.locks, |attempt| {
            let mut inode = attempt.inode(id)?;
            let (stamp, inline) = (inode.stamp, inode.form == DataForm::Inline);
            if (inode.guard, inode.form) != (before.guard, before.form)
                || (inline && inode.size > 0)
            {
                return Ok(false);
            }
            if inline {
                (inode.form, inode.guard) = (DataForm::Blocks, self.random());
            }
            inode.size = inode.size.max(file.dirty.end);
            inode.modified(self.random(), file.written);
            attempt.ask(inode.replace(stamp, self.block_bytes));
            Ok(true)
        })
    }
}

fn actions(page: &DirtyPage) -> impl Iterator<Item = Action> + '_ {
    page.parts.iter().map(|part| match part.len() == page.bytes.len() {
        true => Action::Write(page.bytes.clone()),
        false => Action::Patch { offset: part.start, bytes: page.bytes[part.clone()].to_vec() },
    })
}

fn write_inline(inline: &mut [u8], dirty: &Dirty, block_bytes: usize) {
    for (number, page) in &dirty.pages {
        let begin = (*number as usize) * block_bytes;
        for part in &page.parts {
            let to = inline.get_mut(begin + part.start..begin + part.end);
            if let (Some(to), Some(from)) = (to, page.bytes.get(part.clone())) {
                to.copy_from_slice(from);
            }
        }
    }
}

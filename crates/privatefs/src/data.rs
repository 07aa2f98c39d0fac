//! Reading and writing files.

use crate::base::lock;
use crate::client::PrivateFs;
use crate::dirty::{DirtyPage, pieces};
use crate::error::{Error, Result};
use crate::file::ClientFile;
use crate::inode::{DataForm, Inode};
use crate::layout;
use crate::resize::plan_blocks;
use crate::transactions::{Action, Ask, Compare, MOST_ASKS, Name, Owner, TOGETHER};
use crate::types::{FileKind, MAX_FILE};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The pages of a file that wait, and where it ends with them.
type Waiting = (BTreeMap<u64, DirtyPage>, u64);

impl PrivateFs {
    /// Reads from a file, up to its end. Its pages are asked for together, and some after them if
    /// it is open and read in a row.
    ///
    /// # Errors
    /// `Invalid` for anything but a file; `Stale` if it was removed.
    pub fn read(&self, id: Owner, offset: u64, len: usize) -> Result<Vec<u8>> {
        if self.options.strict {
            return self.read_at_once(id, offset, len);
        }
        let (waiting, waiting_end) = self.waiting(id, offset, len);
        let inode = self.look(|attempt| attempt.inode(id))?;
        let (len, size) = bound(&inode, offset, len, waiting_end)?;
        let mut data = vec![0; len];
        if inode.form == DataForm::Inline {
            copy_inline(&inode, offset, &mut data);
        }
        let whole = |page: &u64| waiting.get(page).is_some_and(DirtyPage::is_whole);
        let needed = |page: &u64| inode.form == DataForm::Blocks && !whole(page);
        let mut missing: Vec<u64> =
            pieces(offset, len, self.block_bytes).map(|(page, ..)| page).collect();
        missing.retain(needed);
        let pages = self.pages(id, &inode, &missing)?;
        for (page, part, to) in pieces(offset, len, self.block_bytes) {
            if let Some(content) = pages.get(&page) {
                data[to.clone()].copy_from_slice(&content[part.clone()]);
            }
        }
        // What stands in blocks beyond the end is no part of the file.
        let end = usize::try_from(inode.size.saturating_sub(offset)).unwrap_or(usize::MAX);
        if end < len {
            data[end..].fill(0);
        }
        debug_assert!(offset + len as u64 <= size);
        lay_over(&waiting, offset, &mut data, self.block_bytes);
        Ok(data)
    }

    fn pages(&self, id: Owner, inode: &Inode, read: &[u64]) -> Result<BTreeMap<u64, Vec<u8>>> {
        let open = self.open_file(id).map(|file| Arc::clone(&lock(&file).ahead));
        // Nobody reads on in a file that is not open.
        let end = if open.is_some() { inode.size.div_ceil(self.block_bytes as u64) } else { 0 };
        let ahead = open.unwrap_or_default();
        let mut ahead = lock(&ahead);
        for numbers in ahead.plan(read, inode.stamp, end).chunks(TOGETHER) {
            let names: Vec<Name> = numbers.iter().map(|&page| layout::data(id, page)).collect();
            let mut whole = Vec::with_capacity(numbers.len());
            for (page, content) in numbers.iter().zip(self.contents_each(&names)?) {
                match content {
                    Ok(content) => whole.push((*page, content)),
                    // Nobody wants it yet.
                    Err(_) if !read.contains(page) => {}
                    Err(error) => return Err(error),
                }
            }
            ahead.keep(whole.into_iter());
        }
        Ok(ahead.take(read))
    }

    /// Inode and pages at one point of the order of all asks, as far as one transaction reaches.
    fn read_at_once(&self, id: Owner, offset: u64, len: usize) -> Result<Vec<u8>> {
        let mut data: Vec<u8> = Vec::new();
        while data.len() < len {
            let at = offset + data.len() as u64;
            let within = (at % self.block_bytes as u64) as usize;
            let most = (MOST_ASKS - 1) * self.block_bytes - within;
            let wanted = (len - data.len()).min(most);
            let mut asks = vec![Ask::read(layout::inode(id))];
            let pages = pieces(at, wanted, self.block_bytes);
            asks.extend(pages.map(|(page, ..)| Ask::read(layout::data(id, page))));
            let mut answers = self.transactions.carry_out(&asks)?.into_iter();
            let inode = answers.next().and_then(|answer| answer.content).ok_or(Error::Stale)?;
            let inode = Inode::decode(id, &inode)?;
            let (found, _) = bound(&inode, at, wanted, 0)?;
            let mut part = vec![0; found];
            if inode.form == DataForm::Inline {
                copy_inline(&inode, at, &mut part);
            }
            for ((_, from, to), answer) in pieces(at, found, self.block_bytes).zip(answers) {
                let content = answer.content.filter(|_| inode.form == DataForm::Blocks);
                if let Some(content) = content {
                    let content = content.get(from).ok_or(Error::Damaged("a short block"))?;
                    part[to].copy_from_slice(content);
                }
            }
            data.extend(part);
            if found < wanted {
                break;
            }
        }
        Ok(data)
    }

    /// What waits of a stretch. Taken before anything is asked: what is flushed in between is then
    /// in the answer or here.
    fn waiting(&self, id: Owner, offset: u64, len: usize) -> Waiting {
        let Some(file) = self.open_file(id) else { return Waiting::default() };
        let file = lock(&file);
        let first = offset / self.block_bytes as u64;
        let last = offset.saturating_add(len as u64) / self.block_bytes as u64;
        let pages = file.dirty.pages.range(first..=last);
        (pages.map(|(number, page)| (*number, page.clone())).collect(), file.dirty.end)
    }

    /// Writes to a file. It waits until a flush, unless the client is strict.
    ///
    /// # Errors
    /// `TooLarge`; those of a flush.
    pub fn write(&self, id: Owner, offset: u64, data: &[u8]) -> Result<()> {
        let end = offset.checked_add(data.len() as u64).filter(|end| *end <= MAX_FILE);
        end.ok_or(Error::TooLarge)?;
        if data.is_empty() {
            return Ok(());
        }
        self.with_file(id, |file| {
            self.keep_locks(id, file)?;
            file.dirty.write(offset, data, self.block_bytes);
            file.written = self.now();
            if self.options.strict || file.dirty.pages.len() >= self.options.waiting_pages {
                self.flush_file(id, file)?;
            }
            Ok(())
        })
    }

    /// Writes to the end of a file, in one transaction with its length: appends of several clients
    /// follow each other. Longer ones than seven pages are several. Where it was written begins
    /// at the answer.
    ///
    /// # Errors
    /// As [`Self::write`].
    pub fn append(&self, id: Owner, data: &[u8]) -> Result<u64> {
        self.with_file(id, |file| {
            self.flush_file(id, file)?;
            let (mut begun, mut rest) = (None, data);
            while begun.is_none() || !rest.is_empty() {
                let (at, taken) = self.append_some(id, rest, file)?;
                begun = begun.or(at);
                rest = &rest[taken..];
            }
            Ok(begun.unwrap_or(0))
        })
    }

    /// Where it was written, if it was, and how much.
    fn append_some(
        &self,
        id: Owner,
        data: &[u8],
        file: &mut ClientFile,
    ) -> Result<(Option<u64>, usize)> {
        file.written = self.now();
        self.change_in(file.locks, |attempt| {
            let mut inode = attempt.inode(id)?;
            let (stamp, begin) = (inode.stamp, inode.size);
            if inode.kind != FileKind::File {
                return Err(Error::Invalid("no file"));
            }
            if begin.saturating_add(data.len() as u64) > MAX_FILE {
                return Err(Error::TooLarge);
            }
            let within = (begin % self.block_bytes as u64) as usize;
            let mut taken = data.len().min((MOST_ASKS - 1) * self.block_bytes - within);
            if inode.form == DataForm::Inline
                && inode.fits_inline(begin + taken as u64, self.block_bytes)
            {
                inode.inline.extend(&data[..taken]);
            } else if inode.form == DataForm::Inline {
                plan_blocks(attempt, &mut inode);
                taken = 0;
            } else {
                for (page, part, from) in pieces(begin, taken, self.block_bytes) {
                    let action = Action::Patch { offset: part.start, bytes: data[from].to_vec() };
                    let name = layout::data(id, page);
                    attempt.ask(Ask::change(name, action, Compare::Always));
                }
            }
            inode.size = begin + taken as u64;
            inode.modified(self.random(), file.written);
            attempt.ask(inode.replace(stamp, self.block_bytes));
            Ok(((taken > 0 || data.is_empty()).then_some(begin), taken))
        })
    }
}

/// How much of a stretch is within a file, and where the file ends.
fn bound(inode: &Inode, offset: u64, len: usize, waiting_end: u64) -> Result<(usize, u64)> {
    match inode.kind {
        FileKind::File => {}
        FileKind::Directory => return Err(Error::IsADirectory),
        _ => return Err(Error::Invalid("no file")),
    }
    let size = inode.size.max(waiting_end);
    let rest = size.saturating_sub(offset);
    Ok((len.min(usize::try_from(rest).unwrap_or(usize::MAX)), size))
}

fn copy_inline(inode: &Inode, offset: u64, data: &mut [u8]) {
    let begin = usize::try_from(offset).unwrap_or(usize::MAX);
    if let Some(from) = inode.inline.get(begin..) {
        let len = from.len().min(data.len());
        data[..len].copy_from_slice(&from[..len]);
    }
}

fn lay_over(pages: &BTreeMap<u64, DirtyPage>, offset: u64, data: &mut [u8], block_bytes: usize) {
    for (number, part, to) in pieces(offset, data.len(), block_bytes) {
        if let Some(page) = pages.get(&number) {
            let mut base = vec![0; block_bytes];
            base[part.clone()].copy_from_slice(&data[to.clone()]);
            page.lay_over(&mut base);
            data[to].copy_from_slice(&base[part]);
        }
    }
}

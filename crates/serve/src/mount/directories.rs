//! Listing directories.
//!
//! A listing goes by names, which are sorted. It resumes after the name that a cookie stands for,
//! whatever was created or removed in between. Each name keeps its cookie while the directory is
//! open.

use crate::fuse::{Fail, ListedName};
use fuser::Errno;
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, DirEntry, FileSystem, Ino};
use std::collections::{HashMap, VecDeque};

/// Cookies: where `.` and `..` end and names begin.
const AFTER_DOT: u64 = 1;
const AFTER_DOTS: u64 = 2;
/// Names per fetch,
const PAGE: usize = 1024;
/// or after a change during the listing, to keep changes cheap.
const SMALL_PAGE: usize = 64;
/// The most entries in a buffer of the kernel, with attributes or without.
const MOST_PLUS: usize = 256;
const MOST_PLAIN: usize = 1024;

/// All open directories.
#[derive(Default)]
pub struct Directories(HashMap<u64, Cursor>);

/// The file system to list, and how often it has changed.
pub struct Now<'f> {
    pub fs: &'f FileSystem,
    pub changes: u64,
}

#[derive(Default)]
struct Cursor {
    /// `names[i]` ends at cookie `AFTER_DOTS + 1 + i`.
    names: Vec<Vec<u8>>,
    cookies: HashMap<Vec<u8>, u64>,
    /// Prefetched entries: they begin after `ahead_from` and are valid while nothing changes.
    ahead: VecDeque<(DirEntry, Option<Attr>)>,
    ahead_from: u64,
    changes: u64,
    /// Whether no more names follow `ahead`.
    ended: bool,
}

impl Directories {
    /// Begins a listing.
    pub fn opened(&mut self, fh: u64) {
        self.0.insert(fh, Cursor::default());
    }

    /// Ends a listing, if it is one.
    pub fn closed(&mut self, fh: u64) {
        self.0.remove(&fh);
    }

    /// Entries of a directory after a cookie, as many as a buffer of the kernel may hold. `plus`
    /// asks for attributes.
    pub fn list(
        &mut self,
        now: &Now<'_>,
        ino: Ino,
        fh: u64,
        from: u64,
        plus: bool,
    ) -> Result<Vec<ListedName>, Fail> {
        self.0.get_mut(&fh).ok_or(Errno::EBADF)?.list(now, ino, from, plus)
    }
}

impl Cursor {
    fn cookie(&mut self, name: &[u8]) -> u64 {
        if let Some(&cookie) = self.cookies.get(name) {
            return cookie;
        }
        self.names.push(name.to_vec());
        let cookie = AFTER_DOTS + self.names.len() as u64;
        self.cookies.insert(name.to_vec(), cookie);
        cookie
    }

    /// The name for a cookie; `None` at the beginning.
    fn name(&self, cookie: u64) -> Result<Option<&[u8]>, Errno> {
        let Some(index) = cookie.checked_sub(AFTER_DOTS + 1) else { return Ok(None) };
        let name = usize::try_from(index).ok().and_then(|index| self.names.get(index));
        name.map(|name| Some(name.as_slice())).ok_or(Errno::EINVAL)
    }

    fn list(
        &mut self,
        now: &Now<'_>,
        ino: Ino,
        from: u64,
        plus: bool,
    ) -> Result<Vec<ListedName>, Fail> {
        let most = if plus { MOST_PLUS } else { MOST_PLAIN };
        let mut listed = Vec::new();
        if from < AFTER_DOT {
            listed.push(ListedName::dots(AFTER_DOT, b".", ino));
        }
        if from < AFTER_DOTS {
            listed.push(ListedName::dots(AFTER_DOTS, b"..", now.fs.parent(ino)?));
        }
        self.look_ahead(now, ino, from.max(AFTER_DOTS))?;
        let mut at = 0;
        while listed.len() < most && at < self.ahead.len() {
            if plus && self.ahead.get(at).is_some_and(|(_, attr)| attr.is_none()) {
                self.fill_attr(now, at)?;
            }
            let Some((entry, attr)) = self.ahead.get(at) else { break };
            let (name, attr) = (entry.name.clone(), attr.clone());
            let (ino, kind) = (entry.ino, entry.kind);
            let cookie = self.cookie(&name);
            // An entry whose inode is gone no longer exists.
            if !plus || attr.is_some() {
                listed.push(ListedName { cookie, name, ino, kind, attr });
            }
            at += 1;
        }
        Ok(listed)
    }

    fn fill_attr(&mut self, now: &Now<'_>, at: usize) -> oblivio_volume::Result<()> {
        if let Some((entry, attr)) = self.ahead.get_mut(at) {
            *attr = match now.fs.attr(entry.ino) {
                Ok(found) => Some(found),
                Err(Error::NotFound(_)) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// Makes `self.ahead` begin right after the cookie `from`. Entries are dropped only now,
    /// because not all of them may have fitted the kernel's buffer.
    fn look_ahead(&mut self, now: &Now<'_>, ino: Ino, from: u64) -> Result<(), Fail> {
        let undisturbed = self.changes == now.changes;
        if undisturbed && self.ahead_from != 0 {
            while self.ahead_from != from {
                let Some((entry, _)) = self.ahead.pop_front() else { break };
                self.ahead_from = self.cookie(&entry.name);
            }
            if self.ahead_from == from && (self.ended || !self.ahead.is_empty()) {
                return Ok(());
            }
        }
        let first = self.ahead_from == 0;
        let limit = if first || undisturbed { PAGE } else { SMALL_PAGE };
        let page = now.fs.read_dir(ino, self.name(from)?, limit)?;
        self.ended = page.len() < limit;
        self.ahead = page.into_iter().map(|entry| (entry, None)).collect();
        self.ahead_from = from;
        self.changes = now.changes;
        Ok(())
    }
}

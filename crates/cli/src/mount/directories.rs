//! Listing directories.
//!
//! A listing goes by names, which are sorted. It resumes after the name that a cookie stands for,
//! whatever was created or removed in between. Each name keeps its cookie while the directory is
//! open.

use super::convert;
use super::request::{Answer, Listed};
use super::server::{Served, Server};
use fuser::{Errno, FileType};
use oblivio_volume::Error;
use oblivio_volume::fs::{Attr, DirEntry, Ino};
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
}

impl Server {
    pub(super) fn open_dir(&mut self, ino: Ino) -> Served {
        // While open, the directory outlives its name.
        let handle = self.fs.open_directory(ino)?;
        let fh = self.new_fh();
        self.files.insert(fh, handle);
        self.directories.0.insert(fh, Cursor::default());
        Ok(Answer::Opened(fh))
    }

    pub(super) fn close_dir(&mut self, fh: u64) -> oblivio_volume::Result<()> {
        self.directories.0.remove(&fh);
        self.release(fh)
    }

    pub(super) fn read_dir(&mut self, ino: Ino, fh: u64, from: u64, plus: bool) -> Served {
        // Removed from the map, because filling it needs the file system as well.
        let mut cursor = self.directories.0.remove(&fh).ok_or(Errno::EBADF)?;
        let listed = self.list(&mut cursor, ino, from, plus);
        self.directories.0.insert(fh, cursor);
        listed.map(Answer::Listing)
    }

    fn list(
        &self,
        cursor: &mut Cursor,
        ino: Ino,
        from: u64,
        plus: bool,
    ) -> Result<Vec<Listed>, super::errno::Fail> {
        let most = if plus { MOST_PLUS } else { MOST_PLAIN };
        let mut listed = Vec::new();
        if from < AFTER_DOT {
            listed.push(dots(AFTER_DOT, b".", ino));
        }
        if from < AFTER_DOTS {
            listed.push(dots(AFTER_DOTS, b"..", self.fs.parent(ino)?));
        }
        self.look_ahead(cursor, ino, from.max(AFTER_DOTS))?;
        let mut at = 0;
        while listed.len() < most && at < cursor.ahead.len() {
            if plus && cursor.ahead.get(at).is_some_and(|(_, attr)| attr.is_none()) {
                self.fill_attr(cursor, at)?;
            }
            let Some((entry, attr)) = cursor.ahead.get(at) else { break };
            let (name, attr) = (entry.name.clone(), attr.clone());
            let (ino, kind) = (entry.ino, convert::kind(entry.kind));
            let cookie = cursor.cookie(&name);
            // An entry whose inode is gone no longer exists.
            if !plus || attr.is_some() {
                listed.push(Listed { cookie, name, ino, kind, attr });
            }
            at += 1;
        }
        Ok(listed)
    }

    fn fill_attr(&self, cursor: &mut Cursor, at: usize) -> oblivio_volume::Result<()> {
        if let Some((entry, attr)) = cursor.ahead.get_mut(at) {
            *attr = match self.fs.attr(entry.ino) {
                Ok(found) => Some(found),
                Err(Error::NotFound(_)) => None,
                Err(error) => return Err(error),
            };
        }
        Ok(())
    }

    /// Makes `cursor.ahead` begin right after the cookie `from`. Entries are dropped only now,
    /// because not all of them may have fitted the kernel's buffer.
    fn look_ahead(
        &self,
        cursor: &mut Cursor,
        ino: Ino,
        from: u64,
    ) -> Result<(), super::errno::Fail> {
        let undisturbed = cursor.changes == self.changes;
        if undisturbed && cursor.ahead_from != 0 {
            while cursor.ahead_from != from {
                let Some((entry, _)) = cursor.ahead.pop_front() else { break };
                cursor.ahead_from = cursor.cookie(&entry.name);
            }
            if cursor.ahead_from == from && (cursor.ended || !cursor.ahead.is_empty()) {
                return Ok(());
            }
        }
        let first = cursor.ahead_from == 0;
        let limit = if first || undisturbed { PAGE } else { SMALL_PAGE };
        let page = self.fs.read_dir(ino, cursor.name(from)?, limit)?;
        cursor.ended = page.len() < limit;
        cursor.ahead = page.into_iter().map(|entry| (entry, None)).collect();
        cursor.ahead_from = from;
        cursor.changes = self.changes;
        Ok(())
    }
}

fn dots(cookie: u64, name: &[u8], ino: Ino) -> Listed {
    Listed { cookie, name: name.to_vec(), ino, kind: FileType::Directory, attr: None }
}

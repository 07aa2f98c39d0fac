//! Operations on the content of files.

use super::model::path;
use super::{BLOCK, Op, Pair};
use crate::fs::read_many;
use oblivio_volume::Error;
use oblivio_volume::fs::{Handle, SeekWhence, SetAttr};

impl Pair {
    /// A file of the model and a handle to it, held open already or opened for this. The handle
    /// goes back to `done`.
    fn target(&self, choice: u8) -> Option<(u64, Handle, bool)> {
        if choice >= 160 && !self.handles.is_empty() {
            let index = usize::from(choice) % self.handles.len();
            return Some((self.model.held[index], self.handles[index], false));
        }
        let path = path(choice);
        let id = self.model.file(&path)?;
        Some((id, self.fs().open_file(self.ino(&path).unwrap()).unwrap(), true))
    }

    fn done(&self, handle: Handle, opened: bool) {
        if opened {
            self.fs().close(handle).unwrap();
        }
    }

    pub fn hold(&mut self, path: &str) {
        if let Some(id) = self.model.file(path).filter(|_| self.handles.len() < 4) {
            let handle = self.fs().open_file(self.ino(path).unwrap()).unwrap();
            self.handles.push(handle);
            self.model.held.push(id);
        }
    }

    pub fn release(&mut self, index: u8) {
        if !self.handles.is_empty() {
            let index = usize::from(index) % self.handles.len();
            let handle = self.handles.remove(index);
            self.fs().close(handle).unwrap();
            self.model.release(index);
        }
    }

    pub fn change_data(&mut self, op: &Op) {
        match *op {
            Op::Write(p, at, len, byte) => self.write(p, at as usize, usize::from(len), byte),
            Op::Truncate(p, size) => self.truncate(&path(p), size),
            Op::Punch(p, at, len) => self.fill(p, at, len, true, |pair, handle| {
                pair.fs().punch(handle, at.into(), len.into())
            }),
            Op::ZeroRange(p, at, len, keep) => self.fill(p, at, len, keep, |pair, handle| {
                pair.fs().zero_range(handle, at.into(), len.into(), keep)
            }),
            Op::Allocate(p, at, len, keep) => self.allocate(p, at, len, keep),
            _ => unreachable!("{op:?}"),
        }
    }

    fn write(&mut self, choice: u8, at: usize, len: usize, byte: u8) {
        let Some((id, handle, opened)) = self.target(choice) else {
            return;
        };
        let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8) | 1).collect();
        let file = self.model.bytes(id).unwrap();
        if len > 0 {
            file.resize(file.len().max(at + len), 0);
            file[at..at + len].copy_from_slice(&data);
        }
        self.fs().write(handle, at as u64, &data).unwrap();
        self.done(handle, opened);
    }

    fn truncate(&mut self, path: &str, size: u32) {
        let Some(id) = self.model.file(path) else {
            return;
        };
        self.model.bytes(id).unwrap().resize(size as usize, 0);
        let set = SetAttr { size: Some(size.into()), ..SetAttr::default() };
        let attr = self.fs().set_attr(self.ino(path).unwrap(), set).unwrap();
        assert_eq!(attr.size, u64::from(size));
    }

    /// An operation that leaves zeros in a range.
    fn fill(
        &mut self,
        choice: u8,
        at: u32,
        len: u16,
        keep: bool,
        run: impl FnOnce(&Self, Handle) -> oblivio_volume::Result<()>,
    ) {
        let Some((id, handle, opened)) = self.target(choice) else {
            return;
        };
        let done = run(self, handle);
        self.done(handle, opened);
        if len == 0 {
            assert!(matches!(done, Err(Error::Invalid(_))));
            return;
        }
        done.unwrap();
        let file = self.model.bytes(id).unwrap();
        let (start, end) = (at as usize, at as usize + usize::from(len));
        if !keep {
            file.resize(file.len().max(end), 0);
        }
        let (start, end) = (start.min(file.len()), end.min(file.len()));
        file[start..end].fill(0);
    }

    fn allocate(&mut self, choice: u8, at: u32, len: u16, keep: bool) {
        let Some((id, handle, opened)) = self.target(choice) else {
            return;
        };
        if len > 0 {
            self.fs().allocate(handle, at.into(), len.into(), keep).unwrap();
            let file = self.model.bytes(id).unwrap();
            let end = if keep { 0 } else { at as usize + usize::from(len) };
            file.resize(file.len().max(end), 0);
        }
        self.done(handle, opened);
    }

    pub fn read_many(&mut self, wanted: &[(u8, u32, u16)]) {
        let mut targets = Vec::new();
        for &(choice, at, len) in wanted {
            if let Some(target) = self.target(choice) {
                targets.push((target, at as usize, usize::from(len)));
            }
        }
        let requests = targets.iter().map(|&((_, handle, _), at, len)| (handle, at as u64, len));
        let answers = match targets.len() {
            1 => requests.map(|(handle, at, len)| self.fs().read(handle, at, len)).collect(),
            _ => read_many(self.fs(), &requests.collect::<Vec<_>>()),
        };
        assert_eq!(answers.len(), targets.len());
        for (((id, handle, opened), at, len), got) in targets.into_iter().zip(answers) {
            let file = self.model.bytes(id).unwrap();
            let (start, end) = (file.len().min(at), file.len().min(at + len));
            assert!(got.unwrap() == file[start..end], "{id} at {at} for {len}");
            self.done(handle, opened);
        }
    }

    /// A skipped hole is zero, and skipped data ends where zeros begin.
    pub fn seek(&mut self, choice: u8, at: u32) {
        let Some((id, handle, opened)) = self.target(choice) else {
            return;
        };
        let from = at as usize;
        let data = self.fs().seek(handle, at.into(), SeekWhence::Data).unwrap();
        let hole = self.fs().seek(handle, at.into(), SeekWhence::Hole).unwrap();
        self.done(handle, opened);
        let file = self.model.bytes(id).unwrap();
        if from >= file.len() {
            assert_eq!((data, hole), (None, None));
            return;
        }
        let data_at = data.map_or(file.len(), |data| data as usize);
        assert!(data_at >= from && file[from..data_at].iter().all(|&byte| byte == 0));
        let hole = hole.unwrap() as usize;
        assert!(hole >= from && hole <= file.len());
        let rest = &file[hole..file.len().min((hole / BLOCK + 1) * BLOCK)];
        assert!(rest.iter().all(|&byte| byte == 0));
        assert!(data_at != hole || data.is_none(), "both at {hole}");
    }
}

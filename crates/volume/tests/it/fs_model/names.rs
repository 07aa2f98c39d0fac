//! Operations on names and attributes.

use super::{Node, Op, Pair, path};
use oblivio_volume::Error;
use oblivio_volume::fs::{FileKind, Ino, NewNode, RenameMode, XattrMode};

const KINDS: [FileKind; 4] =
    [FileKind::Fifo, FileKind::Socket, FileKind::CharDevice, FileKind::BlockDevice];

impl Pair {
    pub fn change_names(&mut self, op: &Op) {
        match *op {
            Op::Create(p) => self.create(&path(p)),
            Op::Mkdir(p) => self.mkdir(&path(p)),
            Op::Mknod(p, kind) => self.mknod(&path(p), KINDS[usize::from(kind % 4)]),
            Op::Symlink(p, t) => self.symlink(&path(p), path(t).into_bytes()),
            Op::Link(from, to) => self.link(&path(from), &path(to)),
            Op::Unlink(p) => self.unlink(&path(p)),
            Op::Rmdir(p) => self.rmdir(&path(p)),
            Op::Rename(from, to, mode) => self.rename(&path(from), &path(to), mode),
            Op::SetXattr(p, name, len, mode) => self.set_xattr(&path(p), name % 4, len, mode),
            Op::RemoveXattr(p, name) => self.remove_xattr(&path(p), name % 4),
            _ => unreachable!("{op:?}"),
        }
    }

    fn create(&mut self, path: &str) {
        let made =
            self.place(path).and_then(|(d, n)| self.fs().create(d, n, NewNode::default()).ok());
        assert_eq!(made.is_some(), self.model.add(path, Node::File(Vec::new())), "{path}");
        if let Some((_, handle)) = made {
            self.fs().close(handle).unwrap();
        }
    }

    fn mkdir(&mut self, path: &str) {
        let node = NewNode::default();
        let done = self.place(path).is_some_and(|(d, n)| self.fs().mkdir(d, n, node).is_ok());
        assert_eq!(done, self.model.add(path, Node::Directory), "{path}");
    }

    fn mknod(&mut self, path: &str, kind: FileKind) {
        let node = NewNode::default();
        let made = self.place(path).and_then(|(d, n)| self.fs().mknod(d, n, kind, 7, node).ok());
        assert_eq!(made.is_some(), self.model.add(path, Node::Special(kind)), "{path}");
        if let Some(attr) = made {
            assert_eq!((attr.kind, attr.nlink), (kind, 1));
        }
    }

    fn symlink(&mut self, path: &str, target: Vec<u8>) {
        let node = NewNode::default();
        let place = self.place(path);
        let done = place.is_some_and(|(d, n)| self.fs().symlink(d, n, &target, node).is_ok());
        assert_eq!(done, self.model.add(path, Node::Symlink(target)));
    }

    fn link(&mut self, from: &str, to: &str) {
        let done = match (self.ino(from), self.place(to)) {
            (Some(ino), Some((d, n))) => self.fs().link(ino, d, n).is_ok(),
            _ => false,
        };
        let linkable = self.model.get(from).is_some_and(|n| *n != Node::Directory);
        assert_eq!(done, linkable && self.model.can_add(to), "{from} {to}");
        if done {
            let id = self.model.names[from];
            self.model.names.insert(to.into(), id);
        }
    }

    fn unlink(&mut self, path: &str) {
        let done = self.place(path).is_some_and(|(d, n)| self.fs().unlink(d, n).is_ok());
        assert_eq!(done, self.model.get(path).is_some_and(|n| *n != Node::Directory));
        if done {
            self.model.remove(path);
        }
    }

    fn rmdir(&mut self, path: &str) {
        let done = self.place(path).is_some_and(|(d, n)| self.fs().rmdir(d, n).is_ok());
        assert_eq!(done, self.model.is_directory(path) && !self.model.has_entries(path));
        if done {
            self.model.remove(path);
        }
    }

    fn rename(&mut self, from: &str, to: &str, mode: u8) {
        let mode = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange]
            [usize::from(mode % 3)];
        let done = match (self.place(from), self.place(to)) {
            (Some((d, n)), Some((e, m))) => self.fs().rename(d, n, e, m, mode).is_ok(),
            _ => false,
        };
        assert_eq!(done, self.model.rename(from, to, mode), "{from} {to} {mode:?}");
    }

    fn set_xattr(&mut self, path: &str, name: u8, len: u16, mode: u8) {
        let (Some(ino), Some(&id)) = (self.ino(path), self.model.names.get(path)) else {
            return;
        };
        let value = vec![mode; usize::from(len)];
        let mode = [XattrMode::Set, XattrMode::Create, XattrMode::Replace][usize::from(mode % 3)];
        let exists = self.model.xattrs.contains_key(&(id, name));
        match (self.fs().set_xattr(ino, &xattr_name(name), &value, mode), mode) {
            (Err(Error::Exists(_)), XattrMode::Create) => assert!(exists),
            (Err(Error::NotFound(_)), XattrMode::Replace) => assert!(!exists),
            (done, _) => {
                done.unwrap();
                assert!(mode == XattrMode::Set || exists == (mode == XattrMode::Replace));
                self.model.xattrs.insert((id, name), value);
            }
        }
    }

    fn remove_xattr(&mut self, path: &str, name: u8) {
        let (Some(ino), Some(&id)) = (self.ino(path), self.model.names.get(path)) else {
            return;
        };
        let done = self.fs().remove_xattr(ino, &xattr_name(name)).is_ok();
        assert_eq!(done, self.model.xattrs.remove(&(id, name)).is_some());
    }

    pub fn compare_xattrs(&self, path: &str, ino: Ino) {
        let Some(&id) = self.model.names.get(path) else {
            return;
        };
        let range = self.model.xattrs.range((id, 0)..=(id, u8::MAX));
        let wanted: Vec<_> = range.map(|(&(_, name), value)| (xattr_name(name), value)).collect();
        let names: Vec<_> = wanted.iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(self.fs().list_xattrs(ino).unwrap(), names);
        for (name, value) in wanted {
            assert!(self.fs().get_xattr(ino, &name).unwrap().as_ref() == Some(value));
        }
    }
}

fn xattr_name(name: u8) -> Vec<u8> {
    format!("user.{name}").into_bytes()
}

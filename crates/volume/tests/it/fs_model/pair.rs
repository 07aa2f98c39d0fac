//! A file system beside its model.

use super::{Model, Node, Op, TestDisk, path, split};
use oblivio_volume::fs::{FileKind, FileSystem, Handle, Ino, ROOT_INO};

/// A file system and its expected content.
pub struct Pair {
    disk: Box<dyn TestDisk>,
    fs: Option<FileSystem>,
    pub model: Model,
    /// The handles of the inodes that the model holds.
    pub handles: Vec<Handle>,
    /// The model at the last commit.
    committed: Model,
    /// Commits after each write, because a crash may tear ranges overwritten in place.
    careful: bool,
}

impl Pair {
    pub fn new(disk: Box<dyn TestDisk>, careful: bool) -> Self {
        let fs = FileSystem::format(disk.boxed()).unwrap();
        Self::of(disk, fs, careful)
    }

    /// On a file system without files.
    pub fn of(disk: Box<dyn TestDisk>, fs: FileSystem, careful: bool) -> Self {
        Pair {
            disk,
            fs: Some(fs),
            model: Model::default(),
            handles: Vec::new(),
            committed: Model::default(),
            careful,
        }
    }

    pub fn fs(&self) -> &FileSystem {
        self.fs.as_ref().unwrap()
    }

    pub fn ino(&self, path: &str) -> Option<Ino> {
        self.fs().resolve(&format!("/{path}")).ok().map(|a| a.ino)
    }

    /// A path's directory and its name there. A missing directory fails later.
    pub fn place<'a>(&self, path: &'a str) -> Option<(Ino, &'a [u8])> {
        let (parent, name) = split(path);
        Some((self.ino(parent)?, name.as_bytes()))
    }

    pub fn apply(&mut self, op: &Op) {
        match op {
            Op::Write(..) | Op::Truncate(..) | Op::Punch(..) | Op::ZeroRange(..) => {
                self.change_data(op);
                if self.careful {
                    self.commit();
                }
            }
            Op::Allocate(..) => self.change_data(op),
            Op::Read(p, at, len) => self.read_many(&[(*p, *at, *len)]),
            Op::ReadMany(requests) => self.read_many(requests),
            Op::Seek(p, at) => self.seek(*p, *at),
            Op::Hold(p) => self.hold(&path(*p)),
            Op::Release(index) => self.release(*index),
            Op::Commit => self.commit(),
            Op::Reopen => self.reopen(),
            Op::Crash => self.crash(),
            _ => self.change_names(op),
        }
    }

    fn commit(&mut self) {
        self.fs().commit().unwrap();
        self.committed = self.model.clone();
    }

    fn reopen(&mut self) {
        let blocks = self.fs.take().unwrap().into_blocks().unwrap();
        self.handles.clear();
        self.model.release_all();
        self.committed = self.model.clone();
        self.fs = Some(FileSystem::open(blocks).unwrap());
    }

    fn crash(&mut self) {
        drop(self.fs.take());
        self.disk.crash();
        self.handles.clear();
        self.model = self.committed.clone();
        self.model.release_all();
        self.fs = Some(FileSystem::open(self.disk.boxed()).unwrap());
        self.compare();
    }

    /// The file system and the model have the same content.
    pub fn compare(&self) {
        let report = self.fs().check_with(true, &mut |_, _| {}).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        let mut seen = 0;
        let mut open = vec![(String::new(), ROOT_INO)];
        while let Some((prefix, ino)) = open.pop() {
            for entry in self.fs().read_dir(ino, None, usize::MAX).unwrap() {
                let path = format!("{prefix}{}", String::from_utf8(entry.name).unwrap());
                seen += 1;
                self.compare_xattrs(&path, entry.ino);
                match (self.model.get(&path), entry.kind) {
                    (Some(Node::Directory), FileKind::Directory) => {
                        assert_eq!(self.fs().parent(entry.ino).unwrap(), ino);
                        open.push((format!("{path}/"), entry.ino));
                    }
                    (Some(Node::Symlink(target)), FileKind::Symlink) => {
                        assert_eq!(&self.fs().read_link(entry.ino).unwrap(), target);
                    }
                    (Some(Node::File(bytes)), FileKind::File) => {
                        let handle = self.fs().open_file(entry.ino).unwrap();
                        self.compare_bytes(handle, bytes, &path);
                        self.fs().close(handle).unwrap();
                    }
                    (Some(Node::Special(kind)), found) if *kind == found => {}
                    (wanted, found) => panic!("{path}: {found:?}, not {wanted:?}"),
                }
            }
        }
        assert_eq!(seen, self.model.names.len());
        for (id, &handle) in self.model.held.iter().zip(&self.handles) {
            match &self.model.nodes[id] {
                Node::File(bytes) => self.compare_bytes(handle, bytes, "held"),
                other => panic!("{other:?} is held"),
            }
        }
    }

    fn compare_bytes(&self, handle: Handle, bytes: &[u8], what: &str) {
        let got = self.fs().read(handle, 0, bytes.len() + 1).unwrap();
        assert!(got == bytes, "content of {what}");
    }
}

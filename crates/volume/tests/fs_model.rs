//! The file system against a plain model, with crashes and commits at bad moments, and the
//! promises on space.

use oblivio_volume::Error;
use oblivio_volume::fs::testing::MemoryBlocks;
use oblivio_volume::fs::{
    FileKind, FileSystem, Ino, NewNode, ROOT_INO, RenameMode, SetAttr, Timestamp,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const BLOCK: usize = 2048;

/// One operation; numbers choose among the paths of a small fixed set.
#[derive(Clone, Debug)]
enum Op {
    Create(u8),
    Write(u8, u32, u16, u8),
    Truncate(u8, u32),
    Read(u8, u32, u16),
    Mkdir(u8),
    Symlink(u8, u8),
    Link(u8, u8),
    Unlink(u8),
    Rmdir(u8),
    Rename(u8, u8, u8),
    Commit,
    Reopen,
    Crash,
}

/// What the model knows of an inode. Inodes are numbered, names lead to numbers.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    File(Vec<u8>),
    Directory,
    Symlink(Vec<u8>),
}

#[derive(Clone, Debug, Default)]
struct Model {
    nodes: BTreeMap<u64, Node>,
    /// Full paths without the leading slash; a directory's entries are the paths below it.
    names: BTreeMap<String, u64>,
    next: u64,
}

/// One of few paths: `a` to `c`, up to three deep, so that operations often meet.
fn path(choice: u8) -> String {
    let names = ["a", "b", "c"];
    let name = |index: u8| names[usize::from(index % 3)];
    match choice % 4 {
        0 => name(choice / 4).to_string(),
        1 | 2 => format!("{}/{}", name(choice / 4), name(choice / 16)),
        _ => format!("{}/{}/{}", name(choice / 4), name(choice / 16), name(choice / 48)),
    }
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

impl Model {
    fn get(&self, path: &str) -> Option<&Node> {
        self.names.get(path).map(|id| &self.nodes[id])
    }

    fn is_directory(&self, path: &str) -> bool {
        path.is_empty() || self.get(path) == Some(&Node::Directory)
    }

    fn can_add(&self, path: &str) -> bool {
        self.is_directory(split(path).0) && !self.names.contains_key(path)
    }

    fn add(&mut self, path: &str, node: Node) -> bool {
        if !self.can_add(path) {
            return false;
        }
        self.next += 1;
        self.nodes.insert(self.next, node);
        self.names.insert(path.into(), self.next);
        true
    }

    fn has_entries(&self, path: &str) -> bool {
        let prefix = format!("{path}/");
        self.names.keys().any(|name| name.starts_with(&prefix))
    }

    fn remove(&mut self, path: &str) {
        if let Some(id) = self.names.remove(path)
            && !self.names.values().any(|&other| other == id)
        {
            self.nodes.remove(&id);
        }
    }

    fn take_tree(&mut self, path: &str) -> Vec<(String, u64)> {
        let prefix = format!("{path}/");
        let inside = |name: &str| name == path || name.starts_with(&prefix);
        let all = std::mem::take(&mut self.names);
        let (taken, kept): (BTreeMap<_, _>, _) = all.into_iter().partition(|(n, _)| inside(n));
        self.names = kept;
        let tail = |name: String| name[path.len()..].to_string();
        taken.into_iter().map(|(name, id)| (tail(name), id)).collect()
    }

    fn put_tree(&mut self, path: &str, tree: Vec<(String, u64)>) {
        let entries = tree.into_iter();
        self.names.extend(entries.map(|(tail, id)| (format!("{path}{tail}"), id)));
    }

    /// Whether the rename succeeds, done in the model when it does.
    fn rename(&mut self, from: &str, to: &str, mode: RenameMode) -> bool {
        let below = |inner: &str, outer: &str| inner.starts_with(&format!("{outer}/"));
        let Some(&source) = self.names.get(from) else {
            return false;
        };
        if !self.is_directory(split(to).0) || (self.is_directory(from) && below(to, from)) {
            return false;
        }
        let target = self.names.get(to).copied();
        match (mode, target) {
            (RenameMode::NoReplace, Some(_)) | (RenameMode::Exchange, None) => return false,
            (_, Some(target)) if target == source => return true,
            (RenameMode::Exchange, Some(_)) => {
                if self.is_directory(to) && below(from, to) {
                    return false;
                }
                let (a, b) = (self.take_tree(from), self.take_tree(to));
                self.put_tree(to, a);
                self.put_tree(from, b);
                return true;
            }
            (_, Some(_)) => {
                if self.is_directory(from) != self.is_directory(to) || self.has_entries(to) {
                    return false;
                }
                self.remove(to);
            }
            (_, None) => {}
        }
        let tree = self.take_tree(from);
        self.put_tree(to, tree);
        true
    }

    fn file_mut(&mut self, path: &str) -> Option<&mut Vec<u8>> {
        let id = self.names.get(path)?;
        match self.nodes.get_mut(id) {
            Some(Node::File(bytes)) => Some(bytes),
            _ => None,
        }
    }
}

/// A file system and what it should be.
struct Pair {
    disk: MemoryBlocks,
    fs: Option<FileSystem>,
    model: Model,
    /// The model at the last commit.
    committed: Model,
    /// Commits after each write, as ranges overwritten in place may be torn by a crash.
    careful: bool,
}

impl Pair {
    fn new(disk: MemoryBlocks, careful: bool) -> Self {
        let fs = FileSystem::format(disk.boxed()).unwrap();
        Pair { disk, fs: Some(fs), model: Model::default(), committed: Model::default(), careful }
    }

    fn fs(&self) -> &FileSystem {
        self.fs.as_ref().unwrap()
    }

    fn ino(&self, path: &str) -> Option<Ino> {
        self.fs().resolve(&format!("/{path}")).ok().map(|a| a.ino)
    }

    /// The directory of a path and its name there; a directory that is none fails later.
    fn place<'a>(&self, path: &'a str) -> Option<(Ino, &'a [u8])> {
        let (parent, name) = split(path);
        Some((self.ino(parent)?, name.as_bytes()))
    }

    fn apply(&mut self, op: &Op) {
        match *op {
            Op::Create(p) => self.create(&path(p)),
            Op::Write(p, at, len, byte) => self.write(&path(p), at, len, byte),
            Op::Truncate(p, size) => self.truncate(&path(p), size),
            Op::Read(p, at, len) => self.read(&path(p), at, len),
            Op::Mkdir(p) => {
                let path = path(p);
                let done = self
                    .place(&path)
                    .is_some_and(|(d, n)| self.fs().mkdir(d, n, NewNode::default()).is_ok());
                assert_eq!(done, self.model.add(&path, Node::Directory), "{path}");
            }
            Op::Symlink(p, t) => {
                let (path, target) = (path(p), path(t).into_bytes());
                let node = NewNode::default();
                let done = self
                    .place(&path)
                    .is_some_and(|(d, n)| self.fs().symlink(d, n, &target, node).is_ok());
                assert_eq!(done, self.model.add(&path, Node::Symlink(target)));
            }
            Op::Link(from, to) => self.link(&path(from), &path(to)),
            Op::Unlink(p) => {
                let path = path(p);
                let done = self.place(&path).is_some_and(|(d, n)| self.fs().unlink(d, n).is_ok());
                let wanted = self.model.get(&path).is_some_and(|n| *n != Node::Directory);
                assert_eq!(done, wanted);
                if done {
                    self.model.remove(&path);
                }
            }
            Op::Rmdir(p) => {
                let path = path(p);
                let done = self.place(&path).is_some_and(|(d, n)| self.fs().rmdir(d, n).is_ok());
                let wanted = self.model.is_directory(&path) && !self.model.has_entries(&path);
                assert_eq!(done, wanted);
                if done {
                    self.model.remove(&path);
                }
            }
            Op::Rename(from, to, mode) => self.rename(&path(from), &path(to), mode),
            Op::Commit => self.commit(),
            Op::Reopen => {
                let blocks = self.fs.take().unwrap().into_blocks().unwrap();
                self.committed = self.model.clone();
                self.fs = Some(FileSystem::open(blocks).unwrap());
            }
            Op::Crash => {
                drop(self.fs.take());
                self.disk.crash();
                self.model = self.committed.clone();
                self.fs = Some(FileSystem::open(self.disk.boxed()).unwrap());
                self.compare();
            }
        }
    }

    fn commit(&mut self) {
        self.fs().commit().unwrap();
        self.committed = self.model.clone();
    }

    fn create(&mut self, path: &str) {
        let made =
            self.place(path).and_then(|(d, n)| self.fs().create(d, n, NewNode::default()).ok());
        let wanted = self.model.add(path, Node::File(Vec::new()));
        assert_eq!(made.is_some(), wanted, "{path}");
        if let Some((_, handle)) = made {
            self.fs().close(handle).unwrap();
        }
    }

    fn write(&mut self, path: &str, at: u32, len: u16, byte: u8) {
        let Some(file) = self.model.file_mut(path) else {
            return;
        };
        let (at, len) = (at as usize, usize::from(len));
        let data: Vec<u8> = (0..len).map(|i| byte.wrapping_add(i as u8) | 1).collect();
        if len > 0 {
            file.resize(file.len().max(at + len), 0);
            file[at..at + len].copy_from_slice(&data);
        }
        let handle = self.fs().open_file(self.ino(path).unwrap()).unwrap();
        self.fs().write(handle, at as u64, &data).unwrap();
        self.fs().close(handle).unwrap();
        if self.careful {
            self.commit();
        }
    }

    fn truncate(&mut self, path: &str, size: u32) {
        let Some(file) = self.model.file_mut(path) else {
            return;
        };
        file.resize(size as usize, 0);
        let set = SetAttr { size: Some(size.into()), ..SetAttr::default() };
        let attr = self.fs().set_attr(self.ino(path).unwrap(), set).unwrap();
        assert_eq!(attr.size, u64::from(size));
        if self.careful {
            self.commit();
        }
    }

    fn read(&mut self, path: &str, at: u32, len: u16) {
        let Some(file) = self.model.file_mut(path) else {
            return;
        };
        let start = file.len().min(at as usize);
        let end = file.len().min(at as usize + usize::from(len));
        let wanted = file[start..end].to_vec();
        let handle = self.fs().open_file(self.ino(path).unwrap()).unwrap();
        let got = self.fs().read(handle, at.into(), len.into()).unwrap();
        self.fs().close(handle).unwrap();
        assert!(got == wanted, "{path} at {at} for {len}");
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

    fn rename(&mut self, from: &str, to: &str, mode: u8) {
        let mode = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange]
            [usize::from(mode % 3)];
        let done = match (self.place(from), self.place(to)) {
            (Some((d, n)), Some((e, m))) => self.fs().rename(d, n, e, m, mode).is_ok(),
            _ => false,
        };
        assert_eq!(done, self.model.rename(from, to, mode), "{from} {to} {mode:?}");
    }

    /// Everything in the file system is in the model and the other way round.
    fn compare(&self) {
        let report = self.fs().check_with(true, &mut |_, _| {}).unwrap();
        assert_eq!(report.problems, Vec::<String>::new());
        let mut seen = 0;
        let mut open = vec![(String::new(), ROOT_INO)];
        while let Some((prefix, ino)) = open.pop() {
            for entry in self.fs().read_dir(ino, None, usize::MAX).unwrap() {
                let path = format!("{prefix}{}", String::from_utf8(entry.name).unwrap());
                seen += 1;
                match (self.model.get(&path), entry.kind) {
                    (Some(Node::Directory), FileKind::Directory) => {
                        open.push((format!("{path}/"), entry.ino));
                    }
                    (Some(Node::Symlink(target)), FileKind::Symlink) => {
                        assert_eq!(&self.fs().read_link(entry.ino).unwrap(), target);
                    }
                    (Some(Node::File(bytes)), FileKind::File) => {
                        let handle = self.fs().open_file(entry.ino).unwrap();
                        let got = self.fs().read(handle, 0, bytes.len() + 1).unwrap();
                        self.fs().close(handle).unwrap();
                        assert!(&got == bytes, "content of {path}");
                    }
                    (wanted, found) => panic!("{path}: {found:?}, not {wanted:?}"),
                }
            }
        }
        assert_eq!(seen, self.model.names.len());
    }
}

fn op() -> impl Strategy<Value = Op> {
    let at = prop_oneof![0u32..3000, 0u32..12_000, Just(BLOCK as u32), 0u32..200_000];
    let len = prop_oneof![0u16..300, 0u16..10_000, Just(BLOCK as u16)];
    prop_oneof![
        4 => any::<u8>().prop_map(Op::Create),
        10 => (any::<u8>(), at.clone(), len.clone(), any::<u8>())
            .prop_map(|(p, at, len, byte)| Op::Write(p, at, len, byte)),
        3 => (any::<u8>(), at.clone()).prop_map(|(p, at)| Op::Truncate(p, at)),
        4 => (any::<u8>(), at, len).prop_map(|(p, at, len)| Op::Read(p, at, len)),
        3 => any::<u8>().prop_map(Op::Mkdir),
        1 => any::<(u8, u8)>().prop_map(|(p, t)| Op::Symlink(p, t)),
        2 => any::<(u8, u8)>().prop_map(|(f, t)| Op::Link(f, t)),
        3 => any::<u8>().prop_map(Op::Unlink),
        1 => any::<u8>().prop_map(Op::Rmdir),
        3 => any::<(u8, u8, u8)>().prop_map(|(f, t, m)| Op::Rename(f, t, m)),
        2 => Just(Op::Commit),
        1 => Just(Op::Reopen),
        1 => Just(Op::Crash),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, ..ProptestConfig::default() })]

    #[test]
    fn behaves_like_the_model(ops in prop::collection::vec(op(), 1..120)) {
        let mut pair = Pair::new(MemoryBlocks::new(BLOCK, 8192, 256 << 10), false);
        for op in &ops {
            pair.apply(op);
        }
        pair.compare();
    }

    /// The volume commits of its own accord at random operations. Only ranges written over in
    /// place may differ after a crash, so data is committed at once here; everything else hangs
    /// in the air.
    #[test]
    fn survives_commits_at_bad_moments(
        ops in prop::collection::vec(op(), 1..80),
        seed in any::<u64>(),
    ) {
        let disk = MemoryBlocks::new(BLOCK, 8192, 64 << 10);
        let mut pair = Pair::new(disk.clone(), true);
        disk.auto_commit(seed, 3);
        for op in &ops {
            pair.apply(op);
        }
        pair.apply(&Op::Crash);
    }
}

fn put(fs: &FileSystem, parent: Ino, name: &str, data: &[u8]) -> oblivio_volume::Result<Ino> {
    let (attr, handle) = fs.create(parent, name.as_bytes(), NewNode::default())?;
    let written = fs.write(handle, 0, data);
    fs.close(handle)?;
    written.map(|()| attr.ino)
}

fn get(fs: &FileSystem, ino: Ino) -> Vec<u8> {
    let handle = fs.open_file(ino).unwrap();
    let data = fs.read(handle, 0, 1 << 24).unwrap();
    fs.close(handle).unwrap();
    data
}

fn assert_clean(fs: &FileSystem) {
    let report = fs.check_with(true, &mut |_, _| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// Other files' new data must not reach what a crash brings back, although the volume commits
/// blocks on its own between our commits.
#[test]
fn a_crash_keeps_committed_files_among_uncommitted_changes() {
    for seed in 0..20u64 {
        let disk = MemoryBlocks::new(4096, 20_000, 128 << 10);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        let old = |i: usize| vec![i as u8 | 1; 200 + i * 37];
        for i in 0..200 {
            put(&fs, ROOT_INO, &format!("f{i}"), &old(i)).unwrap();
        }
        fs.commit().unwrap();
        disk.auto_commit(seed * 77 + 1, 2);
        for i in (0..200).filter(|i| i % 3 != seed as usize % 3) {
            fs.unlink(ROOT_INO, format!("f{i}").as_bytes()).unwrap();
            put(&fs, ROOT_INO, &format!("n{i}"), &vec![0xee; i * 61]).unwrap();
        }
        drop(fs);
        disk.crash();
        disk.auto_commit(1, 0);
        let fs = FileSystem::open(disk.boxed()).unwrap();
        assert_eq!(fs.usage().unwrap().files, 200);
        for i in 0..200 {
            let ino = fs.lookup(ROOT_INO, format!("f{i}").as_bytes()).unwrap().ino;
            assert!(get(&fs, ino) == old(i), "seed {seed} file {i}");
        }
        assert_clean(&fs);
    }
}

#[test]
fn small_files_share_blocks_and_give_them_back() {
    let disk = MemoryBlocks::new(16_384, 20_000, 16 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let empty = fs.usage().unwrap();
    let before = disk.counts().1;
    for i in 0..2_000 {
        put(&fs, ROOT_INO, &format!("f{i}"), &[i as u8; 4096]).unwrap();
    }
    fs.commit().unwrap();
    assert_eq!(fs.usage().unwrap().data_blocks, 500);
    assert!(disk.counts().1 - before < 650);
    for i in (0..2_000).filter(|i| i % 4 != 0) {
        fs.unlink(ROOT_INO, format!("f{i}").as_bytes()).unwrap();
    }
    fs.commit().unwrap();
    for i in 0..1_000 {
        put(&fs, ROOT_INO, &format!("g{i}"), &[7; 4096]).unwrap();
    }
    fs.commit().unwrap();
    assert!(fs.usage().unwrap().data_blocks <= 510, "holes are filled again");
    assert_clean(&fs);
    for entry in fs.read_dir(ROOT_INO, None, usize::MAX).unwrap() {
        fs.unlink(ROOT_INO, &entry.name).unwrap();
    }
    fs.commit().unwrap();
    let usage = fs.usage().unwrap();
    assert_eq!((usage.files, usage.data_blocks, usage.logical_bytes), (0, 0, 0));
    let fs = FileSystem::open(fs.into_blocks().unwrap()).unwrap();
    let usage = fs.usage().unwrap();
    assert!(usage.metadata_blocks <= empty.metadata_blocks + 16, "{usage:?}");
}

#[test]
fn a_large_directory_lists_in_order() {
    let disk = MemoryBlocks::new(16_384, 20_000, 8 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    for i in 0..30_000u32 {
        let name = format!("{:08x}", i.wrapping_mul(2_654_435_761));
        let (_, handle) = fs.create(ROOT_INO, name.as_bytes(), NewNode::default()).unwrap();
        fs.close(handle).unwrap();
    }
    let mut names = Vec::new();
    loop {
        let last = names.last().cloned();
        let page = fs.read_dir(ROOT_INO, last.as_deref(), 1000).unwrap();
        if page.is_empty() {
            break;
        }
        names.extend(page.into_iter().map(|entry| entry.name));
    }
    assert_eq!(names.len(), 30_000);
    assert!(names.is_sorted());
    assert_clean(&fs);
}

#[test]
fn sparse_files_take_no_space() {
    let disk = MemoryBlocks::new(4096, 4_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let ino = put(&fs, ROOT_INO, "sparse", b"begin").unwrap();
    let handle = fs.open_file(ino).unwrap();
    fs.write(handle, 1 << 40, b"end").unwrap();
    assert_eq!(fs.attr(ino).unwrap().size, (1 << 40) + 3);
    assert!(fs.attr(ino).unwrap().blocks <= 16);
    assert_eq!(fs.read(handle, 0, 8).unwrap(), b"begin\0\0\0");
    assert_eq!(fs.read(handle, 1 << 39, 5000).unwrap(), vec![0; 5000]);
    assert_eq!(fs.read(handle, (1 << 40) - 2, 9).unwrap(), b"\0\0end");
    fs.close(handle).unwrap();
    assert_clean(&fs);
}

#[test]
fn a_full_volume_stays_usable() {
    let disk = MemoryBlocks::new(4096, 1_500, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    for round in 0..3 {
        let mut count = 0;
        let error = loop {
            let name = format!("f{count}");
            match put(&fs, ROOT_INO, &name, &vec![count as u8; 1000 + count * 50 % 9000]) {
                Ok(_) => count += 1,
                Err(error) => break error,
            }
        };
        assert!(matches!(error, Error::Full(_)), "round {round}: {error}");
        assert!(count > 200, "round {round}: only {count} files");
        assert_clean(&fs);
        fs.commit().unwrap();
        for i in 0..count {
            let ino = fs.lookup(ROOT_INO, format!("f{i}").as_bytes()).unwrap().ino;
            assert_eq!(get(&fs, ino), vec![i as u8; 1000 + i * 50 % 9000]);
        }
        for entry in fs.read_dir(ROOT_INO, None, usize::MAX).unwrap() {
            fs.unlink(ROOT_INO, &entry.name).unwrap();
        }
        assert_clean(&fs);
    }
    fs.commit().unwrap();
    assert_eq!(fs.usage().unwrap().data_blocks, 0);
}

#[test]
fn data_outlives_its_name_while_it_is_open() {
    let disk = MemoryBlocks::new(4096, 2_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let (attr, handle) = fs.create(ROOT_INO, b"f", NewNode::default()).unwrap();
    fs.write(handle, 0, &[9; 10_000]).unwrap();
    fs.unlink(ROOT_INO, b"f").unwrap();
    assert_eq!(fs.attr(attr.ino).unwrap().nlink, 0);
    assert_eq!(fs.read(handle, 0, 20_000).unwrap(), vec![9; 10_000]);
    assert_clean(&fs);
    fs.commit().unwrap();
    drop(fs);
    disk.crash();
    let fs = FileSystem::open(disk.boxed()).unwrap();
    fs.commit().unwrap();
    assert_eq!(fs.usage().unwrap().data_blocks, 0, "lost with the crash");
    assert_clean(&fs);
}

#[test]
fn a_failing_store_loses_nothing_that_was_committed() {
    for accesses in 0..12 {
        let disk = MemoryBlocks::new(4096, 4_000, 1 << 20);
        let fs = FileSystem::format(disk.boxed()).unwrap();
        put(&fs, ROOT_INO, "kept", &[1; 5000]).unwrap();
        fs.commit().unwrap();
        disk.fail_after(Some(accesses));
        let mut failed = false;
        for i in 0..20 {
            failed |= put(&fs, ROOT_INO, &format!("f{i}"), &[2; 9000]).is_err();
        }
        failed |= fs.commit().is_err();
        assert!(failed || accesses > 2);
        disk.fail_after(None);
        fs.commit().unwrap();
        assert_clean(&fs);
        drop(fs);
        disk.crash();
        let fs = FileSystem::open(disk.boxed()).unwrap();
        assert_eq!(get(&fs, fs.lookup(ROOT_INO, b"kept").unwrap().ino), [1; 5000]);
        assert_clean(&fs);
    }
}

#[test]
fn times_come_from_the_clock_or_the_caller() {
    let disk = MemoryBlocks::new(4096, 2_000, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    let at = |seconds| Timestamp { seconds, nanos: 5 };
    let node = NewNode { mtime: at(3), ..NewNode::default() };
    let (attr, handle) = fs.create(ROOT_INO, b"f", node).unwrap();
    assert_eq!((attr.mtime, attr.ctime, attr.crtime), (at(3), at(3), at(3)));
    fs.set_clock(Box::new(move || at(9)));
    fs.write(handle, 0, b"x").unwrap();
    assert_eq!(fs.attr(attr.ino).unwrap().mtime, at(9));
    let set = SetAttr { mtime: Some(at(4)), mode: Some(0o100_644), ..SetAttr::default() };
    let attr = fs.set_attr(attr.ino, set).unwrap();
    assert_eq!((attr.mtime, attr.ctime, attr.mode), (at(4), at(9), 0o644));
}

#[test]
fn bad_names_and_foreign_roots_are_refused() {
    let disk = MemoryBlocks::new(4096, 2_000, 1 << 20);
    let opened = FileSystem::open(disk.boxed());
    assert!(matches!(opened, Err(Error::Unsupported(_))));
    let fs = FileSystem::format(disk.boxed()).unwrap();
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0", &[b'x'; 256]] {
        let made = fs.mkdir(ROOT_INO, name, NewNode::default());
        assert!(matches!(made, Err(Error::Invalid(_))));
    }
    assert!(matches!(fs.resolve("/a/../b"), Err(Error::Invalid(_))));
    assert!(matches!(fs.resolve("a"), Err(Error::Invalid(_))));
    assert_eq!(fs.resolve("//./").unwrap().ino, ROOT_INO);
    let tiny = FileSystem::format(MemoryBlocks::new(4096, 20, 1 << 20).boxed());
    assert!(matches!(tiny, Err(Error::Full(_))));
}

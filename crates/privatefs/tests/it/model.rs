//! Random operations by two clients in turn, each compared with a plain file system in memory.

use super::common::{BLOCK, Client, NODE, assert_sound, client};
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{Error, FileKind, Owner, ROOT, RenameMode, SetAttr, XattrMode};
use oblivio_testkit::campaign::scaled;
use proptest::prelude::*;
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Op {
    Create(u8, u8),
    MkDir(u8, u8),
    SymLink(u8, u8, u16),
    Unlink(u8, u8),
    RmDir(u8, u8),
    Link(u8, u8, u8, u8),
    Rename(u8, u8, u8, u8, u8),
    Write(u8, u8, u32, u16),
    Append(u8, u8, u16),
    Truncate(u8, u8, u32),
    Punch(u8, u8, u32, u16),
    Extend(u8, u8, u32),
    Xattr(u8, u8, u8, u16),
    RemoveXattr(u8, u8, u8),
}

fn op() -> impl Strategy<Value = Op> {
    let (dir, name) = (0..4u8, 0..6u8);
    let at = prop_oneof![0..200u32, 3000..5000u32, 0..40_000u32];
    let len = prop_oneof![1..100u16, 3000..9000u16];
    prop_oneof![
        3 => (dir.clone(), name.clone()).prop_map(|(d, n)| Op::Create(d, n)),
        2 => (dir.clone(), name.clone()).prop_map(|(d, n)| Op::MkDir(d, n)),
        1 => (dir.clone(), name.clone(), 1..4095u16).prop_map(|(d, n, l)| Op::SymLink(d, n, l)),
        2 => (dir.clone(), name.clone()).prop_map(|(d, n)| Op::Unlink(d, n)),
        1 => (dir.clone(), name.clone()).prop_map(|(d, n)| Op::RmDir(d, n)),
        1 => (dir.clone(), name.clone(), dir.clone(), name.clone())
            .prop_map(|(a, b, c, d)| Op::Link(a, b, c, d)),
        4 => (dir.clone(), name.clone(), dir.clone(), name.clone(), 0..3u8)
            .prop_map(|(a, b, c, d, m)| Op::Rename(a, b, c, d, m)),
        5 => (dir.clone(), name.clone(), at.clone(), len.clone())
            .prop_map(|(d, n, a, l)| Op::Write(d, n, a, l)),
        2 => (dir.clone(), name.clone(), len.clone()).prop_map(|(d, n, l)| Op::Append(d, n, l)),
        3 => (dir.clone(), name.clone(), at.clone()).prop_map(|(d, n, a)| Op::Truncate(d, n, a)),
        1 => (dir.clone(), name.clone(), at.clone(), len.clone())
            .prop_map(|(d, n, a, l)| Op::Punch(d, n, a, l)),
        1 => (dir.clone(), name.clone(), at).prop_map(|(d, n, a)| Op::Extend(d, n, a)),
        1 => (dir.clone(), name.clone(), 0..4u8, len).prop_map(|(d, n, x, l)| Op::Xattr(d, n, x, l)),
        1 => (dir, name, 0..4u8).prop_map(|(d, n, x)| Op::RemoveXattr(d, n, x)),
    ]
}

/// What an inode is in the model.
#[derive(Clone, Debug, PartialEq)]
enum Node {
    File(Vec<u8>),
    Link(Vec<u8>),
    Dir(BTreeMap<u8, usize>),
}

#[derive(Default)]
struct Model {
    nodes: Vec<(Node, BTreeMap<u8, Vec<u8>>)>,
    /// The four directories that operations work in: some are made, moved and removed.
    dirs: [usize; 4],
}

type Name = (usize, u8);

impl Model {
    fn new() -> Self {
        let root = (Node::Dir(BTreeMap::new()), BTreeMap::new());
        Self { nodes: vec![root], dirs: [0; 4] }
    }

    fn names(&mut self, dir: usize) -> &mut BTreeMap<u8, usize> {
        match &mut self.nodes[dir].0 {
            Node::Dir(names) => names,
            other => panic!("no directory: {other:?}"),
        }
    }

    fn find(&mut self, (dir, name): Name) -> Result<usize, &'static str> {
        self.names(dir).get(&name).copied().ok_or("NotFound")
    }

    fn is_dir(&self, node: usize) -> bool {
        matches!(self.nodes[node].0, Node::Dir(_))
    }

    fn make(&mut self, at: Name, node: Node) -> Result<usize, &'static str> {
        if self.find(at).is_ok() {
            return Err("Exists");
        }
        self.nodes.push((node, BTreeMap::new()));
        let new = self.nodes.len() - 1;
        self.names(at.0).insert(at.1, new);
        Ok(new)
    }

    fn unlink(&mut self, at: Name) -> Result<(), &'static str> {
        let node = self.find(at)?;
        if self.is_dir(node) {
            return Err("IsADirectory");
        }
        self.names(at.0).remove(&at.1);
        Ok(())
    }

    fn rmdir(&mut self, at: Name) -> Result<(), &'static str> {
        let node = self.find(at)?;
        match &self.nodes[node].0 {
            Node::Dir(names) if !names.is_empty() => return Err("NotEmpty"),
            Node::Dir(_) => {}
            _ => return Err("NotADirectory"),
        }
        self.names(at.0).remove(&at.1);
        self.lost(node);
        Ok(())
    }

    /// Operations on a removed directory go to the root.
    fn lost(&mut self, node: usize) {
        self.dirs.iter_mut().filter(|dir| **dir == node).for_each(|dir| *dir = 0);
    }

    fn is_within(&mut self, dir: usize, top: usize) -> bool {
        if dir == top {
            return true;
        }
        let below: Vec<usize> = match &self.nodes[top].0 {
            Node::Dir(names) => names.values().copied().collect(),
            _ => Vec::new(),
        };
        below.into_iter().any(|node| self.is_dir(node) && self.is_within(dir, node))
    }

    fn rename(&mut self, from: Name, to: Name, mode: RenameMode) -> Result<(), &'static str> {
        let moved = self.find(from)?;
        let target = self.find(to).ok();
        match (mode, target) {
            (RenameMode::Exchange, None) => return Err("NotFound"),
            (RenameMode::NoReplace, Some(_)) => return Err("Exists"),
            (_, Some(target)) if target == moved => return Ok(()),
            (RenameMode::Replace, Some(target)) => {
                match (self.is_dir(moved), self.is_dir(target)) {
                    (true, false) => return Err("NotADirectory"),
                    (false, true) => return Err("IsADirectory"),
                    _ => {}
                }
            }
            _ => {}
        }
        if from.0 != to.0 && self.is_dir(moved) && self.is_within(to.0, moved) {
            return Err("Invalid");
        }
        if let (RenameMode::Exchange, Some(target)) = (mode, target) {
            if from.0 != to.0 && self.is_dir(target) && self.is_within(from.0, target) {
                return Err("Invalid");
            }
            self.names(from.0).insert(from.1, target);
        } else {
            if let Some(target) = target
                && matches!(&self.nodes[target].0, Node::Dir(names) if !names.is_empty())
            {
                return Err("NotEmpty");
            }
            self.names(from.0).remove(&from.1);
            target.into_iter().for_each(|target| self.lost(target));
        }
        self.names(to.0).insert(to.1, moved);
        Ok(())
    }

    fn data(&mut self, at: Name) -> Option<&mut Vec<u8>> {
        let node = self.find(at).ok()?;
        match &mut self.nodes[node].0 {
            Node::File(data) => Some(data),
            _ => None,
        }
    }
}

fn word(error: &Error) -> &'static str {
    match error {
        Error::NotFound => "NotFound",
        Error::Exists => "Exists",
        Error::NotADirectory => "NotADirectory",
        Error::IsADirectory => "IsADirectory",
        Error::NotEmpty => "NotEmpty",
        Error::Invalid(_) => "Invalid",
        Error::NoAttribute => "NoAttribute",
        Error::TooLarge | Error::Full(_) => "Full",
        other => panic!("unexpected: {other:?}"),
    }
}

fn name(byte: u8) -> Vec<u8> {
    match byte {
        0 => vec![b'n'; 255],
        byte => vec![b'a' + byte],
    }
}

struct Run {
    model: Model,
    ids: Vec<Owner>,
    fill: u8,
}

impl Run {
    fn dir(&self, dir: u8) -> (usize, Owner) {
        let node = self.model.dirs[usize::from(dir)];
        (node, self.ids[node])
    }

    fn made(&mut self, made: Result<Owner, Error>, known: Result<usize, &'static str>) {
        match (made, known) {
            (Ok(id), Ok(node)) => {
                assert_eq!(node, self.ids.len());
                self.ids.push(id);
            }
            (Err(error), Err(known)) => assert_eq!(word(&error), known),
            (made, known) => panic!("{made:?} is not {known:?}"),
        }
    }

    fn same(&self, done: Result<(), Error>, known: Result<(), &'static str>) {
        assert_eq!(done.map_err(|error| word(&error)), known);
    }

    fn bytes(&mut self, len: u16) -> Vec<u8> {
        self.fill = self.fill.wrapping_add(1) | 1;
        vec![self.fill; len.into()]
    }

    fn step(&mut self, by: &Client, op: &Op) {
        let fs = &by.fs;
        match *op {
            Op::Create(d, n) => {
                let (node, id) = self.dir(d);
                let made = fs.create(id, &name(n), NODE).map(|attr| attr.id);
                if let Ok(id) = made {
                    fs.close(id).unwrap();
                }
                let known = self.model.make((node, n), Node::File(Vec::new()));
                self.made(made, known);
            }
            Op::MkDir(d, n) => {
                let (node, id) = self.dir(d);
                let made = fs.mkdir(id, &name(n), NODE).map(|attr| attr.id);
                let known = self.model.make((node, n), Node::Dir(BTreeMap::new()));
                if let Ok(new) = known {
                    self.model.dirs[usize::from(n) % 3 + 1] = new;
                }
                self.made(made, known);
            }
            Op::SymLink(d, n, len) => {
                let (target, (node, id)) = (self.bytes(len), self.dir(d));
                let made = fs.symlink(id, &name(n), &target, NODE).map(|attr| attr.id);
                let known = self.model.make((node, n), Node::Link(target));
                self.made(made, known);
            }
            Op::Unlink(d, n) => {
                let (node, id) = self.dir(d);
                let known = self.model.unlink((node, n));
                self.same(fs.unlink(id, &name(n)), known);
            }
            Op::RmDir(d, n) => {
                let (node, id) = self.dir(d);
                let known = self.model.rmdir((node, n));
                self.same(fs.rmdir(id, &name(n)), known);
            }
            Op::Link(d, n, e, m) => {
                let ((from, _), (to, id)) = (self.dir(d), self.dir(e));
                let Ok(node) = self.model.find((from, n)) else { return };
                let known = match (self.model.is_dir(node), self.model.find((to, m))) {
                    (true, _) => Err("IsADirectory"),
                    (_, Ok(_)) => Err("Exists"),
                    _ => Ok(()),
                };
                if known.is_ok() {
                    self.model.names(to).insert(m, node);
                }
                self.same(fs.link(self.ids[node], id, &name(m)).map(drop), known);
            }
            Op::Rename(d, n, e, m, mode) => {
                let modes = [RenameMode::Replace, RenameMode::NoReplace, RenameMode::Exchange];
                let mode = modes[usize::from(mode)];
                let ((from, from_id), (to, to_id)) = (self.dir(d), self.dir(e));
                let known = self.model.rename((from, n), (to, m), mode);
                let done = fs.rename((from_id, &name(n)), (to_id, &name(m)), mode);
                self.same(done, known);
            }
            _ => self.step_data(by, op),
        }
    }

    fn step_data(&mut self, by: &Client, op: &Op) {
        let fs = &by.fs;
        let (Op::Write(d, n, ..)
        | Op::Append(d, n, ..)
        | Op::Truncate(d, n, ..)
        | Op::Punch(d, n, ..)
        | Op::Extend(d, n, ..)
        | Op::Xattr(d, n, ..)
        | Op::RemoveXattr(d, n, ..)) = *op
        else {
            return;
        };
        let at = (self.dir(d).0, n);
        let Ok(node) = self.model.find(at) else { return };
        let id = self.ids[node];
        let fill = match *op {
            Op::Write(.., len) | Op::Append(.., len) | Op::Xattr(.., len) => self.bytes(len),
            _ => Vec::new(),
        };
        match *op {
            Op::Xattr(_, _, x, _) => {
                let fill = &fill[..fill.len().min(4000)];
                self.model.nodes[node].1.insert(x, fill.to_vec());
                return fs.set_xattr(id, &[b'u', x], fill, XattrMode::Set).unwrap();
            }
            Op::RemoveXattr(_, _, x) => {
                let known = self.model.nodes[node].1.remove(&x).map(drop).ok_or("NoAttribute");
                return self.same(fs.remove_xattr(id, &[b'u', x]), known);
            }
            _ => {}
        }
        let Some(data) = self.model.data(at) else { return };
        match *op {
            Op::Write(_, _, at, _) => {
                let at = at as usize;
                data.resize(data.len().max(at + fill.len()), 0);
                data[at..at + fill.len()].copy_from_slice(&fill);
                fs.write(id, at as u64, &fill).unwrap();
                let data = data.clone();
                assert_eq!(fs.read(id, 0, 1 << 20).unwrap(), data);
                fs.flush(id).unwrap();
            }
            Op::Append(..) => {
                assert_eq!(fs.append(id, &fill).unwrap(), data.len() as u64);
                data.extend(fill);
            }
            Op::Truncate(_, _, size) => {
                data.resize(size as usize, 0);
                let set = SetAttr { size: Some(size.into()), ..SetAttr::default() };
                assert_eq!(fs.set_attr(id, set).unwrap().size, u64::from(size));
            }
            Op::Punch(_, _, at, len) => {
                let (end, at) = ((at as usize + len as usize).min(data.len()), at as usize);
                if at < end {
                    data[at..end].fill(0);
                }
                fs.punch(id, at as u64, len.into()).unwrap();
            }
            Op::Extend(_, _, size) => {
                data.resize(data.len().max(size as usize), 0);
                fs.extend(id, size.into()).unwrap();
            }
            _ => {}
        }
    }

    fn compare(&mut self, by: &Client, node: usize) {
        let (fs, id) = (&by.fs, self.ids[node]);
        let (known, xattrs) = self.model.nodes[node].clone();
        let attr = fs.attr(id).unwrap();
        assert_eq!(fs.xattr_names(id).unwrap().len(), xattrs.len());
        for (x, value) in xattrs {
            assert_eq!(fs.xattr(id, &[b'u', x]).unwrap(), value);
        }
        match known {
            Node::File(data) => {
                assert_eq!((attr.kind, attr.size), (FileKind::File, data.len() as u64));
                assert_eq!(fs.read(id, 0, 1 << 20).unwrap(), data);
            }
            Node::Link(target) => assert_eq!(fs.read_link(id).unwrap(), target),
            Node::Dir(names) => {
                let listed = fs.list(id, 0, 1000).unwrap();
                assert_eq!(listed.len(), names.len());
                for (n, below) in names {
                    assert_eq!(fs.lookup(id, &name(n)).unwrap().id, self.ids[below]);
                    assert!(listed.iter().any(|e| e.name == name(n) && e.id == self.ids[below]));
                    self.compare(by, below);
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(scaled(160) as u32))]

    #[test]
    fn two_clients_in_turn_are_one_file_system(
        ops in prop::collection::vec((any::<bool>(), op()), 1..80),
        strict in any::<bool>(),
        small in any::<bool>(),
    ) {
        let memory = Memory::new(if small { 1024 } else { BLOCK });
        let clients = [client(&memory, 1, strict), client(&memory, 2, false)];
        let mut run = Run { model: Model::new(), ids: vec![ROOT], fill: 0 };
        for (second, op) in &ops {
            // A small block has room for fewer attributes.
            if small && matches!(op, Op::Xattr(..) | Op::SymLink(..)) {
                continue;
            }
            run.step(&clients[usize::from(*second)], op);
        }
        for by in &clients {
            run.compare(by, 0);
        }
        assert_sound(&memory, 3);
    }
}

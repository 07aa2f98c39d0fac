//! Operations for the tests of races and of deaths, and what is seen afterwards.

use super::{Client, NODE, client};
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{FileKind, Owner, PrivateFs, ROOT, RenameMode, Result, SetAttr, XattrMode};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A file of 100 bytes, and two empty directories.
#[derive(Clone, Copy)]
pub struct Stage {
    pub x: Owner,
    pub d: Owner,
    pub e: Owner,
}

pub type Work = fn(&PrivateFs, Stage) -> Result<()>;

pub fn stage(memory: &Arc<Memory>) -> Stage {
    let Client { fs, .. } = client(memory, 100, false);
    let x = fs.create(ROOT, b"x", NODE).unwrap().id;
    fs.write(x, 0, &[1; 100]).unwrap();
    fs.close(x).unwrap();
    let d = fs.mkdir(ROOT, b"d", NODE).unwrap().id;
    let e = fs.mkdir(ROOT, b"e", NODE).unwrap().id;
    Stage { x, d, e }
}

fn rename(fs: &PrivateFs, from: (Owner, &[u8]), to: (Owner, &[u8])) -> Result<()> {
    fs.rename(from, to, RenameMode::Replace)
}

fn write(fs: &PrivateFs, id: Owner, len: usize, fill: u8) -> Result<()> {
    fs.open(id)?;
    fs.write(id, 0, &vec![fill; len])?;
    fs.close(id)
}

/// Each is one transaction in the end, or repeats until it is as if it were.
pub const ATOMIC: &[(&str, Work)] = &[
    ("create f", |fs, _| {
        let file = fs.create(ROOT, b"f", NODE)?.id;
        fs.close(file)
    }),
    ("mkdir f", |fs, _| fs.mkdir(ROOT, b"f", NODE).map(drop)),
    ("symlink f", |fs, _| fs.symlink(ROOT, b"f", &[b't'; 4000], NODE).map(drop)),
    ("unlink x", |fs, _| fs.unlink(ROOT, b"x")),
    ("rename x f", |fs, _| rename(fs, (ROOT, b"x"), (ROOT, b"f"))),
    ("rename x d/f", |fs, at| rename(fs, (ROOT, b"x"), (at.d, b"f"))),
    ("rename d e", |fs, _| rename(fs, (ROOT, b"d"), (ROOT, b"e"))),
    ("rename d e/d", |fs, at| rename(fs, (ROOT, b"d"), (at.e, b"d"))),
    ("rename e d/e", |fs, at| rename(fs, (ROOT, b"e"), (at.d, b"e"))),
    ("exchange x d", |fs, _| fs.rename((ROOT, b"x"), (ROOT, b"d"), RenameMode::Exchange)),
    ("no replace x e", |fs, _| fs.rename((ROOT, b"x"), (ROOT, b"e"), RenameMode::NoReplace)),
    ("rmdir d", |fs, _| fs.rmdir(ROOT, b"d")),
    ("mknod d/g", |fs, at| fs.mknod(at.d, b"g", FileKind::Fifo, 0, NODE).map(drop)),
    ("link x f", |fs, at| fs.link(at.x, ROOT, b"f").map(drop)),
    ("append x", |fs, at| fs.append(at.x, &[2; 10]).map(drop)),
    ("truncate x", |fs, at| {
        fs.set_attr(at.x, SetAttr { size: Some(50), ..SetAttr::default() }).map(drop)
    }),
    ("extend x", |fs, at| fs.extend(at.x, 9000)),
    ("attribute", |fs, at| fs.set_xattr(at.x, b"user.a", &[3; 3000], XattrMode::Create)),
];

/// Several transactions.
pub const LONGER: &[(&str, Work)] = &[
    ("write x", |fs, at| write(fs, at.x, 200, 4)),
    ("write x long", |fs, at| write(fs, at.x, 20_000, 5)),
    ("append long", |fs, at| fs.append(at.x, &[6; 50_000]).map(drop)),
    ("punch", |fs, at| {
        write(fs, at.x, 20_000, 7)?;
        fs.punch(at.x, 3000, 12_000)
    }),
    ("unlink while open", |fs, at| {
        fs.open(at.x)?;
        fs.unlink(ROOT, b"x")?;
        fs.write(at.x, 0, &[8; 10_000])?;
        fs.close(at.x)
    }),
    ("many names", |fs, at| {
        for number in 0..40 {
            let name = [format!("{number:03}").as_bytes(), &[b'n'; 240]].concat();
            fs.mknod(at.d, &name, FileKind::File, 0, NODE)?;
        }
        Ok(())
    }),
    ("lock", |fs, at| {
        use oblivio_privatefs::{Lock, LockKind, LockOwner};
        fs.open(at.x)?;
        let owner = LockOwner { number: 1, whole_file: true };
        fs.lock(at.x, owner, Lock { kind: LockKind::Exclusive, start: 0, end: 9, pid: 1 })?;
        fs.close(at.x)
    }),
];

/// All paths, with what a program sees of them.
pub fn seen(fs: &PrivateFs) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    see(fs, ROOT, "", &mut all);
    all
}

fn see(fs: &PrivateFs, id: Owner, path: &str, all: &mut BTreeMap<String, String>) {
    let attr = fs.attr(id).unwrap();
    let content = match attr.kind {
        FileKind::File => {
            let data = fs.read(id, 0, 1 << 20).unwrap();
            let sums: Vec<(u8, usize)> =
                data.chunk_by(|a, b| a == b).map(|run| (run[0], run.len())).collect();
            format!("{sums:?} {:?}", fs.xattr_names(id).unwrap())
        }
        FileKind::Symlink => format!("{}", fs.read_link(id).unwrap().len()),
        _ => String::new(),
    };
    all.insert(path.to_owned(), format!("{:?} {} {content}", attr.kind, attr.nlink));
    if attr.kind == FileKind::Directory {
        for entry in fs.list(id, 0, usize::MAX).unwrap() {
            let path = format!("{path}/{}", String::from_utf8_lossy(&entry.name));
            see(fs, entry.id, &path, all);
        }
    }
}

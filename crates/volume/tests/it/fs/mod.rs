//! The promises of the file system, one by one.

mod crashes;
mod full;
mod holes;
mod links;
mod looking;
mod lost;
mod names;
mod old;
mod preallocation;
mod reads;
mod salvage;
mod space;
mod times;
mod twins;
mod twins_tree;
mod voids;
mod xattrs;

use crate::common::disks::{SequentialDisk, TestDisk};
use oblivio_testkit::blocks::MemoryBlocks;
use oblivio_volume::Error;
use oblivio_volume::fs::{
    FileKind, FileSystem, Handle, Ino, NewNode, ROOT_INO, ReadAround, RenameMode, SeekWhence,
    SetAttr, Timestamp, XattrMode,
};
pub use salvage::emptied_after_salvage;

/// An empty file system on blocks of 4096 bytes, and its disk.
fn fresh(capacity: u64) -> (MemoryBlocks, FileSystem) {
    let disk = MemoryBlocks::new(4096, capacity, 1 << 20);
    let fs = FileSystem::format(disk.boxed()).unwrap();
    (disk, fs)
}

/// The file system after a crash.
fn crashed(disk: &MemoryBlocks, fs: FileSystem) -> FileSystem {
    drop(fs);
    disk.crash();
    FileSystem::open(disk.boxed()).unwrap()
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

/// Many ranges, each whole or an error.
pub fn read_many(
    fs: &FileSystem,
    requests: &[(Handle, u64, usize)],
) -> Vec<oblivio_volume::Result<Vec<u8>>> {
    let answers = fs.read_many_around(requests).into_iter();
    answers.map(|answer| answer.and_then(ReadAround::whole)).collect()
}

fn assert_clean(fs: &FileSystem) {
    let report = fs.check_with(true, &mut |_, _| {}).unwrap();
    assert_eq!(report.problems, Vec::<String>::new());
}

/// A new file, open.
fn open_new(fs: &FileSystem, name: &str) -> (Ino, Handle) {
    let (attr, handle) = fs.create(ROOT_INO, name.as_bytes(), NewNode::default()).unwrap();
    (attr.ino, handle)
}

//! A volume from before extended attributes, access times and preallocation.

use super::*;
use oblivio_crypto::Passphrase;
use oblivio_store::LocalStore;
use oblivio_volume::{OpenOptions, Volume};
use std::path::Path;
use std::sync::Arc;

fn open(folder: &Path) -> FileSystem {
    let store = Arc::new(LocalStore::open(folder).unwrap());
    let volume = Volume::open(store, &Passphrase::new("secret"), OpenOptions::default()).unwrap();
    FileSystem::open(Box::new(volume)).unwrap()
}

#[test]
fn the_first_format_opens_and_takes_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let fixture = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/format-1");
    for entry in fixture.read_dir().unwrap() {
        let from = entry.unwrap().path();
        std::fs::copy(&from, folder.path().join(from.file_name().unwrap())).unwrap();
    }
    let fs = open(folder.path());
    assert_clean(&fs);
    let old = fs.resolve("/src/small.txt").unwrap();
    assert_eq!((old.atime, old.rdev, old.mtime.seconds), (old.mtime, 0, 1_795_219_200));
    assert_eq!(fs.list_xattrs(old.ino).unwrap(), Vec::<Vec<u8>>::new());
    assert_eq!(get(&fs, old.ino), b"a small file\n");
    fs.set_xattr(old.ino, b"user.new", b"value", XattrMode::Create).unwrap();
    fs.mknod(ROOT_INO, b"fifo", FileKind::Fifo, 0, NewNode::default()).unwrap();
    let numbers = fs.resolve("/src/folder/numbers.txt").unwrap().ino;
    let before = get(&fs, numbers);
    let handle = fs.open_file(numbers).unwrap();
    fs.allocate(handle, 0, 200_000, true).unwrap();
    drop(fs.into_blocks().unwrap());

    let fs = open(folder.path());
    assert_clean(&fs);
    assert_eq!(fs.get_xattr(old.ino, b"user.new").unwrap(), Some(b"value".to_vec()));
    assert_eq!(fs.resolve("/fifo").unwrap().kind, FileKind::Fifo);
    assert!(get(&fs, numbers) == before);
    let blocks = fs.into_blocks().unwrap();
    let copies = twins::copies(blocks.root());
    assert_eq!(blocks.root()[8], 3, "the last clean end gave it twins");
    assert!(!copies.is_empty() && copies.iter().all(|(_, twin)| twin.is_some()), "{copies:?}");
}

//! Directories, and the names of their entries.

use super::*;

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
fn bad_names_and_foreign_roots_are_refused() {
    let disk = MemoryBlocks::new(4096, 2_000, 1 << 20);
    let opened = FileSystem::open(disk.boxed());
    assert!(matches!(opened, Err(Error::Unsupported(_))));
    let fs = FileSystem::format(disk.boxed()).unwrap();
    for name in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
        let made = fs.mkdir(ROOT_INO, name, NewNode::default());
        assert!(matches!(made, Err(Error::Invalid(_))));
    }
    let long = fs.mkdir(ROOT_INO, &[b'x'; 256], NewNode::default());
    assert!(matches!(long, Err(Error::NameTooLong(_))));
    assert!(matches!(fs.lookup(ROOT_INO, &[b'x'; 256]), Err(Error::NameTooLong(_))));
    fs.mkdir(ROOT_INO, &[b'x'; 255], NewNode::default()).unwrap();
    assert!(matches!(fs.resolve("/a/../b"), Err(Error::Invalid(_))));
    assert!(matches!(fs.resolve("a"), Err(Error::Invalid(_))));
    assert_eq!(fs.resolve("//./").unwrap().ino, ROOT_INO);
    let tiny = FileSystem::format(MemoryBlocks::new(4096, 20, 1 << 20).boxed());
    assert!(matches!(tiny, Err(Error::Full(_))));
}

#[test]
fn removing_while_listing_skips_nothing() {
    let (_disk, fs) = fresh(4_000);
    for i in 0..500 {
        put(&fs, ROOT_INO, &format!("f{i:03}"), b"").unwrap();
    }
    let (mut after, mut removed): (Option<Vec<u8>>, usize) = (None, 0);
    loop {
        let page = fs.read_dir(ROOT_INO, after.as_deref(), 7).unwrap();
        let Some(last) = page.last() else {
            break;
        };
        after = Some(last.name.clone());
        for entry in page {
            fs.unlink(ROOT_INO, &entry.name).unwrap();
            removed += 1;
        }
    }
    assert_eq!(removed, 500);
    assert!(fs.read_dir(ROOT_INO, None, 1).unwrap().is_empty());
}

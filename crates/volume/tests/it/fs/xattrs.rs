//! Extended attributes.

use super::*;

#[test]
fn they_are_set_listed_replaced_and_removed() {
    let (disk, fs) = fresh(2_000);
    let ino = put(&fs, ROOT_INO, "f", b"data").unwrap();
    let set = |name: &[u8], value: &[u8], mode| fs.set_xattr(ino, name, value, mode);
    assert_eq!(fs.get_xattr(ino, b"user.a").unwrap(), None);
    assert!(matches!(set(b"user.a", b"1", XattrMode::Replace), Err(Error::NotFound(_))));
    set(b"user.b", b"", XattrMode::Create).unwrap();
    set(b"user.a", &[8; 64 << 10], XattrMode::Set).unwrap();
    assert!(matches!(set(b"user.a", b"1", XattrMode::Create), Err(Error::Exists(_))));
    set(b"user.b", b"2", XattrMode::Replace).unwrap();
    assert_eq!(fs.list_xattrs(ino).unwrap(), [b"user.a", b"user.b"]);
    assert_clean(&fs);
    fs.commit().unwrap();
    let fs = crashed(&disk, fs);
    assert_eq!(fs.get_xattr(ino, b"user.a").unwrap(), Some(vec![8; 64 << 10]));
    assert_eq!(fs.get_xattr(ino, b"user.b").unwrap(), Some(b"2".to_vec()));
    fs.remove_xattr(ino, b"user.a").unwrap();
    assert!(matches!(fs.remove_xattr(ino, b"user.a"), Err(Error::NotFound(_))));
    assert_clean(&fs);
    fs.unlink(ROOT_INO, b"f").unwrap();
    assert!(matches!(fs.get_xattr(ino, b"user.b"), Err(Error::NotFound(_))));
    assert_clean(&fs);
}

#[test]
fn limits_are_told_apart() {
    let (_disk, fs) = fresh(2_000);
    let set = |name: &[u8], value: &[u8]| fs.set_xattr(ROOT_INO, name, value, XattrMode::Set);
    set(&[b'n'; 255], b"").unwrap();
    assert!(matches!(set(&[b'n'; 256], b""), Err(Error::NameTooLong(_))));
    assert!(matches!(set(b"n", &vec![0; (64 << 10) + 1]), Err(Error::TooLarge(_))));
    assert!(matches!(set(b"", b""), Err(Error::Invalid(_))));
    assert!(matches!(fs.set_xattr(99, b"n", b"", XattrMode::Set), Err(Error::NotFound(_))));
}

#[test]
fn long_values_until_the_volume_is_full() {
    let (_disk, fs) = fresh(1_500);
    let mut count = 0;
    let error = loop {
        let ino = match fs.mkdir(ROOT_INO, format!("d{count}").as_bytes(), NewNode::default()) {
            Ok(attr) => attr.ino,
            Err(error) => break error,
        };
        match fs.set_xattr(ino, b"user.long", &vec![3; 64 << 10], XattrMode::Set) {
            Ok(()) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Full(_)), "{error}");
    assert!(count > 10, "only {count}");
    fs.commit().unwrap();
    assert_clean(&fs);
    for entry in fs.read_dir(ROOT_INO, None, 1_000).unwrap() {
        fs.rmdir(ROOT_INO, &entry.name).unwrap();
    }
    fs.commit().unwrap();
    // Closing the metadata file frees its blocks.
    let fs = FileSystem::open(fs.into_blocks().unwrap()).unwrap();
    fs.mkdir(ROOT_INO, b"again", NewNode::default()).unwrap();
    assert_clean(&fs);
}

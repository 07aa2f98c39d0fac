use super::*;
use std::collections::BTreeMap;

/// What is in a folder: names, bytes, times.
fn seen(folder: &Path) -> BTreeMap<String, (Vec<u8>, SystemTime)> {
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap());
    let file = |entry: fs::DirEntry| {
        let found =
            (fs::read(entry.path()).unwrap(), entry.metadata().unwrap().modified().unwrap());
        (entry.file_name().into_string().unwrap(), found)
    };
    entries.map(file).collect()
}

fn is_exists(result: Result<()>) -> bool {
    matches!(result, Err(StoreError::Exists { .. }))
}

#[test]
fn a_file_is_made_once_whole_and_with_one_time() {
    for outside in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (folder, place) = (dir.path().join("folder"), dir.path().join("outside"));
        let store = SyncFolder::create(&folder, outside.then_some(place.as_path())).unwrap();
        assert_eq!(store.makes_outside(), outside);
        store.put("x-1", b"one", PutMode::IfAbsent).unwrap();
        store.put("x-2", b"two", PutMode::IfAbsent).unwrap();
        assert!(is_exists(store.put("x-1", b"another", PutMode::IfAbsent)));
        assert!(is_exists(store.put("x-1", b"another", PutMode::Replace)));
        assert!(is_exists(store.begin(&[("x-1", b"two")])));
        store.begin(&[("x-1", b"one")]).unwrap();
        assert!(is_exists(store.put("x-1", b"one", PutMode::IfAbsent)));
        let seen = seen(&folder);
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(MADE);
        let expected = [("x-1", b"one"), ("x-2", b"two")];
        let expected = expected.map(|(name, bytes)| (name.to_owned(), (bytes.to_vec(), made)));
        assert_eq!(seen, BTreeMap::from(expected), "nothing else is left in the folder");
        let left = place.read_dir().map_or(0, Iterator::count);
        assert_eq!(left, 0, "nor outside");
    }
}

/// Two computers that restore one leave the same file, and a client sees that it changed.
#[test]
fn a_damaged_file_is_replaced_and_has_another_time() {
    for outside in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let (folder, place) = (dir.path().join("folder"), dir.path().join("outside"));
        let store = SyncFolder::create(&folder, outside.then_some(place.as_path())).unwrap();
        store.put("x-1", b"one", PutMode::IfAbsent).unwrap();
        let kept = dir.path().join("kept");
        fs::hard_link(folder.join("x-1"), &kept).unwrap();
        let read = || {
            let mut buf = vec![0; store.len("x-1").unwrap().unwrap() as usize];
            store.read(&mut [ReadAt { object: "x-1", offset: 0, buf: &mut buf }]).unwrap();
            buf
        };
        assert_eq!(read(), b"one");
        for times in [RESTORED, MADE, RESTORED] {
            let time = || seen(&folder)["x-1"].1;
            let before = time();
            // As a client does it: the file of before still has its second name.
            fs::write(folder.join("~new"), b"two").unwrap();
            File::open(folder.join("~new"))
                .and_then(|it| it.set_times(FileTimes::new().set_modified(before)))
                .unwrap();
            fs::rename(folder.join("~new"), folder.join("x-1")).unwrap();
            assert_eq!(read(), b"two");
            store.put("x-1", b"one", PutMode::Restore).unwrap();
            assert_eq!(read(), b"one");
            assert_eq!(time(), SystemTime::UNIX_EPOCH + Duration::from_secs(times));
            assert_eq!(fs::read(&kept).unwrap(), b"one");
        }
        store.delete(&["x-1"]).unwrap();
        store.put("x-1", b"one", PutMode::Restore).unwrap();
        let made = SystemTime::UNIX_EPOCH + Duration::from_secs(MADE);
        assert_eq!(seen(&folder), BTreeMap::from([("x-1".to_owned(), (b"one".to_vec(), made))]));
        assert_eq!(place.read_dir().map_or(0, Iterator::count), 0);
    }
}

#[test]
fn a_new_header_is_a_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("folder");
    let store = SyncFolder::create(&folder, None).unwrap();
    assert!(!SyncFolder::is_one(&folder));
    assert_eq!(store.len(HEADERS[0]).unwrap(), None);
    store.put(HEADERS[0], b"first", PutMode::IfAbsent).unwrap();
    assert!(SyncFolder::is_one(&folder));
    assert!(is_exists(store.put(HEADERS[0], b"again", PutMode::IfAbsent)));
    let first: Vec<String> = seen(&folder).into_keys().collect();
    store.put(HEADERS[0], b"after", PutMode::Replace).unwrap();
    let second: Vec<String> = seen(&folder).into_keys().collect();
    assert!(first.len() == 1 && second.len() == 1 && first != second, "{first:?} {second:?}");
    let mut buf = [0; 5];
    store.read(&mut [ReadAt { object: HEADERS[0], offset: 0, buf: &mut buf }]).unwrap();
    assert_eq!(&buf, b"after");
    // One that has not arrived as a whole, with a higher number.
    fs::write(folder.join("header-00000009-0123456789abcdef"), b"par").unwrap();
    store.read(&mut [ReadAt { object: HEADERS[0], offset: 0, buf: &mut buf }]).unwrap();
    assert_eq!(&buf, b"after");
    assert_eq!(store.list().unwrap(), [(HEADERS[0].to_owned(), 5)]);
}

#[test]
fn what_a_client_leaves_is_no_header() {
    for name in [
        "header",
        "header-2",
        "header-2-0123456789abcdef",
        "header-00000001-0123456789abcdef.sync-conflict-20260101-000000-ABCDEFG",
        "header-00000001-0123456789abcdef (conflicted copy)",
        "header-0000001-0123456789abcdef",
        "header-00000001-0123456789ABCDEF",
        ".header-00000001-0123456789abcdef.tmp",
    ] {
        assert_eq!(header_of(name), None, "{name}");
    }
    assert_eq!(header_of("header-0000000a-0123456789abcdef"), Some(("header", 10)));
    assert_eq!(header_of("header-2-0000000a-0123456789abcdef"), Some(("header-2", 10)));
}

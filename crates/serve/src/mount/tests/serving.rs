//! How the server handles requests that wait together.

use super::*;
use crate::fuse::FileOpKind;

/// Lets `ops` wait together, behind a sync held at the gate.
fn together(rig: &Rig, ops: Vec<FileOp>) -> Vec<std::result::Result<FileAnswer, Errno>> {
    rig.gate.shut(true);
    let first = rig.send(FileOp::Sync { ino: 1, fh: None });
    rig.gate.met();
    let answers: Vec<_> = ops.into_iter().map(|op| rig.send(op)).collect();
    rig.gate.shut(false);
    first.recv().expect("an answer").expect("synced");
    answers.into_iter().map(|answer| answer.recv().expect("an answer")).collect()
}

#[test]
fn syncs_that_wait_together_are_one_commit() {
    let rig = Rig::new();
    let file = rig.create("a");
    let commits = || rig.counts.commits.load(Ordering::Relaxed);
    let mut ops = vec![write(file, 0, b"x")];
    ops.extend((0..10).map(|_| FileOp::Sync { ino: 1, fh: None }));
    let before = commits();
    let answers = together(&rig, ops);
    assert!(answers.iter().all(std::result::Result::is_ok), "{answers:?}");
    let made = commits() - before;
    assert!(made <= 2, "{made} commits: the first sync, and one for all others");
    rig.end();
}

#[test]
fn reads_that_wait_together_are_one_batch() {
    let rig = Rig::new();
    let file = rig.create("a");
    for at in 0..16u64 {
        rig.ask(write(file, at << 20, &vec![at as u8; 1 << 20])).expect("written");
    }
    rig.ask(FileOp::Sync { ino: 1, fh: None }).expect("synced");
    let before = rig.counts.accesses.load(Ordering::Relaxed);
    let reads = (0..8u64).map(|at| read(file, at << 20, 4096)).collect();
    for (at, answer) in together(&rig, reads).into_iter().enumerate() {
        match answer {
            Ok(FileAnswer::Data(data)) => assert!(data == vec![at as u8; 4096], "{at}"),
            other => panic!("{other:?}"),
        }
    }
    let accesses = rig.counts.accesses.load(Ordering::Relaxed) - before;
    assert!(accesses <= 2, "{accesses} accesses for reads that waited together");
    rig.end();
}

#[test]
fn order_is_kept_between_reads_and_writes() {
    let rig = Rig::new();
    let file = rig.create("a");
    let mut ops = Vec::new();
    for turn in 0..20u8 {
        ops.push(write(file, 0, &[turn]));
        ops.push(read(file, 0, 1));
    }
    let answers = together(&rig, ops);
    for (turn, answer) in answers.into_iter().skip(1).step_by(2).enumerate() {
        assert!(matches!(answer, Ok(FileAnswer::Data(data)) if data == [turn as u8]), "{turn}");
    }
    rig.end();
}

#[test]
fn a_watcher_hears_of_each_request() {
    let (tell, heard) = channel();
    let hook: OnRequest = Box::new(move |kind, ino, offset, len| {
        let _ = tell.send((kind, ino, offset, len));
    });
    let rig = Rig::with(Some(hook), Pulse::default());
    let file = rig.create("a");
    rig.ask(write(file, 10, b"hello")).expect("written");
    rig.ask(read(file, 10, 5)).expect("read");
    rig.end();
    let heard: Vec<_> = heard.iter().collect();
    let (kind, ino) = (FileOpKind::MetadataChange, file.0);
    assert_eq!(
        heard,
        [(kind, ROOT_INO, 0, 0), (FileOpKind::Write, ino, 10, 5), (FileOpKind::Read, ino, 10, 5),]
    );
}

#[test]
fn what_was_done_is_there_after_the_end() {
    let rig = Rig::new();
    let file = rig.create("kept");
    rig.ask(write(file, 0, b"hello")).expect("written");
    rig.ask(close(file.1)).expect("closed");
    let blocks = rig.end();
    let fs = FileSystem::open(blocks.boxed()).expect("the file system");
    assert_eq!(fs.lookup(ROOT_INO, b"kept").expect("the file").size, 5);
}

#[test]
fn an_attribute_is_measured_before_it_is_fetched() {
    let rig = Rig::new();
    let (ino, _) = rig.create("a");
    let name = || b"user.a".to_vec();
    let get = |size| rig.ask(FileOp::GetXattr { ino, name: name(), size });
    assert_eq!(get(0).expect_err("none"), 61);
    let value = b"one".to_vec();
    rig.ask(FileOp::SetXattr { ino, name: name(), value, flags: 0 }).expect("set");
    assert!(matches!(get(0), Ok(FileAnswer::Size(3))));
    assert_eq!(get(2).expect_err("too little room"), 34);
    assert!(matches!(get(3), Ok(FileAnswer::Data(data)) if data == b"one"));
    assert!(matches!(
        rig.ask(FileOp::ListXattr { ino, size: 0, caller: Caller::default() }),
        Ok(FileAnswer::Size(7))
    ));
    rig.end();
}

fn list(rig: &Rig, fh: u64, cookie: u64) -> Vec<(u64, String)> {
    match rig.ask(FileOp::ReadDir { ino: ROOT_INO, fh, cookie, plus: cookie.is_multiple_of(2) }) {
        Ok(FileAnswer::Listing(entries)) => entries
            .into_iter()
            .map(|entry| (entry.cookie, String::from_utf8(entry.name).expect("text")))
            .collect(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_listing_goes_on_where_it_was_whatever_changes() {
    let rig = Rig::new();
    for n in 0..3000 {
        rig.create(&format!("f{n:04}"));
    }
    let Ok(FileAnswer::Opened(fh, _)) = rig.ask(FileOp::OpenDir { ino: ROOT_INO }) else {
        panic!("no")
    };
    let (mut cookie, mut seen, mut middle) = (0, Vec::new(), (0, String::new()));
    loop {
        let page = list(&rig, fh, cookie);
        if page.is_empty() {
            break;
        }
        // The kernel takes as many as fit, here 37.
        for (at, name) in page.into_iter().take(37) {
            cookie = at;
            seen.push(name);
        }
        let n = seen.len();
        if n < 2000 {
            // A listed name is removed, and one before it is added.
            let _ = rig.ask(FileOp::Unlink(place(&seen[n - 1])));
            rig.create(&format!("a{n:04}"));
        }
        // From here on names come in order and none is removed.
        if middle.0 == 0 && n >= 2100 {
            middle = (cookie, seen[n - 1].clone());
        }
    }
    assert_eq!(seen.iter().filter(|name| name.starts_with('f')).count(), 3000);
    assert_eq!(seen[..2], [".", ".."]);
    let mut sorted = seen.clone();
    sorted.dedup();
    assert_eq!(sorted.len(), seen.len(), "no name twice");
    // Back to an earlier position, and to one that never existed.
    let place = seen.iter().position(|name| *name == middle.1).expect("it was listed");
    assert_eq!(list(&rig, fh, middle.0)[0].1, seen[place + 1]);
    assert_eq!(
        rig.ask(FileOp::ReadDir { ino: ROOT_INO, fh, cookie: 1 << 40, plus: false })
            .expect_err("no such cookie"),
        22
    );
    rig.end();
}

/// A directory is open while it is removed.
#[test]
fn an_open_directory_outlives_its_name() {
    let rig = Rig::new();
    let caller = Caller { uid: 0, gid: 0 };
    rig.ask(FileOp::MkDir { at: place("d"), mode: 0o755, caller }).expect("made");
    let Ok(FileAnswer::Entry(Some(attr))) = rig.ask(FileOp::Lookup(place("d"))) else {
        panic!("no")
    };
    let ino = attr.ino;
    let Ok(FileAnswer::Opened(fh, _)) = rig.ask(FileOp::OpenDir { ino }) else { panic!("no") };
    rig.ask(FileOp::RmDir(place("d"))).expect("empty");
    let Ok(FileAnswer::Attr(attr)) = rig.ask(FileOp::GetAttr { ino, fh: None }) else {
        panic!("no")
    };
    assert_eq!(attr.nlink, 0);
    let listed = rig.ask(FileOp::ReadDir { ino, fh, cookie: 2, plus: false });
    assert!(matches!(listed, Ok(FileAnswer::Listing(names)) if names.is_empty()));
    let at = NamePlace { parent: ino, name: b"inside".to_vec() };
    let made = rig.ask(FileOp::MkDir { at, mode: 0o755, caller });
    assert!(matches!(made, Err(code) if code == Errno::ENOENT.code()), "{made:?}");
    rig.ask(FileOp::ReleaseDir { fh }).expect("open");
    assert!(rig.ask(FileOp::GetAttr { ino, fh: None }).is_err(), "closed: it is gone");
}

/// Of these requests, which wait together, the ones for a lost block fail, and no others.
#[test]
fn what_is_lost_fails_what_wants_it_and_is_healed_by_a_whole_write() {
    let rig = Rig::new();
    let (one, other) = (rig.create("one"), rig.create("other"));
    let bytes: Vec<u8> = (0..3 * 4096).map(|at| (at / 4096 * 50 + at % 49) as u8).collect();
    rig.ask(write(one, 0, &bytes)).expect("written");
    rig.ask(write(other, 0, &[9; 4096])).expect("written");
    rig.ask(FileOp::Sync { ino: 1, fh: None }).expect("synced");
    rig.blocks.lose(rig.blocks.blocks_with(&bytes[4096..8192], true));
    assert_eq!(rig.blocks.lost(), 1);
    let reads = vec![
        read(one, 0, 4096),
        read(one, 4096, 4096),
        read(one, 8192, 4096),
        read(one, 8000, 4096),
        read(other, 0, 4096),
    ];
    let answers = together(&rig, reads).into_iter().map(|answer| match answer {
        Ok(FileAnswer::Data(data)) => Ok(data),
        Err(errno) => Err(errno.code()),
        other => panic!("{other:?}"),
    });
    let wanted = [
        Ok(bytes[..4096].to_vec()),
        Err(EIO),
        Ok(bytes[8192..].to_vec()),
        Err(EIO),
        Ok(vec![9; 4096]),
    ];
    assert_eq!(answers.collect::<Vec<_>>(), wanted);
    assert!(matches!(rig.ask(write(one, 5000, b"a part")), Err(EIO)));
    rig.ask(write(one, 4096, &[7; 4096])).expect("the block is replaced");
    match rig.ask(read(one, 0, 3 * 4096)) {
        Ok(FileAnswer::Data(data)) => {
            assert!(data == [&bytes[..4096], &[7; 4096], &bytes[8192..]].concat());
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(rig.end().lost(), 0);
}

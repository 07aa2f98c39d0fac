//! A store that does not answer. The test tells how time passes: nothing here depends on how fast
//! this computer is.

use super::*;

/// Waits for an answer; an error as its number.
fn heard(
    answer: &Receiver<std::result::Result<FileAnswer, Errno>>,
) -> std::result::Result<FileAnswer, i32> {
    answer.recv_timeout(LONG).expect("an answer").map_err(Errno::code)
}

#[test]
fn a_stalled_store_is_answered_for_and_comes_back() {
    let rig = Rig::new();
    let file = rig.create("a");
    rig.ask(write(file, 0, b"hello")).expect("written");
    rig.gate.shut(true);
    let sync = rig.send(FileOp::Sync { ino: 1, fh: None });
    rig.gate.met();
    let others = [
        rig.send(FileOp::StatFs { ino: ROOT_INO }),
        rig.send(read(file, 0, 5)),
        rig.send(create("b")),
    ];
    rig.pass(LIMIT / 2);
    assert!(others.iter().all(|other| other.try_recv().is_err()), "they have time yet");
    assert!(sync.try_recv().is_err());
    assert_eq!(rig.stalls.load(Ordering::Relaxed), 0);
    rig.pass(LIMIT);
    for late in others.iter().chain([&sync]) {
        assert_eq!(heard(late).expect_err("too late"), EIO);
    }
    assert_eq!(rig.stalls.load(Ordering::Relaxed), 1, "the stall is told of once");

    rig.gate.shut(false);
    match rig.ask(read(file, 0, 5)) {
        Ok(FileAnswer::Data(data)) => assert_eq!(data, b"hello"),
        other => panic!("{other:?}"),
    }
    // The server skips requests whose callers have given up.
    assert!(matches!(rig.ask(FileOp::Lookup(place("b"))), Ok(FileAnswer::Entry(None))));
    rig.ask(FileOp::Sync { ino: 1, fh: None }).expect("the store is back");
    rig.end();
}

#[test]
fn what_was_opened_too_late_is_closed_and_forgotten() {
    let rig = Rig::new();
    rig.create("open");
    rig.gate.shut(true);
    let sync = rig.send(FileOp::Sync { ino: 1, fh: None });
    rig.gate.met();
    let release = rig.send(close(1));
    let opened = rig.send(FileOp::Unlink(place("open")));
    rig.pass(LIMIT);
    for late in [sync, opened, release] {
        assert_eq!(heard(&late).expect_err("too late"), EIO);
    }
    rig.gate.shut(false);
    // The release was served all the same, the unlink was not.
    assert!(matches!(rig.ask(FileOp::Lookup(place("open"))), Ok(FileAnswer::Entry(Some(_)))));
    assert_eq!(rig.ask(read((2, 1), 0, 1)).expect_err("closed"), 9);
    rig.end();
}

#[test]
fn a_slow_store_that_is_at_work_is_waited_for() {
    let pulse = Pulse::default();
    let rig = Rig::with(None, Arc::clone(&pulse));
    rig.create("a");
    rig.gate.shut(true);
    let sync = rig.send(FileOp::Sync { ino: 1, fh: None });
    rig.gate.met();
    let part = LIMIT / 5 * 4;
    for times in 1..20 {
        pulse.fetch_add(1, Ordering::Relaxed);
        rig.pass(part * times);
        assert!(sync.try_recv().is_err(), "it is waited for");
    }
    rig.gate.shut(false);
    assert!(heard(&sync).is_ok());
    rig.end();
}

#[test]
fn a_killed_queue_answers_everybody_at_once() {
    let rig = Rig::new();
    rig.create("a");
    rig.gate.shut(true);
    let waiting =
        [rig.send(FileOp::Sync { ino: 1, fh: None }), rig.send(FileOp::StatFs { ino: ROOT_INO })];
    rig.queue.kill();
    for one in waiting {
        assert_eq!(heard(&one).expect_err("killed"), EIO);
    }
    assert_eq!(rig.ask(FileOp::StatFs { ino: ROOT_INO }).expect_err("killed"), EIO);
    rig.gate.shut(false);
    rig.end();
}

#[test]
fn an_operation_that_finishes_late_makes_the_kernel_forget() {
    let rig = Rig::new();
    let file = rig.create("a");
    // Writing a whole block needs the store.
    rig.gate.shut(true);
    let written = rig.send(write(file, 0, &vec![7; 1 << 20]));
    rig.gate.met();
    rig.pass(LIMIT);
    assert_eq!(heard(&written).expect_err("too late"), EIO);
    rig.gate.shut(false);
    assert_eq!(rig.late.recv_timeout(LONG).expect("a notice"), Late::Inode(file.0));
    rig.end();
}

#[test]
fn a_file_that_is_created_too_late_is_closed() {
    // The hook holds the second creation up until its time is over.
    let (counter, gate) = (AtomicU64::new(0), Gate::default());
    let holds = gate.clone();
    let slow: OnRequest = Box::new(move |_, _, _, _| {
        if counter.fetch_add(1, Ordering::Relaxed) == 1 {
            holds.pass();
        }
    });
    let rig = Rig::with(Some(slow), Pulse::default());
    rig.create("a");
    gate.shut(true);
    let late = rig.send(create("late"));
    gate.met();
    rig.pass(LIMIT);
    assert_eq!(heard(&late).expect_err("too late"), EIO);
    gate.shut(false);
    let notice = || rig.late.recv_timeout(LONG).expect("a notice");
    assert_eq!(notice(), Late::Name(ROOT_INO, b"late".to_vec()));
    assert_eq!(notice(), Late::Inode(ROOT_INO));
    // The file exists, and its handle, the second one, does not.
    let Ok(FileAnswer::Entry(Some(attr))) = rig.ask(FileOp::Lookup(place("late"))) else {
        panic!("none")
    };
    assert_eq!(rig.ask(read((attr.ino, 2), 0, 1)).expect_err("closed"), 9);
    rig.end();
}

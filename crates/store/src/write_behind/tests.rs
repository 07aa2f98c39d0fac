use super::*;
use proptest::prelude::*;
use std::os::unix::fs::FileExt;

fn open(content: &[u8]) -> io::Result<WriteBehind> {
    let file = tempfile::tempfile()?;
    file.write_all_at(content, 0)?;
    Ok(WriteBehind::new(file))
}

fn piece(offset: u64, data: &[u8]) -> WriteAt<'_> {
    WriteAt::new("file", offset, data)
}

fn content(behind: &WriteBehind) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; behind.medium().metadata()?.len() as usize];
    behind.medium().read_exact_at(&mut bytes, 0)?;
    Ok(bytes)
}

/// The sync of these writes failed, and the system dropped them.
fn failed(writes: &[(u64, &[u8])]) -> io::Result<WriteBehind> {
    let behind = open(b"first")?;
    writes.iter().try_for_each(|(at, data)| behind.write(&piece(*at, data), false))?;
    behind.medium().write_all_at(b"first", 0)?;
    behind.medium().set_len(5)?;
    let mut state = behind.shared.state();
    (state.underway, state.failed) = (Arc::new(std::mem::take(&mut state.waiting)), true);
    state.take_back();
    drop(state);
    Ok(behind)
}

#[test]
fn after_a_failed_sync_what_was_lost_is_written_again() -> io::Result<()> {
    let behind = failed(&[(0, b"second"), (2, b"X")])?;
    behind.sync()?;
    assert_eq!(content(&behind)?, b"seXond");
    assert!(behind.is_empty(), "nothing is kept any more");
    let behind = failed(&[(3, b"old")])?;
    behind.write(&piece(4, b"new"), false)?;
    assert_eq!(content(&behind)?, b"fironew", "what is kept is older");
    let behind = failed(&[(3, b"long"), (6, b"er")])?;
    behind.truncate(6)?;
    assert_eq!(content(&behind)?, b"firlon", "lost, written again and cut");
    let behind = failed(&[(3, b"long")])?;
    let mut buf = [0; 3];
    assert!(behind.read(4, &mut buf)? && &buf == b"ong", "reads see what was written");
    assert!(!behind.read(0, &mut [0; 5])?, "partly kept, so it was written first");
    assert_eq!(content(&behind)?, b"firlong");
    Ok(())
}

#[test]
fn an_error_stays_until_it_is_gone_and_nothing_is_forgotten() -> io::Result<()> {
    let path = tempfile::NamedTempFile::new()?;
    let behind = WriteBehind::new(File::open(path.path())?);
    // A deferred write learns of the error later, and of no success before.
    behind.write(&piece(0, &[7; 100]), true)?;
    for _ in 0..3 {
        assert!(behind.sync().is_err());
        assert!(behind.write(&piece(5, &[8; 10]), true).is_err());
        let mut buf = [0; 100];
        assert!(behind.read(0, &mut buf)? && buf == [7; 100]);
        assert_eq!(behind.end(), 100);
    }
    Ok(())
}

#[test]
fn what_is_written_later_may_be_rounded_up() -> io::Result<()> {
    let behind = open(&[9; 100])?;
    behind.may_round_up(8);
    behind.write(&piece(8, b"abc"), true)?;
    behind.write(&piece(16, b"defghijk"), true)?;
    behind.write(&piece(24, b"lm"), true)?;
    let mut buf = [0; 3];
    assert!(behind.read(8, &mut buf)? && &buf == b"abc");
    behind.sync()?;
    let mut expected = vec![9; 100];
    expected[8..32].copy_from_slice(b"abc\0\0\0\0\0defghijklm\0\0\0\0\0\0");
    assert_eq!(content(&behind)?, expected);
    // At once, with no deferred write: unchanged.
    behind.write(&piece(40, b"n"), false)?;
    expected[40] = b'n';
    assert_eq!(content(&behind)?, expected);
    Ok(())
}

#[test]
fn much_is_written_by_the_thread_and_bounded() -> io::Result<()> {
    let behind = open(b"")?;
    let much = vec![7; 3 << 20];
    for round in 0..30 {
        let most = if round < 20 { MOST } else { much.len() };
        if round == 20 {
            behind.may_keep(1 << 20);
            behind.sync()?;
        }
        behind.write(&piece(round * 11, &much), true)?;
        assert!(behind.shared.state().kept() <= most);
    }
    behind.sync()?;
    assert_eq!((behind.waiting(), behind.end()), (0, 0));
    assert_eq!(content(&behind)?.len(), 29 * 11 + much.len());
    Ok(())
}

/// A disk that writes nothing while a test holds it.
struct Stalls(Mutex<()>, Arc<AtomicUsize>);

impl Medium for Stalls {
    fn read_at(&self, _: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        Ok(())
    }
    fn write_at(&self, data: &[u8], zeros: usize, _: u64) -> io::Result<()> {
        drop(self.0.lock());
        self.1.fetch_add(data.len() + zeros, Ordering::Relaxed);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        drop(self.0.lock());
        Ok(())
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        drop(self.0.lock());
        Ok(())
    }
}

#[test]
fn as_much_is_written_as_may_be_kept_while_the_disk_stalls() -> io::Result<()> {
    const PIECE: usize = 64 << 10;
    let written = Arc::new(AtomicUsize::new(0));
    let behind = WriteBehind::new(Stalls(Mutex::default(), Arc::clone(&written)));
    for most in [2 * PIECE, MOST, 3 * MOST] {
        written.store(0, Ordering::Relaxed);
        behind.may_keep(most);
        let held = behind.medium().0.lock();
        for at in 0..(most / PIECE) as u64 {
            behind.write(&piece(at * PIECE as u64, &[1; PIECE]), true)?;
        }
        assert_eq!((behind.waiting(), written.load(Ordering::Relaxed)), (most, 0));
        // The next one finds no room before the disk is back.
        thread::scope(|scope| {
            let next = scope.spawn(|| behind.write(&piece(0, &[2; PIECE]), true));
            drop(held);
            next.join().expect("no panic")
        })?;
        behind.sync()?;
        assert!(behind.is_empty());
        assert_eq!(written.load(Ordering::Relaxed), most + PIECE);
    }
    Ok(())
}

/// A disk whose syncs wait while a test holds it; its writes pass.
#[derive(Default)]
struct SlowSyncs(Mutex<()>, AtomicUsize);

impl Medium for SlowSyncs {
    fn read_at(&self, _: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        Ok(())
    }
    fn write_at(&self, data: &[u8], _: usize, _: u64) -> io::Result<()> {
        self.1.fetch_add(data.len(), Ordering::Relaxed);
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        drop(self.0.lock());
        Ok(())
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// Records that run ahead of syncs depend on it. And a sync does not wait for what comes after it.
#[test]
fn a_short_write_passes_beside_a_sync_unless_an_older_one_is_pending_there() -> io::Result<()> {
    let behind = WriteBehind::new(SlowSyncs::default());
    behind.write(&piece(0, &[1; 10]), false)?;
    let held = behind.medium().0.lock();
    thread::scope(|scope| {
        let sync = scope.spawn(|| behind.sync());
        while !behind.shared.state().busy {
            thread::yield_now();
        }
        let written = || behind.medium().1.load(Ordering::Relaxed);
        behind.write(&piece(10, &[2; 10]), false)?;
        assert_eq!(written(), 20);
        behind.write(&piece(5, &[3; 10]), false)?;
        assert_eq!(written(), 20, "the first ten bytes may be written again");
        drop(held);
        sync.join().expect("no panic")?;
        assert_eq!(behind.shared.state().durable, 1, "one round was enough");
        behind.sync()
    })?;
    assert!(behind.is_empty());
    assert_eq!(behind.medium().1.load(Ordering::Relaxed), 30);
    Ok(())
}

#[test]
fn what_a_partial_sync_left_is_given_again_after_it_failed() -> io::Result<()> {
    let behind = open(b"")?;
    behind.may_keep(8);
    // The system has both, and a round makes half of the most durable.
    for at in [0, 4] {
        behind.write(&piece(at, &[at as u8 + 1; 4]), false)?;
    }
    let mut state = behind.shared.state();
    state.underway = Arc::new(state.waiting.take(4));
    assert_eq!((state.underway.len(), state.waiting.len()), (4, 4));
    // Its sync failed, and so did that of the others.
    behind.medium().write_all_at(&[0xee; 8], 0)?;
    state.failed = true;
    state.take_back();
    drop(state);
    behind.sync()?;
    assert_eq!(content(&behind)?, [1, 1, 1, 1, 5, 5, 5, 5]);
    Ok(())
}

fn wait_until_settled<M: Medium>(behind: &WriteBehind<M>) {
    while !behind.is_settled() {
        thread::yield_now();
    }
}

/// During a punch, no thread may believe that everything is done, and write past the kept writes.
#[test]
fn the_thread_makes_holes_and_nobody_waits() -> io::Result<()> {
    let written = Arc::new(AtomicUsize::new(0));
    let behind = WriteBehind::new(Stalls(Mutex::default(), Arc::clone(&written)));
    let held = behind.medium().0.lock();
    behind.punch_later(0, 10)?;
    while !behind.shared.state().busy {
        thread::yield_now();
    }
    assert!(!behind.is_empty() && !behind.is_settled());
    behind.write(&piece(0, &[2; 10]), false)?;
    assert_eq!((behind.waiting(), written.load(Ordering::Relaxed)), (10, 0));
    drop(held);
    behind.sync()?;
    assert_eq!((behind.waiting(), written.load(Ordering::Relaxed)), (0, 10));
    behind.punch_later(0, 10)?;
    wait_until_settled(&behind);
    Ok(())
}

#[test]
fn a_hole_is_made_before_what_is_written_over_it() -> io::Result<()> {
    let holes = can_punch()?;
    let before = if holes { 0 } else { 7 };
    let behind = open(&[7; 100])?;
    behind.punch_later(10, 20)?;
    behind.punch_later(40, 20)?;
    assert!(!behind.is_settled());
    // The write removed this hole.
    behind.write(&piece(15, &[1; 5]), true)?;
    let mut buf = [9; 5];
    assert!(behind.read(15, &mut buf)? && buf == [1; 5]);
    // A read of the other sees its future content.
    assert!(!behind.read(45, &mut buf)?);
    assert_eq!(content(&behind)?[40..60], [before; 20]);
    let expected = [[before; 5], [1; 5], [before; 5], [before; 5]].concat();
    assert_eq!(content(&behind)?[10..30], expected);
    // After the drop, nothing is left to do.
    let path = tempfile::NamedTempFile::new()?;
    std::fs::write(path.path(), [7; 100])?;
    let behind = WriteBehind::new(path.reopen()?);
    behind.punch_later(0, 100)?;
    drop(behind);
    assert_eq!(std::fs::read(path.path())?, [before; 100]);
    Ok(())
}

#[test]
fn what_the_thread_failed_at_is_told_and_tried_again() -> io::Result<()> {
    let path = tempfile::NamedTempFile::new()?;
    let behind = WriteBehind::new(File::open(path.path())?);
    behind.write(&piece(0, &[7; MOST]), true)?;
    while !behind.shared.state().failed {
        thread::yield_now();
    }
    assert!(!behind.is_settled());
    assert!(behind.repair().is_err() && behind.repair().is_err(), "it is read-only");
    Ok(())
}

#[test]
fn what_was_not_durable_is_there_when_it_is_closed() -> io::Result<()> {
    let path = tempfile::NamedTempFile::new()?;
    let behind = WriteBehind::new(path.reopen()?);
    behind.write(&piece(2, b"later"), true)?;
    drop(behind);
    assert_eq!(std::fs::read(path.path())?, b"\0\0later");
    Ok(())
}

#[derive(Clone, Debug)]
enum Act {
    Write {
        at: u64,
        len: usize,
        later: bool,
    },
    Read {
        at: u64,
        len: usize,
    },
    Truncate(u64),
    Punch {
        at: u64,
        len: u64,
    },
    Sync,
    /// The last sync failed, and the file lost everything that was not durable.
    Fail,
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (0u64..200, 1usize..60, any::<bool>())
            .prop_map(|(at, len, later)| Act::Write { at, len, later }),
        4 => (0u64..200, 1usize..60).prop_map(|(at, len)| Act::Read { at, len }),
        1 => (0u64..250).prop_map(Act::Truncate),
        2 => (0u64..200, 1u64..90).prop_map(|(at, len)| Act::Punch { at, len }),
        1 => Just(Act::Sync),
        1 => Just(Act::Fail),
    ]
}

/// With an `align` above 1, every write is deferred, with zeros after it up to a multiple of that.
fn run(acts: &[Act], align: usize) -> io::Result<()> {
    let behind = open(b"")?;
    behind.may_round_up(align);
    let holes = can_punch()?;
    // So that it becomes durable in parts.
    behind.may_keep(100);
    let mut model = Vec::new();
    for (index, act) in acts.iter().enumerate() {
        match *act {
            Act::Write { at: offset, len, later } => {
                let (data, later) = (vec![index as u8 + 1; len], later || align > 1);
                behind.write(&piece(offset, &data), later)?;
                let (begin, end) = (offset as usize, offset as usize + len);
                let to = end.next_multiple_of(align);
                model.resize(model.len().max(to), 0);
                model[begin..end].copy_from_slice(&data);
                model[end..to].fill(0);
            }
            Act::Read { at, len } if at as usize + len <= model.len() => {
                let mut buf = vec![0; len];
                if !behind.read(at, &mut buf)? {
                    let end = behind.medium().metadata()?.len();
                    if end < at + len as u64 {
                        behind.sync()?;
                    }
                    behind.medium().read_exact_at(&mut buf, at)?;
                }
                assert_eq!(buf, model[at as usize..][..len]);
            }
            Act::Read { .. } => {}
            Act::Truncate(len) => {
                behind.truncate(len)?;
                model.resize(len as usize, 0);
            }
            Act::Punch { .. } if !holes => {}
            Act::Punch { at, len } => {
                behind.punch_later(at, len)?;
                let range = model.len().min(at as usize)..model.len().min((at + len) as usize);
                model[range].fill(0);
            }
            Act::Sync => {
                behind.sync()?;
                assert_eq!(content(&behind)?, model);
            }
            Act::Fail => lose(&behind)?,
        }
        // In this order, because the thread may write it meanwhile.
        let waits = behind.end();
        assert_eq!(behind.medium().metadata()?.len().max(waits) as usize, model.len());
    }
    behind.sync()?;
    assert_eq!(content(&behind)?, model);
    Ok(())
}

/// Not every file system can punch holes.
fn can_punch() -> io::Result<bool> {
    let behind = open(b"one")?;
    behind.medium().punch(0, 3)?;
    Ok(content(&behind)? == [0; 3])
}

/// The worst result of a failed sync: everything that was not durable is lost.
fn lose(behind: &WriteBehind) -> io::Result<()> {
    let mut state = behind.shared.idle();
    if state.underway.is_empty() {
        state.underway = Arc::new(state.waiting.take(50));
    }
    let len = behind.medium().metadata()?.len();
    let lost = (0..len).filter(|&at| state.underway.touches(at, 1) || state.waiting.touches(at, 1));
    lost.clone().try_for_each(|at| behind.medium().write_all_at(&[0xee], at))?;
    state.failed = !state.underway.is_empty();
    state.take_back();
    Ok(())
}

proptest! {
    // Each case syncs a real file.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_file_written_behind_is_a_file(acts in prop::collection::vec(act(), 1..60)) {
        prop_assert!(run(&acts, 1).is_ok());
        prop_assert!(run(&acts, 16).is_ok());
    }
}

/// A disk that counts how often it is asked to make everything durable.
#[derive(Default)]
struct CountsSyncs(AtomicUsize);

impl Medium for CountsSyncs {
    fn read_at(&self, _: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        Ok(())
    }
    fn write_at(&self, _: &[u8], _: usize, _: u64) -> io::Result<()> {
        Ok(())
    }
    fn sync(&self) -> io::Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

/// What may not be durable yet is waited for; what is, is not waited for again.
#[test]
fn a_sync_of_what_is_durable_asks_for_nothing() -> io::Result<()> {
    let behind = WriteBehind::new(CountsSyncs::default());
    let syncs = || behind.medium().0.load(Ordering::Relaxed);
    behind.sync_changes()?;
    assert_eq!(syncs(), 1, "a process before may have written");
    for (count, later) in [(2, true), (3, false)] {
        behind.write(&piece(0, b"new"), later)?;
        behind.sync_changes()?;
        behind.sync_changes()?;
        assert_eq!(syncs(), count);
    }
    behind.changed_beside();
    behind.sync_changes()?;
    assert_eq!(syncs(), 4);
    behind.punch_later(0, 1)?;
    behind.sync_changes()?;
    assert_eq!(syncs(), 5);
    Ok(())
}

/// A disk that takes a part of each write and fails, or whose syncs last while a test holds them.
#[derive(Default)]
struct Slow {
    fails: bool,
    held: Mutex<()>,
    begun: AtomicUsize,
}

impl Medium for Slow {
    fn read_at(&self, _: &mut [(u64, &mut [u8])]) -> io::Result<()> {
        Ok(())
    }
    fn write_at(&self, _: &[u8], _: usize, _: u64) -> io::Result<()> {
        if self.fails { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
    }
    fn sync(&self) -> io::Result<()> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        drop(self.held.lock());
        Ok(())
    }
    fn punch(&self, _: u64, _: u64) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_sync_that_began_before_a_change_does_not_make_it_durable() -> io::Result<()> {
    let behind = WriteBehind::new(Slow::default());
    let begun = || behind.medium().begun.load(Ordering::SeqCst);
    let held = behind.medium().held.lock();
    // Enough for one round of the thread.
    behind.write(&piece(0, &[1; MOST / 8]), true)?;
    while begun() == 0 {
        thread::yield_now();
    }
    behind.changed_beside();
    drop(held);
    wait_until_settled(&behind);
    let syncs = begun();
    behind.sync_changes()?;
    assert_eq!(begun(), syncs + 1);
    behind.sync_changes()?;
    assert_eq!(begun(), syncs + 1, "now it is");
    Ok(())
}

#[test]
fn what_a_failed_write_left_is_not_durable() -> io::Result<()> {
    let behind = WriteBehind::new(Slow { fails: true, ..Slow::default() });
    behind.sync()?;
    assert!(behind.is_durable());
    assert!(behind.write(&piece(0, b"some"), false).is_err());
    assert!(!behind.is_durable(), "a part of it may be there");
    Ok(())
}

#[test]
fn a_cut_is_a_change_until_it_is_durable() -> io::Result<()> {
    let behind = open(b"long")?;
    behind.sync()?;
    let changes = behind.shared.state().changes;
    behind.truncate(2)?;
    assert_eq!(behind.shared.state().changes, changes + 1);
    assert!(behind.is_durable());
    Ok(())
}

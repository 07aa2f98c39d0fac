//! What a start does with a folder that was damaged, or that an older server used: it deletes
//! nothing before it knows that the volume holds together, it goes on with any copy that is whole,
//! and it gives no alarm for what a crash or an older server leaves.

use super::campaign::in_memory;
use super::small::{Elsewhere, STATE, files, fill, known, open};
use oblivio_share::{Healed, StoredShare};
use oblivio_store::share::{AskNumber, HistoryEntry, Number, Object, SealedAsk, Share};
use oblivio_store::{Held, MemoryStore, Objects};
use oblivio_testkit::Dice;
use oblivio_testkit::share::{Rig, TestClock, ask_id};
use redb::{Database, TableDefinition};
use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, memfd_create};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::os::fd::AsRawFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use tempfile::TempDir;

const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");

fn filled(elsewhere: &Elsewhere) -> TempDir {
    let dir = in_memory();
    fill(dir.path(), elsewhere, &mut Dice::new(50));
    dir
}

fn state_name(at: u64) -> String {
    format!("c-{at:016x}")
}

fn refused(dir: &Path, elsewhere: &Elsewhere) -> String {
    open(dir, elsewhere).map(drop).unwrap_err().to_string()
}

/// What a volume says of damage, by the files.
fn said(share: &StoredShare) -> BTreeMap<String, bool> {
    let of = |it: &Healed| (it.file.clone(), it.failed.is_some());
    share.mended().iter().map(of).collect()
}

fn logs(dir: &Path) -> Vec<PathBuf> {
    files(&dir.join("log")).into_keys().collect()
}

/// Puts a file in the place of another one that can be read, and never written.
fn unwritable(path: &Path, bytes: &[u8]) -> File {
    let mut file = File::from(memfd_create("sector", MemfdFlags::ALLOW_SEALING).unwrap());
    file.write_all(bytes).unwrap();
    fcntl_add_seals(&file, SealFlags::WRITE | SealFlags::GROW | SealFlags::SHRINK).unwrap();
    fs::remove_file(path).unwrap();
    symlink(format!("/proc/self/fd/{}", file.as_raw_fd()), path).unwrap();
    file
}

/// Puts a folder in the place of a file: no file takes its place.
fn folder(path: &Path) {
    fs::remove_file(path).unwrap();
    fs::create_dir(path).unwrap();
    fs::write(path.join("x"), "x").unwrap();
}

#[test]
fn a_start_without_the_catalog_deletes_nothing() {
    let dir = filled(&None);
    let state = state_name(STATE);
    for path in ["catalog", "second/catalog", &format!("tables/{state}")] {
        fs::remove_file(dir.path().join(path)).unwrap();
    }
    fs::write(dir.path().join("tables/t-0000000000000009.part"), "part").unwrap();
    let before = files(dir.path());
    for _ in 0..2 {
        assert!(refused(dir.path(), &None).contains("catalog"));
        let mut after = files(dir.path());
        after.retain(|path, _| !path.ends_with("catalog"));
        assert!(after == before, "a start that was refused changed something");
    }
    assert!(dir.path().join("second/states").join(state).exists());
    // Nothing is left but that one copy.
    for left in ["log", "tables", "second/log"] {
        fs::remove_dir_all(dir.path().join(left)).unwrap();
    }
    assert!(refused(dir.path(), &None).contains("catalog"));
}

/// A catalog that was put back counts, however often the server was started without one.
#[test]
fn refused_starts_make_no_catalog_that_counts() {
    let dir = filled(&None);
    let expected = known(&open(dir.path(), &None).unwrap());
    let backup = fs::read(dir.path().join("catalog")).unwrap();
    let paths = ["catalog", "second/catalog"].map(|path| dir.path().join(path));
    paths.iter().for_each(|path| fs::remove_file(path).unwrap());
    (0..30).for_each(|_| drop(refused(dir.path(), &None)));
    fs::write(&paths[0], backup).unwrap();
    assert_eq!(known(&open(dir.path(), &None).unwrap()), expected);
}

#[test]
fn a_start_with_another_store_or_without_notes_deletes_nothing_in_it() {
    let store = Arc::new(MemoryStore::default());
    let dir = filled(&Some(store.clone()));
    let wrong = Arc::new(MemoryStore::default());
    assert!(refused(dir.path(), &Some(wrong.clone())).contains("lacks a part"));
    assert_eq!(wrong.list().unwrap(), [], "it may become another volume's");
    wait_for_deletes(&store);
    let before = store.list().unwrap();
    for lost in ["catalog", "second/catalog"] {
        fs::remove_file(dir.path().join(lost)).unwrap();
    }
    for lost in ["tables", "second/tables"] {
        fs::remove_dir_all(dir.path().join(lost)).unwrap();
    }
    assert!(refused(dir.path(), &Some(store.clone())).contains("catalog"));
    wait_for_deletes(&store);
    assert_eq!(store.list().unwrap(), before);
}

/// Waits until nobody else has a store: the thread that deletes behind a server has it while it
/// does.
fn wait_for_deletes(store: &Arc<MemoryStore>) {
    while Arc::strong_count(store) > 1 {
        std::thread::yield_now();
    }
}

/// The store of the tables lacks a part of the newest state, or both notes on it are damaged: the
/// copy in the folder is whole, and the store gets it again.
#[test]
fn a_state_that_the_store_lacks_is_in_the_folder() {
    let store = Arc::new(MemoryStore::default());
    let elsewhere = Some(store.clone());
    let dir = filled(&elsewhere);
    let expected = known(&open(dir.path(), &elsewhere).unwrap());
    let name = format!("tables/{}", state_name(STATE));
    let copy = dir.path().join("second/states").join(state_name(STATE));
    // Parts of older states may be there: what a server leaves, the next start deletes.
    let lose_a_part = || {
        let all = store.list().unwrap();
        let part = all.iter().find(|(name, _)| name.starts_with(&state_name(STATE))).unwrap();
        store.delete(&[&part.0]).unwrap();
    };
    let damage_notes = || {
        for path in [dir.path().join(&name), dir.path().join("second").join(&name)] {
            fs::write(path, "no note").unwrap();
        }
    };
    for damage in [&lose_a_part as &dyn Fn(), &damage_notes] {
        damage();
        {
            let share = open(dir.path(), &elsewhere).unwrap();
            assert_eq!(known(&share), expected);
            assert_eq!(said(&share), BTreeMap::from([(name.clone(), false)]));
        }
        fs::remove_file(&copy).unwrap();
        let share = open(dir.path(), &elsewhere).unwrap();
        assert_eq!(known(&share), expected);
        assert!(copy.exists());
    }
}

/// A first copy that cannot be written in its place is made as a new file.
#[test]
fn a_place_that_cannot_be_written_is_left() {
    let dir = filled(&None);
    let expected = known(&open(dir.path(), &None).unwrap());
    let logs = logs(dir.path());
    let (first, last) = (logs[logs.len() - 3].clone(), logs[logs.len() - 1].clone());
    for path in [dir.path().join("catalog"), dir.path().join("second/catalog"), first, last] {
        let mut bytes = fs::read(&path).unwrap();
        let middle = bytes.len() / 2;
        bytes[16..middle].fill(0);
        let _kept = unwritable(&path, &bytes);
        let share = open(dir.path(), &None).unwrap();
        assert_eq!(known(&share), expected);
        let file = path.strip_prefix(dir.path()).unwrap().display().to_string();
        assert_eq!(said(&share), BTreeMap::from([(file, false)]));
        assert!(fs::symlink_metadata(&path).unwrap().is_file(), "{}", path.display());
    }
    let share = open(dir.path(), &None).unwrap();
    assert_eq!((known(&share), said(&share)), (expected, BTreeMap::new()));
}

/// A copy of which nothing can be written is left out, and said to be so, until it can.
#[test]
fn one_copy_is_enough() {
    let dir = filled(&None);
    let mut expected = known(&open(dir.path(), &None).unwrap());
    let state = format!("tables/{}", state_name(STATE));
    for (round, file) in ["catalog", "second/catalog", &state].into_iter().enumerate() {
        let path = dir.path().join(file);
        folder(&path);
        for _ in 0..2 {
            let share = open(dir.path(), &None).unwrap();
            assert_eq!(known(&share), expected, "{file}");
            assert_eq!(said(&share), BTreeMap::from([(file.to_owned(), true)]));
        }
        {
            let share = open(dir.path(), &None).unwrap();
            share.put_parameters(round as u64 + 1, 48, b"another").unwrap();
            expected = known(&share);
        }
        fs::remove_dir_all(&path).unwrap();
        let share = open(dir.path(), &None).unwrap();
        assert_eq!(known(&share), expected, "{file}");
        assert_eq!(said(&share), BTreeMap::from([(file.to_owned(), false)]));
    }
}

/// A catalog that can be read and not written is left out. The next start makes it as a new file.
#[test]
fn a_catalog_that_cannot_be_written_is_left_out() {
    // The second one is behind by one change then, as after a crash.
    let [one, two] = [[Some(true), Some(false), None], [Some(true), None, None]];
    for (file, starts) in [("catalog", one), ("second/catalog", two)] {
        let dir = filled(&None);
        let expected = known(&open(dir.path(), &None).unwrap());
        let path = dir.path().join(file);
        let _kept = unwritable(&path, &fs::read(&path).unwrap());
        for failed in starts {
            let share = open(dir.path(), &None).unwrap();
            let said_of = failed.map(|failed| (file.to_owned(), failed)).into_iter().collect();
            assert_eq!((known(&share), said(&share)), (expected.clone(), said_of), "{file}");
        }
    }
}

/// A file of the history that cannot be read any more while the server runs.
#[test]
fn answers_come_from_the_second_copy() {
    let (dir, clock) = (in_memory(), TestClock::default());
    let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
    let mut rig = Rig::new(&share).unwrap();
    let id = ask_id(&share, 1, 0);
    share.ask(&[SealedAsk { id, sealed: vec![0; 33] }]).unwrap();
    let (batch, _) = rig.show(&[(id, vec![])]).unwrap();
    rig.tell(batch, &[id]).unwrap();
    let answers = || share.answers(id.session, AskNumber(0), Duration::ZERO).unwrap();
    let expected = answers();
    let log = logs(dir.path()).remove(0);
    File::options().write(true).open(log).unwrap().set_len(16).unwrap();
    assert_eq!((answers(), expected.len()), (expected, 1));
}

/// A volume whose newest state made files of the history go. Returns the copies of before.
fn with_deleted_files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let share = open(dir, &None).unwrap();
    let mut rig = Rig::new(&share).unwrap();
    let copies = files(&dir.join("second/log"));
    rig.save(Number(58), Number(57), b"state").unwrap();
    rig.add(&HistoryEntry::Note(vec![1; 10])).unwrap();
    share.settle().unwrap();
    copies
}

/// Copies that stayed behind when their files were deleted bring nothing back.
#[test]
fn what_was_deleted_stays_away() {
    for kept in [usize::MAX, 1] {
        let dir = filled(&None);
        let copies = with_deleted_files(dir.path());
        let (expected, whole) = (known(&open(dir.path(), &None).unwrap()), logs(dir.path()));
        let gone = |path: &Path| !dir.path().join("log").join(path.file_name().unwrap()).exists();
        let left: Vec<_> = copies.iter().filter(|(path, _)| gone(path)).take(kept).collect();
        assert!(!left.is_empty());
        left.iter().for_each(|(path, bytes)| fs::write(path, bytes).unwrap());
        let share = open(dir.path(), &None).unwrap();
        assert_eq!((said(&share), known(&share)), (BTreeMap::new(), expected));
        assert_eq!(logs(dir.path()), whole);
        assert!(left.iter().all(|(path, _)| !path.exists()));
    }
}

/// A copy whose successor could not be written goes with its file.
#[test]
fn the_last_copy_goes_with_its_file() {
    let dir = filled(&None);
    {
        let share = open(dir.path(), &None).unwrap();
        let mut rig = Rig::new(&share).unwrap();
        // No copy can be begun from here on.
        let second = dir.path().join("second/log");
        fs::rename(&second, dir.path().join("moved")).unwrap();
        for _ in 0..30 {
            rig.add(&HistoryEntry::Note(vec![1; 200])).unwrap();
        }
        fs::rename(dir.path().join("moved"), second).unwrap();
        rig.save(Number(90), Number(90), b"state").unwrap();
    }
    let whole = logs(dir.path());
    let share = open(dir.path(), &None).unwrap();
    assert_eq!((said(&share), logs(dir.path())), (BTreeMap::new(), whole));
}

/// The ends of both copies as a crash leaves them: what is whole in one counts, and nobody hears
/// that the disk fails.
#[test]
fn what_a_crash_tore_is_no_damage() {
    let dir = filled(&None);
    let expected = known(&open(dir.path(), &None).unwrap());
    let log = logs(dir.path()).pop().unwrap();
    let copy = dir.path().join("second/log").join(log.file_name().unwrap());
    let whole = fs::read(&log).unwrap();
    for path in [log.as_path(), copy.as_path()] {
        for (left, zeros) in [(30, 0), (30, 30), (whole.len(), 0), (whole.len(), 400)] {
            if left == whole.len() && path == log {
                continue;
            }
            let mut torn = whole[..whole.len() - left].to_vec();
            torn.resize(torn.len() + zeros, 0);
            fs::write(path, torn).unwrap();
            let share = open(dir.path(), &None).unwrap();
            assert_eq!((said(&share), known(&share)), (BTreeMap::new(), expected.clone()));
        }
        // Before the end it is damage.
        let mut damaged = whole.clone();
        damaged[30] ^= 1;
        fs::write(path, damaged).unwrap();
        let share = open(dir.path(), &None).unwrap();
        assert_eq!((said(&share).len(), known(&share)), (1, expected.clone()));
    }
}

/// An older server knew one copy only: it named another state, and left sums and copies behind.
#[test]
fn what_an_older_server_wrote_counts() {
    let dir = filled(&None);
    let mut expected = known(&open(dir.path(), &None).unwrap());
    let (tables, states) = (dir.path().join("tables"), dir.path().join("second/states"));
    let (old, new) = (state_name(STATE), state_name(STATE + 10));
    fs::remove_file(tables.join(old)).unwrap();
    fs::write(tables.join(&new), b"another").unwrap();
    // A crash left that before it was named.
    fs::write(states.join(&new), b"a stale").unwrap();
    {
        let catalog = Database::open(dir.path().join("catalog")).unwrap();
        let write = catalog.begin_write().unwrap();
        {
            let mut numbers = write.open_table(NUMBERS).unwrap();
            numbers.insert("checkpoint", STATE + 10).unwrap();
            numbers.insert("checkpoint bytes", 7).unwrap();
        }
        write.commit().unwrap();
    }
    expected.state.as_mut().unwrap().at = Number(STATE + 10);
    expected.state.as_mut().unwrap().len = 7;
    expected.bytes = b"another".to_vec();
    expected.records.drain(..10);
    for _ in 0..2 {
        let share = open(dir.path(), &None).unwrap();
        assert_eq!((known(&share), said(&share)), (expected.clone(), BTreeMap::new()));
    }
}

/// A copy of a state is damaged before the state is named: the other one counts.
#[test]
fn no_copy_of_a_state_is_believed_by_itself() {
    for elsewhere in [None, Some(Arc::new(MemoryStore::default()))] {
        for bad in ["tables", "second/states"] {
            if elsewhere.is_some() && bad == "tables" {
                continue;
            }
            let dir = filled(&elsewhere);
            let at = Number(50);
            let object = Object::Checkpoint(at);
            {
                let share = open(dir.path(), &elsewhere).unwrap();
                let rig = Rig::new(&share).unwrap();
                share.upload(rig.term, object, 0, b"the new ").unwrap();
                share.upload(rig.term, object, 8, b"state").unwrap();
                share.finish(rig.term, object, 13).unwrap();
                fs::write(dir.path().join(bad).join(state_name(50)), b"no such state").unwrap();
                share.save(rig.term, at, Number(20)).unwrap();
                assert_eq!(known(&share).bytes, b"the new state", "{bad}");
            }
            let share = open(dir.path(), &elsewhere).unwrap();
            assert_eq!(
                (&*known(&share).bytes, said(&share)),
                (&b"the new state"[..], BTreeMap::new())
            );
        }
    }
}

/// It was stored before a start, so the server has no sum of what came: copies that differ are
/// both refused, and the state of before stays.
#[test]
fn copies_that_contradict_each_other_are_refused() {
    let dir = filled(&None);
    let expected = known(&open(dir.path(), &None).unwrap());
    let object = Object::Checkpoint(Number(50));
    let term = {
        let share = open(dir.path(), &None).unwrap();
        let rig = Rig::new(&share).unwrap();
        share.upload(rig.term, object, 0, b"state").unwrap();
        share.finish(rig.term, object, 5).unwrap();
        rig.term
    };
    let path = dir.path().join("second/states").join(state_name(50));
    fs::write(&path, b"etats").unwrap();
    let share = open(dir.path(), &None).unwrap();
    let saved = share.save(term, Number(50), Number(20));
    assert!(saved.unwrap_err().to_string().contains("differ"));
    assert_eq!(known(&share), expected);
    fs::write(&path, b"state").unwrap();
    share.save(term, Number(50), Number(20)).unwrap();
    assert_eq!(known(&share).bytes, b"state");
}

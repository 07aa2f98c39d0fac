//! Every shared volume keeps the promises of the port: see `oblivio_testkit::share`.
use oblivio_share::{MemoryShare, StoredShare, Tables};
use oblivio_store::share::{
    AskNumber, ClientSession, HistoryEntry, LEASE, Number, Object, SealedAsk, ServerSpot,
    ServerTable, Share, ShareClock, ShareError,
};
use oblivio_store::{Held, MemoryStore, Objects, PutMode, Store};
use oblivio_testkit::eventually;
use oblivio_testkit::fault::{Fault, FaultPlan, Repeat};
use oblivio_testkit::rigs::{Skip, Tmpfs};
use oblivio_testkit::share::{
    FaultShare, LatencyShare, RecordShare, Rig, SLOT, Seen, ShareOpener, TestClock, When, ask_id,
    model, suites,
};
use oblivio_testkit::{Dice, FaultStore};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Opens the same volume each time.
fn shared(share: impl Share + 'static) -> ShareOpener {
    let share = Arc::new(share);
    Box::new(move || Box::new(Arc::clone(&share)))
}

fn memory(clock: ShareClock) -> ShareOpener {
    shared(MemoryShare::new(clock))
}

/// With small files, so that there are many.
fn stored(clock: ShareClock) -> ShareOpener {
    let dir = tempfile::tempdir().unwrap();
    Box::new(move || Box::new(open(dir.path(), clock.clone())))
}

fn open(dir: &Path, clock: ShareClock) -> StoredShare {
    StoredShare::with_segments(dir, clock, 300).unwrap()
}

/// With tables in a store somewhere else, in small parts.
fn open_elsewhere(dir: &Path, clock: ShareClock, store: Arc<dyn Store>) -> StoredShare {
    let tables = Tables { store, random: [7; 16], part_bytes: 100 };
    StoredShare::with_tables(dir, clock, tables).unwrap()
}

fn elsewhere(clock: ShareClock) -> ShareOpener {
    let (dir, store) = (tempfile::tempdir().unwrap(), Arc::new(MemoryStore::new()));
    Box::new(move || Box::new(open_elsewhere(dir.path(), clock.clone(), store.clone())))
}

#[test]
fn volumes_with_tables_elsewhere() {
    suites(&elsewhere);
    model(&elsewhere, 0..8);
}

#[test]
fn volumes_in_memory() {
    suites(&memory);
    model(&memory, 0..200);
}

#[test]
fn volumes_in_folders() {
    suites(&stored);
    model(&stored, 0..8);
}

#[test]
fn layers() {
    let recorded = |clock: ShareClock| shared(RecordShare::new(MemoryShare::new(clock)));
    suites(&recorded);
    suites(&|clock| shared(FaultShare::new(MemoryShare::new(clock))));
    suites(&|clock| {
        shared(LatencyShare::new(MemoryShare::new(clock), TestClock::default(), Duration::ZERO))
    });
    model(&recorded, 0..4);
}

#[test]
fn the_recorder_sees_lengths_and_places() {
    let share = RecordShare::new(MemoryShare::new(TestClock::default().clock()));
    let mut rig = Rig::new(&share).unwrap();
    rig.build(ServerTable(1), 2).unwrap();
    rig.switch(ServerTable(1), &[]).unwrap();
    share.take();
    let id = ask_id(&share, 1, 0);
    share.ask(&[SealedAsk { id, sealed: vec![0; 33] }]).unwrap();
    let spots = vec![ServerSpot { table: ServerTable(1), slot: 1 }];
    let (batch, _) = rig.show(&[(id, spots.clone())]).unwrap();
    rig.tell(batch, &[id]).unwrap();
    share.answers(ClientSession(1), AskNumber(0), Duration::ZERO).unwrap();
    share.notices(Number(0), Duration::ZERO).unwrap();
    assert!(share.append(rig.term, Number(99), &HistoryEntry::Note(vec![])).is_err());
    let seen = share.take();
    let fetches = vec![oblivio_store::share::Fetch { ask: id, spots }];
    let expected = [
        Seen::Ask(id, 33),
        Seen::Show { number: batch, intent: 8, own: vec![], fetches },
        Seen::Sums(batch),
        Seen::Tell { number: Number(2), batch, settle: 6, notice: 6, answers: vec![(id, 8)] },
        Seen::Other("durable"),
        Seen::Answers(ClientSession(1), vec![(id, 8)]),
        Seen::Notices(vec![(Number(2), 6)]),
        Seen::Note { number: Number(99), sealed: 0 },
        Seen::Failed,
    ];
    assert_eq!(seen, expected);
}

#[test]
fn a_lost_reply_changes_nothing() {
    for when in [When::Before, When::After] {
        let share = FaultShare::new(MemoryShare::new(TestClock::default().clock()));
        let rig = Rig::new(&share).unwrap();
        let note = HistoryEntry::Note(vec![1]);
        share.fail_in(0, when);
        let lost = share.append(rig.term, rig.next, &note);
        assert!(matches!(lost, Err(ShareError::Line(_))));
        share.append(rig.term, rig.next, &note).unwrap();
        assert_eq!(share.status().unwrap().next, Number(1));
    }
}

#[test]
fn a_quota_refuses_growth_before_anything_is_shown() {
    let share = MemoryShare::new(TestClock::default().clock());
    let mut rig = Rig::new(&share).unwrap();
    let ids = [ask_id(&share, 1, 0), ask_id(&share, 1, 1)];
    let asks = ids.map(|id| SealedAsk { id, sealed: vec![0; 2000] });
    share.ask(&asks).unwrap();
    let (batch, _) = rig.show(&[(ids[0], vec![])]).unwrap();
    share.set_quota(Some(1000)).unwrap();
    let status = share.status().unwrap();
    assert!(status.used_bytes > 1000 && status.quota_bytes == Some(1000));
    assert!(matches!(rig.show(&[(ids[1], vec![])]), Err(ShareError::Quota)));
    rig.next = share.status().unwrap().next;
    assert_eq!(rig.next, Number(1), "nothing was stored");
    let more = SealedAsk { id: ask_id(&share, 1, 2), sealed: vec![] };
    assert!(matches!(share.ask(&[more]), Err(ShareError::Quota)));
    rig.tell(batch, &[ids[0]]).unwrap();
    share.set_quota(None).unwrap();
    rig.show(&[(ids[1], vec![])]).unwrap();
}

/// Every prefix of the newest file of the history is one that a crash may leave: then the records
/// before the tear are there, and no other. The rest is set aside.
#[test]
fn a_torn_end_is_set_aside() {
    let clock = TestClock::default();
    let dir = tempfile::tempdir().unwrap();
    let ends = {
        let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
        let mut rig = Rig::new(&share).unwrap();
        let log = dir.path().join("log/0000000000000000");
        let mut ends = vec![std::fs::metadata(&log).unwrap().len()];
        for record in 0..4u8 {
            rig.add(&HistoryEntry::Note(vec![record; 5])).unwrap();
            ends.push(std::fs::metadata(&log).unwrap().len());
        }
        ends
    };
    let log = dir.path().join("log/0000000000000000");
    let whole = std::fs::read(&log).unwrap();
    for len in 0..=whole.len() {
        for garbage in [0, 40] {
            let mut torn = whole[..len].to_vec();
            torn.resize(len + garbage, 0xa5);
            if len < 16 && garbage > 0 {
                continue;
            }
            std::fs::write(&log, &torn).unwrap();
            without_copies(dir.path());
            let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
            let whole_records = ends.iter().filter(|end| **end <= len as u64).count();
            let expected = whole_records.saturating_sub(1) as u64;
            assert_eq!(share.status().unwrap().next, Number(expected), "{len} + {garbage}");
            let kept = std::fs::read(&log).unwrap();
            let aside = share.set_aside().map(|path| std::fs::read(path).unwrap());
            let all = [kept, aside.unwrap_or_default()].concat();
            assert_eq!(
                all.get(16..),
                Some(torn.get(16..).unwrap_or_default()),
                "{len} + {garbage}"
            );
        }
    }
}

/// Removes the second copies of a volume that nobody has: these tests are about the first ones.
fn without_copies(dir: &Path) {
    std::fs::remove_dir_all(dir.join("second")).unwrap();
}

/// All files of a folder, by their names.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let read = |entry: std::fs::DirEntry| {
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    };
    std::fs::read_dir(dir).unwrap().map(|it| read(it.unwrap())).collect()
}

/// One bit of the history is flipped, anywhere in its newest file, and the volume opened: no record
/// that can be read is gone, and no byte is.
#[test]
fn a_flipped_bit_destroys_nothing() {
    let clock = TestClock::default();
    let dir = tempfile::tempdir().unwrap();
    {
        let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
        let mut rig = Rig::new(&share).unwrap();
        for record in 0..12u8 {
            rig.add(&HistoryEntry::Note(vec![record; 9])).unwrap();
        }
    }
    let (log, catalog) = (dir.path().join("log"), dir.path().join("catalog"));
    let whole = files(&log);
    let (name, bytes) = whole.first_key_value().unwrap();
    let known = std::fs::read(&catalog).unwrap();
    let last = bytes.len() - (bytes.len() - 16) / 12;
    for bit in (0..bytes.len() * 8).step_by(7) {
        let mut flipped = bytes.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        std::fs::write(log.join(name), &flipped).unwrap();
        without_copies(dir.path());
        let opened = StoredShare::open(dir.path(), clock.clock());
        let opened =
            opened.map(|share| (share.status().unwrap().next, share.set_aside().is_some()));
        match opened {
            Err(error) => assert!(bit / 8 < last, "{bit}: {error}"),
            Ok(found) => {
                assert!(bit / 8 >= last, "{bit}");
                assert_eq!(found, (Number(11), true), "{bit}");
            }
        }
        let after = files(&log);
        assert_eq!(after.values().flatten().count(), bytes.len(), "{bit}: a byte is gone");
        assert_eq!(after.into_values().flatten().collect::<Vec<u8>>(), flipped, "{bit}");
        for name in files(&log).into_keys() {
            std::fs::remove_file(log.join(name)).unwrap();
        }
        std::fs::write(&catalog, &known).unwrap();
    }
}

/// Without its catalog a history belongs to nobody. A new catalog would make its tables rubbish.
#[test]
fn a_volume_without_its_catalog_is_refused() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    {
        let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
        let mut rig = Rig::new(&share).unwrap();
        rig.build(ServerTable(1), 2).unwrap();
        rig.switch(ServerTable(1), &[]).unwrap();
    }
    for lost in [None, Some(&b""[..])] {
        std::fs::remove_file(dir.path().join("catalog")).unwrap();
        lost.map_or(Ok(()), |bytes| std::fs::write(dir.path().join("catalog"), bytes)).unwrap();
        without_copies(dir.path());
        let opened = StoredShare::open(dir.path(), clock.clock());
        assert!(opened.err().unwrap().to_string().contains("catalog"));
        assert!(dir.path().join("tables/t-0000000000000001").exists());
    }
}

/// What no crash leaves is an error, and nothing is deleted.
#[test]
fn damage_is_an_error() {
    let clock = TestClock::default();
    let dir = tempfile::tempdir().unwrap();
    {
        let share = open(dir.path(), clock.clock());
        let mut rig = Rig::new(&share).unwrap();
        rig.build(ServerTable(1), 2).unwrap();
        rig.switch(ServerTable(1), &[]).unwrap();
        for record in 0..20u8 {
            rig.add(&HistoryEntry::Note(vec![record; 50])).unwrap();
        }
    }
    let mut logs: Vec<_> =
        std::fs::read_dir(dir.path().join("log")).unwrap().map(|it| it.unwrap().path()).collect();
    logs.sort();
    assert!(logs.len() > 3);
    let table = dir.path().join("tables/t-0000000000000001");
    let refused = || {
        without_copies(dir.path());
        let opened = StoredShare::open(dir.path(), clock.clock());
        assert!(matches!(opened, Err(ShareError::Store(_))), "{:?}", opened.err());
    };
    for path in [&logs[0], &logs[1], &table] {
        let whole = std::fs::read(path).unwrap();
        std::fs::write(path, &whole[..whole.len() - 1]).unwrap();
        refused();
        std::fs::remove_file(path).unwrap();
        refused();
        std::fs::write(path, &whole).unwrap();
    }
    let mut changed = std::fs::read(&logs[1]).unwrap();
    changed[40] ^= 1;
    std::fs::write(&logs[1], &changed).unwrap();
    refused();
    changed[40] ^= 1;
    std::fs::write(&logs[1], &changed).unwrap();
    assert_eq!(StoredShare::open(dir.path(), clock.clock()).unwrap().status().unwrap().next.0, 21);
}

#[test]
fn one_process_has_a_folder() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    let _first = open(dir.path(), clock.clock());
    let second = StoredShare::open(dir.path(), clock.clock());
    let busy = oblivio_store::StoreError::Busy.to_string();
    assert_eq!(second.err().unwrap().to_string(), busy);
}

/// Several threads append and wait at once: each finds its record durable, in few syncs.
#[test]
fn waits_are_shared() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
    let rig = Rig::new(&share).unwrap();
    std::thread::scope(|scope| {
        for number in 0..64 {
            let number = Number(number);
            share.append(rig.term, number, &HistoryEntry::Note(vec![0; 100])).unwrap();
            let (share, term) = (&share, rig.term);
            scope.spawn(move || share.durable(term, number).unwrap());
        }
    });
    assert_eq!(share.status().unwrap().next, Number(64));
}

/// A disk that fills up: asks are refused first, then tables. Nothing is lost, what was shown is
/// answered, and all goes on once there is room.
#[test]
#[ignore = "system: mounts a tmpfs"]
fn a_full_disk_is_an_error_and_no_damage() {
    let skipped = |why: &Skip| eprintln!("skipped: no tmpfs: {why}");
    let Ok(small) = Tmpfs::mount("100m").inspect_err(skipped) else { return };
    let (dir, clock) = (small.path().join("volume"), TestClock::default());
    let share = StoredShare::open(&dir, clock.clock()).unwrap();
    let mut rig = Rig::new(&share).unwrap();
    let id = ask_id(&share, 1, 0);
    share.ask(&[SealedAsk { id, sealed: vec![0; 100] }]).unwrap();
    let (batch, _) = rig.show(&[(id, vec![])]).unwrap();
    let fill = |name: &str, bytes: usize| {
        std::fs::write(small.path().join(name), vec![1; bytes]).unwrap();
    };
    fill("one", 40 << 20);
    let full = |done: Result<(), ShareError>| {
        assert!(
            matches!(done, Err(ShareError::Store(oblivio_store::StoreError::Full))),
            "{done:?}"
        );
    };
    full(share.ask(&[SealedAsk { id: ask_id(&share, 1, 1), sealed: vec![] }]));
    rig.build(ServerTable(1), 4).unwrap();
    fill("two", 54 << 20);
    full(rig.build(ServerTable(2), 4).map(drop));
    full(rig.add(&HistoryEntry::Note(vec![0; 100])).map(drop));
    std::fs::remove_file(small.path().join("two")).unwrap();
    rig.next = share.status().unwrap().next;
    rig.tell(batch, &[id]).unwrap();
    rig.switch(ServerTable(1), &[]).unwrap();
    std::fs::remove_file(small.path().join("one")).unwrap();
    rig.build(ServerTable(2), 4).unwrap();
    share.ask(&[SealedAsk { id: ask_id(&share, 1, 1), sealed: vec![] }]).unwrap();
    drop(share);
    let share = StoredShare::open(&dir, clock.clock()).unwrap();
    assert_eq!(share.status().unwrap().next, Number(3));
}

#[test]
fn pieces_go_at_a_start_and_tables_without_a_name_with_the_scribe() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    let files = || {
        let names = std::fs::read_dir(dir.path().join("tables")).unwrap();
        let mut names: Vec<_> =
            names.map(|it| it.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    };
    let term = {
        let share = open(dir.path(), clock.clock());
        let rig = Rig::new(&share).unwrap();
        rig.build(ServerTable(1), 2).unwrap();
        share.upload(rig.term, Object::Table(ServerTable(2)), 0, &[0; 48]).unwrap();
        rig.term
    };
    assert_eq!(files(), ["t-0000000000000001", "t-0000000000000002.part"]);
    let share = open(dir.path(), clock.clock());
    assert_eq!(files(), ["t-0000000000000001"]);
    let more = share.upload(term, Object::Table(ServerTable(2)), 48, &[0; 48]);
    assert!(matches!(more, Err(ShareError::NoObject(_))), "a part is never continued");
    let mut rig = Rig { share: &share, term, next: Number(0) };
    rig.build(ServerTable(3), 1).unwrap();
    rig.switch(ServerTable(1), &[]).unwrap();
    share.release(term).unwrap();
    share.claim(term).unwrap();
    assert_eq!(files(), ["t-0000000000000001"], "nothing names the other one");
}

/// The history is durable before the catalog. What the catalog lacks after a crash is done again.
#[test]
fn a_switch_that_the_catalog_lacks_is_made_at_the_next_start() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    let (catalog, before) = (dir.path().join("catalog"), dir.path().join("before"));
    let (term, bytes) = {
        let share = open(dir.path(), clock.clock());
        let mut rig = Rig::new(&share).unwrap();
        rig.build(ServerTable(1), 2).unwrap();
        rig.switch(ServerTable(1), &[]).unwrap();
        (rig.term, rig.build(ServerTable(2), 2).unwrap())
    };
    std::fs::copy(&catalog, &before).unwrap();
    {
        let share = open(dir.path(), clock.clock());
        let mut rig = Rig { share: &share, term, next: Number(1) };
        rig.switch(ServerTable(2), &[]).unwrap();
    }
    for _ in 0..2 {
        std::fs::copy(&before, &catalog).unwrap();
        let share = open(dir.path(), clock.clock());
        assert_eq!(share.status().unwrap().tables, 2);
        let spots = [0, 1].map(|slot| ServerSpot { table: ServerTable(2), slot });
        assert_eq!(share.slots(term, Number(2), &spots).unwrap(), bytes);
    }
}

/// The table in use of a volume whose newest switch may not have been acknowledged.
fn in_use(rig: &Rig<'_>, acknowledged: u64) -> oblivio_store::share::Result<u64> {
    for table in [acknowledged + 1, acknowledged] {
        let spots: Vec<ServerSpot> =
            (0..5).map(|slot| ServerSpot { table: ServerTable(table), slot }).collect();
        match rig.share.slots(rig.term, Number(0), &spots) {
            Err(ShareError::NoObject(_)) => {}
            found => {
                assert_eq!(found?, Dice::new(table).bytes(5 * SLOT), "table {table}");
                return Ok(table);
            }
        }
    }
    assert_eq!(acknowledged, 0, "table {acknowledged} is lost");
    Ok(0)
}

/// Four tables, each in the place of the one before it, and a checkpoint after each. `done` is the
/// newest whose switch was acknowledged.
fn build_tables(share: &dyn Share, done: &mut u64) -> oblivio_store::share::Result<()> {
    let mut rig = Rig::new(share)?;
    *done = in_use(&rig, *done)?;
    while *done < 4 {
        let next = *done + 1;
        rig.build(ServerTable(next), 5)?;
        let replaced: Vec<ServerTable> =
            (*done > 0).then_some(ServerTable(*done)).into_iter().collect();
        rig.switch(ServerTable(next), &replaced)?;
        *done = next;
        assert_eq!(in_use(&rig, next)?, next);
        rig.save(rig.next, rig.next, &[next as u8; 250])?;
    }
    Ok(())
}

/// The store somewhere else has exactly the parts of what is in use, once deletions are through.
fn only_what_is_used_is_left(store: &MemoryStore) {
    let kinds = || -> String {
        store.list().unwrap().iter().filter_map(|(name, _)| name.chars().next()).collect()
    };
    // A checkpoint of 250 bytes, whose owner is named, and a table of 240, in parts of 100.
    eventually("what is not used goes", || (kinds() == "cccottt").then_some(()));
}

/// The process ends at each operation of the store of tables, which took effect or not.
#[test]
fn a_crash_at_any_operation_of_the_store_of_tables_loses_nothing() {
    let mut crashes = 0;
    for when in [oblivio_testkit::fault::When::Before, oblivio_testkit::fault::When::After] {
        for at in 0.. {
            let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
            let (store, plan) = (Arc::new(MemoryStore::new()), FaultPlan::new());
            plan.fail_at(at, Fault { when, repeat: Repeat::FromThenOn, ..Fault::once() });
            let faulty = Arc::new(FaultStore::new(Arc::clone(&store), plan.clone()));
            let tables = Tables { store: faulty, random: [7; 16], part_bytes: 100 };
            let mut done = 0;
            let opened = StoredShare::with_tables(dir.path(), clock.clock(), tables);
            let ended = opened.and_then(|share| build_tables(&share, &mut done));
            let fired = plan.fired() > 0;
            assert!(ended.is_ok() || fired, "{ended:?}");
            // Nothing of it reaches the store any more.
            let share = open_elsewhere(dir.path(), clock.clock(), store.clone());
            clock.pass(LEASE);
            build_tables(&share, &mut done).unwrap();
            only_what_is_used_is_left(&store);
            if !fired {
                break;
            }
            crashes += 1;
        }
    }
    eprintln!("{crashes} crashes");
    assert!(crashes > 60, "{crashes}");
}

/// The store of tables is away for a while: calls fail, and the same calls succeed later.
#[test]
fn an_outage_of_the_store_of_tables_is_an_error_and_no_loss() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    let (store, plan) = (Arc::new(MemoryStore::new()), FaultPlan::new());
    let faulty = Arc::new(FaultStore::new(Arc::clone(&store), plan.clone()));
    let tables = Tables { store: faulty, random: [7; 16], part_bytes: 100 };
    let share = StoredShare::with_tables(dir.path(), clock.clock(), tables).unwrap();
    let mut rig = Rig::new(&share).unwrap();
    let away = || plan.fail_in(0, Fault { repeat: Repeat::FromThenOn, ..Fault::once() });
    let object = Object::Table(ServerTable(1));
    let bytes = Dice::new(1).bytes(5 * SLOT);
    away();
    let failed = share.upload(rig.term, object, 0, &bytes);
    assert!(matches!(failed, Err(ShareError::Store(_))), "{failed:?}");
    plan.clear();
    share.upload(rig.term, object, 0, &bytes).unwrap();
    away();
    assert!(share.finish(rig.term, object, bytes.len() as u64).is_err());
    plan.clear();
    share.finish(rig.term, object, bytes.len() as u64).unwrap();
    rig.switch(ServerTable(1), &[]).unwrap();
    let id = ask_id(&share, 1, 0);
    share.ask(&[SealedAsk { id, sealed: vec![0; 9] }]).unwrap();
    away();
    let spots = vec![ServerSpot { table: ServerTable(1), slot: 2 }];
    assert!(matches!(rig.show(&[(id, spots.clone())]), Err(ShareError::Store(_))));
    // What needs no table goes on: the batch is in the history.
    assert_eq!(share.status().unwrap().next, Number(2));
    plan.clear();
    let (batch, sums) = rig.show(&[(id, spots)]).unwrap();
    assert_eq!(sums, bytes[2 * SLOT..3 * SLOT]);
    rig.tell(batch, &[id]).unwrap();
}

/// A scribe whose first piece was never acknowledged dies; the next one begins the same table anew.
#[test]
fn another_first_piece_begins_a_table_anew() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    let (store, plan) = (Arc::new(MemoryStore::new()), FaultPlan::new());
    let faulty = Arc::new(FaultStore::new(Arc::clone(&store), plan.clone()));
    let tables = Tables { store: faulty, random: [7; 16], part_bytes: 100 };
    let share = StoredShare::with_tables(dir.path(), clock.clock(), tables).unwrap();
    let rig = Rig::new(&share).unwrap();
    plan.fail_in(0, Fault::once());
    share.upload(rig.term, Object::Table(ServerTable(1)), 0, &[9; 5 * SLOT]).unwrap_err();
    let mut done = 0;
    clock.pass(LEASE);
    build_tables(&share, &mut done).unwrap();
    only_what_is_used_is_left(&store);
}

/// A volume's tables stay where they began, and the store stays that of one volume.
#[test]
fn tables_elsewhere_are_never_mistaken() {
    let (here, there) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let clock = TestClock::default();
    let store = Arc::new(MemoryStore::new());
    let tables = |random| Tables { store: store.clone(), random, part_bytes: 100 };
    let refused = |dir: &Path, random: [u8; 16]| {
        let opened = StoredShare::with_tables(dir, clock.clock(), tables(random));
        opened.map(drop).unwrap_err().to_string()
    };
    build_tables(&StoredShare::open(here.path(), clock.clock()).unwrap(), &mut 0).unwrap();
    assert!(refused(here.path(), [1; 16]).contains("without --tables"));
    {
        let share = open_elsewhere(there.path(), clock.clock(), store.clone());
        build_tables(&share, &mut 0).unwrap();
        only_what_is_used_is_left(&store);
    }
    let other = tempfile::tempdir().unwrap();
    assert!(refused(other.path(), [2; 16]).contains("another server"));
    // Without the store, a volume can be looked after and not used.
    {
        let share = StoredShare::open(there.path(), clock.clock()).unwrap();
        clock.pass(LEASE);
        assert!(share.lacks_tables() && share.status().unwrap().tables == 1);
        let rig = Rig::new(&share).unwrap();
        let spot = ServerSpot { table: ServerTable(4), slot: 0 };
        let error = share.slots(rig.term, Number(0), &[spot]).unwrap_err().to_string();
        assert!(error.contains("--tables"), "{error}");
    }
    // A store that lacks a part of a table in use is refused, and nothing is deleted from it.
    let all = store.list().unwrap();
    let part = all.iter().find(|(name, _)| name.starts_with("t-")).unwrap();
    store.delete(&[&part.0]).unwrap();
    store.put("t-9-9-9-9", b"left", PutMode::IfAbsent).unwrap();
    assert!(refused(there.path(), [7; 16]).contains("lacks a part"));
    assert_eq!(store.list().unwrap().len(), all.len());
}

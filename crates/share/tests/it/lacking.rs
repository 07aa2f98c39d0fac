//! A volume of a server lacks something: it is named, the others are served, and it is served
//! without that if its administrator says so.

use super::server::{Served, once_free};
use oblivio_share::{Home, MissingParts, RemoteShare, Server, StoredShare};
use oblivio_store::share::{HistoryEntry, Number, ServerSpot, ServerTable, Share, ShareError};
use oblivio_testkit::share::{Rig, SLOT, TestClock};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A volume with two tables, of whose 24 records a state has the first 14, in files of a few.
fn filled(dir: &Path, clock: &TestClock) -> Vec<Vec<u8>> {
    let share = StoredShare::with_segments(dir, clock.clock(), 300).unwrap();
    let mut rig = Rig::new(&share).unwrap();
    let mut tables = Vec::new();
    for table in [ServerTable(1), ServerTable(2)] {
        tables.push(rig.build(table, 4).unwrap());
        rig.switch(table, &[]).unwrap();
    }
    for note in 0..22u8 {
        if note == 12 {
            rig.save(Number(14), Number(2), b"a state").unwrap();
        }
        rig.add(&HistoryEntry::Note(vec![note; 50])).unwrap();
    }
    tables
}

fn files_in(dir: &Path) -> Vec<PathBuf> {
    let mut found: Vec<_> = fs::read_dir(dir).unwrap().map(|it| it.unwrap().path()).collect();
    found.sort();
    found
}

fn refused(dir: &Path, clock: &TestClock) -> String {
    StoredShare::open(dir, clock.clock()).map(drop).unwrap_err().to_string()
}

fn accepted(dir: &Path, clock: &TestClock) -> oblivio_store::share::Result<StoredShare> {
    StoredShare::opened(dir, clock.clock(), None, MissingParts::Accepted)
}

fn slots(share: &StoredShare, table: u64) -> Vec<u8> {
    let rig = Rig::new(share).unwrap();
    let spots: Vec<_> = (0..4).map(|slot| ServerSpot { table: ServerTable(table), slot }).collect();
    share.slots(rig.term, Number(0), &spots).unwrap()
}

/// What is lost of a table reads as zeros, which clients find; the rest is as it was.
#[test]
fn a_table_that_is_missing_or_cut_costs_its_slots() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    let tables = filled(dir.path(), &clock);
    let path = dir.path().join("tables/t-0000000000000001");
    for (left, whole) in [(None, 0), (Some(2 * SLOT + 5), 2), (Some(0), 0)] {
        match left {
            None => fs::remove_file(&path).unwrap(),
            Some(left) => fs::write(&path, &tables[0][..left]).unwrap(),
        }
        assert!(refused(dir.path(), &clock).contains("tables/t-0000000000000001"));
        let share = accepted(dir.path(), &clock).unwrap();
        clock.pass(oblivio_store::share::LEASE);
        assert!(share.lacks().len() == 1, "{:?}", share.lacks());
        let found = slots(&share, 1);
        assert_eq!(found[..whole * SLOT], tables[0][..whole * SLOT]);
        assert!(found[whole * SLOT..].iter().all(|byte| *byte == 0));
        clock.pass(oblivio_store::share::LEASE);
        assert_eq!(slots(&share, 2), tables[1]);
    }
    fs::write(&path, &tables[0]).unwrap();
    let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
    clock.pass(oblivio_store::share::LEASE);
    assert_eq!(slots(&share, 1), tables[0]);
}

/// Records before the clients' newest state can be gone without; those after it cannot, if their
/// second copy is gone as well.
#[test]
fn a_file_of_the_history_that_is_missing_or_cut_costs_answers_or_the_volume() {
    let (dir, clock) = (tempfile::tempdir().unwrap(), TestClock::default());
    filled(dir.path(), &clock);
    let files = files_in(&dir.path().join("log"));
    let first_of =
        |path: &Path| u64::from_str_radix(path.file_name().unwrap().to_str().unwrap(), 16).unwrap();
    let catalog = fs::read(dir.path().join("catalog")).unwrap();
    let (mut spared, mut needed) = (0, 0);
    for at in 0..files.len() - 1 {
        let (path, end) = (&files[at], first_of(&files[at + 1]));
        let whole = fs::read(path).unwrap();
        let mut changed = whole.clone();
        changed[60] ^= 1;
        for damage in [None, Some(&whole[..whole.len() - 1]), Some(&changed[..])] {
            match damage {
                None => fs::remove_file(path).unwrap(),
                Some(left) => fs::write(path, left).unwrap(),
            }
            fs::remove_dir_all(dir.path().join("second")).unwrap();
            match StoredShare::open(dir.path(), clock.clock()) {
                Ok(share) => {
                    assert!(first_of(path) < 14, "a record is lost that the state lacks");
                    let lost = end > 2 && share.status().unwrap().first > Number(2);
                    assert_eq!(share.lacks().len(), usize::from(lost), "{:?}", share.lacks());
                    assert_eq!(share.status().unwrap().next, Number(24));
                    assert!(share.status().unwrap().first <= Number(14));
                    drop(share);
                    // From now on nobody asks for it.
                    let share = StoredShare::open(dir.path(), clock.clock()).unwrap();
                    assert!(share.lacks().is_empty(), "{:?}", share.lacks());
                    spared += 1;
                }
                Err(error) => {
                    assert!(end > 14, "{error}");
                    assert!(error.to_string().contains("history"), "{error}");
                    needed += 1;
                }
            }
            for other in files_in(&dir.path().join("log")) {
                assert!(files.contains(&other), "{}", other.display());
            }
            fs::write(path, &whole).unwrap();
            fs::write(dir.path().join("catalog"), &catalog).unwrap();
        }
    }
    assert!(spared >= 3 && needed >= 3, "{spared} {needed}");
}

/// The server starts though its only volume lacks something, and says what and to whom.
#[test]
fn the_server_starts_and_says_what_is_missing() {
    let mut served = Served::new();
    let (token, path) = {
        let client = served.client("one");
        let mut rig = Rig::new(&client).unwrap();
        rig.build(ServerTable(7), 4).unwrap();
        rig.switch(ServerTable(7), &[]).unwrap();
        let path = served.dir.path().join("volumes/team/tables/t-0000000000000007");
        (served.token("two"), path)
    };
    served.end();
    fs::remove_dir_all(served.dir.path().join("volumes/other")).unwrap();
    fs::remove_file(path).unwrap();
    let start = |damaged: &[&str]| {
        let damaged: BTreeSet<String> = damaged.iter().map(|&name| name.into()).collect();
        let (clock, volumes) = (TestClock::default().clock(), ["team".into()]);
        let home = || Home { tables: None, damaged: damaged.clone() };
        let start = || Server::within_home(served.dir.path(), &volumes, clock.clone(), home());
        once_free(start).unwrap()
    };
    let client = |server: &Server| {
        let door = server.door();
        let dial = move || {
            let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
            door.admit(theirs).map(|()| ours)
        };
        let patience = oblivio_share::LinePatience::default();
        RemoteShare::over(token.clone(), patience, Box::new(dial)).unwrap()
    };
    let end = |server: Server| {
        server.ending().end();
        server.wait().unwrap();
    };
    let server = start(&[]);
    let findings = server.findings();
    let named = |it: &str| it.contains("t-0000000000000007") && it.contains("--damaged team");
    assert!(findings.len() == 1 && named(&findings[0]), "{findings:?}");
    let told = client(&server).status().unwrap_err();
    let says = told.to_string().contains("t-0000000000000007");
    assert!(matches!(told, ShareError::Denied(_)) && says, "{told}");
    end(server);
    let server = start(&["team"]);
    let findings = server.findings();
    assert!(findings.len() == 1 && findings[0].contains("without this"), "{findings:?}");
    assert_eq!(client(&server).status().unwrap().tables, 1);
    end(server);
}

//! Four clients at once on few names, of which one is killed.

use super::common::{NODE, assert_sound, client};
use oblivio_privatefs::Session;
use oblivio_privatefs::testing::Memory;
use oblivio_privatefs::{Error, FileKind, Owner, PrivateFs, ROOT, RenameMode};
use oblivio_testkit::SplitMix64;
use std::sync::atomic::{AtomicU64, Ordering};

const EACH: u64 = 2500;

fn one(fs: &PrivateFs, dirs: &[Owner], rng: &mut SplitMix64) -> Result<(), Error> {
    let mut place = || {
        let dir = dirs[rng.below(dirs.len() as u64) as usize];
        (dir, vec![b'a' + rng.below(8) as u8; 1 + 100 * rng.below(2) as usize])
    };
    let ((from, name), (to, new)) = (place(), place());
    match rng.below(10) {
        0 | 1 => {
            let file = fs.create(from, &name, NODE)?.id;
            let written = fs.write(file, 0, &name);
            written.and(fs.close(file))
        }
        2 => fs.mkdir(from, &name, NODE).map(drop),
        3 | 4 => fs.unlink(from, &name),
        5 => fs.rmdir(from, &name),
        6 => {
            let file = fs.lookup(from, &name)?;
            fs.link(file.id, to, &new).map(drop)
        }
        7 => fs.rename((from, &name), (to, &new), RenameMode::Exchange),
        8 => fs.rename((from, &name), (to, &new), RenameMode::NoReplace),
        _ => fs.rename((from, &name), (to, &new), RenameMode::Replace),
    }
}

#[test]
fn racing_clients_leave_a_sound_file_system() {
    // Small blocks: buckets overflow and split.
    let memory = Memory::new(1024);
    let first = client(&memory, 10, false);
    let mut dirs = vec![ROOT];
    for name in [b"one", b"two"] {
        dirs.push(first.fs.mkdir(ROOT, name, NODE).unwrap().id);
    }
    let done = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for number in 1..=4u8 {
            let (memory, dirs, done) = (&memory, &dirs, &done);
            scope.spawn(move || {
                let by = client(memory, number, number == 3);
                if number == 4 {
                    by.line.die_after(4000);
                }
                let mut rng = SplitMix64::new(number.into());
                for _ in 0..EACH {
                    match one(&by.fs, dirs, &mut rng) {
                        Ok(()) => drop(done.fetch_add(1, Ordering::Relaxed)),
                        Err(Error::Below(_)) if number == 4 => {
                            memory.end(Session(number.into()));
                            return;
                        }
                        Err(
                            Error::NotFound
                            | Error::Exists
                            | Error::NotEmpty
                            | Error::IsADirectory
                            | Error::NotADirectory
                            | Error::Stale
                            | Error::Invalid(_),
                        ) => {}
                        Err(error) => panic!("client {number}: {error:?}"),
                    }
                }
                assert_ne!(number, 4, "it was to die");
            });
        }
    });
    assert!(done.into_inner() > 2000);
    let last = client(&memory, 5, false);
    let found = last.fs.check().unwrap();
    let sound = found.problems.iter().all(oblivio_privatefs::Problem::is_left_over);
    assert!(sound, "{:?}", found.problems);
    last.fs.repair(&found).unwrap();
    assert_sound(&memory, 6);
}

#[test]
fn clients_that_fill_one_directory_lose_no_name() {
    let memory = Memory::new(1024);
    client(&memory, 10, false);
    std::thread::scope(|scope| {
        for number in 1..=4u8 {
            let memory = &memory;
            scope.spawn(move || {
                let by = client(memory, number, false);
                for file in 0..400 {
                    let name = format!("file {file} of {number}");
                    by.fs.mknod(ROOT, name.as_bytes(), FileKind::File, 0, NODE).unwrap();
                }
            });
        }
    });
    let last = client(&memory, 5, false);
    assert_eq!(last.fs.list(ROOT, 0, usize::MAX).unwrap().len(), 1600);
    assert_sound(&memory, 6);
}

//! Logs that a store exchanges: while they are read, or for another one on the same commit.

use super::holes::Computer;
use super::oracle::BLOCKS;
use super::store::{Event, Hostile, put_over};
use super::volumes::{Engine, MEMORY, content, made, other_volume, passphrase, write};
use oblivio_store::{MemoryStore, Store};
use oblivio_volume::{BlockSpace, Error, Keeper, OpenOptions, Volume};
use std::sync::Arc;

/// The outcomes of openings.
#[derive(Debug, Default)]
pub struct Found {
    pub newest: u64,
    pub refused: u64,
}

/// Opens a volume, writes a number to a block and syncs; then the session dies.
fn write_and_die(store: Arc<MemoryStore>, computer: &Computer, state: u64) {
    let mut volume = open_on(store, computer).expect("sound");
    volume.reserve(BLOCKS + 1).expect("room");
    volume.access(vec![write(1, state)]).expect("sound");
    volume.commit().expect("sound");
}

fn open_on(store: Arc<dyn Store>, computer: &Computer) -> Result<Volume, Error> {
    let keeper: Box<dyn Keeper> = Box::new(computer.clone());
    let open = OpenOptions { memory_bytes: MEMORY, keeper: Some(keeper), ..OpenOptions::default() };
    Volume::open(store, &passphrase(), open)
}

/// At each operation of an opening, restores the log from before the last sync.
pub fn logs_that_change() -> Found {
    let mut found = Found::default();
    for at in 1..80 {
        let (now, computer) = (Arc::new(made(Engine::Sequential).snapshot()), Computer::new(None));
        write_and_die(now.clone(), &computer, 1);
        let before = now.snapshot();
        write_and_die(now.clone(), &computer, 2);
        let store = Hostile::new(now, &[before], other_volume(Engine::Sequential));
        store.plan(at, Event::PutBack("log"));
        // Another computer, which knows nothing.
        match open_on(Arc::new(store), &Computer::new(None)) {
            Ok(mut volume) => match content(&mut volume).expect("sound")[0].expect("whole") {
                2 => found.newest += 1,
                // The first reading did not see it either: nobody could know.
                1 if at < 12 => {}
                older => panic!("operation {at}: state {older} is taken for the newest"),
            },
            Err(Error::Tampered(_)) => found.refused += 1,
            Err(error) => panic!("operation {at}: {error}"),
        }
    }
    found
}

/// Hides a sync that was never acknowledged, makes another one, and then shows the first.
pub fn swapped_logs(engine: Engine) {
    let log = if engine == Engine::Sequential { "log" } else { "journal" };
    let (before, computer) = (made(engine).snapshot(), Computer::new(None));
    let first = Arc::new(before.snapshot());
    // The answer never comes, so this computer notes nothing of it.
    write_and_die(first.clone(), &Computer::new(None), 7);
    let second = Arc::new(before.snapshot());
    write_and_die(second.clone(), &computer, 8);
    put_over(&second, &first, log);
    match open_on(second, &computer) {
        Err(Error::RolledBack(_)) => {}
        Err(error) => panic!("{engine:?}: another error: {error}"),
        Ok(_) => panic!("{engine:?}: it is taken for the newest"),
    }
}

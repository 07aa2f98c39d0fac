//! Several clients of one shared volume in one process, over servers that work, die and lie.
#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "tests, of which long ones say what they did"
)]

mod crashes;
mod damaged;
mod disk;
mod elsewhere;
mod files;
mod flips;
mod forks;
mod headers;
mod hostile;
mod line;
mod model;
mod notices;
mod outages;
mod rows;
mod scribe;

use line::Line;
use oblivio_client::{Client, ClientOptions, HeadKeeper, Keyed, NewShared, Unremembered, create};
use oblivio_crypto::{KdfParams, Passphrase};
use oblivio_engine::Action;
use oblivio_engine::BlockId;
use oblivio_engine::pyramid::share::{Answer, Ask, Compare};
use oblivio_engine::pyramid::{Name, Operation};
use oblivio_share::{MemoryShare, StoredShare};
use oblivio_store::share::{LEASE, Share, ShareClock};
use oblivio_testkit::eventually;
use oblivio_testkit::share::TestClock;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

const BYTES: usize = 256;
const BLOCKS: u64 = 1 << 8;

/// Longer than anything takes that comes at all.
const LONG: Duration = Duration::from_secs(60);

fn clock() -> ShareClock {
    let begin = Instant::now();
    Arc::new(move || begin.elapsed())
}

/// The server of a folder, which was started anew: the lease of whoever was the scribe before has
/// ended, and later ones do not end.
fn started(dir: &Path) -> StoredShare {
    let clock = TestClock::default();
    // Calls that wait there have an earlier one for a moment.
    let share = eventually("the folder is free", || free(StoredShare::open(dir, clock.clock())));
    clock.pass(LEASE);
    share
}

/// A folder that another server has is waited for.
fn free<E: std::fmt::Display>(opened: Result<StoredShare, E>) -> Option<StoredShare> {
    opened.inspect_err(|error| assert!(error.to_string().contains("in use"), "{error}")).ok()
}

fn new() -> NewShared {
    let capacity_bytes = BLOCKS * BYTES as u64;
    NewShared { block_bytes: BYTES, capacity_bytes, kdf: KdfParams::TEST }
}

fn passphrase() -> Passphrase {
    Passphrase::new("correct horse")
}

/// A volume with its server.
struct World {
    line: Arc<Line>,
    keyed: Keyed,
}

impl World {
    fn over(share: Arc<dyn Share>) -> Self {
        let keyed = create(&*share, &new(), &passphrase()).unwrap();
        Self { line: Line::to(share), keyed }
    }

    fn in_memory() -> Self {
        Self::over(Arc::new(MemoryShare::new(clock())))
    }

    fn options() -> ClientOptions {
        ClientOptions { timeout: LONG, ..ClientOptions::default() }
    }

    /// A client with a line of its own.
    fn client(&self) -> (Client, Arc<Line>) {
        let line = Line::to(Arc::clone(&self.line) as Arc<dyn Share>);
        (self.client_over(&line, Self::options()), line)
    }

    fn client_over(&self, line: &Arc<Line>, options: ClientOptions) -> Client {
        self.knowing(line, options, Box::new(Unremembered::default())).unwrap()
    }

    fn knowing(
        &self,
        line: &Arc<Line>,
        options: ClientOptions,
        known: Box<dyn HeadKeeper>,
    ) -> oblivio_volume::Result<Client> {
        Client::open(Box::new(Arc::clone(line)), self.keyed.clone(), known, options)
    }
}

fn name(index: u64) -> Name {
    Name::from(BlockId(index))
}

fn read(index: u64) -> Ask {
    Ask::new(name(index), Operation { action: Action::Read, and_read: true })
}

fn write(index: u64, value: u64) -> Ask {
    let action = Action::Write(block(value));
    Ask::new(name(index), Operation { action, and_read: false })
}

fn block(value: u64) -> Vec<u8> {
    let mut block = vec![0; BYTES];
    block[..8].copy_from_slice(&value.to_le_bytes());
    block
}

fn value(answer: &Answer) -> u64 {
    let word = answer.content.as_ref().and_then(|content| content.first_chunk().copied());
    word.map_or(0, u64::from_le_bytes)
}

fn get(client: &Client, index: u64) -> u64 {
    value(&client.carry_out(&[read(index)]).unwrap()[0])
}

/// Adds one to a counter, while others do the same.
fn add_one(client: &Client, index: u64) -> oblivio_volume::Result<()> {
    loop {
        let before = client.carry_out(&[read(index)])?.remove(0);
        let compare = match &before.content {
            None => Compare::Absent,
            Some(content) => Compare::Bytes(0, content[..8].to_vec()),
        };
        let ask = write(index, value(&before) + 1).only_if(compare);
        if client.carry_out(&[ask])?[0].done {
            return Ok(());
        }
    }
}

#[test]
fn what_one_client_writes_another_one_reads() {
    let world = World::in_memory();
    let (one, _) = world.client();
    let (two, _) = world.client();
    assert!(one.carry_out(&[write(7, 42)]).unwrap()[0].done);
    assert_eq!(get(&two, 7), 42);
    assert_eq!(two.carry_out(&[read(8)]).unwrap()[0].content, None);
    two.close().unwrap();
    // If the scribe left, the other one goes on.
    assert_eq!(get(&one, 7), 42);
    one.close().unwrap();
    // And a later one finds it.
    let (three, _) = world.client();
    assert_eq!(get(&three, 7), 42);
    assert_eq!(three.blocks(), (1, BLOCKS));
    three.close().unwrap();
}

/// What docs/share.md says of the room at the server: the tables take no more, however much is
/// done, and the history ends.
#[test]
fn a_volume_takes_no_more_room_than_is_said() {
    let dir = tempfile::tempdir().unwrap();
    let share = StoredShare::with_segments(dir.path(), clock(), 10_000).unwrap();
    let world = World::over(Arc::new(share));
    let config = new().config().unwrap();
    let (client, _) = world.client();
    let taken = |folder: &str, first: &str| -> u64 {
        // A table may go while they are counted.
        let files = dir.path().join(folder).read_dir().unwrap().flatten();
        let named = files.filter(|file| file.file_name().to_string_lossy().starts_with(first));
        named.filter_map(|file| file.metadata().ok()).map(|file| file.len()).sum()
    };
    let (mut tables, mut history) = (0, 0);
    for round in 0..5 * BLOCKS {
        let asks: Vec<Ask> = (0..8).map(|at| write((round * 8 + at) % BLOCKS, round)).collect();
        assert!(client.carry_out(&asks).unwrap().iter().all(|answer| answer.done));
        (tables, history) = (tables.max(taken("tables", "t-")), history.max(taken("log", "")));
    }
    client.close().unwrap();
    let most = config.most_table_bytes();
    assert!((most / 2..=most).contains(&tables), "{tables} of {most}");
    // Each ask has about three times its block in the history, of which a sixth is kept.
    let all = 5 * BLOCKS * 8 * 3 * BYTES as u64;
    assert!(history < all / 5, "{history} of {all}");
}

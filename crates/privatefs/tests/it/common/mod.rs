//! What the tests share.

use oblivio_privatefs::Session;
use oblivio_privatefs::testing::{Memory, MemoryClient};
use oblivio_privatefs::{ClientEnvironment, FsOptions, NewNode, PrivateFs, Timestamp};
use oblivio_testkit::SplitMix64;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

pub mod work;

pub const BLOCK: usize = 4096;
const TIME: Timestamp = Timestamp { seconds: 7, nanos: 0 };
pub const NODE: NewNode = NewNode { mode: 0o644, uid: 1, gid: 1, mtime: TIME };

/// A clock that moves at each look, and chance from a seed.
pub fn environment(seed: u64) -> ClientEnvironment {
    // Seeds next to each other would give the same numbers, one later.
    let rng = Mutex::new(SplitMix64::new(SplitMix64::new(seed).next_u64()));
    let clock = AtomicI64::new(1_000);
    ClientEnvironment {
        now: Box::new(move || Timestamp {
            seconds: clock.fetch_add(1, Ordering::Relaxed),
            nanos: 5,
        }),
        random: Box::new(move || {
            let mut rng = rng.lock().unwrap();
            let (a, b) = (rng.next_u64(), rng.next_u64());
            ((u128::from(a) << 64) | u128::from(b)).to_le_bytes()
        }),
    }
}

pub struct Client {
    pub fs: Arc<PrivateFs>,
    pub line: Arc<MemoryClient>,
}

pub fn client(memory: &Arc<Memory>, number: u8, strict: bool) -> Client {
    let line = memory.client(Session(number.into()));
    let options = FsOptions { strict, ..FsOptions::default() };
    let environment = environment(u64::from(number));
    let fs = PrivateFs::new(line.clone(), environment, options).unwrap();
    fs.create_root(NewNode { mode: 0o755, uid: 0, gid: 0, mtime: TIME }).unwrap();
    Client { fs: Arc::new(fs), line }
}

/// A new client finds nothing wrong.
pub fn assert_sound(memory: &Arc<Memory>, number: u8) {
    let findings = client(memory, number, false).fs.check().unwrap();
    assert!(findings.complete);
    assert_eq!(findings.problems, []);
}

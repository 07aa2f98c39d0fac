//! The stored bytes of a volume, as files for a randomness battery: blocks of zeros, every level in
//! use. Not run by itself: `just sequential-stored`.

use super::{MemoryKeeper, create, open};
use oblivio_engine::{Action, BlockId, BlockOp};
use oblivio_store::{Held, MemoryStore, ReadAt};
use oblivio_testkit::campaign::scaled;
use oblivio_volume::BlockSpace;
use oblivio_volume::sequential::SequentialOptions;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

const BLOCK: usize = 4096;
/// Blocks written together.
const TOGETHER: u64 = 256;
/// Bytes written to a file at a time.
const PART: u64 = 4 << 20;
/// How often the whole volume is written, each time by another session.
const ROUNDS: u64 = 3;

#[test]
#[ignore = "long: it takes gigabytes of memory and of the disk"]
fn long_the_stored_bytes_of_a_volume_of_zeros() {
    let out = PathBuf::from(std::env::var("OBLIVIO_STORED").expect("a directory to write to"));
    let capacity = scaled(384) << 20;
    let (memory, store) = (MemoryKeeper::default(), Arc::new(MemoryStore::new()));
    let options = SequentialOptions { fill: true, ..SequentialOptions::new(BLOCK, capacity) };
    drop(create(store.clone(), options, &memory).expect("a volume"));
    for _ in 0..ROUNDS {
        let mut volume = open(store.clone(), &memory).expect("it opens");
        let blocks = volume.capacity_blocks();
        for first in (0..blocks).step_by(TOGETHER as usize) {
            let zeros = |id| BlockOp { id: BlockId(id), action: Action::Write(vec![0; BLOCK]) };
            let ops = (first..blocks.min(first + TOGETHER)).map(zeros).collect();
            volume.access(ops).expect("works");
        }
        volume.finish().expect("works");
    }
    for object in ["disk", "log", "state"] {
        let len = store.len(object).expect("memory").expect("every volume has it");
        let mut file = File::create(out.join(object)).expect("a new file");
        for offset in (0..len).step_by(PART as usize) {
            let mut buf = vec![0; PART.min(len - offset) as usize];
            store.read(&mut [ReadAt { object, offset, buf: &mut buf }]).expect("all is there");
            file.write_all(&buf).expect("there is space");
        }
        println!("{object}: {len} bytes");
    }
}

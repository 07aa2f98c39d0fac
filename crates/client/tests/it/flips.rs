//! A bit of a stored slot is another one for the time of one read: the client that is the scribe
//! finds it and reads the slot a second time, so nothing is lost, and nobody gets wrong data.
//! `just pyramid-flips` makes it longer.

use super::{Line, World, add_one, clock, get, write};
use oblivio_client::{Client, ClientOptions};
use oblivio_share::MemoryShare;
use oblivio_splitmix::SplitMix64;
use oblivio_store::share::{
    HistoryEntry, Number, Result, ServerSpot, Share, ShareCall, ShareReply,
};
use oblivio_testkit::campaign::{scaled, seed};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, RwLock};
use std::thread;

/// Blocks that the scribe's client uses.
const USED: u64 = 120;
/// The block that the other client counts in.
const COUNTER: u64 = 200;

/// What reads the slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reader {
    Asks,
    Merge,
}

/// A server that changes what it stores.
struct Flipper {
    memory: MemoryShare,
    inside: Mutex<Inside>,
    /// Held by what reads slots, alone while one is changed: the second look of another reader
    /// must not fall into the same change.
    reading: RwLock<()>,
}

struct Inside {
    rng: SplitMix64,
    /// The slots of each batch.
    shown: BTreeMap<Number, Vec<ServerSpot>>,
    /// What is to read the changed slot, after how many such reads; none if nothing is to come.
    left: Option<(Reader, u64)>,
    /// What read the slot that was changed.
    flipped: Option<Reader>,
}

impl Inside {
    /// The slot to change for this call, if it is the one.
    fn pick(&mut self, call: &ShareCall<'_>) -> Option<ServerSpot> {
        if let ShareCall::Append { number, entry: HistoryEntry::Show(show), .. } = call {
            let spots = show.fetches.iter().flat_map(|fetch| fetch.spots.clone());
            self.shown.insert(*number, spots.collect());
        }
        let (reader, spots) = match call {
            ShareCall::Sums { number, .. } => (Reader::Asks, self.shown.get(number)?.clone()),
            // A second look waits for no record. It must not fall into the next change.
            ShareCall::Slots { after: Number(0), .. } => return None,
            ShareCall::Slots { spots, .. } => (Reader::Merge, spots.to_vec()),
            _ => return None,
        };
        if spots.is_empty() {
            return None;
        }
        let (wanted, left) = self.left.filter(|(wanted, _)| *wanted == reader)?;
        self.left = left.checked_sub(1).map(|left| (wanted, left));
        (left == 0).then(|| {
            self.flipped = Some(reader);
            spots[self.rng.below(spots.len() as u64) as usize]
        })
    }
}

impl Flipper {
    fn new(seed: u64) -> Self {
        let rng = SplitMix64::new(seed);
        let inside = Inside { rng, shown: BTreeMap::new(), left: None, flipped: None };
        Self {
            memory: MemoryShare::new(clock()),
            inside: Mutex::new(inside),
            reading: RwLock::new(()),
        }
    }

    /// One of the next reads finds a changed bit.
    fn arm(&self, reader: Reader) {
        let mut inside = self.inside.lock().unwrap();
        inside.left = Some((reader, inside.rng.below(4)));
        inside.flipped = None;
    }

    fn change(&self, spot: ServerSpot, slot_bytes: usize, at: usize, bit: u8) {
        let at = spot.slot as usize * slot_bytes + at;
        assert!(self.memory.tamper(spot.table, |bytes| bytes[at] ^= bit), "the table is there");
    }
}

impl Share for Flipper {
    fn device(&self) -> u16 {
        self.memory.device()
    }

    fn call(&self, call: ShareCall<'_>) -> Result<ShareReply> {
        let mut inside = self.inside.lock().unwrap();
        let Some(spot) = inside.pick(&call) else {
            drop(inside);
            let reads = matches!(call, ShareCall::Sums { .. } | ShareCall::Slots { .. });
            let _reading = reads.then(|| self.reading.read().unwrap());
            return self.memory.call(call);
        };
        let slot_bytes = self.memory.parameters()?.expect("it is made").slot_bytes as usize;
        let (at, bit) = (inside.rng.below(slot_bytes as u64) as usize, 1 << inside.rng.below(8));
        drop(inside);
        let _alone = self.reading.write().unwrap();
        self.change(spot, slot_bytes, at, bit);
        let reply = self.memory.call(call);
        self.change(spot, slot_bytes, at, bit);
        reply
    }
}

/// What each block holds.
type Model = BTreeMap<u64, u64>;

/// Reads and writes until a changed slot was read. Returns whether one was.
fn work(client: &Client, model: &mut Model, rng: &mut SplitMix64, server: &Flipper) -> bool {
    for _ in 0..2000 {
        let index = rng.below(USED);
        let new = rng.below(u64::MAX);
        let known = model.entry(index).or_insert(0);
        if rng.below(2) == 0 {
            client.carry_out(&[write(index, new)]).unwrap();
            *known = new;
        } else {
            assert_eq!(get(client, index), *known, "block {index}");
        }
        if server.inside.lock().unwrap().flipped.is_some() {
            return true;
        }
    }
    false
}

#[test]
fn a_bit_that_changes_for_one_read_costs_nothing() {
    let (flips, seed) = (scaled(10), seed(16));
    let server = Arc::new(Flipper::new(seed));
    let world = World::over(Arc::clone(&server) as Arc<dyn Share>);
    let (mut model, mut rng) = (Model::new(), SplitMix64::new(seed + 1));
    let mut found = [0, 0];
    let line = Line::to(Arc::clone(&world.line) as Arc<dyn Share>);
    let other = world.client_over(&line, ClientOptions { scribe: false, ..World::options() });
    let (stop, counted) = (AtomicBool::new(false), Mutex::new(0));
    thread::scope(|scope| {
        let (client, _) = world.client();
        let counter = scope.spawn(|| {
            // It is never the scribe, and sees nothing of all this but waits.
            while !stop.load(Ordering::SeqCst) {
                add_one(&other, COUNTER).unwrap();
                *counted.lock().unwrap() += 1;
            }
        });
        for flip in 0..flips {
            let wanted = if flip % 2 == 0 { Reader::Asks } else { Reader::Merge };
            server.arm(wanted);
            assert!(work(&client, &mut model, &mut rng, &server), "a bit was changed");
            assert_eq!(server.inside.lock().unwrap().flipped, Some(wanted));
            found[usize::from(wanted == Reader::Merge)] += 1;
        }
        for (index, known) in &model {
            assert_eq!(get(&client, *index), *known, "block {index}");
        }
        assert_eq!(client.damaged(), [], "it was there at the second look");
        stop.store(true, Ordering::SeqCst);
        // Stays the scribe until the other one has its last answer: then nobody is left to give it.
        counter.join().unwrap();
        client.close().unwrap();
    });
    let [asks, merges] = found;
    println!("{flips} flips: {asks} in reads of asks and {merges} in those of merges found");
    let (client, _) = world.client();
    assert_eq!(get(&client, COUNTER), *counted.lock().unwrap(), "each was counted once");
}

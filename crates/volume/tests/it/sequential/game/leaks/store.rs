//! A store that does what a leaking volume would do at its store.

use super::super::watch::Watch;
use super::{Leak, Secret};
use oblivio_crypto::{Entropy, LANE_SLOTS_BYTES, SeededEntropy, digest};
use oblivio_engine::Extent;
use oblivio_engine::sequential::{Flush, LaneLayout};
use oblivio_store::{Held, Layer, Result, Slots, StoreAnswer, StoreCall, StoreError, WriteAt};
use oblivio_volume::Clock;
use oblivio_volume::sequential::SequentialOptions;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A write that waits to be passed on.
#[derive(Clone)]
struct Put {
    object: String,
    offset: u64,
    data: Vec<u8>,
    /// What the inspector sees there. A lane that really had it would have other room for it.
    shown: Vec<u8>,
}

impl Put {
    /// One that only the inspector sees: what stands there is not used.
    fn seen(object: &str, offset: u64, shown: Vec<u8>) -> Self {
        Self { object: object.to_owned(), offset, data: Vec::new(), shown }
    }

    fn write(&self, shown: bool) -> WriteAt<'_> {
        WriteAt::new(&self.object, self.offset, if shown { &self.shown } else { &self.data })
    }
}

/// A call that a leak makes.
enum Made {
    Writes(Vec<Put>),
    Sync(&'static str),
    Trim(&'static str, u64, u64),
    Extend(&'static str, u64),
}

/// What a leak keeps between its calls.
#[derive(Default)]
struct Memory {
    calls: u64,
    salt: [u8; 16],
    /// What was written last to each object, and what is held back.
    last: BTreeMap<String, Vec<u8>>,
    held: Vec<Put>,
}

/// A store with a leak.
pub struct Leaky {
    pub watch: Watch,
    leak: Leak,
    secret: Arc<Secret>,
    lane: LaneLayout,
    queue: u64,
    memory: Mutex<Memory>,
}

impl Leaky {
    pub fn new(
        watch: Watch,
        leak: Leak,
        secret: &Arc<Secret>,
        options: &SequentialOptions,
    ) -> Self {
        let lanes = options.lanes.expect("it has lanes");
        let lane = LaneLayout::new(&options.engine, lanes.share.into(), lanes.grace.into());
        let (lane, queue) = (lane.expect("sound parameters"), options.engine.queue_buckets);
        let mut memory = Memory::default();
        derived(&format!("session {}", secret.get().sessions), &mut memory.salt);
        let (secret, memory) = (Arc::clone(secret), Mutex::new(memory));
        Self { watch, leak, secret, lane, queue, memory }
    }

    /// Whether a lane is open now.
    fn open(&self) -> bool {
        self.secret.get().open
    }

    /// The writes of a call as a leaking volume makes them.
    fn leaked(&self, mut puts: Vec<Put>) -> Vec<Made> {
        let is_flush = puts.iter().any(|put| put.object == "disk");
        let open = self.open();
        let mut memory = self.memory.lock().unwrap_or_else(PoisonError::into_inner);
        memory.calls += 1;
        puts.retain(|put| !self.drops(put, open));
        if is_flush && self.leak == Leak::PlacesByOwnFlush && open {
            self.place_by_own(&mut puts);
        }
        for put in &mut puts {
            if put.object.starts_with("lane-1") {
                self.change(put, open, &mut memory);
            } else if self.leak == Leak::OneSealer && open && put.object == "log" {
                // The nonce of a seal counts those of the lane too.
                put.shown[16] ^= 1;
            }
            memory.last.insert(put.object.clone(), put.shown.clone());
        }
        if is_flush {
            let mut secret = self.secret.get();
            if open { secret.own += 1 } else { secret.missed += 1 }
        }
        self.arranged(puts, (is_flush, open), &mut memory)
    }

    /// Whether a lane's write is left out.
    fn drops(&self, put: &Put, open: bool) -> bool {
        let object = match self.leak {
            Leak::DiskOnlyIfOpen => "lane-1",
            Leak::LogOnlyIfOpen => "lane-1-log",
            Leak::StateOnlyIfOpen => "lane-1-state",
            Leak::TimesOnlyIfOpen => "lane-1-times",
            Leak::RecoverySkipsBurnt if self.secret.get().opening => "lane-1",
            _ => return false,
        };
        !open && put.object == object
    }

    /// The places are those of the lane's own flush.
    fn place_by_own(&self, puts: &mut [Put]) {
        let mut parts: Vec<&mut Put> =
            puts.iter_mut().filter(|put| put.object == "lane-1").collect();
        let is_at = |places: &[Extent]| {
            places.iter().zip(&parts).all(|(place, put)| place.offset == put.offset)
        };
        let outer = (0..10_000).map(Flush).find(|flush| is_at(&self.lane.writes(*flush)));
        let Some(Flush(outer)) = outer else { return };
        let own = Flush(outer.saturating_sub(self.secret.get().missed));
        for (put, place) in parts.iter_mut().zip(self.lane.writes(own)) {
            put.offset = place.offset;
        }
    }

    /// Other bytes of a lane.
    fn change(&self, put: &mut Put, open: bool, memory: &mut Memory) {
        let is_log = put.object == "lane-1-log";
        let data = &mut put.shown;
        match self.leak {
            Leak::BurntFromKey if !open => {
                derived(&format!("a key, {} {}", put.object, put.offset), data);
            }
            Leak::BurntFromCounter if !open => derived(&format!("{} calls", memory.calls), data),
            Leak::BurntTwice if !open => take_over(memory.last.get(&put.object), data),
            Leak::StateStays if !open && put.object.ends_with("state") => {
                take_over(memory.last.get(&put.object), data);
            }
            Leak::BurntStays if !open => {
                let mut before = vec![0; data.len()];
                let (object, offset) = (&put.object, put.offset);
                let read = oblivio_store::ReadAt { object, offset, buf: &mut before };
                if self.watch.disk.read(&mut [read]).is_ok() {
                    *data = before;
                }
            }
            Leak::ZerosBehind if open => data.iter_mut().rev().take(16).for_each(|it| *it = 0),
            Leak::SaltInTheOpen if open && is_log => data[..16].copy_from_slice(&memory.salt),
            Leak::CounterInTheOpen if open && is_log => {
                data[16..24].copy_from_slice(&memory.calls.to_le_bytes());
            }
            Leak::BitInTheOpen if open && is_log => data[30] |= 4,
            Leak::FewerOnes if open => {
                for at in (3..data.len()).step_by(4) {
                    data[at] &= data[at - 1];
                }
            }
            Leak::QuantaAsLongAsWaits if is_log && self.secret.get().waits() == 0 => {
                data.truncate(data.len() / 2);
            }
            _ => {}
        }
    }

    /// The calls in which the writes are made, and others with them.
    fn arranged(
        &self,
        mut puts: Vec<Put>,
        (is_flush, open): (bool, bool),
        memory: &mut Memory,
    ) -> Vec<Made> {
        let is_lanes = |put: &Put| put.object.starts_with("lane");
        let mut made = Vec::new();
        match self.leak {
            Leak::LaneFirst | Leak::LaneInItsOwnCall if is_flush && open => {
                let (lanes, own): (Vec<_>, Vec<_>) = puts.into_iter().partition(is_lanes);
                let calls = [lanes, own].map(Made::Writes);
                made.extend(calls);
                if self.leak == Leak::LaneInItsOwnCall {
                    made.reverse();
                }
                return made;
            }
            Leak::OtherOrder if is_flush && open => puts.sort_by_key(|put| !is_lanes(put)),
            Leak::NodeOnlyIfClosed if is_flush && !open => {
                // A leaf and the page behind it are one write: the page is left out.
                let page = self.lane.node(oblivio_engine::Level(0), Flush(0)).bytes as usize;
                for put in puts.iter_mut().filter(|put| put.object == "lane-1").skip(1).step_by(2) {
                    put.shown.truncate(put.shown.len() - page);
                }
            }
            Leak::QuantumLater if open => {
                let late = |put: &Put| put.object == "lane-1-log";
                let (late, now): (Vec<_>, Vec<_>) = puts.into_iter().partition(late);
                let held = std::mem::replace(&mut memory.held, late);
                puts = held.into_iter().chain(now).collect();
            }
            _ => {}
        }
        made.push(Made::Writes(puts));
        made.extend(self.added((is_flush, open), memory));
        made
    }

    /// Calls that only a leak makes.
    fn added(&self, (is_flush, open): (bool, bool), memory: &mut Memory) -> Option<Made> {
        let mut secret = self.secret.get();
        let again = || {
            let mut shown = vec![0; LANE_SLOTS_BYTES];
            derived(&format!("{:?} {}", memory.salt, memory.calls), &mut shown);
            Some(Made::Writes(vec![Put::seen("lane-1-state", 0, shown)]))
        };
        match self.leak {
            Leak::StateAtOwnTurn if is_flush && open && secret.own.is_multiple_of(self.queue) => {
                again()
            }
            Leak::SlotAtOnce if std::mem::take(&mut secret.given) => again(),
            Leak::FlagInHeader if open && memory.calls == 1 => {
                Some(Made::Writes(vec![Put::seen("header", 90, vec![1])]))
            }
            Leak::LongerLog if std::mem::take(&mut secret.given) => {
                let len = self.watch.len("lane-1-log").ok().flatten()?;
                Some(Made::Extend("lane-1-log", len + 4096))
            }
            Leak::SyncOfItsOwn if is_flush && open => Some(Made::Sync("lane-1")),
            Leak::Trims if is_flush && open => Some(Made::Trim("lane-1", 0, 64)),
            _ => None,
        }
    }

    fn make(&self, made: &Made) -> Result<()> {
        let below = &self.watch;
        match made {
            Made::Writes(puts) if puts.is_empty() => Ok(()),
            Made::Writes(puts) => {
                let shown: Vec<_> = puts.iter().map(|put| put.write(true)).collect();
                below.see(&StoreCall::Write(&shown));
                let real: Vec<_> = puts.iter().map(|put| put.write(false)).collect();
                below.disk.write(&real)
            }
            Made::Sync(object) => below.sync(&[object]),
            Made::Trim(object, offset, len) => below.discard(&[(object, *offset, *len)]),
            Made::Extend(object, len) => below.allocate(object, *len),
        }
    }

    /// Reads that a leaking volume would not have made, or that fail in it.
    fn read(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        let StoreCall::Read(reads) = call else { return call.on(&self.watch) };
        let (open, by_lane) = {
            let secret = self.secret.get();
            (secret.open, secret.by_lane)
        };
        let is_of = |end: &str| {
            reads.iter().all(|it| it.object.starts_with("lane") && it.object.ends_with(end))
        };
        let skipped = match self.leak {
            Leak::BurntNotRead => !open && reads.iter().all(|it| it.object == "lane-1"),
            Leak::TriedOnlyIfNeeded => !by_lane && is_of("-state"),
            _ => false,
        };
        if skipped {
            return call.on(&self.watch.disk);
        }
        if self.leak == Leak::ErrorCloses && open {
            let secret = self.secret.get();
            for read in reads.iter() {
                let (from, to) = (read.offset, read.offset + read.buf.len() as u64);
                let hit = |(object, at): &(&str, std::ops::Range<u64>)| {
                    *object == read.object && at.start < to && from < at.end
                };
                if secret.harmed.iter().any(hit) {
                    return Err(StoreError::io(read.object, io::Error::other("it is damaged")));
                }
            }
        }
        if self.leak == Leak::Slower && open && is_of("1") {
            self.watch.diary.clock.sleep(Duration::from_micros(50));
        }
        call.on(&self.watch)
    }
}

/// Fills bytes with what follows from words.
fn derived(from: &str, data: &mut [u8]) {
    let seed = digest(from.as_bytes());
    let seed = u64::from_le_bytes([0, 1, 2, 3, 4, 5, 6, 7].map(|at| seed[at]));
    SeededEntropy::new(seed).fill(data);
}

/// Puts what was written before in the place of what is to be written.
fn take_over(last: Option<&Vec<u8>>, data: &mut [u8]) {
    if let Some(last) = last.filter(|last| last.len() == data.len()) {
        data.copy_from_slice(last);
    }
}

impl Layer for Leaky {
    type Below = Watch;

    fn below(&self) -> &Self::Below {
        &self.watch
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        if self.leak == Leak::Honest {
            return call.on(&self.watch);
        }
        if let StoreCall::Write(writes) = call {
            let put = |it: &WriteAt<'_>| Put {
                object: it.object.to_owned(),
                offset: it.offset,
                data: it.data.to_vec(),
                shown: it.data.to_vec(),
            };
            let made = self.leaked(writes.iter().map(put).collect());
            return made.iter().try_for_each(|made| self.make(made)).map(StoreAnswer::from);
        }
        self.read(call)
    }
}

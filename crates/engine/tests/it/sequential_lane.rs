//! A lane's engine on its disk, beside an outer engine that goes on while the lane is shut.
//!
//! Within the grace nothing is lost, whatever turns the lane misses, and wherever a crash brings it
//! back to its last state. Beyond it, a read of a lost block says so, and nothing wrong is read.

use crate::sequential_run::{SEED, Write, config, enqueue};
use oblivio_engine::sequential::{
    Flush, LaneDisk, LaneLayout, LanePiece, Sequential, SequentialConfig, SequentialKeys,
};
use oblivio_engine::{BlockId, Carrier, EngineError, Read, Result, carry_out};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::{scaled, seed};
use std::collections::{BTreeMap, BTreeSet};

/// The lane's object, and the disk that its engine sees.
struct LaneCarrier<'a> {
    disk: &'a mut LaneDisk,
    stored: &'a mut [u8],
    outer: Flush,
    /// Pieces of what was ever written.
    seen: &'a mut BTreeSet<Vec<u8>>,
}

/// Puts parts of what a lane gets beside a flush to their places.
fn store(lane: &LaneLayout, outer: Flush, bytes: &[u8], stored: &mut [u8]) {
    let mut at = 0;
    for place in lane.writes(outer) {
        let end = at + place.bytes as usize;
        stored[place.offset as usize..place.end() as usize].copy_from_slice(&bytes[at..end]);
        at = end;
    }
}

impl Carrier for LaneCarrier<'_> {
    type Error = EngineError;

    fn read(&mut self, mut read: Read<'_>) -> Result<()> {
        for (extent, mut into) in read.parts() {
            for piece in self.disk.pieces(extent) {
                let bytes = match &piece {
                    LanePiece::Stored(place) => {
                        &self.stored[place.offset as usize..place.end() as usize]
                    }
                    LanePiece::Waiting(bytes) => bytes,
                    LanePiece::Nothing(bytes) => &vec![0; *bytes as usize],
                };
                let part = into.split_off_mut(..bytes.len()).expect("pieces fill the extent");
                part.copy_from_slice(bytes);
            }
            assert!(into.is_empty(), "pieces fill the extent");
        }
        Ok(())
    }

    fn write(&mut self, write: oblivio_engine::Write<'_>) -> Result<()> {
        let lane = self.disk.layout().clone();
        let mut bytes = vec![0xbb; lane.flush_bytes() as usize];
        let left = self.disk.begin_flush(self.outer, &write, &mut bytes);
        assert!(left.iter().all(|part| bytes[part.clone()].iter().all(|it| *it == 0xbb)));
        // Burnt bytes never come twice, so none of these may, after a crash either.
        for (piece, at) in bytes.chunks_exact(16).zip((0..).step_by(16)) {
            let is_left = left.iter().any(|part| part.start < at + 16 && at < part.end);
            assert!(is_left || self.seen.insert(piece.to_vec()), "it was written before");
        }
        store(&lane, self.outer, &bytes, self.stored);
        self.disk.end_flush();
        Ok(())
    }
}

/// What a lane's state has.
struct State {
    engine: Vec<u8>,
    disk: Vec<u8>,
}

struct Run {
    lane: LaneLayout,
    engine: Sequential,
    disk: LaneDisk,
    stored: Vec<u8>,
    /// All writes of the lane, by number.
    log: Vec<Write>,
    newest: BTreeMap<BlockId, Vec<u8>>,
    seen: BTreeSet<Vec<u8>>,
    state: Option<State>,
    outer: u64,
    sessions: u64,
}

impl Run {
    fn new(dice: &mut Dice) -> Self {
        let (bucket, queue) = (2 + dice.below(9), 1 + dice.below(3));
        let ratio = [40, 100, 250][dice.below(3) as usize];
        let config = config(10 + dice.below(300), bucket, queue, 2 + dice.below(4), ratio);
        // So that maps have several levels, and each node a page.
        let config = SequentialConfig { sector_bytes: [256, 512][dice.index(2)], ..config };
        let (share, grace) = (1 + dice.below(bucket), 1 + dice.below(20));
        let lane = LaneLayout::new(&config, share, grace).expect("sound parameters");
        let engine = lane.engine(SequentialKeys::from_seed(SEED, 0));
        let (disk, stored) = (LaneDisk::new(lane.clone()), vec![0xee; lane.bytes() as usize]);
        let (log, newest, seen) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        let outer = dice.below(50);
        Self { lane, engine, disk, stored, log, newest, seen, state: None, outer, sessions: 0 }
    }

    fn write(&mut self, write: Write) {
        enqueue(&mut self.engine, &mut self.newest, &write);
        self.log.push(write);
    }

    /// An outer flush without the lane.
    fn miss(&mut self) {
        let bytes = vec![0xcc; self.lane.flush_bytes() as usize];
        store(&self.lane, Flush(self.outer), &bytes, &mut self.stored);
        self.outer += 1;
    }

    /// An outer flush while the lane is open; it is missed until the turns fit.
    fn flush(&mut self, dice: &mut Dice) {
        if !self.disk.fits(Flush(self.outer)) {
            return self.miss();
        }
        while !self.engine.flush_due() {
            let block = BlockId(dice.below(self.lane.schedule().blocks()));
            let mut content = (self.log.len() as u64).to_le_bytes().to_vec();
            content.resize(16, 0xa5);
            self.write(match dice.below(10) {
                0 => None,
                1 => Some((block, None)),
                _ => Some((block, Some(content))),
            });
        }
        let mut flushing = self.engine.begin_flush().expect("it is due");
        let Self { disk, stored, outer, seen, .. } = self;
        let mut carrier = LaneCarrier { disk, stored, outer: Flush(*outer), seen };
        carry_out(&mut flushing, &mut self.engine, &mut carrier).expect("nothing fails");
        self.outer += 1;
        let flushes = self.engine.flushes().0;
        if flushes.is_multiple_of(self.lane.schedule().queue_buckets()) {
            self.keep();
        }
    }

    fn keep(&mut self) {
        let (engine, disk) = (self.engine.state().expect("no flush"), self.disk.state());
        assert_eq!(disk.len(), self.lane.disk_state_bytes());
        self.state = Some(State { engine, disk });
    }

    /// The lane is opened again from its state. All writes are in its log.
    fn reopen(&mut self) {
        let Some(State { engine, disk, .. }) = &self.state else { return };
        self.sessions += 1;
        let keys = SequentialKeys::from_seed(SEED, self.sessions);
        self.engine = self.lane.restore(keys, engine, None).expect("its state");
        let restored = LaneDisk::restore(self.lane.clone(), &mut self.engine, disk);
        self.disk = restored.expect("its state");
        if self.engine.times_are_lost() {
            let mut rebuild = self.engine.begin_rebuild().expect("they are lost");
            let Self { disk, stored, outer, seen, .. } = self;
            let mut carrier = LaneCarrier { disk, stored, outer: Flush(*outer), seen };
            carry_out(&mut rebuild, &mut self.engine, &mut carrier).expect("it goes on");
        }
        for number in self.engine.lost_writes() {
            self.engine.write_again(self.log[number as usize].clone()).expect("it was lost");
        }
        // What came after the state is written again by the next flushes; here it is forgotten.
        self.log.truncate(self.engine.writes() as usize);
        self.newest.clear();
        for (block, content) in self.log.iter().flatten() {
            match content {
                Some(content) => drop(self.newest.insert(*block, content.clone())),
                None => drop(self.newest.remove(block)),
            }
        }
    }

    /// Reads all blocks; how many of them are lost.
    fn check(&mut self) -> u64 {
        let blocks: Vec<_> = (0..self.lane.schedule().blocks()).map(BlockId).collect();
        let mut batch = self.engine.begin_read(blocks.clone()).expect("they are there");
        let Self { disk, stored, outer, seen, .. } = self;
        let mut carrier = LaneCarrier { disk, stored, outer: Flush(*outer), seen };
        carry_out(&mut batch, &mut self.engine, &mut carrier).expect("reads go on");
        let mut lost = 0;
        for (block, answer) in blocks.iter().zip(batch.into_answers()) {
            match answer {
                Ok(answer) => assert_eq!(answer, self.newest.get(block).cloned(), "{block:?}"),
                Err(_) => lost += 1,
            }
        }
        lost
    }

    /// Random turns with the lane and without it; it misses at most `most` flushes more than its
    /// grace lets it. How many blocks were lost when it was read, at most.
    fn play(&mut self, dice: &mut Dice, most: u64) -> u64 {
        let turn = self.lane.schedule().queue_buckets();
        let window = self.lane.schedule().turns_of_renewal();
        let mut lost = 0;
        for _ in 0..2 * window + dice.below(60) {
            match dice.below(8) {
                0 => {
                    // The outer engine goes on alone, for less than what is left. A turn that the
                    // lane was in the midst of is missed too.
                    let left = self.disk.grace_left(Flush(self.outer)) + most;
                    let left = left.checked_sub(2 * turn);
                    let Some(left) = left else { continue };
                    (0..dice.below(left + 1)).for_each(|_| self.miss());
                    self.reopen();
                }
                1 => {
                    // A crash. Both go back to their states; the outer engine has one of each turn.
                    if self.state.is_some() {
                        self.outer -= self.outer % turn;
                    }
                    self.reopen();
                }
                _ => (0..1 + dice.below(2 * turn)).for_each(|_| self.flush(dice)),
            }
            if dice.below(6) == 0 {
                lost = lost.max(self.check());
            }
        }
        lost.max(self.check())
    }
}

#[test]
fn within_the_grace_a_lane_loses_nothing() {
    let (mut missed, mut swept) = (0, 0);
    for seed in (seed(1)..).take(scaled(40) as usize) {
        let mut dice = Dice::new(seed);
        let mut run = Run::new(&mut dice);
        assert_eq!(run.play(&mut dice, 0), 0, "seed {seed}");
        missed += run.outer - run.engine.flushes().0;
        swept += u64::from(run.lane.schedule().swept(0, run.engine.flushes()).is_some());
    }
    assert!(missed > 500 && swept > 20, "{missed} flushes missed, {swept} last levels in use");
}

#[test]
fn beyond_the_grace_what_is_lost_is_known_and_nothing_wrong_is_read() {
    let mut losses = 0;
    for seed in (seed(1)..).take(scaled(30) as usize) {
        let mut dice = Dice::new(seed);
        let mut run = Run::new(&mut dice);
        let most = 2 * run.lane.grace() + run.lane.schedule().queue_buckets() * 40;
        losses += u64::from(run.play(&mut dice, most) > 0);
    }
    assert!(losses > 5, "{losses} lanes lost something");
}

#[test]
fn a_state_that_is_no_lanes_is_refused() {
    let mut dice = Dice::new(7);
    let mut run = Run::new(&mut dice);
    (0..40).for_each(|_| run.flush(&mut dice));
    let (state, engine) = (run.disk.state(), run.engine.state().expect("no flush"));
    let restored = |state: &[u8]| {
        let keys = SequentialKeys::from_seed(SEED, 9);
        let mut engine = run.lane.restore(keys, &engine, None).expect("its state");
        LaneDisk::restore(run.lane.clone(), &mut engine, state).map(drop)
    };
    restored(&state).expect("its own state");
    assert!(restored(&state[..state.len() - 1]).is_err() || restored(&state[..8]).is_err());
    for at in [7, 15] {
        let mut other = state.clone();
        other[at] = 0xff;
        assert!(restored(&other).is_err(), "a count out of range at {at}");
    }
}

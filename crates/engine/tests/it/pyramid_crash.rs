//! A pyramid that is cut off before any write of its history or its tables, and goes on from there.

use crate::plain::{BYTES, Plain, read};
use crate::seeds;
use oblivio_engine::pyramid::{
    AskEvent, Left, MergeJob, PyramidConfig, PyramidKeys, PyramidOram, RoundJob, Settle,
    WITHIN_TABLE,
};
use oblivio_engine::{
    Action, BlockId, BlockOp, Carrier, EngineError, Extent, Read, Write, advance,
};
use oblivio_testkit::SplitMix64;
use oblivio_testkit::campaign::every;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const BLOCKS: u64 = 1 << 7;

/// The end of a session, or an error of the engine.
#[derive(Debug)]
enum Stop {
    Crash,
    Engine(EngineError),
}

impl From<EngineError> for Stop {
    fn from(error: EngineError) -> Self {
        Self::Engine(error)
    }
}

/// What outlives a crash: tables, a checkpoint and the events since.
#[derive(Default)]
struct Disk {
    tables: BTreeMap<u64, Vec<u8>>,
    checkpoint: Option<Vec<u8>>,
    events: Vec<AskEvent>,
    /// Writes until the next crash.
    left: u64,
    /// Slots read of each table that lives, and the lists of reads so far.
    read: BTreeMap<u64, BTreeSet<u64>>,
    lists: BTreeSet<Vec<Extent>>,
    repeats: u64,
}

impl Disk {
    /// A crash comes before this write, or it is done.
    fn write_next(&mut self) -> Result<(), Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::Crash)?;
        Ok(())
    }

    fn log(&mut self, event: AskEvent) -> Result<(), Stop> {
        self.write_next()?;
        self.events.push(event);
        Ok(())
    }
}

fn place(offset: u64) -> (u64, usize) {
    (offset >> WITHIN_TABLE, (offset & ((1 << WITHIN_TABLE) - 1)) as usize)
}

impl Carrier for Disk {
    type Error = Stop;

    fn read(&mut self, mut read: Read<'_>) -> Result<(), Stop> {
        // A read is repeated as a whole or not at all.
        let again = !read.extents.is_empty() && self.lists.contains(read.extents);
        self.repeats += u64::from(again);
        for (extent, part) in read.parts() {
            let (home, at) = place(extent.offset);
            let fresh = self.read.entry(home).or_default().insert(extent.offset);
            assert!(fresh || again, "a slot is read again, and not with its whole round");
            // Only a state that somebody changed names another table.
            let table = self.tables.get(&home).and_then(|table| table.get(at..at + part.len()));
            part.copy_from_slice(table.ok_or(Stop::Crash)?);
        }
        self.lists.insert(read.extents.to_vec());
        Ok(())
    }

    fn write(&mut self, write: Write<'_>) -> Result<(), Stop> {
        for piece in write.parts() {
            let (home, _) = place(piece.extent.offset);
            self.read.remove(&home);
            // Torn: the first half is there.
            let torn = piece.data[..piece.data.len() / 2].to_vec();
            self.tables.insert(home, torn);
            self.write_next()?;
            self.tables.insert(home, piece.data.to_vec());
        }
        Ok(())
    }
}

fn config() -> PyramidConfig {
    PyramidConfig::new(BYTES, BLOCKS, BYTES << 5)
}

fn empty(session: u64) -> PyramidOram {
    // The keys are the volume's. Randomness differs from session to session.
    PyramidOram::new(config(), PyramidKeys::from_seed(1).with_entropy(session)).expect("sound")
}

/// A session with its jobs under way: rounds in their order, each with its operations, and merges.
struct Session {
    engine: PyramidOram,
    rounds: VecDeque<(RoundJob, Vec<BlockOp>)>,
    merges: Vec<MergeJob>,
    model: Plain,
}

impl Session {
    fn new(engine: PyramidOram, model: Plain) -> Self {
        Self { engine, rounds: VecDeque::new(), merges: Vec::new(), model }
    }

    /// A new session on what the last one left.
    fn recover(disk: &Disk, session: u64, model: Plain) -> Result<Self, Stop> {
        let mut engine = empty(session);
        if let Some(state) = &disk.checkpoint {
            engine.restore(state)?;
        }
        for event in disk.events.clone() {
            engine.replay(event)?;
        }
        Ok(Self::new(engine, model))
    }

    /// Begins one more job, or takes a step of one, by the next random number. The order of events
    /// is that of what the engine did.
    fn pump(
        &mut self,
        rng: &mut SplitMix64,
        disk: &mut Disk,
        ops: &mut VecDeque<BlockOp>,
    ) -> Result<(), Stop> {
        if let Some(round) = self.engine.resume()? {
            self.rounds.push_back((round, Vec::new()));
            return Ok(());
        }
        match rng.below(6) {
            0 => self.begin(disk, ops)?,
            1 => self.merges.extend(self.engine.begin_merge()?),
            2 | 3 => self.step_merge(rng, disk)?,
            _ => self.step_round(rng, disk)?,
        }
        Ok(())
    }

    fn begin(&mut self, disk: &mut Disk, ops: &mut VecDeque<BlockOp>) -> Result<(), Stop> {
        let all: Vec<_> = ops.iter().cloned().collect();
        if let Some(round) = self.engine.begin_round(ops)? {
            disk.log(AskEvent::Intent(round.intent().clone()))?;
            let mine = all[..all.len() - ops.len()].to_vec();
            self.rounds.push_back((round, mine));
        }
        Ok(())
    }

    fn step_merge(&mut self, rng: &mut SplitMix64, disk: &mut Disk) -> Result<(), Stop> {
        let Some(at) = pick(rng, self.merges.len()) else { return Ok(()) };
        if !self.merges[at].is_ready(&self.engine) {
            return Ok(());
        }
        if !advance(&mut self.merges[at], &mut self.engine, disk)? {
            let merged = self.merges.remove(at);
            disk.log(AskEvent::Merged(merged.merged().expect("it is done").clone()))?;
        }
        Ok(())
    }

    fn step_round(&mut self, rng: &mut SplitMix64, disk: &mut Disk) -> Result<(), Stop> {
        let Some(at) = pick(rng, self.rounds.len()) else { return Ok(()) };
        if !self.rounds[at].0.is_ready(&self.engine) {
            return Ok(());
        }
        if !advance(&mut self.rounds[at].0, &mut self.engine, disk)? {
            assert_eq!(at, 0, "they are served in order");
            let (mut round, ops) = self.rounds.pop_front().expect("it is there");
            disk.log(AskEvent::Settle(round.settle().expect("it is done")))?;
            // What is settled is there, acknowledged or not.
            let expected: Vec<_> = ops.iter().map(|op| self.model.serve(op)).collect();
            assert_eq!(round.into_answers(), expected);
        }
        Ok(())
    }

    /// Serves operations. Merges may stay open.
    fn access(
        &mut self,
        rng: &mut SplitMix64,
        disk: &mut Disk,
        ops: Vec<BlockOp>,
    ) -> Result<(), Stop> {
        let mut ops = VecDeque::from(ops);
        // Its rounds of an earlier session too.
        let mut settled = 0;
        while !ops.is_empty() || !self.rounds.is_empty() || settled < 4 {
            self.pump(rng, disk, &mut ops)?;
            settled += u64::from(self.rounds.is_empty());
        }
        Ok(())
    }
}

impl Session {
    /// Ends all merges.
    fn finish(&mut self, disk: &mut Disk) -> Result<(), Stop> {
        loop {
            self.merges.extend(self.engine.begin_merge()?);
            if self.merges.is_empty() {
                return Ok(());
            }
            self.step_merge(&mut SplitMix64::new(0), disk)?;
        }
    }
}

fn pick(rng: &mut SplitMix64, count: usize) -> Option<usize> {
    (count > 0).then(|| rng.below(count as u64) as usize)
}

fn any_op(rng: &mut SplitMix64) -> BlockOp {
    let id = BlockId(if rng.below(2) == 0 { rng.below(5) } else { rng.below(BLOCKS) });
    let byte = rng.below(256) as u8;
    let action = match rng.below(7) {
        0..=2 => Action::Write(vec![byte; BYTES]),
        3 => Action::Patch { offset: 5, bytes: vec![byte; 9] },
        4 => Action::Remove,
        _ => Action::Read,
    };
    BlockOp { id, action }
}

/// A campaign of sessions, each cut off after `each` writes, or a random number of them.
fn campaign(seed: u64, each: Option<u64>, batches: u64) -> u64 {
    let (mut rng, mut disk, mut model) = (SplitMix64::new(seed), Disk::default(), Plain::default());
    let mut engine = None;
    let mut sessions = 0;
    let mut left = batches;
    while left > 0 {
        let mut open = engine.take().unwrap_or_else(|| {
            sessions += 1;
            disk.left = each.unwrap_or_else(|| rng.below(60));
            let session = Session::recover(&disk, sessions, std::mem::take(&mut model));
            session.unwrap_or_else(|error| panic!("seed {seed}: {error:?}"))
        });
        left -= 1;
        let ops: Vec<_> = (0..rng.below(40)).map(|_| any_op(&mut rng)).collect();
        match open.access(&mut rng, &mut disk, ops) {
            Ok(()) => {}
            Err(Stop::Crash) => {
                model = open.model;
                continue;
            }
            Err(Stop::Engine(error)) => panic!("seed {seed}: {error}"),
        }
        assert_eq!(open.engine.live_blocks(), open.model.0.len() as u64, "seed {seed}");
        if rng.below(6) == 0 {
            let mut state = Vec::new();
            open.engine.checkpoint(&mut state).expect("between batches no round is under way");
            (disk.checkpoint, disk.events) = (Some(state), Vec::new());
        }
        engine = Some(open);
    }
    if let Some(open) = engine {
        model = open.model;
    }
    disk.left = u64::MAX;
    let mut last = Session::recover(&disk, 0, model).expect("it follows");
    let everything = (0..BLOCKS).map(read).collect();
    last.access(&mut rng, &mut disk, everything).expect("no crash");
    disk.repeats
}

#[test]
fn whatever_is_settled_survives_and_no_slot_is_read_twice_but_in_a_repeated_round() {
    let seeds = seeds(30);
    let repeats: u64 = seeds.clone().map(|seed| campaign(seed, None, 60)).sum();
    assert!(repeats > seeds.end - seeds.start, "{repeats} rounds and merges were repeated");
}

#[test]
fn a_crash_before_every_write_of_a_run() {
    for each in (1..160).step_by(every(5)) {
        campaign(1000 + each, Some(each), 40);
    }
}

/// The size of a checkpoint follows from the number of asks, whatever they are.
#[test]
fn checkpoints_of_two_workloads_have_one_size() {
    let mut rng = SplitMix64::new(3);
    let session = |number| Session::new(empty(number), Plain::default());
    let mut sessions = [0, 1].map(|n| (session(n), Disk { left: u64::MAX, ..Disk::default() }));
    for _ in 0..60 {
        let reads = |n: u64| read(n % 3);
        let batches = [(0..16).map(|_| any_op(&mut rng)).collect(), (0..16).map(reads).collect()];
        let mut sizes = BTreeSet::new();
        let schedule = rng.next_u64();
        for ((session, disk), ops) in sessions.iter_mut().zip(batches) {
            // The same steps of merges.
            session.access(&mut SplitMix64::new(schedule), disk, ops).expect("no crash");
            session.finish(disk).expect("no crash");
            let mut state = Vec::new();
            session.engine.checkpoint(&mut state).expect("no round is under way");
            sizes.insert(state.len());
        }
        assert_eq!(sizes.len(), 1, "{sizes:?}");
    }
}

#[test]
fn a_cut_checkpoint_is_refused_and_a_changed_one_does_no_harm() {
    let (mut rng, mut disk) = (SplitMix64::new(3), Disk { left: u64::MAX, ..Disk::default() });
    let (mut session, mut state) = (Session::new(empty(1), Plain::default()), Vec::new());
    for _ in 0..60 {
        let ops = (0..16).map(|_| any_op(&mut rng)).collect();
        session.access(&mut rng, &mut disk, ops).expect("no crash");
    }
    session.engine.checkpoint(&mut state).expect("no round is under way");
    for cut in (0..state.len()).step_by(13) {
        assert!(empty(1).restore(&state[..cut]).is_err(), "cut at {cut}");
    }
    for at in (0..state.len()).step_by(17) {
        let mut changed = state.clone();
        changed[at] ^= 1 << rng.below(8);
        // A state is sealed, so nobody else can change it. It must not panic all the same.
        let mut other = empty(1);
        if other.restore(&changed).is_ok() {
            let ops = (0..4).map(|_| any_op(&mut rng)).collect();
            let mut copy = Disk { left: u64::MAX, tables: disk.tables.clone(), ..Disk::default() };
            let _ = other.access(&mut copy, ops);
        }
    }
    let mut other = empty(1);
    assert!(
        other.replay(AskEvent::Settle(Settle(vec![Left::Absent]))).is_err(),
        "nothing was shown"
    );
}

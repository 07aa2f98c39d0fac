//! A pyramid that is cut off before any write of its history or its tables, and goes on from there.

use oblivio_engine::pyramid::{
    Event, PyramidConfig, PyramidKeys, PyramidOram, Settle, WITHIN_TABLE,
};
use oblivio_engine::{
    Action, BlockAnswer, BlockId, BlockOp, Carrier, EngineError, Extent, Job, Read, Write, advance,
};
use oblivio_testkit::SplitMix64;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

const BYTES: usize = 64;
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
    events: Vec<Event>,
    /// Writes until the next crash.
    left: u64,
    /// Slots read of each table that lives, and the last list of reads.
    read: BTreeMap<u64, BTreeSet<u64>>,
    last: Vec<Extent>,
    repeats: u64,
}

impl Disk {
    /// A crash comes before this write, or it is done.
    fn write_next(&mut self) -> Result<(), Stop> {
        self.left = self.left.checked_sub(1).ok_or(Stop::Crash)?;
        Ok(())
    }

    fn log(&mut self, event: Event) -> Result<(), Stop> {
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
        let again = !read.extents.is_empty() && read.extents == self.last;
        self.repeats += u64::from(again);
        for (extent, part) in read.parts() {
            let (home, at) = place(extent.offset);
            let fresh = self.read.entry(home).or_default().insert(extent.offset);
            assert!(fresh || again, "a slot is read again, and not with its whole round");
            part.copy_from_slice(&self.tables[&home][at..at + part.len()]);
        }
        if !read.extents.is_empty() {
            self.last = read.extents.to_vec();
        }
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

fn run<J: Job<Engine = PyramidOram>>(
    job: &mut J,
    engine: &mut PyramidOram,
    disk: &mut Disk,
) -> Result<(), Stop> {
    while advance(job, &mut *engine, disk)? {}
    Ok(())
}

/// The order of things that a volume must keep.
fn access(
    engine: &mut PyramidOram,
    disk: &mut Disk,
    ops: Vec<BlockOp>,
    mut settled: impl FnMut(usize),
) -> Result<Vec<BlockAnswer>, Stop> {
    let (mut ops, mut answers) = (VecDeque::from(ops), Vec::new());
    loop {
        while let Some(mut merge) = engine.begin_merge()? {
            run(&mut merge, engine, disk)?;
            disk.log(Event::Merged(merge.merged().expect("it is done").clone()))?;
        }
        if ops.is_empty() {
            return Ok(answers);
        }
        let mut round = engine.begin_round(&mut ops)?;
        disk.log(Event::Intent(round.intent()))?;
        run(&mut round, engine, disk)?;
        disk.log(Event::Settle(round.settle(engine).expect("it is done")))?;
        answers.append(&mut round.into_answers());
        settled(answers.len());
    }
}

/// A new session on what the last one left.
fn recover(disk: &mut Disk, session: u64) -> Result<PyramidOram, Stop> {
    let mut engine = empty(session);
    if let Some(state) = &disk.checkpoint {
        engine.restore(state)?;
    }
    for event in disk.events.clone() {
        engine.replay(event)?;
    }
    if let Some(mut round) = engine.resume()? {
        run(&mut round, &mut engine, disk)?;
        disk.log(Event::Settle(round.settle(&engine).expect("it is done")))?;
    }
    Ok(engine)
}

type Model = BTreeMap<u64, Vec<u8>>;

fn serve(model: &mut Model, op: &BlockOp) -> BlockAnswer {
    match &op.action {
        Action::Read => return model.get(&op.id.0).cloned(),
        Action::Remove => drop(model.remove(&op.id.0)),
        action => action.write_to(model.entry(op.id.0).or_insert_with(|| vec![0; BYTES])),
    }
    None
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
    let (mut rng, mut disk, mut model) = (SplitMix64::new(seed), Disk::default(), Model::new());
    let mut engine = None;
    let mut sessions = 0;
    let mut left = batches;
    while left > 0 {
        let mut open = match engine.take() {
            Some(engine) => engine,
            None => {
                sessions += 1;
                disk.left = each.unwrap_or_else(|| rng.below(60));
                match recover(&mut disk, sessions) {
                    Ok(engine) => engine,
                    Err(Stop::Crash) => continue,
                    Err(Stop::Engine(error)) => panic!("seed {seed}: {error}"),
                }
            }
        };
        left -= 1;
        let ops: Vec<_> = (0..rng.below(24)).map(|_| any_op(&mut rng)).collect();
        let mut done = 0;
        let answers = access(&mut open, &mut disk, ops.clone(), |settled| done = settled);
        // What is settled is there, acknowledged or not.
        let expected: Vec<_> = ops[..done].iter().map(|op| serve(&mut model, op)).collect();
        match answers {
            Ok(answers) => assert_eq!(answers, expected, "seed {seed}"),
            Err(Stop::Crash) => continue,
            Err(Stop::Engine(error)) => panic!("seed {seed}: {error}"),
        }
        assert_eq!(open.live_blocks(), model.len() as u64, "seed {seed}");
        if rng.below(6) == 0 {
            let mut state = Vec::new();
            open.checkpoint(&mut state).expect("between batches nothing is due");
            (disk.checkpoint, disk.events) = (Some(state), Vec::new());
        }
        engine = Some(open);
    }
    disk.left = u64::MAX;
    let mut last = recover(&mut disk, 0).expect("no crash");
    let everything =
        (0..BLOCKS).map(|id| BlockOp { id: BlockId(id), action: Action::Read }).collect();
    let answers = access(&mut last, &mut disk, everything, |_| {}).expect("no crash");
    let expected: Vec<_> = (0..BLOCKS).map(|id| model.get(&id).cloned()).collect();
    assert_eq!(answers, expected, "seed {seed}");
    disk.repeats
}

#[test]
fn whatever_is_settled_survives_and_no_slot_is_read_twice_but_in_a_repeated_round() {
    let repeats: u64 = (0..150).map(|seed| campaign(seed, None, 60)).sum();
    assert!(repeats > 150, "{repeats} rounds and merges were repeated");
}

#[test]
fn a_crash_before_every_write_of_a_run() {
    for each in 1..160 {
        campaign(1000 + each, Some(each), 40);
    }
}

/// The size of a checkpoint follows from the number of asks, whatever they are.
#[test]
fn checkpoints_of_two_workloads_have_one_size() {
    let mut rng = SplitMix64::new(3);
    let mut sessions =
        [0, 1].map(|session| (empty(session), Disk { left: u64::MAX, ..Disk::default() }));
    for _ in 0..60 {
        let reads = |n: u64| BlockOp { id: BlockId(n % 3), action: Action::Read };
        let batches = [(0..16).map(|_| any_op(&mut rng)).collect(), (0..16).map(reads).collect()];
        let mut sizes = BTreeSet::new();
        for ((engine, disk), ops) in sessions.iter_mut().zip(batches) {
            access(engine, disk, ops, |_| {}).expect("no crash");
            let mut state = Vec::new();
            engine.checkpoint(&mut state).expect("nothing is due");
            sizes.insert(state.len());
        }
        assert_eq!(sizes.len(), 1, "{sizes:?}");
    }
}

#[test]
fn a_cut_checkpoint_is_refused_and_a_changed_one_does_no_harm() {
    let (mut rng, mut disk) = (SplitMix64::new(3), Disk { left: u64::MAX, ..Disk::default() });
    let (mut engine, mut state) = (empty(1), Vec::new());
    for _ in 0..60 {
        let ops = (0..16).map(|_| any_op(&mut rng)).collect();
        access(&mut engine, &mut disk, ops, |_| {}).expect("no crash");
    }
    engine.checkpoint(&mut state).expect("nothing is due");
    for cut in 0..state.len() {
        assert!(empty(1).restore(&state[..cut]).is_err(), "cut at {cut}");
    }
    for at in 0..state.len() {
        let mut changed = state.clone();
        changed[at] ^= 1 << rng.below(8);
        // A state is sealed, so nobody else can change it. It must not panic all the same.
        let mut other = empty(1);
        if other.restore(&changed).is_ok() {
            let ops = (0..4).map(|_| any_op(&mut rng)).collect();
            let mut copy = Disk { left: u64::MAX, tables: disk.tables.clone(), ..Disk::default() };
            let _ = access(&mut other, &mut copy, ops, |_| {});
        }
    }
    let mut other = empty(1);
    assert!(other.replay(Event::Settle(Settle(vec![None]))).is_err(), "nothing was shown");
}

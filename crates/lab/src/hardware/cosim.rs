//! The circuit beside the model: every line that is read or written, address and bytes, and every
//! answer.

use super::bench::{Ask, Bench, Said};
use super::frontend::{Controller, Request};
use super::memory::Transfer;
use super::secrets::{AesLabels, Keys};
use super::shape::{Block, LINE, Shape};
use anyhow::{Result, ensure};
use std::collections::{HashMap, VecDeque};

/// The keys of the bench.
pub fn keys() -> Keys {
    let from = |first: u8| std::array::from_fn(|at| first + at as u8);
    Keys { label: from(0), mac: from(0x10), pad: from(0x20) }
}

/// What a run came to.
#[derive(Clone, Copy, Debug, Default)]
pub struct Outcome {
    /// Requests that were answered.
    pub answered: usize,
    /// Lines read and written.
    pub lines: u64,
    /// Whether the port failed, in the circuit and in the model.
    pub failed: bool,
    /// Cycles of all requests, from when each was taken to its answer.
    pub waited: u64,
    /// Cycles in all.
    pub cycles: u64,
    /// Paths.
    pub paths: u64,
    /// The most blocks that a path left in the stash.
    pub stash_peak: usize,
    /// Groups that rolled over.
    pub roll_overs: u64,
    /// Moves that did not wait for their turn.
    pub forced: u64,
}

impl Outcome {
    /// Adds another run's.
    pub fn add(&mut self, other: &Outcome) {
        self.answered += other.answered;
        self.lines += other.lines;
        self.failed |= other.failed;
        self.waited += other.waited;
        self.cycles += other.cycles;
        self.paths += other.paths;
        self.stash_peak = self.stash_peak.max(other.stash_peak);
        self.roll_overs += other.roll_overs;
        self.forced += other.forced;
    }
}

/// The model's side: it is as far as the circuit's words need.
struct Expected<'a> {
    model: Controller<AesLabels>,
    shape: Shape,
    asks: std::slice::Iter<'a, Ask>,
    kept: HashMap<u64, [u8; LINE]>,
    lines: VecDeque<Transfer>,
    /// Answers to reads; `None` for a write.
    answers: VecDeque<Option<Block>>,
    /// What was written to each block.
    truth: HashMap<u64, Block>,
    /// The last bucket's seed.
    seed: u64,
    failed: bool,
}

impl<'a> Expected<'a> {
    fn new(shape: Shape, asks: &'a [Ask]) -> Self {
        let keys = keys();
        let mut model = Controller::new(shape, &keys, AesLabels::new(&keys.label));
        model.backend.memory.trace = Some(Vec::new());
        Self {
            model,
            shape,
            asks: asks.iter(),
            kept: HashMap::new(),
            lines: VecDeque::new(),
            answers: VecDeque::new(),
            truth: HashMap::new(),
            seed: 0,
            failed: false,
        }
    }

    /// Serves what is asked next. False at the end.
    fn step(&mut self) -> bool {
        if self.failed {
            return false;
        }
        let Some(ask) = self.asks.next() else { return false };
        match *ask {
            Ask::Read(block) => self.serve(Request { block, write: None }),
            Ask::Write(block, data) => self.serve(Request { block, write: Some(data) }),
            Ask::Flip(line, mask) => {
                self.line(line).iter_mut().zip(mask).for_each(|(byte, mask)| *byte ^= mask);
            }
            Ask::Keep(line) => {
                let bytes = (&*self.line(line)).try_into().expect("a line");
                self.kept.insert(line, bytes);
            }
            Ask::PutBack(line) => {
                let bytes = self.kept[&line];
                self.line(line).copy_from_slice(&bytes);
            }
            Ask::Zero(line) => self.line(line).fill(0),
            Ask::Delay(_) => {}
        }
        true
    }

    fn serve(&mut self, request: Request) {
        match self.model.serve(request) {
            Ok(before) => {
                let right = self.truth.get(&request.block).unwrap_or(&[0; LINE]);
                assert_eq!(&before, right, "a wrong answer of the model's");
                self.answers.push_back(request.write.is_none().then_some(before));
            }
            Err(_) => self.failed = true,
        }
        if let Some(content) = request.write {
            self.truth.insert(request.block, content);
        }
        let trace = &mut self.model.backend.memory.trace;
        self.lines.extend(trace.as_mut().map(std::mem::take).unwrap_or_default());
    }

    /// A pad depends on its bucket's seed alone. No seed comes twice, whatever was read (section
    /// 6.4).
    fn note_seed(&mut self, line: &Transfer) -> Result<()> {
        if line.write && line.line.is_multiple_of(self.shape.bucket_lines() as u64) {
            let seed = u64::from_le_bytes(line.bytes[..8].try_into().expect("8 bytes"));
            ensure!(seed > self.seed, "seed {seed} after {}", self.seed);
            self.seed = seed;
        }
        Ok(())
    }

    fn line(&mut self, line: u64) -> &mut [u8] {
        let lines = self.shape.bucket_lines() as u64;
        let bucket = self.model.backend.memory.stored(&self.shape, line / lines);
        &mut bucket[(line % lines) as usize * LINE..][..LINE]
    }

    fn next_line(&mut self) -> Option<Transfer> {
        while self.lines.is_empty() && self.step() {}
        self.lines.pop_front()
    }

    fn next_answer(&mut self) -> Option<Option<Block>> {
        while self.answers.is_empty() && self.step() {}
        self.answers.pop_front()
    }
}

/// Runs the circuit and the model on the same requests.
///
/// # Errors
/// The first difference.
pub fn compare(
    bench: &Bench,
    shape: Shape,
    asks: &[Ask],
    stall: u32,
    seed: u64,
) -> Result<Outcome> {
    let mut expected = Expected::new(shape, asks);
    let mut outcome = Outcome::default();
    for said in bench.run(asks, stall, seed, &[])? {
        let at = outcome.answered;
        match said? {
            Said::Line(line) => {
                let wanted = expected.next_line();
                ensure!(Some(line) == wanted, "request {at}: line {line:x?}, model {wanted:x?}");
                expected.note_seed(&line)?;
                outcome.lines += 1;
            }
            Said::Answer(data, cycles) => {
                let wanted = expected.next_answer();
                ensure!(Some(Some(data)) == wanted, "request {at}: {data:x?}, model {wanted:x?}");
                outcome.answered += 1;
                outcome.waited += cycles;
            }
            Said::Taken(cycles) => {
                ensure!(expected.next_answer() == Some(None), "request {at}: an answer is missing");
                outcome.answered += 1;
                outcome.waited += cycles;
            }
            Said::Failed => outcome.failed = true,
            Said::Command(..) | Said::Wave(..) => {}
            Said::End(cycles) => outcome.cycles = cycles,
        }
    }
    while expected.step() {}
    // A move after the last answer may have ended the port: the next request shows it.
    let failed = expected.failed || expected.model.is_dead();
    ensure!(failed == outcome.failed, "the model failed: {failed}, the circuit: {}", !failed);
    let left = (expected.lines.len(), expected.answers.len());
    ensure!(left == (0, 0), "{left:?} lines and answers are missing");
    outcome.paths = expected.model.backend.paths;
    outcome.stash_peak = expected.model.backend.stash_peak;
    outcome.roll_overs = expected.model.counts.roll_overs;
    outcome.forced = expected.model.counts.forced;
    Ok(outcome)
}

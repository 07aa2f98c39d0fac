//! Reads during writes and flushes, in any order: an answer is a content of the block between the
//! start and the end of the read, and no read reports tampering.

use crate::sequential_run::{Run, Write, config, paged};
use oblivio_engine::sequential::{Flushing, SequentialConfig};
use oblivio_engine::{BlockId, Carrier, Data, EngineError, Extent, Job, Step, WorkPart};
use oblivio_testkit::Dice;
use oblivio_testkit::campaign::scaled;
use std::collections::BTreeMap;

type Held = (usize, Option<Vec<u8>>);

/// A run that carries out its flushes step by step.
struct Writer {
    run: Run,
    dice: Dice,
    flushing: Option<Flushing>,
    /// Writes of the flush that the disk has not received.
    late: Vec<(Extent, Vec<u8>)>,
    /// All contents of each block, each with the number of the write that made it.
    held: BTreeMap<BlockId, Vec<Held>>,
    flushes: u64,
}

impl Writer {
    fn new(config: SequentialConfig, seed: u64) -> Self {
        let (run, dice) = (Run::new(config), Dice::new(seed));
        Self { run, dice, flushing: None, late: Vec::new(), held: BTreeMap::new(), flushes: 0 }
    }

    /// One write, or one step of a flush.
    fn go_on(&mut self) {
        let Some(flushing) = &mut self.flushing else {
            if self.run.engine.flush_due() {
                self.flushing = Some(self.run.engine.begin_flush().expect("due"));
                return;
            }
            let write: Write = self.run.any_write(&mut self.dice);
            self.run.enqueue(write.clone());
            if let Some((block, content)) = write {
                let number = self.run.log.len();
                self.held.entry(block).or_default().push((number, content));
            }
            return;
        };
        if !self.late.is_empty() {
            for (extent, bytes) in self.late.drain(..) {
                let (extents, data) = (&[extent][..], Data::Together(&bytes));
                let write = oblivio_engine::Write { extents, data };
                Carrier::write(&mut self.run.disk, write).expect("memory");
            }
            return;
        }
        let step = flushing.step(&mut self.run.engine).expect("untampered");
        let done = matches!(step, Step::Done);
        match step {
            Step::Write(write) => {
                let late = write.parts().map(|piece| (piece.extent, piece.data.to_vec()));
                self.late.extend(late);
            }
            step => {
                self.run.disk.carry(step).expect("memory");
            }
        }
        if self.dice.below(2) == 0 {
            let mut parts = flushing.parts(1 + self.dice.below(4) as usize);
            while !parts.is_empty() {
                let next = self.dice.below(parts.len() as u64) as usize;
                parts.swap_remove(next).run();
            }
        }
        if done {
            self.flushing = None;
            self.flushes += 1;
        }
    }

    fn meanwhile(&mut self) {
        let most = [1, 3, 8, 30][self.dice.below(4) as usize];
        (0..self.dice.below(most)).for_each(|_| self.go_on());
    }

    /// Reads blocks while the rest continues.
    fn read(&mut self, blocks: Vec<BlockId>) {
        let begun = self.run.log.len();
        let mut batch = self.run.engine.begin_read(blocks.clone()).expect("they exist");
        loop {
            self.meanwhile();
            let step = batch.step(&mut self.run.engine).expect("untampered");
            self.meanwhile();
            if !self.run.disk.carry(step).expect("memory") {
                break;
            }
            self.meanwhile();
            if self.dice.below(3) > 0 {
                batch.parts(1).into_iter().for_each(WorkPart::run);
            }
        }
        let answers = batch.into_answers();
        for (block, answer) in blocks.iter().zip(answers) {
            let answer = answer.expect("nothing is damaged");
            let held = self.held.get(block).map_or(&[][..], Vec::as_slice);
            let before = held.partition_point(|(number, _)| *number <= begun);
            let first = before.checked_sub(1).and_then(|at| held[at].1.clone());
            let later = held[before..].iter().map(|(_, content)| content.clone());
            assert!(
                [first].into_iter().chain(later).any(|content| content == answer),
                "{block:?} never held {answer:?} since write {begun}"
            );
        }
    }
}

#[test]
fn reads_beside_writes_and_flushes_are_right() {
    let rounds = scaled(120);
    for (seed, pages) in [(1, 0), (2, 1), (3, 0), (4, 2)] {
        let mut writer = Writer::new(paged(config(60, 4, 2, 3, 100), pages), seed);
        for _ in 0..rounds {
            let count = 1 + writer.dice.below(9);
            let blocks = (0..count).map(|_| BlockId(writer.dice.below(60))).collect();
            writer.read(blocks);
        }
        assert!(writer.flushes > rounds / 5 * 4, "{} flushes", writer.flushes);
    }
}

/// Neither a flush nor the engine continues with blocks that nobody opened or sealed.
#[test]
fn work_that_was_never_done_ends_a_flush() {
    let mut forgotten = 0;
    for at in 0..6 {
        let mut writer = Writer::new(config(60, 4, 2, 3, 100), 5);
        while writer.flushes < 200 || !writer.run.engine.flush_due() {
            writer.go_on();
        }
        let run = &mut writer.run;
        let mut flushing = run.engine.begin_flush().expect("due");
        for step in 0.. {
            let todo = match flushing.step(&mut run.engine) {
                Ok(Step::Done) => break,
                Ok(todo) => todo,
                Err(error) => {
                    assert!(matches!(error, EngineError::State(_)), "{error}");
                    assert!(matches!(run.engine.pad(), Err(EngineError::Closed)));
                    forgotten += 1;
                    break;
                }
            };
            run.disk.carry(todo).expect("memory");
            let mut parts = flushing.parts(2);
            if step == at {
                parts.pop();
            }
            parts.into_iter().for_each(WorkPart::run);
        }
    }
    assert_eq!(forgotten, 2, "once what is opened, once what is sealed");
}

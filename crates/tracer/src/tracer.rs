//! What happens while a program runs: caches warm up, then their misses are written.

use crate::caches::{Caches, Counts, Kind, Memory};
use crate::core::{Block, DATA, SECOND_LEVEL};
use crate::options::Options;
use crate::record::{About, Error, Record, Totals, Writer};
use std::io::{Seek, Write};

/// A program's trace in the making. `W` is where it goes.
pub struct Tracer<W> {
    caches: Caches,
    trace: Trace<W>,
    options: Options,
    /// Instructions up to the end of the block at work.
    instructions: u64,
    /// Those of [`Self::instructions`] that warmed up; none while they still do.
    skipped: Option<u64>,
    /// The cycle at which the block at work began, its stalls included so far.
    begin: u64,
    /// Its cycles without stalls.
    block_cycles: u64,
    /// The access of the block that was charged last, as in [`Self::data`].
    charged: u64,
    measured_from: u64,
}

/// The records, once the caches are warm.
struct Trace<W> {
    writer: Option<Writer<W>>,
    writing: bool,
    last: u64,
    error: Option<Error>,
}

impl<W: Write + Seek> Memory for Trace<W> {
    fn line(&mut self, cycle: u64, kind: Kind, line: u64) {
        let Some(writer) = self.writer.as_mut().filter(|_| self.writing) else { return };
        let record = Record { cycles: cycle - self.last, kind, line };
        self.last = cycle;
        if let Err(error) = writer.record(record) {
            self.error = Some(error);
        }
    }
}

/// Bytes of the largest access that QEMU makes in one piece.
const MOST_ACCESS: u64 = 16;
/// No access of a block.
const NO_ACCESS: u64 = u64::MAX;

impl<W: Write + Seek> Tracer<W> {
    /// Nothing has run yet.
    ///
    /// # Errors
    /// Those of writing.
    pub fn new(to: W, about: About, options: Options) -> Result<Self, Error> {
        let caches = Caches::new(&about.geometry);
        let writer = Some(Writer::new(to, about)?);
        Ok(Self {
            caches,
            trace: Trace { writer, writing: false, last: 0, error: None },
            options,
            instructions: 0,
            skipped: None,
            begin: 0,
            block_cycles: 0,
            charged: NO_ACCESS,
            measured_from: 0,
        })
    }

    /// The line of an address.
    pub fn line_of(&self, address: u64) -> u64 {
        self.caches.line_of(address)
    }

    /// Whether an access of unknown size may reach into the next line.
    #[inline]
    pub fn may_cross(&self, address: u64) -> bool {
        self.caches.rest_of_line(address) < MOST_ACCESS
    }

    /// A block begins. Returns whether the program should go on.
    #[inline]
    pub fn block(&mut self, block: &Block) -> bool {
        self.begin += self.block_cycles;
        self.block_cycles = block.cycles;
        if !self.turn() {
            return false;
        }
        self.charged = NO_ACCESS;
        self.instructions += block.instructions;
        for &line in &block.lines {
            if !self.caches.fetch(self.begin, line, &mut self.trace) {
                self.begin += SECOND_LEVEL;
            }
        }
        true
    }

    /// What is due between two blocks.
    #[inline]
    fn turn(&mut self) -> bool {
        match self.skipped {
            None if self.instructions >= self.options.skip => {
                self.skipped = Some(self.instructions);
                self.caches.counts = Counts::default();
                self.measured_from = self.begin;
                self.trace.last = self.begin;
                self.trace.writing = true;
                true
            }
            None => true,
            Some(skipped) => {
                self.instructions - skipped < self.options.measure
                    && self.caches.counts.l2_misses < self.options.misses
                    && self.trace.error.is_none()
            }
        }
    }

    /// The block's instruction that ends at its cycle `offset` loads or stores.
    #[inline]
    pub fn data(&mut self, offset: u64, address: u64, bytes: u64, writes: bool) {
        // QEMU may split one load of an instruction, as those of 16 bytes.
        let access = offset << 1 | u64::from(writes);
        if access != self.charged {
            self.charged = access;
            self.begin += DATA;
        }
        let (first, last) = (self.line_of(address), self.line_of(address.wrapping_add(bytes - 1)));
        self.line(offset, first, writes);
        if last != first {
            self.line(offset, last, writes);
        }
    }

    #[inline]
    fn line(&mut self, offset: u64, line: u64, writes: bool) {
        if !self.caches.data(self.begin + offset, line, writes, &mut self.trace) {
            self.begin += SECOND_LEVEL;
        }
    }

    /// Ends the trace. Later calls do nothing.
    ///
    /// # Errors
    /// The first of writing.
    pub fn finish(&mut self) -> Result<Option<W>, Error> {
        let Some(writer) = self.trace.writer.take() else { return Ok(None) };
        if let Some(error) = self.trace.error.take() {
            return Err(error);
        }
        let skipped = self.skipped.unwrap_or(self.instructions);
        let measured = self.skipped.is_some();
        let totals = Totals {
            skipped,
            instructions: self.instructions - skipped,
            cycles: if measured { self.begin + self.block_cycles - self.measured_from } else { 0 },
            counts: if measured { self.caches.counts } else { Counts::default() },
        };
        writer.finish(totals).map(Some)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Reader;
    use std::io::Cursor;

    fn block(instructions: u64, line: u64) -> Block {
        Block { instructions, cycles: instructions + 2, lines: [line].into() }
    }

    fn tracer(more: &[&str]) -> Tracer<Cursor<Vec<u8>>> {
        let options =
            Options::parse(["out=o", "about=a"].into_iter().chain(more.iter().copied())).unwrap();
        let about = options.about("p\nq\nr").unwrap();
        Tracer::new(Cursor::new(Vec::new()), about, options).unwrap()
    }

    fn records(tracer: &mut Tracer<Cursor<Vec<u8>>>) -> (Totals, Vec<Record>) {
        let bytes = tracer.finish().unwrap().unwrap().into_inner();
        let reader = Reader::new(&bytes[..]).unwrap();
        (reader.header().totals, reader.map(Result::unwrap).collect())
    }

    #[test]
    fn cycles_add_up() {
        let mut tracer = tracer(&[]);
        assert!(tracer.block(&block(4, 1)));
        tracer.data(3, 0x1000, 8, false);
        tracer.data(3, 0x1008, 8, false);
        tracer.data(5, 0x1038, 16, true);
        assert!(tracer.block(&block(1, 1)));
        let (totals, records) = records(&mut tracer);
        // The first load waits for the fetch; the store's line is there, but not its second one.
        let expected = [(0, Kind::Fetch, 1), (15, Kind::Load, 0x40), (14, Kind::Store, 0x41)];
        let expected = expected.map(|(cycles, kind, line)| Record { cycles, kind, line });
        assert_eq!(records, expected);
        assert_eq!((totals.instructions, totals.skipped), (5, 0));
        // Two blocks, three misses, and two instructions with data.
        assert_eq!(totals.cycles, 6 + 3 + 3 * SECOND_LEVEL + 2 * DATA);
        assert!(tracer.finish().unwrap().is_none());
    }

    #[test]
    fn what_warms_up_is_not_traced() {
        let mut tracer = tracer(&["skip=10", "measure=8"]);
        for line in 0..3 {
            assert!(tracer.block(&block(4, line)));
        }
        assert!(tracer.block(&block(4, 2)));
        assert!(tracer.block(&block(4, 3)));
        assert!(!tracer.block(&block(4, 4)), "eight instructions are measured");
        let (totals, records) = records(&mut tracer);
        assert_eq!((totals.skipped, totals.instructions), (12, 8));
        assert_eq!(records, [Record { cycles: 6, kind: Kind::Fetch, line: 3 }]);
        assert_eq!(totals.counts.l1i_misses, 1);
    }

    #[test]
    fn a_trace_ends_after_so_many_misses() {
        let mut tracer = tracer(&["misses=2"]);
        assert!(tracer.block(&block(1, 1)));
        assert!(tracer.block(&block(1, 1)));
        assert!(tracer.block(&block(1, 2)));
        assert!(!tracer.block(&block(1, 3)));
        assert_eq!(records(&mut tracer).1.len(), 2);
    }

    #[test]
    fn a_program_that_ends_while_it_warms_up_has_nothing_to_show() {
        let mut tracer = tracer(&["skip=10"]);
        assert!(tracer.block(&block(4, 1)));
        let (totals, records) = records(&mut tracer);
        assert_eq!((totals.skipped, totals.instructions, totals.cycles), (4, 0, 0));
        assert!(records.is_empty());
    }
}

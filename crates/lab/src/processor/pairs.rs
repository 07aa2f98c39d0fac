//! Traces of the same programs with lines of 64 and of 128 bytes.

use super::frames::Mapping;
use super::replay::{self, Extent, Trace};
use anyhow::{Context, Result, ensure};
use oblivio_tracer::record::Record;
use std::path::PathBuf;

/// Which traces, and how much of them.
#[derive(clap::Args, Clone, Debug)]
pub struct Args {
    #[command(flatten)]
    pub replay: replay::Args,
    /// Folder with traces of lines of 128 bytes, made by `processor trace all --line 128`
    #[arg(long, default_value = "target/traces128")]
    traces128: PathBuf,
}

/// One program.
pub struct Pair {
    /// With lines of 64 bytes.
    narrow: Trace,
    /// With lines of 128 bytes.
    wide: Trace,
}

/// Instructions of the two may differ by this share: a trace ends between two blocks of them.
const MOST_APART: f64 = 1e-4;

impl Args {
    /// The programs that have both.
    ///
    /// # Errors
    /// There is none; one trace has other lines than its folder says; the two of a program are not
    /// of as many instructions.
    pub fn find(&self) -> Result<Vec<Pair>> {
        let mut wide = replay::find(&self.traces128)?;
        let mut pairs = Vec::new();
        for narrow in self.replay.find()? {
            let Some(at) = wide.iter().position(|it| it.program() == narrow.program()) else {
                continue;
            };
            let pair = Pair { narrow, wide: wide.swap_remove(at) };
            pair.check().with_context(|| pair.program().to_owned())?;
            pairs.push(pair);
        }
        ensure!(!pairs.is_empty(), "no program has traces of both lines");
        Ok(pairs)
    }

    /// In words: how much of these programs is replayed.
    pub fn describe(&self, pairs: &[Pair]) -> String {
        let cut = pairs.iter().any(|pair| pair.narrow.records() > self.replay.records);
        let text = self.replay.describe(pairs.iter().map(|pair| &pair.narrow));
        match cut {
            true => format!("{text} With lines of 128 bytes it is as much of the core's cycles."),
            false => text,
        }
    }
}

impl Pair {
    fn check(&self) -> Result<()> {
        for (trace, line) in [(&self.narrow, 64), (&self.wide, 128)] {
            let found = trace.header.about.geometry.line;
            ensure!(found == line, "a trace with lines of {found} bytes, not of {line}");
        }
        let [one, other] =
            [&self.narrow, &self.wide].map(|it| it.header.totals.instructions as f64);
        ensure!((one / other - 1.0).abs() < MOST_APART, "one has {one} instructions, one {other}");
        Ok(())
    }

    /// The program's name.
    pub fn program(&self) -> &str {
        self.narrow.program()
    }

    /// The records of its beginning: those with lines of 64 bytes, then those with lines of 128
    /// bytes that belong to as many cycles of the core.
    ///
    /// # Errors
    /// A trace is damaged.
    pub fn each(
        &self,
        args: &Args,
        mapping: Mapping,
        mut narrow: impl FnMut(&Record),
        mut wide: impl FnMut(&Record),
    ) -> Result<()> {
        let mut cycles = 0;
        self.narrow.each(Extent::Records(args.replay.records), mapping, |record| {
            cycles += record.cycles;
            narrow(&record);
        })?;
        let share = match self.narrow.records() <= args.replay.records {
            true => 1.0,
            false => cycles as f64 / self.narrow.header.totals.cycles as f64,
        };
        self.wide.each(Extent::Share(share), mapping, |record| wide(&record))
    }
}

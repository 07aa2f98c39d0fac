//! What processes use, as the system counts it.

use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::thread;
use std::time::Duration;

/// Time of a processor that a process used.
#[derive(Clone, Copy, Debug, Default)]
pub struct Used(pub Duration);

/// The seventh and eighth field after the name: ticks in the program and in the system.
const TICKS: std::ops::Range<usize> = 11..13;
/// Microseconds of a tick: Linux has a hundred a second in these files, whatever its clock.
const TICK_US: u64 = 10_000;

fn parse(stat: &str) -> Result<(String, Duration)> {
    let (before, after) = stat.rsplit_once(')').context("no name in a stat file")?;
    let name = before.split_once('(').map_or("", |(_, name)| name);
    let fields: Vec<&str> = after.split_whitespace().collect();
    let ticks: u64 = fields
        .get(TICKS)
        .context("a stat file that is too short")?
        .iter()
        .try_fold(0, |sum, field| {
            Ok::<u64, std::num::ParseIntError>(sum + field.parse::<u64>()?)
        })?;
    Ok((name.to_owned(), Duration::from_micros(ticks * TICK_US)))
}

impl Used {
    /// All that a process used so far, with its threads that have ended.
    ///
    /// # Errors
    /// It is gone.
    pub fn of(process: u32) -> Result<Self> {
        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
        Ok(Self(parse(&stat)?.1))
    }

    /// Microseconds a query since an earlier time.
    pub fn micros_each(self, earlier: Self, queries: u64) -> f64 {
        self.0.saturating_sub(earlier.0).as_secs_f64() * 1e6 / queries.max(1) as f64
    }
}

/// What the threads of a process used that live, by their names.
///
/// # Errors
/// It is gone.
pub fn threads(process: u32) -> Result<BTreeMap<String, Used>> {
    let mut found = BTreeMap::<String, Used>::new();
    for thread in std::fs::read_dir(format!("/proc/{process}/task"))? {
        // One that has ended meanwhile is left out.
        let Ok(stat) = std::fs::read_to_string(thread?.path().join("stat")) else { continue };
        let (name, used) = parse(&stat)?;
        found.entry(name).or_default().0 += used;
    }
    Ok(found)
}

/// What others do on this machine, as a sentence: times mean little beside much of it.
///
/// # Errors
/// Those of the system.
pub fn loaded() -> Result<String> {
    let load = std::fs::read_to_string("/proc/loadavg")?;
    let last = load.split_whitespace().next().unwrap_or_default();
    let cores = thread::available_parallelism().map_or(1, usize::from);
    Ok(format!("The load of the machine was {last} when it ended, with {cores} processors."))
}

/// Resident memory of a process in bytes: now, and the most so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Resident {
    /// Now.
    pub now: u64,
    /// The most.
    pub most: u64,
}

impl Resident {
    /// That of a process.
    ///
    /// # Errors
    /// It is gone.
    pub fn of(process: u32) -> Result<Self> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
        let field = |name: &str| -> Result<u64> {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let kilobytes = line.and_then(|line| line.split_whitespace().next());
            Ok(kilobytes.with_context(|| format!("no {name}"))?.parse::<u64>()? << 10)
        };
        Ok(Self { now: field("VmRSS:")?, most: field("VmHWM:")? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn the_fields_are_where_the_system_has_them() {
        let stat = "7 (share (x) y) S 1 7 7 0 -1 4194560 100 0 0 0 250 50 9 9 20 0 1 0";
        let (name, used) = parse(stat).unwrap();
        assert_eq!(name, "share (x) y");
        assert_eq!(used, Duration::from_secs(3));
        assert!(parse("7 (x) S 1 2").is_err());
    }

    #[test]
    fn this_process_is_counted() {
        let (me, begin) = (std::process::id(), Instant::now());
        let before = Used::of(me).unwrap();
        let mut sum = 0u64;
        while begin.elapsed() < Duration::from_secs(20)
            && Used::of(me).unwrap().micros_each(before, 1) < 30_000.0
        {
            sum = (0..100_000).fold(sum, |sum, x| sum.wrapping_mul(31).wrapping_add(x));
        }
        assert!(Used::of(me).unwrap().0 > before.0, "{sum}");
        assert!(!threads(me).unwrap().is_empty());
        let resident = Resident::of(me).unwrap();
        assert!(resident.now > 0 && resident.most >= resident.now, "{resident:?}");
    }
}

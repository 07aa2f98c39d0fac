//! How long operations took, and whether something else held up everybody meanwhile.

use super::beside::Beside;
use crate::report::median;
use anyhow::Result;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// One operation.
#[derive(Clone, Copy)]
pub struct Took {
    begun: Instant,
    pub ms: f64,
    /// Whoever this computer is a guest of took processors away meanwhile, or what went on beside was held up.
    pub disturbed: bool,
}

impl Took {
    /// Does something and gives what that took, with its result.
    pub fn of<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Self), E> {
        let (stolen, begun) = (stolen(), Instant::now());
        let done = work()?;
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        Ok((done, Self { begun, ms, disturbed: self::stolen() != stolen }))
    }

    /// Both, one after the other.
    pub fn and(self, next: Self) -> Self {
        let disturbed = self.disturbed || next.disturbed;
        Self { begun: self.begun, ms: self.ms + next.ms, disturbed }
    }

    /// Takes notice of what went on beside.
    pub fn look_at(&mut self, beside: &Beside) {
        let end = self.begun + Duration::from_secs_f64(self.ms / 1e3);
        self.disturbed |= beside.held_up((self.begun, end));
    }
}

/// Hundredths of a second for which processors of this computer were wanted and not there, as a
/// virtual machine is told by its host; 0 where nobody tells.
fn stolen() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// What each operation took, by kind.
#[derive(Default)]
pub struct Times(BTreeMap<&'static str, Vec<Took>>);

impl Times {
    pub fn time<T, E>(
        &mut self,
        kind: &'static str,
        work: impl FnOnce() -> Result<T, E>,
    ) -> Result<T, E> {
        let (done, took) = Took::of(work)?;
        self.add(kind, took);
        Ok(done)
    }

    pub fn add(&mut self, kind: &'static str, took: Took) {
        self.0.entry(kind).or_default().push(took);
    }

    pub fn look_at(&mut self, beside: &Beside) {
        self.0.values_mut().flatten().for_each(|took| took.look_at(beside));
    }

    pub fn of(&self, kind: &str) -> &[Took] {
        self.0.get(kind).map_or(&[], Vec::as_slice)
    }
}

/// A row of operations in short, in milliseconds.
pub struct Waits {
    pub median: f64,
    pub highest: f64,
    /// The highest of those that were not disturbed.
    pub highest_undisturbed: f64,
    disturbed: usize,
    count: usize,
}

impl Waits {
    pub fn of(all: &[Took]) -> Self {
        let ms: Vec<f64> = all.iter().map(|took| took.ms).collect();
        let most =
            |all: &mut dyn Iterator<Item = &Took>| all.map(|took| took.ms).fold(0.0, f64::max);
        Self {
            median: if ms.is_empty() { 0.0 } else { median(&ms) },
            highest: most(&mut all.iter()),
            highest_undisturbed: most(&mut all.iter().filter(|took| !took.disturbed)),
            disturbed: all.iter().filter(|took| took.disturbed).count(),
            count: all.len(),
        }
    }

    /// The cells of a table, under [`HEAD`].
    pub fn cells(&self, name: &str) -> Vec<String> {
        let ratio =
            |ms: f64| format!("{:.1}", if self.median > 0.0 { ms / self.median } else { 0.0 });
        vec![
            name.into(),
            self.count.to_string(),
            format!("{:.2}", self.median),
            format!("{:.1}", self.highest),
            ratio(self.highest),
            self.disturbed.to_string(),
            format!("{:.1}", self.highest_undisturbed),
            ratio(self.highest_undisturbed),
        ]
    }
}

/// Of a table of waits.
pub const HEAD: [&str; 8] =
    ["operation", "number", "median", "highest", "ratio", "disturbed", "highest other", "ratio"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_disturbed_is_told_apart() {
        let took = |ms, disturbed| Took { begun: Instant::now(), ms, disturbed };
        let waits = Waits::of(&[took(1.0, false), took(9.0, true), took(2.0, false)]);
        assert_eq!((waits.median, waits.highest, waits.highest_undisturbed), (2.0, 9.0, 2.0));
        assert_eq!(waits.cells("a"), ["a", "3", "2.00", "9.0", "4.5", "1", "2.0", "1.0"]);
        assert_eq!(Waits::of(&[]).cells("b")[1..5], ["0", "0.00", "0.0", "0.0"]);
    }
}

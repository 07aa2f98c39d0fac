//! The duration of operations, and whether something else disturbed them.

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
    scheduled: Scheduled,
    /// The host took processors away meanwhile, or the probe beside it was held up.
    pub disturbed: bool,
}

impl Took {
    /// Times some work; returns its result too.
    pub fn of<T, E>(work: impl FnOnce() -> Result<T, E>) -> Result<(T, Self), E> {
        let (stolen, before, begun) = (stolen(), Scheduled::now(), Instant::now());
        let done = work()?;
        let ms = begun.elapsed().as_secs_f64() * 1e3;
        let scheduled = Scheduled::now().since(before);
        Ok((done, Self { begun, ms, scheduled, disturbed: self::stolen() != stolen }))
    }

    /// Both operations, one after the other.
    pub fn and(self, next: Self) -> Self {
        let disturbed = self.disturbed || next.disturbed;
        let scheduled = self.scheduled.and(next.scheduled);
        Self { begun: self.begun, ms: self.ms + next.ms, scheduled, disturbed }
    }

    /// Adds disturbances of the probe beside it.
    pub fn look_at(&mut self, beside: &Beside) {
        let end = self.begun + Duration::from_secs_f64(self.ms / 1e3);
        self.disturbed |= beside.held_up((self.begun, end));
    }
}

/// The kernel's times of a thread, in milliseconds.
#[derive(Clone, Copy, Default)]
struct Scheduled {
    /// On a processor.
    ran: f64,
    /// Ready, with no processor free.
    queued: f64,
}

impl Scheduled {
    /// Of the calling thread so far; zeros where the kernel does not report.
    fn now() -> Self {
        let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
        let mut nanos = told.split_ascii_whitespace().map_while(|word| word.parse::<f64>().ok());
        let mut ms = || nanos.next().unwrap_or(0.0) / 1e6;
        Self { ran: ms(), queued: ms() }
    }

    fn since(self, before: Self) -> Self {
        Self { ran: self.ran - before.ran, queued: self.queued - before.queued }
    }

    fn and(self, next: Self) -> Self {
        Self { ran: self.ran + next.ran, queued: self.queued + next.queued }
    }
}

/// Hundredths of a second that this computer waited for processors, as a virtual machine's host
/// reports them; 0 without a report.
fn stolen() -> u64 {
    let stat = std::fs::read_to_string("/proc/stat").unwrap_or_default();
    stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse().ok()).unwrap_or(0)
}

/// All operations, by kind.
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

/// A summary of operations, in milliseconds.
pub struct Waits {
    pub median: f64,
    pub highest: f64,
    /// The highest of the undisturbed ones.
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

    /// How the longest one spent its time, as a row under [`LONGEST`].
    pub fn longest(all: &[Took], name: &str) -> Option<Vec<String>> {
        let Took { ms, scheduled, .. } = all.iter().max_by(|a, b| a.ms.total_cmp(&b.ms))?;
        let rest = (ms - scheduled.ran - scheduled.queued).max(0.0);
        let times = [*ms, scheduled.ran, scheduled.queued, rest].map(|ms| format!("{ms:.1}"));
        Some([vec![name.to_owned()], times.into()].concat())
    }

    /// The cells of a row under [`HEAD`].
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

/// Head of the table of the longest operations.
pub const LONGEST: [&str; 5] =
    ["operation", "highest", "on a processor", "waiting for one", "waiting for something else"];

/// Head of the table of waits.
pub const HEAD: [&str; 8] =
    ["operation", "number", "median", "highest", "ratio", "disturbed", "highest other", "ratio"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_disturbed_is_told_apart() {
        let scheduled = Scheduled { ran: 2.0, queued: 0.5 };
        let took = |ms, disturbed| Took { begun: Instant::now(), ms, scheduled, disturbed };
        let all = [took(1.0, false), took(9.0, true), took(2.0, false)];
        let waits = Waits::of(&all);
        assert_eq!((waits.median, waits.highest, waits.highest_undisturbed), (2.0, 9.0, 2.0));
        assert_eq!(waits.cells("a"), ["a", "3", "2.00", "9.0", "4.5", "1", "2.0", "1.0"]);
        assert_eq!(Waits::longest(&all, "a").expect("one"), ["a", "9.0", "2.0", "0.5", "6.5"]);
        assert!(Waits::longest(&[], "a").is_none());
        assert_eq!(Waits::of(&[]).cells("b")[1..5], ["0", "0.00", "0.0", "0.0"]);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn who_sleeps_waits_for_something_else() {
        let sleep = || {
            std::thread::sleep(Duration::from_millis(20));
            Ok::<_, ()>(())
        };
        let ((), took) = Took::of(sleep).expect("it cannot fail");
        assert!(took.scheduled.ran >= 0.0 && took.scheduled.ran < took.ms);
    }
}

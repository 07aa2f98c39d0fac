//! The audit's own test: honest traces that must pass and leaks that must be caught.
//!
//! All traces come from a small simulated Path ORAM that moves only labels. It is seeded, so that
//! the outcome is the same everywhere. Run [`self_test`] before trusting a verdict.
//!
//! The limits of 19,000 accesses: a bias of 0.525 to the left half instead of 0.55 is sometimes
//! missed, so small leaks are planted in longer traces. Under a workload that picks blocks at
//! random, only [`compare`](crate::compare) sees a remap near the old leaf, never the single trace.

mod call_log;
mod case;
mod distortion;
mod paths;
mod recorded;
mod session;
mod sim;
mod volume;
mod workload;

use crate::report::{AuditOptions, AuditVerdict, Report};
use crate::trace::Trace;
use sim::{Flaw, Sim};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

pub use case::{Case, PlantedTrace};
pub use oblivio_splitmix::SplitMix64;
#[cfg(test)]
pub(crate) use session::session_trace;
pub use workload::Workload;

/// Accesses of most traces: few enough for a quick self-test, enough to catch large leaks.
pub const ACCESSES: usize = 19_000;

/// The outcome of one planted case.
#[derive(Clone, Debug)]
pub struct PlantedOutcome {
    /// Its description.
    pub name: &'static str,
    /// Whether it leaks.
    pub leaks: bool,
    /// The audit's report.
    pub report: Report,
}

impl PlantedOutcome {
    /// Whether the audit was right.
    pub fn right(&self) -> bool {
        self.report.verdict == if self.leaks { AuditVerdict::Leak } else { AuditVerdict::Pass }
    }

    /// The tests that raised the alarm.
    pub fn alarms(&self) -> Vec<&str> {
        self.report.findings.iter().filter(|f| !f.passed).map(|f| f.name.as_str()).collect()
    }
}

/// Judges every honest case and every planted leak, on all processors.
pub fn self_test(options: &AuditOptions) -> Vec<PlantedOutcome> {
    let judge = |case: &PlantedTrace| {
        let PlantedTrace { name, leaks, .. } = *case;
        PlantedOutcome { name, leaks, report: case.judge(options) }
    };
    let (next, outcomes) = (AtomicUsize::new(0), Mutex::new(BTreeMap::new()));
    let work = |cases: &[PlantedTrace]| {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(case) = cases.get(at) else { return };
            let outcome = judge(case);
            outcomes.lock().unwrap_or_else(PoisonError::into_inner).insert(at, outcome);
        }
    };
    thread::scope(|scope| {
        let leaks = scope.spawn(planted_leaks);
        let mut cases = honest();
        cases.extend(leaks.join().unwrap_or_default());
        let (cases, work) = (&cases, &work);
        let workers = thread::available_parallelism().map_or(1, usize::from);
        thread::scope(|scope| (0..workers).for_each(|_| drop(scope.spawn(move || work(cases)))));
    });
    outcomes.into_inner().unwrap_or_else(PoisonError::into_inner).into_values().collect()
}

/// A trace of an honest Path ORAM at work.
pub fn honest_trace(workload: Workload, accesses: usize, seed: u64) -> Trace {
    Sim::new(Flaw::None, seed).run(workload, accesses)
}

/// Honest cases: every workload alone and against re-reading one block, batches, and growth.
pub fn honest() -> Vec<PlantedTrace> {
    let trace = |workload, seed| honest_trace(workload, ACCESSES, seed);
    let mut cases = Vec::new();
    for (seed, workload) in (1..).zip(Workload::ALL) {
        cases.push(one(workload.name(), false, trace(workload, seed)));
        let alone = trace(Workload::OneBlock, 100);
        cases.push(pair(workload.name(), false, alone, trace(workload, seed)));
    }
    let batched = Sim::new(Flaw::None, 21).batches(4).run(Workload::OneBlock, ACCESSES);
    cases.push(one("batches of four, one block", false, batched));
    let growing = Sim::new(Flaw::None, 22).growing(4).run(Workload::Uniform, ACCESSES);
    cases.push(one("a growing tree", false, growing));
    cases.extend(volume::cases(false));
    cases.extend(session::cases(false));
    cases.extend(paths::cases(false));
    cases.extend(recorded::cases(false));
    cases
}

/// Leaks that the audit must catch, one idea each.
pub fn planted_leaks() -> Vec<PlantedTrace> {
    use Workload::{Alternating, OneBlock, Sequential, Uniform, Zipf};
    let run = |flaw, workload, seed| Sim::new(flaw, seed).run(workload, ACCESSES);
    let single = |name, flaw, workload, seed| one(name, true, run(flaw, workload, seed));
    let against = |name, flaw, workload, seed| {
        pair(name, true, run(flaw, OneBlock, seed), run(flaw, workload, seed + 1))
    };
    let batched = |flaw| Sim::new(flaw, 60).batches(4).run(OneBlock, ACCESSES);
    let growing = |flaw, seed| Sim::new(flaw, seed).growing(2).run(Uniform, ACCESSES);
    let mut leaks = vec![
        against("demand-driven background eviction", Flaw::DemandEviction, Uniform, 40),
        single("remap to the left half with probability 0.55", Flaw::SkewedRemap, Uniform, 42),
        single("remap to a leaf near the old one", Flaw::NearRemap, OneBlock, 43),
        single("remap near the old one, two blocks", Flaw::NearRemap, Alternating, 44),
        single("remap near the old one, all in turn", Flaw::NearRemap, Sequential, 49),
        against("remap near the old one, against many", Flaw::NearRemap, Zipf, 56),
        single("no remap, one block", Flaw::NoRemap, OneBlock, 45),
        single("no remap, all in turn", Flaw::NoRemap, Sequential, 46),
        single("no remap, any block", Flaw::NoRemap, Uniform, 47),
        against("no remap, one block against many", Flaw::NoRemap, Zipf, 48),
        single("retry reads the same path again", Flaw::RetrySamePath, Uniform, 50),
        single("retry draws a new path, one access more", Flaw::RetryNewPath, Uniform, 51),
        single("early reply without write-back", Flaw::EarlyReply, Uniform, 52),
        single("no dummy on a stash hit", Flaw::EmptyOnHit, OneBlock, 53),
        against("no request on a stash hit", Flaw::SilentOnHit, Uniform, 54),
        one("one block twice in a batch", true, batched(Flaw::SharedBatch)),
        one("growth appends a turn to the old leaf", true, growing(Flaw::GrowthAppends, 61)),
        one("growth keeps the old leaf's number", true, growing(Flaw::GrowthKeeps, 62)),
    ];
    leaks.extend(volume::cases(true));
    leaks.extend(session::cases(true));
    leaks.extend(paths::cases(true));
    leaks.extend(recorded::cases(true));
    leaks
}

fn one(name: &'static str, leaks: bool, trace: Trace) -> PlantedTrace {
    PlantedTrace { name, leaks, case: Case::One(trace) }
}

fn pair(name: &'static str, leaks: bool, a: Trace, b: Trace) -> PlantedTrace {
    PlantedTrace { name, leaks, case: Case::Pair(a, b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::checks::{audit, compare};

    #[test]
    fn honest_cases_pass_and_every_leak_is_caught_for_what_it_is() {
        let expect = [
            ("demand-driven background eviction", "number of accesses"),
            ("remap to the left half with probability 0.55", "leaf uniformity"),
            ("remap to a leaf near the old one", "serial independence"),
            ("retry reads the same path again", "repeats at one distance"),
            ("early reply without write-back", "request shape"),
            ("one block twice in a batch", "repeats within a request"),
            ("an early sync that depends on what was read", "request shapes"),
            ("a sweep when a certain file was opened", "request shapes"),
            ("a deferred write goes with a read of its file", "request shapes"),
            ("a missing dummy in a padded operation", "request shapes"),
            ("a tick that is skipped when there is no work", "constant pace"),
            ("after a commit, a read skipped for a cached block", "request shape"),
            ("after a commit, one write less for reads", "request shape"),
            ("leaves dropped under a lying sweep flag", "request shape"),
            ("a leaf kept during a sweep, the flag lies", "request shape"),
            ("memory that depends on what was read", "request shape"),
            ("a longer round of a sweep for one file", "request shape"),
            ("an entry of the log less for one file", "request shape"),
            ("growth appends a turn to the old leaf", "leaf uniformity, last turns"),
            ("52/48 to the left for a block of half the accesses", "leaf uniformity"),
            ("52/48 in the last turn of a path", "leaf uniformity, last turns"),
            ("2 % repeat a path from 5,000 to 8,000 before", "repeats in a range of distances"),
            ("2 % repeat the path shown 6,000 before", "repeats at one distance"),
            ("2 % repeat a path from 30,000 to 60,000 before", "repeats in a range of distances"),
            ("no dummy for a duplicate within a batch", "number of accesses"),
            ("a duplicate's dummy in the left half", "leaf uniformity"),
            ("no path for an absent block", "number of accesses"),
            ("an absent block's path is always the same", "repeats in a range of distances"),
            ("a delta as long as removed blocks are scattered", "states and commits"),
            ("a delta with the stash as it is", "states and commits"),
            ("a checkpoint with the stash as it is", "states and commits"),
            ("a record a page longer for some content", "records of the journal"),
            ("a record as long as what was written", "request shape"),
            ("a longer intent for some block ids", "records of the journal"),
            ("one file's intent after its reads", "records of the journal"),
            ("ahead of syncs, one file's intent after its reads", "records of the journal"),
            ("a volume that lies about a path", "places at the store"),
            ("a read that the volume does not tell of", "places at the store"),
            ("reads in another order for one file", "places at the store"),
            ("another free place for one file's bucket", "places at the store"),
            ("a hint that depends on what is read", "other calls"),
            ("a scrub that goes on elsewhere for one file", "places at the store"),
            ("a scrub in another order for one file", "places at the store"),
            ("a state read again for one file", "other calls"),
            ("a checkpoint before it is due, for one file", "states and commits"),
            ("two commit records in one place", "states and commits"),
            ("a broken session is not shown again", "shown again after a crash"),
            ("a broken session is shown again as another", "shown again after a crash"),
            ("446 of 447 paths again: the same file", "repeats across sessions"),
            ("every second path of the session before", "repeats across sessions"),
        ];
        let outcomes = self_test(&AuditOptions::default());
        for outcome in &outcomes {
            assert!(outcome.right(), "{}:\n{}", outcome.name, outcome.report);
            assert!(serde_json::to_string(&outcome.report).unwrap().contains("\"verdict\":"));
        }
        let leaks: std::collections::BTreeSet<_> =
            outcomes.iter().filter(|o| o.leaks).map(|o| o.name).collect();
        assert!(leaks.len() >= 55, "each has a name of its own: {}", leaks.len());
        for (name, alarm) in expect {
            let outcome = outcomes.iter().find(|o| o.name == name).expect(name);
            assert!(outcome.alarms().contains(&alarm), "{name}: {:?}", outcome.alarms());
        }
    }

    /// Over many honest traces, small p-values must be no more frequent than they claim.
    #[test]
    fn p_values_keep_their_promise() {
        let runs = 150;
        let mut low = BTreeMap::<String, u32>::new();
        let mut note = |report: Report| {
            for f in report.findings {
                *low.entry(f.name).or_default() += u32::from(f.p_value < 0.02);
            }
        };
        let options = AuditOptions::default();
        for seed in 0..runs {
            let workload = Workload::ALL[seed as usize % Workload::ALL.len()];
            let a = honest_trace(workload, 3000, 1000 + seed);
            let b = honest_trace(Workload::OneBlock, 3000, 5000 + seed);
            note(audit(&a, &options));
            note(compare(&a, &b, &options));
        }
        // 3 of 150 are expected; 15 or more have a probability below 1e-6.
        assert!(low.values().all(|&count| count < 15), "{low:?}");
    }
}

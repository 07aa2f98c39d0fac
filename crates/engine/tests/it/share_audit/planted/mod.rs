//! The judge's own test: a small scribe, honest and with planted leaks, clients and a server that
//! records, in virtual time. It moves places without content. The leaks are planted in what it
//! does, not in what was recorded.

mod flaw;
mod flow;
mod line;
mod scribe;
mod table;

use super::record::{ShareTrace, Truth};
use super::{audit, compare};
use flow::{Plan, run};
use oblivio_audit::{AuditOptions, Report};

pub use flaw::Flaw;
pub use line::Workload;

/// The asks of each of eight clients: enough for the statistics.
const ASKS: u64 = 2_000;
/// Microseconds between two deaths of a scribe, where scribes die. About a hundred in a run.
const KILLS: u64 = 130_000;

/// A case and its reports.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Its description.
    pub name: String,
    /// The leak, if one was planted.
    pub flaw: Option<Flaw>,
    /// Each judges a run, or two against each other.
    pub reports: Vec<Report>,
}

impl Outcome {
    /// Whether the leak was found by the check that must find it; an honest case raises no alarm.
    pub fn right(&self) -> bool {
        let alarms = self.alarms();
        match self.flaw {
            Some(flaw) => alarms.iter().any(|name| name.starts_with(flaw.found_by())),
            None => alarms.is_empty(),
        }
    }

    /// The checks that raised an alarm.
    pub fn alarms(&self) -> Vec<&str> {
        let findings = self.reports.iter().flat_map(|report| &report.findings);
        findings.filter(|finding| !finding.passed).map(|finding| finding.name.as_str()).collect()
    }
}

/// An honest run, and the truth of it.
pub fn honest(workload: Workload, seed: u64, with_kills: bool) -> (ShareTrace, Truth) {
    let kills = with_kills.then_some(KILLS);
    run(Plan { flaw: None, workload, seed, asks: ASKS, kills, quick_merges: false })
}

/// Two runs with the same arrivals, which must be equal but for the partitions shown.
fn pair(flaw: Option<Flaw>, workloads: [Workload; 2], seed: u64) -> [ShareTrace; 2] {
    let made = |workload| {
        let plan = Plan { flaw, workload, seed, asks: ASKS, kills: None, quick_merges: true };
        run(plan).0
    };
    workloads.map(made)
}

/// The cases: each leak under the workload that meets it.
pub fn planted_leaks(seed: u64, options: &AuditOptions) -> Vec<Outcome> {
    let outcome = |flaw: Flaw| {
        let with_kills =
            matches!(flaw, Flaw::OtherFillers | Flaw::NewSlotOnRetry | Flaw::StaleState);
        let workload = match flaw {
            Flaw::FreshPartition => Workload::Quarter,
            Flaw::NoDummy => Workload::OneBlock,
            Flaw::SkippedTurn => Workload::Absent,
            _ => Workload::Uniform,
        };
        let kills = with_kills.then_some(KILLS);
        let plan =
            Plan { flaw: Some(flaw), workload, seed, asks: ASKS, kills, quick_merges: false };
        let (trace, truth) = run(plan);
        let mut reports = vec![audit(&trace, &truth, options)];
        if flaw == Flaw::LateDuplicate {
            let [a, b] = pair(Some(flaw), [Workload::Scan, Workload::OneBlock], seed);
            reports.push(compare(&a, &b, options));
        }
        Outcome { name: flaw.name().into(), flaw: Some(flaw), reports }
    };
    Flaw::ALL.into_iter().map(outcome).collect()
}

/// Honest cases of a seed: each workload alone, with and without deaths, and two against each
/// other with the same arrivals.
pub fn honest_cases(seed: u64, options: &AuditOptions) -> Vec<Outcome> {
    let mut cases = Vec::new();
    for (number, workload) in (0..).zip(Workload::ALL) {
        let seed = seed << 8 | number << 1;
        for with_kills in [false, true] {
            let (trace, truth) = honest(workload, seed | u64::from(with_kills), with_kills);
            let reports = vec![audit(&trace, &truth, options)];
            let deaths = if with_kills { ", scribes die" } else { "" };
            cases.push(Outcome { name: format!("{workload:?}{deaths}"), flaw: None, reports });
        }
        let [a, b] = pair(None, [workload, Workload::OneBlock], seed);
        let reports = vec![compare(&a, &b, options)];
        cases.push(Outcome {
            name: format!("{workload:?} against one block"),
            flaw: None,
            reports,
        });
    }
    cases
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(outcomes: Vec<Outcome>) -> String {
        let text = |outcome: Outcome| {
            let reports: Vec<String> = outcome.reports.iter().map(Report::to_string).collect();
            format!("{}: {:?}\n{}\n", outcome.name, outcome.alarms(), reports.join("\n"))
        };
        outcomes.into_iter().filter(|outcome| !outcome.right()).map(text).collect()
    }

    #[test]
    fn every_planted_leak_is_found() {
        let wrong = wrong(planted_leaks(1, &AuditOptions::default()));
        assert!(wrong.is_empty(), "{wrong}");
    }

    #[test]
    fn honest_runs_raise_no_alarm() {
        let outcomes = honest_cases(1, &AuditOptions::default());
        // Of sixteen partitions, most are among the last hundred.
        let crowded = "S4 repeats in a range of distances";
        let first = outcomes[0].reports.iter().flat_map(|report| &report.findings);
        let unjudged: Vec<String> =
            first.filter(|it| !it.judged && it.name != crowded).map(|it| it.name.clone()).collect();
        let wrong = wrong(outcomes);
        assert!(wrong.is_empty(), "{wrong}");
        assert_eq!(unjudged, [""; 0]);
    }
}

//! An audit's options and its report.

use crate::trace::Trace;
use std::fmt;
use std::sync::Arc;

use serde::Serialize;

/// From the leaves of a request and the depth of the tree: the number of buckets it must read and
/// write.
pub type Expected = Arc<dyn Fn(&[u64], u32) -> (u32, u32) + Send + Sync>;

/// The options of an audit.
#[derive(Clone)]
pub struct AuditOptions {
    /// The greatest probability that the whole audit calls an honest trace a leak.
    pub false_alarm_rate: f64,
    /// The number of accesses in which the window test looks for repeats.
    pub window: usize,
    /// The number of buckets that a request's leaves determine. Without it, every request must have
    /// the same number of leaves, and requests whose paths overlap in the same way must cost the
    /// same. That is right for any cache of whole levels.
    pub expected: Option<Expected>,
}

impl Default for AuditOptions {
    fn default() -> Self {
        AuditOptions { false_alarm_rate: 1e-6, window: 256, expected: None }
    }
}

impl AuditOptions {
    /// The same options, with the number of buckets that a request's leaves determine.
    pub fn expecting(
        mut self,
        expected: impl Fn(&[u64], u32) -> (u32, u32) + Send + Sync + 'static,
    ) -> Self {
        self.expected = Some(Arc::new(expected));
        self
    }
}

impl fmt::Debug for AuditOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("false_alarm_rate", &self.false_alarm_rate)
            .field("window", &self.window)
            .field("expected", &self.expected.is_some())
            .finish()
    }
}

/// The outcome of one test.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// The test's name.
    pub name: String,
    /// Its measured value.
    pub statistic: f64,
    /// The probability of a value at least as odd without a leak; 0 for an impossible one.
    pub p_value: f64,
    /// Whether the p-value is above this test's share of the false-alarm rate.
    pub passed: bool,
    /// Whether there was enough data. An unjudged test counts as passed, but an audit whose first
    /// test is unjudged is no [`AuditVerdict::Pass`].
    pub judged: bool,
    /// A description of the comparison.
    pub explanation: String,
}

/// The result of an audit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum AuditVerdict {
    /// No test found anything.
    Pass,
    /// At least one test did.
    Leak,
    /// No test found anything, but the trace is too short for the statistics.
    TooShort,
}

/// The smallest leak of one kind that an audit finds in nine of ten cases.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Power {
    /// The kind.
    pub name: String,
    /// Its size: a share of the accesses, or of a turn beyond a half.
    pub smallest: f64,
    /// A description.
    pub what: String,
}

/// All findings of an audit, and the verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// One per test.
    pub findings: Vec<Finding>,
    /// The verdict.
    pub verdict: AuditVerdict,
    /// The greatest probability that the whole audit calls an honest trace a leak.
    pub false_alarm_rate: f64,
    /// Judged requests (of both traces, in a comparison).
    pub requests: usize,
    /// Their paths.
    pub accesses: usize,
    /// The smallest leaks it could have found; empty for a short trace.
    pub power: Vec<Power>,
}

impl Finding {
    /// A judged test. [`Report::new`] decides whether it passed.
    pub fn new(name: &str, statistic: f64, p_value: f64, explanation: String) -> Finding {
        // A p-value that is not a number comes from a broken test; it must not pass.
        let p_value = if p_value.is_nan() { 0.0 } else { p_value.clamp(0.0, 1.0) };
        let name = name.into();
        Finding { name, statistic, p_value, passed: true, judged: true, explanation }
    }

    /// A test of a property that always holds without a leak.
    pub fn exact(name: &str, deviations: usize, explanation: String) -> Finding {
        let p = if deviations == 0 { 1.0 } else { 0.0 };
        Finding::new(name, deviations as f64, p, explanation)
    }

    /// As [`Self::exact`], for an existing report.
    pub fn judged_exactly(name: &str, deviations: usize, explanation: String) -> Finding {
        Finding { passed: deviations == 0, ..Finding::exact(name, deviations, explanation) }
    }

    /// A test with too little data.
    pub fn unjudged(name: &str, why: &str) -> Finding {
        Finding { judged: false, ..Finding::new(name, 0.0, 1.0, format!("not judged: {why}")) }
    }

    /// A report of this finding only.
    pub(crate) fn alone(self, trace: &Trace, options: &AuditOptions) -> Report {
        let (name, size) = (self.name.clone(), (trace.requests.len(), trace.accesses()));
        Report::new(vec![self], options, size, &name)
    }

    fn word(&self) -> &'static str {
        match (self.judged, self.passed) {
            (false, _) => "-",
            (true, true) => "ok",
            (true, false) => "LEAK",
        }
    }
}

impl Report {
    /// Splits the false-alarm rate over the findings and reaches the verdict. Without a judgement
    /// of the finding of the name `essential` there is none.
    pub fn new(
        mut findings: Vec<Finding>,
        options: &AuditOptions,
        (requests, accesses): (usize, usize),
        essential: &str,
    ) -> Report {
        let share = options.false_alarm_rate / findings.len().max(1) as f64;
        for finding in &mut findings {
            // Strictly above zero, so that the impossible is a leak at any rate.
            finding.passed = finding.p_value > 0.0 && finding.p_value >= share;
        }
        let leak = findings.iter().any(|f| !f.passed);
        let judged = findings.iter().any(|f| f.judged && f.name == essential);
        let verdict = match (leak, judged) {
            (true, _) => AuditVerdict::Leak,
            (false, true) => AuditVerdict::Pass,
            (false, false) => AuditVerdict::TooShort,
        };
        let false_alarm_rate = options.false_alarm_rate;
        Report { findings, verdict, false_alarm_rate, requests, accesses, power: Vec::new() }
    }

    /// Whether the verdict is [`AuditVerdict::Pass`].
    pub fn passed(&self) -> bool {
        self.verdict == AuditVerdict::Pass
    }

    /// The finding of this name.
    pub fn finding(&self, name: &str) -> Option<&Finding> {
        self.findings.iter().find(|f| f.name == name)
    }
}

impl fmt::Display for AuditVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AuditVerdict::Pass => "PASS",
            AuditVerdict::Leak => "LEAK",
            AuditVerdict::TooShort => "TOO SHORT TO JUDGE",
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.findings.iter().map(|x| x.name.len()).max().unwrap_or(0).max(4);
        writeln!(f, "{} requests, {} accesses", self.requests, self.accesses)?;
        writeln!(f, "{:width$}  {:>11}  {:>8}  {:4}  what was seen", "test", "statistic", "p", "")?;
        for x in &self.findings {
            write!(f, "{:width$}  {:>11}  ", x.name, short(x.statistic))?;
            writeln!(f, "{:>8}  {:4}  {}", probability(x.p_value), x.word(), x.explanation)?;
        }
        let tests = self.findings.len();
        let share = probability(self.false_alarm_rate / tests.max(1) as f64);
        let rate = probability(self.false_alarm_rate);
        writeln!(f, "verdict: {}", self.verdict)?;
        writeln!(f, "false-alarm rate {rate} for the whole, {share} for each of {tests} tests.")?;
        if !self.power.is_empty() {
            writeln!(f, "In 9 of 10 cases it could have found, beside what is exact:")?;
        }
        for power in &self.power {
            writeln!(f, "  {}", power.what)?;
        }
        write!(f, "Timing is not judged.")
    }
}

fn short(x: f64) -> String {
    if x == x.trunc() && x.abs() < 1e9 { format!("{x}") } else { format!("{x:.3}") }
}

fn probability(p: f64) -> String {
    if p == 0.0 || (0.001..=1.0).contains(&p) {
        short(p)
    } else {
        format!("{p:.1e}").replace(".0e", "e")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(findings: Vec<Finding>) -> Report {
        Report::new(findings, &AuditOptions::default(), (2, 3), "a")
    }

    #[test]
    fn the_rate_is_split_over_the_tests() {
        let finding = |p| Finding::new("a", 1.5, p, String::new());
        assert_eq!(report(vec![finding(0.9e-6)]).verdict, AuditVerdict::Leak);
        assert_eq!(report(vec![finding(0.6e-6), finding(1.0)]).verdict, AuditVerdict::Pass);
        assert_eq!(report(vec![finding(0.4e-6), finding(1.0)]).verdict, AuditVerdict::Leak);
        assert_eq!(report(vec![finding(f64::NAN)]).verdict, AuditVerdict::Leak);
    }

    #[test]
    fn what_was_not_judged_is_no_pass() {
        assert_eq!(report(vec![Finding::unjudged("a", "")]).verdict, AuditVerdict::TooShort);
        assert_eq!(report(Vec::new()).verdict, AuditVerdict::TooShort);
    }

    #[test]
    fn the_table_states_rate_and_scope() {
        let text = report(vec![Finding::exact("a", 2, "two of two".into())]).to_string();
        assert!(text.contains("LEAK") && text.contains("1e-6"), "{text}");
        assert!(text.contains("Timing is not judged"), "{text}");
    }
}

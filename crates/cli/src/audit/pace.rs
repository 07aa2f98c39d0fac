//! Whether a trace recorded with `--pace` kept to it.

use crate::open;
use oblivio_audit::{AuditVerdict, Report, Trace, judge_pace};

/// Adds the finding about times to a report.
pub fn add(report: &mut Report, trace: &Trace, rate: u32) {
    let pace = open::pace(rate);
    let finding = judge_pace(trace, pace.interval, pace.batch);
    if !finding.passed {
        report.verdict = AuditVerdict::Leak;
    }
    report.findings.push(finding);
}

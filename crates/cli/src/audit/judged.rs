//! Judgements, and the verdict that they give together.

use oblivio_audit::schedule::PublicFact;
use oblivio_audit::{AuditVerdict, Report};

/// One judgement and its subject.
pub struct Judged {
    pub what: String,
    pub report: Report,
    /// For two traces: what the contract lets the storage see.
    pub seen: Vec<PublicFact>,
}

impl Judged {
    /// One without anything to compare.
    pub fn new(what: impl Into<String>, report: Report) -> Self {
        Self { what: what.into(), report, seen: Vec::new() }
    }
}

/// A leak in any of them is a leak of all; so is a trace that is too short.
pub fn verdict(judged: &[Judged]) -> AuditVerdict {
    let any = |verdict| judged.iter().any(|one| one.report.verdict == verdict);
    match (any(AuditVerdict::Leak), any(AuditVerdict::TooShort)) {
        (true, _) => AuditVerdict::Leak,
        (false, true) => AuditVerdict::TooShort,
        (false, false) => AuditVerdict::Pass,
    }
}

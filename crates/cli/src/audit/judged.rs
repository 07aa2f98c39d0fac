//! Judgements, and the verdict that they give together.

use oblivio_audit::schedule::Seen;
use oblivio_audit::{Report, Verdict};

/// One judgement and its subject.
pub struct Judged {
    pub what: String,
    pub report: Report,
    /// For two traces: what the contract lets the storage see.
    pub seen: Vec<Seen>,
}

impl Judged {
    /// One without anything to compare.
    pub fn new(what: impl Into<String>, report: Report) -> Self {
        Self { what: what.into(), report, seen: Vec::new() }
    }
}

/// A leak in any of them is a leak of all; so is a trace that is too short.
pub fn verdict(judged: &[Judged]) -> Verdict {
    let any = |verdict| judged.iter().any(|one| one.report.verdict == verdict);
    match (any(Verdict::Leak), any(Verdict::TooShort)) {
        (true, _) => Verdict::Leak,
        (false, true) => Verdict::TooShort,
        (false, false) => Verdict::Pass,
    }
}

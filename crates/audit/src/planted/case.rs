//! What is judged in the self-test: traces and records, known to leak or not.

use crate::checks::{audit, compare, judge_pace};
use crate::observer::{compare_where, judge_records, sight_of};
use crate::record::RecordLine;
use crate::report::{AuditOptions, Report};
use crate::schedule;
use crate::trace::Trace;
use std::time::Duration;

/// The audit's input.
#[derive(Clone, Debug)]
pub enum Case {
    /// A single trace, for [`audit`].
    One(Trace),
    /// A recorded session of a volume, for [`schedule::judge`].
    Session(Trace),
    /// Traces of two workloads, for [`compare`].
    Pair(Trace, Trace),
    /// A record of sessions, call by call, for [`judge_records`].
    Record(Vec<RecordLine>),
    /// Records of two sessions, which must not repeat each other.
    Against(Vec<RecordLine>, Vec<RecordLine>),
    /// A trace at a pace of a number of accesses per interval, for [`judge_pace`].
    Paced(Trace, Duration, usize),
}

/// A trace, or two, known to leak or not.
#[derive(Clone, Debug)]
pub struct PlantedTrace {
    /// Its description.
    pub name: &'static str,
    /// Whether it leaks.
    pub leaks: bool,
    /// The audit's input.
    pub case: Case,
}

impl PlantedTrace {
    /// Runs the audit on it.
    pub fn judge(&self, options: &AuditOptions) -> Report {
        match &self.case {
            Case::One(trace) => audit(trace, options),
            Case::Session(trace) => schedule::judge(trace, None, options.false_alarm_rate),
            Case::Pair(a, b) => compare(a, b, options),
            Case::Record(lines) => judge_records(&sight_of(lines), options.false_alarm_rate),
            Case::Against(a, b) => {
                compare_where(&sight_of(a), &sight_of(b), options.false_alarm_rate)
            }
            Case::Paced(trace, interval, batch) => {
                judge_pace(trace, *interval, *batch).alone(trace, options)
            }
        }
    }
}

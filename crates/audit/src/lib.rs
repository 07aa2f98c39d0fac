//! Judges an adversary's view of a tree ORAM, and draws it.
//!
//! Data in, verdict out. A [`record`] holds every call of a store. [`observer`] makes a [`Trace`]
//! of it, the storage's view, and checks each call against the public rule. [`audit`] asks whether
//! any workload at all could have made it. [`compare`] asks whether two workloads of equal length
//! can be distinguished. Every test states a p-value. The whole audit raises a false alarm with at
//! most the probability in [`AuditOptions::false_alarm_rate`], split over its tests by Bonferroni's
//! inequality.
//!
//! **Timing is not judged.** The times of requests, and the gaps between them, are not part of a
//! trace. Neither is the number of requests in a single trace: it is public by contract. Only
//! [`compare`] can see that it follows from the workload.
//!
//! The tests are themselves tested: [`planted`] holds a small simulated ORAM, honest and with
//! planted leaks, and [`planted::self_test`] shows that every leak is caught.
//!
//! It must not know stores, volumes or keys: a record is text, and the rule of a volume is a few
//! public facts.
//!
//! The ten types that matter most:
//!
//! | type | what it is |
//! |---|---|
//! | `record::RecordedCall`, `record::RecordLine` | what a store saw, call by call |
//! | `Trace`, `TraceRequest`, `TraceRule` | the storage's view of it, and what it must follow |
//! | `AuditOptions`, `Expected` | how sure a verdict is, and what the traces should be |
//! | `Report`, `Finding`, `AuditVerdict`, `Power` | what was tested and found, and what could be |
//! | `planted::Case` | what the tests are tested with |
#![cfg_attr(test, allow(clippy::disallowed_methods, clippy::unwrap_used, reason = "tests"))]

pub mod checks;
pub mod observer;
pub mod online;
pub mod picture;
pub mod planted;
pub mod record;
mod report;
pub mod schedule;
pub mod special;
pub mod trace;

pub use checks::{audit, compare, compare_places, judge_pace, union_of_paths};
pub use report::{AuditOptions, AuditVerdict, Expected, Finding, Power, Report};
pub use trace::{
    MAX_DEPTH, RequestKind, Trace, TraceLogRule, TraceRequest, TraceRule, TraceWindowRule,
};

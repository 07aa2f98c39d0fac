//! The facts that the contract lets the storage see, and whether two traces differ in them.
//!
//! Two pieces of work may differ in all of this without a leak, because it is public. But a
//! comparison of two traces must report it, since it distinguishes them.

use crate::trace::{RequestKind, Trace, TraceRequest};
use serde::Serialize;
use std::fmt::Debug;

/// One public fact about two traces.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PublicFact {
    /// Its name.
    pub name: &'static str,
    /// Whether the traces differ in it.
    pub differs: bool,
    /// The numbers.
    pub explanation: String,
}

/// Compares the public facts of two traces: the number of accesses, their grouping, the order of
/// events, syncs, commits, maintenance, and the size of the tree.
pub fn contrast(a: &Trace, b: &Trace) -> Vec<PublicFact> {
    vec![
        accesses(a, b),
        seen("grouping", "batches", [a, b].map(|trace| of(trace, RequestKind::Batch, wanted))),
        seen("map", "batches of the map", [a, b].map(|trace| of(trace, RequestKind::Map, wanted))),
        seen("order", "requests", [a, b].map(|trace| trace.requests.iter().map(word).collect())),
        seen("syncs", "syncs", [a, b].map(|t| of(t, RequestKind::Sync, |r| r.bytes_written))),
        seen("commits", "commits", [a, b].map(|trace| of(trace, RequestKind::Commit, |_| ()))),
        seen(
            "maintenance",
            "rounds",
            [a, b].map(|t| of(t, RequestKind::Maintenance, |r| r.scheduled)),
        ),
        seen("size", "changes", [a, b].map(sizes)),
    ]
}

/// The paths that an access drew.
fn wanted(request: &TraceRequest) -> usize {
    request.parts().0.len()
}

fn accesses(a: &Trace, b: &Trace) -> PublicFact {
    let count = |trace: &Trace| trace.requests.iter().map(wanted).sum::<usize>();
    let (a, b) = (count(a), count(b));
    let explanation = if a == b { format!("{a} in both") } else { format!("{a} against {b}") };
    PublicFact { name: "accesses", differs: a != b, explanation }
}

fn of<T>(trace: &Trace, kind: RequestKind, what: impl Fn(&TraceRequest) -> T) -> Vec<T> {
    trace.requests.iter().filter(|request| request.kind == kind).map(what).collect()
}

fn word(request: &TraceRequest) -> &'static str {
    match request.kind {
        RequestKind::Batch => "a batch",
        RequestKind::Map => "paths of the map",
        RequestKind::Maintenance => "maintenance",
        RequestKind::Repair => "a repair",
        RequestKind::Sync => "a sync",
        RequestKind::Flush => "a part of a commit",
        RequestKind::Commit => "a commit",
        RequestKind::Rule => "a rule",
    }
}

/// The depths of the tree, and the shapes for its size class, in order.
fn sizes(trace: &Trace) -> Vec<(u32, Option<(u32, u32)>)> {
    let floor =
        |request: &TraceRequest| request.rule.as_ref().map(|rule| (rule.floor, rule.floor_slots));
    let mut sizes: Vec<_> = trace.requests.iter().map(|r| (r.depth, floor(r))).collect();
    // The floor stays between two rules.
    let mut last = None;
    for size in &mut sizes {
        last = size.1.or(last);
        size.1 = last;
    }
    sizes.dedup();
    sizes
}

fn seen<T: PartialEq + Debug>(name: &'static str, what: &str, [a, b]: [Vec<T>; 2]) -> PublicFact {
    let explanation = match a.iter().zip(&b).position(|(x, y)| x != y) {
        None if a.len() == b.len() => format!("{} {what} in both", a.len()),
        None => format!("{} {what} against {}", a.len(), b.len()),
        Some(at) => {
            let (counts, at_most) = ((a.len(), b.len()), at + 1);
            let numbers = format!("{} {what} against {}", counts.0, counts.1);
            format!("{numbers}, number {at_most} is {:?} against {:?}", a[at], b[at])
        }
    };
    PublicFact { name, differs: a != b, explanation }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::TraceRule;

    fn batch(drawn: usize) -> TraceRequest {
        let leaves = vec![1, 2, 3, 4, 5][..drawn + 1].to_vec();
        TraceRequest { leaves, scheduled: 1, depth: 4, reads: 9, ..TraceRequest::default() }
    }

    fn other(kind: RequestKind, scheduled: usize, bytes_written: u64) -> TraceRequest {
        let leaves = vec![0; scheduled];
        TraceRequest { kind, leaves, scheduled, bytes_written, depth: 4, ..TraceRequest::default() }
    }

    fn rule(floor: u32) -> TraceRequest {
        let rule = Some(TraceRule { floor, ..TraceRule::default() });
        TraceRequest { kind: RequestKind::Rule, depth: 4, rule, ..TraceRequest::default() }
    }

    fn trace(requests: Vec<TraceRequest>) -> Trace {
        Trace { depth: 4, requests }
    }

    fn work() -> Vec<TraceRequest> {
        let sync = other(RequestKind::Sync, 0, 20 << 10);
        let round = other(RequestKind::Maintenance, 2, 0);
        let commit = other(RequestKind::Commit, 0, 0);
        let map = TraceRequest { kind: RequestKind::Map, ..batch(1) };
        vec![rule(4), batch(3), map, batch(2), sync, round, batch(1), commit, batch(4)]
    }

    /// The names of the differences after a change of the work.
    fn differing(change: impl FnOnce(&mut Vec<TraceRequest>)) -> Vec<&'static str> {
        let mut changed = work();
        change(&mut changed);
        let seen = contrast(&trace(work()), &trace(changed));
        seen.into_iter().filter(|one| one.differs).map(|one| one.name).collect()
    }

    #[test]
    fn each_thing_that_differs_is_named() {
        assert!(differing(|_| ()).is_empty());
        assert_eq!(differing(|r| r.insert(1, batch(1))), ["accesses", "grouping", "order"]);
        assert_eq!(differing(|r| (r[1], r[3]) = (batch(2), batch(3))), ["grouping"]);
        assert_eq!(differing(|r| r.swap(3, 4)), ["order"]);
        assert_eq!(differing(|r| r[4].bytes_written = 24 << 10), ["syncs"]);
        assert_eq!(differing(|r| drop(r.remove(4))), ["order", "syncs"]);
        assert_eq!(differing(|r| drop(r.remove(7))), ["order", "commits"]);
        assert_eq!(differing(|r| drop(r.remove(5))), ["order", "maintenance"]);
        assert_eq!(differing(|r| r[5] = other(RequestKind::Maintenance, 4, 0)), ["maintenance"]);
        assert_eq!(differing(|r| r[0] = rule(3)), ["size"]);
        assert_eq!(differing(|r| r[2].leaves.push(7)), ["accesses", "map"]);
    }

    /// What follows from drawn leaves reveals nothing about the work.
    #[test]
    fn other_leaves_and_their_costs_are_no_difference() {
        assert!(differing(|r| (r[1].leaves[0], r[1].reads) = (9, 11)).is_empty());
    }

    /// For equal amounts of work, a difference in any of these is a leak.
    #[test]
    fn for_equal_work_each_is_a_leak() {
        let leaks = |change: fn(&mut Vec<TraceRequest>)| {
            let mut changed = work();
            change(&mut changed);
            let long = |mut work: Vec<TraceRequest>| {
                work.extend(
                    (0..100).map(|leaf| TraceRequest { leaves: vec![leaf % 16], ..batch(1) }),
                );
                trace(work)
            };
            let report = crate::schedule::compare(&long(work()), &long(changed), 1e-6);
            report.verdict == crate::AuditVerdict::Leak
        };
        assert!(!leaks(|_| ()));
        assert!(leaks(|r| (r[1], r[3]) = (batch(2), batch(3))));
        assert!(leaks(|r| r.swap(3, 4)));
        assert!(leaks(|r| r[4].bytes_written = 24 << 10));
        assert!(leaks(|r| r[7].kind = RequestKind::Sync));
        assert!(leaks(|r| r[5] = other(RequestKind::Maintenance, 4, 0)));
        assert!(leaks(|r| r[0] = rule(3)));
    }
}

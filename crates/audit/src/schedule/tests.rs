//! Sessions with one fault.

use super::*;
use crate::planted::session_trace;
use crate::trace::TraceRule;

fn verdict(trace: &Trace) -> AuditVerdict {
    judge(trace, None, 1e-6).verdict
}

/// The session with one request changed: the last that `which` picks.
fn changed(which: fn(&TraceRequest) -> bool, change: fn(&mut TraceRequest)) -> AuditVerdict {
    let mut trace = session_trace();
    change(trace.requests.iter_mut().rev().find(|r| which(r)).expect("there is one"));
    verdict(&trace)
}

fn is_batch(request: &TraceRequest) -> bool {
    request.kind == RequestKind::Batch && request.scheduled > 0
}

#[test]
fn an_honest_session_passes_and_has_all_in_it() {
    let honest = session_trace();
    assert_eq!(verdict(&honest), AuditVerdict::Pass);
    let depths = |trace: &Trace| trace.requests.iter().map(|r| r.depth).collect::<Vec<_>>();
    let (depths, first) = (depths(&honest), honest.depth);
    assert!(depths.iter().any(|&depth| depth > first), "it grew");
    assert_eq!(depths.last(), Some(&first), "it became smaller again");
    assert!(honest.requests.iter().filter(|r| r.kind == RequestKind::Commit).count() > 20);
    assert_eq!(compare(&honest, &honest, 1e-6).verdict, AuditVerdict::Pass);
    assert_eq!(compare_accesses(&honest, &honest, 1e-6).verdict, AuditVerdict::Pass);
}

#[test]
fn any_cost_that_does_not_follow_is_seen_to_the_end() {
    assert_eq!(changed(is_batch, |r| r.reads += 1), AuditVerdict::Leak);
    assert_eq!(changed(is_batch, |r| r.reads -= 1), AuditVerdict::Leak);
    assert_eq!(changed(is_batch, |r| r.writes -= 1), AuditVerdict::Leak);
    assert_eq!(changed(|r| r.kind == RequestKind::Commit, |r| r.writes -= 1), AuditVerdict::Leak);
    assert_eq!(changed(|r| r.kind == RequestKind::Commit, |r| r.reads += 1), AuditVerdict::Leak);
}

#[test]
fn a_part_of_a_commit_is_whole_and_shows_no_path() {
    let is_part = |r: &TraceRequest| r.kind == RequestKind::Flush;
    assert!(session_trace().requests.iter().filter(|r| is_part(r)).count() > 5);
    assert_eq!(changed(is_part, |r| r.writes -= 1), AuditVerdict::Leak);
    assert_eq!(changed(is_part, |r| r.bytes_written += 1), AuditVerdict::Leak);
    assert_eq!(changed(is_part, |r| r.leaves.push(0)), AuditVerdict::Leak);
    // One at a time when a commit itself writes no more.
    let mut trace = session_trace();
    let at = trace.requests.iter().rposition(is_part).expect("a part");
    let twice = trace.requests[at].clone();
    trace.requests.insert(at + 1, twice);
    assert_eq!(verdict(&trace), AuditVerdict::Leak);
}

#[test]
fn a_sweep_that_lies_is_seen() {
    assert_eq!(changed(is_batch, |r| r.sweep = true), AuditVerdict::Leak);
    assert_eq!(changed(|r| is_batch(r) && r.sweep, |r| r.sweep = false), AuditVerdict::Leak);
    // A round left out completely.
    let mut trace = session_trace();
    let rounds = |r: &TraceRequest| r.kind == RequestKind::Maintenance;
    let at = trace.requests.iter().position(rounds).expect("a round");
    trace.requests.remove(at);
    assert_eq!(verdict(&trace), AuditVerdict::Leak);
}

#[test]
fn a_rule_that_changes_when_it_may_not_is_seen() {
    let is_rule = |r: &TraceRequest| r.kind == RequestKind::Rule;
    assert_eq!(changed(is_rule, |r| rule_of(r).cached += 1), AuditVerdict::Leak);
    assert_eq!(changed(is_rule, |r| rule_of(r).flush_at += 1), AuditVerdict::Leak);
    assert_eq!(changed(is_rule, |r| rule_of(r).blocks /= 2), AuditVerdict::Leak);
    assert_eq!(changed(is_rule, |r| r.rule = None), AuditVerdict::Leak);
    let mut trace = session_trace();
    let first = trace.requests.iter_mut().filter(|r| is_rule(r)).nth(1).expect("a commit's");
    rule_of(first).floor -= 1;
    assert_eq!(verdict(&trace), AuditVerdict::Leak, "it does not sweep as it says");
    let mut trace = session_trace();
    trace.requests.remove(0);
    assert_eq!(verdict(&trace), AuditVerdict::Leak, "nothing says what was stored");
}

fn rule_of(request: &mut TraceRequest) -> &mut TraceRule {
    request.rule.as_mut().expect("a rule")
}

#[test]
fn a_path_out_of_turn_is_seen() {
    for kind in [RequestKind::Batch, RequestKind::Maintenance] {
        let mut odd = session_trace();
        let due = |r: &&mut TraceRequest| r.kind == kind && r.scheduled > 0;
        let request = odd.requests.iter_mut().rev().find(due).expect("a rewrite");
        *request.leaves.last_mut().expect("a path") ^= 1;
        assert_eq!(verdict(&odd), AuditVerdict::Leak);
    }
}

#[test]
fn a_schedule_that_waits_is_seen() {
    let mut odd = session_trace();
    let due = |r: &TraceRequest| r.kind == RequestKind::Batch && r.scheduled == 1;
    let at = odd.requests.iter().position(due).expect("a rewrite");
    let late = odd.requests[at].leaves.pop().expect("a path");
    odd.requests[at].scheduled = 0;
    odd.requests[at + 1].leaves.push(late);
    odd.requests[at + 1].scheduled += 1;
    assert!(!(0..3).any(|phase| is_due(&odd, 3, phase)));
    assert_eq!(verdict(&odd), AuditVerdict::Leak);
}

#[test]
fn an_access_in_a_round_of_maintenance_is_seen() {
    let round = |r: &TraceRequest| r.kind == RequestKind::Maintenance;
    assert_eq!(changed(round, |r| r.leaves.insert(0, 5)), AuditVerdict::Leak);
}

#[test]
fn a_record_of_no_size_class_is_seen() {
    let record = |bytes_written| {
        let mut trace = session_trace();
        let depth = trace.requests.last().expect("a request").depth;
        let sync = TraceRequest {
            kind: RequestKind::Sync,
            depth,
            bytes_written,
            ..TraceRequest::default()
        };
        trace.requests.push(sync);
        verdict(&trace)
    };
    for bytes in [20 << 10, 32 << 10, 36 << 10, 40 << 10, 5 << 20] {
        let right = bytes != 36 << 10;
        assert_eq!(record(bytes) == AuditVerdict::Pass, right, "{bytes}");
    }
    assert_eq!(record(16 << 10), AuditVerdict::Leak);
    assert_eq!(record(20_500), AuditVerdict::Leak);
}

#[test]
fn what_came_before_is_needed_and_used() {
    let whole = session_trace();
    let (before, after) = whole.requests.split_at(whole.requests.len() / 2);
    let part =
        |requests: &[TraceRequest]| Trace { depth: requests[0].depth, requests: requests.to_vec() };
    assert_eq!(judge(&part(after), Some(&part(before)), 1e-6).verdict, AuditVerdict::Pass);
    assert_eq!(judge(&part(after), None, 1e-6).verdict, AuditVerdict::Leak);
}

#[test]
fn odd_numbers_do_no_harm() {
    let rule =
        TraceRule { stored: Some(vec![(1, u64::MAX - 1)]), floor: 63, ..TraceRule::default() };
    let start = TraceRequest {
        kind: RequestKind::Rule,
        depth: 63,
        rule: Some(rule),
        ..TraceRequest::default()
    };
    let swept = TraceRequest {
        kind: RequestKind::Maintenance,
        leaves: vec![0],
        scheduled: 1,
        ..start.clone()
    };
    for floor in [0, 62, 63] {
        let mut trace = Trace { depth: 63, requests: vec![start.clone(), swept.clone()] };
        rule_of(&mut trace.requests[0]).floor = floor;
        rule_of(&mut trace.requests[0]).swept = u64::MAX;
        judge(&trace, None, 1e-6);
    }
}

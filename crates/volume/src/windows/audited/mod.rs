//! The audit of what an online store sees: honest volumes pass, and each of the leaks that only
//! such stores make possible is found. `just audit-online` has the long form.

mod leaky;
mod recorded;
mod run;
mod truth;

use super::planted::{Leak, PLANTED};
use leaky::Wrong;
use oblivio_audit::{AuditVerdict, Report};
use oblivio_testkit::campaign::{scaled, seed};
use run::{Odd, Plan, WAYS, Way, judged};

/// The least p-value of a report.
fn least(report: &Report) -> f64 {
    report.findings.iter().map(|finding| finding.p_value).fold(1.0, f64::min)
}

#[test]
fn honest_runs_raise_no_alarm() {
    let accesses = scaled(3000);
    for run in 0..6 {
        let way = WAYS[run as usize % WAYS.len()];
        let plan = Plan {
            faults: run % 3 == 1,
            sleeps: run % 2 == 1,
            cache: if run % 4 >= 2 { 40 << 10 } else { 0 },
            ..Plan::new(way, seed(1) + run, accesses)
        };
        let report = judged(plan);
        eprintln!(
            "run {run}: {way:?}, {} requests, {} accesses, least p {:.3}",
            report.requests,
            report.accesses,
            least(&report)
        );
        assert_eq!(report.verdict, AuditVerdict::Pass, "{plan:?}\n{report}");
    }
}

/// Sessions that are cut off at any request. The next one shows again what had been shown, and
/// beside that no path comes again more often than chance has it.
#[test]
fn take_overs_show_nothing_again_but_what_was_shown() {
    let sessions = scaled(60);
    // Each makes some twenty accesses before it is cut off.
    let plan = Plan { session: Some(60), kills: true, ..Plan::new(Way::Any, 5, sessions * 20) };
    let report = judged(plan);
    eprintln!("{}", report.finding("shown again").expect("of the judge").explanation);
    assert_eq!(report.verdict, AuditVerdict::Pass, "{report}");
}

/// A leak, the plan that shows it, and the test that must find it.
struct Planted {
    name: &'static str,
    plan: Plan,
    leak: Option<Leak>,
    found_by: &'static str,
}

/// Those of the table in docs/audits.md, but for the one that no trace of objects shows: the agent.
fn all() -> Vec<Planted> {
    let accesses = 1500;
    let plan = |way| Plan::new(way, 77, accesses);
    let wrong = |name, way, wrong, found_by| {
        let plan = Plan { wrong: Some(wrong), session: None, ..plan(way) };
        Planted { name, plan, leak: None, found_by }
    };
    let failing = |name, of, found_by| {
        let plan = Plan { wrong: Some(of), faults: true, session: None, ..plan(Way::Batches) };
        Planted { name, plan, leak: None, found_by }
    };
    let odd = |name, odd, found_by| {
        let plan = Plan { odd: Some(odd), session: None, ..plan(Way::Any) };
        Planted { name, plan, leak: None, found_by }
    };
    vec![
        wrong("puts of changed buckets only", Way::Any, Wrong::ChangedBucketsOnly, "reads"),
        wrong("names from content", Way::Any, Wrong::NamesFromContent, "windows"),
        wrong("a cache kept by use", Way::FewOften, Wrong::CacheByUse, "reads"),
        wrong("no get on a hit", Way::FewOften, Wrong::NoGetOnAHit, "reads"),
        wrong("shorter ranges for absent blocks", Way::Absent, Wrong::ShortForAbsent, "reads"),
        wrong("a part as long as what lives", Way::Any, Wrong::PartsOfWhatLives, "parts"),
        failing("a retry that draws a new path", Wrong::RetryOnAnotherPath, "retries"),
        failing("batch size changed by errors", Wrong::SmallerAfterErrors, "reads"),
        wrong("hedged reads", Way::Any, Wrong::Hedged, "reads"),
        wrong("as many at once as real", Way::Batches, Wrong::AsManyAtOnceAsReal, "reads"),
        odd("a sync that ends its window early", Odd::WindowAtSync, "windows"),
        wrong("a prefetch when the stash is full", Way::Any, Wrong::PrefetchWhenFull, "reads"),
        wrong("deletes of what is dead", Way::Any, Wrong::DeletesTheDead, "pointers and deletions"),
        Planted {
            name: "an opening without a replay",
            plan: Plan { session: Some(60), kills: true, ..plan(Way::Any) },
            leak: Some(Leak::NoReplay),
            found_by: "shown again",
        },
        Planted {
            name: "a sleeper that reads on",
            plan: Plan { sleeps: true, ..plan(Way::Any) },
            leak: Some(Leak::SleepsOn),
            found_by: "looks",
        },
        wrong("parts in pieces when large", Way::Any, Wrong::InPiecesWhenLarge, "other calls"),
        wrong("a hint of what is dead", Way::Any, Wrong::HintOfTheDead, "entries"),
        odd("a beat only while dirty", Odd::BeatWhileDirty, "entries"),
    ]
}

#[test]
fn every_planted_leak_is_found() {
    let leaks = all();
    assert_eq!(leaks.len(), 18, "the agent is the nineteenth");
    let (mut missed, mut honest_ones) = (Vec::new(), Vec::new());
    for Planted { name, plan, leak, found_by } in leaks {
        // The same without the leak.
        let honest = Plan { wrong: None, odd: None, ..plan };
        if !honest_ones.contains(&honest) {
            let report = judged(honest);
            assert_eq!(report.verdict, AuditVerdict::Pass, "{name}: without it\n{report}");
            honest_ones.push(honest);
        }
        PLANTED.set(leak);
        let report = judged(plan);
        PLANTED.set(None);
        let found: Vec<&str> = report
            .findings
            .iter()
            .filter(|finding| !finding.passed)
            .map(|finding| finding.name.as_str())
            .collect();
        eprintln!("{name}: found by {}", found.join(", "));
        assert_eq!(report.verdict, AuditVerdict::Leak, "{name}: not found\n{report}");
        let finding = report.finding(found_by).expect("of the judge");
        if finding.passed || finding.p_value >= 1e-6 {
            missed.push(format!("{name}: not by {found_by}, but by {found:?}"));
        }
    }
    assert!(missed.is_empty(), "{missed:#?}");
}

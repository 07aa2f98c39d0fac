//! `audit`: could the storage tell what was done?

mod against;
mod judged;
mod pace;
#[cfg(test)]
mod sessions;
mod workloads;

use crate::args::AuditArgs;
use crate::exit::{Code, fault, usage};
use crate::human::{self, say, say_json};
use crate::progress::Progress;
use anyhow::{Context, Result};
use judged::{Judged, verdict};
use oblivio_audit::observer::{self, Observer, TraceObserver};
use oblivio_audit::picture::{self, EXPOSED, Panel};
use oblivio_audit::planted::{SplitMix64, Workload, self_test};
use oblivio_audit::record::Lines;
use oblivio_audit::schedule;
use oblivio_audit::{AuditOptions, AuditVerdict, Trace};
use serde_json::{Value, json};
use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use workloads::{Mixed, Worked};

/// Accesses drawn; more would only blacken the picture.
const DRAWN: usize = 3000;

/// Runs the command.
pub fn run(args: &AuditArgs) -> Result<()> {
    if !(args.false_alarm_rate > 0.0 && args.false_alarm_rate < 1.0) {
        return Err(usage("a false-alarm rate lies between 0 and 1", "Try 1e-6."));
    }
    let tested = args.self_test.then(|| test_the_audit(args)).transpose()?;
    let judged = match args.trace.is_empty() {
        false => judge_files(args)?,
        true => judge_workloads(args)?,
    };
    let verdict = verdict(&judged);
    if args.json {
        say_json(&as_json(args, &judged, verdict, tested))?;
    } else {
        in_words(args, &judged, verdict)?;
    }
    match verdict {
        AuditVerdict::Pass if args.strict => against::refuse_differences(&judged),
        AuditVerdict::Pass => Ok(()),
        AuditVerdict::TooShort => Err(fault(
            Code::General,
            "the trace cannot be judged: it is too short",
            "Record something longer.",
        )),
        AuditVerdict::Leak => Err(fault(
            Code::General,
            "something leaks: the storage was shown what depends on what was done",
            "Run it again with -v to see which test found what, and please report it.",
        )),
    }
}

fn judge_files(args: &AuditArgs) -> Result<Vec<Judged>> {
    let (what, seen) = (names(&args.trace), read(&args.trace)?);
    if let Some(picture) = &args.picture {
        let trace = seen.whole();
        let caption = format!("{} accesses", human::grouped(trace.accesses() as u64));
        draw(picture, &[Panel::of_trace("What the storage saw", &caption, &trace)])?;
    }
    if args.against.is_empty() {
        let mut report = observer::judge_records(&seen, args.false_alarm_rate);
        if let Some(rate) = args.pace {
            pace::add(&mut report, &seen.whole(), rate);
        }
        return Ok(vec![Judged::new(what, report)]);
    }
    // The rate is for the whole audit; each judgement gets its share.
    let (rate, other) = (args.false_alarm_rate / 3.0, read(&args.against)?);
    let other_name = names(&args.against);
    let both = format!("{what} | {other_name}");
    Ok(vec![
        Judged::new(what, observer::judge_records(&seen, rate)),
        Judged::new(other_name, observer::judge_records(&other, rate)),
        Judged {
            seen: observer::contrast_records(&seen, &other),
            ..Judged::new(both, observer::compare_where(&seen, &other, rate))
        },
    ])
}

fn names(files: &[PathBuf]) -> String {
    files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(" + ")
}

/// Reads these files, line by line, as one record.
fn read(files: &[PathBuf]) -> Result<TraceObserver> {
    let mut observer = Observer::default();
    for file in files {
        let name = || file.display().to_string();
        for line in Lines::new(BufReader::new(File::open(file).with_context(name)?)) {
            observer.see(&line.with_context(name)?);
        }
    }
    Ok(observer.finish())
}

/// Runs workloads on fresh volumes. Judges each alone, and in pairs those with equally many
/// requests.
fn judge_workloads(args: &AuditArgs) -> Result<Vec<Judged>> {
    if args.blocks < 64 || args.accesses == 0 {
        return Err(usage("there must be 64 blocks and one access at the least", ""));
    }
    let mut progress = Progress::steps(args.quiet, "accesses");
    let all = (Workload::ALL.len() + Mixed::ALL.len()) as u64 * args.accesses as u64;
    let mut done = 0;
    let mut single = Vec::new();
    for workload in Workload::ALL {
        single.push(workloads::run(workload, args.blocks, args.accesses, |n| {
            done += n;
            progress.at(done, all);
        })?);
    }
    let mut mixed = Vec::new();
    for way in Mixed::ALL {
        mixed.push(workloads::run_mixed(way, args.blocks, args.accesses, |n| {
            done += n;
            progress.at(done, all);
        })?);
    }
    drop(progress);
    if let Some(file) = &args.picture {
        draw_workload(file, args.blocks, Workload::Zipf, &single)?;
    }
    let pairs = |count: usize| count * (count + 1) / 2;
    let count = pairs(single.len()) + pairs(mixed.len());
    // The rate is for the whole audit; each judgement gets its share.
    let rate = args.false_alarm_rate / count as f64;
    let mut judged = judge_all(&single, rate, |at| Workload::ALL[at].name());
    judged.extend(judge_all(&mixed, rate, |at| Mixed::ALL[at].name()));
    Ok(judged)
}

/// Each alone, and all in pairs.
fn judge_all(all: &[Worked], rate: f64, name: impl Fn(usize) -> &'static str) -> Vec<Judged> {
    let alone = |(at, one): (usize, &Worked)| {
        Judged::new(name(at), observer::judge_records(&one.sight, rate))
    };
    let mut judged: Vec<Judged> = all.iter().enumerate().map(alone).collect();
    for a in 0..all.len() {
        for b in a + 1..all.len() {
            let what = format!("{} | {}", name(a), name(b));
            let report = observer::compare_records(&all[a].sight, &all[b].sight, rate);
            judged.push(Judged::new(what, report));
        }
    }
    judged
}

/// Draws plain encryption beside the volume, for the same work.
fn draw_workload(file: &Path, blocks: u64, workload: Workload, all: &[Worked]) -> Result<()> {
    let at = Workload::ALL.iter().position(|&one| one == workload).unwrap_or(0);
    let mut trace = all[at].sight.whole();
    trace.requests.drain(..all[at].filling);
    let seen = first(&trace, DRAWN);
    let wanted = workload.blocks(blocks, seen.requests.len(), &mut SplitMix64::new(1));
    let points = (0..).zip(wanted).collect();
    let plain = Panel::new("Plain encryption", workload.name(), points, blocks).accent(EXPOSED);
    let hidden = Panel::of_trace("Oblivio", &format!("the same work: {}", workload.name()), &seen);
    draw(file, &[plain, hidden])
}

/// The drawn paths of the first `requests` requests.
pub fn first(trace: &Trace, requests: usize) -> Trace {
    let drawn = schedule::drawn(trace);
    let accesses = drawn.requests.into_iter().filter(|request| !request.leaves.is_empty());
    let requests = accesses.take(requests).collect();
    Trace { depth: drawn.depth, requests }
}

/// Writes a picture in the format of its file extension.
pub fn draw(file: &Path, panels: &[Panel]) -> Result<()> {
    let bytes = match file.extension().and_then(|end| end.to_str()) {
        #[cfg(feature = "png")]
        Some("png") => picture::png(panels)?,
        #[cfg(not(feature = "png"))]
        Some("png") => {
            let advice = "name a file.svg, or build it with the feature `png`";
            return Err(usage("this build draws pictures as SVG only", advice));
        }
        Some("svg") => picture::svg(panels)?.into_bytes(),
        _ => return Err(usage("a picture's name ends in .png or .svg", "")),
    };
    std::fs::write(file, bytes).with_context(|| file.display().to_string())
}

/// Whether the audit catches the planted leaks; one that does not is worthless.
fn test_the_audit(args: &AuditArgs) -> Result<Value> {
    let options =
        AuditOptions { false_alarm_rate: args.false_alarm_rate, ..AuditOptions::default() };
    let outcomes = self_test(&options);
    if !args.json {
        say(
            "Is the audit itself any good? Planted leaks it must catch, honest traces it must pass:",
        )?;
        for outcome in &outcomes {
            let mark = if outcome.right() { "ok" } else { "WRONG" };
            let verdict = match (outcome.leaks, outcome.alarms()) {
                (true, alarms) => format!("caught by {}", alarms.join(", ")),
                (false, _) => "passed".into(),
            };
            say(format!("  {mark:<6}{:<54}{verdict}", outcome.name))?;
        }
        say("")?;
    }
    let wrong = outcomes.iter().filter(|outcome| !outcome.right()).count();
    if wrong > 0 {
        let what = format!("the audit was wrong about {}", human::count(wrong as u64, "case"));
        return Err(fault(Code::General, what, "Its verdicts mean nothing; please report it."));
    }
    let caught = outcomes.iter().filter(|outcome| outcome.leaks).count();
    Ok(json!({ "leaks_caught": caught, "honest_passed": outcomes.len() - caught }))
}

fn as_json(
    args: &AuditArgs,
    judged: &[Judged],
    verdict: AuditVerdict,
    tested: Option<Value>,
) -> Value {
    let one = |one: &Judged| json!({ "what": one.what, "report": one.report, "seen": one.seen });
    json!({
        "verdict": verdict,
        "alike": (!args.against.is_empty()).then(|| !against::differ(judged)),
        "false_alarm_rate": args.false_alarm_rate,
        "timing_judged": args.pace.is_some(),
        "self_test": tested,
        "judgements": judged.iter().map(one).collect::<Vec<_>>(),
    })
}

fn in_words(args: &AuditArgs, judged: &[Judged], verdict: AuditVerdict) -> Result<()> {
    if args.trace.is_empty() {
        say(format!(
            "Nine ways of working on a volume of {}, {} each; four of them in batches, with\n\
             removals, syncs, sessions that end well and sessions that break off.\n\
             What the storage saw of each, judged alone and compared in pairs:",
            human::count(args.blocks, "block"),
            human::count(args.accesses as u64, "access"),
        ))?;
    }
    for one in judged {
        say(format!("  {:<12}{}", one.report.verdict.to_string(), human::plain(&one.what)))?;
        if args.verbose || !args.trace.is_empty() {
            for line in one.report.to_string().lines() {
                say(format!("      {line}"))?;
            }
        }
        against::in_words(&one.seen)?;
    }
    let rate = args.false_alarm_rate;
    let meaning = match (!args.against.is_empty(), verdict) {
        (true, AuditVerdict::Pass) => against::meaning(judged),
        _ => meaning(verdict),
    };
    say(format!("\nVerdict: {verdict}. {meaning}"))?;
    say(format!("An honest volume is called leaky with probability {rate:e} at the most."))?;
    if args.pace.is_none() {
        say("Timing is not judged: when you work, and how much, is seen.")?;
    }
    if let Some(picture) = &args.picture {
        say(format!("Picture: {}", picture.display()))?;
    }
    Ok(())
}

fn meaning(verdict: AuditVerdict) -> &'static str {
    match verdict {
        AuditVerdict::Pass => "Nothing tells what was done.",
        AuditVerdict::Leak => "What was shown depends on what was done.",
        AuditVerdict::TooShort => "There is too little to say anything.",
    }
}

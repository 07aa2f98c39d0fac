//! What the storage sees of one file read 30 times and of 30 files read once.

use super::files::{READ, remote};
use super::stage::{BLOCK_BYTES, Stage};
use crate::audit;
use crate::human::{self, say};
use crate::recorder::Recorder;
use anyhow::Result;
use oblivio_audit::picture::{EXPOSED, Panel};
use oblivio_audit::{AuditVerdict, Trace, schedule};
use oblivio_volume::fs::FileSystem;
use std::collections::HashMap;
use std::path::Path;

/// Columns of the terminal's table, each a stretch of the storage.
const STRETCHES: usize = 40;
/// Bars for the reads of a stretch, relative to the busiest.
const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One run as the storage saw it: places in order, and the number of places.
struct Sight {
    what: String,
    places: Vec<u64>,
    of: u64,
}

/// Runs both and prints what was seen.
pub fn run(stage: &Stage, picture: &Path) -> Result<()> {
    let source = &stage.source;
    let alike = source.alike();
    let one = vec![alike[READ / 2]; READ];
    let favourite = source.files[one[0]].0.display().to_string();
    let lengths = |pick: fn(u64, u64) -> u64| {
        alike.iter().map(|&at| source.len(at)).reduce(pick).unwrap_or(0)
    };
    say(format!("\n2. One file {READ} times, or {READ} files once each: can the storage tell?"))?;
    say(format!("   First {} {READ} times, then {READ} files of", human::plain(&favourite)))?;
    let (least, most) = (human::size(lengths(u64::min)), human::size(lengths(u64::max)));
    say(format!("   {least} to {most}; a new session each time, as if on {} days.", 2 * READ))?;
    let traces = [read(stage, &one)?, read(stage, &alike)?];
    let sights = [
        plain(stage, "only encrypted: one file", &one),
        plain(stage, "only encrypted: 30 files", &alike),
        oblivious("Oblivio: one file", &traces[0]),
        oblivious("Oblivio: 30 files", &traces[1]),
    ];
    table(&sights)?;
    verdict(&traces)?;
    draw(picture, &sights, &traces)
}

/// Reads these files, each in a session of its own, and keeps what the storage saw.
fn read(stage: &Stage, files: &[usize]) -> Result<Trace> {
    let recorder = Recorder::in_memory();
    for &at in files {
        let (path, content) = &stage.source.files[at];
        let volume = stage.open_watched(&stage.volume, &recorder)?;
        let fs = FileSystem::open(Box::new(volume))?;
        let attr = crate::inside::find(&fs, &remote(path)?)?;
        let handle = fs.open_file(attr.ino)?;
        let back = fs.read(handle, 0, content.len())?;
        anyhow::ensure!(back == *content, "{} did not come back as it was", path.display());
        fs.close(handle)?;
        drop(fs.into_blocks()?);
    }
    Ok(recorder.take().whole())
}

fn plain(stage: &Stage, what: &str, files: &[usize]) -> Sight {
    let (layout, of) = stage.source.layout(BLOCK_BYTES as u64);
    let pages = |&at: &usize| {
        let (first, count): (u64, u64) = layout[at];
        first..first + count
    };
    Sight { what: what.into(), places: files.iter().flat_map(pages).collect(), of }
}

fn oblivious(what: &str, trace: &Trace) -> Sight {
    let drawn = audit::first(trace, usize::MAX);
    let places = drawn.requests.iter().flat_map(|request| request.leaves.clone()).collect();
    Sight { what: what.into(), places, of: 1 << trace.depth }
}

/// One line per sight; a second would add nothing.
fn table(sights: &[Sight]) -> Result<()> {
    say(format!(
        "\n   {:<25} {:<STRETCHES$}  {:>6} {:>9}",
        "what the storage sees", "where it is asked, from end to end", "reads", "at one"
    ))?;
    for sight in sights {
        let mut counts: HashMap<u64, u64> = HashMap::new();
        for &place in &sight.places {
            *counts.entry(place).or_default() += 1;
        }
        let most = counts.values().copied().max().unwrap_or(0);
        let reads = sight.places.len();
        say(format!("   {:<25}|{}| {reads:>6} {most:>9}", sight.what, bars(sight)))?;
    }
    say("   (`at one`: how often the most wanted place was read; a high bar is a busy stretch)")
}

fn bars(sight: &Sight) -> String {
    let mut heights = [0u64; STRETCHES];
    for &place in &sight.places {
        heights[(place * STRETCHES as u64 / sight.of.max(1)) as usize % STRETCHES] += 1;
    }
    let busiest = heights.iter().copied().max().unwrap_or(0).max(1);
    heights.iter().map(|height| BARS[(height * 8).div_ceil(busiest) as usize]).collect()
}

/// The statistical verdict, where there is enough data.
fn verdict(traces: &[Trace; 2]) -> Result<()> {
    let [one, many] = traces;
    // The number of accesses is public, so equal parts are compared.
    let (one, many) = (schedule::one_by_one(one), schedule::one_by_one(many));
    let len = one.requests.len().min(many.requests.len());
    let (one, many) = (audit::first(&one, len), audit::first(&many, len));
    let report = schedule::compare(&one, &many, 1e-6);
    say("")?;
    match report.verdict {
        AuditVerdict::Pass => {
            say("   Only encrypted, anybody can point at the file that you keep coming back to.")?;
            say(format!(
                "   Oblivio: {} of each were compared by statistics, and",
                human::count(len as u64, "access")
            ))?;
            say("   PASS: nothing tells one from the other (false alarms: 1 in 1,000,000).")
        }
        AuditVerdict::TooShort => {
            say("   Too few accesses for statistics to say anything; `oblivio audit` makes more.")
        }
        AuditVerdict::Leak => {
            say("   LEAK: statistics tell one from the other! Please report this:")?;
            say(report.to_string())
        }
    }
}

fn draw(picture: &Path, sights: &[Sight], traces: &[Trace; 2]) -> Result<()> {
    let [one, many, ..] = sights else { return Ok(()) };
    let panel = |caption: &str, sight: &Sight| {
        let points = (0..).zip(sight.places.iter().copied()).collect();
        Panel::new("Only encrypted", caption, points, sight.of).accent(EXPOSED)
    };
    let hidden = |caption: &str, trace: &Trace| {
        Panel::of_trace("Oblivio", caption, &audit::first(trace, usize::MAX))
    };
    let panels = [
        panel("one file, 30 times", one),
        panel("30 files, once each", many),
        hidden("one file, 30 times", &traces[0]),
        hidden("30 files, once each", &traces[1]),
    ];
    audit::draw(picture, &panels)?;
    say(format!("   As a picture: {}", picture.display()))
}

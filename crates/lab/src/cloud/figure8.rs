//! Figure 8: a tree that grows and shrinks with its content.

use super::watched::{Watched, look, slots_of};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count};
use anyhow::{Context, Result};
use oblivio_store::MemoryStore;
use oblivio_testkit::SplitMix64;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use std::sync::Arc;

const SEGMENT: usize = 64 << 10;
const MEMORY: usize = 8 << 20;
const ACTIONS: usize = 32;

/// The volume after an action.
struct Moment {
    what: String,
    live: f64,
    class: f64,
    depth: u32,
    leaf_slots: usize,
    /// Slots of the whole tree, and of its stored buckets.
    slots: f64,
    stored_slots: f64,
    stored: u64,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the file system and of the page.
pub fn run(quick: bool, write: bool) -> Result<()> {
    let (least, most) = if quick { (64 << 10, 512 << 10) } else { (512 << 10, 16 << 20) };
    let store = Arc::new(MemoryStore::new());
    let (space, view) = Watched::create(store, SEGMENT, MEMORY)?;
    let fs = FileSystem::format(Box::new(space))?;
    let moment = |what: String| -> Result<Moment> {
        // A commit gives up blocks, and the next one begins the sweep.
        for _ in 0..2 {
            fs.commit()?;
            while fs.idle()?.is_some() {}
        }
        let seen = look(&view);
        let info = seen.info.context("a quiet moment shows the volume")?;
        Ok(Moment {
            what,
            live: info.live_blocks as f64,
            class: info.size_class as f64,
            depth: info.depth,
            leaf_slots: info.leaf_slots,
            slots: slots_of(&info),
            stored_slots: info.stored_slots as f64,
            stored: seen.stored,
        })
    };
    let mut moments = vec![moment("empty".into())?];
    let mut rng = SplitMix64::new(8);
    let mut names: Vec<String> = Vec::new();
    for action in 0..ACTIONS {
        // First more additions than deletions, later fewer, to show growth and shrinking.
        let adds = rng.unit() < if action < ACTIONS / 2 { 0.85 } else { 0.15 };
        let what = if adds || names.is_empty() {
            let size = (least as f64 + rng.unit() * (most - least) as f64) as usize;
            let name = format!("file-{action}");
            let (_, handle) = fs.create(ROOT_INO, name.as_bytes(), NewNode::default())?;
            fs.write(handle, 0, &vec![action as u8; size])?;
            fs.close(handle)?;
            names.push(name);
            format!("add {}", bytes((size >> 10 << 10) as u64))
        } else {
            let name = names.swap_remove(rng.below(names.len() as u64) as usize);
            fs.unlink(ROOT_INO, name.as_bytes())?;
            "delete".into()
        };
        moments.push(moment(what)?);
        if let Some(now) = moments.last() {
            eprintln!("{action}: {} {} of {}", now.what, now.live, now.slots);
        }
    }
    report(&moments, write)
}

/// The range of fill levels over time, in percent.
fn range(used: impl Iterator<Item = f64>) -> String {
    let used: Vec<f64> = used.map(|used| 100.0 * used).collect();
    let least = used.iter().copied().fold(100.0, f64::min);
    let most = used.iter().copied().fold(0.0, f64::max);
    let mean = used.iter().sum::<f64>() / used.len().max(1) as f64;
    format!("{least:.0} to {most:.0} %, {mean:.0} % on the average")
}

fn report(moments: &[Moment], write: bool) -> Result<()> {
    // The smallest tree cannot shrink.
    let grown = || moments.iter().filter(|now| now.class > 64.0);
    let of_tree = range(grown().map(|now| now.live / now.slots));
    let of_stored = range(grown().map(|now| now.live / now.stored_slots));
    let shape = |now: &Moment| (now.depth, now.leaf_slots);
    let resizes = moments.windows(2).filter(|pair| shape(&pair[0]) != shape(&pair[1])).count();
    let mut report = Report::on("cloud-paper.md", "resizing", "Figure 8: a tree that follows");
    report.text(&format!(
        "{ACTIONS} times a file of random size is added or deleted, with segments of 64 KiB. \
         After each action comes a commit, and idle maintenance until no sweep is left. `blocks` \
         exist. `tree` is all slots of all buckets, of which leaves have `leaf` and others 4. The \
         tree has another shape after {resizes} of the actions. Beyond the smallest class, the \
         used share of the tree's slots is {of_tree}. Of the slots of stored buckets it is \
         {of_stored}; some buckets of a tree that grew were not written yet, and some are still \
         as short as before. The paper adds and removes single buckets at the end of the tree and \
         stays between 45 and 55 %. Ours gives each leaf a slot more when it is half full. It \
         takes one back when the blocks would fill the smaller tree to less than 15/16 of that \
         ([why](decisions/0010-leaf-slots.md)). It shows the store less: the class, one of four \
         for each power of two, not each bucket."
    ));
    let head = ["action", "what", "blocks", "class", "depth", "leaf", "tree", "used, %"];
    let mut table = Table::new(head.into_iter().chain(["of stored, %", "stored"]));
    for (at, now) in moments.iter().enumerate() {
        table.row([
            at.to_string(),
            now.what.clone(),
            count(now.live),
            count(now.class),
            now.depth.to_string(),
            now.leaf_slots.to_string(),
            count(now.slots),
            format!("{:.0}", 100.0 * now.live / now.slots),
            match now.stored_slots {
                0.0 => "-".into(),
                stored => format!("{:.0}", 100.0 * now.live / stored),
            },
            bytes(now.stored),
        ]);
    }
    report.table(&table);
    let line = |value: fn(&Moment) -> f64| {
        let mut points: Vec<_> =
            moments.iter().enumerate().map(|(at, now)| (at as f64, value(now))).collect();
        if let Some(&(at, last)) = points.last() {
            points.push((at + 0.5, last));
        }
        points
    };
    let names =
        (0..moments.len()).map(|at| if at % 4 == 0 { at.to_string() } else { String::new() });
    let most = moments.iter().map(|now| now.slots).fold(0.0, f64::max);
    let mut chart = Chart::new(
        "The tree follows the blocks, by eighths of a power of two",
        Axis::names("actions", names),
        Axis::linear("blocks of 64 KiB", most),
    );
    chart.add("the tree", Look::Step, line(|now| now.slots));
    chart.add("half of it", Look::DashedStep, line(|now| now.slots / 2.0));
    chart.add("real blocks", Look::Step, line(|now| now.live));
    report.picture("cloud-figure8.svg", &chart);
    report.finish(write)
}

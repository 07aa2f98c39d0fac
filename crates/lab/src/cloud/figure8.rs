//! Figure 8: a tree that grows and shrinks with what is stored.

use super::watched::{Watched, look};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes, count};
use crate::workload::Rng;
use anyhow::{Context, Result};
use oblivio_store::MemoryStore;
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
    slots: f64,
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
        // Blocks are given up at a commit, and the sweep that follows begins with the next.
        for _ in 0..2 {
            fs.commit()?;
            while fs.idle()?.is_some() {}
        }
        let info = look(&view).info.context("a quiet moment shows the volume")?;
        Ok(Moment {
            what,
            live: info.live_blocks as f64,
            class: info.size_class as f64,
            depth: info.depth,
            slots: (info.blocks_per_bucket * ((2 << info.depth) - 1)) as f64,
            stored: info.bytes_stored,
        })
    };
    let mut moments = vec![moment("empty".into())?];
    let mut rng = Rng::new(8);
    let mut names: Vec<String> = Vec::new();
    for action in 0..ACTIONS {
        // More is added than deleted at first, and less later, so that both are seen.
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

fn report(moments: &[Moment], write: bool) -> Result<()> {
    let used: Vec<f64> = moments.iter().map(|now| now.live / now.slots).collect();
    // Beyond the smallest tree there is nothing to shrink to.
    let grown: Vec<f64> =
        moments.iter().filter(|now| now.class > 64.0).map(|now| now.live / now.slots).collect();
    let least = grown.iter().copied().fold(1.0, f64::min);
    let most = used.iter().copied().fold(0.0, f64::max);
    let mean = grown.iter().sum::<f64>() / grown.len().max(1) as f64;
    let resizes = moments.windows(2).filter(|pair| pair[0].depth != pair[1].depth).count();
    let mut report = Report::on("cloud-paper.md", "resizing", "Figure 8: a tree that follows");
    report.text(&format!(
        "{ACTIONS} files of random sizes added and deleted, segments of 64 KiB; after each action a \
         commit, and quiet moments until no sweep is left. `blocks` exist, `tree` is all slots of \
         all buckets. The tree has another depth after {resizes} of the actions. Beyond the smallest \
         class, {:.0} to {:.0} % of the slots are used, {:.0} % on the average. The paper adds and \
         removes single buckets at the end of the tree and stays between 45 and 55 %; ours is always \
         a full binary tree, so it doubles when it is half full and halves when the blocks would \
         fill the smaller one to less than seven eighths of that. That costs space (at worst a \
         fifth of the slots are used) and tells the store less: the class, not each bucket.",
        100.0 * least,
        100.0 * most,
        100.0 * mean
    ));
    let mut table =
        Table::new(["action", "what", "blocks", "class", "depth", "tree", "used, %", "stored"]);
    for (at, now) in moments.iter().enumerate() {
        table.row([
            at.to_string(),
            now.what.clone(),
            count(now.live),
            count(now.class),
            now.depth.to_string(),
            count(now.slots),
            format!("{:.0}", 100.0 * used[at]),
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
        "The tree follows the blocks, by powers of two",
        Axis::names("actions", names),
        Axis::linear("blocks of 64 KiB", most),
    );
    chart.add("the tree", Look::Step, line(|now| now.slots));
    chart.add("half of it", Look::DashedStep, line(|now| now.slots / 2.0));
    chart.add("real blocks", Look::Step, line(|now| now.live));
    report.picture("cloud-figure8.svg", &chart);
    report.finish(write)
}

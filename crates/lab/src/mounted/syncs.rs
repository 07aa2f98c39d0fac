//! The same jobs on disks whose syncs take longer, with records ahead of syncs and without.

use super::jobs::{FioWork, JOBS, measure};
use crate::engines::Engine;
use crate::report::{Report, Table, median};
use crate::served::{Served, Syncs};
use anyhow::Result;
use std::path::Path;

/// Runs the experiment for these delays, in milliseconds.
pub fn run(args: &FioWork, scratch: &Path, delays: &[f64], write: bool) -> Result<()> {
    let mut mounts = Vec::new();
    for &sync_delay in delays {
        for strict in [false, true] {
            let dir = scratch.join(format!("{sync_delay}-{strict}"));
            std::fs::create_dir(&dir)?;
            let served =
                Served::with(Engine::Tree, &dir, 8 * args.mib, Syncs { sync_delay, strict })?;
            // All but the first job work on the whole file.
            measure(&served.dir(), args, &JOBS[0])?;
            mounts.push(served);
        }
    }
    let mut report = Report::new("mounted-syncs", "A mounted volume on disks with slow syncs");
    report.text(&format!(
        "As above, with a store below the volume that makes each sync (also of the notes on this \
         computer) take so much longer. Each cell: records ahead of syncs, as by default / \
         `--strict`. In brackets the default's share of its rate without a delay. A file of {} MiB, \
         median of {} rounds, by turns.",
        args.mib, args.rounds
    ));
    let head = delays.iter().map(|delay| match delay {
        0.0 => "no delay".to_owned(),
        delay => format!("{delay} ms"),
    });
    let mut table = Table::new(std::iter::once("job".to_owned()).chain(head).collect::<Vec<_>>());
    for job in &JOBS {
        let mut rates = vec![Vec::new(); mounts.len()];
        for _ in 0..args.rounds {
            for (mount, rates) in mounts.iter().zip(&mut rates) {
                rates.push(measure(&mount.dir(), args, job)?);
            }
        }
        let medians: Vec<f64> = rates.iter().map(|rates| median(rates)).collect();
        let cell = |pair: &[f64]| {
            let share = 100.0 * pair[0] / medians[0];
            format!("{} / {} ({share:.0} %)", job.shown(pair[0]), job.shown(pair[1]))
        };
        let cells: Vec<String> = medians.chunks(2).map(cell).collect();
        eprintln!("{}: {}", job.name, cells.join(" | "));
        table.row(std::iter::once(job.name.to_owned()).chain(cells).collect::<Vec<_>>());
    }
    report.table(&table);
    for mount in mounts {
        mount.end()?;
    }
    report.finish(write)
}

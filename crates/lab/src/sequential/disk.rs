//! Disks side by side: a plain sealed one, DetWoORAM and ours (issue 4).

use super::bench::Bench;
use super::fio::Job;
use super::systems::{BOTH_MAPS, USUAL};
use crate::report::{Report, Table, count};
use anyhow::Result;

/// The page of all comparisons of disks.
pub const PAGE: &str = "sequential-disk.md";
/// Small requests under way, in jobs with several.
pub const DEPTH: u32 = 16;

/// The speed of SqORAM's own code, measured on such a machine over NBD on a disk of 1 GiB in the
/// page cache, and the multiple of it that ours must reach: megabytes or requests a second.
const OWN_CODE: [(f64, f64); 6] =
    [(489.0, 1.5), (52.0, 3.0), (19_000.0, 1.5), (24_000.0, 1.5), (8_400.0, 3.0), (8_400.0, 3.0)];

fn four() -> Vec<Job> {
    vec![
        Job::sequential("read"),
        Job::sequential("write"),
        Job::random("randread", 1),
        Job::random("randread", DEPTH),
        Job::random("randwrite", 1),
        Job::random("randwrite", DEPTH),
    ]
}

/// Measures the disks side by side.
///
/// # Errors
/// Those of the measurement and of the page.
pub fn run(bench: &Bench, write: bool) -> Result<()> {
    let mut jobs = four();
    jobs.extend([Job::mixed(70, 1), Job::mixed(70, DEPTH), Job::flushed()]);
    let mut report = Report::on(PAGE, "disk", "Disks side by side");
    report.text(&bench.text());
    report.text(
        "Sequential jobs have 4 requests under way. The rate of a mix is that of reads and writes \
         together.",
    );
    let measured = bench.measure(&BOTH_MAPS, jobs)?;
    report.table(&measured.table());
    report.table(&measured.ratios());
    report.finish(write)
}

/// Measures ours beside the figures of the authors' own code.
///
/// # Errors
/// Those of the measurement and of the page.
pub fn own_code(bench: &Bench, write: bool) -> Result<()> {
    let jobs = four();
    let mut report = Report::on(PAGE, "own-code", "Beside SqORAM's own code");
    report.text(&bench.text());
    report.text(
        "`its own code` is what the authors' program was measured to do elsewhere; it is not run \
         here. That was on a machine of this kind, over NBD, on 1 GiB with blocks of 4 KiB and \
         its file in the page cache. Its random reads were 19 to 24 thousand; the smaller number \
         stands beside those that come one at a time.",
    );
    let measured = bench.measure(&USUAL, jobs.clone())?;
    report.table(&measured.table());
    report.table(&measured.ratios());
    let last = measured.systems.len() - 1;
    let ours = measured.systems[last].name;
    let mut table =
        Table::new(["job", ours, "its own code", &format!("{ours} / its own code"), "wanted"]);
    for (number, (job, (theirs, wanted))) in jobs.iter().zip(OWN_CODE).enumerate() {
        let scale = if job.in_bytes() { 1e6 } else { 1.0 };
        let value = measured.value(last, number) / scale;
        table.row([
            job.name.clone(),
            count(value),
            count(theirs),
            format!("{:.1}", value / theirs),
            format!("{wanted:.1}"),
        ]);
    }
    report.text("In MB/s and requests a second:");
    report.table(&table);
    report.finish(write)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sequential::systems::System;

    #[test]
    fn what_is_usual_exists() {
        assert!(USUAL.iter().chain(&BOTH_MAPS).all(|key| System::find(key).is_ok()));
        assert_eq!(four().len(), OWN_CODE.len());
    }
}

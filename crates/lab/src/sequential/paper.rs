//! The SqORAM paper's tables and its Figure 7 (Chakraborti and Sion, PoPETs 2020), measured here.

use super::bench::{Bench, Measured};
use super::disk::{DEPTH, PAGE};
use super::fio::{Job, Limit};
use super::systems::{BASELINE, BOTH_MAPS};
use crate::plot::{Axis, Chart, Look};
use crate::report::{Report, Table, bytes};
use anyhow::{Result, ensure};

/// The paper's Table 1 in MB/s: dm-crypt, SqORAM, HIVE, DataLair.
const TABLE1: [(&str, [f64; 4]); 4] = [
    ("sequential read", [91.0, 21.0, 0.135, 0.200]),
    ("sequential write", [88.0, 1.5, 0.016, 0.110]),
    ("random read", [5.0, 0.055, 0.120, 0.105]),
    ("random write", [4.3, 1.0, 0.014, 0.2]),
];

/// The paper's Table 2 in MB/s, before and after.
const TABLE2: [(&str, f64, f64); 3] =
    [("the paper's baseline", 61.0, 60.7), ("SqORAM", 47.2, 42.0), ("DetWoORAM", 18.7, 10.2)];

/// The paper's random writes in Table 2: "around 100MB".
const AGEING_BYTES: u64 = 100_000_000 / 4096 * 4096;

/// The arguments of the ageing experiment.
#[derive(clap::Args, Debug)]
pub struct Ageing {
    #[command(flatten)]
    bench: Bench,
    /// MiB written in sequence, aged and read again, as the paper's file
    #[arg(long, default_value_t = 1024)]
    area_mib: u64,
}

/// The minimum speed of ours in multiples of the rival, at 70 % reads and in sequential reads after
/// ageing: the paper's results.
const WANTED: (f64, f64) = (1.6, 2.0);

/// A job of ours beside its rivals, and whether the ratio reaches the paper's.
fn beside_rivals(measured: &Measured, job: usize, wanted: f64) -> Table {
    let mut table = Table::new(["", "times as fast", "wanted", ""]);
    for at in 0..measured.systems.len() {
        for rival in measured.rivals(at) {
            let times = measured.ratio(at, rival, job);
            table.row([
                format!("{} / {}", measured.systems[at].name, measured.systems[rival].name),
                format!("{times:.2}"),
                format!("{wanted:.1}"),
                if times >= wanted { "yes" } else { "no" }.to_owned(),
            ]);
        }
    }
    table
}

fn megabytes(rate: f64) -> String {
    let rate = rate / 1e6;
    format!("{rate:.0$}", if rate < 10.0 { 2 } else { 0 })
}

/// Table 1.
///
/// # Errors
/// Those of the measurement and of the page.
pub fn table1(bench: &Bench, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "table1", "The paper's Table 1");
    report.text(
        "Sequential requests of 1 MiB and random ones of 4 KiB, one at a time. The paper's disks \
         were kernel modules on a hard disk (9 ms to seek, 4 to turn), with its map on the disk. \
         Compare each disk's share of the encrypted disk that its own table begins with: dm-crypt \
         there, plain sealed here. HIVE and DataLair were not built here, and DetWoORAM is not in \
         the paper's table.",
    );
    report.text(&bench.text());
    let one = |rw| Job { depth: 1, ..Job::sequential(rw) };
    let jobs =
        vec![one("read"), one("write"), Job::random("randread", 1), Job::random("randwrite", 1)];
    let measured = bench.measure(&BOTH_MAPS, jobs)?;
    let mut head = vec!["MB/s".to_owned()];
    head.extend(measured.systems.iter().map(|system| system.name.to_owned()));
    let mut table = Table::new(head.clone());
    for (job, (name, _)) in TABLE1.iter().enumerate() {
        let rates = (0..measured.systems.len()).map(|at| megabytes(measured.bytes(at, job)));
        table.row([(*name).to_owned()].into_iter().chain(rates));
    }
    report.table(&table);
    if let Some(baseline) = measured.at(BASELINE) {
        head[0] = "part of the plain one".into();
        head.extend(["SqORAM", "HIVE", "DataLair"].map(|name| format!("paper: {name}")));
        head.remove(1 + baseline);
        report.table(&parts(&measured, baseline, head));
    }
    report.finish(write)
}

fn parts(measured: &Measured, baseline: usize, head: Vec<String>) -> Table {
    let mut table = Table::new(head);
    for (job, (name, [plain, others @ ..])) in TABLE1.into_iter().enumerate() {
        let here = (0..measured.systems.len()).filter(|at| *at != baseline);
        let here = here.map(|at| measured.ratio(at, baseline, job));
        let there = others.into_iter().map(|other| other / plain);
        let cells = here.chain(there).map(|part| format!("{part:.3}"));
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    table
}

/// Sequential reads of an area before and after `random` bytes of random writes to it.
fn ageing_jobs(area: u64, random: u64) -> [Job; 4] {
    let part = |job, bytes| Job { area: Some(0..area), limit: Limit::Bytes(bytes), ..job };
    let named = |job, name: &str| Job { name: name.into(), ..job };
    [
        part(Job::sequential("write"), area),
        named(part(Job::sequential("read"), area), "sequential read before"),
        part(Job::random("randwrite", DEPTH), random),
        named(part(Job::sequential("read"), area), "sequential read after"),
    ]
}

/// The reads among the jobs of Table 2: before, after, and the offset from each to its read of the
/// part that does not age.
const BEFORE: usize = 2;
const AFTER: usize = 5;
const OTHER: usize = 1;

/// The same; each job but the random writes also in the part behind, which does not age.
fn ageing_beside(area: u64, random: u64) -> Vec<Job> {
    let other = |job: &Job| {
        let name = format!("{}, another part", job.name);
        Job { name, area: Some(area..2 * area), ..job.clone() }
    };
    let [write, before, random, after] = ageing_jobs(area, random);
    let others = [other(&write), other(&before), other(&after)];
    let [write_other, before_other, after_other] = others;
    vec![write, write_other, before, before_other, random, after, after_other]
}

/// Table 2: sequential reads before and after random writes.
///
/// # Errors
/// Those of the measurement and of the page.
pub fn ageing(args: &Ageing, write: bool) -> Result<()> {
    let (bench, area) = (&args.bench, args.area_mib << 20);
    ensure!(2 * area <= bench.size, "the areas are larger than the disk; make --size larger");
    let mut report = Report::on(PAGE, "ageing", "Ageing (the paper's Table 2)");
    report.text(&format!(
        "{0} of each disk are written in sequence, and another {0}, and both are read. Then {1} \
         MB of random writes of 4 KiB go to the first, {DEPTH} at a time, with a flush at the \
         end. Then both are read again. Storage gets faster and slower meanwhile. So compare how \
         much the first fell beside the other, which was read by turns with it.",
        bytes(area),
        AGEING_BYTES.div_ceil(1_000_000),
    ));
    report.text(&bench.text());
    let measured = bench.measure(&BOTH_MAPS, ageing_beside(area, AGEING_BYTES))?;
    report.table(&measured.table());
    report.table(&measured.ratios());
    report.table(&change(&measured));
    if (0..measured.systems.len()).any(|at| measured.rivals(at).next().is_some()) {
        report.text("Sequential reads after ageing, beside the rivals:");
        report.table(&beside_rivals(&measured, AFTER, WANTED.1));
    }
    report.finish(write)
}

/// The slowdown of each disk by ageing, by itself and beside the part that did not age.
fn change(measured: &Measured) -> Table {
    let head = ["MB/s", "before", "after", "change", "beside the other part", "after / its rivals"];
    let mut table = Table::new(head);
    let percent = |before: f64, after: f64| format!("{:+.1} %", (after / before - 1.0) * 100.0);
    for (at, system) in measured.systems.iter().enumerate() {
        let (before, after) = (measured.bytes(at, BEFORE), measured.bytes(at, AFTER));
        let beside = |job| measured.pairs((at, job), (at, job + OTHER));
        let times = measured.rivals(at).map(|rival| measured.ratio(at, rival, AFTER));
        let times: Vec<String> = times.map(|times| format!("{times:.2}")).collect();
        table.row([
            system.name.to_owned(),
            megabytes(before),
            megabytes(after),
            percent(before, after),
            percent(beside(BEFORE), beside(AFTER)),
            times.join(", "),
        ]);
    }
    for (name, before, after) in TABLE2 {
        table.row([
            format!("paper: {name}"),
            format!("{before:.1}"),
            format!("{after:.1}"),
            percent(before, after),
            String::new(),
            format!("{:.2}", after / TABLE2[2].2),
        ]);
    }
    table
}

/// A seek of the paper's disk: 9 ms, and 4.17 ms of rotation.
const PAPER_SEEK: u64 = 13_170;

/// Ageing and the mix, on the model of a rotating disk.
///
/// # Errors
/// Those of the measurement and of the page.
pub fn seeks(args: &Ageing, write: bool) -> Result<()> {
    let area = args.area_mib << 20;
    ensure!(area <= args.bench.size, "the area is larger than the disk; make --size larger");
    let mut bench = args.bench.clone();
    if bench.seek == 0 {
        bench.seek = PAPER_SEEK;
    }
    let mut report = Report::on(PAGE, "seeks", "With seeks: a model");
    report.text(&format!(
        "As above: {} are written and read, aged by random writes of a tenth of them, and read \
         again. Then random requests of 4 KiB follow. No hard disk took part. The model shows \
         where seeks go, not how fast a disk is.",
        bytes(area)
    ));
    report.text(&bench.text());
    let mut jobs = ageing_jobs(area, area / 10).to_vec();
    jobs.extend([Job::random("randread", DEPTH), Job::mixed(MIXES[SEVENTY], DEPTH)]);
    let measured = bench.measure(&BOTH_MAPS, jobs)?;
    report.table(&measured.table());
    report.table(&measured.ratios());
    report.text("Sequential reads after ageing, beside the rivals:");
    report.table(&beside_rivals(&measured, 3, WANTED.1));
    report.text("At 70 % reads, beside the rivals:");
    report.table(&beside_rivals(&measured, 5, WANTED.0));
    report.finish(write)
}

/// Percentages of reads in the mixes of Figure 7 (c).
const MIXES: [u32; 4] = [90, 70, 50, 30];
/// The mix to compare with the paper's.
const SEVENTY: usize = 1;
/// Jobs of Figure 7 before the mixes.
const MIXED: usize = 4;

/// Figure 7: sequential, random, and mixed.
///
/// # Errors
/// Those of the measurement and of the page.
pub fn figure7(bench: &Bench, write: bool) -> Result<()> {
    let mut report = Report::on(PAGE, "figure7", "The paper's Figure 7");
    report.text(
        "(a) sequential requests of 1 MiB, (b) random ones of 4 KiB, (c) mixes of random reads \
         and writes of 4 KiB, read and written bytes together. The paper ran FileBench in an ext4 \
         on each disk; these are the disks themselves. It found that SqORAM with the map in \
         memory reads nearly as fast as its baseline. At 70 % reads it is 1.6 times as fast as \
         DetWoORAM.",
    );
    report.text(&bench.text());
    let mut jobs = vec![
        Job::sequential("read"),
        Job::sequential("write"),
        Job::random("randread", DEPTH),
        Job::random("randwrite", DEPTH),
    ];
    jobs.extend(MIXES.map(|reads| Job::mixed(reads, DEPTH)));
    let measured = bench.measure(&BOTH_MAPS, jobs)?;
    report.table(&measured.table());
    report.table(&measured.ratios());
    report.text("At 70 % reads, beside the rivals:");
    report.table(&beside_rivals(&measured, MIXED + SEVENTY, WANTED.0));
    let names = |from: &[&str]| from.iter().map(|&name| name.to_owned()).collect::<Vec<_>>();
    let mixes = MIXES.map(|reads| format!("{reads} % reads")).to_vec();
    let parts = [
        ("a", "Sequential requests of 1 MiB", names(&["read", "write"]), 0),
        ("b", "Random requests of 4 KiB", names(&["read", "write"]), 2),
        ("c", "Random requests of 4 KiB, reads and writes mixed", mixes, MIXED),
    ];
    for (letter, title, names, first) in parts {
        let file = format!("sequential-figure7{letter}.svg");
        report.picture(&file, &chart(&measured, title, names, first));
    }
    report.finish(write)
}

/// Bars for the jobs from `first` on, one for each disk.
fn chart(measured: &Measured, title: &str, names: Vec<String>, first: usize) -> Chart {
    let disks = 0..measured.systems.len();
    let jobs = first..first + names.len();
    let rate = |at, job| measured.bytes(at, job) / 1e6;
    let all = disks.clone().flat_map(|at| jobs.clone().map(move |job| rate(at, job)));
    let most = all.fold(0.0, f64::max);
    let mut chart = Chart::new(title, Axis::names("", names), Axis::linear("MB/s", most));
    for at in disks {
        let bars = jobs.clone().map(|job| ((job - first) as f64, rate(at, job)));
        chart.add(measured.systems[at].name, Look::Bar, bars);
    }
    chart
}

//! Stash occupancy over millions of accesses, and what their paths reveal.

use crate::buckets::LabBuckets;
use crate::defaults::{self, volume_config};
use crate::growth::fill;
use crate::report::{Report, Table, count};
use crate::workload::Pattern;
use anyhow::{Result, bail, ensure};
use oblivio_audit::{AuditOptions, AuditVerdict, Trace, TraceRequest, audit, union_of_paths};
use oblivio_engine::Level;
use oblivio_engine::tree::{Eviction, STASH_BOUND, TreeConfig, TreeKeys, TreeOram};

/// What to run.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// Accesses for each pattern and configuration
    #[arg(long, default_value_t = 2_000_000)]
    accesses: u64,
    /// Logarithm of the number of blocks
    #[arg(long, default_value_t = 14)]
    log_blocks: u32,
    /// Eighths of that, 5 to 8: the default's tree then has 1 to 4 slots in its leaves' buckets
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u64).range(5..=8))]
    eighths: u64,
    /// Bytes in a block
    #[arg(long, default_value_t = 64)]
    block_bytes: usize,
    /// The rate at which all audits together may call an honest run a leak
    #[arg(long, default_value_t = 1e-6)]
    false_alarm_rate: f64,
}

/// Runs the experiment.
///
/// # Errors
/// Those of the engine and of the page; a leak is shown in the table and is an error too.
pub fn run(args: &Args, write: bool) -> Result<()> {
    let blocks = (1u64 << args.log_blocks) / 8 * args.eighths;
    let total = args.accesses * Pattern::ALL.len() as u64;
    let default = TreeConfig { cache_bytes: 0, ..volume_config(args.block_bytes, blocks) };
    let classic = TreeConfig {
        blocks_per_bucket: 5,
        leaf_steps: false,
        eviction: Eviction::ReadPaths { extra_every: 0 },
        // The lowest value at which 2^L blocks get a tree of depth L, as in the theorem.
        fill_percent: 11,
        ..default
    };
    ensure!(classic.depth(blocks) == Level(args.log_blocks), "N = 2^L");
    let mut report = Report::new("stash", "Stash occupancy and what the paths tell");
    report.text(&format!(
        "{} accesses for each of five patterns ({} in all) and configuration, on {}/8 of 2^{} \
         blocks of {} bytes. All blocks were written before. Each pattern has a fresh engine \
         without a bucket cache, so the store sees every bucket. `default` is the volume's \
         configuration: Z = {}, one scheduled path after every 3 accesses, tree at most 52 % \
         full. `classic` is Path ORAM with Z = 5 and N = 2^L. For it, Theorem 1 of the Path ORAM \
         paper proves Pr[stash > R] <= 14 · 0.6002^R after each access. Less than one sample in \
         {} is expected above {}, and a sample above {} is less likely than 2^-80. The state at \
         rest pads the default's stash to {} blocks.",
        count(args.accesses as f64),
        count(total as f64),
        args.eighths,
        args.log_blocks,
        args.block_bytes,
        default.blocks_per_bucket,
        count(total as f64),
        bound_at(1.0 / total as f64),
        bound_at((-80f64).exp2()),
        STASH_BOUND,
    ));
    let mut table = Table::new([
        "configuration",
        "pattern",
        "stash peak",
        "mean",
        "bound, all samples",
        "bound 2^-80",
        "paths / request",
        "leaf uniformity p",
        "serial p (least)",
        "verdict",
    ]);
    let mut tail = Table::new(["Pr[stash > R]", "0", "2", "4", "6", "8", "10", "15", "20", "30"]);
    let mut leaks = 0;
    // The two configurations share nothing: one thread each.
    let done: Vec<Result<Configuration>> = std::thread::scope(|scope| {
        let start = |(name, config)| scope.spawn(move || all_patterns(args, name, config, blocks));
        let threads = [("default", default), ("classic", classic)].map(start);
        threads.into_iter().map(|thread| thread.join().expect("no panic in the lab")).collect()
    });
    for configuration in done {
        let configuration = configuration?;
        leaks += configuration.leaks;
        configuration.rows.into_iter().for_each(|row| table.row(row));
        tail.row(configuration.tail);
    }
    tail.row(
        std::iter::once("theorem (classic)".to_owned())
            .chain(TAIL.map(|above| format!("{:.1e}", (14.0 * 0.6002f64.powi(above)).min(1.0)))),
    );
    report.table(&table);
    report.table(&tail);
    report.text(&format!(
        "Every audit was made on all drawn leaves of its run: leaf uniformity at several folds \
         and over time, serial independence, repeats. The false-alarm rate is {:e} for all {} \
         runs together. Each scheduled path was found to be the next in reverse lexicographic \
         order and then set aside. Every request read exactly the union of its paths, and wrote \
         exactly those that its schedule rewrites.",
        args.false_alarm_rate,
        2 * Pattern::ALL.len()
    ));
    report.finish(write)?;
    ensure!(leaks == 0, "{leaks} runs did not pass");
    Ok(())
}

/// The results of one configuration.
struct Configuration {
    rows: Vec<Vec<String>>,
    tail: Vec<String>,
    leaks: usize,
}

fn all_patterns(args: &Args, name: &str, config: TreeConfig, blocks: u64) -> Result<Configuration> {
    let mut counts: Option<Vec<u8>> = None;
    let mut occupancy = vec![0u64; 1];
    let (mut rows, mut leaks) = (Vec::new(), 0);
    for pattern in Pattern::ALL {
        let seen = observe(args, config, blocks, pattern)?;
        occupancy.resize(occupancy.len().max(seen.occupancy.len()), 0);
        for (sum, times) in occupancy.iter_mut().zip(&seen.occupancy) {
            *sum += times;
        }
        // The k-th request must show the same number of paths in every pattern.
        let alike = counts.get_or_insert_with(|| seen.paths.clone()) == &seen.paths;
        let row = judge(args, name, pattern, &seen, alike, &mut leaks);
        eprintln!("{}", row.join(" | "));
        rows.push(row);
    }
    Ok(Configuration { rows, tail: tail_row(name, &occupancy), leaks })
}

const TAIL: [i32; 9] = [0, 2, 4, 6, 8, 10, 15, 20, 30];

fn tail_row(name: &str, occupancy: &[u64]) -> Vec<String> {
    let total: u64 = occupancy.iter().sum();
    let above = |limit: i32| {
        let times: u64 = occupancy.iter().skip(limit as usize + 1).sum();
        if times == 0 { "0".into() } else { format!("{:.1e}", times as f64 / total as f64) }
    };
    std::iter::once(name.to_owned()).chain(TAIL.map(above)).collect()
}

/// The least R at which the proven bound is at most `probability`.
fn bound_at(probability: f64) -> u64 {
    ((probability / 14.0).ln() / 0.6002f64.ln()).ceil() as u64
}

/// The store's view of one pattern, and the stash occupancy.
struct Observed {
    drawn: Trace,
    /// Number of paths that each request showed.
    paths: Vec<u8>,
    /// How often the stash held each number of blocks after a request.
    occupancy: Vec<u64>,
    stash_peak: u64,
}

fn observe(args: &Args, config: TreeConfig, blocks: u64, pattern: Pattern) -> Result<Observed> {
    let mut engine = TreeOram::new(config, blocks, TreeKeys::from_seed(pattern as u64 + 1))?;
    let mut store = LabBuckets::showing();
    fill(&mut engine, &mut store, blocks)?;
    let mut ids = pattern.ids(blocks, 17);
    // Every bucket is stored before the trace begins: an unstored one is not read.
    let mut warm = Pattern::Uniform.ids(blocks, 3);
    let depth = engine.depth();
    let mut whole = oblivio_engine::tree::buckets_in(depth);
    while whole > 0 {
        for _ in 0..1024 {
            store.access(&mut engine, vec![defaults::read(warm())])?;
        }
        let stored = store.bytes_stored() / config.geometry().bucket_bytes() as u64;
        whole = oblivio_engine::tree::buckets_in(depth) - stored;
    }
    let mut schedule = Schedule::new(config.eviction, &engine)?;
    let mut seen = Observed {
        drawn: Trace { depth: depth.0, requests: Vec::with_capacity(args.accesses as usize) },
        paths: Vec::with_capacity(args.accesses as usize),
        occupancy: vec![0; 64],
        stash_peak: 0,
    };
    for access in 0..args.accesses {
        let id = ids();
        let op = if access % 2 == 0 {
            defaults::write(id, args.block_bytes)
        } else {
            defaults::read(id)
        };
        store.shown.clear();
        store.reset_counts();
        store.access(&mut engine, vec![op])?;
        let shown: Vec<_> = store.shown.iter().map(|leaf| leaf.0).collect();
        engine.committed();
        let drawn = schedule.drawn(&shown, depth)?;
        let union = union_of_paths(&shown, depth.0);
        ensure!(store.reads == u64::from(union), "access {access} did not read its paths");
        let rewritten =
            if schedule.rewrites_reads { union } else { union_of_paths(&shown[drawn..], depth.0) };
        ensure!(store.writes == u64::from(rewritten), "access {access} wrote something else");
        seen.paths.push(shown.len() as u8);
        let leaves = shown[..drawn].to_vec();
        let buckets = union_of_paths(&leaves, depth.0);
        seen.drawn.requests.push(TraceRequest {
            leaves,
            depth: depth.0,
            reads: buckets,
            writes: buckets,
            bytes_read: buckets.into(),
            bytes_written: buckets.into(),
            ..TraceRequest::default()
        });
        let stash = engine.stash_blocks();
        if stash >= seen.occupancy.len() {
            seen.occupancy.resize(stash + 1, 0);
        }
        seen.occupancy[stash] += 1;
        seen.stash_peak = seen.stash_peak.max(stash as u64);
    }
    Ok(seen)
}

/// The public schedule of evictions, known to anyone.
struct Schedule {
    every: u64,
    rewrites_reads: bool,
    /// Paths drawn and scheduled so far.
    drawn: u64,
    turns: u64,
}

impl Schedule {
    fn new(eviction: Eviction, engine: &TreeOram) -> Result<Self> {
        let paths = engine.meters().paths;
        let (every, rewrites_reads) = match eviction {
            Eviction::ReadPaths { extra_every: 0 } => (u64::MAX, true),
            Eviction::ReadPaths { extra_every } => (extra_every.into(), true),
            Eviction::Scheduled { every } => (every.into(), false),
            Eviction::Windows(_) => anyhow::bail!("windows have jobs of their own"),
        };
        // The drawn ones among `drawn + drawn / every` paths in all.
        let drawn = if every == u64::MAX {
            paths
        } else {
            let guess = (u128::from(paths) * u128::from(every)).div_ceil(u128::from(every) + 1);
            guess as u64
        };
        let turns = drawn / every;
        if drawn + turns != paths {
            bail!("{paths} paths follow no schedule of one in {every}");
        }
        Ok(Self { every, rewrites_reads, drawn, turns })
    }

    /// The number of drawn paths among those shown; the rest must be the next of the schedule.
    fn drawn(&mut self, shown: &[u64], depth: Level) -> Result<usize> {
        let all = shown.len() as u64;
        let fits = |due: &u64| (self.drawn + all - due) / self.every - self.turns == *due;
        let Some(due) = (0..=all).find(fits) else { bail!("no schedule asks for this request") };
        let drawn = (all - due) as usize;
        for &leaf in &shown[drawn..] {
            let next = self.turns.reverse_bits() >> (64 - depth.0);
            ensure!(leaf == next, "leaf {leaf} is not the next of the schedule");
            self.turns += 1;
        }
        self.drawn += drawn as u64;
        Ok(drawn)
    }
}

fn judge(
    args: &Args,
    name: &str,
    pattern: Pattern,
    seen: &Observed,
    alike: bool,
    leaks: &mut usize,
) -> Vec<String> {
    let options = AuditOptions {
        false_alarm_rate: args.false_alarm_rate / (2 * Pattern::ALL.len()) as f64,
        ..AuditOptions::default()
    };
    let options = options.expecting(|leaves, depth| {
        let buckets = union_of_paths(leaves, depth);
        (buckets, buckets)
    });
    let verdict = audit(&seen.drawn, &options);
    let least = |part: &str| {
        let of = verdict.findings.iter().filter(|f| f.judged && f.name.contains(part));
        format!("{:.3}", of.map(|finding| finding.p_value).fold(1.0, f64::min))
    };
    let passed = verdict.verdict == AuditVerdict::Pass && alike;
    *leaks += usize::from(!passed);
    let (samples, paths) = (seen.paths.len() as f64, seen.paths.iter().map(|&n| u64::from(n)));
    let held = seen.occupancy.iter().enumerate().map(|(size, &times)| size as u64 * times);
    let classic = name == "classic";
    vec![
        name.into(),
        pattern.name().into(),
        seen.stash_peak.to_string(),
        format!("{:.2}", held.sum::<u64>() as f64 / samples),
        if classic { bound_at(1.0 / samples).to_string() } else { "-".into() },
        if classic { bound_at((-80f64).exp2()).to_string() } else { format!("({STASH_BOUND})") },
        format!("{:.4}", paths.sum::<u64>() as f64 / samples),
        least("uniformity"),
        least("serial"),
        match (passed, alike) {
            (true, _) => "pass".into(),
            (false, true) => format!("{:?}", verdict.verdict),
            (false, false) => "path counts differ".into(),
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bound_is_the_theorems() {
        assert_eq!(bound_at((-80f64).exp2()), 114);
        assert!(14.0 * 0.6002f64.powi(114) <= (-80f64).exp2());
        assert!(14.0 * 0.6002f64.powi(113) > (-80f64).exp2());
    }
}

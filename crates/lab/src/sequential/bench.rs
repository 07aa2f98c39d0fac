//! The same jobs on several disks, over the same server.

use super::fio::{Job, Limit, Rate};
use super::served::Running;
use super::systems::{BASELINE, System};
use super::turning::{CACHED, RATE};
use crate::report::{Table, bytes, count, median};
use anyhow::{Context, Result, ensure};
use std::path::PathBuf;

/// The arguments of all disk comparisons.
#[derive(clap::Args, Clone, Debug)]
pub struct Bench {
    /// The size of each disk, as in 512M or 8G
    #[arg(long, default_value = "8G", value_parser = size)]
    pub size: u64,
    /// Rounds, with alternating disks; the table shows the median
    #[arg(long, default_value_t = 3)]
    rounds: usize,
    /// Seconds of a job
    #[arg(long, default_value_t = 20)]
    seconds: u64,
    /// Runs of each read-only job in each round, alternating with each other and, if all disks
    /// exist at once, with the other disks; each run counts
    #[arg(long, default_value_t = 1)]
    repeat: usize,
    /// Times to write a disk from beginning to end before the measurement
    #[arg(long, default_value_t = 3)]
    fill: u64,
    /// The disks, of plain, detwo, detwo-thirds, sequential, sequential-seeks, lane, lane-quarter,
    /// detwo-map, detwo-published, sequential-map and tree
    #[arg(long, value_delimiter = ',')]
    systems: Vec<String>,
    /// Only the jobs whose names begin like one of these
    #[arg(long, value_delimiter = ',')]
    jobs: Vec<String>,
    /// A folder on the storage to measure; by default the system's for temporary files
    #[arg(long)]
    dir: Option<PathBuf>,
    /// Keep all disks through all rounds and switch between them with each job, if there is room;
    /// else each disk is made anew for each round
    #[arg(long)]
    together: bool,
    /// Keep the system's page cache; else it is emptied before each job, as far as this user may
    #[arg(long)]
    warm: bool,
    /// Put the model of a rotating disk below every disk, with seeks of this many microseconds; 0
    /// for none
    #[arg(long, default_value_t = 0)]
    pub seek: u64,
}

/// The measurements of one disk.
#[derive(Clone, Debug, Default)]
struct Found {
    /// For each job, the rates of all rounds and of all runs in each.
    rates: Vec<Vec<Rate>>,
    /// Bytes of the process's memory peak, and bytes on the storage, in each round.
    memory: Vec<f64>,
    stored: Vec<f64>,
}

/// All measurements.
pub struct Measured {
    pub systems: Vec<&'static System>,
    jobs: Vec<Job>,
    found: Vec<Found>,
}

fn size(text: &str) -> Result<u64, String> {
    let (digits, unit) = match text.char_indices().last() {
        Some((at, 'K')) => (&text[..at], 1 << 10),
        Some((at, 'M')) => (&text[..at], 1 << 20),
        Some((at, 'G')) => (&text[..at], 1 << 30),
        _ => (text, 1),
    };
    let number = digits.parse::<u64>().ok().and_then(|number| number.checked_mul(unit));
    let number = number.filter(|bytes| *bytes > 0 && bytes.is_multiple_of(1 << 20));
    number.ok_or_else(|| "write a multiple of 1 MiB as 512M or 8G".into())
}

impl Bench {
    /// How it was measured, for the page.
    pub fn text(&self) -> String {
        let cold = match self.warm {
            true => "The page cache is left as it is.",
            false => "The page cache is emptied before each job.",
        };
        let turns = match self.together {
            true => "all disks are there at once, and change with each job",
            false => "each disk is made anew for each round",
        };
        let model = match self.seek {
            0 => String::new(),
            seek => format!(
                " **The storage is a model**: below every disk alike, a hard disk is imitated, \
                 with seeks of {:.1} ms, {} MB/s and a page cache of a {}th of the disk. The \
                 cache is empty before each job. The model is off while the disk is filled.",
                seek as f64 / 1e3,
                RATE / 1_000_000,
                CACHED
            ),
        };
        format!(
            "Disks of {}, each served by a process of its own with the server of `oblivio nbd`, \
             on the same store layer and with the same cipher. fio's `nbd` engine uses a Unix \
             socket. Before anything is measured, half of each disk is written, and then all of \
             it from beginning to end, {} times. So no write is in step with DetWoORAM's turns. \
             Jobs with a given time run {} seconds, and a flush at the end counts where they \
             write. Jobs that only read run {} times in each round, by turns. Median of {} \
             rounds; {turns}. A ratio is the median of the ratios of what was measured one after \
             the other. {cold}{model}",
            bytes(self.size),
            self.fill,
            self.seconds,
            self.repeat,
            self.rounds,
        )
    }

    /// Measures the jobs, on the `usual` disks unless others were given.
    ///
    /// # Errors
    /// Those of fio and the disks.
    pub fn measure(&self, usual: &[&str], mut jobs: Vec<Job>) -> Result<Measured> {
        let wanted = |job: &Job| self.jobs.iter().any(|begin| job.name.starts_with(begin));
        jobs.retain(|job| self.jobs.is_empty() || wanted(job));
        let usual = usual.iter().filter(|_| self.systems.is_empty()).copied();
        let keys = self.systems.iter().map(String::as_str).chain(usual);
        let systems: Vec<_> = keys.map(System::find).collect::<Result<_>>()?;
        ensure!(!systems.is_empty() && self.rounds > 0, "there is nothing to measure");
        let empty = Found { rates: vec![Vec::new(); jobs.len()], ..Found::default() };
        let found = vec![empty; systems.len()];
        let mut measured = Measured { systems, jobs, found };
        if self.together {
            let rounds: Vec<usize> = (0..self.rounds).collect();
            let all: Vec<usize> = (0..measured.systems.len()).collect();
            self.some(&mut measured, &all, &rounds)?;
        } else {
            for round in 0..self.rounds {
                for system in 0..measured.systems.len() {
                    self.some(&mut measured, &[system], &[round])?;
                }
            }
        }
        Ok(measured)
    }

    /// Measures some disks at once, alternating job by job.
    fn some(&self, measured: &mut Measured, systems: &[usize], rounds: &[usize]) -> Result<()> {
        let mut running = Vec::new();
        for &at in systems {
            running.push((at, self.start(measured.systems[at])?));
        }
        for &round in rounds {
            // Read-only jobs alternate as well: the storage gets faster and slower during the
            // measurement.
            let jobs: Vec<_> = measured.jobs.iter().enumerate().collect();
            for group in jobs.chunk_by(|(_, one), (_, next)| !one.writes() && !next.writes()) {
                let reads = group.iter().all(|(_, job)| !job.writes());
                for _ in 0..if reads { self.repeat.max(1) } else { 1 } {
                    for (number, job) in group {
                        for (at, disk) in &running {
                            let rate = self.run(disk, job, round)?;
                            eprintln!("{}, {}: {}", disk.system.name, job.name, shown(job, rate));
                            measured.found[*at].rates[*number].push(rate);
                        }
                    }
                }
            }
        }
        for (at, disk) in running {
            measured.found[at].memory.push(disk.peak_memory()? as f64);
            measured.found[at].stored.push(disk.stored()? as f64);
            disk.end()?;
        }
        Ok(())
    }

    fn run(&self, disk: &Running, job: &Job, round: usize) -> Result<Rate> {
        self.cool();
        disk.turn()?;
        job.run(&disk.uri(), self.size, self.seconds, round)
    }

    fn start(&self, system: &'static System) -> Result<Running> {
        let dir = self.dir.clone().unwrap_or_else(std::env::temp_dir);
        let disk = Running::start(system, &dir, self.size, self.seek)?;
        // Half of it first. Otherwise each write would be in step with DetWoORAM's turns, and its
        // blocks would be in the main area at once, which happens to no real file.
        for (bytes, what) in [(self.size / 2, "half filled"), (self.fill * self.size, "filled")] {
            let fill = Job { limit: Limit::Bytes(bytes), ..Job::sequential("write") };
            if self.fill > 0 {
                let rate = fill.run(&disk.uri(), self.size, self.seconds, 0).context(what)?;
                eprintln!("{}, {what}: {}", system.name, shown(&fill, rate));
            }
        }
        Ok(disk)
    }

    fn cool(&self) {
        if !self.warm {
            rustix::fs::sync();
            // Needs root; other users measure warm.
            std::fs::write("/proc/sys/vm/drop_caches", "3").ok();
        }
    }
}

impl Measured {
    /// The median rate of a job on a disk, in the job's unit.
    pub fn value(&self, system: usize, job: usize) -> f64 {
        self.median(system, job, |rate| self.jobs[job].value(rate))
    }

    /// The same in bytes a second, whatever the unit.
    pub fn bytes(&self, system: usize, job: usize) -> f64 {
        self.median(system, job, |rate| rate.bytes)
    }

    fn median(&self, system: usize, job: usize, value: impl Fn(Rate) -> f64) -> f64 {
        let rates = &self.found[system].rates[job];
        median(&rates.iter().map(|rate| value(*rate)).collect::<Vec<_>>())
    }

    /// How many times as fast one disk was at a job as another.
    pub fn ratio(&self, system: usize, to: usize, job: usize) -> f64 {
        self.pairs((system, job), (to, job))
    }

    /// How many times as fast one disk was at a job as another disk at another, by their numbers:
    /// the median over pairs measured one after the other.
    pub fn pairs(&self, one: (usize, usize), other: (usize, usize)) -> f64 {
        let rates = |(system, job): (usize, usize)| {
            self.found[system].rates[job].iter().map(move |rate| self.jobs[job].value(*rate))
        };
        let ratios = rates(one).zip(rates(other)).map(|(one, other)| one / other);
        median(&ratios.collect::<Vec<_>>())
    }

    /// The disk of this name, if it was measured.
    pub fn at(&self, key: &str) -> Option<usize> {
        self.systems.iter().position(|system| system.key == key)
    }

    /// The disks that this one is compared with, beside the plain one.
    pub fn rivals(&self, system: usize) -> impl Iterator<Item = usize> + '_ {
        self.systems[system].rivals.iter().filter_map(|rival| self.at(rival))
    }

    /// The ratios shown: all to the plain disk, and ours to their rivals.
    fn ratio_pairs(&self) -> Vec<(usize, usize)> {
        let baseline = self.at(BASELINE);
        let all = 0..self.systems.len();
        let others = all.clone().filter(|at| Some(*at) != baseline);
        let to_baseline = others.filter_map(|at| Some((at, baseline?)));
        let to_rivals = all.flat_map(|at| self.rivals(at).map(move |rival| (at, rival)));
        to_baseline.chain(to_rivals).collect()
    }

    /// All jobs, and the memory and space used.
    pub fn table(&self) -> Table {
        let mut head = vec!["job".to_owned()];
        head.extend(self.systems.iter().map(|system| system.name.to_owned()));
        let mut table = Table::new(head);
        for (number, job) in self.jobs.iter().enumerate() {
            let values = (0..self.systems.len()).map(|at| self.value(at, number));
            let cells = values.map(|value| in_unit(job, value));
            table.row([job.name.clone()].into_iter().chain(cells));
        }
        type Kept = fn(&Found) -> &[f64];
        let kept: [(&str, Kept); 2] = [
            ("memory of the server at its peak", |found| &found.memory),
            ("stored", |found| &found.stored),
        ];
        for (what, values) in kept {
            let cells = self.found.iter().map(|found| bytes(median(values(found)) as u64));
            table.row([what.to_owned()].into_iter().chain(cells));
        }
        table
    }

    /// The ratios between disks in all jobs.
    pub fn ratios(&self) -> Table {
        let name = |at: usize| self.systems[at].name;
        let pairs = self.ratio_pairs();
        let head = pairs.iter().map(|&(at, to)| format!("{} / {}", name(at), name(to)));
        let mut table = Table::new(["job".to_owned()].into_iter().chain(head));
        for (number, job) in self.jobs.iter().enumerate() {
            let ratio = |&(at, to): &(usize, usize)| format!("{:.2}", self.ratio(at, to, number));
            table.row([job.name.clone()].into_iter().chain(pairs.iter().map(ratio)));
        }
        table
    }
}

fn shown(job: &Job, rate: Rate) -> String {
    in_unit(job, job.value(rate))
}

/// A rate for people.
fn in_unit(job: &Job, value: f64) -> String {
    match job.in_bytes() {
        true => format!("{} MB/s", count(value / 1e6)),
        false => format!("{}/s", count(value)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read() {
        assert_eq!(size("8G"), Ok(8 << 30));
        assert_eq!(size("3145728"), Ok(3 << 20));
        for nonsense in ["", "G", "1", "0M", "-1G", "8T", "99999999999G", "1.5G", "é"] {
            assert!(size(nonsense).is_err(), "{nonsense}");
        }
    }
}

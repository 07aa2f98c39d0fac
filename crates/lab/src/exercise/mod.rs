//! Random operations on files, each compared with a model in memory, in the manner of fsx.
//!
//! Everything depends on the seed alone, so a difference recurs when run again. With `--model` the
//! model outlives the run: the next run first compares all files with it, for instance after the
//! directory was unmounted and mounted again.

mod data;
mod model;
mod names;
mod state;

use crate::engines::Engine;
use crate::served::Served;
use anyhow::{Context, Result};
use model::DIRECTORIES;
use oblivio_testkit::SplitMix64;
use state::{Exercise, OPEN};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::path::PathBuf;
use std::time::Instant;

/// The work to do, and where.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The directory to work in; it is made, or must be empty or belong to the model
    #[arg(long)]
    dir: PathBuf,
    /// Number of operations
    #[arg(long, default_value_t = 100_000)]
    ops: u64,
    /// Seed of the random numbers
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Limit of a file's bytes
    #[arg(long, default_value_t = 300_000)]
    size: u64,
    /// A directory elsewhere for the model: compared at the beginning, written at the end
    #[arg(long)]
    model: Option<PathBuf>,
    /// Make a volume of this engine in the directory, and work on a mount of it
    #[arg(long, conflicts_with = "model")]
    engine: Option<Engine>,
    /// How often to mount that volume; each time has as many operations and its own seed
    #[arg(long, default_value_t = 2, requires = "engine")]
    mounts: u64,
}

/// The weight of each operation.
const KINDS: &[(u32, &str, Operation)] = &[
    (160, "write", Exercise::write),
    (40, "append", Exercise::append),
    (160, "read", Exercise::read),
    (60, "mapped write", Exercise::mapped_write),
    (60, "mapped read", Exercise::mapped_read),
    (30, "truncate", Exercise::truncate),
    (8, "truncate by name", Exercise::truncate_by_name),
    (30, "punch", Exercise::punch),
    (30, "zero range", Exercise::zero_range),
    (30, "allocate", Exercise::allocate),
    (40, "copy range", Exercise::copy_range),
    (20, "seek", Exercise::seek),
    (20, "status", Exercise::status),
    (20, "reopen", Exercise::reopen),
    (10, "create", Exercise::create),
    (15, "rename", Exercise::rename),
    (5, "exchange", Exercise::exchange),
    (12, "link", Exercise::link),
    (10, "unlink", Exercise::unlink),
    (3, "list", Exercise::list),
    (3, "sync", Exercise::sync),
    (4, "drop the cache", Exercise::drop_cache),
    (3, "compare a file", Exercise::compare_one),
];

type Operation = fn(&mut Exercise) -> Result<()>;

/// Runs the exercise.
///
/// # Errors
/// A file differs from the model, or an operation fails.
pub fn run(args: &Args) -> Result<()> {
    match args.engine {
        Some(engine) => on_mounts(args, engine),
        None => once(args),
    }
}

/// MiB of the volume: more than the files may become.
const VOLUME_MIB: u64 = 512;

/// Mounts a volume again and again. Each mount begins with a comparison of everything, and after
/// the last one the volume is checked.
fn on_mounts(args: &Args, engine: Engine) -> Result<()> {
    fs::create_dir_all(&args.dir).with_context(|| args.dir.display().to_string())?;
    for mount in 0..=args.mounts {
        let served = Served::start(engine, &args.dir, VOLUME_MIB)?;
        once(&Args {
            dir: served.dir().join("files"),
            // The last one only compares.
            ops: if mount < args.mounts { args.ops } else { 0 },
            seed: args.seed + mount,
            size: args.size,
            model: Some(args.dir.join("model")),
            engine: None,
            mounts: 0,
        })?;
        served.end()?;
    }
    println!("{} mounts of a {}, and checked", args.mounts, engine.name());
    Ok(())
}

fn once(args: &Args) -> Result<()> {
    let mut exercise = Exercise::begin(args)?;
    let begun = Instant::now();
    let result = exercise.all(args);
    if let Err(error) = result {
        eprintln!("the last operations with --seed {} --size {}:", args.seed, args.size);
        exercise.told.iter().for_each(|line| eprintln!("  {line}"));
        return Err(error.context(format!("operation {}", exercise.done)));
    }
    let seconds = begun.elapsed().as_secs_f64();
    let counts: Vec<String> =
        exercise.counts.iter().map(|(kind, count)| format!("{kind} {count}")).collect();
    println!(
        "seed {}: {} operations without a difference in {seconds:.0} s ({})",
        args.seed,
        args.ops,
        counts.join(", ")
    );
    Ok(())
}

impl Exercise {
    fn begin(args: &Args) -> Result<Self> {
        let mut exercise = Exercise {
            dir: args.dir.clone(),
            size: args.size.max(1),
            rng: SplitMix64::new(args.seed),
            names: BTreeMap::new(),
            open: Vec::new(),
            told: VecDeque::new(),
            done: 0,
            counts: BTreeMap::new(),
        };
        match &args.model {
            Some(model) if model.exists() => exercise.names = model::load(model)?,
            _ => {
                for directory in DIRECTORIES {
                    let path = args.dir.join(directory);
                    fs::create_dir_all(&path).with_context(|| path.display().to_string())?;
                }
            }
        }
        Ok(exercise)
    }

    fn all(&mut self, args: &Args) -> Result<()> {
        self.compare_all().context("before the first operation")?;
        let total = KINDS.iter().map(|(weight, ..)| u64::from(*weight)).sum();
        while self.done < args.ops {
            self.done += 1;
            while self.open.len() < OPEN {
                self.open_some()?;
            }
            let mut at = self.rng.below(total) as u32;
            for (weight, name, operation) in KINDS {
                if at < *weight {
                    operation(self).context(*name)?;
                    *self.counts.entry(name).or_default() += 1;
                    break;
                }
                at -= weight;
            }
        }
        self.open.clear();
        self.compare_all().context("after the last operation")?;
        match &args.model {
            Some(model) => model::save(&self.names, model),
            None => Ok(()),
        }
    }

    fn compare_one(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        self.tell(format!("compare {name}"));
        self.compare_file(&name)
    }

    fn compare_file(&self, name: &str) -> Result<()> {
        let node = self.names[name].borrow();
        let file = File::open(self.path(name)).with_context(|| name.to_owned())?;
        model::compare(&file, &node, 0, node.len() as u64 + 1).with_context(|| name.to_owned())
    }

    fn compare_all(&mut self) -> Result<()> {
        self.list()?;
        self.names.keys().try_for_each(|name| self.compare_file(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    fn args(dir: &Path, seed: u64) -> Args {
        let model = Some(dir.join("model"));
        Args {
            dir: dir.join("files"),
            ops: 3000,
            seed,
            size: 100_000,
            model,
            engine: None,
            mounts: 0,
        }
    }

    #[test]
    fn no_difference_on_a_plain_directory() -> Result<()> {
        let scratch = tempfile::tempdir()?;
        run(&args(scratch.path(), 1))?;
        run(&args(scratch.path(), 2))
    }

    #[test]
    fn a_changed_byte_is_found() -> Result<()> {
        let scratch = tempfile::tempdir()?;
        let args = args(scratch.path(), 3);
        run(&args)?;
        let dirs = DIRECTORIES.map(|name| args.dir.join(name).read_dir());
        for entry in dirs.into_iter().flatten().flatten() {
            let file = File::options().write(true).open(entry?.path())?;
            let len = file.metadata()?.len();
            if len > 0 {
                file.write_all_at(b"?", len / 2)?;
            }
        }
        assert!(run(&Args { ops: 0, ..args }).is_err());
        Ok(())
    }
}

//! Random operations on files, each compared with a model in memory, in the manner of fsx.
//!
//! Everything depends on the seed alone, so a difference recurs when run again. With `--model` the
//! model outlives the run: the next run first compares all files with it, for instance after the
//! directory was unmounted and mounted again.

mod data;
mod model;
mod names;

use anyhow::{Context, Result};
use oblivio_testkit::SplitMix64;
use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{self, File};
use std::path::PathBuf;
use std::rc::Rc;
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
}

/// Files that are open at a time.
const OPEN: usize = 8;
/// Possible names in each of the directories.
const NAMES: u64 = 10;
const DIRECTORIES: [&str; 2] = ["left", "right"];
/// Recent operations to print when something differs.
const TOLD: usize = 60;
/// Common boundaries: pages, and the blocks of volumes.
const ALIGNED: [u64; 3] = [512, 4096, 16 << 10];

/// A file's expected content; names and open files share it, as they share an inode.
type Node = Rc<RefCell<Vec<u8>>>;

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
    let mut exercise = Exercise::new(args)?;
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

struct Open {
    file: File,
    node: Node,
}

struct Exercise {
    dir: PathBuf,
    size: u64,
    rng: SplitMix64,
    names: BTreeMap<String, Node>,
    open: Vec<Open>,
    told: VecDeque<String>,
    done: u64,
    counts: BTreeMap<&'static str, u64>,
}

impl Exercise {
    fn new(args: &Args) -> Result<Self> {
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
            Some(model) => self.save(model),
            None => Ok(()),
        }
    }

    fn tell(&mut self, what: String) {
        if self.told.len() == TOLD {
            self.told.pop_front();
        }
        self.told.push_back(format!("{}: {what}", self.done));
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.join(name)
    }

    fn any_name(&mut self) -> String {
        let directory = DIRECTORIES[self.rng.below(2) as usize];
        format!("{directory}/{}", self.rng.below(NAMES))
    }

    /// An existing name.
    fn some_name(&mut self) -> Option<String> {
        let at = self.rng.below(self.names.len().max(1) as u64) as usize;
        self.names.keys().nth(at).cloned()
    }

    fn slot(&mut self) -> usize {
        self.rng.below(self.open.len() as u64) as usize
    }

    fn node(&self, slot: usize) -> RefMut<'_, Vec<u8>> {
        self.open[slot].node.borrow_mut()
    }

    fn len(&self, slot: usize) -> u64 {
        self.open[slot].node.borrow().len() as u64
    }

    /// A place in a file of at most `size` bytes, often at a boundary.
    fn offset(&mut self, size: u64) -> u64 {
        let at = self.rng.below(size + 1);
        match self.rng.below(4) {
            0 => {
                let unit = ALIGNED[self.rng.below(3) as usize];
                at / unit * unit
            }
            _ => at,
        }
    }

    /// A range that ends at `size` at the latest; short ones are as likely as long ones. It is
    /// empty only if `size` is 0.
    fn range(&mut self, size: u64) -> (u64, u64) {
        let offset = self.offset(size).min(size.saturating_sub(1));
        let most = 1u64 << self.rng.below(18);
        let mut len = self.rng.below(most) + 1;
        if self.rng.below(4) == 0 {
            let unit = ALIGNED[self.rng.below(3) as usize];
            len = (offset + len).next_multiple_of(unit) - offset;
        }
        (offset, len.min(size - offset))
    }

    fn noise(&mut self, len: u64) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(len as usize + 8);
        while (bytes.len() as u64) < len {
            bytes.extend_from_slice(&self.rng.next_u64().to_le_bytes());
        }
        bytes.truncate(len as usize);
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;
    use std::path::Path;

    fn args(dir: &Path, seed: u64) -> Args {
        let model = Some(dir.join("model"));
        Args { dir: dir.join("files"), ops: 3000, seed, size: 100_000, model }
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

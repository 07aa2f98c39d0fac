//! Random operations on files, each compared with a model in memory, in the manner of fsx.
//!
//! Everything follows from the seed, so a difference comes back when it is run again. With
//! `--model` the model outlives the run: the next run begins by comparing all files with it, for
//! instance after the directory was unmounted and mounted again.

use crate::mapped;
use crate::workload::Rng;
use anyhow::{Context, Result, bail, ensure};
use rustix::fs::{Advice, FallocateFlags, RenameFlags, SeekFrom};
use rustix::io::Errno;
use std::cell::{RefCell, RefMut};
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

/// What to do, and where.
#[derive(clap::Args, Debug)]
pub struct Args {
    /// The directory to work in; it is made, or must be empty or belong to the model.
    #[arg(long)]
    dir: PathBuf,
    /// How many operations.
    #[arg(long, default_value_t = 100_000)]
    ops: u64,
    /// Where the random numbers begin.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// The most bytes of a file.
    #[arg(long, default_value_t = 300_000)]
    size: u64,
    /// A directory elsewhere that keeps the model: compared with at the beginning, written at the
    /// end.
    #[arg(long)]
    model: Option<PathBuf>,
}

/// Files that are open at a time.
const OPEN: usize = 8;
/// Names that there may be in each of the directories.
const NAMES: u64 = 10;
const DIRECTORIES: [&str; 2] = ["left", "right"];
/// Operations that are told when something differs.
const TOLD: usize = 60;
/// Where many edges are: pages, and the blocks of volumes.
const ALIGNED: [u64; 3] = [512, 4096, 16 << 10];

/// What a file must contain; names and open files share it, as they share an inode.
type Node = Rc<RefCell<Vec<u8>>>;

/// How often each operation is done.
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
/// When a file is not what it must be, or an operation fails.
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
    rng: Rng,
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
            rng: Rng::new(args.seed),
            names: BTreeMap::new(),
            open: Vec::new(),
            told: VecDeque::new(),
            done: 0,
            counts: BTreeMap::new(),
        };
        match &args.model {
            Some(model) if model.exists() => exercise.names = load(model)?,
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

    /// A name that there is.
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

    /// A place in a file of at most `size` bytes, often one where something begins or ends.
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
    /// empty only when `size` is 0.
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
            bytes.extend_from_slice(&self.rng.next().to_le_bytes());
        }
        bytes.truncate(len as usize);
        bytes
    }

    fn options() -> fs::OpenOptions {
        let mut options = File::options();
        options.read(true).write(true);
        options
    }

    fn open_some(&mut self) -> Result<()> {
        match self.some_name() {
            Some(name) if self.rng.below(4) > 0 => {
                let file = Self::options().open(self.path(&name))?;
                let slot = self.open.len();
                self.tell(format!("[{slot}] opens {name}"));
                self.open.push(Open { file, node: Rc::clone(&self.names[&name]) });
                Ok(())
            }
            _ => self.create(),
        }
    }

    /// A file of that name, new or cut off, opened.
    fn create(&mut self) -> Result<()> {
        let name = self.any_name();
        let file = Self::options().create(true).truncate(true).open(self.path(&name))?;
        let node = self.names.entry(name.clone()).or_default();
        node.borrow_mut().clear();
        let open = Open { file, node: Rc::clone(node) };
        let slot = match self.open.len() {
            OPEN => self.slot(),
            len => len,
        };
        self.tell(format!("[{slot}] creates {name}"));
        match self.open.get_mut(slot) {
            Some(place) => *place = open,
            None => self.open.push(open),
        }
        Ok(())
    }

    /// What is closed here and unlinked has to go; the next operation opens another.
    fn reopen(&mut self) -> Result<()> {
        let slot = self.slot();
        self.tell(format!("[{slot}] is closed"));
        drop(self.open.swap_remove(slot));
        Ok(())
    }

    fn write(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        let data = self.noise(len);
        self.tell(format!("[{slot}] write {offset} +{len}"));
        self.open[slot].file.write_all_at(&data, offset)?;
        put(&mut self.node(slot), offset, &data);
        Ok(())
    }

    fn append(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        let node = Rc::clone(&self.names[&name]);
        let (at, most) = (node.borrow().len() as u64, 1 << self.rng.below(14));
        let len = (self.rng.below(most) + 1).min(self.size.saturating_sub(at));
        let data = self.noise(len);
        self.tell(format!("{name} append +{len}"));
        let mut file = File::options().append(true).open(self.path(&name))?;
        file.write_all(&data)?;
        node.borrow_mut().extend_from_slice(&data);
        Ok(())
    }

    fn read(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        self.tell(format!("[{slot}] read {offset} +{len}"));
        let open = &self.open[slot];
        compare(&open.file, &open.node.borrow(), offset, len)
    }

    fn mapped_write(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.len(slot));
        if len == 0 {
            return Ok(());
        }
        let data = self.noise(len);
        let flush = self.rng.below(4) == 0;
        self.tell(format!("[{slot}] mapped write {offset} +{len}, flushed: {flush}"));
        mapped::write(&self.open[slot].file, offset, &data, flush)?;
        put(&mut self.node(slot), offset, &data);
        Ok(())
    }

    fn mapped_read(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.len(slot));
        if len == 0 {
            return Ok(());
        }
        self.tell(format!("[{slot}] mapped read {offset} +{len}"));
        let open = &self.open[slot];
        let read = mapped::read(&open.file, offset, len as usize)?;
        same(&read, &open.node.borrow()[offset as usize..][..len as usize], offset)
    }

    fn truncate(&mut self) -> Result<()> {
        let (slot, to) = (self.slot(), self.offset(self.size));
        self.tell(format!("[{slot}] truncate {} to {to}", self.len(slot)));
        self.open[slot].file.set_len(to)?;
        self.node(slot).resize(to as usize, 0);
        Ok(())
    }

    fn truncate_by_name(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        let to = self.offset(self.size);
        self.tell(format!("{name} truncate to {to}"));
        File::options().write(true).open(self.path(&name))?.set_len(to)?;
        self.names[&name].borrow_mut().resize(to as usize, 0);
        Ok(())
    }

    fn punch(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        self.tell(format!("[{slot}] punch {offset} +{len}"));
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        if fallocate(&self.open[slot].file, flags, offset, len)? {
            clear(&mut self.node(slot), offset, len);
        }
        Ok(())
    }

    fn zero_range(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        let keep = self.keep_size();
        self.tell(format!("[{slot}] zero range {offset} +{len} {keep:?}"));
        let flags = FallocateFlags::ZERO_RANGE | keep;
        if fallocate(&self.open[slot].file, flags, offset, len)? {
            clear(&mut self.node(slot), offset, len);
            self.grow(slot, offset + len, keep);
        }
        Ok(())
    }

    fn allocate(&mut self) -> Result<()> {
        let slot = self.slot();
        let (offset, len) = self.range(self.size);
        let keep = self.keep_size();
        self.tell(format!("[{slot}] allocate {offset} +{len} {keep:?}"));
        if fallocate(&self.open[slot].file, keep, offset, len)? {
            self.grow(slot, offset + len, keep);
        }
        Ok(())
    }

    fn keep_size(&mut self) -> FallocateFlags {
        match self.rng.below(2) {
            0 => FallocateFlags::empty(),
            _ => FallocateFlags::KEEP_SIZE,
        }
    }

    fn grow(&self, slot: usize, end: u64, keep: FallocateFlags) {
        if keep.is_empty() && end > self.len(slot) {
            self.node(slot).resize(end as usize, 0);
        }
    }

    fn copy_range(&mut self) -> Result<()> {
        let (from, to) = (self.slot(), self.slot());
        let (mut source, len) = self.range(self.len(from));
        if len == 0 {
            return Ok(());
        }
        let mut target = self.offset(self.size - len);
        if Rc::ptr_eq(&self.open[from].node, &self.open[to].node) && source.abs_diff(target) < len {
            return Ok(());
        }
        self.tell(format!("[{from}] copy {source} +{len} to [{to}] {target}"));
        let data = self.node(from)[source as usize..][..len as usize].to_vec();
        let (reader, writer) = (&self.open[from].file, &self.open[to].file);
        let start = target;
        let mut left = len as usize;
        while left > 0 {
            let asked = (Some(&mut source), Some(&mut target));
            let copied = rustix::fs::copy_file_range(reader, asked.0, writer, asked.1, left)?;
            ensure!(copied > 0, "nothing was copied, though {left} bytes are left");
            left -= copied;
        }
        put(&mut self.node(to), start, &data);
        Ok(())
    }

    /// No byte but zeros may lie between a place and the next data, or where a hole begins.
    fn seek(&mut self) -> Result<()> {
        let slot = self.slot();
        let at = self.offset(self.len(slot));
        self.tell(format!("[{slot}] seek from {at}"));
        let open = &self.open[slot];
        let node = open.node.borrow();
        let found = |from| match rustix::fs::seek(&open.file, from) {
            Err(Errno::NXIO) => Ok(node.len()),
            found => found.map(|found| found as usize),
        };
        let data = found(SeekFrom::Data(at))?;
        ensure!(data <= node.len(), "data at {data}, behind the end");
        let between = node.get(at as usize..data).unwrap_or_default();
        ensure!(between.iter().all(|&byte| byte == 0), "data before {data} was not found");
        let hole = found(SeekFrom::Hole(at))?;
        ensure!(hole <= node.len(), "a hole at {hole}, behind the end");
        ensure!(node.get(hole).is_none_or(|&byte| byte == 0), "the hole at {hole} has data");
        Ok(())
    }

    fn status(&mut self) -> Result<()> {
        let slot = self.slot();
        self.tell(format!("[{slot}] status"));
        let (status, node) = (self.open[slot].file.metadata()?, &self.open[slot].node);
        let len = node.borrow().len() as u64;
        ensure!(status.len() == len, "{} bytes instead of {len}", status.len());
        let names = self.names.values().filter(|other| Rc::ptr_eq(other, node)).count() as u64;
        ensure!(status.nlink() == names, "{} names instead of {names}", status.nlink());
        Ok(())
    }

    fn rename(&mut self) -> Result<()> {
        let (Some(from), to) = (self.some_name(), self.any_name()) else { return Ok(()) };
        self.tell(format!("rename {from} to {to}"));
        fs::rename(self.path(&from), self.path(&to))?;
        let node = Rc::clone(&self.names[&from]);
        // Two names of one file both stay.
        if self.names.get(&to).is_none_or(|old| !Rc::ptr_eq(old, &node)) {
            self.names.remove(&from);
            self.names.insert(to, node);
        }
        Ok(())
    }

    fn exchange(&mut self) -> Result<()> {
        let (Some(a), Some(b)) = (self.some_name(), self.some_name()) else { return Ok(()) };
        self.tell(format!("exchange {a} and {b}"));
        let (x, y) = (self.path(&a), self.path(&b));
        let cwd = rustix::fs::CWD;
        rustix::fs::renameat_with(cwd, x, cwd, y, RenameFlags::EXCHANGE)?;
        let (x, y) = (Rc::clone(&self.names[&a]), Rc::clone(&self.names[&b]));
        self.names.insert(a, y);
        self.names.insert(b, x);
        Ok(())
    }

    fn link(&mut self) -> Result<()> {
        let (Some(from), to) = (self.some_name(), self.any_name()) else { return Ok(()) };
        self.tell(format!("link {from} to {to}"));
        match fs::hard_link(self.path(&from), self.path(&to)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                ensure!(self.names.contains_key(&to), "{to} exists");
            }
            linked => {
                linked?;
                let node = Rc::clone(&self.names[&from]);
                ensure!(self.names.insert(to, node).is_none(), "linked over a name");
            }
        }
        Ok(())
    }

    /// While it is open it lives on.
    fn unlink(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        self.tell(format!("unlink {name}"));
        fs::remove_file(self.path(&name))?;
        self.names.remove(&name);
        Ok(())
    }

    fn list(&mut self) -> Result<()> {
        self.tell("list".into());
        let mut found = BTreeSet::new();
        for directory in DIRECTORIES {
            for entry in self.path(directory).read_dir()? {
                found.insert(format!("{directory}/{}", entry?.file_name().display()));
            }
        }
        let names: BTreeSet<String> = self.names.keys().cloned().collect();
        let odd: Vec<_> = found.symmetric_difference(&names).collect();
        ensure!(odd.is_empty(), "names that are there or are not: {odd:?}");
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let (slot, all) = (self.slot(), self.rng.below(4) == 0);
        self.tell(format!("[{slot}] sync, all files: {all}"));
        match all {
            true => rustix::fs::syncfs(&self.open[slot].file)?,
            false => self.open[slot].file.sync_data()?,
        }
        Ok(())
    }

    /// What is read next comes from the file system.
    fn drop_cache(&mut self) -> Result<()> {
        let slot = self.slot();
        self.tell(format!("[{slot}] drop the cache"));
        let open = &self.open[slot];
        open.file.sync_all()?;
        rustix::fs::fadvise(&open.file, 0, None, Advice::DontNeed)?;
        let node = open.node.borrow();
        compare(&open.file, &node, 0, node.len() as u64 + 1)
    }

    fn compare_one(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        self.tell(format!("compare {name}"));
        self.compare_file(&name)
    }

    fn compare_file(&self, name: &str) -> Result<()> {
        let node = self.names[name].borrow();
        let file = File::open(self.path(name)).with_context(|| name.to_owned())?;
        compare(&file, &node, 0, node.len() as u64 + 1).with_context(|| name.to_owned())
    }

    fn compare_all(&mut self) -> Result<()> {
        self.list()?;
        self.names.keys().try_for_each(|name| self.compare_file(name))
    }

    /// The model as files elsewhere, hard links included.
    fn save(&self, model: &Path) -> Result<()> {
        if model.exists() {
            fs::remove_dir_all(model)?;
        }
        let mut saved: HashMap<*const RefCell<Vec<u8>>, PathBuf> = HashMap::new();
        for directory in DIRECTORIES {
            fs::create_dir_all(model.join(directory))?;
        }
        for (name, node) in &self.names {
            let path = model.join(name);
            match saved.get(&Rc::as_ptr(node)) {
                Some(first) => fs::hard_link(first, &path)?,
                None => {
                    fs::write(&path, &*node.borrow())?;
                    saved.insert(Rc::as_ptr(node), path);
                }
            }
        }
        Ok(())
    }
}

fn load(model: &Path) -> Result<BTreeMap<String, Node>> {
    let mut names = BTreeMap::new();
    let mut loaded: HashMap<u64, Node> = HashMap::new();
    for directory in DIRECTORIES {
        for entry in model.join(directory).read_dir()? {
            let entry = entry?;
            let name = format!("{directory}/{}", entry.file_name().display());
            let ino = entry.metadata()?.ino();
            let node = match loaded.get(&ino) {
                Some(node) => Rc::clone(node),
                None => Rc::new(RefCell::new(fs::read(entry.path())?)),
            };
            loaded.insert(ino, Rc::clone(&node));
            names.insert(name, node);
        }
    }
    Ok(names)
}

/// `false` where the file system does not have it.
fn fallocate(file: &File, flags: FallocateFlags, offset: u64, len: u64) -> Result<bool> {
    match rustix::fs::fallocate(file, flags, offset, len) {
        Err(Errno::OPNOTSUPP) => Ok(false),
        done => Ok(done.map(|()| true)?),
    }
}

fn put(node: &mut Vec<u8>, offset: u64, data: &[u8]) {
    let (from, to) = (offset as usize, offset as usize + data.len());
    if node.len() < to {
        node.resize(to, 0);
    }
    node[from..to].copy_from_slice(data);
}

fn clear(node: &mut [u8], offset: u64, len: u64) {
    let to = node.len().min((offset + len) as usize);
    if let Some(range) = node.get_mut(offset as usize..to) {
        range.fill(0);
    }
}

/// Reads a range, which may go beyond the end, and compares it.
fn compare(file: &File, node: &[u8], offset: u64, len: u64) -> Result<()> {
    let mut read = vec![0; len as usize];
    let mut filled = 0;
    while filled < read.len() {
        match file.read_at(&mut read[filled..], offset + filled as u64)? {
            0 => break,
            some => filled += some,
        }
    }
    let from = node.len().min(offset as usize);
    let to = node.len().min((offset + len) as usize);
    same(&read[..filled], &node[from..to], offset)
}

fn same(read: &[u8], wanted: &[u8], offset: u64) -> Result<()> {
    if read == wanted {
        return Ok(());
    }
    ensure!(read.len() == wanted.len(), "{} bytes instead of {}", read.len(), wanted.len());
    let differ = |at: &usize| read[*at] != wanted[*at];
    let first = (0..read.len()).find(differ).unwrap_or_default();
    let last = (0..read.len()).rfind(differ).unwrap_or_default();
    bail!(
        "bytes {} to {} differ: {:02x} instead of {:02x} at the first",
        offset + first as u64,
        offset + last as u64,
        read[first],
        wanted[first]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

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

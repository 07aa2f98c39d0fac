//! The files that the demo works on: real ones if there are enough, else made-up ones.

use crate::human;
use crate::inside::{self, VolumePath};
use anyhow::{Context, Result};
use oblivio_volume::fs::{FileSystem, NewNode};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Files read in the comparison.
pub const READ: usize = 30;
/// Limits of files and bytes.
const MOST_FILES: usize = 400;
const MOST_BYTES: u64 = 20 << 20;
/// A larger file would dominate the picture.
const LARGEST: u64 = 1 << 20;
/// Folders that hold no sources.
const SKIPPED: [&str; 3] = ["target", "node_modules", "__pycache__"];

/// Some files below a folder.
pub struct SampleFiles {
    /// Its name in the story.
    pub name: String,
    /// Paths and contents, kept because files may change while the demo runs.
    pub files: Vec<(PathBuf, Vec<u8>)>,
}

/// The files of the folder, of the current one, or made-up ones.
pub fn find(folder: Option<&Path>) -> Result<SampleFiles> {
    let root = folder.unwrap_or(Path::new("."));
    let root = root.canonicalize().with_context(|| root.display().to_string())?;
    let source = SampleFiles { name: root.display().to_string(), files: collect(&root) };
    if source.files.len() > READ {
        return Ok(source);
    }
    if folder.is_some() {
        let what =
            format!("{} has only {}", source.name, human::count(source.files.len() as u64, "file"));
        let hint =
            format!("The demo reads {READ} different ones; without a folder it makes its own.");
        return Err(crate::exit::usage(what, hint));
    }
    Ok(make_up())
}

/// Plain files, the shallow ones first; unreadable ones are left out.
fn collect(root: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let (mut files, mut bytes) = (Vec::new(), 0);
    let mut todo = std::collections::VecDeque::from([root.to_owned()]);
    while let Some(folder) = todo.pop_front() {
        let Ok(entries) = folder.read_dir() else { continue };
        let mut entries: Vec<_> = entries.flatten().collect();
        entries.sort_by_key(std::fs::DirEntry::file_name);
        for entry in entries {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(found) = entry.path().symlink_metadata() else { continue };
            if name.starts_with('.') || SKIPPED.contains(&name.as_str()) {
                continue;
            }
            if found.is_dir() {
                todo.push_back(entry.path());
            } else if found.is_file()
                && (1..=LARGEST).contains(&found.len())
                && bytes + found.len() <= MOST_BYTES
                && files.len() < MOST_FILES
                && let Ok(content) = std::fs::read(entry.path())
                && let Ok(path) = entry.path().strip_prefix(root)
            {
                bytes += content.len() as u64;
                files.push((path.to_owned(), content));
            }
        }
        if files.len() >= MOST_FILES {
            break;
        }
    }
    files
}

/// A private archive that nobody has: letters, invoices, diagnoses.
fn make_up() -> SampleFiles {
    let mut files = Vec::new();
    for folder in ["letters", "invoices", "diagnoses"] {
        for n in 1..=30u64 {
            let path = Path::new(folder).join(format!("{n:02}.txt"));
            let line = format!("This is number {n} of the {folder} that nobody should count.\n");
            let text = line.repeat(150 + n as usize % 7 * 5);
            files.push((path, text.into_bytes()));
        }
    }
    SampleFiles { name: "a made-up archive".into(), files }
}

impl SampleFiles {
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|(_, content)| content.len() as u64).sum()
    }

    /// The length of the file at this position.
    pub fn len(&self, at: usize) -> u64 {
        self.files[at].1.len() as u64
    }

    /// Stores all files in a volume.
    pub fn put(&self, fs: &FileSystem) -> Result<()> {
        for (path, content) in &self.files {
            let remote = remote(path)?;
            crate::tree::make_all(fs, &remote.parent())?;
            let parent = inside::find_directory(fs, &remote.parent())?.ino;
            let node = NewNode { mode: 0o600, mtime: crate::open::now(), ..NewNode::default() };
            let (_, handle) = fs.create(parent, remote.name().context("a name")?, node)?;
            fs.write(handle, 0, content)?;
            fs.close(handle)?;
        }
        Ok(fs.commit()?)
    }

    /// The positions of [`READ`] files of about the same length: how much is read must reveal
    /// nothing. The middle one is the one to read over and over.
    pub fn alike(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.files.len()).collect();
        order.sort_by_key(|&at| self.len(at));
        let len = |at: usize| self.len(order[at]);
        let last = order.len() - READ;
        let spread = |at: &usize| len(at + READ - 1) * 1000 / len(*at).max(1);
        // Of several blocks each, if enough of those are alike.
        let tightest = |least: u64| {
            let first = (0..order.len()).find(|&at| len(at) >= least)?;
            (first..=last).min_by_key(spread)
        };
        let good = |at: &usize| spread(at) <= 1500;
        let of_blocks = tightest(8 << 10).filter(good);
        let begin = of_blocks.or_else(|| tightest(2 << 10).filter(good));
        let begin = begin.or_else(|| tightest(0)).unwrap_or(0);
        order[begin..begin + READ].to_vec()
    }

    /// Position and page count of each file in a row on a disk that is only encrypted; and the
    /// total of pages.
    pub fn layout(&self, page_bytes: u64) -> (Vec<(u64, u64)>, u64) {
        let mut end = 0;
        let mut places = Vec::new();
        for at in 0..self.files.len() {
            let pages = self.len(at).div_ceil(page_bytes);
            places.push((end, pages));
            end += pages;
        }
        (places, end)
    }
}

/// A file's path in the volume.
pub fn remote(path: &Path) -> Result<VolumePath> {
    let mut bytes = Vec::new();
    for part in path.components() {
        if let Component::Normal(name) = part {
            bytes.push(b'/');
            bytes.extend(name.as_bytes());
        }
    }
    inside::parse(OsStr::from_bytes(&bytes))
}

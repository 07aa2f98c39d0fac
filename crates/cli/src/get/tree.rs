//! The walk over the volume's files, and what it makes on the local disk.

use super::local::{self, Folder, check_name};
use super::pieces::{Holes, each_piece};
use crate::exit::{Code, Failures, fault};
use crate::human;
use crate::inside::entries;
use crate::lost::{DamagedFiles, lost_in};
use crate::progress::Progress;
use crate::put::Summary;
use anyhow::{Context, Result};
use oblivio_app::walk::ReadFiles;
use oblivio_serve::watch::Publisher;
use oblivio_volume::fs::{Attr, FileKind, Ino};
use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::rc::Rc;

/// Tasks left. A stack of these replaces recursion: a volume can hold a tree deeper than any call
/// stack.
enum Task {
    /// Make this inode as `path` (below the target) in a folder.
    Make { folder: Rc<Folder>, path: PathBuf, ino: Ino },
    /// Set a folder's attributes: its content is complete.
    Finish { folder: Rc<Folder>, path: PathBuf, attr: Attr },
}

/// One `get` at work.
pub struct Get<'f> {
    fs: &'f dyn ReadFiles,
    publisher: &'f Publisher,
    root: Rc<Folder>,
    pub force: bool,
    /// Whether to write damaged files too, under another name.
    pub incomplete: bool,
    /// Whether to name files, and whether as JSON.
    pub announce: (bool, bool),
    progress: Progress,
    tasks: Vec<Task>,
    /// Files with several names: the path of the first.
    links: HashMap<Ino, PathBuf>,
    temporaries: u64,
    failures: Failures,
    lost: DamagedFiles,
    summary: Summary,
}

impl<'f> Get<'f> {
    pub fn new(
        (fs, publisher): (&'f dyn ReadFiles, &'f Publisher),
        root: Folder,
        progress: Progress,
    ) -> Self {
        Self {
            fs,
            publisher,
            root: Rc::new(root),
            force: false,
            incomplete: false,
            announce: (false, false),
            progress,
            tasks: Vec::new(),
            links: HashMap::new(),
            temporaries: 0,
            failures: Failures::default(),
            lost: DamagedFiles::default(),
            summary: Summary::default(),
        }
    }

    /// Makes `attr` under this name in the root, or its content right in the root.
    pub fn run(&mut self, attr: Attr, name: Option<Vec<u8>>) -> Result<()> {
        match name {
            Some(name) => {
                let path = PathBuf::from(check_name(&name)?);
                self.tasks.push(Task::Make { folder: Rc::clone(&self.root), path, ino: attr.ino });
            }
            None => self.push_entries(Rc::clone(&self.root), Path::new(""), attr.ino)?,
        }
        while let Some(task) = self.tasks.pop() {
            let (done, path) = match task {
                Task::Make { folder, path, ino } => (self.make(folder, &path, ino), path),
                Task::Finish { folder, path, attr } => {
                    (folder.set_attributes(&attr).map_err(Into::into), path)
                }
            };
            if let Err(error) = done {
                let path = path.display().to_string();
                let Self { failures, lost, progress, .. } = self;
                let mut noted = Ok(());
                progress.aside(|| {
                    let other = lost.take(path.clone(), error).err();
                    noted = other.map_or(Ok(()), |error| failures.note(error.context(path)));
                });
                noted?;
            }
        }
        Ok(())
    }

    fn push_entries(&mut self, folder: Rc<Folder>, path: &Path, ino: Ino) -> Result<()> {
        // The last one pushed is made first.
        for entry in entries(self.fs, ino)?.into_iter().rev() {
            let name = check_name(&entry.name)?;
            let (folder, path) = (Rc::clone(&folder), path.join(name));
            self.tasks.push(Task::Make { folder, path, ino: entry.ino });
        }
        Ok(())
    }

    fn make(&mut self, folder: Rc<Folder>, path: &Path, ino: Ino) -> Result<()> {
        let attr = self.fs.attr(ino)?;
        let name = path.file_name().context("a path without a name")?;
        match attr.kind {
            FileKind::Directory => return self.directory(&folder, path, name, attr),
            FileKind::Symlink => {
                let target = self.fs.read_link(ino)?;
                self.in_place(&folder, name, |temporary| {
                    folder.symlink(temporary, &target, &attr)?;
                    Ok(name)
                })?;
                self.summary.symlinks += 1;
            }
            FileKind::File => self.file(&folder, path, name, &attr)?,
            special => {
                self.summary.skipped += 1;
                let what = format!("a {}, not brought back", human::kind(special));
                return Err(fault(Code::Partial, what, "Everything else was."));
            }
        }
        self.named(path, attr.size)
    }

    fn directory(&mut self, above: &Folder, path: &Path, name: &OsStr, attr: Attr) -> Result<()> {
        let folder = Rc::new(above.enter(name)?);
        let (ino, finish) = (attr.ino, Rc::clone(&folder));
        self.tasks.push(Task::Finish { folder: finish, path: path.to_owned(), attr });
        self.push_entries(folder, path, ino)?;
        self.summary.directories += 1;
        Ok(())
    }

    fn file(&mut self, folder: &Folder, path: &Path, name: &OsStr, attr: &Attr) -> Result<()> {
        self.progress.on(&path.display().to_string());
        if let Some(first) = self.links.get(&attr.ino) {
            let (first, root) = (first.clone(), Rc::clone(&self.root));
            self.in_place(folder, name, |temporary| {
                folder.link(&root, &first, temporary)?;
                Ok(name)
            })?;
            self.progress.add(attr.size);
        } else {
            self.content(folder, name, attr)?;
            self.summary.bytes += attr.size;
            if attr.nlink > 1 {
                self.links.insert(attr.ino, path.to_owned());
            }
        }
        self.summary.files += 1;
        Ok(())
    }

    /// Writes a file. One that is damaged is not written, or under a name that says so.
    fn content(&mut self, folder: &Folder, name: &OsStr, attr: &Attr) -> Result<()> {
        let (fs, publisher, zeros) = (self.fs, self.publisher, self.incomplete);
        let mut progress = std::mem::replace(&mut self.progress, Progress::bytes(true, None));
        let mut damage = None;
        let mut incomplete = name.to_owned();
        incomplete.push(".incomplete");
        let written = self.in_place(folder, name, |temporary| {
            let mut file = folder.create(temporary)?;
            let holes = if zeros { Holes::Zeros } else { Holes::End };
            let read = each_piece(fs, publisher, attr, holes, |at, piece| {
                progress.add(piece.len() as u64);
                Ok(local::write_sparse(&file, at, piece)?)
            });
            match read {
                Err(error) if zeros && lost_in(&error).is_some() => damage = Some(error),
                read => read?,
            }
            local::settle(&mut file, attr.size)?;
            local::set_attributes(&file, attr)?;
            Ok(if damage.is_some() { &incomplete } else { name })
        });
        self.progress = progress;
        written.and(damage.map_or(Ok(()), Err))
    }

    /// Makes something under a temporary name and moves it to the name that `make` gives, which
    /// thus always holds something whole.
    fn in_place<'n>(
        &mut self,
        folder: &Folder,
        name: &'n OsStr,
        make: impl FnOnce(&OsStr) -> Result<&'n OsStr>,
    ) -> Result<()> {
        folder.check_free(name, self.force)?;
        self.temporaries += 1;
        let number = self.temporaries;
        let temporary = OsString::from(format!(".oblivio-{}-{number}.part", std::process::id()));
        let made = make(&temporary).and_then(|name| {
            folder.check_free(name, self.force)?;
            Ok(folder.rename(&temporary, name)?)
        });
        // Also after a success: renaming a link to another link of the same file does nothing.
        folder.remove(&temporary);
        made
    }

    fn named(&self, path: &Path, bytes: u64) -> Result<()> {
        use std::os::unix::ffi::OsStrExt;
        match self.announce {
            (false, _) => Ok(()),
            (true, false) => human::say(human::name(path.as_os_str().as_bytes())),
            (true, true) => human::say_json(&serde_json::json!({
                "written": path.to_string_lossy(), "bytes": bytes,
            })),
        }
    }

    pub fn finish(mut self) -> (Summary, Failures, DamagedFiles) {
        self.summary.failed = self.failures.count() + self.lost.count();
        self.summary.lost = self.lost.files().to_vec();
        (self.summary, self.failures, self.lost)
    }
}

//! Operations on names: make, open, move, link and remove files.

use super::model::DIRECTORIES;
use super::state::{Exercise, OPEN, Open};
use anyhow::{Result, ensure};
use rustix::fs::RenameFlags;
use std::collections::BTreeSet;
use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

impl Exercise {
    pub(super) fn options() -> fs::OpenOptions {
        let mut options = File::options();
        options.read(true).write(true);
        options
    }

    pub(super) fn open_some(&mut self) -> Result<()> {
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

    /// Opens a file of that name, new or truncated.
    pub(super) fn create(&mut self) -> Result<()> {
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

    /// Closes a file, which vanishes if it is unlinked; the next operation opens another.
    pub(super) fn reopen(&mut self) -> Result<()> {
        let slot = self.slot();
        self.tell(format!("[{slot}] is closed"));
        drop(self.open.swap_remove(slot));
        Ok(())
    }

    pub(super) fn status(&mut self) -> Result<()> {
        let slot = self.slot();
        self.tell(format!("[{slot}] status"));
        let (status, node) = (self.open[slot].file.metadata()?, &self.open[slot].node);
        let len = node.borrow().len() as u64;
        ensure!(status.len() == len, "{} bytes instead of {len}", status.len());
        let names = self.names.values().filter(|other| Rc::ptr_eq(other, node)).count() as u64;
        ensure!(status.nlink() == names, "{} names instead of {names}", status.nlink());
        Ok(())
    }

    pub(super) fn rename(&mut self) -> Result<()> {
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

    pub(super) fn exchange(&mut self) -> Result<()> {
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

    pub(super) fn link(&mut self) -> Result<()> {
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

    /// An open file lives on without its name.
    pub(super) fn unlink(&mut self) -> Result<()> {
        let Some(name) = self.some_name() else { return Ok(()) };
        self.tell(format!("unlink {name}"));
        fs::remove_file(self.path(&name))?;
        self.names.remove(&name);
        Ok(())
    }

    pub(super) fn list(&mut self) -> Result<()> {
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
}

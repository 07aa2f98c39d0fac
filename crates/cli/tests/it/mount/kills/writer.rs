//! A writer: changes its files and notes the acknowledgements, until the mount dies.

use super::model::{HEAD, Model};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// Names in each of the two folders.
const NAMES: u64 = 12;
/// Limit of a file's length.
const LONGEST: usize = 1 << 20;

/// A small generator, to make a run repeatable as far as threads allow.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        (self.0 >> 33) % end
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.below(256) as u8).collect()
    }
}

/// One thread's files: two folders of its own.
pub struct Writer {
    dir: PathBuf,
    random: Random,
    model: Model,
    next_id: u64,
    /// Acknowledged bytes and syncs.
    pub bytes: u64,
    pub syncs: u64,
}

impl Writer {
    pub fn new(dir: PathBuf, seed: u64) -> Self {
        let (random, model) = (Random(seed), Model::default());
        Writer { dir, random, model, next_id: 1, bytes: 0, syncs: 0 }
    }

    /// Works until something fails; returns the error.
    pub fn work(&mut self) -> io::Error {
        loop {
            let done = match self.random.below(20) {
                0..5 => self.create(),
                5..9 => self.write(true),
                9..13 => self.write(false),
                13..15 => self.rename(),
                15 => self.remove(),
                _ => self.sync_folder(),
            };
            if let Err(error) = done {
                return error;
            }
        }
    }

    fn any_name(&mut self) -> String {
        let folder = if self.random.below(2) == 0 { "a" } else { "b" };
        format!("{folder}/{}", self.random.below(NAMES))
    }

    /// A name that leads to a file.
    fn pick(&mut self) -> Option<(String, u64)> {
        let count = self.model.names().count() as u64;
        let at = (count > 0).then(|| self.random.below(count) as usize)?;
        self.model.names().nth(at).map(|(name, id)| (name.to_owned(), id))
    }

    /// Mostly small, now and then several blocks.
    fn some_bytes(&mut self) -> Vec<u8> {
        let most = if self.random.below(5) == 0 { 300_000 } else { 6_000 };
        let len = 1 + self.random.below(most) as usize;
        self.random.bytes(len)
    }

    fn create(&mut self) -> io::Result<()> {
        let name = self.any_name();
        if self.model.names().any(|(taken, _)| taken == name) {
            return Ok(());
        }
        let id = self.next_id;
        self.next_id += 1;
        self.model.files.entry(id).or_default();
        self.model.point(&name, Some(id));
        let file = File::create_new(self.dir.join(&name))?;
        let bytes = [id.to_le_bytes().to_vec(), self.some_bytes()].concat();
        self.put(&file, id, 0, bytes)?;
        self.maybe_sync(&file, id)
    }

    fn write(&mut self, append: bool) -> io::Result<()> {
        let Some((name, id)) = self.pick() else { return Ok(()) };
        let len = self.model.files[&id].len();
        let at = match append {
            true => len,
            false if len <= HEAD => return Ok(()),
            false => HEAD + self.random.below((len - HEAD) as u64) as usize,
        };
        let mut bytes = self.some_bytes();
        bytes.truncate(LONGEST.saturating_sub(at));
        if at < HEAD || bytes.is_empty() {
            return Ok(());
        }
        let file = File::options().write(true).open(self.dir.join(name))?;
        self.put(&file, id, at, bytes)?;
        self.maybe_sync(&file, id)
    }

    fn put(&mut self, file: &File, id: u64, at: usize, bytes: Vec<u8>) -> io::Result<()> {
        let Some(noted) = self.model.files.get_mut(&id) else { return Ok(()) };
        noted.write(at, bytes.clone());
        file.write_all_at(&bytes, at as u64)
    }

    fn maybe_sync(&mut self, file: &File, id: u64) -> io::Result<()> {
        match self.random.below(3) {
            0 => file.sync_all()?,
            1 => file.sync_data()?,
            _ => return Ok(()),
        }
        if let Some(noted) = self.model.files.get_mut(&id) {
            self.bytes += noted.synced() as u64;
        }
        self.syncs += 1;
        self.model.names_synced();
        Ok(())
    }

    fn rename(&mut self) -> io::Result<()> {
        let Some((from, id)) = self.pick() else { return Ok(()) };
        let to = self.any_name();
        if from == to {
            return Ok(());
        }
        self.model.point(&to, Some(id));
        self.model.point(&from, None);
        fs::rename(self.dir.join(from), self.dir.join(to))
    }

    fn remove(&mut self) -> io::Result<()> {
        let Some((name, _)) = self.pick() else { return Ok(()) };
        self.model.point(&name, None);
        fs::remove_file(self.dir.join(name))
    }

    fn sync_folder(&mut self) -> io::Result<()> {
        let folder = if self.random.below(2) == 0 { "a" } else { "b" };
        File::open(self.dir.join(folder))?.sync_all()?;
        self.syncs += 1;
        self.model.names_synced();
        Ok(())
    }

    /// Compares the files found with the acknowledgements.
    pub fn compare(&mut self) -> Result<(), String> {
        let mut found = BTreeMap::new();
        for folder in ["a", "b"] {
            read_all(&self.dir.join(folder), folder, &mut found)
                .map_err(|error| format!("{folder}: {error}"))?;
        }
        self.model.settle(found)
    }
}

fn read_all(dir: &Path, folder: &str, found: &mut BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    for entry in dir.read_dir()? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        found.insert(format!("{folder}/{name}"), fs::read(entry.path())?);
    }
    Ok(())
}

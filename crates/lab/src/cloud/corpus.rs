//! The paper's workload: files written, then all read in another order.

use super::sizes::shuffle;
use crate::clock::CpuClock;
use anyhow::{Result, ensure};
use oblivio_volume::BlockSpace;
use oblivio_volume::fs::{FileSystem, NewNode, ROOT_INO};
use std::time::Instant;

/// Files written between two commits.
const COMMIT_EVERY: usize = 100;

/// Seconds of writing and of reading.
#[derive(Clone, Copy, Debug, Default)]
pub struct Times {
    /// Writing all files.
    pub write: f64,
    /// Reading all files.
    pub read: f64,
}

impl Times {
    /// MB/s both ways.
    pub fn rate(&self, bytes: u64) -> f64 {
        2.0 * bytes as f64 / 1e6 / (self.write + self.read)
    }
}

/// The clock to use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// The processor time of this thread.
    Processor,
    /// The wall clock.
    Wall,
}

/// Runs work and returns its seconds.
///
/// # Errors
/// Those of the work.
pub fn timed<T>(clock: Clock, work: impl FnOnce() -> Result<T>) -> Result<(f64, T)> {
    let (processor, wall) = (CpuClock::start(), Instant::now());
    let done = work()?;
    let seconds = match clock {
        Clock::Processor => processor.seconds(),
        Clock::Wall => wall.elapsed().as_secs_f64(),
    };
    Ok((seconds, done))
}

/// The files of an experiment, by name.
pub struct Corpus {
    /// Bytes of each.
    pub sizes: Vec<u64>,
    /// With this, each file begins a block and is padded to a multiple, so nothing is packed.
    pub round_to: Option<u64>,
}

impl Corpus {
    /// Bytes of all files.
    pub fn bytes(&self) -> u64 {
        self.sizes.iter().sum()
    }

    /// The bytes written for a file: its content, padded with zeros if nothing is packed.
    pub fn content(&self, file: usize) -> Vec<u8> {
        let mut content = vec![file as u8 ^ 0x5a; self.sizes[file] as usize];
        if let Some(round) = self.round_to {
            content.resize(content.len().next_multiple_of(round as usize), 0);
        }
        content
    }

    /// Writes every file.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, fs: &FileSystem) -> Result<()> {
        for file in 0..self.sizes.len() {
            let (_, handle) = fs.create(ROOT_INO, name(file).as_bytes(), NewNode::default())?;
            fs.write(handle, 0, &self.content(file))?;
            fs.close(handle)?;
            if (file + 1) % COMMIT_EVERY == 0 {
                fs.commit()?;
            }
        }
        Ok(fs.commit()?)
    }

    /// Reads every file once, in an order that depends on `seed`, and compares its ends.
    ///
    /// # Errors
    /// Those of the file system; a file differs from what was written.
    pub fn read(&self, fs: &FileSystem, seed: u64) -> Result<()> {
        let mut order: Vec<usize> = (0..self.sizes.len()).collect();
        shuffle(&mut order, seed);
        for file in order {
            let attr = fs.lookup(ROOT_INO, name(file).as_bytes())?;
            let handle = fs.open_file(attr.ino)?;
            let content = fs.read(handle, 0, self.sizes[file] as usize)?;
            fs.close(handle)?;
            let byte = file as u8 ^ 0x5a;
            let fits = content.len() as u64 == self.sizes[file]
                && content.first().is_none_or(|&first| first == byte)
                && content.last().is_none_or(|&last| last == byte);
            ensure!(fits, "file {file} came back changed");
        }
        Ok(())
    }

    /// Makes a file system, writes and reads everything.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn run(&self, blocks: Box<dyn BlockSpace>, clock: Clock) -> Result<(Times, FileSystem)> {
        let fs = FileSystem::format(blocks)?;
        let (write, ()) = timed(clock, || self.write(&fs))?;
        let (read, ()) = timed(clock, || self.read(&fs, 3))?;
        Ok((Times { write, read }, fs))
    }
}

/// A file's name.
pub fn name(file: usize) -> String {
    format!("file-{file:04}")
}

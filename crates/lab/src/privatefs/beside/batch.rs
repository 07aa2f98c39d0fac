//! Files that a program writes and reads on a mount, and how long that took.

use anyhow::{Context, Result, ensure};
use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes that a program writes or reads at once.
pub const CALL: usize = 128 << 10;

/// Files of one length, all written at once and then all read at once, each by a thread.
#[derive(Clone, Copy, Debug)]
pub struct Batch {
    /// What their names begin with.
    pub name: &'static str,
    /// How many.
    pub files: u64,
    /// Bytes of each.
    pub bytes: u64,
}

/// How long a batch took.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// All made, written, synced and closed.
    pub write: Duration,
    /// All opened and read.
    pub read: Duration,
}

impl Batch {
    /// Bytes of all.
    pub fn total(&self) -> u64 {
        self.files * self.bytes
    }

    /// Writes all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn put(&self, dir: &Path) -> Result<Duration> {
        self.at_once(dir, |path, seed| {
            let mut file = File::create(path)?;
            for at in (0..self.bytes).step_by(CALL) {
                file.write_all(&piece(seed, at, self.bytes))?;
            }
            Ok(file.sync_all()?)
        })
    }

    /// Reads all.
    ///
    /// # Errors
    /// Those of the file system; a file that is not what was written.
    pub fn take(&self, dir: &Path) -> Result<Duration> {
        self.at_once(dir, |path, seed| {
            let mut file = File::open(path)?;
            for at in (0..self.bytes).step_by(CALL) {
                let wanted = piece(seed, at, self.bytes);
                let mut found = vec![0; wanted.len()];
                file.read_exact(&mut found)?;
                ensure!(found == wanted, "it is not what was written at {at}");
            }
            Ok(())
        })
    }

    /// Does the same to each file.
    fn at_once(
        &self,
        dir: &Path,
        act: impl Fn(&Path, u64) -> Result<()> + Sync,
    ) -> Result<Duration> {
        let begin = Instant::now();
        thread::scope(|scope| -> Result<()> {
            let one = |number: u64| {
                let (path, act) = (self.path(dir, number), &act);
                move || act(&path, number).with_context(|| path.display().to_string())
            };
            let threads: Vec<_> = (0..self.files).map(|number| scope.spawn(one(number))).collect();
            for thread in threads {
                thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
            }
            Ok(())
        })?;
        Ok(begin.elapsed())
    }

    fn path(&self, dir: &Path, number: u64) -> PathBuf {
        dir.join(format!("{}-{number}", self.name))
    }
}

/// Writes all batches, one after the other.
///
/// # Errors
/// Those of the file system.
pub fn put_all(batches: &[Batch], dir: &Path, times: &mut [Times]) -> Result<()> {
    for (batch, times) in batches.iter().zip(times) {
        times.write = batch.put(dir)?;
    }
    Ok(())
}

/// Reads all batches, one after the other.
///
/// # Errors
/// Those of [`Batch::take`].
pub fn take_all(batches: &[Batch], dir: &Path, times: &mut [Times]) -> Result<()> {
    for (batch, times) in batches.iter().zip(times) {
        times.read = batch.take(dir)?;
    }
    Ok(())
}

/// What stands in the file `seed` at `at`: no two places of a file have the same.
fn piece(seed: u64, at: u64, bytes: u64) -> Vec<u8> {
    let words = (at / 8..at.saturating_add(CALL as u64).min(bytes).div_ceil(8)).map(|word| {
        let mixed = (word ^ (seed << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        (mixed ^ (mixed >> 29)).to_le_bytes()
    });
    let mut piece: Vec<u8> = words.flatten().collect();
    piece.truncate((bytes - at).min(CALL as u64) as usize);
    piece
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::FileExt;

    const BATCH: Batch = Batch { name: "f", files: 3, bytes: 300_001 };

    #[test]
    fn what_was_written_is_read_and_a_changed_byte_is_found() -> Result<()> {
        let scratch = tempfile::tempdir()?;
        let mut times = [Times::default()];
        put_all(&[BATCH], scratch.path(), &mut times)?;
        take_all(&[BATCH], scratch.path(), &mut times)?;
        assert!(times[0].write > Duration::ZERO && times[0].read > Duration::ZERO);
        let path = BATCH.path(scratch.path(), 2);
        assert_eq!(path.metadata()?.len(), BATCH.bytes);
        let mut byte = [0];
        let file = File::options().read(true).write(true).open(&path)?;
        file.read_exact_at(&mut byte, 300_000)?;
        file.write_all_at(&[byte[0] ^ 1], 300_000)?;
        let error = format!("{:#}", BATCH.take(scratch.path()).unwrap_err());
        assert!(error.contains("f-2") && error.contains("262144"), "{error}");
        Ok(())
    }

    #[test]
    fn pieces_differ_by_file_and_place() {
        let pieces = [piece(0, 0, 1 << 20), piece(1, 0, 1 << 20), piece(0, CALL as u64, 1 << 20)];
        assert!(pieces.iter().all(|piece| piece.len() == CALL));
        assert!(pieces[0] != pieces[1] && pieces[0] != pieces[2]);
        assert_eq!(piece(0, 0, 9), pieces[0][..9]);
    }
}

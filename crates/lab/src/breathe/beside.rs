//! A probe beside the measurement: it makes 4 KiB durable, over and over.
//!
//! A disk that stands still, a request that hangs, processors that a virtual machine's host took
//! away: each delays the probe too, though it does next to nothing. The system's counters see only
//! the first of them.

use crate::lock::lock;
use crate::report::median;
use anyhow::{Context, Result};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Pause between two probes.
const EVERY: Duration = Duration::from_millis(5);
/// A probe this long was held up by something else. A tenth of it is already long, even behind the
/// volume's own disk work.
const HELD_UP: Duration = Duration::from_millis(50);
const PIECE: usize = 4096;

/// Begin and end.
type Span = (Instant, Instant);

#[derive(Default)]
struct Seen {
    ms: Vec<f64>,
    held_up: Vec<Span>,
}

impl Seen {
    /// Adds a probe, which was ready to begin at the first instant.
    fn add(&mut self, (begin, end): Span) {
        self.ms.push((end - begin).as_secs_f64() * 1e3);
        if end - begin >= HELD_UP {
            self.held_up.push((begin, end));
        }
    }
}

/// A summary of the probes, in milliseconds.
pub struct Told {
    pub count: usize,
    pub median: f64,
    pub highest: f64,
    pub held_up: usize,
}

/// Makes a small write durable again and again, until dropped.
pub struct Beside {
    seen: Arc<Mutex<Seen>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Beside {
    /// Starts probes in a new file at `path`.
    pub fn begin(path: &Path) -> Result<Self> {
        let file = File::create_new(path).with_context(|| path.display().to_string())?;
        // Later probes overwrite this and change nothing else of the file.
        file.write_all_at(&[0; PIECE], 0)?;
        file.sync_all()?;
        let (seen, end) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let (to, until) = (Arc::clone(&seen), Arc::clone(&end));
        let thread = thread::spawn(move || repeat(&file, &to, &until));
        Ok(Self { seen, end, thread: Some(thread) })
    }

    /// Whether a probe was held up during this span.
    pub fn held_up(&self, (begin, end): Span) -> bool {
        let seen = lock(&self.seen);
        seen.held_up.iter().any(|held| held.0 < end && begin < held.1)
    }

    pub fn told(&self) -> Told {
        let seen = lock(&self.seen);
        Told {
            count: seen.ms.len(),
            median: if seen.ms.is_empty() { 0.0 } else { median(&seen.ms) },
            highest: seen.ms.iter().copied().fold(0.0, f64::max),
            held_up: seen.held_up.len(),
        }
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn repeat(file: &File, seen: &Mutex<Seen>, end: &AtomicBool) {
    let mut piece = [0; PIECE];
    while !end.load(Ordering::Relaxed) {
        // The time when it should go on: too long a sleep means that it had no processor.
        let begin = Instant::now() + EVERY;
        thread::sleep(EVERY);
        piece[0] ^= 1;
        if file.write_all_at(&piece, 0).and_then(|()| file.sync_data()).is_err() {
            return;
        }
        lock(seen).add((begin, Instant::now()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_meets_a_long_one_was_held_up() {
        let at = Instant::now();
        let after = |ms| at + Duration::from_millis(ms);
        let mut seen = Seen::default();
        seen.add((after(10), after(80)));
        seen.add((after(85), after(86)));
        seen.add((after(200), after(260)));
        let beside = Beside { seen: Arc::new(Mutex::new(seen)), end: Arc::default(), thread: None };
        assert!(beside.held_up((after(0), after(11))) && beside.held_up((after(79), after(100))));
        assert!(beside.held_up((after(220), after(230))));
        assert!(!beside.held_up((after(0), after(10))) && !beside.held_up((after(80), after(200))));
        let told = beside.told();
        assert_eq!((told.count, told.held_up), (3, 2));
        assert_eq!((told.median, told.highest), (60.0, 70.0));
    }

    #[test]
    fn it_goes_on_until_it_is_dropped() {
        let dir = tempfile::tempdir().expect("a folder");
        let path = dir.path().join("beside");
        let beside = Beside::begin(&path).expect("a new file");
        while beside.told().count < 3 {
            thread::sleep(EVERY);
        }
        drop(beside);
        assert_eq!(std::fs::metadata(&path).expect("it stays").len(), PIECE as u64);
        assert!(Beside::begin(&path).is_err(), "it is not new");
    }
}

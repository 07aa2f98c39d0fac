//! When the disk under a folder answered nothing, as the system's counters tell.

use std::os::linux::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// How often the counters are read.
const EVERY: Duration = Duration::from_millis(5);
/// A disk that has something to do and for so long comes to the end of nothing at all stands still.
const STILL: Duration = Duration::from_millis(50);
/// Of a disk's counters: requests that were done (reads, writes, discards, flushes), and how many it has now.
const DONE: [usize; 4] = [0, 4, 11, 15];
const UNDER_WAY: usize = 8;

/// From when to when.
type Span = (Instant, Instant);

/// Watches a disk until it is dropped.
pub struct Disk {
    stood: Arc<Mutex<Vec<Span>>>,
    end: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Disk {
    /// The one under `dir`; nothing is ever seen of one that has no counters, as a folder in memory.
    pub fn under(dir: &Path) -> Self {
        let (stood, end) = (Arc::new(Mutex::default()), Arc::new(AtomicBool::new(false)));
        let thread = counters(dir).map(|path| {
            let (stood, end) = (Arc::clone(&stood), Arc::clone(&end));
            thread::spawn(move || watch(&path, &stood, &end))
        });
        Self { stood, end, thread }
    }

    /// Whether it stood still at any time of this span.
    pub fn stood_still(&self, (begin, end): Span) -> bool {
        self.spans().iter().any(|stood| stood.0 < end && begin < stood.1)
    }

    /// How often it stood still, and the longest of these.
    pub fn told(&self) -> (usize, Duration) {
        let spans = self.spans();
        let longest = spans.iter().map(|(begin, end)| *end - *begin).max();
        (spans.len(), longest.unwrap_or_default())
    }

    fn spans(&self) -> Vec<Span> {
        self.stood.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        self.end.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// The file with the counters of the disk under `dir`.
fn counters(dir: &Path) -> Option<PathBuf> {
    let device = std::fs::metadata(dir).ok()?.st_dev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let path = PathBuf::from(format!("/sys/dev/block/{major}:{minor}/stat"));
    read(&path).is_some().then_some(path)
}

fn read(path: &Path) -> Option<([u64; 4], u64)> {
    let text = std::fs::read_to_string(path).ok()?;
    let all: Vec<u64> = text.split_ascii_whitespace().map_while(|word| word.parse().ok()).collect();
    let done = DONE.map(|at| all.get(at).copied().unwrap_or(0));
    all.get(UNDER_WAY).map(|&under_way| (done, under_way))
}

fn watch(path: &Path, stood: &Mutex<Vec<Span>>, end: &AtomicBool) {
    // Since when it has something to do and nothing was done.
    let (mut since, mut before) = (Instant::now(), [0; 4]);
    while !end.load(Ordering::Relaxed) {
        // Before the counters are read, so that a watcher that had to wait sees no more than there was.
        let now = Instant::now();
        let Some((done, under_way)) = read(path) else { return };
        if done != before || under_way == 0 {
            (since, before) = (now, done);
        } else if now - since >= STILL {
            let mut stood = stood.lock().unwrap_or_else(PoisonError::into_inner);
            match stood.last_mut() {
                Some(last) if last.0 == since => last.1 = now,
                _ => stood.push((since, now)),
            }
        }
        thread::sleep(EVERY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_met_where_it_overlaps() {
        let at = Instant::now();
        let after = |ms| at + Duration::from_millis(ms);
        let stood = Arc::new(Mutex::new(vec![(after(10), after(80)), (after(200), after(260))]));
        let disk = Disk { stood, end: Arc::default(), thread: None };
        assert!(
            disk.stood_still((after(0), after(11))) && disk.stood_still((after(79), after(100)))
        );
        assert!(disk.stood_still((after(220), after(230))));
        assert!(
            !disk.stood_still((after(0), after(10))) && !disk.stood_still((after(80), after(200)))
        );
        assert_eq!(disk.told(), (2, Duration::from_millis(70)));
    }

    #[test]
    fn what_has_no_counters_never_stands_still() {
        let disk = Disk::under(Path::new("/proc"));
        assert!(disk.thread.is_none());
        assert!(!disk.stood_still((Instant::now(), Instant::now())));
    }
}

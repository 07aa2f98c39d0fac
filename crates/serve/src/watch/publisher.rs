//! The side of the command that uses a volume: it reports its work to a watcher, if there is one.
//!
//! The work never waits. The command looks for a watcher at most once a second, by the name of its
//! socket. Events go through a bounded queue to a thread that does the waiting; events that do not
//! fit are counted and dropped. Without a watcher nothing is kept.

use super::event::{
    self, DrawnBatch, EngineFacts, Facts, OrdinaryEvent, VERSION, WatchEvent, WatchedUse,
};
use super::places::Places;
use super::rendezvous;
use oblivio_volume::report::Picture;
use oblivio_volume::{OnShown, Shown, VolumeInfo};
use std::fmt;
use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How often a watcher is looked for.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Limit of queued events.
const QUEUE: usize = 1024;
/// A watcher that reads nothing for this long is given up.
const PATIENCE: Duration = Duration::from_secs(2);
/// How long the end of a command waits for its last events to be sent.
const FAREWELL: Duration = Duration::from_millis(250);

/// Reports the work on one volume to its watcher. Clones share one connection.
#[derive(Clone, Default)]
pub struct Publisher(Option<Arc<Mutex<Line>>>);

impl fmt::Debug for Publisher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Publisher").finish_non_exhaustive()
    }
}

impl Publisher {
    /// The publisher of a volume whose watcher listens at this socket. It needs no watcher, and
    /// never fails. `command` is the page's name for this process.
    ///
    /// A process that forks into the background must make it after that: its thread would stay
    /// behind.
    pub fn at(socket: PathBuf, command: String) -> Self {
        let (facts, places, silent) = (None, Places::default(), false);
        let (looked, open, dropped, patience) = (None, None, 0, PATIENCE);
        let line = Line { silent, socket, command, looked, open, facts, places, dropped, patience };
        Self(Some(Arc::new(Mutex::new(line))))
    }

    /// Closes the connection, and opens none again.
    pub fn silence(&self) {
        self.with(|line| (line.silent, line.open) = (true, None));
    }

    /// Sets the places of the store's objects, for a volume that hides writes.
    pub(super) fn lay_out(&self, places: Places) {
        self.with(|line| line.places = places);
    }

    /// Sets the volume's facts; kept for later watchers.
    pub fn describe(&self, info: &VolumeInfo, holds: WatchedUse) {
        self.with(|line| {
            let block_bytes = info.block_bytes as u64;
            let engine = match info.report.picture.as_ref() {
                Some(&Picture::Paths { bucket_bytes, size_class_bytes, depth }) => {
                    EngineFacts::Tree { bucket_bytes, size_class_bytes, depth }
                }
                Some(Picture::Rounds { object, levels, flushes }) => EngineFacts::Sequential {
                    capacity_bytes: info.capacity_blocks.saturating_mul(block_bytes),
                    parts: line.places.describe(object, levels, *flushes),
                },
                None => return,
            };
            let facts = Facts { block_bytes, holds, engine };
            line.facts = Some(facts.clone());
            line.tell(|| WatchEvent::Facts(facts));
        });
    }

    /// Reports one batch as the store saw it.
    pub fn shown(&self, shown: &Shown) {
        // The page draws paths.
        if !shown.leaves.is_empty() {
            self.with(|line| line.tell(|| WatchEvent::Shown(DrawnBatch::of(shown))));
        }
    }

    /// Reports writes that the store got together: objects, and offsets and lengths in them.
    pub fn written<'w>(&self, writes: impl Iterator<Item = (&'w str, (u64, u64))>) {
        self.with(|line| {
            // Flushes are counted for later watchers, too.
            let written = line.places.see(writes);
            if written.writes > 0 {
                line.tell(|| WatchEvent::Written(written));
            }
        });
    }

    /// Reports one request as ordinary encryption would show it, with the current time.
    pub fn ordinary(&self, event: OrdinaryEvent) {
        self.with(|line| line.tell(|| WatchEvent::Ordinary { at: event::now(), event }));
    }

    /// The callback of the volume after each batch.
    pub fn callback(&self) -> OnShown {
        let publisher = self.clone();
        Box::new(move |shown| publisher.shown(shown))
    }

    fn with(&self, work: impl FnOnce(&mut Line)) {
        if let Some(line) = &self.0 {
            work(&mut line.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }
}

/// The connection, or when one was last looked for.
struct Line {
    /// Whether nobody may watch any more.
    silent: bool,
    socket: PathBuf,
    command: String,
    looked: Option<Instant>,
    open: Option<Open>,
    facts: Option<Facts>,
    places: Places,
    dropped: u64,
    /// How long a watcher may read nothing.
    patience: Duration,
}

struct Open {
    queue: SyncSender<WatchEvent>,
    /// Disconnected when the thread has ended.
    done: Receiver<()>,
}

impl Line {
    /// `make` runs only if there is a watcher.
    fn tell(&mut self, make: impl FnOnce() -> WatchEvent) {
        if self.is_open() {
            self.send(make());
        }
    }

    fn is_open(&mut self) -> bool {
        if self.silent {
            return false;
        }
        if self.open.is_some() {
            return true;
        }
        if self.looked.is_some_and(|at| at.elapsed() < LOOK_EVERY) {
            return false;
        }
        self.looked = Some(Instant::now());
        if rendezvous::is_there(&self.socket) {
            self.connect();
        }
        self.open.is_some()
    }

    /// Even connecting can wait, so the thread does that too. Its first messages are made here.
    fn connect(&mut self) {
        let (command, pid) = (self.command.clone(), std::process::id());
        let hello = WatchEvent::Hello { version: VERSION, command, pid };
        let first: Vec<WatchEvent> =
            [hello].into_iter().chain(self.facts.clone().map(WatchEvent::Facts)).collect();
        let (queue, events) = mpsc::sync_channel(QUEUE);
        let (alive, done) = mpsc::channel::<()>();
        let (socket, patience) = (self.socket.clone(), self.patience);
        let carry = move || {
            // A watcher that is gone is no failure of the command.
            let _ = carry(&socket, patience, first, &events);
            drop(alive);
        };
        let thread = thread::Builder::new().name("watch".into()).spawn(carry);
        self.dropped = 0;
        self.open = thread.is_ok().then_some(Open { queue, done });
    }

    fn send(&mut self, event: WatchEvent) {
        let Some(open) = &self.open else { return };
        let sent = match self.dropped {
            0 => open.queue.try_send(event),
            count => open.queue.try_send(WatchEvent::Dropped { count }).and_then(|()| {
                self.dropped = 0;
                open.queue.try_send(event)
            }),
        };
        match sent {
            Ok(()) => {}
            Err(TrySendError::Full(_)) => self.dropped += 1,
            Err(TrySendError::Disconnected(_)) => {
                self.open = None;
                self.looked = Some(Instant::now());
            }
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        if let Some(Open { queue, done }) = self.open.take() {
            drop(queue);
            // Whether everything was sent or the time is up: the command ends.
            let _ = done.recv_timeout(FAREWELL);
        }
    }
}

fn carry(
    socket: &PathBuf,
    patience: Duration,
    first: Vec<WatchEvent>,
    events: &Receiver<WatchEvent>,
) -> io::Result<()> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_write_timeout(Some(patience))?;
    first.iter().try_for_each(|event| event::write(&mut stream, event))?;
    events.iter().try_for_each(|event| event::write(&mut stream, &event))
}

#[cfg(test)]
mod tests {
    use super::super::rendezvous::Meeting;
    use super::*;
    use anyhow::{Context, Result};
    use std::sync::atomic::{AtomicU64, Ordering};

    /// Longer than anything takes that comes at all.
    const LONG: Duration = Duration::from_secs(60);

    /// One that never gives a watcher up, however slow this computer is.
    fn publisher_at(socket: PathBuf) -> Publisher {
        let publisher = Publisher::at(socket, "put".into());
        publisher.with(|line| line.patience = 60 * LONG);
        publisher
    }

    fn read() -> OrdinaryEvent {
        OrdinaryEvent::read(1, 2, 3, 4)
    }

    /// Far more events than the socket and the queue hold.
    fn flood(publisher: &Publisher) {
        let shown = Shown {
            leaves: vec![0],
            depth: 9,
            reads: 400,
            writes: 0,
            bytes_read: 1 << 20,
            bytes_written: 0,
            places_read: (1 << 40..(1 << 40) + 400).collect(),
            ..Shown::default()
        };
        (0..4 * QUEUE).for_each(|_| publisher.shown(&shown));
    }

    #[test]
    fn with_nobody_there_nothing_is_kept() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let publisher = publisher_at(dir.path().join("v.watch"));
        publisher.ordinary(read());
        publisher.with(|line| line.tell(|| unreachable!("nobody is there")));
        Publisher::default().ordinary(read());
        Ok(())
    }

    #[test]
    fn a_watcher_hears_all_even_of_a_short_command() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let meeting = Meeting::at(&dir.path().join("deep/v.watch"))?;
        let publisher = publisher_at(meeting.path().to_owned());
        publisher.ordinary(read());
        drop(publisher);
        let (mut stream, _) = meeting.listener.accept()?;
        let hello = event::read(&mut stream)?.context("a first event")?;
        assert!(matches!(hello, WatchEvent::Hello { version: VERSION, .. }), "{hello:?}");
        let next = event::read(&mut stream)?;
        assert!(matches!(next, Some(WatchEvent::Ordinary { event, .. }) if event == read()));
        assert_eq!(event::read(&mut stream)?, None);
        Ok(())
    }

    #[test]
    fn a_watcher_that_never_reads_stops_nothing() -> Result<()> {
        let dir = tempfile::tempdir()?;
        // Nobody even accepts.
        let meeting = Meeting::at(&dir.path().join("deep/v.watch"))?;
        let publisher = publisher_at(meeting.path().to_owned());
        let (tell, told) = mpsc::channel();
        thread::spawn(move || -> Result<()> {
            flood(&publisher);
            let mut dropped = 0;
            publisher.with(|line| dropped = line.dropped);
            tell.send(Some(dropped))?;
            drop(publisher);
            Ok(tell.send(None)?)
        });
        // Its patience would last for an hour.
        assert!(told.recv_timeout(LONG)?.context("the flood ends")? > 0);
        assert_eq!(told.recv_timeout(LONG)?, None, "and the command");
        Ok(())
    }

    #[test]
    fn what_was_left_out_is_counted() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let meeting = Meeting::at(&dir.path().join("deep/v.watch"))?;
        let publisher = publisher_at(meeting.path().to_owned());
        flood(&publisher);
        let (heard, left_out) = (Arc::<AtomicU64>::default(), Arc::<AtomicU64>::default());
        let counts = [Arc::clone(&heard), Arc::clone(&left_out)];
        let reading = thread::spawn(move || -> Result<()> {
            let (mut stream, _) = meeting.listener.accept()?;
            while let Some(event) = event::read(&mut stream)? {
                let (at, count) = match event {
                    WatchEvent::Shown(_) | WatchEvent::Ordinary { .. } => (0, 1),
                    WatchEvent::Dropped { count } => (1, count),
                    _ => continue,
                };
                counts[at].fetch_add(count, Ordering::SeqCst);
            }
            Ok(())
        });
        // The queue empties as the watcher reads. What comes then carries the count.
        let (begun, mut sent) = (Instant::now(), 4 * QUEUE as u64);
        while heard.load(Ordering::SeqCst) + left_out.load(Ordering::SeqCst) < sent {
            publisher.ordinary(read());
            sent += 1;
            thread::sleep(Duration::from_millis(5));
            assert!(begun.elapsed() < LONG, "some are not counted");
        }
        drop(publisher);
        reading.join().ok().context("the reader")??;
        assert!(left_out.load(Ordering::SeqCst) > 0);
        assert_eq!(heard.load(Ordering::SeqCst) + left_out.load(Ordering::SeqCst), sent);
        Ok(())
    }

    #[test]
    fn a_watcher_that_dies_is_forgotten() -> Result<()> {
        let dir = tempfile::tempdir()?;
        let meeting = Meeting::at(&dir.path().join("deep/v.watch"))?;
        let publisher = publisher_at(meeting.path().to_owned());
        publisher.ordinary(read());
        drop(meeting.listener.accept()?);
        rendezvous::end(meeting.path());
        drop(meeting);
        let (begun, mut is_open) = (Instant::now(), true);
        while is_open {
            publisher.ordinary(read());
            publisher.with(|line| is_open = line.open.is_some());
            assert!(begun.elapsed() < LONG, "it is remembered");
        }
        Ok(())
    }
}

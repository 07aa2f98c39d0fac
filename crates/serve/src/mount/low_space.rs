//! When room is short, programs ask before they write.
//!
//! The kernel takes writes into its cache and acknowledges them without us. Cached data that then
//! finds no room is lost, and the program learns of it on closing the file, if it looks. But before
//! the kernel accepts a write, it checks the file's mode and size. So while room is short we make
//! it forget those. It then asks for them with the handle of the write, which it does for no other
//! reason. Before the answer we make it write back its cache, whenever that could fill the
//! remaining room. This reveals how long a write is, whether it extends the file, and whether one
//! more fits. If not, the answer is `ENOSPC`, which `write()` passes on.
//!
//! The request names neither length nor offset of the write. We assume the length of earlier
//! writes. A file that did not grow is assumed to be written in place, which needs no room.

use super::notices::KernelNotices;
use oblivio_volume::fs::Ino;
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const ACCESS_MODE: i32 = 0o3;
const O_WRONLY: i32 = 0o1;
const O_APPEND: i32 = 0o2000;

/// Below this, room is short. The kernel caches less of a FUSE file system before it writes back (a
/// hundredth of a fifth of the memory).
const SHORT: u64 = 64 << 20;
const PART_OF_MEMORY: u64 = 250;
/// Assumed length of a write before any was seen: that of `cp`.
const USUAL_WRITE: u64 = 128 << 10;
const LEAST_WRITE: u64 = 4 << 10;
const MOST_WRITE: u64 = 16 << 20;
/// By then the kernel has processed the reply to `CREATE`.
const LATER: Duration = Duration::from_millis(20);

/// The continuation of a task.
type Then = Box<dyn FnOnce() + Send>;

/// A task for the thread that speaks to the kernel, which may have to wait for the server.
pub enum Task {
    /// A file is about to be written: the kernel writes back what may be too much, and forgets the
    /// attributes.
    Before(Ino, Then),
    /// A file is about to be opened for writing: the kernel forgets the attributes.
    Open(Ino, Then),
    /// The kernel got the attributes, and must forget them again.
    Again(Ino),
    /// The same for a new file, which the kernel may not know yet: now, and a little later.
    Created(Ino),
    /// Room has become short: the kernel writes back this file.
    Flush(Ino),
}

/// The handle by which [`speak`] reports the kernel's writes. It does not keep that thread alive.
#[derive(Clone)]
pub struct Kept(Arc<Mutex<Inner>>);

/// Decides which programs must ask, and which are refused. Clones share everything.
#[derive(Clone)]
pub struct LowSpace {
    inner: Arc<Mutex<Inner>>,
    tasks: Sender<Task>,
}

#[derive(Default)]
struct Inner {
    /// Below this, room is short.
    limit: u64,
    short: bool,
    room: u64,
    /// Bytes that may be written before the next look at the room.
    unlooked: u64,
    /// Handles that may write, and whether they only append.
    handles: HashMap<u64, (Ino, bool)>,
    files: HashMap<Ino, Writes>,
    /// Files that lost data, and whether for want of room.
    lost: HashMap<Ino, bool>,
}

/// The writes of a file.
struct Writes {
    /// Writes that the kernel may have cached.
    kept: u64,
    /// Their assumed length, and whether it was measured.
    each: u64,
    known: bool,
    /// Bytes that the kernel wrote back since its last full flush.
    bytes: u64,
    /// Whether they extended the file, and whether those before did.
    grows: bool,
    grew: bool,
    /// A write-back found no room, and no program knows yet.
    refused: bool,
}

impl Default for Writes {
    fn default() -> Self {
        let (kept, each, bytes) = (0, USUAL_WRITE, 0);
        Self { kept, each, known: false, bytes, grows: false, grew: false, refused: false }
    }
}

/// The room that the next write of a file needs.
#[derive(Debug, PartialEq, Eq)]
pub enum Need {
    /// None, as far as we know.
    Nothing,
    /// This many bytes.
    Bytes(u64),
    /// Refuse it whatever room there is: the write before found none.
    Refused,
}

impl Inner {
    fn kept(&self) -> u64 {
        self.files.values().map(|file| file.kept.saturating_mul(file.each)).sum()
    }
}

impl LowSpace {
    /// Sends tasks to the thread that runs [`speak`].
    pub fn new(tasks: Sender<Task>) -> Self {
        Self::with(tasks, SHORT.max(crate::memory::there() / PART_OF_MEMORY))
    }

    fn with(tasks: Sender<Task>, limit: u64) -> Self {
        Self { inner: Arc::new(Mutex::new(Inner { limit, ..Inner::default() })), tasks }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether programs must ask before they write.
    pub fn is_short(&self) -> bool {
        self.lock().short
    }

    /// Notes a handle opened with these flags; calls `then` once its first write will ask.
    pub fn opened(&self, ino: Ino, fh: u64, flags: i32, then: impl FnOnce() + Send + 'static) {
        if flags & ACCESS_MODE == 0 {
            return then();
        }
        self.lock().handles.insert(fh, (ino, flags & O_APPEND != 0));
        self.after(Task::Open, ino, then);
    }

    /// Calls `then` once the kernel has written back what may be too much to cache, and has
    /// forgotten a file's attributes.
    pub fn before(&self, ino: Ino, then: impl FnOnce() + Send + 'static) {
        self.after(Task::Before, ino, then);
    }

    fn after(
        &self,
        task: impl FnOnce(Ino, Then) -> Task,
        ino: Ino,
        then: impl FnOnce() + Send + 'static,
    ) {
        if !self.is_short() {
            return then();
        }
        if let Err(unsent) = self.tasks.send(task(ino, Box::new(then)))
            && let Task::Before(_, then) | Task::Open(_, then) = unsent.0
        {
            then();
        }
    }

    pub fn closed(&self, fh: u64) {
        let mut inner = self.lock();
        let Some((ino, _)) = inner.handles.remove(&fh) else { return };
        if !inner.handles.values().any(|(other, _)| *other == ino) {
            inner.files.remove(&ino);
        }
    }

    /// Notes that the kernel got the attributes of a file.
    pub fn told(&self, ino: Ino) {
        let inner = self.lock();
        if inner.short && inner.handles.values().any(|(other, _)| *other == ino) {
            let _ = self.tasks.send(Task::Again(ino));
        }
    }

    /// Notes that the kernel gets a new file, with its attributes.
    pub fn created(&self, ino: Ino) {
        let _ = self.is_short().then(|| self.tasks.send(Task::Created(ino)));
    }

    /// Whether the kernel must not cache the attributes of a new file, to make its first write ask.
    /// Only for a file that is not read: reading at its end asks too.
    pub fn asks_first(&self, flags: i32) -> bool {
        flags & ACCESS_MODE == O_WRONLY && self.is_short()
    }

    /// Whether to look at the room, now that `bytes` more were written.
    pub fn should_look(&self, bytes: u64) -> bool {
        let mut inner = self.lock();
        inner.unlooked = inner.unlooked.saturating_sub(bytes);
        inner.short || inner.unlooked == 0
    }

    /// Notes the bytes that may still be written.
    pub fn saw(&self, room: u64) {
        let mut inner = self.lock();
        let was_short = inner.short;
        inner.room = room;
        inner.unlooked = room.saturating_sub(inner.limit) / 2;
        inner.short = room < inner.limit;
        if inner.short && !was_short {
            let open: HashSet<Ino> = inner.handles.values().map(|(ino, _)| *ino).collect();
            open.into_iter().for_each(|ino| drop(self.tasks.send(Task::Flush(ino))));
        }
    }

    /// Notes bytes that the kernel wrote back from its cache.
    pub fn wrote(&self, ino: Ino, bytes: u64, longer: bool) {
        let mut inner = self.lock();
        let file = inner.files.entry(ino).or_default();
        file.bytes += bytes;
        file.grows |= longer;
        // The writes may be longer than assumed.
        if file.kept > 0 {
            file.each = file.each.max(file.bytes.div_ceil(file.kept).min(MOST_WRITE));
        }
    }

    /// Notes data that the kernel could not write back and lost; `full` if there was no room.
    pub fn lost(&self, ino: Ino, full: bool) {
        let mut inner = self.lock();
        inner.lost.insert(ino, full);
        if full {
            inner.files.entry(ino).or_default().refused = true;
            // It may have cached the attributes again since.
            let _ = self.tasks.send(Task::Again(ino));
        }
    }

    /// Forgets a loss in a file whose whole content is gone.
    pub fn emptied(&self, ino: Ino) {
        self.lock().lost.remove(&ino);
    }

    /// The files that lost data, and whether for want of room.
    pub fn all_lost(&self) -> Vec<(Ino, bool)> {
        self.lock().lost.iter().map(|(ino, full)| (*ino, *full)).collect()
    }

    /// The room that the next write to a file of `size` bytes needs. A refusal counts once; a later
    /// write in place is allowed.
    pub fn need(&self, ino: Ino, fh: u64, size: u64) -> Need {
        let mut inner = self.lock();
        let appends = inner.handles.get(&fh).is_some_and(|handle| handle.1);
        let kept = inner.kept();
        let file = inner.files.entry(ino).or_default();
        if std::mem::take(&mut file.refused) {
            return Need::Refused;
        }
        match size == 0 || appends || file.grew {
            // The asking write is among the cached ones.
            true => Need::Bytes(kept.max(file.each)),
            false => Need::Nothing,
        }
    }

    /// Notes that the asking write was refused for want of room.
    pub fn refuse(&self, ino: Ino) {
        let mut inner = self.lock();
        let file = inner.files.entry(ino).or_default();
        (file.grew, file.kept) = (false, file.kept.saturating_sub(1));
    }

    /// The part for the thread that speaks to the kernel.
    pub fn kept(&self) -> Kept {
        Kept(Arc::clone(&self.inner))
    }
}

impl Kept {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The files whose cached writes may be too much for one more write.
    fn too_much(&self, ino: Ino) -> Vec<Ino> {
        let inner = self.lock();
        let next = inner.files.get(&ino).map_or(USUAL_WRITE, |file| file.each);
        let fits = inner.kept().saturating_add(next).saturating_mul(2) < inner.room;
        // Flush after a file's first write, to learn the length of its writes.
        let learn = |of: Ino, file: &Writes| of == ino && !file.known;
        let kept = inner.files.iter().filter(|(_, file)| file.kept > 0);
        kept.filter(|(of, file)| !fits || learn(**of, file)).map(|(of, _)| *of).collect()
    }

    /// Notes that the kernel has written back all of a file.
    fn flushed(&self, ino: Ino) {
        let mut inner = self.lock();
        let Some(file) = inner.files.get_mut(&ino) else { return };
        if file.bytes > 0 {
            file.grew = file.grows;
        }
        // Data cached before any write asked says nothing of a write's length.
        if file.bytes > 0 && file.kept > 0 {
            file.each = file.bytes.div_ceil(file.kept).clamp(LEAST_WRITE, MOST_WRITE);
            file.known = true;
        }
        (file.kept, file.bytes, file.grows) = (0, 0, false);
    }

    fn keeps_one_more(&self, ino: Ino) {
        self.lock().files.entry(ino).or_default().kept += 1;
    }
}

/// Makes the kernel forget and write back, on a thread of its own: its writes go through the
/// server.
pub fn speak(tasks: &Receiver<Task>, notices: &KernelNotices, kept: &Kept) {
    let flush = |ino| {
        notices.write_back(ino);
        kept.flushed(ino);
    };
    let mut later = VecDeque::new();
    loop {
        let due = later.front().map(|&(at, _): &(Instant, _)| at.duration_since(Instant::now()));
        let task = match due {
            None => tasks.recv().map_err(RecvTimeoutError::from),
            Some(Duration::ZERO) => Err(RecvTimeoutError::Timeout),
            Some(due) => tasks.recv_timeout(due),
        };
        let task = match task {
            Ok(task) => task,
            Err(RecvTimeoutError::Timeout) => {
                later.pop_front().into_iter().for_each(|(_, ino)| notices.forget(ino));
                continue;
            }
            Err(RecvTimeoutError::Disconnected) => return,
        };
        match task {
            Task::Before(ino, then) => {
                kept.too_much(ino).into_iter().for_each(flush);
                kept.keeps_one_more(ino);
                notices.forget(ino);
                then();
            }
            Task::Open(ino, then) => {
                notices.forget(ino);
                then();
            }
            Task::Again(ino) => notices.forget(ino),
            Task::Created(ino) => {
                notices.forget(ino);
                later.push_back((Instant::now() + LATER, ino));
            }
            Task::Flush(ino) => flush(ino),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    const MIB: u64 = 1 << 20;
    const WRITE: i32 = 2;

    fn scarce() -> (LowSpace, Receiver<Task>) {
        let (tasks, to_do) = channel();
        (LowSpace::with(tasks, 10 * MIB), to_do)
    }

    /// What [`speak`] does before a write, with a write-back of `written` bytes.
    fn asks(scarce: &LowSpace, ino: Ino, written: u64) -> bool {
        let kept = scarce.kept();
        let flush = kept.too_much(ino);
        for &ino in &flush {
            scarce.wrote(ino, written, true);
            kept.flushed(ino);
        }
        kept.keeps_one_more(ino);
        !flush.is_empty()
    }

    #[test]
    fn with_room_nobody_asks() {
        let (scarce, to_do) = scarce();
        scarce.saw(100 * MIB);
        scarce.opened(7, 1, WRITE, || ());
        scarce.told(7);
        assert!(!scarce.is_short() && to_do.try_recv().is_err());
        // The next look comes when half of the room above the limit may be written.
        assert!(!scarce.should_look(44 * MIB) && scarce.should_look(MIB));
        scarce.saw(9 * MIB);
        assert!(matches!(to_do.try_recv(), Ok(Task::Flush(7))), "who was there before hears of it");
        assert!(scarce.is_short() && scarce.should_look(1));
        scarce.told(7);
        assert!(matches!(to_do.try_recv(), Ok(Task::Again(7))));
        scarce.told(8);
        scarce.opened(8, 2, 0, || ());
        assert!(to_do.try_recv().is_err(), "nobody writes to it");
        scarce.opened(8, 3, O_WRONLY, || ());
        assert!(matches!(to_do.try_recv(), Ok(Task::Open(8, _))));
        assert!(scarce.asks_first(O_WRONLY) && !scarce.asks_first(WRITE));
    }

    #[test]
    fn the_length_of_writes_is_learnt() {
        let (scarce, _to_do) = scarce();
        scarce.saw(8 * MIB);
        scarce.opened(7, 1, WRITE, || ());
        assert!(!asks(&scarce, 7, 0), "nothing is kept");
        assert_eq!(scarce.need(7, 1, 0), Need::Bytes(USUAL_WRITE));
        assert!(asks(&scarce, 7, MIB), "the first one tells");
        assert_eq!(scarce.need(7, 1, MIB), Need::Bytes(MIB));
        // More is cached while it fills less than half of the remaining room.
        assert_eq!((0..4).map(|_| asks(&scarce, 7, 4 * MIB)).filter(|&flushed| flushed).count(), 1);
        scarce.saw(MIB / 2);
        assert!(asks(&scarce, 7, MIB) && asks(&scarce, 7, MIB), "each");
        assert_eq!(scarce.need(7, 1, 9 * MIB), Need::Bytes(MIB));
    }

    #[test]
    fn what_is_written_in_place_needs_nothing_and_a_loss_is_told_once() {
        let (scarce, to_do) = scarce();
        scarce.saw(0);
        scarce.opened(7, 1, WRITE, || ());
        scarce.opened(7, 2, WRITE | O_APPEND, || ());
        assert_eq!(scarce.need(7, 1, 5_000), Need::Nothing);
        assert_eq!(scarce.need(7, 2, 5_000), Need::Bytes(USUAL_WRITE), "it only appends");
        assert_eq!(scarce.need(7, 1, 0), Need::Bytes(USUAL_WRITE), "it is empty");
        scarce.lost(7, true);
        assert!(to_do.try_iter().any(|task| matches!(task, Task::Again(7))));
        assert_eq!(scarce.need(7, 1, 5_000), Need::Refused);
        assert_eq!(scarce.need(7, 1, 5_000), Need::Nothing);
        assert_eq!(scarce.all_lost(), [(7, true)]);
        scarce.emptied(7);
        assert_eq!(scarce.all_lost(), []);
        asks(&scarce, 7, 0);
        assert!(asks(&scarce, 7, 4096));
        assert_eq!(scarce.need(7, 1, 9_000), Need::Bytes(4096), "it grew");
        scarce.refuse(7);
        assert_eq!(scarce.need(7, 1, 9_000), Need::Nothing, "who was refused may write in place");
        scarce.closed(1);
        scarce.closed(2);
        assert_eq!(scarce.lock().files.len(), 0);
    }
}

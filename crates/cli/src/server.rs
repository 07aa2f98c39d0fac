//! What the servers of mounts and of disks have in common: the turns that the one thread takes
//! which works on a volume, when it commits, what it tells whoever looks after it, and how its
//! threads are started.
//!
//! A server owns its medium, takes batches from [`Upkeep::next`] until there are none, serves each,
//! tells of changes by [`Upkeep::changed`] and of how everything went by [`Upkeep::judge`].

pub use crate::committer::CHANGE_BYTES;
pub use crate::judge::Judge;
use crate::mount::log;
use crate::queue::{Queue, Refusal, Request, Taken};
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{Error, Result};
use std::io;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// So many bytes at the most are read in one batch, unless one request alone wants more.
pub const READ_BYTES: u64 = 16 << 20;

/// So many bytes at the most go into one commit: more than a tree volume takes before it wants one, so
/// that it comes where it has least to write.
const COMMIT_BYTES: u64 = 96 << 20;

/// What is served.
pub trait Medium {
    /// Does a little of what the volume puts off; gives the pause until it wants to be asked
    /// again, if it has more.
    ///
    /// # Errors
    /// Those of the volume.
    fn idle(&mut self) -> Result<Option<Duration>>;

    /// Makes everything durable that was changed.
    ///
    /// # Errors
    /// Those of the volume.
    fn commit(&mut self) -> Result<()>;

    /// Whether it should be committed before the next request.
    fn wants_commit(&self) -> bool;
}

impl Medium for FileSystem {
    fn idle(&mut self) -> Result<Option<Duration>> {
        FileSystem::idle(self)
    }

    fn commit(&mut self) -> Result<()> {
        FileSystem::commit(self)
    }

    fn wants_commit(&self) -> bool {
        FileSystem::wants_commit(self)
    }
}

impl Medium for Disk {
    fn idle(&mut self) -> Result<Option<Duration>> {
        Disk::idle(self)
    }

    fn commit(&mut self) -> Result<()> {
        self.flush()?;
        self.end_operation()
    }

    fn wants_commit(&self) -> bool {
        Disk::wants_commit(self)
    }
}

/// How a volume is looked after.
pub struct Habits {
    pub commit_every: Duration,
    /// Whether the volume works at a pace.
    pub paced: bool,
    /// What to do about a failure that the server does not get over by itself.
    pub advice: &'static str,
}

/// What a server keeps between requests, for the volume's sake.
pub struct Upkeep<Op, A, E> {
    queue: Arc<Queue<Op, A, E>>,
    habits: Habits,
    /// Bytes that are not committed; 0 when nothing is to be done.
    uncommitted: u64,
    next_commit: Instant,
    judge: Arc<Judge<Op, A, E>>,
    /// What is left of long requests.
    later: Vec<Request<Op, A, E>>,
    /// When the volume wants to be asked for what it put off.
    idle_at: Option<Instant>,
    /// Whether requests were handed out since [`Self::next`] last looked at the clock.
    served: bool,
}

impl<Op, A, E: Refusal> Upkeep<Op, A, E> {
    pub fn new(queue: Arc<Queue<Op, A, E>>, habits: Habits) -> Self {
        let now = Instant::now();
        let next_commit = now + habits.commit_every;
        let idle_at = Some(if habits.paced { now } else { next_commit });
        let judge = Arc::new(Judge::new(Arc::clone(&queue), habits.advice));
        Upkeep {
            queue,
            habits,
            uncommitted: 0,
            next_commit,
            judge,
            later: Vec::new(),
            idle_at,
            served: false,
        }
    }

    /// What is to be served next: all that waits, then what was put off. Until something comes, the
    /// volume has quiet moments and commits. `None` when the queue is closed and nothing is left:
    /// the server then commits and gives the volume back.
    pub fn next(&mut self, medium: &mut impl Medium) -> Option<Vec<Request<Op, A, E>>> {
        loop {
            if std::mem::take(&mut self.served) {
                // A tick is due at its time, also while there is work that needs no access.
                if self.habits.paced {
                    self.idle(medium);
                }
                let wanted = medium.wants_commit();
                self.commit_if_due(medium, wanted);
            }
            let later = std::mem::take(&mut self.later);
            let until = match later.is_empty() {
                true => self.next_commit.min(self.idle_at.unwrap_or(self.next_commit)),
                false => Instant::now(),
            };
            let batch = match self.queue.take(until) {
                Taken::Requests(mut batch) => {
                    batch.extend(later);
                    batch
                }
                Taken::Nothing | Taken::Closed if !later.is_empty() => later,
                Taken::Nothing => {
                    self.idle(medium);
                    self.commit_if_due(medium, false);
                    continue;
                }
                Taken::Closed => return None,
            };
            self.served = true;
            return Some(batch);
        }
    }

    /// Lets what is left of a long request wait until others were served.
    pub fn put_off(&mut self, request: Request<Op, A, E>) {
        self.later.push(request);
    }

    /// So many bytes were changed, at least [`CHANGE_BYTES`] for every request that changes
    /// anything.
    pub fn changed(&mut self, bytes: u64) {
        self.uncommitted += bytes.max(CHANGE_BYTES);
    }

    /// A quiet moment: what the volume puts off is done, a little of it at a time.
    fn idle(&mut self, medium: &mut impl Medium) {
        if self.idle_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        let done = medium.idle();
        self.judge(done.as_ref().err());
        self.idle_at = done.ok().flatten().map(|pause| Instant::now() + pause);
    }

    /// The timer is public: it runs at the same pace whatever was asked for. So is when a volume wants it.
    fn commit_if_due(&mut self, medium: &mut impl Medium, wanted: bool) {
        let now = Instant::now();
        let due = now >= self.next_commit;
        if due {
            self.next_commit = now + self.habits.commit_every;
        }
        if wanted || self.uncommitted >= COMMIT_BYTES || (due && self.uncommitted > 0) {
            // Nobody waits for this commit, so nobody else would hear of it.
            if let Err(error) = self.commit(medium).map_err(|error| error.to_string())
                && self.judge.is_news(&error)
            {
                log::note(&format!("what was changed could not be committed: {error}"));
            }
        }
    }

    /// One commit, for everybody who waits for one.
    ///
    /// # Errors
    /// Those of the volume, which were judged already.
    pub fn commit(&mut self, medium: &mut impl Medium) -> Result<()> {
        let committed = medium.commit();
        if committed.is_ok() {
            self.uncommitted = 0;
            self.idle_at.get_or_insert_with(Instant::now);
            // Only now: what lies in memory can be read while the store is away.
            if self.judge.is_over() {
                log::note("the store answers again, and everything is committed");
            }
        }
        self.judge(committed.as_ref().err());
        committed
    }

    /// Judges how something went ([`Judge::judge`]).
    pub fn judge(&self, error: Option<&Error>) {
        self.judge.judge(error);
    }

    /// The same, for threads beside the server.
    pub fn judge_beside(&self) -> Arc<Judge<Op, A, E>> {
        Arc::clone(&self.judge)
    }
}

/// A server at work on a thread of its own.
pub struct Running(JoinHandle<Result<()>>);

impl Running {
    /// Starts a server, and the clock that answers for a store that does not.
    ///
    /// # Errors
    /// Those of the system.
    pub fn start<Op, A, E>(
        queue: &Arc<Queue<Op, A, E>>,
        serve: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> io::Result<Self>
    where
        Op: Send + 'static,
        A: Send + 'static,
        E: Refusal,
    {
        let watched = Arc::clone(queue);
        // Whatever ends the server, nobody waits for it any longer.
        let end = End(Arc::clone(queue));
        thread::Builder::new().name("deadline".into()).spawn(move || {
            watched.watch(|waited| {
                log::note(&format!(
                    "the store has not answered for {} seconds; until it does, whoever waits gets \
                     an error",
                    waited.as_secs_f64()
                ));
            });
        })?;
        let server = thread::Builder::new().name("server".into()).spawn(move || {
            let _end = end;
            serve()
        })?;
        Ok(Running(server))
    }

    /// Waits until the server has ended and everything is committed.
    ///
    /// # Errors
    /// What it ended by.
    pub fn wait(self) -> anyhow::Result<()> {
        match self.0.join() {
            Ok(ended) => Ok(ended?),
            Err(_) => anyhow::bail!("the server of the volume panicked"),
        }
    }
}

struct End<Op, A, E: Refusal>(Arc<Queue<Op, A, E>>);

impl<Op, A, E: Refusal> Drop for End<Op, A, E> {
    fn drop(&mut self) {
        self.0.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Slot;

    #[derive(Clone, Copy, Debug)]
    struct Refused;

    impl Refusal for Refused {
        const STALLED: Self = Refused;

        fn is_failure(error: &Error) -> bool {
            !matches!(error, Error::Full(_))
        }
    }

    /// Counts quiet moments and commits; commits fail while they are to.
    #[derive(Default)]
    struct Counts {
        idle: usize,
        commits: usize,
        wants: bool,
        full: bool,
    }

    impl Medium for Counts {
        fn idle(&mut self) -> Result<Option<Duration>> {
            self.idle += 1;
            Ok(Some(Duration::ZERO))
        }

        fn commit(&mut self) -> Result<()> {
            self.commits += 1;
            if self.full { Err(Error::Full("the store".into())) } else { Ok(()) }
        }

        fn wants_commit(&self) -> bool {
            self.wants
        }
    }

    fn upkeep(queue: &Arc<Queue<(), (), Refused>>, paced: bool) -> Upkeep<(), (), Refused> {
        let habits = Habits { commit_every: Duration::from_secs(3600), paced, advice: "" };
        Upkeep::new(Arc::clone(queue), habits)
    }

    /// One request waits, and no more will come.
    fn queue() -> Arc<Queue<(), (), Refused>> {
        let queue = Queue::new(Duration::from_secs(20), crate::queue::Pulse::default());
        queue.push((), Box::new(|_| ()));
        queue.close();
        Arc::new(queue)
    }

    /// Ticks are due at their times whatever is being served, also what was put off.
    #[test]
    fn a_pace_is_kept_during_a_long_request() {
        for paced in [false, true] {
            let (queue, mut counts) = (queue(), Counts::default());
            let mut upkeep = upkeep(&queue, paced);
            for _ in 0..10 {
                let mut batch = upkeep.next(&mut counts).expect("it was put off");
                assert_eq!(batch.len(), 1);
                upkeep.put_off(batch.remove(0));
            }
            assert_eq!(counts.idle, if paced { 9 } else { 0 });
            assert_eq!(upkeep.next(&mut counts).expect("the last part").len(), 1);
            assert!(upkeep.next(&mut counts).is_none());
        }
    }

    /// A commit that nobody waits for and that fails is tried again, and told of once.
    #[test]
    fn much_is_committed_without_being_asked() {
        let (queue, mut counts) = (queue(), Counts { full: true, ..Counts::default() });
        let mut upkeep = upkeep(&queue, false);
        for commits in 1..4 {
            let mut batch = upkeep.next(&mut counts).expect("it was put off");
            upkeep.changed(COMMIT_BYTES);
            upkeep.put_off(batch.remove(0));
            assert_eq!(counts.commits, commits - 1);
        }
        assert!(upkeep.next(&mut counts).is_some());
        assert_eq!(counts.commits, 3);
        assert!(upkeep.judge.failure().contains("the store"), "{}", upkeep.judge.failure());
        counts.full = false;
        upkeep.put_off(Request { op: (), slot: Slot::new(Box::new(|_| ())) });
        assert!(upkeep.next(&mut counts).is_some());
        assert_eq!((upkeep.uncommitted, upkeep.judge.failure().as_str()), (0, ""));
        upkeep.changed(1);
        assert!(upkeep.next(&mut counts).is_none());
        assert_eq!(counts.commits, 4, "a little waits for its time");
    }

    #[test]
    fn a_volume_that_wants_a_commit_has_it_before_the_next_request() {
        let (queue, mut counts) = (queue(), Counts::default());
        let mut upkeep = upkeep(&queue, false);
        for wants in [false, true, true] {
            let (before, mut batch) = (counts.commits, upkeep.next(&mut counts).expect("put off"));
            counts.wants = wants;
            upkeep.put_off(batch.remove(0));
            batch = upkeep.next(&mut counts).expect("put off");
            assert_eq!(counts.commits, before + usize::from(wants));
            counts.wants = false;
            upkeep.put_off(batch.remove(0));
        }
    }
}

//! The common part of the servers of mounts and disks: the loop of the one thread that works on a
//! volume, when it commits, its reports to the administrator, and the start of its threads.
//!
//! A server owns its medium, takes batches from [`Upkeep::next`] until there are none, and serves
//! each. It reports changes by [`Upkeep::changed`] and outcomes by [`Upkeep::judge`].

mod running;

pub use crate::judge::Judge;
use crate::log;
use crate::queue::{Refusal, Request, RequestQueue, Taken};
use oblivio_volume::disk::Disk;
use oblivio_volume::fs::FileSystem;
use oblivio_volume::{CHANGE_BYTES, Commits, Error, Result, Scrubs};
pub use running::Running;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Limit of the bytes read in one batch, unless a single request wants more.
pub const READ_BYTES: u64 = 16 << 20;

/// Limit of the bytes in one commit: more than a tree volume takes before it wants a commit, which
/// then comes where it has least to write.
const COMMIT_BYTES: u64 = 96 << 20;

/// The pause of a scrub after a failure.
const SCRUB_AGAIN: Duration = Duration::from_secs(60);

/// What a server serves.
pub trait Medium {
    /// Does a little of the volume's deferred work; returns the pause until the next call, if there
    /// is more.
    ///
    /// # Errors
    /// Those of the volume.
    fn idle(&mut self) -> Result<Option<Duration>>;

    /// Makes all changes durable.
    ///
    /// # Errors
    /// Those of the volume.
    fn commit(&mut self) -> Result<()>;

    /// Whether to commit before the next request.
    fn wants_commit(&self) -> bool;

    /// Does a step of a scrub if one is due; returns the pause until the next call, if it is
    /// scrubbed at all.
    ///
    /// # Errors
    /// Those of the volume.
    fn scrub(&mut self) -> Result<Option<Duration>> {
        Ok(None)
    }
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

    fn scrub(&mut self) -> Result<Option<Duration>> {
        Scrubs::scrub(self)
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

/// The parameters of a volume's upkeep.
pub struct Habits {
    pub commit_every: Duration,
    /// Minimum delay between the last change and its commit, where no sync requests arrive. `None`
    /// where they do, and at a pace.
    pub settle: Option<Duration>,
    /// Whether that delay is the same however long a commit takes.
    pub even: bool,
    /// Whether the volume works at a pace.
    pub paced: bool,
    /// Advice for a failure that the server cannot recover from.
    pub advice: &'static str,
}

/// A server's state between requests, for the volume's sake.
pub struct Upkeep<Op, A, E> {
    queue: Arc<RequestQueue<Op, A, E>>,
    habits: Habits,
    commits: Commits,
    judge: Arc<Judge<Op, A, E>>,
    /// Unfinished parts of long requests.
    later: Vec<Request<Op, A, E>>,
    /// When the volume wants its next idle call.
    idle_at: Option<Instant>,
    /// When the next step of a scrub is due.
    scrub_at: Option<Instant>,
    /// Whether requests were handed out since [`Self::next`] last checked the clock.
    served: bool,
}

impl<Op, A, E: Refusal> Upkeep<Op, A, E> {
    pub fn new(queue: Arc<RequestQueue<Op, A, E>>, habits: Habits) -> Self {
        let now = Instant::now();
        let commits = Commits::after_bytes(COMMIT_BYTES);
        let commits = commits.or_every(habits.commit_every, habits.settle, now);
        let idle_at = Some(if habits.paced { now } else { now + habits.commit_every });
        let judge = Arc::new(Judge::new(Arc::clone(&queue), habits.advice));
        let (later, served, scrub_at) = (Vec::new(), false, Some(now));
        Upkeep { queue, habits, commits, judge, later, idle_at, scrub_at, served }
    }

    /// The next requests: all that wait, then the deferred ones. Until some come, the volume does
    /// idle work and commits. `None` when the queue is closed and nothing is left: the server then
    /// commits and gives the volume back.
    pub fn next(&mut self, medium: &mut impl Medium) -> Option<Vec<Request<Op, A, E>>> {
        loop {
            if std::mem::take(&mut self.served) {
                // A tick is due at its time, also during work that needs no access.
                if self.habits.paced {
                    self.idle(medium);
                }
                let wanted = medium.wants_commit();
                self.commit_if_due(medium, wanted);
            }
            // At its time, whatever waits: a request that needs nothing of the store must not put
            // it off, or it would show.
            self.scrub(medium);
            let later = std::mem::take(&mut self.later);
            let until = match later.is_empty() {
                true => {
                    let times = [self.idle_at, self.scrub_at, self.commits.next()];
                    times.into_iter().flatten().min()
                }
                false => None,
            };
            let until = until.unwrap_or_else(Instant::now);
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

    /// Lets the rest of a long request wait until others were served.
    pub fn put_off(&mut self, request: Request<Op, A, E>) {
        self.later.push(request);
    }

    /// Counts changed bytes, at least [`CHANGE_BYTES`] for every request with a change.
    pub fn changed(&mut self, bytes: u64) {
        self.commits.changed_at(bytes, Instant::now());
    }

    /// Counts a possible change by a request that programs do not make to change anything. It waits
    /// for the timer: a mere reader must not decide when the changes of others are committed.
    pub fn may_have_changed(&mut self) {
        self.commits.changed(CHANGE_BYTES);
    }

    /// Idle work: does the volume's deferred work, a little at a time.
    fn idle(&mut self, medium: &mut impl Medium) {
        if self.idle_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        let done = medium.idle();
        self.judge(done.as_ref().err());
        self.idle_at = done.ok().flatten().map(|pause| Instant::now() + pause);
    }

    /// A step of a scrub. After a failure it rests: the medium says for how long when it works
    /// again.
    fn scrub(&mut self, medium: &mut impl Medium) {
        if self.scrub_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        let done = medium.scrub();
        self.judge(done.as_ref().err());
        let pause = done.unwrap_or(Some(SCRUB_AGAIN));
        self.scrub_at = pause.map(|pause| Instant::now() + pause);
    }

    /// Commits by the timer. The timer is public: it keeps the same pace whatever the requests.
    /// Public too are when a volume wants a commit, and when the last change was.
    fn commit_if_due(&mut self, medium: &mut impl Medium, wanted: bool) {
        let due = self.commits.is_due(Instant::now());
        if wanted || due {
            // No client waits for this commit, so its error must be reported here.
            if let Err(error) = self.commit(medium).map_err(|error| error.to_string())
                && self.judge.is_news(&error)
            {
                log::note(&format!("what was changed could not be committed: {error}"));
            }
        }
    }

    /// One commit, for all that want one.
    ///
    /// # Errors
    /// Those of the volume, already judged.
    pub fn commit(&mut self, medium: &mut impl Medium) -> Result<()> {
        let begun = Instant::now();
        let committed = medium.commit();
        if !self.habits.even {
            self.commits.took(begun.elapsed());
        }
        if committed.is_ok() {
            self.commits.committed();
            self.idle_at.get_or_insert_with(Instant::now);
            // Only now: data in memory can be read while the store is away.
            if self.judge.is_over() {
                log::note("the store answers again, and everything is committed");
            }
        }
        self.judge(committed.as_ref().err());
        committed
    }

    /// Judges an outcome ([`Judge::judge`]).
    pub fn judge(&self, error: Option<&Error>) {
        self.judge.judge(error);
    }

    /// The same, for threads beside the server.
    pub fn judge_beside(&self) -> Arc<Judge<Op, A, E>> {
        Arc::clone(&self.judge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::AnswerSlot;

    #[derive(Clone, Copy, Debug)]
    struct Refused;

    impl Refusal for Refused {
        const STALLED: Self = Refused;

        fn is_failure(error: &Error) -> bool {
            !matches!(error, Error::Full(_))
        }
    }

    /// Counts idle calls and commits; commits fail on demand.
    #[derive(Default)]
    struct Counts {
        idle: usize,
        commits: usize,
        scrubs: usize,
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

        fn scrub(&mut self) -> Result<Option<Duration>> {
            self.scrubs += 1;
            Ok((self.scrubs < 5).then_some(Duration::ZERO))
        }
    }

    fn upkeep(queue: &Arc<RequestQueue<(), (), Refused>>, paced: bool) -> Upkeep<(), (), Refused> {
        let commit_every = Duration::from_secs(3600);
        let habits = Habits { commit_every, settle: None, even: true, paced, advice: "" };
        Upkeep::new(Arc::clone(queue), habits)
    }

    /// One request waits, and no more will come.
    fn queue() -> Arc<RequestQueue<(), (), Refused>> {
        let queue = RequestQueue::new(Duration::from_secs(20), crate::queue::Pulse::default());
        queue.push((), Box::new(|_| ()));
        queue.close();
        Arc::new(queue)
    }

    /// Ticks are due at their times whatever is served, also with deferred requests.
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

    /// Requests that come without a pause do not put it off: they may need nothing of the store,
    /// which must not show.
    #[test]
    fn a_scrub_comes_at_its_times_whatever_is_served() {
        let (queue, mut counts) = (queue(), Counts::default());
        let mut upkeep = upkeep(&queue, false);
        for step in 1..10 {
            let mut batch = upkeep.next(&mut counts).expect("it was put off");
            assert_eq!(counts.scrubs, step.min(5), "then it wants no more");
            upkeep.put_off(batch.remove(0));
        }
    }

    /// A failed commit that no client waits for is tried again, and reported once.
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
        upkeep.put_off(Request { op: (), slot: AnswerSlot::new(Box::new(|_| ())) });
        assert!(upkeep.next(&mut counts).is_some());
        assert_eq!((upkeep.commits.waiting(), upkeep.judge.failure().as_str()), (0, ""));
        upkeep.changed(1);
        assert!(upkeep.next(&mut counts).is_none());
        assert_eq!(counts.commits, 4, "a little waits for its time");
    }

    /// It is committed once by itself; the volume's own policy says when ([`Commits`]).
    #[test]
    fn what_has_settled_is_committed_once() {
        let (queue, mut counts) = (queue(), Counts { full: true, ..Counts::default() });
        let commit_every = Duration::from_secs(3600);
        let habits = Habits {
            commit_every,
            settle: Some(Duration::ZERO),
            even: true,
            paced: false,
            advice: "",
        };
        let mut upkeep = Upkeep::new(Arc::clone(&queue), habits);
        let turn = |upkeep: &mut Upkeep<(), (), Refused>, counts: &mut Counts| {
            let mut batch = upkeep.next(counts).expect("it was put off");
            upkeep.put_off(batch.remove(0));
            counts.commits
        };
        turn(&mut upkeep, &mut counts);
        upkeep.changed(1);
        assert_eq!(turn(&mut upkeep, &mut counts), 1);
        assert_eq!(turn(&mut upkeep, &mut counts), 1, "the timer tries again");
        counts.full = false;
        upkeep.may_have_changed();
        assert_eq!(
            (turn(&mut upkeep, &mut counts), upkeep.commits.waiting()),
            (1, 2 * CHANGE_BYTES)
        );
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

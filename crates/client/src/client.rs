//! [`Client`]: a shared volume that many threads may ask at the same time.

use crate::carried::{Carried, judge, whole};
use crate::error::{Failure, at_server, of_engine, of_share};
use crate::inner::{ClientOptions, Inner};
use crate::io_threads;
use crate::known::HeadKeeper;
use crate::presence;
use crate::role;
use crate::session::{MOST_OPEN, SessionState, Ticket};
use crate::volume::Keyed;
use oblivio_engine::pyramid::share::{Answer, Ask, Change, DamagedSlot, Head, Session};
use oblivio_store::share::{Number, Share, ShareError};
use oblivio_volume::{Error, Result};
use std::io::ErrorKind;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// How long a client may take to end beyond its patience.
const ENDING: Duration = Duration::from_secs(3);
/// How long a call waits after one that waited in vain.
const IMPATIENCE: Duration = Duration::from_millis(100);
/// The longest time for which it tries to end its session.
const FAREWELL: Duration = Duration::from_secs(5);

/// What a thread does.
type Run = fn(&Inner);

/// A shared volume, for as many threads as there are.
///
/// Whatever the server does, each call ends: after [`ClientOptions::timeout`] it fails, and its
/// asks may be carried out later or not.
pub struct Client {
    inner: Arc<Inner>,
    /// A thread that has ended drops its sender.
    ended: Mutex<Receiver<()>>,
}

impl Client {
    /// Begins a session with the volume.
    ///
    /// # Errors
    /// `RolledBack` if the server shows an older state than this computer knows, or another one;
    /// those of the line.
    pub fn open(
        share: Box<dyn Share>,
        keyed: Keyed,
        known: Box<dyn HeadKeeper>,
        options: ClientOptions,
    ) -> Result<Self> {
        let head = begin_with(&*share, known.head())?;
        let state =
            SessionState::new(keyed.clone(), head, share.device(), options.notices, Instant::now());
        let (work, came) = (Condvar::new(), Condvar::new());
        let (known, own) = (Mutex::new(known), Mutex::new(None));
        let state = Mutex::new(state);
        let inner = Inner { share, keyed, options, known, state, own, work, came };
        let (alive, ended) = channel();
        let this = Self { inner: Arc::new(inner), ended: Mutex::new(ended) };
        let mut threads: Vec<(&str, Run)> =
            vec![("asks", io_threads::send), ("answers", io_threads::receive)];
        if options.scribe {
            threads.push(("scribe", role::watch));
        }
        for (name, run) in threads {
            this.start(name, run, alive.clone())?;
        }
        if options.notices {
            // Nobody waits for its end: it may be at the server for a while.
            this.start("notices", io_threads::hear, channel().0)?;
        }
        Ok(this)
    }

    fn start(&self, name: &str, run: Run, alive: Sender<()>) -> Result<()> {
        let inner = Arc::clone(&self.inner);
        let run = move || {
            run(&inner);
            drop(alive);
        };
        let started = thread::Builder::new().name(format!("share {name}")).spawn(run);
        started.map(drop).map_err(|error| {
            self.stop();
            at_server(error)
        })
    }

    /// Carries out a transaction: all its asks, or none.
    ///
    /// # Errors
    /// `Store` after the timeout, or if the answer was lost: it may have been carried out, or may
    /// be later. `Full` if it makes blocks and there is no room. `Lost` if it needs the content of
    /// a block that is lost to damage at the server. `RolledBack` and `Tampered` if the server does
    /// not show what was stored; then all later calls fail.
    pub fn carry_out(&self, asks: &[Ask]) -> Result<Vec<Answer>> {
        let mut all = self.carry_out_many(std::slice::from_ref(&asks.to_vec()))?;
        all.pop().ok_or_else(|| Error::Invalid("no transaction".into()))
    }

    /// Carries out transactions that do not depend on each other, in flight together.
    ///
    /// # Errors
    /// As for [`Self::carry_out`]; others of them may have been carried out.
    pub fn carry_out_many(&self, transactions: &[Vec<Ask>]) -> Result<Vec<Vec<Answer>>> {
        whole(self.carry_out_each(transactions)?)
    }

    /// As [`Self::carry_out_many`]; a transaction that needs a lost block is an outcome of its own.
    ///
    /// # Errors
    /// As for [`Self::carry_out_many`], but for `Lost`.
    pub fn carry_out_each(&self, transactions: &[Vec<Ask>]) -> Result<Vec<Carried>> {
        let deadline = Deadline { since: Instant::now(), time: self.patience() };
        let mut answers = vec![None; transactions.len()];
        while answers.iter().any(Option::is_none) {
            self.attempt(transactions, &mut answers, deadline, None)?;
        }
        Ok(answers.into_iter().flatten().collect())
    }

    /// As [`Self::carry_out_many`], in this session alone. None: it is over, and those that were
    /// not carried out before never will be.
    ///
    /// # Errors
    /// As for [`Self::carry_out_many`].
    pub fn carry_out_in(
        &self,
        session: Session,
        transactions: &[Vec<Ask>],
    ) -> Result<Option<Vec<Vec<Answer>>>> {
        self.carry_out_each_in(session, transactions)?.map(whole).transpose()
    }

    /// As [`Self::carry_out_each`], in this session alone.
    ///
    /// # Errors
    /// As for [`Self::carry_out_each`].
    pub fn carry_out_each_in(
        &self,
        session: Session,
        transactions: &[Vec<Ask>],
    ) -> Result<Option<Vec<Carried>>> {
        let deadline = Deadline { since: Instant::now(), time: self.patience() };
        let mut answers = vec![None; transactions.len()];
        self.attempt(transactions, &mut answers, deadline, Some(session))?;
        Ok(answers.into_iter().collect())
    }

    /// Asks once for what has no answers yet. If it fails, nobody waits any more.
    fn attempt(
        &self,
        transactions: &[Vec<Ask>],
        answers: &mut [Option<Carried>],
        deadline: Deadline,
        only: Option<Session>,
    ) -> Result<()> {
        let mut begun: Vec<(usize, Ticket)> = Vec::with_capacity(answers.len());
        let done = self.round(transactions, &mut begun, answers, deadline, only);
        if done.is_err() {
            let mut state = self.inner.state();
            begun.iter().for_each(|(_, ticket)| state.abandon(*ticket));
        }
        done
    }

    /// How long a call may wait. While the server is away, only the first one waits long.
    fn patience(&self) -> Duration {
        let timeout = self.inner.options.timeout;
        if self.inner.state().away { timeout.min(IMPATIENCE) } else { timeout }
    }

    /// Asks once. Transactions whose session ended before them stay without answers, and so do all
    /// that come after the end of the `only` session.
    fn round(
        &self,
        transactions: &[Vec<Ask>],
        begun: &mut Vec<(usize, Ticket)>,
        answers: &mut [Option<Carried>],
        deadline: Deadline,
        only: Option<Session>,
    ) -> Result<()> {
        for at in (0..answers.len()).filter(|at| answers[*at].is_none()) {
            let mut state = self.inner.state();
            while state.open() >= MOST_OPEN {
                let until = deadline.at(&state);
                state = self.wait(state, until)?;
            }
            check(&state)?;
            if only.is_some_and(|session| !state.is_in(session)) {
                break;
            }
            let ticket = state.begin(&transactions[at], true, Instant::now()).map_err(of_engine)?;
            begun.push((at, ticket));
            drop(state);
            self.inner.work.notify_all();
        }
        for (at, ticket) in begun {
            let mut state = self.inner.state();
            let got = loop {
                if let Some(got) = state.answered(*ticket) {
                    break got;
                }
                let until = deadline.at(&state);
                state = self.wait(state, until)?;
            };
            drop(state);
            answers[*at] = judge(&transactions[*at], got)?;
        }
        Ok(())
    }

    /// Waits for something to change.
    fn wait<'d>(
        &self,
        mut state: MutexGuard<'d, SessionState>,
        until: Instant,
    ) -> Result<MutexGuard<'d, SessionState>> {
        check(&state)?;
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            state.away = true;
            return Err(away(&state));
        }
        Ok(self.inner.came.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0)
    }

    /// Ends a session: this one, or one whose client is silent. Its later asks are refused.
    ///
    /// # Errors
    /// As for [`Self::carry_out`].
    pub fn end(&self, session: Session) -> Result<()> {
        self.carry_out(&[Ask::end_of(session)]).map(drop)
    }

    /// This session. After a long silence it may be another one than before.
    #[must_use]
    pub fn session(&self) -> Session {
        self.inner.state().session()
    }

    /// What others changed since the last call, for caches; none if anything may have changed.
    /// Only of a client that hears [`ClientOptions::notices`].
    #[must_use]
    pub fn changed(&self) -> Option<Vec<Change>> {
        self.inner.state().take_changes(Instant::now())
    }

    /// Slots of the server's tables that are not what was stored there, as far as this client met
    /// them while it was the scribe. What they held is lost, if they held anything.
    #[must_use]
    pub fn damaged(&self) -> Vec<DamagedSlot> {
        self.inner.state().damaged.iter().copied().collect()
    }

    /// How many these are.
    #[must_use]
    pub fn damaged_count(&self) -> u64 {
        self.inner.state().damaged.len() as u64
    }

    /// Blocks that exist, as the newest answer said, and the most that may.
    #[must_use]
    pub fn blocks(&self) -> (u64, u64) {
        (self.inner.state().live_blocks(), self.inner.keyed.config().blocks())
    }

    /// Bytes of a block.
    #[must_use]
    pub fn block_bytes(&self) -> usize {
        self.inner.keyed.config().block_bytes
    }

    /// Waits for the end of what is under way, ends the session, and lets another client become
    /// the scribe. It takes a few seconds at most, whatever the server does.
    ///
    /// # Errors
    /// `Forgotten` if what this computer knows could not be kept. All else is the server's, which
    /// needs no farewell.
    pub fn close(&self) -> Result<()> {
        self.farewell();
        self.stop();
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        // All threads have dropped their senders, or they wait for a server that is away.
        let _ = ended.recv_timeout(ENDING);
        drop(ended);
        let head = self.inner.state().head();
        match self.inner.state().failed {
            None | Some(Failure::Closed) => self.inner.note(head, true),
            Some(_) => Ok(()),
        }
    }

    fn farewell(&self) {
        let begin = Instant::now();
        let until = begin + FAREWELL.min(self.patience());
        let mut state = self.inner.state();
        let session = state.session();
        // In this order: what stands in no batch at the session's end is refused.
        let _ = state.begin(&[presence::leave(session)], false, begin);
        let Ok(ticket) = state.begin(&[Ask::end_of(session)], true, begin) else { return };
        self.inner.work.notify_all();
        while state.answered(ticket).is_none() {
            match self.wait(state, until) {
                Ok(next) => state = next,
                Err(_) => return,
            }
        }
    }

    fn stop(&self) {
        let mut state = self.inner.state();
        state.stopping = true;
        state.failed.get_or_insert(Failure::Closed);
        drop(state);
        self.inner.work.notify_all();
        self.inner.came.notify_all();
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.stop();
    }
}

/// When a call has waited long enough. As long as answers come, however many are to come, the
/// server is there.
#[derive(Clone, Copy)]
struct Deadline {
    since: Instant,
    time: Duration,
}

impl Deadline {
    fn at(self, state: &SessionState) -> Instant {
        self.since.max(state.answered) + self.time
    }
}

fn check(state: &SessionState) -> Result<()> {
    state.failed.as_ref().map_or(Ok(()), |failure| Err(failure.error()))
}

/// The error of a call that has waited long enough.
fn away(state: &SessionState) -> Error {
    match &state.trouble {
        Some(trouble) if trouble.is_full => Error::Full(trouble.what.clone()),
        Some(trouble) => at_server(std::io::Error::new(ErrorKind::TimedOut, trouble.what.clone())),
        None => at_server(std::io::Error::new(ErrorKind::TimedOut, "it does not answer")),
    }
}

/// The head that a client begins with: the one that it knows, or else the newest of the server's.
///
/// What the server says here is judged by the scribe at the first ask. But an older state is better
/// found before anything is done.
fn begin_with(share: &dyn Share, known: Head) -> Result<Head> {
    let status = share.status().map_err(of_share)?;
    let at = |number: u64| -> Result<Option<Head>> {
        let Some(before) = number.checked_sub(1) else { return Ok(Some(Head::default())) };
        match share.records(Number(before), 0, Duration::ZERO) {
            Ok(records) => Ok(records.first().and_then(|record| Head::of(number, &record.sealed))),
            Err(ShareError::Gone(_)) => Ok(None),
            Err(error) => Err(of_share(error)),
        }
    };
    if known == Head::default() {
        let newest = at(status.next.0)?;
        return newest.ok_or_else(|| Error::Tampered("the server shows no history".into()));
    }
    if status.next.0 < known.number {
        return Err(Error::RolledBack(format!(
            "the server shows {} records of the {} that this computer knows",
            status.next.0, known.number
        )));
    }
    // Those that the server keeps no longer are behind a state of the scribe.
    if known.number > status.first.0 && at(known.number)? != Some(known) {
        return Err(Error::RolledBack(format!(
            "record {} is another one than the one that this computer knows",
            known.number
        )));
    }
    Ok(known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::known::Unremembered;
    use crate::volume::{NewShared, create};
    use oblivio_crypto::{KdfParams, Passphrase};
    use oblivio_share::MemoryShare;
    use oblivio_store::share::{ShareCall, ShareReply};
    use std::sync::atomic::{AtomicBool, Ordering};

    /// A server, until it is away.
    struct Away(MemoryShare, Arc<AtomicBool>);

    impl Share for Away {
        fn device(&self) -> u16 {
            self.0.device()
        }

        fn call(&self, call: ShareCall<'_>) -> oblivio_store::share::Result<ShareReply> {
            if self.1.load(Ordering::SeqCst) {
                return Err(ShareError::Line(ErrorKind::ConnectionRefused.into()));
            }
            self.0.call(call)
        }
    }

    /// With a patience of hours, so that what ends ends for another reason.
    #[test]
    fn one_wait_in_vain_is_enough() {
        let share = MemoryShare::new(Arc::new(|| Duration::ZERO));
        let new = NewShared { block_bytes: 256, capacity_bytes: 1 << 16, kdf: KdfParams::TEST };
        let keyed = create(&share, &new, &Passphrase::new("one")).unwrap();
        let timeout = Duration::from_secs(3600);
        let (gone, known) = (Arc::new(AtomicBool::new(false)), Box::new(Unremembered::default()));
        let share = Box::new(Away(share, Arc::clone(&gone)));
        let options = ClientOptions { timeout, ..ClientOptions::default() };
        let client = Client::open(share, keyed, known, options).unwrap();
        let ask = presence::look(client.session());
        client.carry_out(std::slice::from_ref(&ask)).unwrap();
        assert_eq!(client.patience(), timeout);
        // What the scribe answers early comes once more from the server, which then is not away.
        let came = || client.inner.state().again().is_empty().then_some(());
        oblivio_testkit::eventually("nothing is under way", came);
        gone.store(true, Ordering::SeqCst);
        let mut state = client.inner.state();
        let since = Instant::now();
        assert!(client.wait(state, since).is_err(), "its time is up");
        state = client.inner.state();
        assert!(state.away);
        drop(state);
        assert_eq!(client.patience(), IMPATIENCE);
        let (tell, told) = channel();
        thread::spawn(move || {
            let failed = client.carry_out(&[ask]).map(drop);
            tell.send((failed, client.close())).unwrap();
        });
        let (failed, closed) = told.recv_timeout(timeout / 60).expect("neither waits for hours");
        assert!(matches!(failed, Err(Error::Store(_))), "{failed:?}");
        closed.unwrap();
    }
}

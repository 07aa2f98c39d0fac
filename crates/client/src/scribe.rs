//! The work of the scribe: asks become batches, and duties become calls of its threads.

use crate::convert;
use crate::error::Failure;
use crate::inner::Inner;
use crate::session::MOST_DAMAGED;
use crate::term::{Before, TermEnd};
use crate::workers::{self, PendingPut, ServerEvent, SlotRead, SlotReader, Sums, Workers};
use oblivio_engine::EngineError;
use oblivio_engine::pyramid::share as engine;
use oblivio_engine::pyramid::share::{
    Ask as EngineAsk, BatchNumber, Duty, Head, MOST_OF_BATCH, Scribe,
};
use oblivio_store::share::{
    AskId, Fetch, HistoryEntry, Number, ScribeTerm, SealedAnswer, SealedAsk, SealedShow,
    SealedSwitch, SealedTell,
};
use std::collections::{BTreeMap, VecDeque};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

/// How long the first ask of a batch waits for others, while earlier batches are under way.
const GATHERING: Duration = Duration::from_millis(8);
/// How long an idle scribe waits before it looks whether its client ends.
const LOOK: Duration = Duration::from_millis(50);
/// The longest time for which a scribe whose client ends finishes its batches.
const FINISHING: Duration = Duration::from_secs(1);
/// A session that asks nothing for so long has no client any more.
const SILENCE: Duration = Duration::from_secs(60);

/// Serves all clients until something ends it.
pub fn serve(inner: &Inner, term: ScribeTerm, scribe: Scribe, before: Before) -> TermEnd {
    thread::scope(|scope| match workers::start(scope, inner, term) {
        Ok((workers, events, own)) => {
            inner.lead(Some(own));
            let stop = Serving::new(inner, term, scribe, before, workers).run(&events);
            inner.lead(None);
            stop
        }
        Err(error) => TermEnd::Share(oblivio_store::share::ShareError::Line(error)),
    })
}

/// A client that is the scribe.
struct Serving<'i> {
    inner: &'i Inner,
    term: ScribeTerm,
    scribe: Scribe,
    workers: Workers,
    before: Before,
    /// The number of the next record.
    next: Number,
    /// Batches without answers: their records.
    shown: BTreeMap<BatchNumber, (Number, Head)>,
    /// Asks of the next batch, and when the first one came.
    incoming: Vec<SealedAsk>,
    since: Option<Instant>,
    /// Asks of this client that go to the server with their batch: the scribe waits for one round
    /// trip only.
    own: BTreeMap<AskId, SealedAsk>,
    /// What merges read, once the records before it are appended.
    turns: VecDeque<SlotRead>,
    /// The newest record that is known to be durable.
    durable: Head,
    /// When each session asked last.
    seen: BTreeMap<engine::Session, Instant>,
    swept: Instant,
}

impl<'i> Serving<'i> {
    fn new(
        inner: &'i Inner,
        term: ScribeTerm,
        scribe: Scribe,
        before: Before,
        workers: Workers,
    ) -> Self {
        let now = Instant::now();
        let (next, durable) = (before.next, before.head);
        let seen = scribe.live_sessions().map(|session| (session, now)).collect();
        Self {
            inner,
            term,
            scribe,
            workers,
            before,
            next,
            shown: BTreeMap::new(),
            incoming: Vec::new(),
            since: None,
            own: BTreeMap::new(),
            turns: VecDeque::new(),
            durable,
            seen,
            swept: now,
        }
    }

    fn run(mut self, events: &Receiver<ServerEvent>) -> TermEnd {
        let mut ending = None;
        loop {
            match self.duties().and_then(|()| self.wait(events)) {
                Ok(()) => {}
                Err(stop) => return stop,
            }
            if self.inner.state().stopping {
                let since = *ending.get_or_insert_with(Instant::now);
                if self.shown.is_empty() || since.elapsed() > FINISHING {
                    return TermEnd::Ended;
                }
            }
        }
    }

    /// Waits for the next event, and takes what else is there.
    fn wait(&mut self, events: &Receiver<ServerEvent>) -> Result<(), TermEnd> {
        match events.recv_timeout(self.gathering().unwrap_or(LOOK)) {
            Ok(event) => self.event(event)?,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return Err(TermEnd::Ended),
        }
        while let Ok(event) = events.try_recv() {
            self.event(event)?;
        }
        let waited = self.gathering().is_some_and(|left| left.is_zero());
        if waited || self.incoming.len() >= MOST_OF_BATCH {
            self.take()?;
        }
        self.sweep();
        Ok(())
    }

    /// How long the asks that came wait for others.
    fn gathering(&self) -> Option<Duration> {
        let time = if self.shown.is_empty() { Duration::ZERO } else { GATHERING };
        self.since.map(|since| time.saturating_sub(since.elapsed()))
    }

    fn event(&mut self, event: ServerEvent) -> Result<(), TermEnd> {
        match event {
            ServerEvent::Asks(asks) => {
                self.incoming(asks);
                Ok(())
            }
            ServerEvent::Own(asks) => {
                self.own.extend(asks.iter().map(|ask| (ask.id, ask.clone())));
                self.incoming(asks);
                Ok(())
            }
            ServerEvent::Sums(batch, sums) => self.sums(batch, &sums),
            ServerEvent::Slots(reader, slots) => self.slots(reader, slots),
            ServerEvent::Built(home) => Ok(self.scribe.built(home)?),
            ServerEvent::Failed(error) => Err(error.into()),
        }
    }

    fn incoming(&mut self, asks: Vec<SealedAsk>) {
        if !asks.is_empty() {
            self.since.get_or_insert_with(Instant::now);
            self.incoming.extend(asks);
        }
    }

    /// Takes the asks of the next batch. One that does not open is nobody's: the server made it
    /// up, or a device without the passphrase. The server need not keep it.
    fn take(&mut self) -> Result<(), TermEnd> {
        let now = Instant::now();
        self.since = None;
        let mut nobodys = Vec::new();
        for ask in self.incoming.drain(..) {
            let id = ask.id;
            let record = convert::ask_record(ask);
            match self.scribe.take(&record) {
                Ok(_) => drop(self.seen.insert(record.session, now)),
                Err(EngineError::State(_)) => nobodys.push(SealedAnswer { id, sealed: Vec::new() }),
                Err(error) => return Err(error.into()),
            }
        }
        if !nobodys.is_empty() {
            self.inner.share.refuse(self.term, &nobodys)?;
        }
        Ok(())
    }

    /// Ends sessions whose clients are gone, and forgets what is not needed.
    fn sweep(&mut self) {
        let now = Instant::now();
        if now - self.swept < SILENCE / 12 {
            return;
        }
        self.swept = now;
        // Those that came again after their batch stand in no other one.
        let state = self.inner.state();
        self.own.retain(|id, _| state.is_open(*id));
        drop(state);
        let silent = |last: &Instant| now - *last > SILENCE;
        let gone: Vec<_> = self.seen.iter().filter(|(_, last)| silent(last)).collect();
        let gone: Vec<engine::Session> = gone.into_iter().map(|(session, _)| *session).collect();
        for session in gone {
            self.seen.remove(&session);
            if self.scribe.live_sessions().any(|it| it == session) {
                // Nobody waits for it. If this scribe dies before the second one, the next scribe
                // finds the session alive and does both.
                self.inner.begin(&[crate::presence::leave(session)]);
                self.inner.begin(&[EngineAsk::end_of(session)]);
            }
        }
    }

    /// Does all that can be done now.
    fn duties(&mut self) -> Result<(), TermEnd> {
        loop {
            match self.scribe.duty()? {
                Duty::Wait => return Ok(()),
                Duty::Show(show) => self.show(show)?,
                Duty::Tell(tell) => self.tell(tell)?,
                Duty::Switch(switch) => self.switch(switch)?,
                Duty::Refuse(answers) => {
                    let answers: Vec<_> = answers.into_iter().map(convert::answer).collect();
                    answers.iter().for_each(|answer| drop(self.own.remove(&answer.id)));
                    self.inner.share.refuse(self.term, &answers)?;
                }
                Duty::Turn(turn) => {
                    let spots = spots(&turn.tables, &turn.spots)?;
                    let reader = SlotReader::Merge(turn.home);
                    self.turns.push_back(SlotRead(reader, Number(turn.after), spots));
                }
                Duty::Look(look) => {
                    // Its record is durable: the sums came.
                    let spots = spots(&look.tables, &look.spots)?;
                    let gather = SlotRead(SlotReader::Batch(look.batch), Number(0), spots);
                    send(&self.workers.slots, gather)?;
                }
                Duty::Build(build) => send(&self.workers.puts, PendingPut::Build(build))?,
                Duty::Save(save) => send(&self.workers.puts, PendingPut::Save(save))?,
            }
            let next = self.next;
            while self.turns.front().is_some_and(|turn| turn.1 <= next)
                && let Some(turn) = self.turns.pop_front()
            {
                send(&self.workers.slots, turn)?;
            }
        }
    }

    fn show(&mut self, show: engine::Show) -> Result<(), TermEnd> {
        let fetch = |(session, seq, shown): &(_, _, Vec<_>)| {
            let spots = spots(&show.tables, shown)?;
            Ok(Fetch { ask: convert::ask_id(*session, *seq), spots })
        };
        let fetches: Vec<Fetch> = show.asks.iter().map(fetch).collect::<Result<_, TermEnd>>()?;
        let number = match self.before.shown.remove(&show.intent) {
            Some(number) => number,
            None => {
                self.next.0 += 1;
                Number(self.next.0 - 1)
            }
        };
        let head = Head::of(number.0 + 1, &show.intent);
        let head = head.ok_or(EngineError::State("a record without a tag"))?;
        self.shown.insert(show.batch, (number, head));
        // From here on, a server that goes back to an earlier state is found.
        let noted = self.inner.note(self.durable, true);
        noted.map_err(|error| TermEnd::Failed(Failure::of_memory(&error)))?;
        let own = fetches.iter().filter_map(|fetch| self.own.remove(&fetch.ask)).collect();
        let entry = HistoryEntry::Show(SealedShow { intent: show.intent, own, fetches });
        self.inner.share.append(self.term, number, &entry)?;
        send(&self.workers.sums, Sums(show.batch, number))
    }

    fn sums(&mut self, batch: BatchNumber, sums: &[u8]) -> Result<(), TermEnd> {
        if let Some((_, head)) = self.shown.get(&batch) {
            self.durable = *head;
        }
        let slot_bytes = self.inner.keyed.config().slot_bytes();
        if !sums.len().is_multiple_of(slot_bytes) {
            return Err(EngineError::State("the server gave a part of a slot").into());
        }
        let sums = sums.chunks_exact(slot_bytes).map(<[u8]>::to_vec).collect();
        Ok(self.scribe.shown(batch, sums)?)
    }

    /// Takes slots that were read one by one, and notes those that are damaged.
    fn slots(&mut self, reader: SlotReader, slots: Vec<u8>) -> Result<(), TermEnd> {
        match reader {
            SlotReader::Merge(home) => self.scribe.gathered(home, slots)?,
            SlotReader::Batch(batch) => self.scribe.looked(batch, slots)?,
        }
        let mut state = self.inner.state();
        let left = MOST_DAMAGED.saturating_sub(state.damaged.len());
        state.damaged.extend(self.scribe.take_damaged().into_iter().take(left));
        Ok(())
    }

    /// Appends a record to the history.
    fn append(&mut self, entry: &HistoryEntry) -> Result<(), TermEnd> {
        self.inner.share.append(self.term, self.next, entry)?;
        self.next.0 += 1;
        Ok(())
    }

    fn tell(&mut self, tell: engine::Tell) -> Result<(), TermEnd> {
        let shown = self.shown.remove(&tell.batch);
        let (batch, _) = shown.ok_or(EngineError::State("answers without a batch"))?;
        let session = self.inner.state().session();
        let own = tell.answers.iter().filter(|answer| answer.session == session);
        let own: Vec<_> = own.cloned().collect();
        let answers: Vec<_> = tell.answers.into_iter().map(convert::answer).collect();
        answers.iter().for_each(|answer| drop(self.own.remove(&answer.id)));
        self.append(&HistoryEntry::Tell(SealedTell {
            batch,
            settle: tell.settle,
            notice: tell.notice,
            answers,
        }))?;
        if self.inner.state().take_early(&own, Instant::now())? {
            self.inner.came.notify_all();
        }
        Ok(())
    }

    fn switch(&mut self, switch: engine::Switch) -> Result<(), TermEnd> {
        let replaced = switch.gone.into_iter().map(convert::table).collect();
        let table = convert::table(switch.table);
        self.append(&HistoryEntry::Switch(SealedSwitch { merged: switch.merged, table, replaced }))
    }
}

fn spots(
    tables: &[(oblivio_engine::pyramid::TableHome, engine::TableId)],
    spots: &[oblivio_engine::pyramid::TableSpot],
) -> Result<Vec<oblivio_store::share::ServerSpot>, TermEnd> {
    let spots = convert::spots(tables, spots);
    spots.ok_or_else(|| EngineError::State("a slot of a table that is not named").into())
}

/// Hands a job to a thread. One that has ended has said why.
fn send<T>(to: &std::sync::mpsc::SyncSender<T>, job: T) -> Result<(), TermEnd> {
    let _ = to.send(job);
    Ok(())
}

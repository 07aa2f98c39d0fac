//! A server in memory: it keeps opaque things and records all that it sees.
//!
//! It has no key and knows only what is public: the time table of the levels and their sizes. It
//! trusts clients about nothing else that it can count, so that a client's error shows at once.

use super::delete_log::DeleteLog;
use super::ids::{ClientId, LevelId, OpaqueId, Period, QueryNumber, SegmentNumber, Term};
use super::level::Schedule;
use super::messages::{Deletion, ListId, NamedSlot, Reply, Request, Sealed, Span, Walk};
use super::trace::{Record, View};
use std::collections::{BTreeMap, BTreeSet};

/// A level: its slots in the order of their names, and its filter.
#[derive(Clone, Debug, Default)]
struct Stored {
    slots: Vec<NamedSlot>,
    filter: Vec<Sealed>,
}

impl Stored {
    fn slot(&self, name: OpaqueId) -> Option<&Sealed> {
        let at = self.slots.binary_search_by_key(&name, |(name, _)| *name).ok()?;
        Some(&self.slots[at].1)
    }
}

/// A query whose reply waits for earlier results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    query: QueryNumber,
    /// Whether another client's result stands in its place.
    beaten: bool,
}

/// How the server took a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Handled {
    /// With a reply.
    Now(Reply),
    /// The reply comes when all earlier results are there ([`Server::redeem`]).
    Later(Ticket),
}

/// The server.
#[derive(Clone, Debug)]
pub struct Server {
    schedule: Schedule,
    period: Period,
    queries: Vec<Sealed>,
    results: Vec<Option<Sealed>>,
    /// The results of the period before, for clients that still wait for their reply.
    old_results: Vec<Option<Sealed>>,
    levels: BTreeMap<LevelId, Stored>,
    /// Levels under construction.
    targets: BTreeMap<LevelId, (Term, Stored)>,
    lists: BTreeMap<ListId, Vec<Sealed>>,
    deletions: DeleteLog,
    /// Deletions that named nothing: each shows something about its query.
    missed: u64,
    trace: Vec<Record>,
}

type Outcome = Result<Reply, &'static str>;

impl Server {
    /// An empty server.
    pub fn new(schedule: Schedule) -> Self {
        Self {
            schedule,
            period: Period(0),
            queries: Vec::new(),
            results: Vec::new(),
            old_results: Vec::new(),
            levels: BTreeMap::new(),
            targets: BTreeMap::new(),
            lists: BTreeMap::new(),
            deletions: DeleteLog::default(),
            missed: 0,
            trace: Vec::new(),
        }
    }

    /// All that it saw.
    pub fn trace(&self) -> &[Record] {
        &self.trace
    }

    /// Gives the trace away and begins a new one.
    pub fn take_trace(&mut self) -> Vec<Record> {
        std::mem::take(&mut self.trace)
    }

    /// The current period.
    pub fn period(&self) -> Period {
        self.period
    }

    /// Queries of all periods.
    pub fn queries(&self) -> u64 {
        self.period.0 * self.schedule.log() + self.queries.len() as u64
    }

    /// Queries of this period without a result, oldest first.
    pub fn unfinished(&self) -> Vec<QueryNumber> {
        let first = self.period.0 * self.schedule.log();
        let open = |(at, result): (usize, &Option<Sealed>)| {
            result.is_none().then_some(QueryNumber(first + at as u64))
        };
        self.results.iter().enumerate().filter_map(open).collect()
    }

    /// Whether the period takes another query.
    pub fn has_room(&self) -> bool {
        (self.queries.len() as u64) < self.schedule.log()
    }

    /// Whether the period has all its queries, and all their results.
    pub fn period_is_over(&self) -> bool {
        !self.has_room() && self.results.iter().all(Option::is_some)
    }

    /// Deletions that named nothing.
    pub fn missed_deletions(&self) -> u64 {
        self.missed
    }

    /// Slots of all levels that live and that are being made, lists included.
    pub fn stored_slots(&self) -> u64 {
        let live: usize = self.levels.values().map(|level| level.slots.len()).sum();
        let made: usize = self.targets.values().map(|(_, level)| level.slots.len()).sum();
        let lists = self.lists.iter().filter(|(id, _)| !id.positions);
        (live + made + lists.map(|(_, list)| list.len()).sum::<usize>()) as u64
    }

    /// Takes a request.
    pub fn handle(&mut self, from: ClientId, request: Request) -> Handled {
        let (up, view) = (request.bytes(), View::of(&request));
        let target = if let Request::Claim(target) = request { Some(target) } else { None };
        let handled = match request {
            Request::Finish { query, deletion, result } => self.finish(query, deletion, result),
            request => self.serve(request).map(Handled::Now),
        };
        let handled = handled.unwrap_or_else(|why| Handled::Now(Reply::Refused(why)));
        let view = view.or(match (&handled, target) {
            (Handled::Now(Reply::Log(number, _)), _) => Some(View::Append(*number)),
            (Handled::Now(Reply::Claimed(term)), Some(target)) => Some(View::Claim(target, *term)),
            _ => None,
        });
        let down = if let Handled::Now(reply) = &handled { reply.bytes() } else { 0 };
        self.trace.extend(view.map(|view| Record { from, view, up, down }));
        handled
    }

    fn serve(&mut self, request: Request) -> Outcome {
        if request.query().is_some_and(|query| self.schedule.period(query) < self.period) {
            return Ok(Reply::Late);
        }
        match request {
            Request::Append(entry) => self.append(entry),
            Request::Adopt(query) => self.log(query),
            Request::Walk(walk) => self.walk(walk),
            Request::Finish { .. } => Err("handled above"),
            Request::Claim(target) => Ok(self.claim(target)),
            Request::ReadLevel(level, span) => {
                let level = self.levels.get(&level).ok_or("no such level")?;
                Ok(Reply::Slots(part(&level.slots, span)?.to_vec()))
            }
            Request::ReadList(list, spans) => {
                let list = self.lists.get(&list).ok_or("no such list")?;
                let parts = spans.into_iter().map(|span| part(list, span).map(<[_]>::to_vec));
                let parts: Result<Vec<_>, _> = parts.collect();
                Ok(Reply::Elements(parts?))
            }
            Request::WriteList(list, term, elements) => {
                self.target(list.target, term)?;
                self.lists.entry(list).or_default().extend(elements);
                // A sort reads one pass and writes the next; older ones are done with.
                let stale = |id: &ListId| {
                    id.target == list.target
                        && id.positions == list.positions
                        && id.pass + 1 < list.pass
                };
                self.lists.retain(|id, _| !stale(id));
                Ok(Reply::Done)
            }
            Request::WriteSlots(level, term, slots) => {
                let entries = self.schedule.entries(level);
                let stored = self.target(level, term)?;
                stored.slots.extend(slots);
                if stored.slots.len() as u64 == entries {
                    self.lists.retain(|list, _| list.target != level || list.positions);
                }
                Ok(Reply::Done)
            }
            Request::WriteFilter(level, term, segments) => {
                self.target(level, term)?.filter.extend(segments);
                Ok(Reply::Done)
            }
            Request::ReadLogs(period) => self.logs(period),
            Request::Switch(period) => self.switch(period),
        }
    }

    fn append(&mut self, entry: Sealed) -> Outcome {
        if !self.has_room() {
            return Err("the period is full");
        }
        let number = QueryNumber(self.queries());
        self.queries.push(entry);
        self.results.push(None);
        self.log(number)
    }

    /// The place of a query in the current logs.
    fn place(&self, query: QueryNumber) -> Result<usize, &'static str> {
        let place = self.schedule.place(query);
        let here = self.schedule.period(query) == self.period && place < self.queries.len();
        if here { Ok(place) } else { Err("no query of this period") }
    }

    fn log(&self, query: QueryNumber) -> Outcome {
        let place = self.place(query)?;
        Ok(Reply::Log(query, self.queries[..=place].to_vec()))
    }

    fn note(&mut self, query: QueryNumber, deletion: Option<Deletion>) -> Result<(), &'static str> {
        let same = deletion.is_none_or(|deletion| self.deletions.note(query, deletion));
        if same { Ok(()) } else { Err("another deletion than before") }
    }

    fn walk(&mut self, walk: Walk) -> Outcome {
        self.place(walk.query)?;
        self.note(walk.query, walk.deletion)?;
        let segments = |(level, numbers): &(LevelId, Vec<SegmentNumber>)| {
            let level = self.levels.get(level).ok_or("no such level")?;
            let segment = |number: &SegmentNumber| {
                level.filter.get(number.0 as usize).cloned().ok_or("no such segment")
            };
            numbers.iter().map(segment).collect::<Result<Vec<_>, _>>()
        };
        let item = |(level, name): &(LevelId, OpaqueId)| {
            let level = self.levels.get(level).ok_or("no such level")?;
            Ok(level.slot(*name).cloned())
        };
        let segments: Result<Vec<_>, &str> = walk.segments.iter().map(segments).collect();
        let items: Result<Vec<_>, &str> = walk.items.iter().map(item).collect();
        Ok(Reply::Walked(segments?, items?))
    }

    fn finish(
        &mut self,
        query: QueryNumber,
        deletion: Option<Deletion>,
        result: Sealed,
    ) -> Result<Handled, &'static str> {
        // Of the period before, the server still has the results: a reply may have been lost.
        let late = self.schedule.period(query) < self.period;
        let reply = |ticket| self.results_for(ticket).unwrap_or(Reply::Late);
        if late {
            return Ok(Handled::Now(reply(Ticket { query, beaten: true })));
        }
        let place = self.place(query)?;
        self.note(query, deletion)?;
        let beaten = self.results[place].is_some();
        self.results[place].get_or_insert(result);
        let ticket = Ticket { query, beaten };
        Ok(self.results_for(ticket).map_or(Handled::Later(ticket), Handled::Now))
    }

    fn results_for(&self, ticket: Ticket) -> Option<Reply> {
        let place = self.schedule.place(ticket.query);
        let age = self.period.0.checked_sub(self.schedule.period(ticket.query).0)?;
        let results = [&self.results, &self.old_results].get(age as usize).copied()?;
        let earlier: Option<Vec<Sealed>> = results.get(..place)?.iter().cloned().collect();
        let standing = results.get(place).filter(|_| ticket.beaten).cloned().flatten();
        Some(Reply::Results(earlier?, standing))
    }

    /// The reply that waited, once all earlier results are there.
    pub fn redeem(&mut self, ticket: Ticket) -> Option<Reply> {
        if self.schedule.period(ticket.query).0 + 1 < self.period.0 {
            return Some(Reply::Late);
        }
        let reply = self.results_for(ticket)?;
        // The reply belongs to the query's last record.
        let own = Some(ticket.query);
        let finishes = |view: &View| matches!(view, View::Finish(..)) && view.query() == own;
        if let Some(record) = self.trace.iter_mut().rev().find(|it| finishes(&it.view)) {
            record.down = reply.bytes();
        }
        Some(reply)
    }

    fn claim(&mut self, target: LevelId) -> Reply {
        let older = self.targets.get(&target).map_or(0, |(term, _)| term.0);
        let term = Term(older + 1);
        self.targets.insert(target, (term, Stored::default()));
        self.lists.retain(|list, _| list.target != target);
        Reply::Claimed(term)
    }

    fn target(&mut self, level: LevelId, term: Term) -> Result<&mut Stored, &'static str> {
        let (current, stored) = self.targets.get_mut(&level).ok_or("no such construction")?;
        if *current == term { Ok(stored) } else { Err("the lease is of an older term") }
    }

    fn logs(&self, period: Period) -> Outcome {
        if period != self.period || !self.period_is_over() {
            return Err("the period is not over");
        }
        let results = self.results.iter().flatten().cloned().collect();
        Ok(Reply::Logs(self.queries.clone(), results))
    }

    fn switch(&mut self, next: Period) -> Outcome {
        if next.0 != self.period.0 + 1 || !self.period_is_over() {
            return Err("the period is not over");
        }
        let heights = self.schedule.heights();
        let live: BTreeSet<LevelId> = heights
            .filter_map(|height| self.schedule.live(height, next))
            .flat_map(|live| live.levels())
            .collect();
        let born: Vec<LevelId> =
            live.iter().copied().filter(|level| !self.levels.contains_key(level)).collect();
        let made = |level: &LevelId| {
            let entries = self.schedule.entries(*level);
            self.targets.get(level).is_some_and(|(_, it)| it.slots.len() as u64 == entries)
        };
        if !born.iter().all(made) {
            return Err("a level is not complete");
        }
        self.levels.retain(|level, _| live.contains(level));
        for level in born {
            self.give_birth(level);
        }
        self.period = next;
        self.queries.clear();
        self.old_results = std::mem::take(&mut self.results);
        Ok(Reply::Done)
    }

    /// A level begins to live, without the entries that queries deleted meanwhile.
    fn give_birth(&mut self, level: LevelId) {
        let Some((_, mut stored)) = self.targets.remove(&level) else { return };
        let deleted = self.deletions.take(level);
        let before = stored.slots.len();
        stored.slots.retain(|(name, _)| !deleted.contains(name));
        let gone = (before - stored.slots.len()) as u64;
        self.missed += self.schedule.deletions(level) - gone;
        self.lists.retain(|list, _| list.target != level);
        self.levels.insert(level, stored);
    }
}

fn part<T>(all: &[T], span: Span) -> Result<&[T], &'static str> {
    let (from, count) = (span.from as usize, span.count as usize);
    let end = from.checked_add(count).ok_or("no such part")?;
    all.get(from..end).ok_or("no such part")
}

//! One query as a state machine (§5.2): it yields requests and takes replies.
//!
//! The trips are an append, one for each height and one more, and the result: `log2(n/c) + 4`. A
//! trip asks for the filters of a height, for the items of the height above, whose filters the last
//! trip brought, and for the deletion of the height above that. The filters of all heights at once
//! would save trips, but below the height where it is found an item would show the same positions
//! again at its next query (E6).
//!
//! Every choice comes from the key and the query's number. So any client can finish a query whose
//! client died ([`Query::adopt`]), with the same requests. What the dead client wanted to write
//! died with it: the query then ends as a read. If that client was only slow it gets to know from
//! the result log that its write was not done. A write's answer counts from its result on.
//!
//! A query waits for all earlier results and answers only then (E1): the server sees when a client
//! goes on, and by that for what it waited.

use super::bloom_filter::{BitPosition, SEGMENT_BYTES, Segment};
use super::error::{PaperError, Result};
use super::ids::{FakeNumber, Height, ItemId, LevelId, QueryNumber};
use super::level::{Live, fake_name, item_name};
use super::member::{At, Member};
use super::messages::{Deletion, Reply, Request, Sealed, Walk};
use super::result_log::{Outcome, ResultEntry, open_all, values};
use super::slot::{Block, Slot};
use super::{delete_log, query_log};

/// What a query does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Reads a block.
    Read,
    /// Writes a block.
    Write(Vec<u8>),
    /// Writes a block and returns what it held. Unconditional, as in the paper (E9). In the log it
    /// is a write.
    TestAndSet(Vec<u8>),
}

impl Operation {
    fn content(&self) -> Option<&Vec<u8>> {
        match self {
            Self::Read => None,
            Self::Write(content) | Self::TestAndSet(content) => Some(content),
        }
    }
}

/// What a query found on its way down.
#[derive(Debug)]
enum Found {
    /// Nothing yet.
    No,
    /// An earlier query of the period asks for the same id: its result has the value.
    InLog,
    /// The filter of this level has it.
    In(LevelId, Taken),
}

/// How far the item of a hit has come.
#[derive(Debug)]
enum Taken {
    /// It was not yet read.
    Unread,
    /// Its content.
    Read(Block),
}

/// Where a query is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Append,
    Walk(u32),
    Finish,
    Over,
}

/// A query.
#[derive(Debug)]
pub struct Query {
    stage: Stage,
    /// Its log entry; of an adopted query, once it was read.
    entry: Option<query_log::LogEntry>,
    /// What it does. An adopted query only reads.
    operation: Operation,
    number: Option<QueryNumber>,
    found: Found,
}

/// A query's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its place in the order of all queries.
    pub number: QueryNumber,
    /// The block.
    pub id: ItemId,
    /// What the block held before.
    pub before: Block,
}

impl Query {
    /// A new query.
    ///
    /// # Errors
    /// If a block to write has another length than the volume's.
    pub fn new(member: &mut Member, id: ItemId, operation: Operation) -> Result<Self> {
        let block_bytes = member.config().block_bytes;
        if operation.content().is_some_and(|content| content.len() != block_bytes) {
            return Err(PaperError::Invalid("a block of another length"));
        }
        let writes = operation.content().is_some();
        let (client, sequence) = (member.me(), member.next_sequence());
        let entry = Some(query_log::LogEntry { id, writes, client, sequence });
        Ok(Self { stage: Stage::Append, entry, operation, number: None, found: Found::No })
    }

    /// The query with this number, whose client died.
    pub fn adopt(number: QueryNumber) -> Self {
        let operation = Operation::Read;
        let number = Some(number);
        Self { stage: Stage::Append, entry: None, operation, number, found: Found::No }
    }

    /// Its number, once it has one.
    pub fn number(&self) -> Option<QueryNumber> {
        self.number
    }

    /// The next request; none when the query is over. Asking again repeats it.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn request(&mut self, member: &mut Member) -> Result<Option<Request>> {
        Ok(Some(match self.stage {
            Stage::Append => match (&self.entry, self.number) {
                (_, Some(number)) => Request::Adopt(number),
                (Some(entry), None) => Request::Append(entry.seal(member)?),
                (None, None) => return Err(PaperError::Turn("a query of nobody")),
            },
            Stage::Walk(trip) => Request::Walk(self.walk(member, trip)?),
            Stage::Finish => self.finish(member)?,
            Stage::Over => return Ok(None),
        }))
    }

    /// Takes the reply to the last request; the answer when it was the last.
    ///
    /// # Errors
    /// If the reply does not fit, or another client ended this query. The query is lost then, and
    /// another client may finish it.
    pub fn reply(&mut self, member: &mut Member, reply: Reply) -> Result<Option<Answer>> {
        match (self.stage, reply) {
            (Stage::Append, Reply::Log(number, log)) => {
                self.begin(member, number, &log)?;
                self.stage = Stage::Walk(0);
                Ok(None)
            }
            (Stage::Walk(trip), Reply::Walked(segments, items)) => {
                // Items first: these filters concern the height below them.
                self.take_items(member, trip, items)?;
                self.take_segments(member, trip, segments)?;
                let heights = member.config().schedule.height_count();
                self.stage = if trip < heights { Stage::Walk(trip + 1) } else { Stage::Finish };
                Ok(None)
            }
            (Stage::Finish, Reply::Results(earlier, standing)) => {
                self.stage = Stage::Over;
                self.answer(member, &earlier, standing).map(Some)
            }
            (_, Reply::Late) => Err(PaperError::Overtaken),
            (_, Reply::Refused(why)) => Err(PaperError::Reply(why)),
            _ => Err(PaperError::Reply("to another request")),
        }
    }

    fn begin(&mut self, member: &mut Member, number: QueryNumber, log: &[Sealed]) -> Result<()> {
        let place = member.config().schedule.place(number);
        let (own, collides) = query_log::own_entry(member, log, place)?;
        if self.entry.is_some_and(|entry| entry != own) {
            return Err(PaperError::Reply("the entry is another query's"));
        }
        self.entry = Some(own);
        self.number = Some(number);
        self.found = if collides { Found::InLog } else { Found::No };
        Ok(())
    }

    fn started(&self) -> Result<(ItemId, QueryNumber)> {
        let id = self.entry.map(|entry| entry.id);
        id.zip(self.number).ok_or(PaperError::Turn("a query without a number"))
    }

    /// What lives at a height during this query.
    fn live(&self, member: &Member, height: u32) -> Result<Option<Live>> {
        let schedule = &member.config().schedule;
        let (_, query) = self.started()?;
        let here = (height < schedule.height_count()).then_some(Height(height));
        Ok(here.and_then(|height| schedule.live(height, schedule.period(query))))
    }

    /// The filter positions for a level: the item's until it is found, then a fake's.
    fn positions(&self, member: &Member, level: LevelId, found: bool) -> Result<Vec<BitPosition>> {
        let (id, query) = self.started()?;
        let shape = member.config().filter_of(level);
        Ok(if found {
            shape.of_fake(member.prf(), level, asked(member, level, query))
        } else {
            shape.of_item(member.prf(), level, id)
        })
    }

    fn walk(&self, member: &Member, trip: u32) -> Result<Walk> {
        let (id, query) = self.started()?;
        let mut walk =
            Walk { query, trip, segments: Vec::new(), items: Vec::new(), deletion: None };
        let found = !matches!(self.found, Found::No);
        for level in self.live(member, trip)?.iter().flat_map(Live::levels) {
            let positions = self.positions(member, level, found)?;
            walk.segments.push((level, positions.iter().map(|at| at.segment()).collect()));
        }
        let above = trip.checked_sub(1).map(|height| self.live(member, height)).transpose()?;
        for level in above.flatten().iter().flat_map(Live::levels) {
            let here = matches!(self.found, Found::In(at, _) if at == level);
            let name = if here {
                item_name(member.prf(), level, id)
            } else {
                fake_name(member.prf(), level, asked(member, level, query))
            };
            walk.items.push((level, name));
        }
        if let Some(height) = trip.checked_sub(2) {
            walk.deletion = self.deletion(member, height)?;
        }
        Ok(walk)
    }

    /// The deletion for a height whose items were read.
    fn deletion(&self, member: &Member, height: u32) -> Result<Option<Deletion>> {
        let (id, query) = self.started()?;
        let schedule = &member.config().schedule;
        let Some(live) = self.live(member, height)? else { return Ok(None) };
        let taken = match &self.found {
            Found::In(level, Taken::Read(block)) if level.height.0 == height => {
                let dropped = block.is_none() && level.height == schedule.bottom();
                (!dropped).then_some(id)
            }
            _ => None,
        };
        Ok(Some(delete_log::deletion(member.prf(), schedule, &live, query, taken)))
    }

    /// Opens the item, if one of these slots is it. The fakes need not be opened.
    fn take_items(
        &mut self,
        member: &mut Member,
        trip: u32,
        items: Vec<Option<Sealed>>,
    ) -> Result<()> {
        let (id, _) = self.started()?;
        let above = trip.checked_sub(1).map(|height| self.live(member, height)).transpose()?;
        let levels: Vec<LevelId> = above.flatten().iter().flat_map(Live::levels).collect();
        if items.len() != levels.len() {
            return Err(PaperError::Reply("another number of items"));
        }
        for (level, item) in levels.into_iter().zip(items) {
            let Found::In(at, taken) = &mut self.found else { continue };
            if *at != level {
                continue;
            }
            let sealed = item.ok_or(PaperError::FalsePositive(level))?;
            let name = item_name(member.prf(), level, id);
            match Slot::decode(&member.open_at(At::Slot(level, name), &sealed)?)? {
                Slot::Item(of, block) if of == id => *taken = Taken::Read(block),
                _ => return Err(PaperError::Reply("another item")),
            }
        }
        Ok(())
    }

    /// Looks the item up in the filters of a height, newest level first (E4).
    fn take_segments(
        &mut self,
        member: &mut Member,
        trip: u32,
        segments: Vec<Vec<Sealed>>,
    ) -> Result<()> {
        let live = self.live(member, trip)?;
        let levels: Vec<LevelId> = live.iter().flat_map(Live::levels).collect();
        if segments.len() != levels.len() {
            return Err(PaperError::Reply("another number of filters"));
        }
        for (level, segments) in levels.into_iter().zip(segments) {
            // Once the item is found the segments are a fake's, which tell nothing.
            if matches!(self.found, Found::No) && self.says_yes(member, level, &segments)? {
                self.found = Found::In(level, Taken::Unread);
            }
        }
        Ok(())
    }

    fn says_yes(&self, member: &mut Member, level: LevelId, segments: &[Sealed]) -> Result<bool> {
        let positions = self.positions(member, level, false)?;
        if positions.len() != segments.len() {
            return Err(PaperError::Reply("another number of segments"));
        }
        let mut yes = true;
        for (at, sealed) in positions.into_iter().zip(segments) {
            let bytes = member.open_at(At::Segment(level, at.segment().0), sealed)?;
            let bytes: [u8; SEGMENT_BYTES] =
                bytes.try_into().map_err(|_| PaperError::Reply("a segment of another length"))?;
            yes &= Segment(bytes).has(at.bit());
        }
        Ok(yes)
    }

    fn finish(&self, member: &mut Member) -> Result<Request> {
        let (id, query) = self.started()?;
        let outcome = match (self.operation.content(), &self.found) {
            (Some(content), _) => Outcome::Wrote(Some(content.clone())),
            (None, Found::InLog) => Outcome::Nothing,
            (None, Found::In(_, Taken::Read(block))) => Outcome::Found(block.clone()),
            (None, Found::No) => Outcome::Found(None),
            (None, Found::In(_, Taken::Unread)) => return Err(PaperError::Turn("an unread item")),
        };
        let deletion = self.deletion(member, member.config().schedule.bottom().0)?;
        let result = ResultEntry { id, outcome }.seal(member, query)?;
        Ok(Request::Finish { query, deletion, result })
    }

    fn answer(
        &mut self,
        member: &mut Member,
        earlier: &[Sealed],
        standing: Option<Sealed>,
    ) -> Result<Answer> {
        let (id, number) = self.started()?;
        let schedule = member.config().schedule;
        if earlier.len() != schedule.place(number) {
            return Err(PaperError::Reply("another number of results"));
        }
        let first = QueryNumber(number.0 - earlier.len() as u64);
        let before = match std::mem::replace(&mut self.found, Found::No) {
            Found::InLog => {
                let value = values(open_all(member, first, earlier)?).remove(&id);
                value.ok_or(PaperError::Reply("no earlier result has the value"))?
            }
            Found::In(_, Taken::Read(block)) => block,
            Found::In(_, Taken::Unread) | Found::No => None,
        };
        if let Some(standing) = standing {
            let other = ResultEntry::open(member, number, &standing)?.outcome;
            let written = self.operation.content().cloned();
            if written.is_some() && other != Outcome::Wrote(written) {
                return Err(PaperError::Overtaken);
            }
        }
        Ok(Answer { number, id, before })
    }
}

/// How often a level was asked before this query.
fn asked(member: &Member, level: LevelId, query: QueryNumber) -> FakeNumber {
    member.config().schedule.asked_before(level, query)
}

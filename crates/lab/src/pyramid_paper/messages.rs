//! What clients and the server say to each other: the server's whole view, and its sizes.

use super::ids::{LevelId, OpaqueId, Period, QueryNumber, SegmentNumber, Term};

/// A sealed object.
pub type Sealed = Vec<u8>;

/// A slot of a level: its name, which is shown, and its sealed content.
pub type NamedSlot = (OpaqueId, Sealed);

/// A deletion from a level under construction (E5).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The level that is being made.
    pub target: LevelId,
    /// The entry that it shall not have.
    pub name: OpaqueId,
}

/// One trip of a query through the pyramid: the filters of one height, the items of the height
/// above it, and the deletion for the height above that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Walk {
    /// The query.
    pub query: QueryNumber,
    /// Which trip of its walk, from 0.
    pub trip: u32,
    /// Segments of filters, newest level first.
    pub segments: Vec<(LevelId, Vec<SegmentNumber>)>,
    /// One slot of each live level of a height.
    pub items: Vec<(LevelId, OpaqueId)>,
    /// A deletion.
    pub deletion: Option<Deletion>,
}

/// A list of a level's construction. The passes of a sort read one and write the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ListId {
    /// The level that is being made.
    pub target: LevelId,
    /// Whether it lists filter positions, not slots.
    pub positions: bool,
    /// Which pass wrote it.
    pub pass: u32,
}

/// A part of a list or of a level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// Where it begins.
    pub from: u64,
    /// How many elements.
    pub count: u64,
}

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Request {
    /// Appends to the query log (§5.2, step 4).
    Append(Sealed),
    /// Takes over a query whose client died.
    Adopt(QueryNumber),
    /// A trip through the pyramid (step 5).
    Walk(Walk),
    /// Appends to the result log and reads all earlier results (steps 6 and 7).
    Finish {
        /// The query.
        query: QueryNumber,
        /// The deletion for the bottom.
        deletion: Option<Deletion>,
        /// Its result.
        result: Sealed,
    },
    /// Takes the lease on a construction.
    Claim(LevelId),
    /// Reads slots of a level, in the order of their names.
    ReadLevel(LevelId, Span),
    /// Reads parts of a list.
    ReadList(ListId, Vec<Span>),
    /// Extends a list.
    WriteList(ListId, Term, Vec<Sealed>),
    /// Extends a level's slots.
    WriteSlots(LevelId, Term, Vec<NamedSlot>),
    /// Extends a level's filter.
    WriteFilter(LevelId, Term, Vec<Sealed>),
    /// Reads both logs of a period that is over.
    ReadLogs(Period),
    /// Begins the next period: the targets that are due take the places of their sources.
    Switch(Period),
}

/// A reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reply {
    /// To `Append` and `Adopt`: the query's number, and the log up to it.
    Log(QueryNumber, Vec<Sealed>),
    /// To `Walk`: segments and slots, in the order of the request.
    Walked(Vec<Vec<Sealed>>, Vec<Option<Sealed>>),
    /// To `Finish`: the earlier results, and the query's own if another client was first.
    Results(Vec<Sealed>, Option<Sealed>),
    /// To `Claim`.
    Claimed(Term),
    /// To `ReadLevel`.
    Slots(Vec<NamedSlot>),
    /// To `ReadList`: one list for each span.
    Elements(Vec<Vec<Sealed>>),
    /// To `ReadLogs`: the query log and the result log.
    Logs(Vec<Sealed>, Vec<Sealed>),
    /// To writes and `Switch`.
    Done,
    /// The query's period is over: another client has finished it.
    Late,
    /// The server did not do it, and why.
    Refused(&'static str),
}

const NAME: usize = size_of::<OpaqueId>();
const NUMBER: usize = 8;

fn sum(objects: &[Sealed]) -> usize {
    objects.iter().map(Vec::len).sum()
}

fn named(slots: &[NamedSlot]) -> usize {
    slots.iter().map(|(_, slot)| NAME + slot.len()).sum()
}

impl Request {
    /// Its bytes on the wire, without the frame.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Append(entry) => entry.len(),
            Self::Walk(walk) => {
                let segments: usize = walk.segments.iter().map(|(_, of)| of.len()).sum();
                let names = walk.items.len() + usize::from(walk.deletion.is_some());
                segments * NUMBER + names * NAME
            }
            Self::Finish { deletion, result, .. } => {
                result.len() + if deletion.is_some() { NAME } else { 0 }
            }
            Self::WriteList(_, _, elements) | Self::WriteFilter(_, _, elements) => sum(elements),
            Self::WriteSlots(_, _, slots) => named(slots),
            Self::ReadList(_, spans) => spans.len() * 2 * NUMBER,
            Self::ReadLevel(..) => 2 * NUMBER,
            Self::Adopt(_) | Self::Claim(_) | Self::ReadLogs(_) | Self::Switch(_) => NUMBER,
        }
    }

    /// The query of which it is a trip, once that has a number.
    pub fn query(&self) -> Option<QueryNumber> {
        match self {
            Self::Adopt(query) | Self::Finish { query, .. } => Some(*query),
            Self::Walk(walk) => Some(walk.query),
            _ => None,
        }
    }
}

impl Reply {
    /// Its bytes on the wire, without the frame.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Log(_, entries) => NUMBER + sum(entries),
            Self::Walked(segments, items) => {
                let items: usize = items.iter().flatten().map(Vec::len).sum();
                segments.iter().map(|of| sum(of)).sum::<usize>() + items
            }
            Self::Results(earlier, standing) => {
                sum(earlier) + standing.as_ref().map_or(0, Vec::len)
            }
            Self::Slots(slots) => named(slots),
            Self::Elements(lists) => lists.iter().map(|list| sum(list)).sum(),
            Self::Logs(queries, results) => sum(queries) + sum(results),
            Self::Claimed(_) => NUMBER,
            Self::Done | Self::Late | Self::Refused(_) => 0,
        }
    }
}

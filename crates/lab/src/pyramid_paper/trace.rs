//! What the server sees, as a list of records: the checks of obliviousness read nothing else.

use super::ids::{ClientId, LevelId, Period, QueryNumber, Term};
use super::messages::{Deletion, Request, Walk};

/// What a request shows besides its length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum View {
    /// An entry of the query log, with the number that it got.
    Append(QueryNumber),
    /// A client takes over this query.
    Adopt(QueryNumber),
    /// A trip of a query.
    Walk(Walk),
    /// A result.
    Finish(QueryNumber, Option<Deletion>),
    /// A lease.
    Claim(LevelId, Term),
    /// A read or a write of a construction: which, of what, from where on, how many elements.
    Build(&'static str, LevelId, u64, u64),
    /// The logs of a period are read.
    ReadLogs(Period),
    /// A period begins.
    Switch(Period),
}

/// A request as the server saw it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// Who sent it.
    pub from: ClientId,
    /// What it shows.
    pub view: View,
    /// Bytes from the client.
    pub up: usize,
    /// Bytes to the client.
    pub down: usize,
}

impl View {
    /// The query of which this is a trip.
    pub fn query(&self) -> Option<QueryNumber> {
        match self {
            Self::Append(query) | Self::Adopt(query) | Self::Finish(query, _) => Some(*query),
            Self::Walk(walk) => Some(walk.query),
            _ => None,
        }
    }

    /// The view of a request; `None` if only the reply shows it.
    pub(super) fn of(request: &Request) -> Option<Self> {
        let build = |what, target, from, count| Some(Self::Build(what, target, from, count));
        match request {
            Request::Append(_) | Request::Claim(_) => None,
            Request::Adopt(query) => Some(Self::Adopt(*query)),
            Request::Walk(walk) => Some(Self::Walk(walk.clone())),
            Request::Finish { query, deletion, .. } => Some(Self::Finish(*query, *deletion)),
            Request::ReadLevel(level, span) => build("read level", *level, span.from, span.count),
            Request::ReadList(list, spans) => {
                let count: u64 = spans.iter().map(|span| span.count).sum();
                let from = spans.first().map_or(0, |span| span.from);
                build("read list", list.target, from, count)
            }
            Request::WriteList(list, _, elements) => {
                build("write list", list.target, u64::from(list.pass), elements.len() as u64)
            }
            Request::WriteSlots(level, _, slots) => {
                build("write slots", *level, 0, slots.len() as u64)
            }
            Request::WriteFilter(level, _, segments) => {
                build("write filter", *level, 0, segments.len() as u64)
            }
            Request::ReadLogs(period) => Some(Self::ReadLogs(*period)),
            Request::Switch(period) => Some(Self::Switch(*period)),
        }
    }
}

//! Planted faults: what a client with an error in it would send. They sit on the line between
//! client and server, so that no code that ships has a switch for them.

use oblivio_lab::pyramid_paper::{
    Handled, Height, ItemId, LevelId, Live, Member, QueryNumber, Reply, Request, Sealed,
    SegmentNumber, Server, Walk, fake_name, item_name,
};
use std::collections::BTreeMap;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    None,
    /// The filters of all heights in the first trip (E6).
    AllFilters,
    /// A deletion only when there is something to delete (E5).
    DeletesHitsOnly,
    /// No fake for an item that was already found: its own name again.
    AsksTwice,
    /// The fakes' filter positions lie in the front half only.
    FrontFakes,
    /// After a hit, the walk stops to ask for items.
    StopsAfterHit,
}

/// The line between clients and the server.
pub struct Line {
    fault: Fault,
    /// Segments that came in the first trip.
    early: BTreeMap<QueryNumber, BTreeMap<LevelId, Vec<Sealed>>>,
}

/// What lives at a height during a query.
fn live(member: &Member, query: QueryNumber, height: Height) -> Option<Live> {
    let schedule = &member.config().schedule;
    schedule.live(height, schedule.period(query))
}

fn real_segments(member: &Member, level: LevelId, id: ItemId) -> Vec<SegmentNumber> {
    let shape = member.config().filter_of(level);
    shape.of_item(member.prf(), level, id).iter().map(|at| at.segment()).collect()
}

impl Line {
    pub fn new(fault: Fault) -> Self {
        Self { fault, early: BTreeMap::new() }
    }

    /// Sends a request, with the fault, and brings the reply, as the client expects it.
    pub fn exchange(
        &mut self,
        server: &mut Server,
        member: &Member,
        id: Option<ItemId>,
        mut request: Request,
    ) -> Handled {
        let Some(id) = id else { return server.handle(member.me(), request) };
        match (self.fault, &mut request) {
            (Fault::AllFilters, Request::Walk(walk)) => {
                let (walk, query, height) = (walk.clone(), walk.query, Height(walk.trip));
                return self.all_filters(server, member, id, walk, query, height);
            }
            (Fault::DeletesHitsOnly, Request::Walk(walk)) => {
                let height = walk.trip.checked_sub(2);
                if height.is_some_and(|height| is_fake(member, walk, Height(height))) {
                    walk.deletion = None;
                }
            }
            (Fault::AsksTwice, Request::Walk(walk)) => {
                for (level, name) in &mut walk.items {
                    *name = item_name(member.prf(), *level, id);
                }
            }
            (Fault::FrontFakes, Request::Walk(walk)) => {
                for (level, numbers) in &mut walk.segments {
                    if *numbers != real_segments(member, *level, id) {
                        numbers.iter_mut().for_each(|number| number.0 /= 2);
                    }
                }
            }
            (Fault::StopsAfterHit, Request::Walk(walk)) => {
                let asked = |level| member.config().schedule.asked_before(level, walk.query);
                let fake =
                    |&(level, name): &_| name == fake_name(member.prf(), level, asked(level));
                if walk.items.iter().all(fake) {
                    let count = walk.items.len();
                    walk.items.clear();
                    return with_items(server.handle(member.me(), request), count);
                }
            }
            _ => {}
        }
        server.handle(member.me(), request)
    }

    fn all_filters(
        &mut self,
        server: &mut Server,
        member: &Member,
        id: ItemId,
        mut walk: Walk,
        query: QueryNumber,
        height: Height,
    ) -> Handled {
        let own: Vec<LevelId> = walk.segments.iter().map(|(level, _)| *level).collect();
        walk.segments.clear();
        if height == Height(0) {
            let heights = member.config().schedule.heights();
            let levels = heights.filter_map(|height| live(member, query, height));
            walk.segments = levels
                .flat_map(|live| live.levels())
                .map(|level| (level, real_segments(member, level, id)))
                .collect();
        }
        let asked: Vec<LevelId> = walk.segments.iter().map(|(level, _)| *level).collect();
        match server.handle(member.me(), Request::Walk(walk)) {
            Handled::Now(Reply::Walked(segments, items)) => {
                let early = self.early.entry(query).or_default();
                early.extend(asked.into_iter().zip(segments));
                let segments = own.iter().map(|level| early[level].clone()).collect();
                Handled::Now(Reply::Walked(segments, items))
            }
            other => other,
        }
    }
}

/// Whether a walk's deletion names a fake.
fn is_fake(member: &Member, walk: &Walk, height: Height) -> bool {
    let schedule = &member.config().schedule;
    let Some(live) = live(member, walk.query, height) else { return false };
    let asked = schedule.asked_before(live.fresh, walk.query);
    let fake = fake_name(member.prf(), live.target, schedule.deletion_fake(live.target, asked));
    walk.deletion.is_some_and(|deletion| deletion.name == fake)
}

/// Adds items that were not asked for, as the client counts them.
fn with_items(handled: Handled, count: usize) -> Handled {
    match handled {
        Handled::Now(Reply::Walked(segments, _)) => {
            Handled::Now(Reply::Walked(segments, vec![None; count]))
        }
        other => other,
    }
}

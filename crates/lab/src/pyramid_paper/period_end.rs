//! The end of a period (§5.2, Figure 4): the logs become the top level, and the next period begins.
//!
//! Queries wait meanwhile. The top is small: a client holds it in memory.
//!
//! The paper leaves a rotating log as future work: a second log takes queries while the first
//! becomes the top. It is not here, because reading both logs is not enough. A read that collides
//! with the older log only has no value when it writes its result, yet its id stands in the newer
//! log; a query of the next period, which no longer reads the older one, would look for it there.
//! So a query would have to read the ids of three logs, or to know the older results one trip
//! before it writes its own.

use super::bloom_filter::Segment;
use super::config::PaperConfig;
use super::construct::{seal_segments, seal_slots};
use super::error::{PaperError, Result};
use super::ids::{FakeNumber, Generation, Height, LevelId, Period, QueryNumber, Term};
use super::member::Member;
use super::messages::{Reply, Request, Sealed};
use super::result_log::{open_all, values};
use super::scan::slot_element;
use super::slot::Slot;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    Claim,
    Read,
    WriteSlots,
    WriteFilter,
    Switch,
    Over,
}

/// The end of a period.
#[derive(Debug)]
pub struct PeriodEnd {
    period: Period,
    target: LevelId,
    term: Term,
    stage: Stage,
    slots: Vec<Slot>,
}

impl PeriodEnd {
    /// The end of a period that has all its results.
    pub fn new(period: Period) -> Self {
        // The log of period p is the top while period p + 1 lasts, as generation p + 1.
        let generation = Generation(period.0 + 1);
        let target = LevelId { height: Height(0), generation, star: false };
        Self { period, target, term: Term(0), stage: Stage::Claim, slots: Vec::new() }
    }

    /// The next request; none when the next period has begun.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn request(&mut self, member: &mut Member) -> Result<Option<Request>> {
        Ok(Some(match self.stage {
            Stage::Claim => Request::Claim(self.target),
            Stage::Read => Request::ReadLogs(self.period),
            Stage::WriteSlots => self.write_slots(member)?,
            Stage::WriteFilter => self.write_filter(member)?,
            Stage::Switch => Request::Switch(Period(self.period.0 + 1)),
            Stage::Over => return Ok(None),
        }))
    }

    /// Takes the reply to the last request.
    ///
    /// # Errors
    /// If it does not fit or does not open.
    pub fn reply(&mut self, member: &mut Member, reply: Reply) -> Result<()> {
        self.stage = match (self.stage, reply) {
            (Stage::Claim, Reply::Claimed(term)) => {
                self.term = term;
                Stage::Read
            }
            (Stage::Read, Reply::Logs(_, results)) => {
                self.slots = slots(member, self.period, &results)?;
                Stage::WriteSlots
            }
            (Stage::WriteSlots, Reply::Done) => Stage::WriteFilter,
            (Stage::WriteFilter, Reply::Done) => Stage::Switch,
            (Stage::Switch, Reply::Done) => Stage::Over,
            (_, Reply::Refused(why)) => return Err(PaperError::Reply(why)),
            _ => return Err(PaperError::Reply("to another request")),
        };
        Ok(())
    }

    fn write_slots(&self, member: &mut Member) -> Result<Request> {
        let block_bytes = member.config().block_bytes;
        let element = |slot| slot_element(member.prf(), self.target, slot, block_bytes);
        let mut elements: Vec<_> = self.slots.iter().map(element).collect();
        elements.sort_by_key(|element| element.key);
        let slots = seal_slots(member, self.target, elements)?;
        Ok(Request::WriteSlots(self.target, self.term, slots))
    }

    fn write_filter(&self, member: &mut Member) -> Result<Request> {
        let shape = member.config().filter_of(self.target);
        let mut segments = vec![Segment::EMPTY; shape.segments as usize];
        for slot in &self.slots {
            let Slot::Item(id, _) = slot else { continue };
            for at in shape.of_item(member.prf(), self.target, *id) {
                if let Some(segment) = segments.get_mut(at.segment().0 as usize) {
                    segment.set(at.bit());
                }
            }
        }
        let sealed = seal_segments(member, self.target, 0, &segments)?;
        Ok(Request::WriteFilter(self.target, self.term, sealed))
    }
}

/// The top level: every block of the period once, and fakes.
fn slots(member: &mut Member, period: Period, results: &[Sealed]) -> Result<Vec<Slot>> {
    let config: PaperConfig = *member.config();
    let log = config.schedule.log();
    if results.len() as u64 != log {
        return Err(PaperError::Reply("another number of results"));
    }
    let first = QueryNumber(period.0 * log);
    let values = values(open_all(member, first, results)?);
    let mut slots: Vec<Slot> =
        values.into_iter().map(|(id, block)| Slot::Item(id, block)).collect();
    let fakes = 2 * log - slots.len() as u64;
    slots.extend((0..fakes).map(|number| Slot::Fake(FakeNumber(number))));
    Ok(slots)
}

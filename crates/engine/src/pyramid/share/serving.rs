//! Carrying out transactions, after what they show was read.

use super::answer::{AskRefusal, Outcome};
use super::ask::effect;
use super::groups::Open;
use super::scribe::Scribe;
use crate::Action;
use crate::pyramid::operation::{Effect, Operation};
use crate::pyramid::shown::Shown;
use oblivio_privatefs::{Answer, Compare, Does};
use std::collections::BTreeSet;

impl Scribe {
    /// Carries out the transactions of a batch, in order.
    pub(super) fn serve_batch(&mut self, opens: &[Open], shown: &[Shown]) -> Vec<Outcome> {
        let mut served = Vec::with_capacity(opens.len());
        let asks: Vec<_> = opens.iter().zip(shown).collect();
        let mut rest = &asks[..];
        while let Some((first, _)) = rest.first() {
            let (group, after) = rest.split_at((first.part.of as usize).min(rest.len()));
            served.append(&mut self.serve(group));
            rest = after;
        }
        served
    }

    /// Carries out a transaction. All comparisons see the state before it.
    fn serve(&mut self, group: &[(&Open, &Shown)]) -> Vec<Outcome> {
        for (open, shown) in group {
            self.oram.age(open.ask.name, shown);
        }
        let lost: Vec<bool> = group.iter().map(|(open, _)| self.is_lost_to(open)).collect();
        if lost.contains(&true) {
            let live_blocks = self.oram.live_blocks();
            let answer = Answer { done: false, content: None };
            let refusal = |lost: bool| lost.then_some(AskRefusal::Lost);
            let outcome =
                |lost| Outcome { answer: answer.clone(), refusal: refusal(lost), live_blocks };
            return lost.into_iter().map(outcome).collect();
        }
        let done = group.iter().all(|(open, _)| self.holds(open));
        if done && !self.has_room(group) {
            let live_blocks = self.oram.live_blocks();
            return group.iter().map(|_| Outcome::refused(AskRefusal::Full, live_blocks)).collect();
        }
        group.iter().map(|(open, shown)| self.serve_one(open, shown, done)).collect()
    }

    /// Whether an ask needs the content of its block, which is lost.
    fn is_lost_to(&self, open: &Open) -> bool {
        let compares = matches!(open.ask.compare, Compare::Bytes(..));
        let reads = match &open.ask.does {
            Does::Block(operation) => {
                let whole = matches!(operation.action, Action::Write(_) | Action::Remove);
                operation.and_read || !whole
            }
            Does::Forget | Does::End(_) => false,
        };
        (compares || reads) && self.oram.stash.is_lost(open.ask.name)
    }

    fn holds(&self, open: &Open) -> bool {
        let content = self.oram.stash.content(open.ask.name);
        let exists = content.is_some() || self.oram.stash.is_lost(open.ask.name);
        match &open.ask.compare {
            Compare::Always => true,
            Compare::Absent => !exists,
            Compare::Exists => exists,
            Compare::Bytes(at, bytes) => {
                content.is_some_and(|content| content[*at..].starts_with(bytes))
            }
        }
    }

    /// Whether the blocks that a transaction makes find room in the volume.
    fn has_room(&self, group: &[(&Open, &Shown)]) -> bool {
        let forgets = group.iter().filter(|(open, _)| open.ask.does == Does::Forget).count();
        if !self.oram.may_forget(forgets) {
            return false;
        }
        let made =
            group.iter().map(|(open, _)| open).filter(|open| effect(&open.ask) == Effect::Creates);
        let is_new =
            |name| self.oram.stash.content(name).is_none() && !self.oram.stash.is_lost(name);
        let made = made.filter(|open| is_new(open.ask.name));
        let names: BTreeSet<_> = made.map(|open| open.ask.name).collect();
        // Those that the engine knows without content may be counted as blocks that exist: then
        // there is one less to come.
        names.is_empty()
            || self.oram.live_blocks() + names.len() as u64 <= self.oram.config.blocks()
    }

    fn serve_one(&mut self, Open { ask, .. }: &Open, shown: &Shown, done: bool) -> Outcome {
        let content = match &ask.does {
            Does::Block(operation) if done => self.oram.serve_operation(ask.name, shown, operation),
            Does::Block(operation) if operation.and_read => {
                let read = Operation { action: Action::Read, and_read: false };
                self.oram.serve_operation(ask.name, shown, &read)
            }
            Does::Forget if done => {
                self.oram.serve_forget(ask.name, shown);
                None
            }
            _ => None,
        };
        let live_blocks = self.oram.live_blocks();
        Outcome { answer: Answer { done, content }, refusal: None, live_blocks }
    }
}

//! Which objects there are, and which parts of them a batch or a window must read: all of it
//! follows from the counter of the windows, the leaves shown, and what was asked for before.

use super::names::Name;
use crate::trace::{TraceRule, TraceWindowRule};
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Windows whose buckets a session still has in memory.
const RECENT: u64 = 2;

/// A range to read: the level, the window, its start and its length.
pub(super) type Spot = (u32, u64, u64, u64);

/// The tree in its objects.
#[derive(Clone, Debug, Default)]
pub(super) struct Tree {
    rule: TraceRule,
    of: TraceWindowRule,
    /// From which window on the tree had which depth, and slots in its leaves.
    shapes: Vec<(u64, u32, u32)>,
    /// Windows so far.
    pub done: u64,
    /// The first window of the session under way.
    first: u64,
    /// Sessions, each with its first window.
    spans: Vec<(u64, String)>,
    /// Which session stored a window before those.
    learned: HashMap<u64, String>,
    /// Buckets of the levels in the disk cache that this computer read or wrote.
    known: HashMap<(u32, u64), HashSet<u64>>,
}

/// The bits of a number in reverse.
fn reversed(number: u64, bits: u32) -> u64 {
    (0..bits).fold(0, |out, bit| out << 1 | (number >> bit & 1))
}

impl Tree {
    /// A session begins with this rule.
    pub(super) fn begin(&mut self, rule: &TraceRule, of: &TraceWindowRule, session: &str) {
        self.take(rule, of);
        (self.done, self.first) = (of.windows, of.windows);
        self.shapes.clone_from(&of.shapes);
        // What a lost session stored after its last commit that stands is nobody's.
        self.spans.retain(|(first, _)| *first < self.done);
        self.spans.push((self.done, session.to_owned()));
    }

    /// The size changed.
    pub(super) fn take(&mut self, rule: &TraceRule, of: &TraceWindowRule) {
        self.rule = TraceRule { windows: None, ..rule.clone() };
        self.of = TraceWindowRule { shapes: Vec::new(), ..of.clone() };
    }

    /// Its public numbers.
    pub(super) fn of(&self) -> &TraceWindowRule {
        &self.of
    }

    /// Shapes that are remembered, and the last one.
    pub(super) fn shape(&self) -> (usize, u32, u32) {
        let last = self.shapes.last().copied().unwrap_or_default();
        (self.shapes.len(), last.1, last.2)
    }

    /// Whether the tree is larger than its size class.
    pub(super) fn is_shrinking(&self) -> bool {
        let (_, depth, slots) = self.shape();
        (depth, slots) > (self.rule.floor, self.rule.floor_slots)
            || self.rule.leaf_slots > self.rule.floor_slots
    }

    fn turns(&self) -> u64 {
        1 << self.of.log_turns
    }

    fn period(&self, level: u32) -> u64 {
        1 << level.saturating_sub(self.of.log_turns)
    }

    /// Slots of the buckets of a level that a window wrote; 0 if it wrote none.
    fn slots(&self, level: u32, window: u64) -> u32 {
        let later = self.shapes.partition_point(|shape| shape.0 <= window);
        let Some((_, depth, slots)) = later.checked_sub(1).map(|at| self.shapes[at]) else {
            return 0;
        };
        match level.cmp(&depth) {
            std::cmp::Ordering::Less => self.rule.slots,
            std::cmp::Ordering::Equal => slots,
            std::cmp::Ordering::Greater => 0,
        }
    }

    fn bucket_bytes(&self, slots: u32) -> u64 {
        let missing = u64::from(self.rule.slots.saturating_sub(slots));
        self.rule.bucket_bytes.saturating_sub(missing * self.rule.slot_bytes)
    }

    /// What paths to these leaves read, in order.
    pub(super) fn of_paths(&self, leaves: &[u64], depth: u32) -> Vec<Spot> {
        let mut buckets = BTreeSet::new();
        for leaf in leaves {
            for level in self.of.pool_levels..=depth {
                buckets.insert((level, leaf >> (depth - level)));
            }
        }
        self.reads(&buckets)
    }

    /// What the next window reads, in order.
    pub(super) fn of_window(&self) -> Vec<Spot> {
        let mut buckets = BTreeSet::new();
        for level in self.of.pool_levels..=self.deepest() {
            for turn in self.done * self.turns()..(self.done + 1) * self.turns() {
                let low = turn & ((1 << level) - 1);
                buckets.insert((level, reversed(low, level)));
            }
        }
        self.reads(&buckets)
    }

    fn deepest(&self) -> u32 {
        self.shapes.iter().map(|shape| shape.1).max().unwrap_or(0)
    }

    /// The window that wrote a bucket last, and its place in the object.
    fn spot(&self, level: u32, place: u64) -> Option<(u64, u64)> {
        let turn = reversed(place, level);
        let (index, set) = (turn & (self.turns() - 1), turn >> self.of.log_turns);
        let period = self.period(level);
        Some((self.done.checked_sub(set + 1)? / period * period + set, index))
    }

    fn reads(&self, buckets: &BTreeSet<(u32, u64)>) -> Vec<Spot> {
        let mut objects: BTreeMap<(u32, u64), Vec<u64>> = BTreeMap::new();
        for &(level, place) in buckets {
            let Some((window, index)) = self.spot(level, place) else { continue };
            let recent = window >= self.first && window + RECENT >= self.done;
            let cached = level < self.of.uncached
                && self.known.get(&(level, window)).is_some_and(|it| it.contains(&index));
            if !recent && !cached && self.slots(level, window) > 0 {
                objects.entry((level, window)).or_default().push(index);
            }
        }
        // Levels of the disk cache come first; objects of which all is read come last, as a whole.
        let (mut single, mut whole) = (Vec::new(), Vec::new());
        for ((level, window), indices) in objects {
            let bytes = self.bucket_bytes(self.slots(level, window));
            let turns = self.turns();
            if turns > 1 && indices.len() as u64 == turns {
                whole.push((level, window, 0, bytes * turns));
            } else {
                single.extend(indices.iter().map(|index| (level, window, index * bytes, bytes)));
            }
        }
        single.append(&mut whole);
        single
    }

    /// The fault of a read, if it is not of these ranges in this order.
    pub(super) fn compare(
        &mut self,
        expected: &[Spot],
        read: &[(Name, u64, u64)],
    ) -> Option<String> {
        for (at, (name, offset, len)) in read.iter().enumerate() {
            let Name::Buckets { session, level, window } = name else {
                return Some(format!("{name:?} was read with buckets"));
            };
            let found = (*level, *window, *offset, *len);
            if expected.get(at) != Some(&found) {
                let due = expected.get(at);
                return Some(format!("range {at} is {found:?}, where {due:?} was due"));
            }
            let by = self.session_of(*window).unwrap_or(session).to_owned();
            if by != *session {
                return Some(format!("session {session} did not store window {window}"));
            }
            self.learned.entry(*window).or_insert(by);
        }
        expected.get(read.len()).map(|missing| format!("{missing:?} was not read"))
    }

    fn session_of(&self, window: u64) -> Option<&str> {
        let span = self.spans.iter().rev().find(|span| span.0 <= window);
        span.map(|span| span.1.as_str()).or(self.learned.get(&window).map(String::as_str))
    }

    /// What was read is in the disk cache now.
    pub(super) fn cache(&mut self, read: &[Spot]) {
        for &(level, window, offset, len) in read.iter().filter(|spot| spot.0 < self.of.uncached) {
            let bytes = self.bucket_bytes(self.slots(level, window)).max(1);
            let known = self.known.entry((level, window)).or_default();
            known.extend(offset / bytes..(offset + len) / bytes);
        }
    }

    /// Takes the objects of a window: levels and lengths, in order. Gives what they replace.
    ///
    /// # Errors
    /// What is wrong with them.
    pub(super) fn window(&mut self, wrote: &[(u32, u64)]) -> Result<Vec<(u32, u64)>, String> {
        let full = self.bucket_bytes(self.rule.slots) * self.turns();
        let first = self.of.pool_levels;
        for (&(level, len), due) in wrote.iter().zip(first..) {
            if level != due {
                return Err(format!("level {level} came where level {due} was due"));
            }
            let last = level + 1 == first + wrote.len() as u32;
            let fits = |slots: u32| self.bucket_bytes(slots) * self.turns() == len;
            if !(len == full || last && (1..=self.rule.slots).any(fits)) {
                return Err(format!("an object of level {level} has {len} bytes, not {full}"));
            }
        }
        if let Some(&(level, len)) = wrote.last() {
            let fits = |slots: &u32| self.bucket_bytes(*slots) * self.turns() == len;
            let slots = (1..=self.rule.slots).find(fits).unwrap_or(0);
            let (_, depth, before) = self.shape();
            let same = (level, slots) == (depth, before);
            let due = (level, slots) == (self.rule.floor, self.rule.floor_slots);
            if !same && !due && !self.is_shrinking() {
                return Err(format!(
                    "the last level is {level} with {slots} slots, where {} with {} was due",
                    self.rule.floor, self.rule.floor_slots
                ));
            }
            self.note(level, slots);
        } else if !self.shapes.is_empty() {
            // All of it is in memory again.
            self.note(first.saturating_sub(1), self.rule.slots);
        }
        Ok(self.replace(wrote))
    }

    fn note(&mut self, depth: u32, slots: u32) {
        if self.shapes.last().is_none_or(|last| (last.1, last.2) != (depth, slots)) {
            self.shapes.push((self.done, depth, slots));
        }
        let oldest = self.done.saturating_sub(1 << self.deepest().min(62));
        let void = self.shapes.iter().skip(1).take_while(|shape| shape.0 <= oldest).count();
        self.shapes.drain(..void);
    }

    fn replace(&mut self, wrote: &[(u32, u64)]) -> Vec<(u32, u64)> {
        let window = self.done;
        for &(level, _) in wrote.iter().filter(|(level, _)| *level < self.of.uncached) {
            self.known.insert((level, window), (0..self.turns()).collect());
        }
        let mut gone = Vec::new();
        for level in self.of.pool_levels..=self.deepest() {
            let Some(before) = window.checked_sub(self.period(level)) else { continue };
            self.known.remove(&(level, before));
            if self.slots(level, before) > 0 {
                gone.push((level, before));
            }
        }
        self.done += 1;
        gone
    }

    /// The name of an object that a window stored, as far as it is known who stored it.
    pub(super) fn name(&self, level: u32, window: u64) -> Option<String> {
        let session = self.session_of(window)?;
        Some(format!("b-{session}-{level:02x}-{window:012x}"))
    }
}

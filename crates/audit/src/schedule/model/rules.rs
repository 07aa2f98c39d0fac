//! Rules that a trace names: the first of a session, and changes of it.

use super::Model;
use crate::schedule::lengths::Lengths;
use crate::schedule::stored::Stored;
use crate::trace::{RequestKind, TraceRequest, TraceRule};

/// The most overhead beyond the buckets' own bytes: one part in this many.
const INEXACT: u64 = 16;

impl Model {
    /// Takes the rule of a request; gives its fault, if any.
    pub(super) fn take_rule(&mut self, request: &TraceRequest) -> Option<String> {
        let Some(rule) = &request.rule else { return Some("it names no rule".into()) };
        let odd = match &rule.stored {
            Some(stored) => self.begin(request.depth, rule, stored),
            None if !self.begun => {
                return Some("the first rule does not say what was stored".into());
            }
            None => self.change(rule),
        };
        let after_commit = self.last.replace(RequestKind::Rule) == Some(RequestKind::Commit);
        odd.or_else(|| (request.depth != self.depth).then(|| "it names another depth".into()))
            .or_else(|| if after_commit { self.unlike_before() } else { None })
    }

    /// Begins a session with nothing in memory.
    fn begin(&mut self, depth: u32, rule: &TraceRule, stored: &[(u64, u64)]) -> Option<String> {
        let Some(stored) = Stored::of(stored) else {
            return Some("what it says was stored is no set of buckets".into());
        };
        let Some(lengths) = Lengths::of(rule) else {
            return Some("what it says of the lengths of buckets is no set of them".into());
        };
        *self = Model {
            lengths,
            rule: TraceRule {
                stored: None,
                lacking: Vec::new(),
                places: Vec::new(),
                ..rule.clone()
            },
            depth,
            leaf_slots: rule.leaf_slots,
            swept: rule.swept,
            turns: rule.turn,
            stored,
            begun: true,
            ..Model::default()
        };
        if let Some(log) = &mut self.rule.log {
            self.log.begin(log);
            for (first, count) in std::mem::take(&mut log.changed) {
                let changed = first..first.saturating_add(count).min(log.buckets + 1);
                self.dirty.extend(changed.clone());
                self.loaded.extend(changed);
            }
        }
        (rule.swept > 0 && !self.sweeping()).then(|| "it sweeps a tree that is small enough".into())
    }

    /// Changes the rule: with the size class, or after a commit, when everything is stored.
    fn change(&mut self, rule: &TraceRule) -> Option<String> {
        let kept = self.kept(self.floor());
        let before = std::mem::replace(&mut self.rule, rule.clone());
        let memory = |rule: &TraceRule| (rule.cached, rule.flush_at);
        // If leaves must keep less than before, those that had their turn have too much.
        if self.kept(self.floor()) < kept {
            self.swept = 0;
        }
        (self.depth, self.leaf_slots) = self.shape().max(self.floor());
        if !self.sweeping() {
            (self.swept, self.owed) = (0, 0);
        }
        self.loaded.retain(|&bucket| bucket <= rule.cached);
        let after_commit = self.last == Some(RequestKind::Commit);
        let other_log = self.log.change((&before, &self.rule), self.dirty.is_empty(), after_commit);
        if other_log.is_some() {
            return other_log;
        }
        if rule.blocks < before.blocks {
            return Some("fewer blocks are addressable than before".into());
        }
        if rule.turn != self.turns {
            return Some(format!("{} scheduled paths so far, not {}", self.turns, rule.turn));
        }
        if rule.leaf_slots != self.leaf_slots {
            return Some(format!("leaves of {} slots, not {}", rule.leaf_slots, self.leaf_slots));
        }
        let bucket = |rule: &TraceRule| (rule.slots, rule.bucket_bytes, rule.slot_bytes);
        if bucket(rule) != bucket(&before) {
            return Some("buckets are others than before".into());
        }
        (memory(rule) != memory(&before) && !after_commit)
            .then(|| "what memory holds changed without a commit".into())
    }

    /// Memory follows from sizes, so the same sizes must give the same.
    fn unlike_before(&mut self) -> Option<String> {
        let rule = &self.rule;
        let at = (rule.blocks, self.depth, rule.floor);
        let cached = *self.cached_at.entry(at).or_insert(rule.cached);
        if rule.log.is_some() {
            return (cached != rule.cached)
                .then(|| "what memory holds does not follow from the sizes".into());
        }
        let interval = rule.flush_at.saturating_sub(rule.turn);
        let all = self.stored.count().saturating_mul(rule.bucket_bytes.max(1));
        let bytes = all.saturating_sub(self.lengths.missing(rule));
        let below = self.intervals.range(..=bytes).next_back().map(|(_, &paths)| paths);
        let above = self.intervals.range(bytes..).next().map(|(_, &paths)| paths);
        let before = self.intervals.insert(bytes, interval);
        // Buckets take a little more space than their bytes, some of them more than others.
        let about = |paths: u64| paths.saturating_add(paths / INEXACT);
        let out_of_order = before.is_some_and(|before| before != interval)
            || below.is_some_and(|below| below > about(interval))
            || above.is_some_and(|above| about(above) < interval);
        (cached != rule.cached || out_of_order)
            .then(|| "what memory holds does not follow from the sizes".into())
    }
}

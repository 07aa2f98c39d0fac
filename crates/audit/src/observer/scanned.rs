//! Compares the reads that no statement covers with the order of a scan.

use super::scan::Scan;
use super::{Observer, Window};

impl Observer {
    /// How far the scan is after these reads, if they are a part of one.
    fn scanned(&self, window: &Window) -> Option<Scan> {
        let first = window.reads.first()?;
        let stored = self.model.stored();
        let is = |bucket: u64, (object, offset, _): &(String, u64, u64)| {
            self.places.of(bucket).is_some_and(|(of, at)| of == object && at == offset)
        };
        let from = match self.scan.starts() {
            Some(starts) => starts
                .into_iter()
                .map(|start| stored.partition_point(|&bucket| bucket < start) % stored.len().max(1))
                .find(|&at| stored.get(at).is_some_and(|&bucket| is(bucket, first)))?,
            None => stored.iter().position(|&bucket| is(bucket, first))?,
        };
        let all = stored.iter().cycle().skip(from);
        if !window.reads.iter().zip(all).all(|(read, &bucket)| is(bucket, read)) {
            return None;
        }
        let last = window.calls.last().map_or(0, |call| (from + call) % stored.len());
        let next = (from + window.reads.len()) % stored.len();
        let unfinished = self.scan.at.filter(|(next, _)| stored.first() < Some(next));
        let stopped = match (self.scan.goes_on, from) {
            (true, _) => self.scan.stopped,
            (false, 0) => unfinished.or(self.scan.stopped),
            (false, _) => None,
        };
        Some(Scan { at: Some((stored[next], stored[last])), stopped, goes_on: true })
    }

    /// Whether everything was just read, to its end: then the copies of what is small follow.
    pub(super) fn has_scanned(&self) -> bool {
        let ended =
            |scan: Scan| scan.at.map(|(next, _)| next) == self.model.stored().first().copied();
        self.scanned(&self.window).is_some_and(ended)
    }

    /// Whether the last read call may be a part of a scan.
    pub(super) fn may_scan(&self, window: &Window) -> bool {
        self.scanned(window).is_some()
    }

    /// Checks that unstated reads are a part of everything stored, in order.
    pub(super) fn look_at_scan(&mut self) {
        let window = std::mem::take(&mut self.window);
        if window.reads.is_empty() && window.writes.is_empty() || !self.begun {
            return;
        }
        let scanned = self.scanned(&window).filter(|_| window.writes.is_empty());
        // A broken-off session has not stated its last reads.
        let broken = self.ending && (!self.uncommitted.is_empty() || self.journal.waits());
        let wrong = scanned.is_none() && !broken;
        if let Some(scanned) = scanned {
            self.scan = scanned;
        }
        self.sight.odd.places.look(wrong.then(|| {
            format!(
                "{} reads and {} writes of buckets that it says nothing of",
                window.reads.len(),
                window.writes.len()
            )
        }));
    }
}

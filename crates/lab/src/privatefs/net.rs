//! Virtual time: one line that all share, a disk, and an agenda of what comes when.
//!
//! Nothing here waits. A message takes the line for its bytes and arrives half a round trip later.
//! So a run gives the same numbers on every machine. What is large, merges and constructions, goes
//! in pieces, and what queries send goes between them.

use std::collections::BTreeMap;

/// Bytes a second of the server's line, both ways together: a gigabit, as in the paper (§6.1).
pub const LINE: u64 = 125_000_000;
/// Bytes a second of the paper's disks under many constructions at once. Its best rate, 3.5 queries
/// a second, times the 15.3 MB that a query of its largest volume moves.
pub const DISK_OF_2012: u64 = 53_000_000;
/// Bytes of a piece.
const PIECE: u64 = 64 << 10;
const SECOND: u128 = 1_000_000_000;

/// Nanoseconds since the run began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Time(pub u64);

impl Time {
    /// As seconds.
    pub fn seconds(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Seconds since an earlier time.
    pub fn since(self, earlier: Self) -> f64 {
        (self.0 - earlier.0) as f64 / 1e9
    }
}

/// Between clients and the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// Milliseconds of a round trip.
    pub rtt_ms: u64,
    /// Bytes a second of the line.
    pub line: u64,
    /// Bytes a second of the disk; none if all is in the server's memory.
    pub disk: Option<u64>,
}

impl Setting {
    /// A gigabit line, this far away, and no disk.
    pub fn far(rtt_ms: u64) -> Self {
        Self { rtt_ms, line: LINE, disk: None }
    }

    /// With the paper's disks.
    pub fn on_disk(self) -> Self {
        Self { disk: Some(DISK_OF_2012), ..self }
    }
}

/// No time passes: to fill a volume.
pub const AT_ONCE: Setting = Setting { rtt_ms: 0, line: 1 << 60, disk: None };

/// What goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// What a query waits for.
    Query,
    /// What is made in the background.
    Background,
}

#[derive(Clone, Copy, Debug)]
enum Medium {
    Line,
    Disk,
}

/// What comes at a time.
enum Item<M> {
    Deliver(M),
    /// Bytes that wait for the disk, and then others for the line.
    Moves {
        on: Medium,
        left: u64,
        then_line: u64,
        class: Class,
        message: M,
    },
}

/// The line, the disk and the agenda.
pub struct Net<M> {
    setting: Setting,
    now: Time,
    agenda: BTreeMap<(Time, u64), Item<M>>,
    count: u64,
    line_free: Time,
    disk_free: Time,
    carried: u64,
}

impl<M> Net<M> {
    /// A net where nothing is under way.
    pub fn new(setting: Setting) -> Self {
        let zero = Time::default();
        let agenda = BTreeMap::new();
        Self { setting, now: zero, agenda, count: 0, line_free: zero, disk_free: zero, carried: 0 }
    }

    /// The time.
    pub fn now(&self) -> Time {
        self.now
    }

    /// Bytes that the line took so far.
    pub fn carried(&self) -> u64 {
        self.carried
    }

    /// Sends these bytes; the message comes when the last has arrived.
    pub fn send(&mut self, bytes: u64, class: Class, message: M) {
        self.carried += bytes;
        self.start(Medium::Line, bytes, 0, class, message);
    }

    /// Moves bytes to or from the disk, and then sends `reply` bytes.
    pub fn serve(&mut self, disk: u64, reply: u64, class: Class, message: M) {
        self.carried += reply;
        match self.setting.disk {
            Some(_) => self.start(Medium::Disk, disk, reply, class, message),
            None => self.start(Medium::Line, reply, 0, class, message),
        }
    }

    /// The message comes after this time.
    pub fn wait(&mut self, nanos: u64, message: M) {
        self.put(Time(self.now.0 + nanos), Item::Deliver(message));
    }

    /// The next message; none when nothing is under way.
    pub fn next(&mut self) -> Option<M> {
        loop {
            let ((now, _), item) = self.agenda.pop_first()?;
            self.now = now;
            match item {
                Item::Deliver(message) => return Some(message),
                Item::Moves { on, left, then_line, class, message } => {
                    self.start(on, left, then_line, class, message);
                }
            }
        }
    }

    fn put(&mut self, at: Time, item: Item<M>) {
        self.count += 1;
        self.agenda.insert((at, self.count), item);
    }

    fn start(&mut self, on: Medium, bytes: u64, then_line: u64, class: Class, message: M) {
        let part = if class == Class::Background { bytes.min(PIECE) } else { bytes };
        let (rate, free) = match on {
            Medium::Line => (self.setting.line, &mut self.line_free),
            Medium::Disk => (self.setting.disk.unwrap_or(u64::MAX), &mut self.disk_free),
        };
        let nanos = (u128::from(part) * SECOND / u128::from(rate)) as u64;
        *free = Time((*free).max(self.now).0 + nanos);
        let end = *free;
        let left = bytes - part;
        if left > 0 {
            return self.put(end, Item::Moves { on, left, then_line, class, message });
        }
        match on {
            Medium::Line => {
                let half = self.setting.rtt_ms * 1_000_000 / 2;
                self.put(Time(end.0 + half), Item::Deliver(message));
            }
            Medium::Disk => {
                let (on, left) = (Medium::Line, then_line);
                self.put(end, Item::Moves { on, left, then_line: 0, class, message });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arrivals(setting: Setting, sends: &[(u64, Class)]) -> Vec<(usize, u64)> {
        let mut net = Net::new(setting);
        for (at, (bytes, class)) in sends.iter().enumerate() {
            net.send(*bytes, *class, at);
        }
        std::iter::from_fn(|| net.next().map(|at| (at, net.now().0 / 1000))).collect()
    }

    #[test]
    fn a_line_is_shared_and_far() {
        let setting = Setting { rtt_ms: 10, line: 1_000_000, disk: None };
        let sends = [(1000, Class::Query), (2000, Class::Query)];
        assert_eq!(arrivals(setting, &sends), [(0, 6000), (1, 8000)]);
    }

    #[test]
    fn queries_overtake_what_is_large() {
        let setting = Setting { rtt_ms: 0, line: 1 << 20, disk: None };
        let sends = [(1 << 20, Class::Background), (1 << 10, Class::Query)];
        let found = arrivals(setting, &sends);
        assert_eq!(found[0].0, 1, "after one piece");
        assert_eq!(found[0].1, 62_500 + 976);
        assert_eq!(found[1].1, 1_000_976, "all bytes were carried");
    }

    #[test]
    fn a_disk_comes_before_the_line() {
        let setting = Setting { rtt_ms: 2, line: 1_000_000, disk: Some(500_000) };
        let mut net = Net::new(setting);
        net.serve(1000, 3000, Class::Query, ());
        net.next();
        assert_eq!(net.now(), Time(6_000_000));
        assert_eq!(net.carried(), 3000);
    }
}

//! Progress of constructions, and the throttle that keeps them level with the queries (§6).
//!
//! A construction moves bytes in tasks whose number and size are public and known before. So its
//! progress is the share of its bytes that were moved, and no rate needs to be guessed: the paper
//! had to measure weights because its server did a part of the work. A query waits while a
//! construction is behind. A construction waits while it is ahead, or its requests would starve
//! those of the queries.

/// How far a construction may be ahead, in percent of its whole.
const AHEAD_PERCENT: u128 = 5;

/// The progress of one construction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meter {
    total: u64,
    done: u64,
}

impl Meter {
    /// A construction that moves this many bytes in all.
    pub fn new(total: u64) -> Self {
        Self { total, done: 0 }
    }

    /// Bytes were moved.
    pub fn add(&mut self, bytes: u64) {
        self.done += bytes;
    }

    /// Bytes moved so far.
    pub fn done(&self) -> u64 {
        self.done
    }

    /// Bytes to move in all.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Whether all is done.
    pub fn is_complete(&self) -> bool {
        self.done >= self.total
    }
}

/// The queries of the life of a construction's sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lifetime {
    /// Queries since the sources began to live.
    pub asked: u64,
    /// Queries of their life.
    pub all: u64,
}

impl Lifetime {
    /// Whether the next query may begin: the construction is at least as far as the queries.
    pub fn query_may_begin(self, meter: &Meter) -> bool {
        let (done, total) = (u128::from(meter.done), u128::from(meter.total));
        done * u128::from(self.all) >= total * u128::from(self.asked)
    }

    /// Whether the construction may go on: it is not more than 5 percent ahead.
    pub fn construction_may_go_on(self, meter: &Meter) -> bool {
        let (done, total) = (u128::from(meter.done), u128::from(meter.total));
        let allowed = total * (u128::from(self.asked) * 100 + u128::from(self.all) * AHEAD_PERCENT);
        done * u128::from(self.all) * 100 <= allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_wait_for_each_other_and_one_of_them_always_may() {
        let mut meter = Meter::new(1000);
        let mut life = Lifetime { asked: 0, all: 10 };
        assert!(life.query_may_begin(&meter), "the first query waits for nothing");
        for _ in 0..=10 {
            while life.construction_may_go_on(&meter) && !meter.is_complete() {
                meter.add(10);
            }
            assert!(life.query_may_begin(&meter));
            let ahead = meter.done() as i64 - life.asked as i64 * 100;
            assert!((0..=60).contains(&ahead), "{ahead}");
            life.asked += 1;
            assert!(meter.is_complete() || !life.query_may_begin(&meter));
        }
        assert!(meter.is_complete());
    }
}

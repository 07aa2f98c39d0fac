//! What follows from the number of writes: the places whose turn it is, and the blocks renewed
//! since they were written.

/// Size of the holding area in multiples of the main area.
pub const HOLDING: u64 = 3;
/// An entry of the map: the block is absent.
pub const ABSENT: u32 = u32::MAX;
/// An entry of the map: the block is in its place in the main area.
pub const MAIN: u32 = u32::MAX - 1;

/// The progress of the two areas.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Blocks of the main area.
    pub blocks: u64,
    /// Writes per write to the main area.
    pub every: u64,
    /// Writes so far.
    pub written: u64,
}

/// `count` numbers from `first` on modulo `all`, as runs: at most two, as `count <= all`.
fn ring(first: u64, count: u64, all: u64) -> [(u64, usize); 2] {
    let (first, count) = (first % all, count.min(all));
    let straight = count.min(all - first);
    [(first, straight as usize), (0, (count - straight) as usize)]
}

impl Clock {
    /// Places of the holding area.
    pub fn holding(&self) -> u64 {
        HOLDING * self.blocks
    }

    /// The clock after `writes` more.
    pub fn after(&self, writes: u64) -> Self {
        Self { written: self.written + writes, ..*self }
    }

    /// Renewals in the main area so far; a block renewed twice counts twice.
    pub fn renewals(&self) -> u64 {
        self.written.div_ceil(self.every)
    }

    /// The blocks of the main area whose turn comes during the next `writes` writes.
    pub fn turns(&self, writes: u64) -> [(u64, usize); 2] {
        let first = self.renewals();
        ring(first, self.after(writes).renewals() - first, self.blocks)
    }

    /// The places of the holding area for the next `writes` writes.
    pub fn places(&self, writes: u64) -> [(u64, usize); 2] {
        ring(self.written, writes, self.holding())
    }

    /// Whether a block whose newest version went to this place of the holding area is in the main
    /// area too by now. The place gives the number of the write only while that write is among the
    /// last that the holding area has room for: a caller that keeps entries longer must ask before
    /// that.
    pub fn settled(&self, id: u64, place: u32) -> bool {
        let (holding, renewals) = (self.holding(), self.renewals());
        if id >= renewals {
            return false;
        }
        let last = self.written - 1;
        let age = (last % holding + holding - u64::from(place)) % holding;
        // Renewal number t is that of block t modulo N, and comes with write number t * every.
        let renewal = id + (renewals - 1 - id) / self.blocks * self.blocks;
        renewal * self.every >= last - age.min(last)
    }

    /// An entry of the map as a place in both areas, the main one before the other.
    pub fn slot(&self, id: u64, entry: u32) -> Option<u64> {
        match entry {
            ABSENT => None,
            MAIN => Some(id),
            place if self.settled(id, place) => Some(id),
            place => Some(self.blocks + u64::from(place)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each block's renewal in turn, write by write, against the formula.
    #[test]
    fn what_was_renewed_is_known_from_the_number_of_writes() {
        for (blocks, every) in [(1, 1), (5, 1), (5, 2), (5, 3), (16, 3)] {
            let mut clock = Clock { blocks, every, written: 0 };
            let mut place = vec![None; blocks as usize];
            for written in 0..20 * blocks {
                let id = (written * written + 7) % blocks;
                place[id as usize] = Some(((written % clock.holding()) as u32, false));
                for (first, count) in clock.turns(1) {
                    for entry in place[first as usize..].iter_mut().take(count).flatten() {
                        entry.1 = true;
                    }
                }
                clock = clock.after(1);
                for (id, entry) in place.iter_mut().enumerate() {
                    if let Some((place, settled)) = *entry {
                        assert_eq!(clock.settled(id as u64, place), settled);
                        // As the map does, long before another block takes the place.
                        if settled {
                            *entry = None;
                        }
                    }
                }
            }
        }
    }
}

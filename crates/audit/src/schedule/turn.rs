//! The position in the schedule of rewritten paths.

/// The schedule's counter, as far as the paths have shown it.
#[derive(Default)]
pub(super) struct Turn {
    value: u64,
    bits: u32,
    known: bool,
}

impl Turn {
    /// Whether `leaf` is the next one, in a tree of this depth.
    pub(super) fn is_next(&mut self, leaf: u64, depth: u32) -> bool {
        let shown = leaf.reverse_bits().checked_shr(64 - depth).unwrap_or(0);
        let common = self.bits.min(depth);
        let right = !self.known || (self.value ^ shown) & mask(common) == 0;
        // A deeper tree shows more of the counter.
        if !self.known || depth > self.bits {
            (self.value, self.bits, self.known) = (shown, depth, true);
        }
        self.value = self.value.wrapping_add(1) & mask(self.bits);
        right
    }
}

fn mask(bits: u32) -> u64 {
    u64::MAX.checked_shr(64 - bits).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_schedule_survives_growth() {
        let mut turn = Turn::default();
        let leaf = |turn: u64, depth: u32| (turn & mask(depth)).reverse_bits() >> (64 - depth);
        for at in 1000..1150 {
            let depth = [4, 6, 5][(at - 1000) as usize / 50];
            assert!(turn.is_next(leaf(at, depth), depth));
        }
        assert!(!turn.is_next(leaf(1, 6), 6));
    }
}

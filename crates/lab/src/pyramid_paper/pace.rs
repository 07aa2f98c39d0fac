//! Fixed paces: how much of a stream must be written after how much of another was read.
//!
//! Oblivious passes read and write at a pace that depends on public numbers only. What must come
//! out waits in a buffer meanwhile. The lag is what the pass reads before it begins to write, so
//! that the buffer is neither empty when something must come out nor ever large.

/// The pace of a pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// Elements read in all.
    pub input: u64,
    /// Elements written in all.
    pub output: u64,
    /// Elements read before the first is written.
    pub lag: u64,
}

impl Pace {
    /// Elements that must be written once `read` elements were read.
    pub fn due(&self, read: u64) -> u64 {
        if read >= self.input {
            return self.output;
        }
        let read = u128::from(read.saturating_sub(self.lag));
        (read * u128::from(self.output) / u128::from(self.input)) as u64
    }
}

/// `lambda * sqrt(count)`, rounded up: the deviation that `count` random choices exceed with
/// probability 2 * exp(-2 * lambda^2), of halves by halves.
pub fn deviation(lambda_squared: u64, count: u64) -> u64 {
    let square = lambda_squared * count;
    let root = square.isqrt();
    root + u64::from(root * root < square)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_is_even_and_complete() {
        let pace = Pace { input: 100, output: 50, lag: 10 };
        let due: Vec<u64> = [0, 10, 12, 50, 99, 100].map(|read| pace.due(read)).to_vec();
        assert_eq!(due, [0, 0, 1, 20, 44, 50]);
        assert_eq!(Pace { input: 0, output: 3, lag: 0 }.due(0), 3);
        let large = Pace { input: 1 << 50, output: 1 << 49, lag: 0 };
        assert_eq!(large.due(1 << 40), 1 << 39);
    }

    #[test]
    fn deviations_are_the_roots() {
        assert_eq!(deviation(23, 1 << 20), 4_911, "4.8 * 1024");
        assert_eq!([deviation(1, 0), deviation(4, 4), deviation(1, 2)], [0, 4, 2]);
    }
}

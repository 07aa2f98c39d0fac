//! Which regions of the disk were ever written, a bit for each. To remove what is in the others
//! costs nothing: a new file system discards the whole disk first.
//!
//! Reads take no notice of it. They ask for each block, so that they do not show what was written.

/// The bits, in one block.
pub struct Regions {
    bits: Vec<u8>,
    /// Blocks of a region.
    blocks: u64,
}

impl Regions {
    /// For a disk of `blocks` blocks, of which nothing was written.
    pub fn new(blocks: u64, block_bytes: usize) -> Self {
        let blocks = blocks.div_ceil(block_bytes as u64 * 8).max(1);
        Self { bits: vec![0; block_bytes], blocks }
    }

    /// As stored.
    pub fn set(&mut self, bits: Vec<u8>) {
        if bits.len() == self.bits.len() {
            self.bits = bits;
        }
    }

    /// To store.
    pub fn bits(&self) -> Vec<u8> {
        self.bits.clone()
    }

    fn place(&self, block: u64) -> (usize, u8) {
        let region = block / self.blocks;
        ((region / 8) as usize, 1 << (region % 8))
    }

    /// Whether anything was written around this block.
    pub fn has(&self, block: u64) -> bool {
        let (byte, bit) = self.place(block);
        self.bits.get(byte).is_some_and(|bits| bits & bit != 0)
    }

    /// Something is written here.
    pub fn note(&mut self, block: u64) {
        let (byte, bit) = self.place(block);
        if let Some(bits) = self.bits.get_mut(byte) {
            *bits |= bit;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_block_has_a_bit_and_shares_it_on_a_large_disk() {
        let mut small = Regions::new(512, 64);
        small.note(511);
        assert!(small.has(511) && !small.has(510));
        let mut large = Regions::new(512 * 10 + 1, 64);
        large.note(11);
        assert!(large.has(21) && large.has(12) && !large.has(10) && !large.has(22));
        large.note(512 * 10);
        let mut again = Regions::new(512 * 10 + 1, 64);
        again.set(large.bits());
        assert!(again.has(512 * 10) && again.has(11));
    }
}

//! The share of the map and of the bits that each part has, by turns.

use super::bitset::BitSet;
use super::frontend::TreeOram;
use super::windows::Windows;
use crate::Result;
use crate::wire::{Reader, Writer};

/// Bytes of the map, and of the bits, that go into the same share.
const CHUNK: usize = 4096;

impl TreeOram {
    /// The chunks of the map and of the bits whose turn it is.
    pub(super) fn write_share(&self, rule: Windows, number: u64, out: &mut Writer<'_>) {
        let kept = rule.kept(self.config.blocks_per_bucket);
        let mine = |chunk: &usize| *chunk as u64 % kept == number % kept;
        let chunks = self.on_chip.chunks(CHUNK).enumerate();
        chunks.filter(|(chunk, _)| mine(chunk)).for_each(|(_, bytes)| out.bytes(bytes));
        let (live, removed) = (&self.tree.marks.live, &self.tree.marks.removed);
        for (words, bits) in [
            (live.to_words(self.size.blocks), self.size.blocks),
            (removed.to_words(self.slot_count()), self.slot_count()),
        ] {
            debug_assert_eq!(words.len() as u64, bits.div_ceil(64), "as the reader expects");
            let chunks = words.chunks(CHUNK / 8).enumerate();
            chunks.filter(|(chunk, _)| mine(chunk)).for_each(|(_, words)| out.words(words));
        }
    }

    pub(super) fn read_share(
        &mut self,
        rule: Windows,
        number: u64,
        input: &mut Reader<'_>,
    ) -> Result<()> {
        let kept = rule.kept(self.config.blocks_per_bucket);
        let mine = |chunk: u64| chunk % kept == number % kept;
        for (chunk, bytes) in (0..).zip(self.on_chip.chunks_mut(CHUNK)) {
            if mine(chunk) {
                bytes.copy_from_slice(input.bytes(bytes.len())?);
            }
        }
        let (blocks, slots) = (self.size.blocks, self.slot_count());
        let marks = &mut self.tree.marks;
        read_words(&mut marks.live, blocks, &mine, input)?;
        read_words(&mut marks.removed, slots, &mine, input)
    }
}

/// Replaces the words of the chunks that are `mine`.
fn read_words<K>(
    set: &mut BitSet<K>,
    bits: u64,
    mine: &dyn Fn(u64) -> bool,
    input: &mut Reader<'_>,
) -> Result<()> {
    let words = CHUNK as u64 / 8;
    for at in (0..bits.div_ceil(64)).filter(|at| mine(at / words)) {
        set.set_word(at, input.u64()?);
    }
    Ok(())
}

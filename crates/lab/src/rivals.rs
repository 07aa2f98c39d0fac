//! The other ORAM libraries, used as their documentation says.

use crate::contender::{Contender, Entry};
use anyhow::{Result, anyhow, bail};
use bytemuck::{Pod, Zeroable};
use oblivio_testkit::SplitMix64;
use oram::{BlockValue, DefaultOram, Oram};
use rand::SeedableRng;
use rand::rngs::StdRng;
use rostl_oram::circuit_oram::CircuitORAM;
use rostl_oram::recursive_oram::RecursivePositionMap;
use rostl_primitives::traits::{_Cmovbase, Cmov};
use rostl_primitives::{cmov_body, cxchg_body, impl_cmov_for_pod};

/// The rivals.
pub fn entries() -> Vec<Entry> {
    let rostl = Entry {
        name: "rostl-oram",
        // Two slots in each of 2n - 1 buckets.
        memory: |blocks, block_bytes| 4 * blocks * (block_bytes as u64 + 16) + blocks * 64,
        make: |blocks, block_bytes| {
            Ok(match block_bytes {
                64 => Box::new(Rostl::<Block64>::new(blocks)),
                4096 => Box::new(Rostl::<Block4096>::new(blocks)),
                _ => bail!("the rivals know blocks of 64 and 4096 bytes"),
            })
        },
    };
    let meta = Entry {
        name: "oram (Meta)",
        // Four slots in each of n buckets.
        memory: |blocks, block_bytes| 4 * blocks * (block_bytes as u64 + 16) + blocks * 64,
        make: |blocks, block_bytes| {
            Ok(match block_bytes {
                64 => Box::new(Meta::<64>::new(blocks)?),
                4096 => Box::new(Meta::<4096>::new(blocks)?),
                _ => bail!("the rivals know blocks of 64 and 4096 bytes"),
            })
        },
    };
    vec![rostl, meta]
}

/// A block of `rostl-oram`.
trait Block: Cmov + Pod {
    fn of(byte: u8) -> Self;
}

macro_rules! block {
    ($name:ident, $bytes:literal) => {
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Pod, Zeroable)]
        struct $name([u8; $bytes]);
        impl_cmov_for_pod!($name);
        impl Default for $name {
            fn default() -> Self {
                Self([0; $bytes])
            }
        }
        impl Block for $name {
            fn of(byte: u8) -> Self {
                Self([byte; $bytes])
            }
        }
    };
}

block!(Block64, 64);
block!(Block4096, 4096);

/// Recursive ORAM: the position map returns the old place and takes the new one.
struct Rostl<V: Block> {
    map: RecursivePositionMap,
    data: CircuitORAM<V>,
    rng: SplitMix64,
    blocks: u64,
}

impl<V: Block + Default + std::fmt::Debug> Rostl<V> {
    fn new(blocks: u64) -> Self {
        let n = blocks as usize;
        let (map, data) = (RecursivePositionMap::new(n), CircuitORAM::new(n));
        Self { map, data, rng: SplitMix64::new(1), blocks }
    }
}

impl<V: Block + Default + std::fmt::Debug> Contender for Rostl<V> {
    fn name(&self) -> String {
        "rostl-oram".into()
    }

    fn serve(&mut self, accesses: &[(u64, bool)], _batch: usize) -> Result<()> {
        for &(id, write) in accesses {
            let to = self.rng.below(self.blocks) as u32;
            let from = self.map.access_position(id as usize, to);
            if write {
                self.data.write_or_insert(from, to, id as usize, V::of(id as u8));
            } else {
                let mut content = V::default();
                self.data.read(from, to, id as usize, &mut content);
                std::hint::black_box(&content);
            }
        }
        Ok(())
    }
}

/// Meta's ORAM.
struct Meta<const B: usize> {
    oram: DefaultOram<BlockValue<B>>,
    rng: StdRng,
}

impl<const B: usize> Meta<B> {
    fn new(blocks: u64) -> Result<Self> {
        let mut rng = StdRng::seed_from_u64(1);
        let oram = DefaultOram::new(blocks, &mut rng).map_err(|error| anyhow!("{error}"))?;
        Ok(Self { oram, rng })
    }
}

impl<const B: usize> Contender for Meta<B> {
    fn name(&self) -> String {
        "oram (Meta)".into()
    }

    fn serve(&mut self, accesses: &[(u64, bool)], _batch: usize) -> Result<()> {
        for &(id, write) in accesses {
            let done = if write {
                self.oram.write(id, BlockValue::new([id as u8; B]), &mut self.rng)
            } else {
                self.oram.read(id, &mut self.rng)
            };
            std::hint::black_box(&done.map_err(|error| anyhow!("{error}"))?);
        }
        Ok(())
    }
}

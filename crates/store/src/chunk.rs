//! A piece of an object in memory.

use memmap2::{Advice, MmapMut};
use std::ops::{Deref, DerefMut};

/// Zeroed bytes. Large ones lie on large pages where the system has them: random accesses to
/// gigabytes of small pages would mostly wait for page tables.
#[derive(Debug)]
pub enum Chunk {
    /// On the heap; may grow.
    Small(Vec<u8>),
    /// Mapped; has its full size.
    Large(MmapMut),
}

impl Chunk {
    /// A small chunk of zeros.
    pub fn small(len: usize) -> Self {
        Self::Small(vec![0; len])
    }

    /// A large chunk of zeros.
    pub fn large(len: usize) -> Self {
        let Ok(map) = MmapMut::map_anon(len) else { return Self::small(len) };
        // Without large pages it is only slower.
        map.advise(Advice::HugePage).ok();
        Self::Large(map)
    }

    /// Makes a small chunk longer; a large one is never asked to.
    pub fn grow(&mut self, len: usize) {
        if let Self::Small(bytes) = self {
            bytes.resize(len, 0);
        }
    }
}

impl Deref for Chunk {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(map) => map,
        }
    }
}

impl DerefMut for Chunk {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Small(bytes) => bytes,
            Self::Large(map) => map,
        }
    }
}

impl Clone for Chunk {
    fn clone(&self) -> Self {
        match self {
            Self::Small(bytes) => Self::Small(bytes.clone()),
            Self::Large(map) => {
                let mut copy = Self::large(map.len());
                copy.copy_from_slice(map);
                copy
            }
        }
    }
}

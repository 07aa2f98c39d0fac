//! Payloads in memory. Stash, bucket cache and PLB hold handles into this pool, so a block moves
//! between them without a copy.

/// A payload in the pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload(u32);

impl Payload {
    /// A handle for places without a block.
    pub const NONE: Payload = Payload(u32::MAX);
}

/// Equal-sized payload buffers, allocated in chunks and reused.
pub struct BlockPool {
    block_bytes: usize,
    per_chunk: usize,
    chunks: Vec<Box<[u8]>>,
    free: Vec<u32>,
}

const CHUNK_BYTES: usize = 1 << 20;

impl BlockPool {
    /// An empty pool of payloads of `block_bytes`.
    pub fn new(block_bytes: usize) -> Self {
        let per_chunk = (CHUNK_BYTES / block_bytes).max(1);
        Self { block_bytes, per_chunk, chunks: Vec::new(), free: Vec::new() }
    }

    /// Bytes that the pool holds, in use or not.
    pub fn bytes(&self) -> usize {
        self.chunks.len() * self.per_chunk * self.block_bytes
    }

    /// A payload with unspecified content; the caller overwrites all of it.
    pub fn allocate(&mut self) -> Payload {
        if self.free.is_empty() {
            let first = (self.chunks.len() * self.per_chunk) as u32;
            self.chunks.push(vec![0; self.per_chunk * self.block_bytes].into_boxed_slice());
            self.free.extend((first..first + self.per_chunk as u32).rev());
        }
        Payload(self.free.pop().expect("a chunk was added when none was free"))
    }

    /// A payload that is a copy of `bytes`, padded with zeros.
    pub fn store(&mut self, bytes: &[u8]) -> Payload {
        let payload = self.allocate();
        let target = self.get_mut(payload);
        target[..bytes.len()].copy_from_slice(bytes);
        target[bytes.len()..].fill(0);
        payload
    }

    /// Returns a payload to the pool.
    pub fn release(&mut self, payload: Payload) {
        self.free.push(payload.0);
    }

    /// The payload's bytes.
    pub fn get(&self, payload: Payload) -> &[u8] {
        let (chunk, at) = self.place(payload);
        &self.chunks[chunk][at..at + self.block_bytes]
    }

    /// The payload's bytes, to change.
    pub fn get_mut(&mut self, payload: Payload) -> &mut [u8] {
        let (chunk, at) = self.place(payload);
        &mut self.chunks[chunk][at..at + self.block_bytes]
    }

    fn place(&self, payload: Payload) -> (usize, usize) {
        let index = payload.0 as usize;
        (index / self.per_chunk, index % self.per_chunk * self.block_bytes)
    }
}

//! What the controller computes with its keys: labels, MACs and pads.

use super::shape::{Block, CHUNK, Tag};
use aes::Aes128;
use aes::cipher::{BlockEncrypt, KeyInit};
use oblivio_engine::Address;
use sha3::{Digest, Sha3_224};

/// Bits of an address that no block has: the first count of a group, and paths for nothing.
const OF_GROUPS: u64 = 1 << 63;
const OF_IDLE: u64 = 1 << 62;

/// Where labels come from. The hardware's are AES-128 (Freecursive section 5.1); a test takes the
/// engine's own.
pub trait Labels {
    /// A block's label at a count.
    fn label(&self, id: Address, count: u64) -> u64;
    /// A number of which the first counts of a group of blocks are the low bits.
    fn first_count(&self, group: Address) -> u64;
    /// The next label of a path for nothing.
    fn idle(&mut self) -> u64;
    /// A request begins.
    fn begin(&mut self) {}
}

/// The keys of a controller.
#[derive(Clone, Copy, Debug)]
pub struct Keys {
    /// Of labels.
    pub label: [u8; 16],
    /// Of MACs.
    pub mac: [u8; 16],
    /// Of pads.
    pub pad: [u8; 16],
}

/// Labels by AES-128 over address and count.
pub struct AesLabels {
    cipher: Aes128,
    idle: u64,
}

impl AesLabels {
    /// Of this key.
    pub fn new(key: &[u8; 16]) -> Self {
        Self { cipher: Aes128::new(key.into()), idle: 0 }
    }

    fn of(&self, address: u64, count: u64) -> u64 {
        let out = encrypt(&self.cipher, address, count);
        u64::from_le_bytes(out[..8].try_into().expect("8 bytes"))
    }
}

impl Labels for AesLabels {
    fn label(&self, id: Address, count: u64) -> u64 {
        self.of(id.0, count)
    }

    fn first_count(&self, group: Address) -> u64 {
        self.of(OF_GROUPS | group.0, 0)
    }

    fn idle(&mut self) -> u64 {
        self.idle += 1;
        self.of(OF_IDLE, self.idle - 1)
    }
}

fn encrypt(cipher: &Aes128, first: u64, second: u64) -> [u8; CHUNK] {
    let mut block = [0; CHUNK];
    block[..8].copy_from_slice(&first.to_le_bytes());
    block[8..].copy_from_slice(&second.to_le_bytes());
    cipher.encrypt_block((&mut block).into());
    block
}

/// Pads of buckets: AES-128 over the bucket's seed and the chunk's number (section 6.4).
pub struct Pads(Aes128);

impl Pads {
    /// Of this key.
    pub fn new(key: &[u8; 16]) -> Self {
        Self(Aes128::new(key.into()))
    }

    /// Encrypts or decrypts a bucket. Its first chunk, with the seed, stays as it is.
    pub fn apply(&self, seed: u64, bucket: &mut [u8]) {
        for (number, chunk) in bucket.chunks_exact_mut(CHUNK).enumerate().skip(1) {
            let pad = encrypt(&self.0, seed, number as u64);
            chunk.iter_mut().zip(pad).for_each(|(byte, pad)| *byte ^= pad);
        }
    }
}

/// The MAC of a block at a count: the first half of SHA3-224 over key, count, address and content
/// (section 6.2).
pub fn mac(key: &[u8; 16], count: u64, id: Address, content: &Block) -> Tag {
    let mut hash = Sha3_224::new_with_prefix(key);
    hash.update(count.to_le_bytes());
    hash.update(id.0.to_le_bytes());
    hash.update(content);
    hash.finalize()[..16].try_into().expect("16 of 28 bytes")
}

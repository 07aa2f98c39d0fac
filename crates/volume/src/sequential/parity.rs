//! The last page of a quantum: parity of all before it. So any one page that is damaged is had from
//! the rest, and the seal says whether it is right.
//!
//! A pad is over the parity. Without it, all pages would add up to zeros, and an observer could
//! tell written quanta from random bytes.

use super::PAGE;
use oblivio_crypto::Prf;

const PAGE_BYTES: usize = PAGE as usize;
/// The domain of the pads among the uses of their PRF.
const PAD: u8 = 1;

/// The parity of the quanta of a volume.
pub struct Parity(Prf);

impl Parity {
    /// With pads of this function.
    pub fn new(pads: Prf) -> Self {
        Self(pads)
    }

    /// What all pages of quantum `number` add up to, beside what they should: zeros if no page is
    /// damaged.
    pub fn difference(&self, number: u64, quantum: &[u8]) -> Vec<u8> {
        let mut sum = vec![0; PAGE_BYTES];
        self.0.fill(PAD, &number.to_le_bytes(), &mut sum);
        quantum.chunks_exact(PAGE_BYTES).for_each(|page| add(&mut sum, page));
        sum
    }

    /// Fills in the last page.
    pub fn close(&self, number: u64, quantum: &mut [u8]) {
        let difference = self.difference(number, quantum);
        repair(quantum, quantum.len() / PAGE_BYTES - 1, &difference);
    }
}

/// Makes a page what it must be if all others are right.
pub fn repair(quantum: &mut [u8], page: usize, difference: &[u8]) {
    add(&mut quantum[page * PAGE_BYTES..][..PAGE_BYTES], difference);
}

fn add(sum: &mut [u8], page: &[u8]) {
    sum.iter_mut().zip(page).for_each(|(sum, byte)| *sum ^= byte);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_page_is_had_from_the_others() {
        let parity = Parity::new(Prf::from_seed(1));
        let mut quantum: Vec<u8> = (0..5 * PAGE_BYTES).map(|at| (at * at / 7) as u8).collect();
        parity.close(7, &mut quantum);
        let is_zero = |bytes: Vec<u8>| bytes.iter().all(|&byte| byte == 0);
        assert!(is_zero(parity.difference(7, &quantum)));
        assert!(!is_zero(parity.difference(8, &quantum)), "each number has a pad of its own");
        for page in 0..5 {
            let mut damaged = quantum.clone();
            damaged[page * PAGE_BYTES..][..PAGE_BYTES].fill(9);
            let difference = parity.difference(7, &damaged);
            repair(&mut damaged, page, &difference);
            assert!(damaged == quantum, "page {page}");
        }
    }
}

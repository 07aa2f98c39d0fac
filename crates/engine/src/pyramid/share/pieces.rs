//! A scribe's state in sealed pieces of one size. A piece is `how many 8 | digest of the whole 32 |
//! bytes`, so pieces of two states do not go together.

use super::public_rules::PIECE_BYTES;
use crate::wire::Reader;
use crate::{EngineError, Result};
use oblivio_crypto::{Kind, Place, Sealer, VolumeId, digest};

fn place(volume: VolumeId, number: u64, piece: u32) -> Place {
    Place { volume, kind: Kind::Checkpoint, index: number, version: u64::from(piece) }
}

/// A state on its way to the server, piece by piece.
pub(super) struct Pieces {
    plain: Vec<u8>,
    digest: [u8; 32],
    next: u32,
}

impl Pieces {
    pub fn new(plain: Vec<u8>) -> Self {
        Self { digest: digest(&plain), plain, next: 0 }
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.plain.len().div_ceil(PIECE_BYTES) as u32
    }

    /// Seals the next piece of the state after this record. There must be one.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn next(
        &mut self,
        sealer: &mut Sealer,
        volume: VolumeId,
        number: u64,
    ) -> Result<(u32, Vec<u8>)> {
        let (piece, at) = (self.next, self.next as usize * PIECE_BYTES);
        let rest = self.plain.get(at..).unwrap_or_default();
        let bytes = &rest[..rest.len().min(PIECE_BYTES)];
        let count = u64::from(self.count()).to_le_bytes();
        let plain = [&count[..], &self.digest, bytes].concat();
        let sealed = sealer.seal_vec(&place(volume, number, piece), &plain)?;
        self.next += 1;
        Ok((piece, sealed))
    }
}

/// Puts the pieces of the state after this record together.
///
/// # Errors
/// `State` if one is missing, changed or of another state.
pub(super) fn together(
    sealer: &mut Sealer,
    volume: VolumeId,
    number: u64,
    pieces: impl IntoIterator<Item = impl AsRef<[u8]>>,
) -> Result<Vec<u8>> {
    let wrong = || EngineError::State("a scribe's state is not whole");
    let (mut whole, mut all) = (Vec::new(), None);
    let mut read = 0;
    for sealed in pieces {
        let plain = sealer.open_vec(&place(volume, number, read), sealed.as_ref());
        let plain = plain.map_err(|_| wrong())?;
        let mut input = Reader(&plain);
        let head = (input.u64()?, input.bytes(32)?.to_vec());
        let last = u64::from(read) + 1 == head.0;
        if *all.get_or_insert_with(|| head.clone()) != head
            || u64::from(read) >= head.0
            || !last && input.0.len() != PIECE_BYTES
            || input.0.len() > PIECE_BYTES
        {
            return Err(wrong());
        }
        whole.extend_from_slice(input.0);
        read += 1;
    }
    let (count, expected) = all.ok_or_else(wrong)?;
    if u64::from(read) != count || digest(&whole)[..] != expected[..] {
        return Err(wrong());
    }
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_crypto::{SealRoot, SeededEntropy};

    const VOLUME: VolumeId = VolumeId([7; 16]);

    fn sealer() -> Sealer {
        Sealer::new(SealRoot::from_seed(1), Box::new(SeededEntropy::new(1)))
    }

    fn sealed(plain: &[u8]) -> Vec<Vec<u8>> {
        let (mut pieces, mut sealer) = (Pieces::new(plain.to_vec()), sealer());
        let mut all = Vec::new();
        for expected in 0..pieces.count() {
            let (piece, sealed) = pieces.next(&mut sealer, VOLUME, 5).expect("sealed");
            assert_eq!(piece, expected);
            all.push(sealed);
        }
        all
    }

    fn opened(number: u64, pieces: &[Vec<u8>]) -> Result<Vec<u8>> {
        together(&mut sealer(), VOLUME, number, pieces.iter().map(Vec::as_slice))
    }

    #[test]
    fn a_state_is_put_together_from_all_of_its_pieces_and_no_others() {
        let whole: Vec<u8> = (0..2 * PIECE_BYTES + 1000).map(|at| at as u8).collect();
        let pieces = sealed(&whole);
        assert_eq!(pieces.len(), 3);
        assert_eq!(opened(5, &pieces).expect("as sealed"), whole);
        assert!(opened(6, &pieces).is_err(), "after another record");
        for at in 0..3 {
            let mut without = pieces.clone();
            without.remove(at);
            assert!(opened(5, &without).is_err(), "piece {at} is missing");
            let mut swapped = pieces.clone();
            swapped.swap(at, (at + 1) % 3);
            assert!(opened(5, &swapped).is_err(), "piece {at} is moved");
            for byte in [0, 40, pieces[at].len() - 1] {
                let mut changed = pieces.clone();
                changed[at][byte] ^= 1;
                assert!(opened(5, &changed).is_err(), "piece {at} is changed");
            }
        }
        let mut more = pieces.clone();
        more.push(pieces[2].clone());
        assert!(opened(5, &more).is_err(), "one too many");
        let mut other = whole.clone();
        other[0] ^= 1;
        let mut mixed = pieces;
        mixed[0] = sealed(&other).swap_remove(0);
        assert!(opened(5, &mixed).is_err(), "of two states");
        assert!(opened(5, &[]).is_err());
    }
}

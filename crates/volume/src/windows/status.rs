//! Who has a volume, without opening it.

use super::begin::{base_of, session_of};
use super::volume::ENGINE;
use crate::Result;
use crate::engine::{Opening, load};
use crate::options::OpenOptions;
use crate::trust::Trust;
use oblivio_crypto::{Passphrase, digest};
use oblivio_store::Objects;
use std::sync::Arc;

/// The session that has a volume, or had it last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// Its number.
    pub session: u64,
    /// What the owner of its computer calls that; `None` if its claim is gone.
    pub host: Option<String>,
    /// Whether it is this computer's.
    pub own: bool,
    /// Whether it ended by itself: then nobody has the volume.
    pub ended: bool,
    /// Its entries so far.
    pub entries: u64,
    /// Six words that two computers show alike if, and only if, they see the same history.
    pub phrase: String,
}

/// Who has a volume, or had it last; `None` if nobody ever did. Nothing is stored, and nobody is
/// disturbed.
///
/// # Errors
/// `WrongPassphrase`, `Unsupported` for a volume on another engine. `RolledBack` if the store shows
/// an older history than this computer knows, or another one; `Tampered`.
pub fn status(
    store: Arc<dyn Objects>,
    passphrase: &Passphrase,
    mut options: OpenOptions,
) -> Result<Option<SessionStatus>> {
    let (header, master) = load(&*store, &[&ENGINE])?.0.unlock(passphrase)?;
    let mut trust = Trust::take(header.volume(), &mut options)?;
    let lanes = Vec::new();
    let opening = Opening { store, header: &header, master: &master, lanes, options };
    let mut session = session_of(&opening, &trust, false);
    let Some((holder, history)) = session.peek()? else { return Ok(None) };
    base_of(&history, &mut trust, false)?;
    let own = holder.who.as_ref().is_some_and(|who| who.computer == session.was);
    let said = holder.newest.map(|mark| {
        let mut said = header.volume().0.to_vec();
        for part in [mark.session.number, mark.session.random, mark.index] {
            said.extend_from_slice(&part.to_le_bytes());
        }
        said.extend_from_slice(&mark.tag.0);
        phrase(&digest(&said))
    });
    Ok(Some(SessionStatus {
        session: holder.session.number,
        host: holder.who.map(|who| who.host),
        own,
        ended: holder.released,
        entries: holder.newest.map_or(0, |mark| mark.index),
        phrase: said.unwrap_or_default(),
    }))
}

/// The first twelve bytes as six words of five letters, consonants and vowels by turns, so that
/// they can be read out aloud.
fn phrase(bytes: &[u8; 32]) -> String {
    const CONSONANTS: &[u8; 16] = b"bdfghjklmnprstvz";
    const VOWELS: &[u8; 4] = b"aiou";
    let words = bytes[..12].chunks_exact(2).map(|pair| {
        let bits = usize::from(pair[0]) << 8 | usize::from(pair[1]);
        let letters = [
            CONSONANTS[bits >> 12],
            VOWELS[bits >> 10 & 3],
            CONSONANTS[bits >> 6 & 15],
            VOWELS[bits >> 4 & 3],
            CONSONANTS[bits & 15],
        ];
        String::from_utf8_lossy(&letters).into_owned()
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_can_be_said_and_differ_with_each_bit() {
        let zeros = phrase(&[0; 32]);
        assert_eq!(zeros, "babab babab babab babab babab babab");
        for bit in 0..96 {
            let mut bytes = [0; 32];
            bytes[bit / 8] = 1 << (bit % 8);
            assert_ne!(phrase(&bytes), zeros, "bit {bit}");
        }
    }
}

//! The query log of a period (§5.2): which ids its queries asked for, in order.

use super::error::{PaperError, Result};
use super::ids::{ClientId, ITEM_ID_BYTES, ItemId, Sequence};
use super::member::{At, Member};
use super::messages::Sealed;
use oblivio_crypto::SEAL_OVERHEAD;

/// Bytes of a sealed entry.
pub const ENTRY_BYTES: usize = 128;
const PLAIN_BYTES: usize = ENTRY_BYTES - SEAL_OVERHEAD;

/// An entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// The block.
    pub id: ItemId,
    /// Whether the client means to write. What it writes stands in the result log only, so a client
    /// that dies before that has written nothing.
    pub writes: bool,
    /// The client.
    pub client: ClientId,
    /// Its query's number.
    pub sequence: Sequence,
}

impl LogEntry {
    /// Seals it.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal(&self, member: &mut Member) -> Result<Sealed> {
        let mut bytes = [0; PLAIN_BYTES];
        bytes[..ITEM_ID_BYTES].copy_from_slice(&self.id.0);
        bytes[32] = u8::from(self.writes);
        bytes[40..48].copy_from_slice(&self.client.0.to_le_bytes());
        bytes[48..56].copy_from_slice(&self.sequence.0.to_le_bytes());
        member.seal_at(At::Query, &bytes)
    }

    /// Opens one.
    ///
    /// # Errors
    /// If it is none.
    pub fn open(member: &mut Member, sealed: &[u8]) -> Result<Self> {
        let bytes = member.open_at(At::Query, sealed)?;
        let bytes: [u8; PLAIN_BYTES] =
            bytes.try_into().map_err(|_| PaperError::Reply("a log entry has another length"))?;
        let word = |at: usize| {
            let mut word = [0; 8];
            word.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(word)
        };
        let mut id = [0; ITEM_ID_BYTES];
        id.copy_from_slice(&bytes[..ITEM_ID_BYTES]);
        Ok(Self {
            id: ItemId(id),
            writes: bytes[32] == 1,
            client: ClientId(word(40)),
            sequence: Sequence(word(48)),
        })
    }
}

/// A query's own entry, and whether an earlier one of its period asks for the same id.
///
/// # Errors
/// If the log ends before this place, or has an entry that does not open.
pub fn own_entry(member: &mut Member, log: &[Sealed], place: usize) -> Result<(LogEntry, bool)> {
    let [earlier @ .., own] = log else { return Err(PaperError::Reply("an empty log")) };
    if earlier.len() != place {
        return Err(PaperError::Reply("the log has another length than the query's place"));
    }
    let own = LogEntry::open(member, own)?;
    let mut collides = false;
    for entry in earlier {
        collides |= LogEntry::open(member, entry)?.id == own.id;
    }
    Ok((own, collides))
}

//! The result log of a period (§5.2): what its queries found or wrote, in their order.
//!
//! "The last write of a period, or else its first read" (Figure 4) is the value of a block both for
//! a later query of the same period and for the top level that the period becomes.

use super::error::{PaperError, Result};
use super::ids::{ITEM_ID_BYTES, ItemId, QueryNumber};
use super::member::{At, Member};
use super::messages::Sealed;
use super::slot::{Block, SLOT_HEADER};
use std::collections::BTreeMap;

const NOTHING: u8 = 0;
const FOUND: u8 = 1;
const WROTE: u8 = 2;
const PRESENT: u8 = 4;

/// What a query has to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It wrote this.
    Wrote(Block),
    /// It read this.
    Found(Block),
    /// An earlier query of the period has the value; this one asked for fakes only.
    Nothing,
}

/// An entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultEntry {
    /// The block.
    pub id: ItemId,
    /// What its query has to say.
    pub outcome: Outcome,
}

impl ResultEntry {
    /// Seals it as the result of this query; all results have one length.
    ///
    /// # Errors
    /// Those of the sealer.
    pub fn seal(&self, member: &mut Member, query: QueryNumber) -> Result<Sealed> {
        let (kind, block) = match &self.outcome {
            Outcome::Wrote(block) => (WROTE, block.as_deref()),
            Outcome::Found(block) => (FOUND, block.as_deref()),
            Outcome::Nothing => (NOTHING, None),
        };
        let mut bytes = vec![0; SLOT_HEADER + member.config().block_bytes];
        bytes[..ITEM_ID_BYTES].copy_from_slice(&self.id.0);
        bytes[ITEM_ID_BYTES] = kind | if block.is_some() { PRESENT } else { 0 };
        let content = block.unwrap_or_default();
        bytes[SLOT_HEADER..].iter_mut().zip(content).for_each(|(to, from)| *to = *from);
        member.seal_at(At::Result(query), &bytes)
    }

    /// Opens the result of this query.
    ///
    /// # Errors
    /// If it is none.
    pub fn open(member: &mut Member, query: QueryNumber, sealed: &[u8]) -> Result<Self> {
        const WRONG: PaperError = PaperError::Reply("a result does not parse");
        let bytes = member.open_at(At::Result(query), sealed)?;
        let (id, rest) = bytes.split_first_chunk::<ITEM_ID_BYTES>().ok_or(WRONG)?;
        let (kind, block) = rest.split_first_chunk::<8>().ok_or(WRONG)?;
        let block = (kind[0] & PRESENT != 0).then(|| block.to_vec());
        let outcome = match kind[0] & !PRESENT {
            WROTE => Outcome::Wrote(block),
            FOUND => Outcome::Found(block),
            NOTHING => Outcome::Nothing,
            _ => return Err(WRONG),
        };
        Ok(Self { id: ItemId(*id), outcome })
    }
}

/// Opens results that follow each other from `first` on.
///
/// # Errors
/// If one does not open.
pub fn open_all(
    member: &mut Member,
    first: QueryNumber,
    results: &[Sealed],
) -> Result<Vec<ResultEntry>> {
    let numbers = (first.0..).map(QueryNumber);
    numbers.zip(results).map(|(query, sealed)| ResultEntry::open(member, query, sealed)).collect()
}

/// The value of every block after these results: its last write, or else its first read.
pub fn values(results: Vec<ResultEntry>) -> BTreeMap<ItemId, Block> {
    let mut values = BTreeMap::new();
    for ResultEntry { id, outcome } in results {
        match outcome {
            Outcome::Wrote(block) => drop(values.insert(id, block)),
            Outcome::Found(block) => drop(values.entry(id).or_insert(block)),
            Outcome::Nothing => {}
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_write_or_else_the_first_read() {
        let [a, b, c] = [1, 2, 3].map(|byte| ItemId([byte; ITEM_ID_BYTES]));
        let block = |byte| Some(vec![byte]);
        let log = [
            (a, Outcome::Found(block(1))),
            (b, Outcome::Wrote(block(2))),
            (a, Outcome::Nothing),
            (b, Outcome::Nothing),
            (b, Outcome::Wrote(block(3))),
            (c, Outcome::Found(None)),
        ];
        let log = log.map(|(id, outcome)| ResultEntry { id, outcome });
        let expected = BTreeMap::from([(a, block(1)), (b, block(3)), (c, None)]);
        assert_eq!(values(log.to_vec()), expected);
    }
}

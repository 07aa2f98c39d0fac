//! An entry of the history as bytes, on disk and on the line.
//!
//! ```text
//! entry  length of the head 4 | head (postcard): numbers and lengths | what is sealed, in order
//! ```

use super::error::{Result, ShareError};
use super::ids::{AskId, Number, ServerTable};
use super::limits::{MOST_ENTRY_BYTES, MOST_HEAD_BYTES};
use super::records::{
    Fetch, HistoryEntry, SealedAnswer, SealedAsk, SealedShow, SealedSwitch, SealedTell,
};
use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
enum Head {
    Show { intent: u32, own: Vec<(AskId, u32)>, fetches: Vec<Fetch> },
    Tell { batch: Number, settle: u32, notice: u32, answers: Vec<(AskId, u32)> },
    Switch { merged: u32, table: ServerTable, replaced: Vec<ServerTable> },
    Note { sealed: u32 },
}

const BAD: ShareError = ShareError::invalid("not an entry of the history");

fn length(bytes: &[u8]) -> u32 {
    u32::try_from(bytes.len()).unwrap_or(u32::MAX)
}

/// An entry's bytes.
#[must_use]
pub fn encode(entry: &HistoryEntry) -> Vec<u8> {
    let mut body: Vec<&[u8]> = vec![entry.sealed()];
    let head = match entry {
        HistoryEntry::Show(show) => {
            body.extend(show.own.iter().map(|ask| &*ask.sealed));
            let own = show.own.iter().map(|ask| (ask.id, length(&ask.sealed))).collect();
            Head::Show { intent: length(&show.intent), own, fetches: show.fetches.clone() }
        }
        HistoryEntry::Tell(tell) => {
            body.push(&tell.notice);
            body.extend(tell.answers.iter().map(|answer| &*answer.sealed));
            let answers = tell.answers.iter().map(|it| (it.id, length(&it.sealed))).collect();
            let (settle, notice) = (length(&tell.settle), length(&tell.notice));
            Head::Tell { batch: tell.batch, settle, notice, answers }
        }
        HistoryEntry::Switch(switch) => Head::Switch {
            merged: length(&switch.merged),
            table: switch.table,
            replaced: switch.replaced.clone(),
        },
        HistoryEntry::Note(sealed) => Head::Note { sealed: length(sealed) },
    };
    let head = postcard::to_stdvec(&head).unwrap_or_default();
    let body_bytes: usize = body.iter().map(|part| part.len()).sum();
    let mut bytes = Vec::with_capacity(4 + head.len() + body_bytes);
    bytes.extend_from_slice(&length(&head).to_le_bytes());
    bytes.extend_from_slice(&head);
    body.iter().for_each(|part| bytes.extend_from_slice(part));
    bytes
}

/// Reads an entry. All bytes must belong to it.
///
/// # Errors
/// `Invalid` for anything else.
pub fn decode(bytes: &[u8]) -> Result<HistoryEntry> {
    if bytes.len() > MOST_ENTRY_BYTES {
        return Err(BAD);
    }
    let (head, mut body) = split(bytes)?;
    let mut take = |len: u32| {
        let (part, rest) = body.split_at_checked(len as usize).ok_or(BAD)?;
        body = rest;
        Ok::<_, ShareError>(part.to_vec())
    };
    let entry = match head {
        Head::Show { intent, own, fetches } => {
            let intent = take(intent)?;
            let own = own.into_iter().map(|(id, len)| Ok(SealedAsk { id, sealed: take(len)? }));
            HistoryEntry::Show(SealedShow { intent, own: own.collect::<Result<_>>()?, fetches })
        }
        Head::Tell { batch, settle, notice, answers } => {
            let (settle, notice) = (take(settle)?, take(notice)?);
            let answers =
                answers.into_iter().map(|(id, len)| Ok(SealedAnswer { id, sealed: take(len)? }));
            let answers = answers.collect::<Result<_>>()?;
            HistoryEntry::Tell(SealedTell { batch, settle, notice, answers })
        }
        Head::Switch { merged, table, replaced } => {
            HistoryEntry::Switch(SealedSwitch { merged: take(merged)?, table, replaced })
        }
        Head::Note { sealed } => HistoryEntry::Note(take(sealed)?),
    };
    if body.is_empty() { Ok(entry) } else { Err(BAD) }
}

fn split(bytes: &[u8]) -> Result<(Head, &[u8])> {
    let (len, rest) = bytes.split_first_chunk::<4>().ok_or(BAD)?;
    let len = u32::from_le_bytes(*len) as usize;
    if len > MOST_HEAD_BYTES {
        return Err(BAD);
    }
    let (head, body) = rest.split_at_checked(len).ok_or(BAD)?;
    match postcard::take_from_bytes(head) {
        Ok((head, [])) => Ok((head, body)),
        _ => Err(BAD),
    }
}

#[cfg(test)]
mod tests {
    use super::super::ids::{AskNumber, ClientSession, ServerSpot};
    use super::*;

    fn id(seq: u64) -> AskId {
        AskId { session: ClientSession(7 << 40), seq: AskNumber(seq) }
    }

    fn entries() -> Vec<HistoryEntry> {
        let spots = vec![ServerSpot { table: ServerTable(u64::MAX), slot: 3 }];
        let own = vec![
            SealedAsk { id: id(2), sealed: vec![5; 9] },
            SealedAsk { id: id(3), sealed: vec![] },
        ];
        let fetches = vec![Fetch { ask: id(2), spots }, Fetch { ask: id(3), spots: vec![] }];
        let answer = |seq| SealedAnswer { id: id(seq), sealed: vec![seq as u8; 3] };
        let answers = vec![answer(2), answer(3)];
        vec![
            HistoryEntry::Show(SealedShow { intent: vec![1; 100], own, fetches }),
            HistoryEntry::Tell(SealedTell {
                batch: Number(9),
                settle: vec![2; 30],
                notice: vec![6; 7],
                answers,
            }),
            HistoryEntry::Switch(SealedSwitch {
                merged: vec![3],
                table: ServerTable(1),
                replaced: vec![ServerTable(2), ServerTable(3)],
            }),
            HistoryEntry::Note(vec![4; 5]),
        ]
    }

    #[test]
    fn entries_come_back_and_nothing_else_passes() {
        for entry in entries() {
            let bytes = encode(&entry);
            assert_eq!(decode(&bytes).unwrap(), entry);
            for end in 0..bytes.len() {
                assert!(decode(&bytes[..end]).is_err(), "cut at {end}");
            }
            assert!(decode(&[&*bytes, &[0]].concat()).is_err(), "a byte too many");
            for at in 0..bytes.len() {
                let mut changed = bytes.clone();
                changed[at] ^= 0x80;
                if let Ok(other) = decode(&changed) {
                    assert_ne!(other, entry);
                }
            }
        }
    }
}

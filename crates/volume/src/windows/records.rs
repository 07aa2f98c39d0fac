//! Records: entries that a volume makes between checkpoints, and what they say.

use super::state::Commit;
use crate::records::record::{Record, parse_as};
use crate::session::{COMMIT, FIRST_KIND, History};
use crate::trust::{Act, StoredAct};
use crate::{Error, Result};
use zerocopy::FromBytes;

/// What an earlier session left: its records since the last commit.
pub(super) type Left = Vec<Record>;

/// What was recorded since the last commit.
#[derive(Default)]
pub(super) struct Log {
    /// Entries, of all sessions, and the bytes of this session's.
    pub records: u64,
    pub bytes: u64,
    /// Batches whose intents are not known to be stored.
    pub unsettled: u64,
    /// Intents that no entry has yet, and how many there are.
    pub intents: Vec<u8>,
    pub grouped: u64,
}

impl Log {
    /// Before a rest: no batch comes until the checkpoint is a commit. If that never comes to be, a
    /// lost computer's last batches have no intent, as when a group of them was not sent.
    pub fn leave_intents(&mut self) {
        self.intents.clear();
        self.grouped = 0;
    }
}

/// What an entry says: its act, and its records; `None` for one of the session's own.
pub(super) type Said = Option<(Act, Vec<Record>)>;

/// The entries of a history, each with its act and what it says. A checkpoint that does not stand
/// is an act too; an entry of the session's own is none.
pub(super) fn parse_records(history: &History) -> Result<Vec<Said>> {
    let broken = || Error::Tampered("a record does not parse".into());
    let records = history.records.iter().map(|(_, kind, payload)| match kind {
        &COMMIT => Ok(Some((Commit::parse(payload)?.table.newest(), Vec::new()))),
        FIRST_KIND.. => parse(kind - FIRST_KIND, payload).map(Some).ok_or_else(broken),
        _ => Ok(None),
    });
    records.collect()
}

/// Parses a record: its act, and what it says. One of intents has several.
fn parse(kind: u64, payload: &[u8]) -> Option<(Act, Vec<Record>)> {
    let (act, mut rest) = StoredAct::ref_from_prefix(payload).ok()?;
    let mut records = Vec::new();
    while records.is_empty() || !rest.is_empty() {
        let record = parse_as(kind, rest)?;
        rest = match &record {
            Record::Intent(intent) => rest.get(8 * (intent.ids.len() + 2)..)?,
            _ => &[],
        };
        records.push(record);
    }
    Some((act.get(), records))
}

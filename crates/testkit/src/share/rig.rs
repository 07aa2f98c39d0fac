//! What suites and load generators say to a shared volume.

use crate::Dice;
use oblivio_store::share::{
    AskId, AskNumber, ClientSession, Fetch, HistoryEntry, Number, Object, Result, ScribeTerm,
    SealedAnswer, SealedAsk, SealedShow, SealedSwitch, SealedTell, ServerSpot, ServerTable, Share,
};

/// Bytes of a slot.
pub const SLOT: usize = 48;

/// A session of the device that this is the share of.
#[must_use]
pub fn session_of(share: &dyn Share, session: u64) -> ClientSession {
    ClientSession::of(share.device(), session)
}

/// The name of an ask of such a session.
#[must_use]
pub fn ask_id(share: &dyn Share, session: u64, seq: u64) -> AskId {
    AskId { session: session_of(share, session), seq: AskNumber(seq) }
}

/// A batch of asks that show these slots each.
#[must_use]
pub fn entry_of_asks(
    intent: &[u8],
    own: Vec<SealedAsk>,
    asks: &[(AskId, Vec<ServerSpot>)],
) -> HistoryEntry {
    let fetch = |(ask, spots): &(AskId, Vec<ServerSpot>)| Fetch { ask: *ask, spots: spots.clone() };
    HistoryEntry::Show(SealedShow {
        intent: intent.to_vec(),
        own,
        fetches: asks.iter().map(fetch).collect(),
    })
}

/// A scribe that knows its term and the next number.
pub struct Rig<'s> {
    /// The volume.
    pub share: &'s dyn Share,
    /// The scribe's term.
    pub term: ScribeTerm,
    /// The number of the next record.
    pub next: Number,
}

impl<'s> Rig<'s> {
    /// Makes the volume, unless somebody did, and becomes its scribe.
    ///
    /// # Errors
    /// The volume's.
    pub fn new(share: &'s dyn Share) -> Result<Self> {
        if share.parameters()?.is_none() {
            share.put_parameters(0, SLOT as u32, b"header")?;
        }
        let status = share.status()?;
        let term = share.claim(status.term)?;
        Ok(Self { share, term, next: share.status()?.next })
    }

    /// Appends a record durably, and returns its number.
    ///
    /// # Errors
    /// The volume's.
    pub fn add(&mut self, entry: &HistoryEntry) -> Result<Number> {
        let number = self.next;
        self.share.append(self.term, number, entry)?;
        self.share.durable(self.term, number)?;
        self.next = Number(number.0 + 1);
        Ok(number)
    }

    /// Shows a batch; its number, and the sums.
    ///
    /// # Errors
    /// The volume's.
    pub fn show(&mut self, asks: &[(AskId, Vec<ServerSpot>)]) -> Result<(Number, Vec<u8>)> {
        let number = self.next;
        let entry = entry_of_asks(&number.0.to_le_bytes(), Vec::new(), asks);
        let sums = self.share.show(self.term, number, &entry)?;
        self.next = Number(number.0 + 1);
        Ok((number, sums))
    }

    /// Answers a batch.
    ///
    /// # Errors
    /// The volume's.
    pub fn tell(&mut self, batch: Number, asks: &[AskId]) -> Result<Number> {
        self.add(&Self::answers(batch, asks))
    }

    /// The answers of a batch: each has its ask's number.
    #[must_use]
    pub fn answers(batch: Number, asks: &[AskId]) -> HistoryEntry {
        let answer = |id: &AskId| SealedAnswer { id: *id, sealed: id.seq.0.to_le_bytes().to_vec() };
        HistoryEntry::Tell(SealedTell {
            batch,
            settle: b"settle".to_vec(),
            notice: b"notice".to_vec(),
            answers: asks.iter().map(answer).collect(),
        })
    }

    /// Stores a table in two pieces, and finishes it.
    ///
    /// # Errors
    /// The volume's.
    pub fn build(&self, table: ServerTable, slots: usize) -> Result<Vec<u8>> {
        let bytes = Dice::new(table.0).bytes(slots * SLOT);
        let (object, half) = (Object::Table(table), bytes.len() / 2);
        self.share.upload(self.term, object, 0, &bytes[..half])?;
        self.share.upload(self.term, object, half as u64, &bytes[half..])?;
        self.share.finish(self.term, object, bytes.len() as u64)?;
        Ok(bytes)
    }

    /// Takes a finished table into use.
    ///
    /// # Errors
    /// The volume's.
    pub fn switch(&mut self, table: ServerTable, replaced: &[ServerTable]) -> Result<Number> {
        let merged = b"merged".to_vec();
        self.add(&HistoryEntry::Switch(SealedSwitch { merged, table, replaced: replaced.to_vec() }))
    }

    /// Stores and names a checkpoint.
    ///
    /// # Errors
    /// The volume's.
    pub fn save(&self, at: Number, keep_from: Number, bytes: &[u8]) -> Result<()> {
        let object = Object::Checkpoint(at);
        self.share.upload(self.term, object, 0, bytes)?;
        self.share.finish(self.term, object, bytes.len() as u64)?;
        self.share.save(self.term, at, keep_from)
    }
}

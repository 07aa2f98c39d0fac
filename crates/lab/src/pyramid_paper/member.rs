//! One holder of the key: what a client needs to seal, open and name. Nothing else is kept outside
//! the server.

use super::config::PaperConfig;
use super::error::Result;
use super::ids::{ClientId, LevelId, OpaqueId, QueryNumber, Sequence};
use super::messages::{ListId, Sealed};
use oblivio_crypto::{Kind, Place, Prf, Sealer};

/// A member of the group that shares the key.
#[derive(Debug)]
pub struct Member {
    config: PaperConfig,
    me: ClientId,
    next: Sequence,
    prf: Prf,
    sealer: Sealer,
}

impl Member {
    /// A member. `prf` and the sealer's root come from the volume's master key; only the sealer's
    /// salts are its own.
    ///
    /// # Errors
    /// Those of [`PaperConfig::check`].
    pub fn new(config: PaperConfig, me: ClientId, prf: Prf, sealer: Sealer) -> Result<Self> {
        config.check()?;
        Ok(Self { config, me, next: Sequence(0), prf, sealer })
    }

    /// The volume's numbers.
    pub fn config(&self) -> &PaperConfig {
        &self.config
    }

    /// The PRF from which all names and all choices come.
    pub fn prf(&self) -> &Prf {
        &self.prf
    }

    /// Who it is.
    pub fn me(&self) -> ClientId {
        self.me
    }

    /// The number of its next query.
    pub(super) fn next_sequence(&mut self) -> Sequence {
        let next = self.next;
        self.next = Sequence(next.0 + 1);
        next
    }

    /// Seals an object of this place.
    pub(super) fn seal_at(&mut self, at: At, plaintext: &[u8]) -> Result<Sealed> {
        Ok(self.sealer.seal_vec(&self.place(at), plaintext)?)
    }

    /// Opens an object of this place.
    pub(super) fn open_at(&mut self, at: At, sealed: &[u8]) -> Result<Vec<u8>> {
        Ok(self.sealer.open_vec(&self.place(at), sealed)?)
    }

    fn place(&self, at: At) -> Place {
        let (kind, index, version) = at.parts();
        Place { volume: self.config.volume, kind, index, version }
    }
}

/// The place of a sealed object, which it is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) enum At {
    /// An entry of a query log. The server gives the entry its number only afterwards, so the seal
    /// cannot bind it; against an active server, the hash tree of §5.5 must.
    Query,
    /// An entry of a result log.
    Result(QueryNumber),
    /// A slot.
    Slot(LevelId, OpaqueId),
    /// A segment of a filter.
    Segment(LevelId, u64),
    /// An element of a list.
    Element(ListId, u64),
}

impl At {
    fn parts(self) -> (Kind, u64, u64) {
        match self {
            Self::Query => (Kind::PaperQuery, 0, 0),
            Self::Result(query) => (Kind::PaperResult, query.0, 0),
            Self::Slot(level, OpaqueId(name)) => {
                let [a, b, c, d, e, f, g, h, ..] = name;
                let version = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
                (Kind::PaperSlot, level.word(), version)
            }
            Self::Segment(level, number) => (Kind::PaperSegment, level.word(), number),
            Self::Element(list, position) => {
                let kind =
                    if list.positions { Kind::PaperPositionList } else { Kind::PaperSlotList };
                // A list has fewer than 2^56 elements, and a sort fewer than 256 passes.
                (kind, list.target.word(), u64::from(list.pass) << 56 | position)
            }
        }
    }
}

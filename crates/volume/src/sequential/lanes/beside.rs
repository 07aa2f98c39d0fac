//! What a lane stands beside, and a lane that is made there.

use super::form::LaneForm;
use super::lane::{Inner, Lane, LaneSealers, SharedLane};
use super::places::LanePlaces;
use super::riding::Riding;
use crate::lane::LaneMaster;
use crate::sequential::log_position::LogPosition;
use crate::sequential::reads::DiskReads;
use crate::sequential::shared::Shared;
use oblivio_crypto::{LanePassphrases, Randomness, VolumeId};
use oblivio_engine::sequential::{LaneDisk, Sequential, SequentialKeys};
use oblivio_store::Slots;
use std::sync::Arc;

/// What a lane stands beside.
pub(in crate::sequential) struct Beside<'a> {
    pub form: &'a LaneForm,
    pub volume: VolumeId,
    pub store: &'a Arc<dyn Slots>,
    pub reads: &'a DiskReads,
    pub randomness: &'a Randomness,
    /// The number of the volume's newest state.
    pub number: u64,
    /// Where its log ends.
    pub end: u64,
    /// The quanta below this were durable, as far as anybody knows.
    pub durable: u64,
}

impl Beside<'_> {
    pub(super) fn shared(&self, lane: u8, engine: Sequential, disk: LaneDisk) -> Shared {
        let object = self.form.parameters.objects()[usize::from(lane)].disk;
        let places = Some(LanePlaces::new(object, disk));
        Shared::new(Arc::clone(self.store), self.reads.clone(), engine, places)
    }

    pub(super) fn keys(&self, master: &LaneMaster) -> SequentialKeys {
        SequentialKeys::of_volume(&master.master, self.volume, self.randomness)
    }

    /// An empty lane, which these passphrases open from the next state on. Whatever the lane held
    /// is lost then.
    pub fn made(&self, master: LaneMaster, passphrases: LanePassphrases) -> SharedLane {
        let engine = self.form.layout.engine(self.keys(&master));
        let shared = self.shared(master.lane, engine, LaneDisk::new(self.form.layout.clone()));
        let next = LogPosition { number: self.end, ..LogPosition::default() };
        let inner = Inner {
            riding: Riding::default(),
            keys: LaneSealers::of(master, self.volume, self.randomness),
            passphrases,
            next,
            durable: next.number,
            synced: 0,
            turns: [next; 2],
            root: Vec::new(),
            times: None,
            named: false,
            ended: false,
        };
        Arc::new(Lane::of(self.form, self.volume, shared, inner))
    }
}

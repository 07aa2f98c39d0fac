//! Records of the journal as acts of this computer. Each is durable, then noted; only then may an
//! answer or a read follow from it.

use crate::Result;
use crate::tree::deferred::Writes;
use crate::tree::volume::TreeVolume;
use oblivio_engine::tree::Intent;
use std::time::Duration;

impl TreeVolume {
    /// Records the intent of the engine's batch.
    pub(crate) fn record_intent(&mut self) -> Result<()> {
        let act = self.trust.act()?;
        self.journal.intent(&*self.store, act, self.engine.intent())?;
        self.note_record()
    }

    /// Begins to record an intent; says whether it is durable, within about `patience`. Before the
    /// batch is served, it must be durable, and [`Self::note_record`] called.
    pub(crate) fn record_intent_soon(
        &mut self,
        intent: &Intent,
        patience: Duration,
    ) -> Result<bool> {
        let act = self.trust.act()?;
        self.journal.intent_soon(&*self.store, act, intent, patience)
    }

    /// Records writes and the root, in the size class of `least` bytes or a larger one.
    pub(crate) fn record_sync(&mut self, writes: &Writes, least: usize) -> Result<()> {
        let before = self.journal.bytes();
        let act = self.trust.act()?;
        self.journal.sync(&*self.store, act, &self.root, writes, least)?;
        self.note_record()?;
        self.report_sync(self.journal.bytes() - before);
        Ok(())
    }

    /// Records a new number of addressable blocks and a new size class.
    pub(crate) fn record_resize(&mut self, blocks: u64, class: u64) -> Result<()> {
        let act = self.trust.act()?;
        self.journal.resize(&*self.store, act, blocks, class)?;
        self.note_record()
    }

    /// Notes the newest record, which is durable.
    pub(crate) fn note_record(&mut self) -> Result<()> {
        let act = self.trust.last_act();
        self.trust.logged(self.journal.mark(), Some(act))
    }
}

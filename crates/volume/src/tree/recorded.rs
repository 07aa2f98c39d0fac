//! Records of the journal as acts of this computer. Each is durable, then noted; only then may an
//! answer or a read follow from it.

use crate::Result;
use crate::tree::deferred::Writes;
use crate::tree::volume::TreeVolume;
use oblivio_engine::tree::Intent;

impl TreeVolume {
    /// Records the intent of a batch or a round of maintenance.
    pub(crate) fn record_intent(&mut self, intent: &Intent) -> Result<()> {
        let act = self.trust.act()?;
        self.journal.intent(&*self.store, act, intent)?;
        self.note_record()
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
    fn note_record(&mut self) -> Result<()> {
        let act = self.trust.last_act();
        self.trust.logged(self.journal.mark(), Some(act))
    }
}

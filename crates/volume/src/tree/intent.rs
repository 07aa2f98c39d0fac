//! A batch announced to the store and not yet carried out.

use oblivio_engine::tree::Intent;

/// The work before any other batch: one of deferred writes, or a sweep.
pub(crate) struct Intended {
    pub intent: Intent,
    /// Whether its intent is durable.
    pub durable: bool,
}

impl Intended {
    pub fn is_sweep(&self) -> bool {
        self.intent.ids.is_empty()
    }
}

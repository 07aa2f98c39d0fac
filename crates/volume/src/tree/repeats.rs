//! Reads of a disk that has bad sectors.
//!
//! A layer below may repeat what fails, until an outage is over. A sector that cannot be read is no
//! outage: there it would repeat for ever. So a read that damage may stop is done without repeats
//! first.

use oblivio_store::{Guard, Hint, Slots, StoreError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Whether the layer below may repeat reads that fail.
#[derive(Clone, Default)]
pub struct Repeats(Arc<AtomicBool>);

impl Repeats {
    /// Tells the store to ask before it repeats a read.
    pub fn tell(&self, store: &dyn Slots) {
        let forbidden = Arc::clone(&self.0);
        store.hint(Hint::BeforeRepeat(&Guard::new(move |_| {
            match forbidden.load(Ordering::Relaxed) {
                true => Err(StoreError::refused("", "the disk cannot read it")),
                false => Ok(()),
            }
        })));
    }

    /// Does `work`, in which each read fails at most once.
    pub fn forbidden<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.store(true, Ordering::Relaxed);
        let done = work();
        self.0.store(false, Ordering::Relaxed);
        done
    }
}

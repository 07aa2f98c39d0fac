//! A disk that may take longer than a caller wants to wait.

use oblivio_store::{Result, Store, pass_on};
use oblivio_testkit::{CrashStore, Dice};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A disk that makes data durable soon only now and then, as the seed says.
pub struct Reluctant {
    disk: Arc<CrashStore>,
    dice: Mutex<Dice>,
}

impl Reluctant {
    pub fn new(disk: Arc<CrashStore>, seed: u64) -> Self {
        Self { disk, dice: Mutex::new(Dice::new(seed)) }
    }
}

impl Store for Reluctant {
    pass_on!(self => self.disk; read write write_durable sync len put truncate allocate discard);
    pass_on!(self => self.disk; free_bytes delete list lock);

    fn write_durable_soon(
        &self,
        object: &str,
        offset: u64,
        data: &[u8],
        patience: Duration,
    ) -> Result<bool> {
        self.disk.write(&[oblivio_store::WriteAt::new(object, offset, data)])?;
        self.sync_soon(&[object], patience)
    }

    fn sync_soon(&self, objects: &[&str], _: Duration) -> Result<bool> {
        let mut dice = self.dice.lock().unwrap_or_else(PoisonError::into_inner);
        let now = dice.below(3) == 0;
        if now { self.disk.sync(objects).map(|()| true) } else { Ok(false) }
    }
}

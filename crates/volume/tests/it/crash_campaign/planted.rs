//! Disks that lose something they call durable: the campaign finds it, and its seed finds it again.

use super::{Campaign, Counts, EACH, Setup, any_campaign};
use oblivio_store::{Layer, Result, Slots, StoreAnswer, StoreCall};
use oblivio_testkit::CrashStore;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// A disk that never makes the objects durable whose names begin so. One commit record or log alone
/// has a second copy.
pub struct Forgetful {
    disk: Arc<CrashStore>,
    object: &'static str,
}

impl Forgetful {
    pub fn new(disk: Arc<CrashStore>, object: &'static str) -> Self {
        Self { disk, object }
    }
}

impl Layer for Forgetful {
    type Below = CrashStore;

    fn below(&self) -> &Self::Below {
        &self.disk
    }

    fn call(&self, call: &mut StoreCall<'_, '_>) -> Result<StoreAnswer> {
        match call {
            StoreCall::WriteDurable(it) => {
                self.disk.write(&[*it])?;
                self.call(&mut StoreCall::Sync(&[it.object]))
            }
            StoreCall::Sync(objects) => {
                let kept: Vec<&str> = objects
                    .iter()
                    .copied()
                    .filter(|object| !object.starts_with(self.object))
                    .collect();
                if kept.is_empty() {
                    Ok(StoreAnswer::Done)
                } else {
                    self.disk.sync(&kept).map(StoreAnswer::from)
                }
            }
            _ => call.on(&self.disk),
        }
    }
}

/// What the campaign of a seed says of such a disk.
fn failure(seed: u64, object: &'static str) -> Option<String> {
    let mut counts = Counts::default();
    let Campaign { seed, setup, dice, counts, .. } =
        any_campaign(seed, Setup::any, &mut counts, EACH);
    let setup = Setup { forgets: Some(object), ..setup };
    let mut campaign = Campaign { seed, setup, dice, counts, most: 1 };
    let outcome = catch_unwind(AssertUnwindSafe(|| campaign.run()));
    outcome.err().map(|panic| match panic.downcast::<String>() {
        Ok(said) => *said,
        Err(_) => "a failure without words".to_owned(),
    })
}

#[test]
fn a_planted_failure_is_found_and_replays_from_its_seed() {
    for object in ["journal", "commit", "slab", "log-"] {
        let found = (1..=60).find_map(|seed| Some((seed, failure(seed, object)?)));
        let (seed, said) = found.unwrap_or_else(|| panic!("{object} is lost, and nobody notices"));
        assert_eq!(failure(seed, object).as_ref(), Some(&said), "{object}, seed {seed}");
        assert!(said.contains(&format!("seed {seed}, cut")), "it does not say how: {said}");
    }
}

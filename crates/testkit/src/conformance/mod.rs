//! What every store must do, a suite for each port.
//!
//! A suite makes a new store for each seed, and compares it with a plain map after every random
//! call. It panics at the first difference, with the seed. An implementation of a port is done when
//! it passes the port's suite.

mod lease;
mod log;
mod model;
mod objects;
mod puts;
mod slots;

pub use lease::{excludes, lease};
pub use log::log;
pub use model::{NAMES, ROOM};
pub use objects::{objects, objects_without_races};
pub use puts::puts;
pub use slots::slots;

use crate::Dice;
use model::{CALLS, Model};
use oblivio_store::{Objects, Store};
use std::cell::RefCell;
use std::ops::Range;

/// Opens one store. A later call opens it again, once the first one is dropped.
pub type Opener = Box<dyn Fn() -> Box<dyn Store>>;

/// Opens one more connection to a store of whole objects.
pub type Connector = Box<dyn Fn() -> Box<dyn Objects>>;

/// All suites of a store, and calls of all ports by turns, with the store opened again in between.
pub fn store(fresh: &dyn Fn() -> Opener, seeds: Range<u64>) {
    // An opener may own the place of its store.
    let openers = RefCell::new(Vec::new());
    let make = || {
        let open = fresh();
        let store = open();
        openers.borrow_mut().push(open);
        store
    };
    slots(&|| make(), seeds.clone());
    log(&|| make(), seeds.clone());
    puts(&|| make(), seeds.clone());
    lease(&make);
    for seed in seeds {
        let (open, mut model, mut dice) = (fresh(), Model::new(seed), Dice::new(seed));
        for _ in 0..3 {
            let store = open();
            store.lock().expect("nobody else has it");
            model.compare(&*store);
            for _ in 0..CALLS / 2 {
                step(&*store, &mut model, &mut dice);
            }
            store.sync(&model.names()).expect("all are there");
        }
        model.compare(&*open());
    }
}

/// Makes one random call to a store, as in [`store`].
fn step(store: &dyn Store, model: &mut Model, dice: &mut Dice) {
    match dice.below(4) {
        0 => log::step(store, model, dice),
        1 => puts::step(store, model, dice),
        _ => slots::step(store, model, dice),
    }
}

/// Random calls to a store, and what it must hold after them: for stores that are more than a map.
pub struct Calls {
    model: Model,
    dice: Dice,
}

impl Calls {
    /// The calls of a seed, to an empty store.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self { model: Model::new(seed), dice: Dice::new(seed) }
    }

    /// Makes some calls, and syncs.
    ///
    /// # Panics
    /// When one has a wrong result.
    pub fn make(&mut self, store: &dyn Store) {
        (0..CALLS).for_each(|_| step(store, &mut self.model, &mut self.dice));
        store.sync(&self.model.names()).expect("all are there");
    }

    /// Compares all that the store holds.
    ///
    /// # Panics
    /// When it differs.
    pub fn compare(&self, store: &dyn Store) {
        self.model.compare(store);
    }
}

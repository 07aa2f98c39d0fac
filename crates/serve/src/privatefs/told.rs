//! Says once that operations fail, and why, and what damage is met: programs see only an error
//! number, and nothing of damage where nothing was.

use crate::log;
use oblivio_privatefs::{Answer, Ask, Changes, Error, Owner, Result, Session, Space, Transactions};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The most lost blocks that are named.
const MOST_NAMED: usize = 1000;

struct Told {
    below: Arc<dyn Transactions>,
    failing: AtomicBool,
    /// Damaged places that were named.
    damaged: AtomicU64,
    /// Lost blocks that were named.
    lost: Mutex<BTreeSet<String>>,
}

/// These transactions; the first one that fails is noted, and the first one after it that does not.
pub fn told(below: Arc<dyn Transactions>) -> Arc<dyn Transactions> {
    let (failing, damaged, lost) = Default::default();
    Arc::new(Told { below, failing, damaged, lost })
}

impl Told {
    /// The server may try out what damage does: each damaged place is named.
    fn tell_damage(&self) {
        let damaged = self.below.damaged();
        if self.damaged.swap(damaged, Ordering::Relaxed) < damaged {
            log::note(&format!(
                "damaged at the server so far: {damaged} slots of tables. What they held is lost, \
                 if they held anything: `oblivio check` says what"
            ));
        }
    }

    fn name_lost(&self, what: &str) {
        let mut lost = self.lost.lock().unwrap_or_else(PoisonError::into_inner);
        if lost.len() < MOST_NAMED && lost.insert(what.to_owned()) {
            log::note(what);
        }
    }

    fn tell<R>(&self, result: Result<R>) -> Result<R> {
        self.tell_damage();
        match &result {
            Err(Error::Lost(what)) => self.name_lost(what),
            Ok(_) if self.failing.swap(false, Ordering::Relaxed) => {
                log::note("the volume answers again");
            }
            Err(error @ (Error::Below(_) | Error::Full(_)))
                if !self.failing.swap(true, Ordering::Relaxed) =>
            {
                log::note(&format!("operations fail: {error}"));
            }
            _ => {}
        }
        result
    }
}

impl Transactions for Told {
    fn carry_out(&self, asks: &[Ask]) -> Result<Vec<Answer>> {
        self.tell(self.below.carry_out(asks))
    }

    fn carry_out_many(&self, transactions: Vec<Vec<Ask>>) -> Result<Vec<Vec<Answer>>> {
        self.tell(self.below.carry_out_many(transactions))
    }

    fn carry_out_each(&self, transactions: Vec<Vec<Ask>>) -> Result<Vec<Option<Vec<Answer>>>> {
        self.tell(self.below.carry_out_each(transactions))
    }

    fn carry_out_in(
        &self,
        session: Session,
        transactions: Vec<Vec<Ask>>,
    ) -> Result<Option<Vec<Vec<Answer>>>> {
        self.tell(self.below.carry_out_in(session, transactions))
    }

    fn changed(&self) -> Changes {
        self.below.changed()
    }

    fn block_bytes(&self) -> usize {
        self.below.block_bytes()
    }

    fn space(&self) -> Result<Space> {
        self.below.space()
    }

    fn sync(&self) -> Result<()> {
        self.below.sync()
    }

    fn session(&self) -> Session {
        self.below.session()
    }

    fn is_live(&self, session: &Session) -> Result<bool> {
        self.below.is_live(session)
    }

    fn owners(&self) -> Result<Option<Vec<Owner>>> {
        self.below.owners()
    }
}

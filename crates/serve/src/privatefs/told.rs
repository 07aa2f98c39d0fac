//! Says once that operations fail, and why: programs see only an error number.

use crate::log;
use oblivio_privatefs::{Answer, Ask, Changes, Error, Owner, Result, Session, Space, Transactions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

struct Told {
    below: Arc<dyn Transactions>,
    failing: AtomicBool,
}

/// These transactions; the first one that fails is noted, and the first one after it that does not.
pub fn told(below: Arc<dyn Transactions>) -> Arc<dyn Transactions> {
    Arc::new(Told { below, failing: AtomicBool::new(false) })
}

impl Told {
    fn tell<R>(&self, result: Result<R>) -> Result<R> {
        match &result {
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

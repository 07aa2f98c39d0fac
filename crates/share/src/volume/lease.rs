//! Who is the scribe: terms, and the time for which each is left alone.

use oblivio_store::share::{LEASE, Result, ScribeTerm, ShareError};
use std::time::Duration;

/// The newest term, and until when nobody else may claim.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Lease {
    term: ScribeTerm,
    until: Option<Duration>,
}

impl Lease {
    /// After a start: the scribe of this term, if any, has time to come back.
    pub fn resumed(term: ScribeTerm, now: Duration) -> Self {
        Self { term, until: (term.0 > 0).then_some(now + LEASE) }
    }

    pub fn term(&self) -> ScribeTerm {
        self.term
    }

    /// What is left at this time.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        self.until.and_then(|until| until.checked_sub(now)).filter(|left| !left.is_zero())
    }

    /// The term that a client may take after `previous`. It has it after [`Lease::take`].
    pub fn next(&self, previous: ScribeTerm, now: Duration) -> Result<ScribeTerm> {
        if previous != self.term {
            return Err(ShareError::Superseded(self.term));
        }
        match self.left(now) {
            Some(left) => Err(ShareError::Held { term: self.term, left }),
            None => Ok(ScribeTerm(self.term.0 + 1)),
        }
    }

    /// Starts a term, which is durable.
    pub fn take(&mut self, term: ScribeTerm, now: Duration) {
        *self = Self { term, until: Some(now + LEASE) };
    }

    /// Admits the newest scribe only, and renews its lease.
    pub fn admit(&mut self, term: ScribeTerm, now: Duration) -> Result<()> {
        if term != self.term || term.0 == 0 {
            return Err(ShareError::Superseded(self.term));
        }
        self.until = Some(now + LEASE);
        Ok(())
    }

    /// Ends the lease, for a hand-over.
    pub fn release(&mut self, term: ScribeTerm, now: Duration) -> Result<()> {
        self.admit(term, now)?;
        self.until = None;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_lasts_and_old_terms_are_refused() {
        let at = Duration::from_millis;
        let mut lease = Lease::default();
        assert!(lease.admit(ScribeTerm(0), at(0)).is_err(), "nobody is no scribe");
        let first = lease.next(ScribeTerm(0), at(0)).unwrap();
        lease.take(first, at(0));
        assert!(matches!(lease.next(first, at(1_999)), Err(ShareError::Held { .. })));
        lease.admit(first, at(1_999)).unwrap();
        assert!(matches!(lease.next(first, at(3_998)), Err(ShareError::Held { .. })));
        assert!(matches!(
            lease.next(ScribeTerm(0), at(9_000)),
            Err(ShareError::Superseded(ScribeTerm(1)))
        ));
        let second = lease.next(first, at(3_999)).unwrap();
        lease.take(second, at(3_999));
        assert!(matches!(
            lease.admit(first, at(4_000)),
            Err(ShareError::Superseded(ScribeTerm(2)))
        ));
        lease.release(second, at(4_000)).unwrap();
        assert_eq!(lease.next(second, at(4_000)).unwrap(), ScribeTerm(3));
        assert!(
            Lease::resumed(ScribeTerm(3), at(0)).next(ScribeTerm(3), at(1)).is_err(),
            "time to come back"
        );
    }
}

//! Asks that were sent, and that the server is not known to have.

use oblivio_store::share::{Ask, ShareError};
use std::collections::BTreeMap;

/// The most of them. With more, each call waits for its reply.
const MOST: usize = 1024;

/// Asks by the number of their call.
#[derive(Default)]
pub struct Asks {
    next: u64,
    sent: BTreeMap<u64, Vec<Ask>>,
    refused: Option<ShareError>,
}

impl Asks {
    /// Whether `more` asks may be sent without waiting.
    pub fn has_room(&self, more: usize) -> bool {
        more + self.sent.values().map(Vec::len).sum::<usize>() <= MOST
    }

    /// Takes asks that are sent now.
    pub fn begin(&mut self, asks: &[Ask]) -> u64 {
        self.next += 1;
        self.sent.insert(self.next, asks.to_vec());
        self.next
    }

    /// The server has them, or refused them.
    pub fn ended(&mut self, number: u64, error: Option<ShareError>) {
        self.sent.remove(&number);
        self.refused = error.or(self.refused.take());
    }

    /// Why asks of an earlier call were refused, if they were.
    pub fn refusal(&mut self) -> Option<ShareError> {
        self.refused.take()
    }

    /// Those to send on a new line.
    pub fn again(&self) -> Vec<(u64, Vec<Ask>)> {
        self.sent.iter().map(|(number, asks)| (*number, asks.clone())).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::share::{AskId, Seq, Session};

    #[test]
    fn asks_are_sent_again_until_the_server_has_them() {
        let ask = |seq| Ask { id: AskId { session: Session(1), seq: Seq(seq) }, sealed: vec![] };
        let mut asks = Asks::default();
        let (one, two) = (asks.begin(&[ask(0)]), asks.begin(&[ask(1), ask(2)]));
        assert_eq!(asks.again(), [(one, vec![ask(0)]), (two, vec![ask(1), ask(2)])]);
        assert!(asks.has_room(MOST - 3) && !asks.has_room(MOST - 2));
        asks.ended(one, None);
        assert!(asks.refusal().is_none());
        asks.ended(two, Some(ShareError::Busy));
        assert_eq!(asks.again(), []);
        assert!(matches!(asks.refusal(), Some(ShareError::Busy)));
        assert!(asks.refusal().is_none());
    }
}

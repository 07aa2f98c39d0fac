//! Pieces of tables and states that were sent and are not stored yet.

use oblivio_store::share::{Object, ShareError, Term};
use std::collections::BTreeMap;
use std::sync::Arc;

/// A piece.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The scribe's term.
    pub term: Term,
    /// What it is a piece of.
    pub object: Object,
    /// Where it begins there.
    pub offset: u64,
    /// Its content.
    pub bytes: Arc<[u8]>,
}

/// All of them, and objects of which one was refused.
#[derive(Debug, Default)]
pub struct Uploads {
    next: u64,
    bytes: usize,
    sent: BTreeMap<u64, Piece>,
    refused: BTreeMap<Object, ShareError>,
}

impl Uploads {
    /// Whether one of this length may be sent, with `most` bytes under way at most. One goes in any
    /// case.
    pub fn has_room(&self, len: usize, most: usize) -> bool {
        self.sent.is_empty() || self.bytes + len <= most
    }

    /// Takes note of one that is sent. The number is never used again.
    pub fn begin(&mut self, piece: Piece) -> u64 {
        let number = self.next;
        self.next += 1;
        self.bytes += piece.bytes.len();
        self.sent.insert(number, piece);
        number
    }

    /// The server has it, or refused it. One that is not known any more is nobody's.
    pub fn ended(&mut self, number: u64, refusal: Option<ShareError>) {
        let Some(piece) = self.sent.remove(&number) else { return };
        self.bytes -= piece.bytes.len();
        if let Some(error) = refusal {
            self.refused.entry(piece.object).or_insert(error);
        }
    }

    /// Why a piece of this object was refused, if one was.
    pub fn refusal(&mut self, object: Object) -> Option<ShareError> {
        self.refused.remove(&object)
    }

    /// All that is to be sent again, in order.
    pub fn again(&self) -> Vec<(u64, Piece)> {
        self.sent.iter().map(|(number, piece)| (*number, piece.clone())).collect()
    }

    /// Forgets all: another scribe's are of no use.
    pub fn forget(&mut self) {
        self.bytes = 0;
        self.sent.clear();
        self.refused.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::share::TableId;

    fn piece(table: u64, len: usize) -> Piece {
        let object = Object::Table(TableId(table));
        Piece { term: Term(1), object, offset: 0, bytes: vec![0; len].into() }
    }

    #[test]
    fn pieces_are_under_way_until_they_end_and_the_first_refusal_counts() {
        let mut uploads = Uploads::default();
        assert!(uploads.has_room(1000, 10), "one goes in any case");
        let first = uploads.begin(piece(1, 6));
        assert!(uploads.has_room(4, 10) && !uploads.has_room(5, 10));
        let second = uploads.begin(piece(1, 4));
        assert_eq!(uploads.again(), [(first, piece(1, 6)), (second, piece(1, 4))]);
        uploads.ended(first, Some(ShareError::Quota));
        uploads.ended(second, Some(ShareError::Busy));
        uploads.ended(second, Some(ShareError::Busy));
        assert!(uploads.has_room(10, 10) && uploads.again().is_empty());
        let object = Object::Table(TableId(1));
        assert!(matches!(uploads.refusal(object), Some(ShareError::Quota)));
        assert!(uploads.refusal(object).is_none());
    }

    #[test]
    fn what_an_earlier_scribe_sent_is_nobodys() {
        let mut uploads = Uploads::default();
        let old = uploads.begin(piece(1, 6));
        uploads.forget();
        let new = uploads.begin(piece(1, 6));
        uploads.ended(old, Some(ShareError::Quota));
        assert_eq!(uploads.again(), [(new, piece(1, 6))]);
        assert!(uploads.refusal(Object::Table(TableId(1))).is_none());
    }
}

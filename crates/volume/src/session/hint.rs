//! The hint in the store: where a computer that knows nothing of a volume begins its search for the
//! newest session.
//!
//! It has numbers only that stand in the names of objects, and is not sealed. It says where to look
//! first, and nothing is believed for it: a store may keep an old one, or make one up. That costs
//! requests. Each session that ends by itself stores it anew, beside its last entry. Where a list
//! of claims is what a session begins by, there is none.

use super::ask::found;
use super::names::{HINT, MOST_INDEX, MOST_NUMBER};
use crate::Result;
use crate::trust::SessionHint;
use oblivio_store::{Objects, ReadAt};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// As stored.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct StoredHint {
    number: U64,
    random: U64,
    pointer: U64,
    entry: U64,
    last: U64,
}

/// The bytes of a hint.
pub fn to_bytes(hint: &SessionHint) -> Vec<u8> {
    let SessionHint { number, random, pointer, entry, last } = *hint;
    let [number, random, pointer] = [number, random, pointer].map(U64::new);
    let (entry, last) = (U64::new(entry), U64::new(last));
    StoredHint { number, random, pointer, entry, last }.as_bytes().to_vec()
}

/// What they say, if it can be.
fn parse(bytes: &[u8]) -> Option<SessionHint> {
    let stored = StoredHint::ref_from_bytes(bytes).ok()?;
    let (number, random) = (stored.number.get(), stored.random.get());
    let [pointer, entry, last] = [&stored.pointer, &stored.entry, &stored.last].map(|it| it.get());
    let is_one = (1..=MOST_NUMBER).contains(&number)
        && pointer < MOST_INDEX - 2
        && (1..=last).contains(&entry)
        && last < MOST_INDEX - 2;
    is_one.then_some(SessionHint { number, random, pointer, entry, last })
}

/// The hint of a store, if it has one.
///
/// # Errors
/// Those of the store.
pub fn read(store: &dyn Objects) -> Result<Option<SessionHint>> {
    let mut bytes = [0; size_of::<StoredHint>()];
    let read = store.read(&mut [ReadAt { object: HINT, offset: 0, buf: &mut bytes }]);
    Ok(if found(read)? { parse(&bytes) } else { None })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_is_no_hint() {
        let hint = SessionHint { number: 7, random: u64::MAX, pointer: 0, entry: 3, last: 4 };
        let bytes = to_bytes(&hint);
        assert_eq!(parse(&bytes), Some(hint));
        assert_eq!(parse(&bytes[1..]), None);
        assert_eq!(parse(&[0; 40]), None);
        assert_eq!(parse(&[0xff; 40]), None);
        let of = |hint| parse(&to_bytes(&hint));
        assert_eq!(of(SessionHint { number: 0, ..hint }), None);
        assert_eq!(of(SessionHint { number: MOST_NUMBER + 1, ..hint }), None);
        assert_eq!(of(SessionHint { entry: 0, ..hint }), None);
        assert_eq!(of(SessionHint { entry: 5, ..hint }), None);
        assert_eq!(of(SessionHint { pointer: MOST_INDEX, ..hint }), None);
        assert_eq!(of(SessionHint { last: u64::MAX, ..hint }), None);
    }
}

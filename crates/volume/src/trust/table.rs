//! The table of computers in each commit: each computer's progress among the acts that led to it.
//!
//! A commit continues another one exactly when its table has as many acts of that one's maker. This
//! holds because a computer's acts form a sequence: it takes a new name whenever the state may lack
//! some of them.

use super::known::{Act, ComputerId, StoredAct};
use zerocopy::little_endian::U64;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The most rows of a table. A further row replaces the one that changed longest ago: a computer
/// that returns after that cannot tell a fork from a long absence, and asks the user.
pub const MOST_ROWS: usize = 64;
const FRONT: usize = size_of::<Front>();
const ROW: usize = size_of::<Row>();

/// Before the rows, as stored. Zeros follow the rows.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Front {
    newest: StoredAct,
    rows: U64,
}

/// A computer, its number of acts, and the first commit that had them; as stored.
#[derive(Clone, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
struct Row {
    act: StoredAct,
    commit: U64,
}

/// Each computer's progress.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// The newest act of all that led to the commit; in a tree, its maker's.
    newest: Act,
    rows: Vec<Row>,
}

impl Table {
    /// Bytes of a table with room for this many rows.
    pub const fn bytes(rows: usize) -> usize {
        FRONT + rows * ROW
    }

    /// Rows that fit into these bytes; 0 if fewer than two fit, since such a table says nothing.
    pub const fn rows_in(bytes: usize) -> usize {
        let rows = bytes.saturating_sub(FRONT) / ROW;
        match rows {
            0 | 1 => 0,
            MOST_ROWS.. => MOST_ROWS,
            rows => rows,
        }
    }

    /// The newest act of all that led to the commit.
    pub fn newest(&self) -> Act {
        self.newest
    }

    /// How many acts of a computer led here.
    pub fn acts(&self, computer: ComputerId) -> u64 {
        let row = self.rows.iter().map(|row| row.act.get()).find(|act| act.computer == computer);
        row.map_or(0, |act| act.number)
    }

    /// Whether an act led here.
    pub fn has(&self, act: Act) -> bool {
        self.acts(act.computer) >= act.number
    }

    /// Adds an act that led to the commit with this number.
    pub fn absorb(&mut self, act: Act, commit: u64) {
        let known = self.acts(act.computer);
        if act.number > known {
            self.rows.retain(|row| row.act.get().computer != act.computer);
            self.rows.push(Row { act: StoredAct::new(act), commit: U64::new(commit) });
        }
    }

    /// Makes it the table of a commit, with its newest act; drops surplus rows.
    pub fn commit(&mut self, newest: Act, commit: u64, most_rows: usize) {
        self.absorb(newest, commit);
        self.newest = newest;
        // The rows that changed longest ago come first; each was pushed when it changed.
        let surplus = self.rows.len().saturating_sub(most_rows);
        self.rows.drain(..surplus);
    }

    /// As stored, with room for this many rows.
    pub fn to_bytes(&self, most_rows: usize) -> Vec<u8> {
        let rows = U64::new(self.rows.len() as u64);
        let front = Front { newest: StoredAct::new(self.newest), rows };
        let mut out = [front.as_bytes(), self.rows.as_bytes()].concat();
        out.resize(Self::bytes(most_rows), 0);
        out
    }

    /// Parses a stored table; `None` for something else.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let (front, rest) = Front::ref_from_prefix(bytes).ok()?;
        let count = usize::try_from(front.rows.get()).ok()?;
        let (rows, _) = <[Row]>::ref_from_prefix_with_elems(rest, count).ok()?;
        Some(Self { newest: front.newest.get(), rows: rows.to_vec() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn act(computer: u8, number: u64) -> Act {
        Act { computer: ComputerId([computer; 16]), number }
    }

    #[test]
    fn what_is_stored_is_read() {
        let mut table = Table::default();
        table.absorb(act(1, 7), 3);
        table.commit(act(2, 1), 4, MOST_ROWS);
        let bytes = table.to_bytes(MOST_ROWS);
        assert_eq!(bytes.len(), Table::bytes(MOST_ROWS));
        assert_eq!(Table::parse(&bytes), Some(table.clone()));
        assert!(table.has(act(1, 7)) && !table.has(act(1, 8)) && !table.has(act(3, 1)));
        assert_eq!(table.newest(), act(2, 1));
        for cut in 0..FRONT + 2 * ROW {
            assert_eq!(Table::parse(&bytes[..cut]), None);
        }
        let mut many = bytes;
        many[24..32].fill(0xff);
        assert_eq!(Table::parse(&many), None, "more rows than there is room for");
    }

    #[test]
    fn the_row_that_changed_longest_ago_goes_first() {
        let mut table = Table::default();
        for computer in 0..10 {
            table.commit(act(computer, 1), u64::from(computer), 8);
        }
        assert!(!table.has(act(0, 1)) && !table.has(act(1, 1)) && table.has(act(2, 1)));
        // It changes, so another one is the oldest.
        table.commit(act(2, 2), 10, 8);
        table.commit(act(99, 1), 11, 8);
        assert!(table.has(act(2, 2)) && !table.has(act(3, 1)) && table.has(act(4, 1)));
        table.absorb(act(4, 1), 12);
        table.commit(act(98, 1), 12, 8);
        assert!(!table.has(act(4, 1)), "what is known already changes nothing");
    }

    #[test]
    fn room_is_counted() {
        assert_eq!(Table::rows_in(Table::bytes(5)), 5);
        assert_eq!(Table::rows_in(Table::bytes(5) - 1), 4);
        assert_eq!(Table::rows_in(Table::bytes(1)), 0);
        assert_eq!(Table::rows_in(1 << 20), MOST_ROWS);
    }
}

//! The names of what is in the folder and beside it.
//!
//! Every name has its maker's random part, so no two computers ever make one name. Whatever else
//! lies in the folder (a sync client's conflict copies, its temporary files) does not parse, and is
//! as good as not there.

use crate::session::hex;

/// An epoch: the session that made it, and its number in that session, from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct EpochId {
    /// Random.
    pub session: u64,
    /// From 1 on. Numbers of attempts that failed are left out.
    pub number: u64,
}

/// The largest number of an epoch or of an extent: eight hex digits.
pub const MOST: u64 = (1 << 32) - 1;

impl EpochId {
    /// Its entry.
    pub fn entry(self) -> String {
        format!("e-{:016x}-{:08x}", self.session, self.number)
    }

    /// The second copy of its entry.
    pub fn twin(self) -> String {
        format!("d-{:016x}-{:08x}", self.session, self.number)
    }

    /// An extent that it changed.
    pub fn extent(self, extent: u64) -> String {
        format!("x-{:016x}-{extent:08x}-{:08x}", self.session, self.number)
    }
}

/// Where a computer stands: its random name's first half, and the number of its act.
pub fn stand(computer: u64, act: u64) -> String {
    format!("k-{computer:016x}-{act:08x}")
}

/// A changed extent on this computer, before its epoch ends.
pub fn working(overlay: u64, extent: u64) -> String {
    format!("o-{overlay:08x}-{extent:08x}")
}

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Named {
    /// The entry of an epoch.
    Entry(EpochId),
    /// The same once more.
    Twin(EpochId),
    /// An extent, and the epoch that changed it.
    Extent(EpochId, u64),
    /// A computer, and its act.
    Stand(u64, u64),
    /// An overlay, and the extent.
    Working(u64, u64),
}

/// Parses a name; `None` for any that was not made here.
pub fn parse(name: &str) -> Option<Named> {
    let (kind, rest) = name.split_once('-')?;
    let mut parts = rest.split('-');
    let mut next = |digits| parts.next().and_then(|text| hex(text, digits));
    let named = match kind {
        "e" => {
            let (session, number) = (next(16)?, next(8)?);
            Named::Entry(EpochId { session, number })
        }
        "d" => {
            let (session, number) = (next(16)?, next(8)?);
            Named::Twin(EpochId { session, number })
        }
        "x" => {
            let (session, extent, number) = (next(16)?, next(8)?, next(8)?);
            Named::Extent(EpochId { session, number }, extent)
        }
        "k" => Named::Stand(next(16)?, next(8)?),
        "o" => Named::Working(next(8)?, next(8)?),
        _ => return None,
    };
    parts.next().is_none().then_some(named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use oblivio_store::check_name;

    #[test]
    fn names_are_valid_pinned_and_parse() {
        let epoch = EpochId { session: 0xfeed, number: 0x12 };
        let table = [
            (epoch.entry(), "e-000000000000feed-00000012", Named::Entry(epoch)),
            (epoch.twin(), "d-000000000000feed-00000012", Named::Twin(epoch)),
            (
                epoch.extent(0x2a),
                "x-000000000000feed-0000002a-00000012",
                Named::Extent(epoch, 0x2a),
            ),
            (stand(0xabc, 7), "k-0000000000000abc-00000007", Named::Stand(0xabc, 7)),
            (working(3, 4), "o-00000003-00000004", Named::Working(3, 4)),
        ];
        for (name, expected, named) in table {
            assert_eq!(name, expected);
            assert!(check_name(&name).is_ok());
            assert_eq!(parse(&name), Some(named));
        }
        let largest = EpochId { session: u64::MAX, number: MOST };
        assert_eq!(parse(&largest.extent(MOST)), Some(Named::Extent(largest, MOST)));
    }

    #[test]
    fn what_others_made_does_not_parse() {
        for name in [
            "",
            "e-",
            "header",
            "e-000000000000feed-00000012.sync-conflict-20260101-000000-ABCDEFG",
            "e-000000000000feed-00000012 (conflicted copy)",
            "x-000000000000feed-0000002a",
            "x-000000000000feed-0000002a-00000012-1",
            "x-000000000000FEED-0000002a-00000012",
            "k-+000000000000abc-00000007",
            "e-000000000000feed-0000012",
            "y-000000000000feed-00000012",
        ] {
            assert_eq!(parse(name), None, "{name}");
        }
    }
}

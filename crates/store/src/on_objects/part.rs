//! The names of the stored parts of an object.
//!
//! `OBJECT.VERSION.KIND`. The version has twelve hexadecimal digits and grows with every part that
//! a store writes. The kind is `w` for the whole object, `d` for a deletion, or `CHUNK-LEN` in
//! hexadecimal: the number of a chunk, and the length that the object had then.

use crate::{Result, StoreError, check_name};

/// The longest name of an object, in bytes: the names of its parts are longer.
pub const LONGEST_NAME: usize = 28;

/// What a part holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// All of the object: every older part is void.
    Whole,
    /// One chunk, and the length of the object with it.
    Chunk { index: u64, len: u64 },
    /// Nothing: the object was deleted, and every older part is void.
    Gone,
}

/// A part by its name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) version: u64,
    pub(super) kind: Kind,
}

impl Part {
    /// Its name, for a part of `object`.
    pub(super) fn name(&self, object: &str) -> String {
        let version = self.version;
        match self.kind {
            Kind::Whole => format!("{object}.{version:012x}.w"),
            Kind::Gone => format!("{object}.{version:012x}.d"),
            Kind::Chunk { index, len } => format!("{object}.{version:012x}.{index:x}-{len:x}"),
        }
    }

    /// The object and part of a name; `None` for a name of something else.
    pub(super) fn parse(name: &str) -> Option<(&str, Self)> {
        let (rest, kind) = name.rsplit_once('.')?;
        let (object, version) = rest.rsplit_once('.')?;
        let number = |digits| u64::from_str_radix(digits, 16).ok();
        let kind = match kind {
            "w" => Kind::Whole,
            "d" => Kind::Gone,
            _ => {
                let (index, len) = kind.split_once('-')?;
                Kind::Chunk { index: number(index)?, len: number(len)? }
            }
        };
        let part = Self { version: number(version)?, kind };
        (part.name(object) == name && check(object).is_ok()).then_some((object, part))
    }
}

/// Refuses a name that leaves no room for the rest of a part's name.
pub(super) fn check(object: &str) -> Result<()> {
    check_name(object)?;
    match object.len() > LONGEST_NAME {
        true => Err(StoreError::refused(object, "a name too long for a store on objects")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MAX_NAME;

    #[test]
    fn names_are_read_back() {
        let long = "x".repeat(LONGEST_NAME);
        let far = Kind::Chunk { index: (1 << 28) - 1, len: 1 << 46 };
        for object in ["slab-0", "a.b", "d", "1.w", &long] {
            for kind in [Kind::Whole, Kind::Gone, Kind::Chunk { index: 3, len: 0 }, far] {
                let part = Part { version: (1 << 48) - 1, kind };
                let name = part.name(object);
                assert!(name.len() <= MAX_NAME, "{name}");
                assert!(check_name(&name).is_ok());
                assert_eq!(Part::parse(&name), Some((object, part)));
            }
        }
        for other in ["lease", "a", "a.b", "a.1.w", "a.00000000000g.w", ".000000000001.w", ""] {
            assert_eq!(Part::parse(other), None, "{other}");
        }
        assert!(check(&"x".repeat(LONGEST_NAME + 1)).is_err());
    }
}

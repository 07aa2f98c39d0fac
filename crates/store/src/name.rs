//! The valid names of objects.
//!
//! The rule is the narrowest of all places a store may live in (a directory, a bucket, a URL), so
//! that a volume can be copied between them. Names with a leading dot belong to the stores
//! themselves: their lock and temporary files can never collide with an object.

use crate::{Result, StoreError};
use std::io;

/// The longest name an object may have, in bytes.
pub const MAX_NAME: usize = 64;

/// Accepts 1 to [`MAX_NAME`] ASCII letters, digits, `-`, `_` and `.`, without a leading dot.
///
/// # Errors
/// [`StoreError::Io`] with [`io::ErrorKind::InvalidInput`] for any other name.
pub fn check_name(name: &str) -> Result<()> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let fits = (1..=MAX_NAME).contains(&name.len()) && !name.starts_with('.');
    if fits && name.bytes().all(plain) {
        return Ok(());
    }
    let source = io::Error::new(io::ErrorKind::InvalidInput, "not a valid object name");
    Err(StoreError::Io { object: name.to_owned(), source })
}

/// How the names of objects begin with which a service is tried out.
pub const TRIALS: &str = "probe-";

/// Whether an object was left by a trial of the service that was killed: its name is
/// `probe-`, sixteen hex digits, a dash and more.
#[must_use]
pub fn is_of_trial(name: &str) -> bool {
    let Some((tag, more)) = name.strip_prefix(TRIALS).and_then(|it| it.split_once('-')) else {
        return false;
    };
    tag.len() == 16 && tag.bytes().all(|byte| byte.is_ascii_hexdigit()) && !more.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names() {
        let long = "x".repeat(MAX_NAME);
        for good in ["a", "slab-0", "A_b.c", "9", "a..b", long.as_str()] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let longer = "x".repeat(MAX_NAME + 1);
        for bad in ["", ".", "..", ".lock", "a/b", "/", "a b", "é", "a\0", longer.as_str()] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_of_trials() {
        assert!(is_of_trial("probe-0123456789abcdef-a0-0"));
        for other in ["probe-0123456789abcdef", "probe-letter-1", "probe-0123456789abcdef-", "b-1"]
        {
            assert!(!is_of_trial(other), "{other}");
        }
    }
}

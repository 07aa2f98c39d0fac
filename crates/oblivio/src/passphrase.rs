//! A passphrase in the form in which every program derives keys from it.

use oblivio_app::normal;
use oblivio_crypto::Passphrase as Secret;
use std::fmt;
use zeroize::Zeroizing;

/// What opens a volume. It is wiped on drop, and never printed.
///
/// Text is taken in Unicode's composed form: the same accent from another keyboard or system opens
/// the same volume. Bytes that are not text count as they are. The `oblivio` command reads one line
/// of at most 4,096 bytes, so a passphrase that is to work there too has no line break.
pub struct Passphrase(Secret);

impl Passphrase {
    /// The passphrase that these bytes are. They are moved, not copied, and wiped later.
    pub fn new(bytes: Vec<u8>) -> Self {
        let mut bytes = normal(Zeroizing::new(bytes));
        Self(Secret::new(std::mem::take(&mut *bytes)))
    }

    pub(crate) fn secret(&self) -> &Secret {
        &self.0
    }
}

impl From<&str> for Passphrase {
    fn from(text: &str) -> Self {
        Self::new(text.as_bytes().to_vec())
    }
}

impl From<String> for Passphrase {
    fn from(text: String) -> Self {
        Self::new(text.into_bytes())
    }
}

impl fmt::Debug for Passphrase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Passphrase(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_accent_is_the_same_however_it_is_typed() {
        let same = |one: &str, other: &str| {
            Passphrase::from(one).secret().same_as(Passphrase::from(other).secret())
        };
        assert!(same("caf\u{e9}", "cafe\u{301}"));
        assert!(!same("caf\u{e9}", "cafe"));
        let bytes = Passphrase::new(vec![0xff, 0x00]);
        assert!(bytes.secret().same_as(&Secret::new(vec![0xff, 0x00])));
    }
}
